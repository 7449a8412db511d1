/*
 * Sessions of the legacy era. An id proves by itself that it was made for the token it comes with:
 *
 *     nonce.SHA-256("cloister mcp session" NUL SHA-256(token) nonce), 16 bytes each
 *
 * Whoever holds the token could make one too, and would gain nothing: a session has no rights of
 * its own. That an id was ended is remembered for a while, in memory.
 */
#include "transport/http/mcp_http.h"

#include "base/sha256.h"

#include <sys/random.h>

static void put_hex(char *to, const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		to[2 * i] = "0123456789abcdef"[p[i] >> 4];
		to[2 * i + 1] = "0123456789abcdef"[p[i] & 15];
	}
}

static void prove(struct str token, const char *nonce, char ret[32])
{
	static const char what[] = "cloister mcp session";
	struct sha256 inner, outer;
	char text[sizeof(what) + sizeof(inner.b) + 32];
	sha256_of(token.p, token.n, &inner);
	memcpy(text, what, sizeof(what));
	memcpy(text + sizeof(what), inner.b, sizeof(inner.b));
	memcpy(text + sizeof(what) + sizeof(inner.b), nonce, 32);
	sha256_of(text, sizeof(text), &outer);
	put_hex(ret, outer.b, 16);
}

void mcp_session_make(struct str token, char ret[MCP_SESSION_ID_LEN + 1])
{
	unsigned char random[16];
	BUG_ON(getrandom(random, sizeof(random), 0) != sizeof(random));
	put_hex(ret, random, sizeof(random));
	ret[32] = '.';
	prove(token, ret, ret + 33);
	ret[MCP_SESSION_ID_LEN] = '\0';
}

bool mcp_session_known(const struct http_api *api, struct str token, struct str id)
{
	char proof[32];
	unsigned char differs = 0;
	if (id.n != MCP_SESSION_ID_LEN || id.p[32] != '.')
		return false;
	prove(token, id.p, proof);
	for (unsigned i = 0; i < sizeof(proof); i++)
		differs |= (unsigned char)(proof[i] ^ id.p[33 + i]);
	for (unsigned i = 0; i < MCP_ENDED_MAX; i++)
		if (memcmp(api->mcp_ended[i], id.p, MCP_SESSION_ID_LEN) == 0)
			return false;
	return differs == 0;
}

void mcp_session_end(struct http_api *api, struct str id)
{
	memcpy(api->mcp_ended[api->mcp_ended_next], id.p, MCP_SESSION_ID_LEN);
	api->mcp_ended_next = (api->mcp_ended_next + 1) % MCP_ENDED_MAX;
}
