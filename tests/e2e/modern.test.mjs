// MCP 2026-07-28 through @modelcontextprotocol/client.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { Place } from "./lib.mjs";
import { eraSuite } from "./suite.mjs";

eraSuite("modern");

test("modern: the pinned version is negotiated", async () => {
	const place = new Place();
	const { client } = await place.modern();
	assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
	assert.equal(client.getProtocolEra(), "modern");
	await place.done();
});

test("modern: a client that may choose chooses the modern era", async () => {
	const place = new Place();
	const client = new Client({ name: "auto", version: "1" }, { versionNegotiation: { mode: "auto" } });
	await client.connect(new StdioClientTransport(place.server()));
	assert.equal(client.getProtocolEra(), "modern");
	assert.ok((await client.listTools()).tools.length > 0);
	await client.close();
	await place.done();
});

test("modern: the same client in its legacy mode is served too", async () => {
	const place = new Place();
	const client = new Client({ name: "old", version: "1" });
	await client.connect(new StdioClientTransport(place.server()));
	assert.equal(client.getProtocolEra(), "legacy");
	assert.ok((await client.listTools()).tools.length > 0);
	await client.close();
	await place.done();
});
