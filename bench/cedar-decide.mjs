// One decision with entities and request as JSON each time, by bench_cedar_decide and by the official engine with the policies
// preparsed, in turns; prints the median of the ratios.
//
//   node bench/cedar-decide.mjs PROGRAM [ROUNDS]      (run where @cedar-policy/cedar-wasm is installed)
import { execFileSync, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { cwd, exit } from 'node:process';

// The glue hands its argument to JSON.stringify. Passing text through spares the engine that: it gets what came in.
const stringify = JSON.stringify;
JSON.stringify = (v, ...rest) => typeof v?.rawText === 'string' ? v.rawText : stringify(v, ...rest);
const oracle = createRequire(cwd() + '/')('@cedar-policy/cedar-wasm/nodejs');

const BAR = 15, OURS = 2000, THEIRS = 100, rounds = Number(process.argv[3] ?? 60);
const line = execFileSync(process.argv[2], ['--input']).toString(), input = JSON.parse(line);
const parsed = oracle.preparsePolicySet('ten', { staticPolicies: input.policies });
if (parsed.type !== 'success') throw new Error(parsed.errors[0].message);
const request = line.slice(line.indexOf('"request":{') + '"request":{'.length, line.lastIndexOf('}}'));
const entities = line.slice(line.indexOf('"entities":'), line.indexOf(',"request":'));
const asText = { rawText: `{${request},"preparsedPolicySetId":"ten",${entities}}` };
const asObjects = { ...input.request, preparsedPolicySetId: 'ten', entities: input.entities };

// Processor time: what else the machine does counts for neither side.
const cpu = () => { const { user, system } = process.cpuUsage(); return (user + system) * 1000; };

function theirs(call) {
  const start = cpu();
  for (let i = 0; i < THEIRS; i++) {
    const a = oracle.statefulIsAuthorized(call);
    if (a.response?.decision !== 'allow') throw new Error(stringify(a));
  }
  return (cpu() - start) / THEIRS;
}

const child = spawn(process.argv[2], ['--serve'], { stdio: ['pipe', 'pipe', 'inherit'] });
const ours = () => new Promise(done => {
  child.stdout.once('data', text => done(Number(text) / OURS));
  child.stdin.write(`${OURS}\n`);
});

const median = list => list.slice().sort((a, b) => a - b)[list.length >> 1];
const us = list => (median(list) / 1000).toFixed(1);
const mine = [], text = [], objects = [];
for (let i = -5; i < rounds; i++) { // the first five warm both up
  const row = [await ours(), theirs(asText), theirs(asObjects)];
  if (i >= 0) [mine, text, objects].forEach((list, k) => list.push(row[k]));
}
child.stdin.end();
const ratio = list => median(list.map((n, i) => n / mine[i]));
console.log(`JSON in, ten policies: ${us(mine)} us; official engine, policies preparsed: ${us(text)} us from text, ${us(objects)} us from objects`);
const worst = Math.min(ratio(text), ratio(objects));
console.log(`${ratio(text).toFixed(1)} times and ${ratio(objects).toFixed(1)} times as fast (bar ${BAR}): ${worst >= BAR ? 'met' : 'missed'}`);
exit(worst >= BAR ? 0 : 1);
