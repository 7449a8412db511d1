// Decide and validate generated cases with cedar-c and with the official engine; every difference is
// printed with the line that shows it to `cedar-c batch`.
//
//   node compare.mjs [--count N] [--seed FIRST] [--cedar-c PATH] [--why: print refusals]
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
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
const oracle = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs');
const raw = rawText => ({ rawText });

// ---- the official engine ----

const ids = list => [...new Set(list)].sort();

function decideOne(policies, entities, request) {
  const body = request.slice(1, -1);
  const a = oracle.isAuthorized(raw(`{${body},"policies":${policies},"entities":${entities}}`));
  if (a.type !== 'success') return { error: a.errors.map(e => e.message).join('; ') };
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

function expected(c) {
  if (c.kind === 'validate') {
    const text = c.policies.join('\n');
    const v = oracle.validate(raw(`{"schema":${stringify(c.schema)},"policies":{"staticPolicies":${stringify(text)}}}`));
    c.line = `{"policies":${stringify(text)},"schema":${stringify(c.schema)},"validate":true}`;
    return v.type === 'success' ? { valid: v.validationErrors.length === 0 } : { error: v.errors.map(e => e.message).join('; ') };
  }
  let forOracle, forOurs;
  try {
    forOurs = c.kind === 'links' ? setJson(c) : stringify(c.policies.join('\n'));
    forOracle = c.kind === 'links' ? forOurs : `{"staticPolicies":${forOurs}}`;
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
createInterface({ input: ours.stdout }).on('line', line => waiting.shift()(line));
ours.on('exit', code => { if (waiting.length) { console.error(`cedar-c ended with ${code} while a case was waiting`); process.exit(2); } });

function ask(line) {
  return new Promise(done => { waiting.push(done); ours.stdin.write(line + '\n'); });
}

function got(c, text) {
  const a = JSON.parse(text);
  if (a.error !== undefined) return { error: a.error };
  if (c.kind === 'validate') return { valid: a.validation.errors.length === 0 };
  return { results: a.results.map(x => ({ decision: x.decision, reason: ids(x.reason), errors: ids(x.errors) })) };
}

// ---- both ----

const same = (a, b) => a.error !== undefined || b.error !== undefined
  ? (a.error !== undefined) === (b.error !== undefined) : stringify(a) === stringify(b);

const first = Number(args.seed), count = Number(args.count);
const seen = {};
let differences = 0;
for (let seed = first; seed < first + count; seed++) {
  const c = makeCase(seed);
  let want;
  try { want = expected(c); } catch (e) { console.error(`seed ${seed}: the official engine broke: ${e.message}`); continue; }
  const have = got(c, await ask(c.line));
  if (args.why && want.error !== undefined) console.log(`seed ${seed}: ${want.error.slice(0, 200)}`);
  const tag = want.error !== undefined ? 'refused' : c.kind !== 'validate' ? 'decided' : want.valid ? 'valid' : 'invalid';
  seen[`${c.kind} ${tag}`] = (seen[`${c.kind} ${tag}`] ?? 0) + 1;
  if (same(want, have)) continue;
  if (differences++ < 20) console.log(`seed ${seed} (${c.kind})\n  official: ${stringify(want)}\n  cedar-c:  ${stringify(have)}\n  ${c.line}`);
}
ours.stdin.end();
console.log(stringify(seen));
console.log(`${count} cases from seed ${first}: ${differences} differences`);
process.exitCode = differences || !count ? 1 : 0;
