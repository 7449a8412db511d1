// What holds in both eras: the same promises, tried through the official client of each.
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, before, describe, test } from "node:test";

import { Place, program, putMuchText } from "./lib.mjs";
import { spawnSync } from "node:child_process";

const SECRET = "not for agents";

// `Where` makes the places: over stdio, or over HTTP with what only a command line can set left out.
export function eraSuite(era, Where = Place, over = "stdio") {
	const cli = over === "stdio";
	const make = async (env) => {
		const place = new Where(env);
		return place.open ? place.open() : place;
	};
	const name = cli ? era : `${era} over ${over}`;
	describe(`${name}: the official client`, () => {
		let place, door;
		before(async () => {
			place = await make();
			fs.mkdirSync(path.join(place.base, "outside"), { recursive: true });
			fs.writeFileSync(path.join(place.base, "outside/secret"), SECRET);
			fs.mkdirSync(path.join(place.workspace, "a"));
			door = await place[era]();
		});
		after(() => place.done());

		test("lists every tool of the table, in its order, with schemas and annotations", async () => {
			const { tools } = await door.client.listTools();
			const told = spawnSync(program, ["tools", "--json"], { encoding: "utf8" }).stdout;
			const table = told.trim().split("\n").map((l) => JSON.parse(l));
			assert.deepEqual(tools.map((t) => t.name), table.map((t) => t.name));
			for (const [i, t] of tools.entries()) {
				assert.match(t.name, /^[A-Za-z0-9_.-]{1,128}$/);
				assert.equal(t.inputSchema.type, "object");
				assert.equal(t.inputSchema.additionalProperties, false);
				assert.equal(t.outputSchema.type, "object");
				assert.equal(t.annotations.readOnlyHint, table[i].group === "read");
				assert.equal(t.annotations.openWorldHint, ["execute", "network"].includes(table[i].group));
				assert.equal(typeof t.annotations.destructiveHint, "boolean");
				assert.equal(typeof t.annotations.idempotentHint, "boolean");
				assert.ok(t.annotations.title.length > 0);
			}
		});

		test("shows files of the workspace as resources, and completes their paths", async () => {
			place.put("res/note.md", "# hi\n");
			place.put("res/bytes", Buffer.from([0xff, 0x00]));
			const { resources } = await door.client.listResources();
			const note = resources.find((r) => r.uri === "file:///workspace/res/note.md");
			assert.deepEqual(note, { uri: "file:///workspace/res/note.md", name: "res/note.md", mimeType: "text/markdown", size: 5 });
			const text = await door.client.readResource({ uri: note.uri });
			assert.equal(text.contents[0].text, "# hi\n");
			const bytes = await door.client.readResource({ uri: "file:///workspace/res/bytes" });
			assert.equal(bytes.contents[0].blob, "/wA=");
			const { resourceTemplates } = await door.client.listResourceTemplates();
			const done = await door.client.complete({
				ref: { type: "ref/resource", uri: resourceTemplates[0].uriTemplate },
				argument: { name: "path", value: "res/n" },
			});
			assert.deepEqual(done.completion.values, ["res/note.md"]);
		});

		test("no resource lies outside the workspace", async () => {
			for (const uri of ["file:///etc/passwd", "file:///workspace/../outside/secret", "file:///workspace/%2e%2e/outside/secret",
				"file:///workspace/", "file:///workspace/nope", "http://localhost/", "file:///workspace/a%00b"])
				await assert.rejects(door.client.readResource({ uri }), (e) => {
					assert.ok(!String(e.message).includes(SECRET));
					return e.code === -32602 || e.code === -32002;
				}, uri);
		});

		test("every tool does its work through the protocol", async () => {
			const w = await door.ok("file_write", { path: "src/a.txt", content: "one\ntwo\n", create_dirs: true });
			assert.equal(w.created, true);
			assert.equal(place.get("src/a.txt"), "one\ntwo\n");

			const r = await door.ok("file_read", { path: "src/a.txt" });
			assert.equal(r.content, "one\ntwo\n");

			const e = await door.ok("file_edit", { path: "src/a.txt", edits: [{ old_text: "two", new_text: "2" }] });
			assert.equal(e.replacements, 1);
			assert.equal(place.get("src/a.txt"), "one\n2\n");

			const l = await door.ok("file_list", { path: "src" });
			assert.deepEqual(l.entries.map((x) => x.name), ["a.txt"]);

			const s = await door.ok("file_search", { query: "one" });
			assert.deepEqual(s.matches.map((m) => [m.path, m.line]), [["/workspace/src/a.txt", 1]]);

			const i = await door.ok("file_info", { path: "src/a.txt" });
			assert.equal(i.size, 6);

			await door.ok("file_move", { from: "src/a.txt", to: "src/b.txt" });
			assert.ok(place.has("src/b.txt") && !place.has("src/a.txt"));

			await door.ok("checkpoint_create", { label: `cp-${era}` });
			await door.ok("file_delete", { path: "src/b.txt" });
			assert.ok(!place.has("src/b.txt"));

			const d = await door.ok("workspace_diff", { checkpoint: `cp-${era}` });
			assert.match(d.diff, /b\.txt/);

			const h = await door.ok("history_list", {});
			assert.equal(h.entries[0].tool, "file_delete");

			await door.ok("history_undo", {});
			assert.equal(place.get("src/b.txt"), "one\n2\n");

			await door.ok("checkpoint_restore", { label: `cp-${era}` });
			assert.equal(place.get("src/b.txt"), "one\n2\n");

			const info = await door.ok("workspace_info", {});
			assert.equal(info.role, "developer");
			assert.ok(info.bytes_limit > 0);
			assert.ok((await door.ok("system_info", {})).cpu_count >= 1);
		});

		test("a result is structured and the same JSON in a text block", async () => {
			place.put("odd.txt", 'quote " backslash \\ tab \t é 🙂\n');
			const r = await door.raw("file_read", { path: "odd.txt" });
			assert.equal(r.content.length, 1);
			assert.equal(r.content[0].type, "text");
			assert.deepEqual(JSON.parse(r.content[0].text), r.structuredContent);
			assert.equal(r.structuredContent.content, 'quote " backslash \\ tab \t é 🙂\n');
		});

		for (const bad of ["../outside/secret", "a/../../outside/secret", "/etc/passwd"])
			test(`reading ${bad} is refused and tells nothing`, async () => {
				const r = await door.raw("file_read", { path: bad });
				assert.equal(r.isError, true);
				assert.equal(r.structuredContent.executed, false);
				assert.match(r.structuredContent.error.code, /^path_/);
				assert.ok(!JSON.stringify(r).includes(SECRET));
			});

		test("writing outside is refused and changes nothing", async () => {
			const r = await door.refused("file_write", { path: "../outside/secret", content: "x" });
			assert.match(r.error.code, /^path_/);
			assert.equal(fs.readFileSync(path.join(place.base, "outside/secret"), "utf8"), SECRET);
		});

		test("an argument that the tool does not know is an ordinary error that names it", async () => {
			const r = await door.refused("file_read", { path: "odd.txt", colour: "red" });
			assert.equal(r.error.code, "invalid_argument");
			assert.match(r.error.message, /colour/);
		});

		test("an argument of the wrong type is an ordinary error", async () => {
			const r = await door.refused("file_read", { path: 5 });
			assert.equal(r.error.code, "invalid_argument");
		});

		test("a missing file is an ordinary error", async () => {
			assert.equal((await door.refused("file_read", { path: "none" })).error.code, "not_found");
		});

		test("an unknown tool is a protocol error", async () => {
			await assert.rejects(door.raw("file_explode"), (e) => e.code === -32602);
		});

		test("a hundred calls at once are all answered, each its own", async () => {
			for (let i = 0; i < 100; i++) place.put(`many/${i}`, `number ${i}`);
			const all = await Promise.all(
				Array.from({ length: 100 }, (_, i) => door.ok("file_read", { path: `many/${i}` })),
			);
			assert.deepEqual(all.map((r) => r.content), all.map((_, i) => `number ${i}`));
		});

		test("sixteen parallel writers of one file leave one of the contents, whole", async () => {
			const texts = Array.from({ length: 16 }, (_, i) => String.fromCharCode(97 + i).repeat(5000));
			await Promise.all(texts.map((t) => door.ok("file_write", { path: "race", content: t })));
			assert.ok(texts.includes(place.get("race")));
		});
	});

	describe(`${name}: long calls`, () => {
		let place, door;
		before(async () => {
			place = await make({ CLOISTER_SEARCH_TIME_MS: "60000", CLOISTER_SEARCH_BYTES: "100G" });
			putMuchText(place, 256);
			place.put("small", "here");
			door = await place[era]();
		});
		after(() => place.done());

		// Slow for every machine: a case-blind expression that never matches.
		const slow = { query: "(q.*u.*i.*c.*k.*){4}zzz", regex: true, ignore_case: true };

		test("a read is answered while a search is waiting", async () => {
			let done = false;
			const search = door.raw("file_search", slow).then(() => (done = true));
			const r = await door.ok("file_read", { path: "small" });
			assert.equal(r.content, "here");
			assert.equal(done, false);
			await search;
		});

		test("progress comes with growing values, and none after the end", async () => {
			const seen = [];
			await door.raw("file_search", slow, { onprogress: (p) => seen.push(p.progress) });
			assert.ok(seen.length > 0, "no progress at all");
			for (let i = 1; i < seen.length; i++) assert.ok(seen[i] > seen[i - 1]);
			const n = seen.length;
			await new Promise((r) => setTimeout(r, 500));
			assert.equal(seen.length, n);
		});

		test("an aborted call ends at once and the connection goes on", async () => {
			const stop = new AbortController();
			const begun = Date.now();
			const search = door.raw("file_search", slow, { signal: stop.signal });
			setTimeout(() => stop.abort("enough"), 50);
			await assert.rejects(search);
			assert.ok(Date.now() - begun < 2000);
			assert.equal((await door.ok("file_read", { path: "small" })).content, "here");
		});
	});

	describe(`${name}: quota`, { skip: !cli }, () => {
		let place, door;
		before(async () => {
			place = await make({ CLOISTER_QUOTA_BYTES: "10000" });
			door = await place[era]();
		});
		after(() => place.done());

		test("a write beyond the quota is refused and leaves no file", async () => {
			await door.ok("file_write", { path: "a", content: "x".repeat(9000) });
			const r = await door.refused("file_write", { path: "b", content: "x".repeat(2000) });
			assert.equal(r.error.code, "quota_exceeded");
			assert.match(r.error.message, /quota exceeded/i);
			assert.ok(!place.has("b"));
			assert.equal((await door.ok("workspace_info", {})).bytes, 9000);
		});
	});

	describe(`${name}: roles`, () => {
		for (const role of ["generalist", "critic"])
			test(`a ${role} reads but changes nothing`, async () => {
				const place = await make();
				place.put("a", "content");
				const door = await place[era](["--role", role]);
				assert.equal((await door.ok("file_read", { path: "a" })).content, "content");
				for (const [tool, args] of [
					["file_write", { path: "a", content: "x" }],
					["file_delete", { path: "a" }],
					["file_move", { from: "a", to: "b" }],
					["file_edit", { path: "a", edits: [{ old_text: "content", new_text: "x" }] }],
				]) {
					const r = await door.refused(tool, args);
					assert.equal(r.error.code, "denied", tool);
					assert.equal(r.executed, false);
				}
				assert.equal(place.get("a"), "content");
				await place.done();
			});

		test("deny-all refuses even a read", { skip: !cli }, async () => {
			const place = await make();
			place.put("a", "content");
			const door = await place[era](["--profile", "deny-all"]);
			assert.equal((await door.refused("file_read", { path: "a" })).error.code, "denied");
			await place.done();
		});

		test("hold-all holds a call, says until when, and changes nothing", { skip: !cli }, async () => {
			const place = await make();
			const door = await place[era](["--profile", "hold-all"]);
			const r = await door.refused("file_write", { path: "a", content: "x" });
			assert.equal(r.error.code, "held");
			assert.ok(r.error.expires > Date.now() / 1000);
			assert.ok(r.call_id.length > 0);
			assert.ok(!place.has("a"));
			await place.done();
		});
	});
}
