// The same verdict through every door: each row is one call as one role, put through the command line, MCP over stdio, MCP over
// HTTP and REST, each in a workspace of its own that looks the same. Code, message, structured result and what is in the workspace
// afterwards must be the same.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import crypto from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { HttpPlace } from "./http.mjs";
import { Place, program } from "./lib.mjs";

const long = "x".repeat(5000);
const deep = Array.from({ length: 300 }, () => "d").join("/");

// [tool, arguments], each tried as developer and as critic: good, bad, hostile.
const rows = [
	["file_read", { path: "a.txt" }],
	["file_read", { path: "a.txt", offset: 2, limit: 1 }],
	["file_read", { path: "bytes" }],
	["file_read", { path: "bytes", encoding: "base64" }],
	["file_read", { path: "data.json" }],
	["file_read", { path: "nope" }],
	["file_read", { path: "d" }],
	["file_read", {}],
	["file_read", { path: 5 }],
	["file_read", { path: "a.txt", color: "red" }],
	["file_read", { path: "a.txt", offset: 0 }],
	["file_read", { path: "a.txt", offset: 1, byte_offset: 1 }],
	["file_read", { path: "../outside/secret" }],
	["file_read", { path: "/etc/passwd" }],
	["file_read", { path: "d/../../x" }],
	["file_read", { path: "link-out" }],
	["file_read", { path: "link-in" }],
	["file_read", { path: "" }],
	["file_read", { path: "a\u0000b" }],
	["file_read", { path: long }],
	["file_read", { path: deep }],
	["file_read", { path: "fifo" }],
	["file_write", { path: "new.txt", content: "new\n" }],
	["file_write", { path: "a.txt", content: "other\n" }],
	["file_write", { path: "a.txt", content: "more\n", mode: "append" }],
	["file_write", { path: "a.txt", content: "x", mode: "create" }],
	["file_write", { path: "x/y/z.txt", content: "x", create_dirs: true }],
	["file_write", { path: "x/y/z.txt", content: "x" }],
	["file_write", { path: "b", content: "/w==", encoding: "base64" }],
	["file_write", { path: "b", content: "no base64!", encoding: "base64" }],
	["file_write", { path: "b", content: "x", dry_run: true }],
	["file_write", { path: "b", content: "x", expected_hash: "0".repeat(64) }],
	["file_write", { path: "../outside/b", content: "x" }],
	["file_write", { path: "link-out", content: "x" }],
	["file_write", { path: "d", content: "x" }],
	["file_write", { path: ".cloister/x", content: "x" }],
	["file_write", { path: "b", content: 7 }],
	["file_write", { path: "b", mode: "sideways", content: "x" }],
	["file_edit", { path: "a.txt", edits: [{ old_text: "two", new_text: "2" }] }],
	["file_edit", { path: "a.txt", edits: [{ old_text: "absent", new_text: "2" }] }],
	["file_edit", { path: "a.txt", edits: [] }],
	["file_edit", { path: "a.txt", edits: "all" }],
	["file_list", {}],
	["file_list", { path: "d", recursive: true }],
	["file_list", { pattern: "*.txt" }],
	["file_list", { path: "nope" }],
	["file_list", { path: "..", recursive: true }],
	["file_list", { limit: 0 }],
	["file_search", { query: "two" }],
	["file_search", { query: "(", regex: true }],
	["file_search", { query: "" }],
	["file_delete", { path: "a.txt" }],
	["file_delete", { path: "d" }],
	["file_delete", { path: "d", recursive: true }],
	["file_delete", { path: "." }],
	["file_delete", { path: "../outside", recursive: true }],
	["file_move", { from: "a.txt", to: "moved.txt" }],
	["file_move", { from: "a.txt", to: "../moved.txt" }],
	["file_move", { from: "nope", to: "b" }],
	["file_info", { path: "d" }],
	["file_info", { path: "link-out" }],
	["workspace_diff", {}],
	["history_undo", {}],
	["checkpoint_restore", { name: "nope" }],
];

// What differs between two runs of the same call: ids, times, where the session is.
const volatile = new Set(["call_id", "modified", "time", "created_at", "expires", "session", "turn", "seq", "head", "journal", "inode"]);
function steady(v) {
	if (Array.isArray(v)) return v.map(steady);
	if (v === null || typeof v !== "object") return v;
	return Object.fromEntries(Object.entries(v).filter(([k]) => !volatile.has(k)).map(([k, x]) => [k, steady(x)]));
}

function furnish(place) {
	place.put("a.txt", "one\ntwo\nthree\n");
	place.put("bytes", Buffer.from([0xff, 0xfe, 0]));
	place.put("data.json", '{"a":[1,2]}');
	place.put("d/e/f.txt", "deep\n");
	const at = (n) => path.join(place.workspace, n);
	spawnSync("mkfifo", [at("fifo")]);
	const { uid, gid } = fs.statSync(place.workspace);
	fs.symlinkSync("../../outside/secret", at("link-out"));
	fs.symlinkSync("a.txt", at("link-in"));
	for (const l of ["link-out", "link-in"]) fs.lchownSync(at(l), uid, gid);
}

// Names, kinds and contents of a workspace.
function picture(dir, below = "") {
	const out = [];
	for (const e of fs.readdirSync(path.join(dir, below), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
		const name = path.join(below, e.name);
		if (name === ".cloister") continue;
		if (e.isDirectory()) out.push(`${name}/`, ...picture(dir, name));
		else if (e.isSymbolicLink()) out.push(`${name} -> ${fs.readlinkSync(path.join(dir, name))}`);
		else if (!e.isFile()) out.push(`${name} special`);
		else out.push(`${name} ${crypto.createHash("sha256").update(fs.readFileSync(path.join(dir, name))).digest("hex")}`);
	}
	return out;
}

function clear(place) {
	for (const name of fs.readdirSync(place.workspace)) if (name !== ".cloister") fs.rmSync(path.join(place.workspace, name), { recursive: true });
	furnish(place);
}

const inProcess = (place, args, input) =>
	new Promise((resolve) => {
		const child = spawn(program, args, { env: place.env });
		let out = "";
		child.stdout.on("data", (d) => (out += d));
		child.stdin.on("error", () => {});
		child.stdin.end(input);
		child.on("close", () => resolve(out));
	});

// The doors: each carries out one call as a role and gives its structured result.
const doors = {
	"command line": {
		place: () => new Place(),
		call: async (place, role, tool, args) => {
			const out = await inProcess(place, ["call", tool, "--json", "-", "--workspace", place.workspace, "--role", role], JSON.stringify(args));
			return JSON.parse(out);
		},
	},
	"MCP over stdio": {
		place: () => new Place(),
		call: async (place, role, tool, args) => {
			place.open ??= {};
			place.open[role] ??= await place.modern(["--role", role]);
			return (await place.open[role].raw(tool, args)).structuredContent;
		},
	},
	"MCP over HTTP": {
		place: () => new HttpPlace().open(),
		call: async (place, role, tool, args) => {
			place.doors ??= {};
			place.doors[role] ??= await place.modern(["--role", role]);
			return (await place.doors[role].raw(tool, args)).structuredContent;
		},
	},
	REST: {
		place: () => new HttpPlace().open(),
		call: async (place, role, tool, args) => {
			const r = await place.rest("POST", `sessions/${place.id}/tools/${tool}/execute`, args, { role });
			if (r.body.executed) assert.equal(r.status, 200);
			else assert.ok(r.status >= 400 || r.status === 202, `${r.status}`);
			return r.body;
		},
	},
};

describe("the same verdict through every door", () => {
	const places = {};
	before(async () => {
		for (const [name, d] of Object.entries(doors)) places[name] = await d.place();
	});
	after(async () => {
		for (const p of Object.values(places)) await p.done();
	});

	for (const role of ["developer", "critic"])
		for (const [i, [tool, args]] of rows.entries())
			test(`${role}: ${tool} ${JSON.stringify(args).slice(0, 60)} (${i})`, async () => {
				let first;
				for (const [name, d] of Object.entries(doors)) {
					clear(places[name]);
					const told = steady(await d.call(places[name], role, tool, args));
					assert.equal(typeof told.executed, "boolean", name);
					const now = { told, left: picture(places[name].workspace) };
					first ??= now;
					assert.deepEqual(now, first, name);
				}
			});
});
