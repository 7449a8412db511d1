// The journal of calls: results carry a position, the log verifies, with openssl too, and damage is found.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Place } from "./lib.mjs";

const docs = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../docs");
let place, log;
const here = (verb, ...args) => place.run([verb, "--workspace", place.workspace, ...args]);
const call = (tool, args) => {
	const r = place.run(["call", "--workspace", place.workspace, tool, "--json", JSON.stringify(args)]);
	return { ...r, result: JSON.parse(r.out) };
};
const verify = (...args) => place.run(["journal", "verify", ...args]);
const records = (...args) =>
	place
		.run(["journal", "show", "--json", ...args])
		.out.trim()
		.split("\n")
		.filter(Boolean)
		.map((line) => JSON.parse(line));

before(() => {
	place = new Place();
	log = path.join(place.base, "state/cloister-journal/log");
});
after(() => place.done());

// The shell of docs/journal.md, as it stands there.
function recipe(dir) {
	const text = fs.readFileSync(path.join(docs, "journal.md"), "utf8");
	const script = /```sh\n([^]*?)```/.exec(text)[1];
	return spawnSync("sh", ["-c", script], { cwd: dir, encoding: "utf8" });
}

describe("the journal", () => {
	test("every call is recorded: a change as intent and outcome, a read and a refusal as one", () => {
		const w = call("file_write", { path: "a.txt", content: "secret content" });
		const r = call("file_read", { path: "a.txt" });
		const n = call("file_read", { path: "nothing" });
		assert.equal(n.status, 4);
		const of = (c) => records("--call", c.result.call_id);
		assert.deepEqual(of(w).map((x) => [x.kind, x.code]), [["intent", "ok"], ["outcome", "ok"]]);
		assert.equal(of(w)[1].history, w.result.undo.seq);
		assert.deepEqual(of(r).map((x) => [x.kind, x.tool, x.code]), [["call", "file_read", "ok"]]);
		assert.deepEqual(of(n).map((x) => [x.kind, x.code, x.paths]), [["call", "not_found", ["read:/workspace/nothing"]]]);
		const all = records();
		assert.deepEqual(all.map((x) => x.seq), all.map((_, i) => i + 1));
		assert.ok(!JSON.stringify(all).includes("secret content"));
	});

	test("every result carries a position, and verify finds it", () => {
		for (const c of [
			call("file_write", { path: "b.txt", content: "1" }),
			call("file_read", { path: "b.txt" }),
			call("file_read", { path: "../x" }),
			call("no_such_tool", {}),
		]) {
			const { seq, head } = c.result.journal;
			assert.match(head, /^[0-9a-f]{64}$/);
			assert.equal(verify("--expect", `${seq}:${head}`).status, 0);
			assert.equal(verify("--expect", `${seq}:${head.replace(/^./, (d) => (d === "0" ? "1" : "0"))}`).status, 5);
		}
	});

	test("it verifies with openssl and sha256sum alone", () => {
		const r = recipe(log);
		assert.equal(r.status, 0, r.stdout + r.stderr);
		const last = JSON.parse(verify("--json", "--every-seal").out);
		assert.equal(r.stdout, `whole up to ${last.seq}:${last.head}\n`);
	});

	test("one changed byte is found, by verify and by the recipe; so is a roll back", () => {
		const file = path.join(log, "00000001.log");
		const whole = fs.readFileSync(file);
		const last = JSON.parse(verify("--json").out);
		const changed = Buffer.from(whole);
		changed[whole.indexOf("file_read") + 5] ^= 1;
		fs.writeFileSync(file, changed);
		assert.equal(verify().status, 7);
		assert.equal(recipe(log).status, 1);
		const seals = [...whole.toString().matchAll(/^= .*\n/gm)];
		const at = seals.at(-2).index + seals.at(-2)[0].length;
		fs.writeFileSync(file, whole.subarray(0, at));
		assert.equal(verify().status, 0);
		assert.equal(verify("--expect", `${last.seq}:${last.head}`).status, 5);
		fs.writeFileSync(file, whole.subarray(0, at + 10));
		assert.equal(verify().status, 7);
		fs.writeFileSync(file, whole);
		assert.equal(verify("--expect", `${last.seq}:${last.head}`).status, 0);
	});

	test("a damaged end refuses a change before it happens", () => {
		const file = path.join(log, "00000001.log");
		const whole = fs.readFileSync(file);
		const seals = [...whole.toString().matchAll(/^= .*\n/gm)];
		const damaged = Buffer.from(whole);
		const signature = seals.at(-1).index + seals.at(-1)[0].length - 40;
		damaged[signature] = damaged[signature] === 65 ? 66 : 65;
		fs.writeFileSync(file, damaged);
		const w = call("file_write", { path: "refused.txt", content: "x" });
		assert.equal(w.result.executed, false);
		assert.equal(w.result.error.code, "corrupt");
		assert.match(w.result.error.message, /nothing was changed, since it could not be journaled/);
		assert.ok(!place.has("refused.txt"));
		assert.deepEqual(fs.readFileSync(file), damaged);
		fs.writeFileSync(file, whole);
		assert.equal(here("write", "refused.txt", "x").status, 0);
	});

	test("the private key is the owner's alone", () => {
		const st = fs.statSync(path.join(log, "../key/ed25519.pem"));
		assert.equal(st.mode & 0o7777, 0o600);
	});
});
