// The protocol by hand, where it has edges. Names follow the checklist of both eras for stdio.
import assert from "node:assert/strict";
import crypto from "node:crypto";
import fs from "node:fs";
import { afterEach, beforeEach, describe, test } from "node:test";

import { Place, call, meta, putMuchText } from "./lib.mjs";

let place;
beforeEach(() => (place = new Place()));
afterEach(() => place.done());

const ping = (id) => ({ jsonrpc: "2.0", id, method: "ping" });

async function opened(args) {
	const raw = place.raw(args);
	await raw.initialize();
	return raw;
}

describe("framing", () => {
	test("answers are one line each and nothing else is on the output", async () => {
		const raw = await opened();
		place.put("a", "line one\nline two\n");
		const r = await raw.ask(call(1, "file_read", { path: "a" }));
		assert.equal(r.result.structuredContent.content, "line one\nline two\n");
		await raw.silent();
	});

	test("a message may arrive byte by byte", async () => {
		const raw = await opened();
		for (const b of Buffer.from(JSON.stringify(ping("slow")) + "\n")) {
			raw.write(Buffer.from([b]));
			await new Promise((r) => setImmediate(r));
		}
		assert.equal((await raw.next()).id, "slow");
	});

	test("many messages may arrive at once, and are answered in order", async () => {
		const raw = await opened();
		raw.write(Array.from({ length: 500 }, (_, i) => JSON.stringify(ping(i)) + "\n").join(""));
		for (let i = 0; i < 500; i++) assert.equal((await raw.next()).id, i);
	});

	test("a line may end in CR LF, and blank lines are nothing", async () => {
		const raw = await opened();
		raw.write("\r\n \n\n" + JSON.stringify(ping(1)) + "\r\n");
		assert.equal((await raw.next()).id, 1);
		await raw.silent();
	});

	test("garbage is a parse error and the connection goes on", async () => {
		const raw = await opened();
		raw.write("this is no JSON\n");
		const r = await raw.next();
		assert.equal(r.error.code, -32700);
		assert.ok(!("id" in r));
		assert.equal((await raw.ask(ping(2))).id, 2);
	});

	test("bytes that are not UTF-8 are a parse error and reach no tool", async () => {
		const raw = await opened();
		raw.write(
			Buffer.concat([
				Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"file_write","arguments":{"path":"a","content":"'),
				Buffer.from([0xff, 0xfe, 0xc0, 0x80]),
				Buffer.from('"}}}\n'),
			]),
		);
		assert.equal((await raw.next()).error.code, -32700);
		assert.ok(!place.has("a"));
	});

	test("a line of more than 64 MiB is refused, skipped, and the next one answered", async () => {
		const raw = await opened();
		const piece = Buffer.alloc(1 << 20, "x");
		for (let i = 0; i < 70; i++)
			if (!raw.write(piece)) await new Promise((r) => raw.child.stdin.once("drain", r));
		raw.write("\n" + JSON.stringify(ping("after")) + "\n");
		const r = await raw.next(30000);
		assert.equal(r.error.code, -32600);
		assert.match(r.error.message, /67108864 bytes/);
		assert.equal((await raw.next()).id, "after");
	});

	test("24 MB of random bytes are survived in bounded memory", async () => {
		const raw = await opened();
		raw.child.stdout.resume();
		for (let i = 0; i < 24; i++)
			if (!raw.write(crypto.randomBytes(1 << 20)))
				await new Promise((r) => raw.child.stdin.once("drain", r));
		raw.write("\n" + JSON.stringify(ping("after")) + "\n");
		let last;
		do last = await raw.next(30000);
		while (last.id !== "after");
		const status = fs.readFileSync(`/proc/${raw.child.pid}/status`, "utf8");
		assert.ok(Number(/VmHWM:\s+(\d+)/.exec(status)[1]) < 64 * 1024, status);
	});

	test("a client that does not read is not read from, and loses nothing", async () => {
		const raw = await opened();
		place.put("big", "x".repeat(1 << 20));
		raw.child.stdout.pause();
		const n = 200;
		for (let i = 0; i < n; i++) raw.send(call(i, "file_read", { path: "big" }));
		await new Promise((r) => setTimeout(r, 500));
		const status = fs.readFileSync(`/proc/${raw.child.pid}/status`, "utf8");
		assert.ok(Number(/VmRSS:\s+(\d+)/.exec(status)[1]) < 64 * 1024, "memory grows with what is unread");
		raw.child.stdout.resume();
		for (let i = 0; i < n; i++) assert.equal((await raw.next(30000)).id, i);
	});
});

describe("end of input", () => {
	test("the program exits with status 0", async () => {
		const raw = await opened();
		raw.end();
		assert.deepEqual(await raw.ended, { code: 0, signal: null });
		assert.equal(raw.stderr, "");
	});

	test("what was asked before is answered first", async () => {
		const raw = await opened();
		place.put("a", "x");
		for (let i = 0; i < 50; i++) raw.send(call(i, "file_read", { path: "a" }));
		raw.end();
		for (let i = 0; i < 50; i++) assert.equal((await raw.next()).id, i);
		assert.equal((await raw.ended).code, 0);
	});

	test("a search that is waiting is answered first", async () => {
		putMuchText(place, 32);
		const raw = await opened();
		raw.send(call("s", "file_search", { query: "zebra" }));
		raw.end();
		const r = await raw.next(30000);
		assert.equal(r.id, "s");
		assert.deepEqual(r.result.structuredContent.matches, []);
		assert.equal((await raw.ended).code, 0);
	});

	test("a last line without its end counts", async () => {
		const raw = await opened();
		raw.write(JSON.stringify(ping("last")));
		raw.end();
		assert.equal((await raw.next()).id, "last");
	});

	test("half a message changes nothing", async () => {
		const raw = await opened();
		raw.write(JSON.stringify(call(1, "file_write", { path: "a", content: "x" })).slice(0, -2));
		raw.end();
		assert.equal((await raw.next()).error.code, -32700);
		assert.equal((await raw.ended).code, 0);
		assert.ok(!place.has("a"));
	});

	test("no process is left behind", async () => {
		putMuchText(place, 8);
		const raw = await opened();
		await raw.ask(call(1, "file_search", { query: "zebra" }));
		const children = fs.readFileSync(`/proc/${raw.child.pid}/task/${raw.child.pid}/children`, "utf8").trim().split(" ");
		assert.ok(children.length > 0 && children[0] !== "");
		raw.end();
		await raw.ended;
		for (const pid of children) assert.ok(!fs.existsSync(`/proc/${pid}`), `process ${pid} is left`);
	});
});

describe("JSON-RPC", () => {
	test("a batch is refused and nothing in it runs", async () => {
		const raw = await opened();
		raw.write(JSON.stringify([call(1, "file_write", { path: "a", content: "x" })]) + "\n");
		assert.equal((await raw.next()).error.code, -32600);
		assert.ok(!place.has("a"));
	});

	test("an id of null is refused and the call does not run", async () => {
		const raw = await opened();
		const r = await raw.ask(call(null, "file_write", { path: "a", content: "x" }));
		assert.equal(r.error.code, -32600);
		assert.ok(!place.has("a"));
	});

	test("ids come back as they were: string and integer", async () => {
		const raw = await opened();
		for (const id of ["", "a\"b\n", 0, -5, 9007199254740991]) assert.equal((await raw.ask(ping(id))).id, id);
	});

	test("duplicate members are a parse error", async () => {
		const raw = await opened();
		raw.write('{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}\n');
		assert.equal((await raw.next()).error.code, -32700);
	});

	test("a call without id is a notification: it does not run and is not answered", async () => {
		const raw = await opened();
		const message = call(1, "file_write", { path: "a", content: "x" });
		delete message.id;
		raw.send(message);
		await raw.silent();
		assert.ok(!place.has("a"));
	});

	test("an unknown method is -32601 in both eras", async () => {
		const raw = await opened();
		assert.equal((await raw.ask({ jsonrpc: "2.0", id: 1, method: "prompts/list" })).error.code, -32601);
		const modern = place.raw();
		const r = await modern.ask({ jsonrpc: "2.0", id: 1, method: "prompts/list", params: { _meta: meta } });
		assert.equal(r.error.code, -32601);
	});
});

describe("legacy era", () => {
	for (const version of ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
		test(`initialize answers ${version} when it is asked for`, async () => {
			const raw = place.raw();
			assert.equal((await raw.initialize(version)).result.protocolVersion, version);
			assert.ok((await raw.ask({ jsonrpc: "2.0", id: 1, method: "tools/list" })).result.tools.length > 0);
		});

	test("initialize answers our newest legacy version to an unknown one", async () => {
		const raw = place.raw();
		assert.equal((await raw.initialize("1999-01-01")).result.protocolVersion, "2025-11-25");
	});

	test("server/discover and resultType are not of this era", async () => {
		const raw = await opened();
		assert.equal((await raw.ask({ jsonrpc: "2.0", id: 1, method: "server/discover", params: { _meta: meta } })).error.code, -32601);
		assert.ok(!("resultType" in (await raw.ask({ jsonrpc: "2.0", id: 2, method: "tools/list" })).result));
	});
});

describe("modern era", () => {
	const discover = { jsonrpc: "2.0", id: 1, method: "server/discover", params: { _meta: meta } };

	test("server/discover answers versions, capabilities, caching and server", async () => {
		const { result } = await place.raw().ask(discover);
		assert.deepEqual(result.supportedVersions, ["2026-07-28"]);
		assert.ok(result.capabilities.tools);
		assert.ok(result.ttlMs >= 0);
		assert.ok(["public", "private"].includes(result.cacheScope));
		assert.equal(result.resultType, "complete");
		assert.equal(result._meta["io.modelcontextprotocol/serverInfo"].name, "cloister");
	});

	test("every result has resultType and serverInfo", async () => {
		const raw = place.raw();
		place.put("a", "x");
		for (const m of [
			discover,
			{ jsonrpc: "2.0", id: 2, method: "tools/list", params: { _meta: meta } },
			call(3, "file_read", { path: "a" }, { _meta: meta }),
			call(4, "file_read", { path: "none" }, { _meta: meta }),
		]) {
			const { result } = await raw.ask(m);
			assert.equal(result.resultType, "complete");
			assert.equal(result._meta["io.modelcontextprotocol/serverInfo"].name, "cloister");
		}
	});

	test("a request without its _meta is -32602 and does not run", async () => {
		const raw = place.raw();
		await raw.ask(discover);
		assert.equal((await raw.ask(call(2, "file_write", { path: "a", content: "x" }))).error.code, -32602);
		assert.ok(!place.has("a"));
	});

	test("an unsupported version is -32022 with what is supported", async () => {
		const raw = place.raw();
		const other = { ...meta, "io.modelcontextprotocol/protocolVersion": "2030-01-01" };
		const { error } = await raw.ask({ ...discover, params: { _meta: other } });
		assert.equal(error.code, -32022);
		assert.deepEqual(error.data, { supported: ["2026-07-28"], requested: "2030-01-01" });
	});

	test("there is no initialize after a modern opening", async () => {
		const raw = place.raw();
		await raw.ask(discover);
		const r = await raw.ask({ jsonrpc: "2.0", id: 2, method: "initialize", params: { _meta: meta } });
		assert.equal(r.error.code, -32601);
	});

	test("a legacy opening after a refused modern one is served", async () => {
		const raw = place.raw();
		const other = { ...meta, "io.modelcontextprotocol/protocolVersion": "2030-01-01" };
		await raw.ask({ ...discover, params: { _meta: other } });
		assert.equal((await raw.initialize()).result.protocolVersion, "2025-11-25");
	});
});

describe("tools/list", () => {
	test("is the same every time", async () => {
		const raw = await opened();
		const list = async (id) => (await raw.ask({ jsonrpc: "2.0", id, method: "tools/list" })).result;
		assert.deepEqual(await list(1), await list(2));
	});

	test("a cursor that the server did not give is -32602", async () => {
		const raw = await opened();
		for (const cursor of ["", "x", 5, null]) {
			const r = await raw.ask({ jsonrpc: "2.0", id: 1, method: "tools/list", params: { cursor } });
			assert.equal(r.error.code, -32602);
		}
	});
});

describe("tools/call", () => {
	test("malformed calls are -32602", async () => {
		const raw = await opened();
		for (const params of [undefined, {}, { name: 5 }, { name: "file_read", arguments: [] }, { name: "no_such" }]) {
			const r = await raw.ask({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
			assert.equal(r.error.code, -32602);
		}
	});

	test("a NUL in a path is an ordinary error", async () => {
		const raw = await opened();
		const r = await raw.ask(call(1, "file_read", { path: "a\u0000b" }));
		assert.equal(r.result.isError, true);
		assert.equal(r.result.structuredContent.executed, false);
	});

	test("content with NUL and controls comes back as it was written", async () => {
		const raw = await opened();
		const content = "\u0000\u0001\u001b[2J\u007f\u2028é";
		await raw.ask(call(1, "file_write", { path: "a", content }));
		const r = await raw.ask(call(2, "file_read", { path: "a" }));
		assert.equal(r.result.structuredContent.content, content);
	});
});

describe("cancellation and progress", () => {
	const slow = { query: "(q.*u.*i.*c.*k.*){4}zzz", regex: true, ignore_case: true };

	beforeEach(() => {
		place.env.CLOISTER_SEARCH_TIME_MS = "60000";
		place.env.CLOISTER_SEARCH_BYTES = "100G";
		putMuchText(place, 256);
	});

	test("a cancelled request is not answered, and its work stops", async () => {
		const raw = await opened();
		raw.send(call("s", "file_search", slow));
		raw.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "s" } });
		assert.equal((await raw.ask(ping(1))).id, 1);
		await raw.silent(500);
		raw.end();
		assert.equal((await raw.ended).code, 0);
	});

	test("cancelling one of two leaves the other", async () => {
		const raw = await opened();
		raw.send(call("a", "file_search", { query: "zebra" }));
		raw.send(call("b", "file_search", { query: "zebra" }));
		raw.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "a" } });
		assert.equal((await raw.next(30000)).id, "b");
		await raw.silent();
	});

	test("cancelling what is done or unknown is ignored", async () => {
		const raw = await opened();
		await raw.ask(ping(1));
		raw.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
		raw.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: "none" } });
		assert.equal((await raw.ask(ping(2))).id, 2);
	});

	test("an id that is in flight cannot be used again", async () => {
		const raw = await opened();
		raw.send(call("s", "file_search", slow));
		const r = await raw.ask(ping("s"));
		assert.equal(r.error.code, -32600);
	});

	test("progress carries its token, grows, and comes at most five times a second", async () => {
		const raw = await opened();
		raw.send(call("s", "file_search", slow, { _meta: { progressToken: "tok" } }));
		let last = -1,
			at = 0;
		for (;;) {
			const m = await raw.next(60000);
			if (m.id === "s") break;
			assert.equal(m.method, "notifications/progress");
			assert.equal(m.params.progressToken, "tok");
			assert.ok(m.params.progress > last);
			assert.ok(at === 0 || Date.now() - at > 150);
			last = m.params.progress;
			at = Date.now();
		}
		assert.ok(at > 0, "no progress at all");
		await raw.silent(400);
	});

	test("without a token there is no progress", async () => {
		const raw = await opened();
		raw.send(call("s", "file_search", slow));
		assert.equal((await raw.next(60000)).id, "s");
	});
});
