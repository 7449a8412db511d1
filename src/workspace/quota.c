/*
 * Quota: usage is two numbers in the shared page of a store, changed under its lock by the exact
 * difference of each commit. Nothing here depends on how many files there are, except the first
 * count.
 */
#include "workspace/engine.h"

#include "sys/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* "102.5MB", "100MB", and below a megabyte plain bytes, so that a small limit still says something.
 */
static void show_bytes(int64_t n, int64_t scale, bool is_limit, char out[32])
{
	const int64_t mb = 1024 * 1024;
	if (scale < mb)
		(void)snprintf(out, 32, "%" PRId64 "B", n);
	else if (is_limit && n % mb == 0)
		(void)snprintf(out, 32, "%" PRId64 "MB", n / mb);
	else
		(void)snprintf(out, 32, "%.1fMB", (double)n / (double)mb);
}

static int over_bytes(int64_t want, int64_t limit, struct err *err)
{
	char a[32], b[32];
	show_bytes(want, limit, false, a);
	show_bytes(limit, limit, true, b);
	return err_set(err, ERR_QUOTA, "Workspace quota exceeded: %s > %s limit", a, b);
}

static int over_entries(int64_t want, int64_t limit, struct err *err)
{
	return err_set(err, ERR_QUOTA,
		"Workspace quota exceeded: %" PRId64 " entries > %" PRId64 " entries limit", want,
		limit);
}

struct limits {
	int64_t bytes, entries; /* 0: none */
};

static struct limits limits_of(const struct workspace *ws, const struct store *s)
{
	struct limits l = {ws->opt.quota_bytes, ws->opt.quota_entries};
	if (s == ws->mounts[0].store) {
		if (ws->opt.quota_is_growth) {
			l.bytes += l.bytes ? atomic_load(&s->st->base_bytes) : 0;
			l.entries += l.entries ? atomic_load(&s->st->base_entries) : 0;
		}
		return l;
	}
	for (unsigned i = 0; i < ws->n_mounts; i++)
		if (ws->mounts[i].store == s)
			l = (struct limits){ws->mounts[i].limit_bytes, ws->mounts[i].limit_entries};
	return l;
}

int quota_check(const struct workspace *ws, const struct store *s, int64_t bytes, int64_t entries,
	struct err *err)
{
	struct limits l = limits_of(ws, s);
	int64_t want = atomic_load(&s->st->bytes) + bytes;
	if (bytes > 0 && l.bytes && want > l.bytes)
		return over_bytes(want, l.bytes, err);
	want = atomic_load(&s->st->entries) + entries;
	if (entries > 0 && l.entries && want > l.entries)
		return over_entries(want, l.entries, err);
	return 0;
}

int quota_check_staged(const struct workspace *ws, unsigned mount, int64_t bytes, struct err *err)
{
	const struct store *s = ws->mounts[mount].store;
	struct limits l = s ? limits_of(ws, s) : (struct limits){0};
	if (l.bytes && bytes > l.bytes)
		return over_bytes(bytes, l.bytes, err);
	return 0;
}

int quota_know(struct workspace *ws, struct store *s, struct err *err)
{
	struct tree_sum sum, all = {0};
	if (atomic_load(&s->st->counted))
		return 0;
	for (unsigned i = 0; i < ws->n_mounts; i++) {
		const struct mount *m = &ws->mounts[i];
		if (m->store != s)
			continue;
		if (tree_count(m->root_fd, WORKSPACE_STORE_NAME, &sum) < 0)
			return err_sys(err, errno, "counting '%s'", m->agent);
		all.bytes += sum.bytes, all.entries += sum.entries;
	}
	atomic_store(&s->st->bytes, all.bytes);
	atomic_store(&s->st->entries, all.entries);
	if (!atomic_load(&s->st->base_known)) {
		atomic_store(&s->st->base_bytes, all.bytes);
		atomic_store(&s->st->base_entries, all.entries);
		atomic_store(&s->st->base_known, 1);
	}
	atomic_store(&s->st->counted, 1);
	ws->recovered.recounted = true;
	return 0;
}
