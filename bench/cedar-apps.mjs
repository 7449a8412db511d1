// The applications of the OOPSLA 2024 benchmarks with generated entities: one line of JSON each to FILE, for
// bench_cedar_apps, and what the official engine (policies preparsed) needs for one decision.
//
// With PROGRAM (bench_cedar_apps) both are measured in turns and a table is printed.
//
//   node bench/cedar-apps.mjs APPS.jsonl FILE [PROGRAM]      (run where @cedar-policy/cedar-wasm is installed: NODE_PATH or cwd)
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cwd } from 'node:process';

const oracle = createRequire(cwd() + '/')('@cedar-policy/cedar-wasm/nodejs');
const ENTITIES = 30, REQUESTS = 100, LINKS = 20, ROUNDS = 40;

let seed = 7;
const random = n => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0, Math.floor(seed / 2 ** 32 * n));
const pick = list => list[random(list.length)];

const idsOf = types => Object.fromEntries(types.map(t => [t, Array.from({ length: Math.ceil(ENTITIES / types.length) },
  (_, i) => ({ type: t, id: `${t}${i}` }))]));

function value(type, all) {
  switch (type.type) {
  case 'Entity': return { __entity: pick(all[type.name]) };
  case 'Set': return Array.from({ length: random(4) }, () => value(type.element, all));
  case 'Record': return record(type, all);
  case 'Long': return random(100);
  case 'String': return `s${random(10)}`;
  default: return random(2) === 1;
  }
}

const record = (type, all) => Object.fromEntries(Object.entries(type?.attributes ?? {}).map(([k, t]) => [k, value(t, all)]));

// Parents come before their children in a fixed order, so that there is no cycle.
function makeEntities(schema, all) {
  const order = Object.values(all).flat(), place = new Map(order.map((u, i) => [u, i]));
  return order.map(uid => {
    const may = (schema.entityTypes[uid.type].memberOfTypes ?? []).flatMap(t => all[t]).filter(u => place.get(u) < place.get(uid));
    const parents = may.length ? [...new Set([pick(may), pick(may)])] : [];
    return { uid, attrs: record(schema.entityTypes[uid.type].shape, all), parents };
  });
}

const makeRequest = (schema, all) => {
  const [id, action] = pick(Object.entries(schema.actions).filter(([, a]) => a.appliesTo));
  return { principal: pick(all[pick(action.appliesTo.principalTypes)]), action: { type: 'Action', id },
    resource: pick(all[pick(action.appliesTo.resourceTypes)]), context: {} };
};

function makePolicies(app, all) {
  const parts = oracle.policySetTextToParts(app.policies);
  const named = (list, prefix) => Object.fromEntries(list.map((text, i) => [prefix + i, text]));
  const templates = named(parts.policy_templates, 't'), links = [];
  const everything = Object.values(all).flat();
  for (let i = 0; i < LINKS && parts.policy_templates.length; i++) {
    const templateId = pick(Object.keys(templates));
    const values = Object.fromEntries(['?principal', '?resource'].filter(s => templates[templateId].includes(s))
      .map(s => [s, pick(everything)]));
    links.push({ templateId, newId: `link${i}`, values });
  }
  return { staticPolicies: named(parts.policies, 'p'), templates, templateLinks: links };
}


// Processor time: what else the machine does counts for neither side.
const cpu = () => { const { user, system } = process.cpuUsage(); return (user + system) * 1000; };

function theirs(line) {
  const start = cpu();
  for (const r of line.requests) {
    const a = oracle.statefulIsAuthorized({ ...r, preparsedPolicySetId: line.id, entities: line.entities });
    if (a.type !== 'success') throw new Error(`${line.id}: ${a.errors[0].message}`);
  }
  return (cpu() - start) / line.requests.length;
}

const median = list => list.slice().sort((a, b) => a - b)[list.length >> 1];
const perSecond = ns => Math.round(1e9 / ns).toLocaleString('en');

async function compare(line, program, file) {
  const child = spawn(program, [file, line.id], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ours = () => new Promise(done => {
    child.stdout.once('data', text => { const [fast, json, n] = String(text).split(' ').map(Number); done([fast / n, json / n]); });
    child.stdin.write('\n');
  });
  const rows = [];
  for (let i = -3; i < ROUNDS; i++) { // the first three warm both up
    const row = [...await ours(), theirs(line)];
    if (i >= 0) rows.push(row);
  }
  child.stdin.end();
  const [fast, json, their] = [0, 1, 2].map(k => median(rows.map(r => r[k])));
  console.log(`| ${line.id} | ${perSecond(fast)} | ${perSecond(json)} | ${perSecond(their)} | ${median(rows.map(r => r[2] / r[1])).toFixed(1)} x |`);
}

const lines = readFileSync(process.argv[2], 'utf8').trim().split('\n').map(text => {
  const app = JSON.parse(text), schema = app.schema[''], all = idsOf(Object.keys(schema.entityTypes));
  return { id: app.id, policies: makePolicies(app, all), entities: makeEntities(schema, all),
    requests: Array.from({ length: REQUESTS }, () => makeRequest(schema, all)) };
});
writeFileSync(process.argv[3], lines.map(line => JSON.stringify(line)).join('\n') + '\n');
if (process.argv[4]) console.log('| application | prepared /s | JSON in /s | official engine, policies preparsed /s | JSON in against it |\n|---|---|---|---|---|');
for (const line of lines) {
  const check = oracle.preparsePolicySet(line.id, line.policies);
  if (check.type !== 'success') throw new Error(`${line.id}: ${check.errors[0].message}`);
  theirs(line);
  if (process.argv[4]) await compare(line, process.argv[4], process.argv[3]);
  else console.log(`${line.id}: official engine, preparsed policies, ${line.entities.length} entities: ${(theirs(line) / 1000).toFixed(1)} us`);
}
