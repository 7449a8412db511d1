/*
 * Numbered states of a workspace, each made by one commit from the one before, so that a glance
 * tells whether a tree is exactly one of them.
 */
#ifndef CLOISTER_TESTS_VERSIONS_H
#define CLOISTER_TESTS_VERSIONS_H

#include "../unit/workspace_fixture.h"

#include "workspace/engine.h"
#include "workspace/history_log.h"

enum { GROUP = 6 };

static void open_with(struct fixture *f, enum durability d)
{
	fx_reopen(f, &(struct workspace_options){.history_bytes = 200000,
			     .quota_bytes = 10 << 20,
			     .durability = d,
			     .lock_wait_ms = 5000});
}

/* Version k: every file of the group says k, the log has k lines, one name comes and goes, one
 * wanders. */
static void make_version(struct fixture *f, uint64_t k)
{
	struct view *v = fx_view(f);
	char name[16], text[4096];
	for (int i = 0; i < GROUP; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		int n = snprintf(text, sizeof(text), "%llu ", (unsigned long long)k);
		size_t pad = (k * 37 + (uint64_t)i * 101) % 3000;
		memset(text + n, 'p', pad);
		text[(size_t)n + pad] = '\0';
		fx_put(f, v, name, text);
	}
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)k);
	if (k == 1) {
		fx_put(f, v, "log", text);
		fx_put(f, v, "wander0", "w");
	} else {
		fx_append(f, v, "log", text);
	}
	if (k % 2)
		fx_put_parents(f, v, "odd/deep/file", "odd");
	else
		fx_remove(v, "odd", true);
	fx_rename(v, k % 2 ? "wander0" : "wander1", k % 2 ? "wander1" : "wander0", false);
	fx_commit(f, v);
	view_free(v);
}

static void expect_version(struct fixture *f, uint64_t k)
{
	char name[16], line[32];
	for (int i = 0; i < GROUP; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		if (k == 0) {
			assert_false(fx_host_exists(f, name));
			continue;
		}
		int fd = openat(f->fd, name, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		const char *text = fx_read(fd);
		close(fd);
		assert_int_equal(strtoull(text, NULL, 10), k);
		int n = snprintf(line, sizeof(line), "%llu ", (unsigned long long)k);
		assert_int_equal(strlen(text), (size_t)n + (k * 37 + (uint64_t)i * 101) % 3000);
	}
	if (k == 0)
		return;
	FILE *log = fdopen(openat(f->fd, "log", O_RDONLY | O_CLOEXEC), "r");
	for (uint64_t i = 1; i <= k; i++) {
		assert_non_null(fgets(line, sizeof(line), log));
		assert_int_equal(strtoull(line, NULL, 10), i);
	}
	assert_null(fgets(line, sizeof(line), log));
	fclose(log);
	assert_int_equal(fx_host_exists(f, "odd/deep/file"), k % 2);
	assert_int_equal(fx_host_exists(f, "odd"), k % 2);
	assert_int_equal(fx_host_exists(f, "wander1"), k % 2);
	assert_int_equal(fx_host_exists(f, "wander0"), !(k % 2));
}

static void expect_exact(struct fixture *f)
{
	struct workspace_usage u;
	struct tree_sum sum;
	FX_OK(workspace_usage(f->ws, &u, &fx_err));
	assert_int_equal(tree_count(f->fd, ".cloister", &sum), 0);
	assert_int_equal(u.bytes, sum.bytes);
	assert_int_equal(u.entries, sum.entries);
	struct history_place p;
	struct record_reader rr;
	int64_t cost = 0;
	uint64_t last = 0;
	int r;
	history_at_start(&p, f->ws->stores[0]);
	while ((r = history_forth(&p, &rr, &fx_err)) > 0) {
		cost += history_cost(rr, p.frame.len);
		assert_true(last == 0 || rr.head.seq == last + 1);
		last = rr.head.seq;
	}
	assert_int_equal(r, 0);
	assert_int_equal(last, workspace_seq(f->ws));
	assert_int_equal(cost, u.history_bytes);
	history_place_done(&p);
}

#endif
