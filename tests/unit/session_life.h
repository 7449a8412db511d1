/*
 * What a registry does in its life, once, reporting instead of failing the test. For tests that let
 * the n-th allocation or call on files fail.
 */
#ifndef CLOISTER_TESTS_SESSION_LIFE_H
#define CLOISTER_TESTS_SESSION_LIFE_H

#include "session_fixture.h"

struct life {
	int r;        /* of what failed first; 0: nothing did */
	bool deleted; /* "old" was, and that was said */
	bool made;    /* so was "fresh" */
};

static int work(struct registry *reg, const char *id)
{
	struct session *s = NULL;
	struct workspace *ws = NULL;
	int r = registry_session(reg, NULL, id, &s, &err);
	if (r < 0)
		return r;
	r = session_workspace(s, &ws, &err);
	if (r == 0 && session_next_turn(s) == 0)
		r = err_oom(&err);
	session_release(s);
	return r;
}

static void live_with(struct registry *reg, struct life *l)
{
	struct sweep_budget all = {0};
	struct sweep_result res = {0};
	struct session_info info;
	if ((l->r = work(reg, "kept")) < 0 || (l->r = work(reg, "fresh")) < 0)
		return;
	l->made = true;
	if ((l->r = registry_extend(reg, NULL, "kept", 1000, &info, &err)) < 0 ||
		(l->r = registry_delete(reg, NULL, "old", &err)) < 0)
		return;
	l->deleted = true;
	if ((l->r = registry_sweep(reg, &all, &res, &err)) == 0)
		l->r = registry_flush(reg, &err);
}

static struct life live(enum durability durability)
{
	struct registry *reg = NULL;
	struct life l = {.r = try_open_registry(durability, &reg)};
	if (l.r == 0)
		live_with(reg, &l);
	registry_free(reg);
	return l;
}

static void live_check(const struct life *l, const char *what)
{
	if (l->deleted && there("st/sessions/old/precious"))
		fail_msg("%s: what was deleted is there", what);
	if (l->r < 0 && !l->deleted) {
		/* Not said to be deleted: as the database has it, and both agree. */
		struct registry *reg = open_registry();
		struct session_info info;
		int r = registry_show(reg, NULL, "old", &info, &err);
		registry_free(reg);
		if ((r == 0) != there("st/sessions/old/precious"))
			fail_msg("%s: row and directory do not agree", what);
	}
	sx_check(l->made, what);
}

#endif
