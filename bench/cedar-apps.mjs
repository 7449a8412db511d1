// The applications of the OOPSLA 2024 benchmarks with generated entities: one line of JSON each to FILE, for
// bench_cedar_apps, and what the official engine (policies preparsed) needs for one decision.
//
//   node bench/cedar-apps.mjs APPS.jsonl FILE      (run where @cedar-policy/cedar-wasm is installed: NODE_PATH or cwd)
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { cwd } from 'node:process';

const oracle = createRequire(cwd() + '/')('@cedar-policy/cedar-wasm/nodejs');
const ENTITIES = 30, REQUESTS = 100, LINKS = 20;

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

function measure(line) {
  const check = oracle.preparsePolicySet(line.id, line.policies);
  if (check.type !== 'success') throw new Error(`${line.id}: ${check.errors[0].message}`);
  const times = [];
  for (const r of [...line.requests, ...line.requests]) {
    const start = process.hrtime.bigint();
    const a = oracle.statefulIsAuthorized({ ...r, preparsedPolicySetId: line.id, entities: line.entities });
    times.push(Number(process.hrtime.bigint() - start));
    if (a.type !== 'success') throw new Error(`${line.id}: ${a.errors[0].message}`);
  }
  // The first half warmed it up.
  const warm = times.slice(line.requests.length).sort((a, b) => a - b);
  return warm[warm.length >> 1];
}

const lines = readFileSync(process.argv[2], 'utf8').trim().split('\n').map(text => {
  const app = JSON.parse(text), schema = app.schema[''], all = idsOf(Object.keys(schema.entityTypes));
  const line = { id: app.id, policies: makePolicies(app, all), entities: makeEntities(schema, all),
    requests: Array.from({ length: REQUESTS }, () => makeRequest(schema, all)) };
  console.log(`${app.id}: official engine, preparsed policies, ${line.entities.length} entities: ${(measure(line) / 1000).toFixed(1)} us`);
  return JSON.stringify(line);
});
writeFileSync(process.argv[3], lines.join('\n') + '\n');
