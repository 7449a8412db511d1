// MCP 2025-11-25 through @modelcontextprotocol/sdk.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Place } from "./lib.mjs";
import { eraSuite } from "./suite.mjs";

eraSuite("legacy");

test("legacy: the client learns version, name and instructions", async () => {
	const place = new Place();
	const { client } = await place.legacy();
	assert.equal(client.getServerVersion().name, "cloister");
	assert.ok(client.getServerCapabilities().tools);
	assert.ok(client.getInstructions().length > 0);
	await client.ping();
	await place.done();
});
