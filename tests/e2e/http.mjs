// A Cloister behind HTTP in a temporary place: core and the HTTP door of the build's http_here.
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import readline from "node:readline";
import { after } from "node:test";

import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from "@modelcontextprotocol/client";

import { Door, program } from "./lib.mjs";

const clientInfo = { name: "cloister-e2e", version: "1" };
const here = process.env.CLOISTER_HTTP_HERE ?? path.join(path.dirname(program), "tests/http/http_here");

// One server for all places of a test file: each place is a session of its own.
let running;
export function server() {
	running ??= new Promise((resolve, reject) => {
		const child = spawn(here, { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, CLOISTER_LIBEXECDIR: path.dirname(program) } });
		child.on("error", reject);
		readline.createInterface({ input: child.stdout }).once("line", (l) => {
			const told = JSON.parse(l);
			resolve({ ...told, child, url: `http://127.0.0.1:${told.port}` });
		});
		after(() => child.stdin.end());
	});
	return running;
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
