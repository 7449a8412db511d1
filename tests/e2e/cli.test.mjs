// The command line: readable forms, exit statuses, what is refused, the manual against the tables.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Place } from "./lib.mjs";

const man = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../man");
let place;
const here = (verb, ...args) => place.run([verb, "--workspace", place.workspace, ...args]);
before(() => (place = new Place()));
after(() => place.done());

// The outcome, and that a refusal says its code on standard error and nothing on standard output.
function refused(r, status, code) {
	assert.equal(r.signal, null);
	assert.equal(r.status, status, r.err);
	assert.match(r.err, new RegExp(`^cloister: .*\\(${code}\\)`, "m"));
	assert.equal(r.out, "");
}

describe("readable forms", () => {
	test("write, read, edit, mv, ls, search, info, rm, history, undo work on real files", () => {
		assert.equal(here("write", "d/a.txt", "one\ntwo\n", "--create-dirs").status, 0);
		assert.equal(place.get("d/a.txt"), "one\ntwo\n");
		assert.equal(here("read", "d/a.txt").out, "one\ntwo\n");
		assert.equal(here("read", "d/a.txt", "--offset", "2").out, "two\n");
		assert.equal(here("edit", "d/a.txt", "two", "2").status, 0);
		assert.equal(place.get("d/a.txt"), "one\n2\n");
		assert.equal(here("mv", "d/a.txt", "d/b.txt").status, 0);
		assert.match(here("ls", "d").out, /b\.txt\n1 files, 0 directories/);
		assert.match(here("search", "one").out, /d\/b\.txt:1:one/);
		assert.match(here("info", "d/b.txt").out, /size: 6/);
		assert.equal(here("rm", "d/b.txt").status, 0);
		assert.ok(!place.has("d/b.txt"));
		assert.match(here("history").out, /file_delete +1 change/);
		assert.equal(here("undo").status, 0);
		assert.equal(place.get("d/b.txt"), "one\n2\n");
	});

	test("standard input is written, bytes that are no text too", () => {
		const bytes = Buffer.from([0, 255, 10, 13, 128]);
		const r = place.run(["write", "--workspace", place.workspace, "bytes"], bytes);
		assert.equal(r.status, 0, r.err);
		assert.deepEqual(fs.readFileSync(path.join(place.workspace, "bytes")), bytes);
	});

	test("checkpoint, diff and restore", () => {
		here("write", "c.txt", "before\n");
		assert.equal(here("checkpoint", "cp").status, 0);
		here("write", "c.txt", "after\n");
		assert.match(here("diff", "--checkpoint", "cp").out, /-before\n\+after/);
		assert.equal(here("restore", "cp").status, 0);
		assert.equal(place.get("c.txt"), "before\n");
	});

	test("--dry-run shows the change and makes none", () => {
		here("write", "dry.txt", "old\n");
		const r = here("edit", "dry.txt", "old", "new", "--dry-run");
		assert.match(r.out, /-old\n\+new[\s\S]*nothing was changed/);
		assert.equal(place.get("dry.txt"), "old\n");
	});

	test("--json gives the result object", () => {
		place.put("j", "x");
		assert.equal(JSON.parse(here("read", "j", "--json").out).content, "x");
		assert.ok(JSON.parse(here("ls", "--json").out).entries.length > 0);
	});

	test("control characters of names do not reach the terminal's control", () => {
		place.put("evil\u001b[2J", "x");
		const out = here("ls").out;
		assert.ok(!out.includes("\u001b"));
		fs.rmSync(path.join(place.workspace, "evil\u001b[2J"));
	});
});

describe("call", () => {
	test("arguments come as text, from a file and from standard input", () => {
		const args = '{"path":"call.txt","content":"x"}';
		fs.writeFileSync(path.join(place.base, "args"), args);
		for (const [json, input] of [[args], ["@" + path.join(place.base, "args")], ["-", args]]) {
			const r = place.run(["call", "file_write", "--workspace", place.workspace, "--json", json], input);
			assert.equal(r.status, 0, r.err);
			assert.equal(JSON.parse(r.out).executed, true);
		}
	});

	test("a refusal is the result object and the exit status of its code", () => {
		const r = here("call", "file_read", "--json", '{"path":"../x"}');
		assert.equal(r.status, 3);
		assert.equal(JSON.parse(r.out).error.code, "path_escape");
		assert.equal(JSON.parse(r.out).executed, false);
	});

	test("JSON that does not parse is refused and nothing is called", () => {
		refused(here("call", "file_write", "--json", '{"path":'), 2, "parse_error");
	});
});

describe("refusals and exit statuses", () => {
	test("a path outside: 3", () => refused(here("read", "../x"), 3, "path_escape"));
	test("a file that is not there: 4", () => refused(here("read", "none"), 4, "not_found"));
	test("text that is not there to replace: 5", () => {
		place.put("e", "x");
		refused(here("edit", "e", "absent", "y"), 5, "no_match");
	});
	test("beyond the quota: 6, and no file", async () => {
		const small = new Place({ CLOISTER_QUOTA_BYTES: "1000" });
		refused(small.run(["write", "--workspace", small.workspace, "q", "x".repeat(2000)]), 6, "quota_exceeded");
		assert.ok(!small.has("q"));
		await small.done();
	});
	test("policy: 3, and no file", () => {
		refused(here("write", "p", "x", "--profile", "deny-all"), 3, "denied");
		refused(here("write", "p", "x", "--role", "critic"), 3, "denied");
		refused(here("write", "p", "x", "--profile", "hold-all"), 3, "held");
		assert.ok(!place.has("p"));
	});
	for (const [name, args] of [
		["an unknown command", ["fly"]],
		["an unknown option", ["ls", "--workspace", ".", "--fast"]],
		["an argument too many", ["ls", "--workspace", ".", "a", "b"]],
		["an argument too few", ["read", "--workspace", "."]],
		["no session", ["ls"]],
		["session and workspace at once", ["ls", "--workspace", ".", "--session", "s"]],
		["a number that is none", ["read", "--workspace", ".", "x", "--offset", "many"]],
		["a value for a flag", ["ls", "--workspace", ".", "--json=yes"]],
		["an unknown role", ["ls", "--workspace", ".", "--role", "king"]],
		["a session id with a slash", ["ls", "--session", "a/b"]],
	])
		test(`${name}: 2`, () => refused(place.run(args), 2, "invalid_argument"));
	test("a bad configuration value: 2", () =>
		refused(here("ls", "--quota-bytes", "many"), 2, "config_invalid"));
	test("an unknown tool: 2", () => refused(place.run(["tools", "fly"]), 2, "unknown_tool"));
});

test("doctor says of every probe how it went", () => {
	const r = place.run(["doctor", "--json"]);
	const report = JSON.parse(r.out);
	assert.equal(r.status, report.healthy ? 0 : 8, r.err);
	assert.ok(report.checks.length > 5);
	for (const c of report.checks) assert.match(c.outcome, /^(ok|missing|failed|skipped)$/);
	assert.equal(report.checks.find((c) => /landlock/.test(c.name)).outcome, "ok");
});

describe("sessions", () => {
	const session = (...args) => place.run(["session", ...args]);

	test("create, show, list, extend, delete", () => {
		assert.equal(session("create", "s1", "--ttl", "1000").status, 0);
		assert.equal(JSON.parse(session("show", "s1", "--json").out).id, "s1");
		refused(session("create", "s1"), 5, "exists");
		assert.ok(JSON.parse(session("list", "--json").out).sessions.some((s) => s.id === "s1"));
		const until = JSON.parse(session("extend", "s1", "--ttl", "5000", "--json").out).expires;
		assert.ok(Math.abs(until - Date.now() / 1000 - 5000) < 60);
		assert.equal(session("delete", "s1").status, 0);
		refused(session("show", "s1"), 4, "session_not_found");
	});

	test("a new session of a deleted id is empty", () => {
		place.run(["write", "--session", "again", "a", "x"]);
		session("delete", "again");
		refused(place.run(["read", "--session", "again", "a"]), 4, "not_found");
	});

	test("fork copies the files and counts them; export is a git stream", () => {
		place.run(["write", "--session", "f1", "a", "hello"]);
		const r = session("fork", "f1", "f2");
		assert.equal(r.status, 0, r.err);
		assert.equal(place.run(["read", "--session", "f2", "a"]).out, "hello");
		const info = JSON.parse(place.run(["call", "workspace_info", "--session", "f2"]).out);
		assert.equal(info.bytes, 5);
		assert.match(session("export", "f1").out, /^(feature done\n)?[\s\S]*commit refs\/heads\/cloister[\s\S]*done\n$/);
		refused(session("export", "nothing"), 4, "session_not_found");
	});

	test("an expired session is swept and its files with it", async () => {
		place.run(["write", "--session", "short", "a", "x", "--session-ttl-seconds", "1"]);
		await new Promise((r) => setTimeout(r, 1200));
		const r = JSON.parse(session("sweep", "--json").out);
		assert.equal(r.expired, 1);
		assert.ok(!fs.existsSync(path.join(place.env.CLOISTER_STATE_DIR, "sessions/short")));
	});
});

describe("back-up", () => {
	test("a restored copy is refused, adopted, and has its files, history and checkpoints", () => {
		const at = new Place();
		const copy = `${at.env.CLOISTER_STATE_DIR}.copy`;
		const run = (...args) => at.run(args);
		try {
			for (const id of ["one", "two"]) {
				run("write", "--session", id, "f", `${id} first\n`);
				assert.equal(run("checkpoint", "--session", id, "kept").status, 0);
				run("write", "--session", id, "f", `${id} second\n`);
			}
			assert.equal(spawnSync("cp", ["-a", at.env.CLOISTER_STATE_DIR, copy]).status, 0);
			run("write", "--session", "one", "f", "lost\n");
			fs.rmSync(at.env.CLOISTER_STATE_DIR, { recursive: true });
			fs.renameSync(copy, at.env.CLOISTER_STATE_DIR);
			const r = run("read", "--session", "one", "f");
			refused(r, r.status, "conflict");
			assert.match(r.err, /cloister session adopt one/);
			refused(run("session", "adopt", "none"), 4, "session_not_found");
			assert.deepEqual(JSON.parse(run("session", "adopt", "--all", "--json").out), { adopted: 2, failed: 0 });
			for (const id of ["one", "two"]) {
				assert.equal(run("read", "--session", id, "f").out, `${id} second\n`);
				assert.equal(run("undo", "--session", id, "2").status, 0);
				assert.equal(run("read", "--session", id, "f").out, `${id} first\n`);
				assert.equal(run("undo", "--session", id, "3").status, 0);
				assert.match(run("history", "--session", id).out, /file_write {2}1 change/);
				assert.equal(run("restore", "--session", id, "kept").status, 0);
				assert.equal(run("read", "--session", id, "f").out, `${id} first\n`);
			}
			assert.equal(run("write", "--session", "one", "f", "goes on\n").status, 0);
			assert.equal(run("undo", "--session", "one").status, 0);
			assert.equal(run("read", "--session", "one", "f").out, "one first\n");
		} finally {
			at.done();
		}
	});
});

describe("the manual", () => {
	const page = fs.readFileSync(path.join(man, "cloister.1"), "utf8");

	test("pages lint", (t) => {
		if (spawnSync("mandoc", ["-h"]).error) return t.skip("mandoc is missing");
		const r = spawnSync("mandoc", ["-Tlint", "-Wwarning", "cloister.1", "cloister-mcp.1"], { cwd: man, encoding: "utf8" });
		assert.equal(r.stdout + r.stderr, "");
	});

	test("names every command and no other", () => {
		const commands = [...place.run(["help"]).out.matchAll(/^ {2}(\w+) +/gm)].map((m) => m[1]);
		const documented = new Set([...page.matchAll(/^\.It Nm Cm (\w+)/gm)].map((m) => m[1]));
		assert.deepEqual([...documented].sort(), commands.sort());
	});

	test("names every common option and no other", () => {
		const help = place.run(["help", "version"]).out.split("\nconfiguration")[0];
		const options = [...help.matchAll(/^ {2}--([\w-]+)/gm)].map((m) => m[1]);
		const documented = [...page.matchAll(/^\.It Fl Fl ([\w-]+)/gm)].map((m) => m[1]);
		assert.deepEqual(documented.sort(), options.sort());
	});

	test("names every subcommand of session", () => {
		const told = /cloister session (\S+)/.exec(place.run(["help", "session"]).out)[1].split("|");
		const documented = [...page.matchAll(/^\.It Nm Cm session Cm (\w+)/gm)].map((m) => m[1]);
		assert.deepEqual(documented.sort(), told.sort());
	});
});
