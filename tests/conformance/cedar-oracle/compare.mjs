// Decide and validate generated cases with cedar-c and with the official engine; every difference is
// printed with the line that shows it to `cedar-c batch`.
//
//   node compare.mjs [--count N] [--seed FIRST] [--cedar-c PATH] [--why: print refusals]
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import { createRequire } from 'node:module';
import { makeCase } from './generate.mjs';

const { values: args } = parseArgs({ options: {
  count: { type: 'string', default: '2000' }, seed: { type: 'string', default: '1' }, why: { type: 'boolean' },
  'cedar-c': { type: 'string', default: '../../../build/src/cedar/cedar-c' },
} });

// The wasm glue hands its argument to JSON.stringify: raw text passes through, 64-bit numbers and all.
const stringify = JSON.stringify;
JSON.stringify = (v, ...rest) => v && typeof v === 'object' && typeof v.rawText === 'string' ? v.rawText : stringify(v, ...rest);
const require = createRequire(import.meta.url), module = '@cedar-policy/cedar-wasm/nodejs';
let oracle = require(module);
const raw = rawText => ({ rawText });

// ---- the official engine ----

const failure = a => ({ error: a.errors.map(e => e.message).join('; ') });
const ids = list => [...new Set(list)].sort();

function decideOne(policies, entities, request) {
  const body = request.slice(1, -1);
  const a = oracle.isAuthorized(raw(`{${body},"policies":${policies},"entities":${entities}}`));
  if (a.type !== 'success') return failure(a);
  const { decision, diagnostics: d } = a.response;
  return { decision, reason: ids(d.reason), errors: ids(d.errors.map(e => e.policyId)) };
}

// The JSON form of a set, for both engines.
function setJson(c) {
  const part = (texts, prefix, convert) => texts.map((t, i) => {
    const r = convert(t);
    if (r.type !== 'success') throw new Error(r.errors.map(e => e.message).join('; '));
    return `${stringify(prefix + i)}:${stringify(r.json)}`;
  }).join(',');
  const slots = c.templates.map(t => ({ principal: t.includes('?principal'), resource: t.includes('?resource') }));
  const uid = ([type, id]) => `{"__entity":${stringify({ type, id })}}`;
  // A policy without slots is no template.
  const isTemplate = i => slots[i].principal || slots[i].resource;
  const templates = c.templates.filter((_, i) => isTemplate(i));
  const links = c.links.filter(l => isTemplate(l.template)).map((l, i) => {
    const values = [];
    if (slots[l.template].principal) values.push(`"?principal":${uid(l.principal)}`);
    if (slots[l.template].resource) values.push(`"?resource":${uid(l.resource)}`);
    const index = c.templates.slice(0, l.template).filter((_, k) => isTemplate(k)).length;
    return `{"templateId":"t${index}","newId":"link${i}","values":{${values.join(',')}}}`;
  });
  return `{"staticPolicies":{${part(c.policies, 'p', oracle.policyToJson)}},"templates":{${part(templates, 't', oracle.templateToJson)}},"templateLinks":[${links.join(',')}]}`;
}

// What a text is in JSON, and that a text made of it says the same.
function translated(c) {
  const text = c.policies.join('\n'), json = {};
  c.line = `{"policies":${stringify(text)},"schema":${stringify(c.schema)},"translate":true}`;
  for (const [i, p] of c.policies.entries()) {
    const r = oracle.policyToJson(p);
    if (r.type !== 'success') return failure(r);
    json[`policy${i}`] = r.json;
  }
  const schema = oracle.schemaToJson(c.schema);
  return schema.type === 'success' ? { policies: normal(json), schema: normal(schema.json), again: true } : failure(schema);
}

// Keys in order, pattern literals in one piece, and what may be left out left out.
function normal(v) {
  if (!v || typeof v !== 'object') return v;
  if (Array.isArray(v)) return v.map(normal);
  const out = {};
  for (const k of Object.keys(v).sort()) {
    if (k !== 'pattern' || !Array.isArray(v[k])) { out[k] = normal(v[k]); continue; }
    out[k] = v[k].reduce((all, x) => {
      const last = all.at(-1);
      if (x.Literal !== undefined && last?.Literal !== undefined) last.Literal += x.Literal;
      else all.push(typeof x === 'object' ? { ...x } : x);
      return all;
    }, []);
  }
  return out;
}

// The official engine reads our text as what it made of the original.
function textAgain(t, want) {
  if (t.policiesText === undefined || t.schemaText === undefined) return false;
  const parts = oracle.policySetTextToParts(t.policiesText), schema = oracle.schemaToJson(t.schemaText);
  if (parts.type !== 'success' || schema.type !== 'success') return false;
  const list = all => all.map(x => stringify(normal(x))).sort().join();
  return list(parts.policies.map(p => oracle.policyToJson(p).json)) === list(Object.values(want.policies)) && stringify(normal(schema.json)) === stringify(want.schema);
}

function expected(c) {
  if (c.kind === 'validate') {
    const text = c.policies.join('\n');
    const v = oracle.validate(raw(`{"schema":${stringify(c.schema)},"policies":{"staticPolicies":${stringify(text)}}}`));
    c.line = `{"policies":${stringify(text)},"schema":${stringify(c.schema)},"validate":true}`;
    const found = list => ids(list.map(e => e.policyId));
    return v.type === 'success' ? { invalid: found(v.validationErrors), warned: found(v.validationWarnings) } : failure(v);
  }
  if (c.kind === 'translate') return translated(c);
  let forOracle, forOurs;
  try {
    forOurs = !c.links ? stringify(c.policies.join('\n')) : c.spoil ? c.spoil(setJson(c)) : setJson(c);
    forOracle = c.links ? forOurs : `{"staticPolicies":${forOurs}}`;
  } catch (e) {
    c.line = `{"policies":${stringify([...c.policies, ...(c.templates ?? [])].join('\n'))},"entities":[],"requests":[]}`;
    return { error: e.message };
  }
  const schema = c.schema ? `,"schema":${stringify(c.schema)},"validateRequest":true` : '';
  c.line = `{"policies":${forOurs}${c.schema ? `,"schema":${stringify(c.schema)}` : ''},"entities":${c.entities},"requests":[${c.requests.join(',')}]}`;
  const results = c.requests.map(q => decideOne(forOracle, c.entities + schema, q));
  return results.find(x => x.error) ?? { results };
}

// ---- ours ----

const ours = spawn(args['cedar-c'], ['batch'], { stdio: ['pipe', 'pipe', 'inherit'] });
const waiting = [];
// Not readline: it also ends lines at U+2028, which may stand in JSON.
let rest = '';
ours.stdout.setEncoding('utf8').on('data', text => {
  const lines = (rest + text).split('\n');
  rest = lines.pop();
  for (const line of lines) waiting.shift()(line);
});
ours.on('exit', code => { if (waiting.length) { console.error(`cedar-c ended with ${code} while a case was waiting`); process.exit(2); } });

// A new line that a mistake brought would end the line: a tab means the same to JSON, in strings too.
function ask(line) {
  return new Promise(done => { waiting.push(done); ours.stdin.write(line.replaceAll('\n', '\t') + '\n'); });
}

function got(c, text, want) {
  const a = JSON.parse(text);
  if (a.error !== undefined) return { error: a.error };
  if (c.kind === 'validate') return { invalid: ids(a.validation.errors), warned: ids(a.validation.warnings) };
  if (c.kind === 'translate') return { policies: normal(a.translation.policies.staticPolicies), schema: normal(a.translation.schema), again: want.error === undefined && textAgain(a.translation, want) };
  return { results: a.results.map(x => ({ decision: x.decision, reason: ids(x.reason), errors: ids(x.errors) })) };
}

// ---- both ----

const same = (a, b) => a.error !== undefined || b.error !== undefined
  ? (a.error !== undefined) === (b.error !== undefined) : stringify(a) === stringify(b);

const first = Number(args.seed), count = Number(args.count);
const seen = {}, answers = {};
let differences = 0, broken = 0;
for (let seed = first; seed < first + count; seed++) {
  const c = makeCase(seed);
  let want;
  try { want = expected(c); } catch (e) {
    if (e instanceof WebAssembly.RuntimeError || !c.line) {
      console.error(`seed ${seed}: the official engine broke: ${e.message}`);
      broken++;
      delete require.cache[require.resolve(module)]; // what trapped is not to be called again
      oracle = require(module);
      continue;
    }
    want = { error: e.message }; // a text that is not even JSON of its call
  }
  const have = got(c, await ask(c.line), want);
  if (args.why && want.error !== undefined) console.log(`seed ${seed}: ${want.error.slice(0, 200)}`);
  const tag = want.error !== undefined ? 'refused' : c.kind === 'translate' ? 'translated' : c.kind !== 'validate' ? 'decided' : want.invalid.length ? 'invalid' : want.warned.length ? 'warned' : 'valid';
  for (const x of want.results ?? []) for (const what of [x.decision, x.errors.length ? 'failing policies' : 'no failing policy', x.reason.length > 1 ? 'several reasons' : `${x.reason.length} reason`]) answers[what] = (answers[what] ?? 0) + 1;
  seen[`${c.kind} ${tag}`] = (seen[`${c.kind} ${tag}`] ?? 0) + 1;
  if (same(want, have)) continue;
  if (differences++ < 20) console.log(`seed ${seed} (${c.kind})\n  official: ${stringify(want)}\n  cedar-c:  ${stringify(have)}\n  ${c.line}`);
}
ours.stdin.end();
console.log(stringify(seen), stringify(answers));
console.log(`${count} cases from seed ${first}: ${differences} differences${broken ? `, ${broken} that the official engine broke at` : ''}`);
process.exitCode = differences || !count ? 1 : 0;
