// Cases for the comparison: schemas, policies, entities and requests, made from a seed.
//
// Most of what is made is well typed, so that evaluation goes deep; a share is not, so that errors,
// short circuits and refusals are met too. Everything is text: JSON is written by hand, since
// numbers of 64 bits do not survive JavaScript's own.

export class Random {
  constructor(seed) { this.s = BigInt(seed) * 0x9e3779b97f4a7c15n + 1n; }
  next() { // splitmix64
    this.s = (this.s + 0x9e3779b97f4a7c15n) & 0xffffffffffffffffn;
    let z = this.s;
    z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & 0xffffffffffffffffn;
    z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & 0xffffffffffffffffn;
    return Number((z ^ (z >> 31n)) >> 11n) / 2 ** 53;
  }
  below(n) { return Math.floor(this.next() * n); }
  chance(p) { return this.next() < p; }
  pick(list) { return list[this.below(list.length)]; }
}

const LONGS = ['0', '1', '2', '7', '-1', '-2', '9223372036854775807', '-9223372036854775808', '4611686018427387904', '3037000500'];
const STRINGS = ['', 'a', 'ab', 'abc', 'a*c', 'é', '\u{1F600}', 'x\ny', '\\', '"', 'tag', 'k', '\u0000', '10.0.0.1'];
const DECIMALS = ['0.0', '1.0', '1.00', '-0.5', '-1.2345', '922337203685477.5807', '-922337203685477.5808', '922337203685477.5808', '1', '1.23456', '+1.0', '.5', '1.', '00.10'];
const IPS = ['127.0.0.1', '10.0.0.0/8', '10.0.0.1/8', '10.0.0.1', '::1', '::', 'ff00::/8', 'ff02::1', '1:2:3:4:5:6:7::', '224.0.0.1', '0.0.0.0/0', '::/0', '10.0.0.1/32', '1::2:3:4:5:6:7:8', '10.0.0.1/33', '01.0.0.1', '::ffff:1.2.3.4', '1.2.3', 'fe80::1%eth0', '127.0.0.0/7'];
const DATETIMES = ['1970-01-01', '2024-02-29', '2023-02-29', '0000-01-01', '9999-12-31T23:59:59.999Z', '2024-01-01T00:00:00Z', '2024-01-01T00:00:00+0130', '2024-01-01T00:00:00.123-2359', '2024-01-01T24:00:00Z', '2024-01-01T00:00:00', '2024-1-1', '1969-12-31T23:59:59.999Z'];
const DURATIONS = ['0ms', '1d', '-1d', '1d2h3m4s5ms', '1h1d', '9223372036854775807ms', '-9223372036854775808ms', '9223372036854775808ms', '', '1', '106751991167d', '007s', '-1ms', '1m1ms'];
const TYPES = ['U', 'G', 'D', 'NS::T'];
const IDS = ['a', 'b', 'c', ''];
const ACTIONS = ['Action::"view"', 'Action::"edit"', 'Action::"all"', 'NS::Action::"run"'];

export function quote(s) { // a Cedar string
  let out = '"';
  for (const c of s) {
    if (c === '"' || c === '\\') out += '\\' + c;
    else if (c === '\n') out += '\\n';
    else if (c === '\0') out += '\\0';
    else out += c;
  }
  return out + '"';
}

// Literals with the escapes that a text may use; the last ones are no Cedar.
const WRITTEN = ['"\\u{e9}"', '"\\x41"', '"\\u{1F_600}"', '"\\t\\r\\0\\\'"', '"\\u{10FFFF}"', '"e\u0301"', '"\u{1D11E}"', '"\u202e"', '"a\tb"', '"\\u{2a}"', '"\\*"', '"\\x80"', '"\\u{D800}"', '"\\a"', '"\\u{110000}"'];
const PATTERNS = ['"\\u{2a}"', '"\\x2a\\*"', '"*\u{1F600}*"', '"\u00e9"', '"e*"', '"*\\n*"', '"**"', '"\\**\\*"', '"a*b*c*"', '"*\\0"', '"\\\\*"'];
// Words that look like words, and scripts in one: validation warns.
const LOOKALIKES = ['\u0430', 'p\u0430ypal', '\u0440\u0430\u0443', 'sc\u03bfpe', '\u202eabc', 'a\u200bb', '\uff41', '\u2028', '\u00e9t\u00e9', '\u65e5\u672c', '\u{1F600}a', 'x\u0301', 'say-hi', '\u05d0'];

const uid = r => `${r.pick(TYPES)}::${quote(r.pick(IDS))}`;
const uidJson = (type, id) => `{"type":${JSON.stringify(type)},"id":${JSON.stringify(id)}}`;

// ---- expressions ----

// Attributes that every type has in the data, by the kind of their value.
const ATTRS = { bool: ['b', 'b2'], long: ['n', 'm', 'opt'], string: ['s', 'os'], set: ['ns', 'es', 'ss'], record: ['r'], entity: ['e', 'f'], decimal: ['dec'], ipaddr: ['ip'], datetime: ['dt'], duration: ['du'] };
const KINDS = ['bool', 'bool', 'long', 'string', 'set', 'record', 'entity', 'decimal', 'ipaddr', 'datetime', 'duration'];

class Expressions {
  constructor(r, noise) { this.r = r; this.noise = noise; }

  make(kind, depth) {
    const r = this.r;
    if (r.chance(this.noise)) kind = r.pick(KINDS);
    if (depth <= 0) return this.leaf(kind);
    if (r.chance(0.08)) return `(if ${this.make('bool', depth - 1)} then ${this.make(kind, depth - 1)} else ${this.make(kind, depth - 1)})`;
    if (r.chance(0.2)) return this.attribute(kind, depth);
    if (r.chance(0.04)) return `${this.make('entity', depth - 1)}.getTag(${this.tagKey(depth)})`;
    return this[kind](depth);
  }

  base(depth) {
    const r = this.r;
    if (r.chance(0.55)) return r.pick(['principal', 'resource', 'principal', 'resource', 'context', 'action']);
    if (r.chance(0.3)) return this.make('record', depth - 1);
    return this.make('entity', depth - 1);
  }

  attribute(kind, depth) {
    const name = this.r.chance(0.08) ? this.r.pick(['nope', 'x', 'y', 'if']) : this.r.pick(ATTRS[kind] ?? ['n']);
    const base = this.base(depth);
    return name === 'if' || this.r.chance(0.1) ? `${base}[${quote(name)}]` : `${base}.${name}`;
  }

  tagKey(depth) { return this.r.chance(0.8) ? quote(this.r.pick(['tag', 'k', ''])) : this.make('string', depth - 1); }

  leaf(kind) {
    const r = this.r;
    switch (kind) {
      case 'bool': return r.pick(['true', 'false', 'principal.b', 'context.b', 'principal == resource', 'principal is U']);
      case 'long': return r.chance(0.5) ? r.pick(LONGS) : r.pick(['principal.n', 'resource.m', 'context.n', '0', '1', '2']);
      case 'string': if (r.chance(0.12)) return r.pick(WRITTEN.slice(0, r.chance(0.04) ? WRITTEN.length : 11)); return r.chance(0.7) ? quote(r.pick(STRINGS)) : r.pick(['principal.s', 'context.s']);
      case 'set': return r.pick(['[1, 2]', '[]', '[1]', 'principal.ns', 'principal.es', '[principal]', `[${uid(r)}]`, '["a"]', '[true]', 'context.ns']);
      case 'record': return r.pick(['{}', '{x: 1}', '{x: 1, y: "a"}', 'principal.r', 'context.r', 'context', '{"if": 1}']);
      case 'entity': return r.chance(0.6) ? r.pick(['principal', 'resource', 'action', 'principal.e']) : r.chance(0.2) ? r.pick(ACTIONS) : uid(r);
      case 'decimal': return `decimal(${quote(r.pick(DECIMALS))})`;
      case 'ipaddr': return `ip(${quote(r.pick(IPS))})`;
      case 'datetime': return `datetime(${quote(r.pick(DATETIMES))})`;
      case 'duration': return `duration(${quote(r.pick(DURATIONS))})`;
    }
  }

  bool(d) {
    const r = this.r, e = k => this.make(k, d - 1);
    switch (r.below(20)) {
      case 0: case 1: return `(${e('bool')} && ${e('bool')})`;
      case 2: case 3: return `(${e('bool')} || ${e('bool')})`;
      case 4: return `!(${e('bool')})`;
      case 5: { const k = r.pick(KINDS); return `(${e(k)} ${r.pick(['==', '!='])} ${e(r.chance(0.85) ? k : r.pick(KINDS))})`; }
      case 6: { const k = r.pick(['long', 'long', 'datetime', 'duration']); return `(${e(k)} ${r.pick(['<', '<=', '>', '>='])} ${e(k)})`; }
      case 7: case 8: return `(${e('entity')} in ${r.chance(0.7) ? e('entity') : `[${e('entity')}, ${e('entity')}]`})`;
      case 9: return `(${e('entity')} is ${r.pick([...TYPES, 'Action', 'NS::Action'])})`;
      case 10: return `(${e('entity')} is ${r.pick(TYPES)} in ${e('entity')})`;
      case 11: return `(${this.base(d)} has ${r.pick(['n', 'opt', 'nope', 'e', 'r.y', 'e.n', 'e.e.opt', '"s"', '"if"', 'r.x.z'])})`;
      case 12: return `${e('entity')}.hasTag(${this.tagKey(d)})`;
      case 13: return r.chance(0.3) ? `(${e('string')} like ${r.pick(PATTERNS)})` : `(${e('string')} like ${quote(r.pick(STRINGS)).slice(0, -1)}${r.pick(['*', '', '\\*', '*b*', 'c'])}")`;
      case 14: return `${e('set')}.contains(${e(r.pick(KINDS))})`;
      case 15: return `${e('set')}.${r.pick(['containsAll', 'containsAny'])}(${e('set')})`;
      case 16: return `${e('set')}.isEmpty()`;
      case 17: return `${e('decimal')}.${r.pick(['lessThan', 'lessThanOrEqual', 'greaterThan', 'greaterThanOrEqual'])}(${e('decimal')})`;
      case 18: return r.chance(0.5) ? `${e('ipaddr')}.${r.pick(['isIpv4', 'isIpv6', 'isLoopback', 'isMulticast'])}()` : `${e('ipaddr')}.isInRange(${e('ipaddr')})`;
      default: { // a guard and what it guards
        const b = r.pick(['principal', 'resource', 'context', 'principal.e']), a = r.pick(['opt', 'n', 'os']);
        return r.chance(0.7) ? `(${b} has ${a} && ${b}.${a} == ${e(a === 'os' ? 'string' : 'long')})`
          : `(${b}.hasTag("tag") && ${b}.getTag("tag") == ${e('string')})`;
      }
    }
  }
  long(d) {
    const e = k => this.make(k, d - 1);
    switch (this.r.below(6)) {
      case 0: return `(${e('long')} + ${e('long')})`;
      case 1: return `(${e('long')} - ${e('long')})`;
      case 2: return `(${e('long')} * ${e('long')})`;
      case 3: return `-(${e('long')})`;
      case 4: return `${e('duration')}.${this.r.pick(['toMilliseconds', 'toSeconds', 'toMinutes', 'toHours', 'toDays'])}()`;
      default: return this.leaf('long');
    }
  }
  string() { return this.leaf('string'); }
  set(d) {
    const k = this.r.pick(KINDS);
    return this.r.chance(0.3) ? this.leaf('set') : `[${Array.from({ length: this.r.below(4) }, () => this.make(k, d - 1)).join(', ')}]`;
  }
  record(d) {
    const keys = ['x', 'y', 'n', 's', 'r', '"a b"'].filter(() => this.r.chance(0.35));
    return `{${keys.map(k => `${k}: ${this.make(this.r.pick(KINDS), d - 1)}`).join(', ')}}`;
  }
  entity() { return this.leaf('entity'); }
  decimal() { return this.leaf('decimal'); }
  ipaddr() { return this.leaf('ipaddr'); }
  datetime(d) {
    return this.r.chance(0.5) ? this.leaf('datetime')
      : this.r.chance(0.6) ? `${this.make('datetime', d - 1)}.offset(${this.make('duration', d - 1)})` : `${this.make('datetime', d - 1)}.toDate()`;
  }
  duration(d) {
    return this.r.chance(0.5) ? this.leaf('duration')
      : this.r.chance(0.6) ? `${this.make('datetime', d - 1)}.durationSince(${this.make('datetime', d - 1)})` : `${this.make('datetime', d - 1)}.toTime()`;
  }
}

// ---- policies ----

function scope(r, name, slots) {
  const target = () => slots && r.chance(0.6) ? `?${name}` : uid(r);
  switch (r.below(9)) {
    case 0: return `${name} == ${target()}`;
    case 1: case 2: return `${name} in ${target()}`;
    case 3: return `${name} is ${r.pick(TYPES)}`;
    case 4: return `${name} is ${r.pick(TYPES)} in ${target()}`;
    default: return name;
  }
}

function actionScope(r) {
  switch (r.below(8)) {
    case 0: return `action == ${r.pick(ACTIONS)}`;
    case 1: return `action in ${r.pick(ACTIONS)}`;
    case 2: return `action in [${ACTIONS.filter(() => r.chance(0.4)).join(', ')}]`;
    default: return 'action';
  }
}

export function policyText(r, noise, slots = false) {
  const x = new Expressions(r, noise);
  let text = r.chance(0.15) ? `@note(${quote(r.pick(STRINGS))})\n` : '';
  text += `${r.chance(0.6) ? 'permit' : 'forbid'}(${scope(r, 'principal', slots)}, ${actionScope(r)}, ${scope(r, 'resource', slots)})`;
  for (let n = r.below(3); n > 0; n--) text += ` ${r.chance(0.75) ? 'when' : 'unless'} { ${x.make('bool', 1 + r.below(4))} }`;
  return text + ';';
}

// ---- schemas ----

const TYPE_TEXT = {
  b: 'Bool', b2: 'Bool', n: 'Long', m: 'Long', opt: 'Long', s: 'String', os: 'String', ns: 'Set<Long>', ss: 'Set<String>', es: 'Set<U>',
  r: '{x: Long, y?: String}', e: 'U', f: 'NS::T', dec: 'decimal', ip: 'ipaddr', dt: 'datetime', du: 'duration',
};

const ALL_ACTIONS = [['Action', 'view'], ['Action', 'edit'], ['NS::Action', 'run'], ['Action', 'all']];

// A schema, with what its data must look like.
export function makeSchema(r) {
  const shape = {}, applies = {};
  const attrs = () => Object.fromEntries(Object.keys(TYPE_TEXT).filter(() => r.chance(0.85))
    .map(k => [k, { optional: k === 'opt' || k === 'os' || r.chance(0.12), type: r.chance(0.03) ? 'String' : TYPE_TEXT[k] }]));
  const show = list => '{' + Object.entries(list).map(([k, a]) => `${k}${a.optional ? '?' : ''}: ${a.type}`).join(', ') + '}';
  const entity = t => {
    const parents = TYPES.filter(() => r.chance(0.4));
    const tags = r.chance(0.5) ? r.pick(['String', 'String', 'Long', 'Set<String>', 'ipaddr']) : null;
    shape[t] = { attrs: attrs(), parents, tags };
    return `entity ${t.replace('NS::', '')}${parents.length ? ` in [${parents.join(', ')}]` : ''} = ${show(shape[t].attrs)}${tags ? ` tags ${tags}` : ''};\n`;
  };
  const list = () => TYPES.filter(() => r.chance(0.6)).concat('U');
  const apply = key => {
    applies[key] = { principal: list(), resource: list(), context: r.chance(0.8) ? attrs() : {} };
    const a = applies[key];
    return `appliesTo {principal: [${a.principal.join(', ')}], resource: [${a.resource.join(', ')}], context: ${show(a.context)}}`;
  };
  let text = entity('U');
  if (r.chance(0.2)) { text += 'entity G enum ["a", "b"];\n'; shape.G = { enum: true, attrs: {}, parents: [], tags: null }; }
  else text += entity('G');
  text += entity('D') + `namespace NS { ${entity('NS::T').trim()} action run ${apply('run')}; }\n`;
  text += `action all;\naction view in [all] ${apply('view')};\naction edit${r.chance(0.5) ? ' in [view]' : ''} ${apply('edit')};\n`;
  return { text, shape, applies };
}

// ---- data ----

function value(r, name, wild) {
  if (wild && r.chance(0.1)) return r.pick(['1', '"x"', 'true', '[]', '{}', '[1,"a"]']);
  const extn = (fn, list) => `{"__extn":{"fn":"${fn}","arg":${JSON.stringify(r.pick(list))}}}`;
  const entity = (type) => `{"__entity":${uidJson(type, r.pick(['a', 'b']))}}`;
  switch (name) {
    case 'b': case 'b2': return r.pick(['true', 'false']);
    case 'n': case 'm': case 'opt': return r.pick(LONGS);
    case 's': case 'os': return JSON.stringify(r.pick(STRINGS));
    case 'ns': return `[${LONGS.filter(() => r.chance(0.3)).join(',')}]`;
    case 'ss': return `[${STRINGS.filter(() => r.chance(0.2)).map(s => JSON.stringify(s)).join(',')}]`;
    case 'es': return `[${IDS.filter(() => r.chance(0.3)).map(i => `{"__entity":${uidJson('U', i)}}`).join(',')}]`;
    case 'r': return r.chance(0.5) ? `{"x":${r.pick(LONGS)}}` : `{"x":${r.pick(LONGS)},"y":"a"}`;
    case 'e': return entity('U');
    case 'f': return entity('NS::T');
    case 'dec': return extn('decimal', DECIMALS.slice(0, 7));
    case 'ip': return extn('ip', IPS.slice(0, 13));
    case 'dt': return extn('datetime', [DATETIMES[0], DATETIMES[1], DATETIMES[4], DATETIMES[6]]);
    case 'du': return extn('duration', DURATIONS.slice(0, 4));
  }
}

const fields = (r, wild) => '{' + Object.keys(TYPE_TEXT).filter(k => r.chance(k === 'opt' || k === 'os' ? 0.5 : 0.85))
  .map(k => `"${k}":${value(r, k, wild)}`).join(',') + '}';

export function entitiesText(r, withActions) {
  const rows = [];
  for (const type of TYPES)
    for (const id of IDS) {
      if (!r.chance(0.4)) continue;
      const parents = TYPES.flatMap((t, i) => IDS.map((p, k) => [t, p, i * IDS.length + k]))
        .filter(([, , n]) => n > TYPES.indexOf(type) * IDS.length + IDS.indexOf(id) && r.chance(0.12)).map(([t, p]) => uidJson(t, p));
      const tags = r.chance(0.4) ? `,"tags":{"tag":${r.chance(0.8) ? JSON.stringify(r.pick(STRINGS)) : '1'}}` : '';
      rows.push(`{"uid":${uidJson(type, id)},"attrs":${fields(r, true)},"parents":[${parents.join(',')}]${tags}}`);
    }
  if (withActions) {
    rows.push(`{"uid":${uidJson('Action', 'view')},"attrs":{},"parents":[${uidJson('Action', 'all')}]}`);
    rows.push(`{"uid":${uidJson('Action', 'all')},"attrs":{},"parents":[]}`);
  }
  return `[${rows.join(',')}]`;
}

export function requestText(r) {
  const action = r.pick(ALL_ACTIONS);
  return `{"principal":${uidJson(r.pick(TYPES), r.pick(IDS))},"action":${uidJson(...action)},"resource":${uidJson(r.pick(TYPES), r.pick(IDS))},"context":${fields(r, false)}}`;
}

// ---- data of a schema ----

const BY_TYPE = { Bool: 'b', Long: 'n', String: 's', 'Set<Long>': 'ns', 'Set<String>': 'ss', 'Set<U>': 'es', '{x: Long, y?: String}': 'r', U: 'e', 'NS::T': 'f', decimal: 'dec', ipaddr: 'ip', datetime: 'dt', duration: 'du' };

// The forms that a schema allows beside the escapes.
function implicit(r, text) {
  const e = /^\{"__entity":(.*)\}$/.exec(text), x = /^\{"__extn":(\{"fn":"[a-z]+","arg":(.*)\})\}$/.exec(text);
  if (e && r.chance(0.5)) return e[1];
  if (x && r.chance(0.5)) return r.chance(0.7) ? x[2] : x[1];
  return text;
}

function typedFields(r, attrs, noise) {
  const rows = Object.entries(attrs).filter(([, a]) => a.optional ? r.chance(0.5) : !r.chance(noise))
    .map(([k, a]) => `"${k}":${implicit(r, value(r, r.chance(noise) ? r.pick(Object.keys(TYPE_TEXT)) : BY_TYPE[a.type], r.chance(noise)))}`);
  if (r.chance(noise)) rows.push('"nope":1');
  return `{${rows.join(',')}}`;
}

function typedEntities(r, schema, noise) {
  const rows = [];
  for (const [i, type] of TYPES.entries())
    for (const [k, id] of IDS.entries()) {
      const s = schema.shape[type];
      if (!r.chance(0.3) || (s.enum && k > 1 && !r.chance(noise))) continue;
      const parents = TYPES.flatMap((t, j) => IDS.map((p, m) => [t, p, j * IDS.length + m]))
        .filter(([t, , n]) => n > i * IDS.length + k && r.chance(0.15) && (s.parents.includes(t) || r.chance(noise)))
        .filter(([t, p]) => !schema.shape[t].enum || p === 'a' || r.chance(noise)).map(([t, p]) => uidJson(t, p));
      const tags = s.tags || r.chance(noise) ? `,"tags":{"tag":${implicit(r, value(r, BY_TYPE[s.tags ?? 'Long'], r.chance(noise)))}}` : '';
      rows.push(`{"uid":${uidJson(type, id)},"attrs":${typedFields(r, s.attrs, noise)},"parents":[${parents.join(',')}]${tags}}`);
    }
  if (r.chance(0.1)) {
    rows.push(`{"uid":${uidJson('Action', 'view')},"attrs":{},"parents":[${uidJson('Action', 'all')}]}`);
    if (r.chance(0.5)) rows.push(`{"uid":${uidJson('Action', 'all')},"attrs":{},"parents":[]}`);
  }
  return `[${rows.join(',')}]`;
}

function typedRequest(r, schema, noise) {
  const [type, id] = r.chance(noise) ? r.pick(ALL_ACTIONS) : r.pick(ALL_ACTIONS.slice(0, 3));
  const a = schema.applies[id] ?? schema.applies.view;
  const one = list => { const t = r.chance(noise) ? r.pick(TYPES) : r.pick(list); return uidJson(t, schema.shape[t].enum && !r.chance(noise) ? 'a' : r.pick(IDS)); };
  return `{"principal":${one(a.principal)},"action":${uidJson(type, id)},"resource":${one(a.resource)},"context":${typedFields(r, a.context, noise)}}`;
}

// ---- mistakes ----

const PIECES = ['(', ')', '{', '}', '[', ']', ';', ',', '.', '::', ':', '"', "'", '@', '?', '=', '==', '!', '<', '&&', '||', '*', '+', '-', '/', '%', '\\', ' ', '\n', '//', 'if', 'in', 'is', 'has', 'like', 'true', '__cedar', 'principal', '?principal', '1', '9223372036854775808', '\u00a0', '\ufeff', 'é', '\r'];

export function mistake(r, whole) {
  let text = Array.from(whole); // characters: half of a pair is not text
  for (let n = 1 + r.below(2); n > 0; n--) {
    const at = r.below(text.length + 1), piece = r.pick(PIECES);
    switch (r.below(4)) {
      case 0: text.splice(at, 1 + r.below(3)); break;
      case 1: text.splice(at, 0, piece); break;
      case 2: text.splice(at, piece.length, piece); break;
      default: { const to = Math.min(at, r.below(text.length + 1)); text = [...text.slice(0, to), ...text.slice(at), ...text.slice(to, at)]; }
    }
  }
  return text.join('');
}

// Values that data must not have or that are at the edge of what it may have.
const DATA_PIECES = ['1.0', '-0', '1e2', '01', 'null', '9223372036854775808', '-9223372036854775808', '"\\ud800"', '"\\ud83d\\ude00"', '"\\u0000"', '{}', '[]', '{"__entity":{"type":"U","id":"a"}}', '{"__entity":{"type":"U","id":"a","x":1}}',
  '{"__entity":"U::\\"a\\""}', '{"__entity":{"type":"U ","id":"a"}}', '{"__entity":{"type":"if","id":"a"}}', '{"__extn":{"fn":"ip","arg":"::1"}}', '{"__extn":{"fn":"ip","args":["::1"]}}', '{"__extn":{"fn":"ip","arg":1}}', '{"__extn":{"fn":"nope","arg":"1"}}',
  '{"__extn":{"fn":"decimal","arg":"1.0"},"x":1}', '{"__extn":{"fn":"offset","args":[{"__extn":{"fn":"datetime","arg":"1970-01-01"}},{"__extn":{"fn":"duration","arg":"1d"}}]}}', '{"__expr":"1"}', '{"a":1,"a":1}', '{"":1}', '{"type":"U","id":"a"}', '"10.0.0.1"', 'true', '"\u202e"'];

// One value of a JSON text instead of another, or a member more.
export function dataMistake(r, text) {
  const places = [...text.matchAll(/[:,[]("(?:[^"\\]|\\.)*"(?!:)|-?\d+|true|false|\[\]|\{\})/g)];
  if (!places.length || r.chance(0.15)) return mistake(r, text);
  const m = r.pick(places), at = m.index + 1, end = m.index + m[0].length;
  const member = r.pick(['"tags":null', '"tags":{}', '"extra":1', '"attrs":{}', '"uid":1', '"parents":[]', '"id":"a"', '"b":true']);
  if (r.chance(0.15)) return text.replace(/\}/, `,${member}}`);
  return text.slice(0, at) + r.pick(DATA_PIECES) + text.slice(end);
}

// Of the JSON of a set: what must be noticed is a wrong key, kind, op, count or name.
const SET_PIECES = [['"left"', '"arg"'], ['"arg"', '"left"'], ['"Value"', '"Var"'], ['"Var"', '"Slot"'], ['"All"', '"all"'], ['"op":"=="', '"op":"in"'], ['"op":"in"', '"op":"is"'], ['"when"', '"unless"'], ['"permit"', '"Permit"'], ['"principal"', '"who"'],
  ['"conditions":[', '"conditions":[{"kind":"when","body":{"Value":{"__extn":{"fn":"decimal","arg":"1.0"}}}},'], ['"attr":"', '"attr":"a b'], ['"attr":"n"', '"attr":["n","m"]'], ['"attr":"n"', '"attr":[]'], ['"attr":"n"', '"attr":"if"'], ['{"Var":"principal"}', '{"Slot":"?principal"}'], ['{"Var":"principal"}', '{"Unknown":[{"Value":"x"}]}'],
  ['"Literal":"', '"Literal":"*'], ['"Literal":"', '"Literal":"\u00e9\u{1F600}'], ['"Wildcard"', '"wildcard"'], ['"effect"', '"extra":1,"effect"'], ['"entity_type":"', '"entity_type":"NS :: '], ['"entity_type":"U"', '"entity_type":"principal"'], ['"ip":[', '"ip":[{"Value":1},'], ['"decimal":[', '"nope":['], ['"contains"', '"containsAll"'], ['"isEmpty":{"arg"', '"isEmpty":{"left"'],
  ['{"Value":true}', '{"Value":{"__entity":{"type":"U","id":"a"}}}'], ['{"Value":true}', '{"Set":[]}'], ['{"Value":true}', '{"Value":[1,[true]]}'], ['{"Value":true}', '{"Value":{"__extn":{"fn":"ip","arg":"x"}}}'], ['{"Value":1}', '{"Value":1.0}'], ['{"Value":1}', '{"Value":null}'], ['{"Value":1}', '{"Value":1,"Var":"context"}'], ['{"Value":1}', '{}'], ['{"Value":1}', '{"neg":{"arg":{"Value":-9223372036854775808}}}'],
  ['"newId":"link0"', '"newId":"p0"'], ['"newId":"link1"', '"newId":"link0"'], ['"templateId":"t0"', '"templateId":"nope"'], ['"?principal":', '"?resource":'], ['"values":{', '"values":{"?nope":{"type":"U","id":"a"},'], ['"values":{', '"values":{"?principal":{"type":"U","id":"a"},'], ['"p0"', '"t0"'], ['"templateLinks"', '"links"'], ['"slot":"?principal"', '"slot":"?resource"'], ['"annotations":{', '"annotations":{"if":null,']];

export function setMistake(r, text) {
  if (r.chance(0.1)) return mistake(r, text);
  const may = SET_PIECES.filter(([from]) => text.includes(from));
  if (!may.length) return mistake(r, text);
  const [from, to] = r.pick(may), places = [...text.matchAll(new RegExp(from.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'g'))];
  const at = r.pick(places).index;
  return text.slice(0, at) + to + text.slice(at + from.length);
}

// ---- cases ----

function makeLinks(r, noise, policies, entities, requests) {
  const templates = Array.from({ length: 1 + r.below(2) }, () => policyText(r, noise, true));
  const links = templates.flatMap((_, i) => Array.from({ length: r.below(3) }, () => ({ template: i, principal: [r.pick(TYPES), r.pick(IDS)], resource: [r.pick(TYPES), r.pick(IDS)] })));
  return { kind: 'links', policies, templates, links, entities, requests };
}

// kind: decide (text), links (templates in the JSON form of a set), validate (against a schema),
// guided (data read with a schema), syntax (text with mistakes), data and set (JSON with mistakes),
// translate (text to JSON, and what is written back)
export function makeCase(seed) {
  const r = new Random(seed), roll = r.next(), noise = r.pick([0, 0.02, 0.1, 0.3]);
  const policies = Array.from({ length: 1 + r.below(5) }, () => policyText(r, noise));
  if (roll < 0.1) return { kind: 'syntax', policies: [mistake(r, policies[0])], entities: '[]', requests: [requestText(r)] };
  if (roll < 0.13) return { kind: 'validate', schema: mistake(r, makeSchema(r).text), policies: ['permit(principal, action, resource);'] };
  if (roll < 0.32) return { kind: 'validate', schema: makeSchema(r).text, policies: r.chance(0.6) ? [r.pick(policies)] : policies };
  if (roll < 0.34) return { kind: 'validate', schema: makeSchema(r).text, policies: [`permit(principal, action, resource) when { context has n && ${quote(r.pick(LOOKALIKES))} like ${quote(r.pick(LOOKALIKES) + '*')} && {${quote(r.pick(LOOKALIKES))}: 1} has n };`, `permit(principal == U::${quote(r.pick(LOOKALIKES))}, action, resource);`] };
  const requests = Array.from({ length: 1 + r.below(3) }, () => requestText(r));
  if (roll < 0.46) {
    const schema = makeSchema(r), noise = r.pick([0, 0, 0.01, 0.05]);
    return { kind: 'guided', schema: schema.text, policies, entities: typedEntities(r, schema, noise), requests: requests.map(() => typedRequest(r, schema, noise)) };
  }
  if (roll < 0.5) return { kind: 'translate', policies, schema: makeSchema(r).text };
  const entities = entitiesText(r, r.chance(0.7));
  if (roll < 0.58) return makeLinks(r, noise, policies, entities, requests);
  if (roll < 0.63) { const c = makeLinks(r, noise, policies, entities, requests); return { ...c, kind: 'set', spoil: text => setMistake(r, text) }; }
  if (roll < 0.68) {
    const schema = r.chance(0.4) ? makeSchema(r) : null, inRequest = r.chance(0.3);
    const good = schema ? typedEntities(r, schema, 0) : entities, q = schema ? typedRequest(r, schema, 0) : requests[0];
    return { kind: 'data', policies, ...(schema ? { schema: schema.text } : {}), entities: inRequest ? good : dataMistake(r, good), requests: [inRequest ? dataMistake(r, q) : q] };
  }
  return { kind: 'decide', policies, entities, requests };
}
