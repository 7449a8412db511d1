// A Cloister behind HTTP in a temporary place: `cloister serve`, and tokens for every role.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { after } from "node:test";

import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from "@modelcontextprotocol/client";

import { Door, program } from "./lib.mjs";

const clientInfo = { name: "cloister-e2e", version: "1" };
// One node for all places of a test file: each place is a session of its own.
let running;
after(async () => (await running)?.stop());
export function server() {
	running ??= start();
	return running;
}

const env = {};
export const runToken = (args) => spawnSync(program, ["token", ...args], { env, encoding: "utf8" });

async function start() {
	const base = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "cloister-http-"));
	fs.chmodSync(base, 0o755);
	Object.assign(env, { PATH: process.env.PATH, HOME: base, CLOISTER_STATE_DIR: path.join(base, "state"), CLOISTER_LIBEXECDIR: path.dirname(program),
		CLOISTER_SEARCH_TIME_MS: "60000", CLOISTER_SEARCH_BYTES: "100G" });
	const child = spawn(program, ["serve", "--serve-listen", `127.0.0.1:0 unix:${base}/http.sock`], { stdio: ["ignore", "ignore", "pipe"], env });
	let said = "";
	const port = await new Promise((resolve, reject) => {
		const timer = setTimeout(() => reject(new Error(`serve said: ${said}`)), 20000);
		child.on("exit", () => reject(new Error(`serve ended: ${said}`)));
		readline.createInterface({ input: child.stderr }).on("line", (l) => {
			said += l + "\n";
			const m = l.match(/front serves on .*?127\.0\.0\.1:(\d+)/);
			if (!m) return;
			clearTimeout(timer);
			resolve(Number(m[1]));
		});
	});
	const tokens = {};
	for (const [name, ...more] of [["developer"], ["generalist", "--role", "generalist"], ["critic", "--role", "critic"], ["stranger", "--tenant", "elsewhere"], ["admin", "--admin"]])
		tokens[name] = runToken(["add", name, ...more]).stdout.trim().split("\n").pop();
	return { ...tokens, base, child, port, url: `http://127.0.0.1:${port}`, said: () => said, stop: () => stop(child, base) };
}

async function stop(child, base) {
	const ended = new Promise((r) => child.on("exit", r));
	child.kill("SIGTERM");
	await ended;
	fs.rmSync(base, { recursive: true, force: true });
}

let count = 0;
export class HttpPlace {
	constructor() {
		this.id = `e2e-${process.pid}-${++count}`;
		this.closers = [];
	}

	async open() {
		this.server = await server();
		this.base = path.join(this.server.base, "state/sessions");
		this.workspace = path.join(this.base, this.id);
		const r = await this.rest("POST", "sessions", { id: this.id });
		if (r.status !== 201) throw new Error(`no session: ${JSON.stringify(r)}`);
		await this.rest("POST", `sessions/${this.id}/tools/workspace_info/execute`, {});
		return this;
	}

	put(name, content) {
		const file = path.join(this.workspace, name);
		fs.mkdirSync(path.dirname(file), { recursive: true });
		fs.writeFileSync(file, content);
		// The workspace may be a user's of its own.
		const { uid, gid } = fs.statSync(this.workspace);
		for (let p = file; p !== this.workspace; p = path.dirname(p)) fs.chownSync(p, uid, gid);
	}

	get(name) {
		return fs.readFileSync(path.join(this.workspace, name), "utf8");
	}

	has(name) {
		return fs.existsSync(path.join(this.workspace, name));
	}

	// A request of /api/v1 as a role; the body is JSON unless it is a string.
	async rest(method, resource, body, { role = "developer", headers = {} } = {}) {
		const json = body !== undefined && typeof body !== "string";
		const r = await fetch(`${this.server.url}/api/v1/${resource}`, {
			method,
			headers: {
				authorization: `Bearer ${this.server[role]}`,
				...(json ? { "content-type": "application/json" } : {}),
				...headers,
			},
			body: json ? JSON.stringify(body) : body,
		});
		const text = await r.text();
		let value = text;
		try {
			value = JSON.parse(text);
		} catch {}
		return { status: r.status, headers: r.headers, body: value };
	}

	transport(Transport, args = []) {
		const role = args[0] === "--role" ? args[1] : "developer";
		return new Transport(new URL(`${this.server.url}/mcp/${this.id}`), {
			requestInit: { headers: { authorization: `Bearer ${this.server[role]}` } },
		});
	}

	async legacy(args) {
		const client = new LegacyClient(clientInfo);
		await client.connect(this.transport(LegacyTransport, args));
		this.closers.push(() => client.close());
		return new Door(client, (p, o) => client.callTool(p, undefined, o), 0);
	}

	async modern(args) {
		const client = new ModernClient(clientInfo, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
		await client.connect(this.transport(ModernTransport, args));
		this.closers.push(() => client.close());
		return new Door(client, (p, o) => client.callTool(p, o), 0);
	}

	async done() {
		for (const close of this.closers) await close();
	}
}
