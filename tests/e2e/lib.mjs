// What the tests share: a Cloister in a temporary place, and three ways to talk to it.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";
import { fileURLToPath } from "node:url";

import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client as ModernClient } from "@modelcontextprotocol/client";
import { StdioClientTransport as ModernTransport } from "@modelcontextprotocol/client/stdio";

const top = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const program = path.resolve(process.env.CLOISTER_BIN ?? path.join(top, "build/cloister"));

// What a sanitized program is told by whoever runs the tests.
const sanitizers = Object.fromEntries(
	["ASAN_OPTIONS", "UBSAN_OPTIONS"].filter((k) => process.env[k]).map((k) => [k, process.env[k]]),
);

const clientInfo = { name: "cloister-e2e", version: "1" };

// A workspace and a state directory of its own, removed by done().
export class Place {
	constructor(env = {}) {
		this.base = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), "cloister-e2e-"));
		this.workspace = path.join(this.base, "ws");
		fs.mkdirSync(this.workspace);
		this.env = {
			PATH: process.env.PATH,
			HOME: this.base,
			XDG_STATE_HOME: path.join(this.base, "state"),
			CLOISTER_STATE_DIR: path.join(this.base, "state/cloister"),
			...sanitizers,
			...env,
		};
		this.closers = [];
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

	server(args = []) {
		return {
			command: program,
			args: ["mcp", "--workspace", this.workspace, ...args],
			env: this.env,
			stderr: "inherit",
		};
	}

	async legacy(args) {
		const client = new LegacyClient(clientInfo);
		const transport = new LegacyTransport(this.server(args));
		await client.connect(transport);
		this.closers.push(() => client.close());
		return new Door(client, (p, o) => client.callTool(p, undefined, o), transport.pid);
	}

	async modern(args) {
		const client = new ModernClient(clientInfo, {
			versionNegotiation: { mode: { pin: "2026-07-28" } },
		});
		const transport = new ModernTransport(this.server(args));
		await client.connect(transport);
		this.closers.push(() => client.close());
		return new Door(client, (p, o) => client.callTool(p, o), transport.pid);
	}

	raw(args) {
		const raw = new Raw(this.server(args));
		this.closers.push(() => raw.kill());
		return raw;
	}

	// The command line, to its end.
	run(args, input) {
		const r = spawnSync(program, args, { env: this.env, input, encoding: "utf8", timeout: 30000 });
		return { status: r.status, signal: r.signal, out: r.stdout, err: r.stderr };
	}

	async done() {
		for (const close of this.closers) await close();
		fs.rmSync(this.base, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }); // a journal may still be writing
	}
}

// One client of either SDK.
export class Door {
	constructor(client, callTool, pid) {
		this.client = client;
		this.callTool = callTool;
		this.pid = pid;
	}

	// The whole MCP result.
	raw(name, args = {}, options) {
		return this.callTool({ name, arguments: args }, options);
	}

	// The structured result of a call that must have been carried out.
	async ok(name, args, options) {
		const r = await this.raw(name, args, options);
		if (r.isError) throw new Error(`${name}: ${r.content[0].text}`);
		return r.structuredContent;
	}

	// The error of a call that must have been refused.
	async refused(name, args) {
		const r = await this.raw(name, args);
		if (!r.isError) throw new Error(`${name} was not refused: ${r.content[0].text}`);
		return r.structuredContent;
	}
}

// The protocol by hand: lines out, lines in.
export class Raw {
	constructor(server) {
		this.child = spawn(server.command, server.args, {
			env: server.env,
			stdio: ["pipe", "pipe", "pipe"],
		});
		this.lines = [];
		this.waiting = [];
		this.stderr = "";
		this.child.stderr.on("data", (d) => (this.stderr += d));
		this.child.stdin.on("error", () => {});
		this.ended = new Promise((resolve) =>
			this.child.on("close", (code, signal) => {
				for (const w of this.waiting.splice(0)) w.resolve(null);
				resolve({ code, signal });
			}),
		);
		readline
			.createInterface({ input: this.child.stdout, crlfDelay: Infinity })
			.on("line", (l) => {
				const w = this.waiting.shift();
				if (w) w.resolve(l);
				else this.lines.push(l);
			});
	}

	write(bytes) {
		return this.child.stdin.write(bytes);
	}

	send(message) {
		this.write(JSON.stringify(message) + "\n");
	}

	end() {
		this.child.stdin.end();
	}

	// The next message of the server; null when it has closed its output.
	next(ms = 10000) {
		if (this.lines.length > 0) return Promise.resolve(JSON.parse(this.lines.shift()));
		return new Promise((resolve, reject) => {
			const timer = setTimeout(() => reject(new Error(`no answer; stderr: ${this.stderr}`)), ms);
			this.waiting.push({
				resolve: (l) => {
					clearTimeout(timer);
					resolve(l === null ? null : JSON.parse(l));
				},
			});
		});
	}

	// Nothing arrives for a while.
	async silent(ms = 200) {
		await new Promise((r) => setTimeout(r, ms));
		if (this.lines.length > 0) throw new Error(`unexpected: ${this.lines[0]}`);
	}

	ask(message) {
		this.send(message);
		return this.next();
	}

	async initialize(version = "2025-11-25") {
		const r = await this.ask({
			jsonrpc: "2.0",
			id: "init",
			method: "initialize",
			params: { protocolVersion: version, capabilities: {}, clientInfo },
		});
		this.send({ jsonrpc: "2.0", method: "notifications/initialized" });
		return r;
	}

	kill() {
		this.child.kill("SIGKILL");
		return this.ended;
	}
}

export const meta = {
	"io.modelcontextprotocol/protocolVersion": "2026-07-28",
	"io.modelcontextprotocol/clientCapabilities": {},
	"io.modelcontextprotocol/clientInfo": clientInfo,
};

export const call = (id, name, args, extra = {}) => ({
	jsonrpc: "2.0",
	id,
	method: "tools/call",
	params: { name, arguments: args, ...extra },
});

// Files enough that a search of them is still running when the next message arrives.
export function putMuchText(place, megabytes) {
	const line = "the quick brown fox jumps over the lazy dog 0123456789\n";
	const file = line.repeat((8 * 1024 * 1024) / line.length);
	place.put("much/0.txt", file);
	const first = path.join(place.workspace, "much/0.txt");
	for (let i = 1; i * 8 < megabytes; i++) fs.linkSync(first, path.join(place.workspace, `much/${i}.txt`));
}
