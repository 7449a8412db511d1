// An agent at work, through the official MCP SDK: what it does, what it is refused, what it takes back, and
// how its session ends. Every line that it prints was an answer of the server; it fails when one is not what it should be.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const top = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const program = process.env.CLOISTER_BIN ?? path.join(top, "build/cloister");
const base = fs.mkdtempSync(path.join(os.tmpdir(), "cloister-quickstart-"));
const TTL_SECONDS = 4;

// Configuration by environment; a cloister.toml or options would do as well.
const env = {
	PATH: process.env.PATH,
	HOME: base,
	CLOISTER_STATE_DIR: path.join(base, "state"),
	CLOISTER_QUOTA_BYTES: "1M",
	CLOISTER_SESSION_TTL_SECONDS: String(TTL_SECONDS),
};

const say = (text) => console.log(text);
const step = (text) => say(`\n== ${text}`);

function cloister(...args) {
	say(`$ cloister ${args.join(" ")}`);
	const r = spawnSync(program, args, { env, encoding: "utf8" });
	for (const line of (r.stdout + r.stderr).trimEnd().split("\n")) say(`  ${line}`);
	return r;
}

const client = new Client({ name: "quickstart", version: "1" }, { versionNegotiation: { mode: "auto" } });

async function call(name, args, expected = "done") {
	const r = await client.callTool({ name, arguments: args });
	const s = r.structuredContent;
	const shown = JSON.stringify(args);
	say(`${name} ${shown.length > 100 ? shown.slice(0, 97) + "..." : shown}`);
	if (r.isError) say(`  refused: ${s.error.message} (${s.error.code})`);
	assert.equal(r.isError ? s.error.code : "done", expected);
	return s;
}

const show = (text) => {
	for (const line of String(text).trimEnd().split("\n")) say(`  ${line}`);
};

const started = Date.now();
try {
	step("A session over stdio");
	await client.connect(
		new StdioClientTransport({ command: program, args: ["mcp", "--session", "demo"], env, stderr: "inherit" }),
	);
	say(`MCP ${client.getNegotiatedProtocolVersion()}, ${(await client.listTools()).tools.length} tools`);

	step("Writing and reading real files");
	await call("file_write", { path: "src/hello.c", create_dirs: true, content: '#include <stdio.h>\n\nint main(void)\n{\n\tputs("hello");\n\treturn 0;\n}\n' });
	await call("file_write", { path: "README", content: "A small program.\nIt says hello.\n" });
	show((await call("file_read", { path: "README" })).content);

	step("Editing, searching, listing");
	const edit = await call("file_edit", { path: "src/hello.c", edits: [{ old_text: '"hello"', new_text: '"hello, world"' }] });
	say(`  ${edit.replacements} replacement; change ${edit.undo.seq}`);
	for (const m of (await call("file_search", { query: "hello" })).matches) say(`  ${m.path}:${m.line}: ${m.text}`);
	for (const e of (await call("file_list", { path: ".", recursive: true })).entries) say(`  ${e.type}  ${e.path}`);
	const onDisk = fs.readFileSync(path.join(env.CLOISTER_STATE_DIR, "sessions/demo/src/hello.c"), "utf8");
	assert.match(onDisk, /hello, world/);
	say("  (the file on disk says so too)");

	step("What is refused");
	await call("file_read", { path: "../../../etc/passwd" }, "path_escape");
	const info = await call("workspace_info", {});
	say(`  ${info.bytes} of ${info.bytes_limit} bytes used`);
	await call("file_write", { path: "big", content: "x".repeat(2 * 1024 * 1024) }, "quota_exceeded");
	await call("file_read", { path: "big" }, "not_found");

	step("Taking a call back");
	await call("file_delete", { path: "README" });
	await call("file_read", { path: "README" }, "not_found");
	say(`  undone: change ${(await call("history_undo", {})).undone}`);
	show((await call("file_read", { path: "README" })).content);
	await client.close();

	step(`The session expires ${TTL_SECONDS} seconds after it began, and is swept`);
	await new Promise((r) => setTimeout(r, Math.max(0, TTL_SECONDS * 1000 + 500 - (Date.now() - started))));
	cloister("session", "list");
	const swept = cloister("session", "sweep");
	assert.equal(swept.status, 0);
	assert.match(swept.stdout, /expired sessions: 1/);
	assert.ok(!fs.existsSync(path.join(env.CLOISTER_STATE_DIR, "sessions/demo")));
	cloister("session", "show", "demo");
	say("\nDone: everything above was real, and nothing of it is left.");
} finally {
	fs.rmSync(base, { recursive: true, force: true });
}
