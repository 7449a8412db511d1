/* The table of names, and the keyed hash (SipHash-1-3, as published by Aumasson and Bernstein). */
#include "cedar/intern.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static uint64_t hash_key[2];
static pthread_once_t hash_key_once = PTHREAD_ONCE_INIT;

/* Without a random source the clock has to do: the key guards time, not secrets. */
static void make_hash_key(void)
{
	if (getrandom(hash_key, sizeof(hash_key), GRND_NONBLOCK) == (ssize_t)sizeof(hash_key))
		return;
	struct timespec now;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	hash_key[0] = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u;
	hash_key[1] = (uint64_t)now.tv_sec ^ (uint64_t)(uintptr_t)&now;
}

static inline uint64_t rotate(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotate(v[1], 13) ^ v[0];
	v[0] = rotate(v[0], 32);
	v[2] += v[3];
	v[3] = rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotate(v[1], 17) ^ v[2];
	v[2] = rotate(v[2], 32);
}

uint32_t ced_hash(const char *p, size_t n)
{
	(void)pthread_once(&hash_key_once, make_hash_key);
	uint64_t v[4] = {hash_key[0] ^ 0x736f6d6570736575u, hash_key[1] ^ 0x646f72616e646f6du,
		hash_key[0] ^ 0x6c7967656e657261u, hash_key[1] ^ 0x7465646279746573u};
	uint64_t word;
	size_t whole = n & ~(size_t)7;
	for (size_t i = 0; i < whole; i += 8) {
		memcpy(&word, p + i, 8);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	word = 0;
	if (n > whole)
		memcpy(&word, p + whole, n - whole);
	word |= (uint64_t)n << 56;
	v[3] ^= word;
	sip_round(v);
	v[0] ^= word;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	uint64_t h = v[0] ^ v[1] ^ v[2] ^ v[3];
	return (uint32_t)(h ^ h >> 32);
}

void ced_names_init(struct ced_names *names, struct ced_arena *arena)
{
	*names = (struct ced_names){.arena = arena};
}

void ced_names_done(struct ced_names *names)
{
	free(names->table);
	ced_names_init(names, names->arena);
}

static struct ced_name *make(struct ced_arena *arena, uint32_t hash, const char *p, size_t n)
{
	if (n > UINT32_MAX) {
		arena->over_limit = true;
		return NULL;
	}
	struct ced_name *name = ced_arena_alloc(arena, sizeof(*name) + n + 1);
	if (!name)
		return NULL;
	name->hash = hash;
	name->length = (uint32_t)n;
	if (n)
		memcpy(name->text, p, n);
	return name;
}

const struct ced_name *ced_name_make(struct ced_arena *arena, const char *p, size_t n)
{
	return make(arena, ced_hash(p, n), p, n);
}

static bool grow(struct ced_names *names)
{
	uint32_t capacity = names->capacity ? names->capacity * 2 : 64;
	const struct ced_name **table = calloc(capacity, sizeof(*table));
	if (!table) {
		names->arena->over_limit = false;
		return false;
	}
	for (uint32_t i = 0; i < names->capacity; i++) {
		if (!names->table[i])
			continue;
		uint32_t at = names->table[i]->hash & (capacity - 1);
		while (table[at])
			at = (at + 1) & (capacity - 1);
		table[at] = names->table[i];
	}
	free(names->table);
	names->table = table;
	names->capacity = capacity;
	return true;
}

const struct ced_name *ced_intern(struct ced_names *names, const char *p, size_t n)
{
	if (names->count >= names->capacity / 2 && !grow(names))
		return NULL;
	uint32_t hash = ced_hash(p, n), at = hash & (names->capacity - 1);
	for (; names->table[at]; at = (at + 1) & (names->capacity - 1)) {
		const struct ced_name *have = names->table[at];
		if (have->hash == hash && have->length == n && memcmp(have->text, p, n) == 0)
			return have;
	}
	const struct ced_name *name = make(names->arena, hash, p, n);
	if (!name)
		return NULL;
	names->table[at] = name;
	names->count++;
	return name;
}

const struct ced_name *ced_intern_text(struct ced_names *names, const char *text)
{
	return ced_intern(names, text, strlen(text));
}

int ced_name_cmp(const struct ced_name *a, const struct ced_name *b)
{
	uint32_t n = a->length < b->length ? a->length : b->length;
	int r = a == b ? 0 : memcmp(a->text, b->text, n);
	return r ? r : (a->length > b->length) - (a->length < b->length);
}
