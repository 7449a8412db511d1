/* cloister session create|show|list|extend|delete|fork|export|adopt|sweep: the registry by hand. */
#include "cli/cli.h"
#include "cli/setup.h"
#include "codec/json_write.h"
#include "session/session_json.h"
#include "workspace/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* What the options of all subcommands are; each uses some of them. */
struct wish {
	struct cli *c;
	struct registry *reg;
	const char *tenant, *id; /* the argument; NULL: none */
	const char *second;      /* fork: the new id */
	const char *owner, *after;
	int base_fd; /* below which workspaces of sessions are */
	int64_t ttl_s, limit;
	bool has_ttl, all;
	char last[LIMIT_SESSION_ID + 1]; /* adopt --all: of the page before */
};

/* --- showing ---------------------------------------------------------------------------------- */

static void print_time(const char *name, int64_t ms)
{
	char text[32];
	struct tm tm;
	time_t t = (time_t)(ms / 1000);
	if (ms == 0 || !gmtime_r(&t, &tm) ||
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		(void)snprintf(text, sizeof(text), "never");
	printf("%s: %s\n", name, text);
}

static void print_info(const struct cli *c, const struct session_info *i)
{
	if (c->json) {
		_cleanup_buf_ struct buf b = buf_init(8192);
		session_put_json(&b, i);
		printf("%s\n", buf_str(&b));
		return;
	}
	printf("id: %s\ntenant: %s\n", i->id, i->tenant);
	_cleanup_buf_ struct buf owner = buf_init(2048);
	text_show(&owner, str_of(i->owner), false);
	printf("owner: %s\n", buf_str(&owner));
	print_time("created", i->created_ms);
	print_time("used", i->used_ms);
	print_time("expires", i->expires_ms);
	printf("idle limit: %lld s\n", (long long)(i->idle_ms / 1000));
	printf("bytes: %lld of %lld\n", (long long)i->usage_bytes, (long long)i->quota_bytes);
	printf("entries: %lld of %lld\n", (long long)i->usage_entries, (long long)i->quota_entries);
	if (i->expired)
		printf("expired: waits for the sweep\n");
}

/* --- subcommands ------------------------------------------------------------------------------ */

static int need_id(const struct wish *w, struct err *err)
{
	return w->id ? 0 : err_set(err, ERR_INVALID_ARGUMENT, "the session's id is missing");
}

static int create(struct wish *w, struct err *err)
{
	struct session *s;
	struct session_info info;
	struct session_spec spec = {
		.tenant = w->tenant, .id = w->id, .owner = w->owner, .role = w->c->role};
	if (w->has_ttl)
		spec.ttl_s = w->ttl_s == 0 ? -1 : w->ttl_s;
	int r = registry_create(w->reg, &spec, &s, err);
	if (r < 0)
		return r;
	session_info(s, &info);
	session_release(s);
	print_info(w->c, &info);
	return 0;
}

static int show(struct wish *w, struct err *err)
{
	struct session_info info;
	int r = need_id(w, err);
	if (r == 0)
		r = registry_show(w->reg, w->tenant, w->id, &info, err);
	if (r == 0)
		print_info(w->c, &info);
	return r;
}

struct listing {
	const struct cli *c;
	struct buf out;
	char last[LIMIT_SESSION_ID + 1];
};

static bool list_one(void *ctx, const struct session_info *i)
{
	struct listing *l = ctx;
	(void)snprintf(l->last, sizeof(l->last), "%s", i->id);
	if (l->c->json)
		session_put_json(&l->out, i);
	else
		printf("%-40s %12lld bytes%s\n", i->id, (long long)i->usage_bytes,
			i->expired ? "  expired" : "");
	return true;
}

static int list(struct wish *w, struct err *err)
{
	bool more = false;
	struct listing l = {.c = w->c, .out = buf_init(64 * 1024 * 1024)};
	if (w->limit < 1 || w->limit > REGISTRY_PAGE_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "--limit is 1 to %d", REGISTRY_PAGE_MAX);
	buf_puts(&l.out, "{\"sessions\":[");
	int r = registry_page(
		w->reg, w->tenant, w->after, (unsigned)w->limit, list_one, &l, &more, err);
	buf_putc(&l.out, ']');
	if (more)
		jw_cstr(&l.out, "next_after", l.last);
	buf_putc(&l.out, '}');
	if (r == 0 && w->c->json)
		printf("%s\n", buf_str(&l.out));
	else if (r == 0 && more)
		printf("more: --after %s\n", l.last);
	buf_done(&l.out);
	return r;
}

static int extend(struct wish *w, struct err *err)
{
	struct session_info info;
	int r = need_id(w, err);
	if (r == 0 && !w->has_ttl)
		r = err_set(err, ERR_INVALID_ARGUMENT,
			"extend needs --ttl SECONDS, from now; 0 for never");
	if (r == 0)
		r = registry_extend(w->reg, w->tenant, w->id, w->ttl_s, &info, err);
	if (r == 0)
		print_info(w->c, &info);
	return r;
}

static int drop(struct wish *w, struct err *err)
{
	int r = need_id(w, err);
	if (r == 0)
		r = registry_delete(w->reg, w->tenant, w->id, err);
	if (r == 0)
		printf(w->c->json ? "{\"deleted\":\"%s\"}\n" : "deleted %s\n", w->id);
	return r;
}

/* --- after a back-up was restored --- */

struct adopting {
	struct wish *w;
	char ids[REGISTRY_PAGE_MAX][LIMIT_SESSION_ID + 1];
	unsigned n; /* of the page */
	unsigned adopted, failed;
};

static bool note_managed(void *ctx, const struct session_info *i)
{
	struct adopting *a = ctx;
	if (i->kind == SESSION_MANAGED)
		memcpy(a->ids[a->n++], i->id, sizeof(i->id));
	(void)snprintf(a->w->last, sizeof(a->w->last), "%s", i->id);
	return true;
}

static void adopt_page(struct adopting *a)
{
	struct session_info info;
	struct err why;
	for (unsigned i = 0; i < a->n; i++) {
		if (registry_adopt(a->w->reg, a->w->tenant, a->ids[i], &info, &why) == 0) {
			a->adopted++;
			continue;
		}
		a->failed++;
		(void)fprintf(stderr, "cloister: %s: %s\n", a->ids[i], why.text);
	}
	a->n = 0;
}

/* Every session of the tenant; one that cannot be adopted does not stop the others. */
static int adopt_all(struct wish *w, struct err *err)
{
	_cleanup_free_ struct adopting *a = calloc(1, sizeof(*a));
	bool more = true;
	if (!a)
		return err_oom(err);
	a->w = w;
	while (more) {
		int r = registry_page(w->reg, w->tenant, w->last[0] ? w->last : NULL,
			REGISTRY_PAGE_MAX, note_managed, a, &more, err);
		if (r < 0)
			return r;
		adopt_page(a);
	}
	printf(w->c->json ? "{\"adopted\":%u,\"failed\":%u}\n" : "adopted: %u\nfailed: %u\n",
		a->adopted, a->failed);
	return a->failed ? err_set(err, ERR_CONFLICT, "%u sessions could not be adopted", a->failed)
			 : 0;
}

static int adopt(struct wish *w, struct err *err)
{
	struct session_info info;
	if (w->all && w->id)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "adopt takes the id of a session, or --all");
	if (w->all)
		return adopt_all(w, err);
	int r = need_id(w, err);
	if (r == 0)
		r = registry_adopt(w->reg, w->tenant, w->id, &info, err);
	if (r == 0)
		print_info(w->c, &info);
	return r;
}

static int sweep(struct wish *w, struct err *err)
{
	struct sweep_budget all = {0};
	struct sweep_result done = {0};
	int r = registry_sweep(w->reg, &all, &done, err);
	if (r < 0)
		return r;
	if (w->c->json) {
		printf("{\"expired\":%u,\"entries\":%lld,\"stuck\":%u}\n", done.expired,
			(long long)done.entries, done.stuck);
		return 0;
	}
	printf("expired sessions: %u\nnames removed: %lld\n", done.expired,
		(long long)done.entries);
	if (done.stuck) {
		_cleanup_buf_ struct buf why = buf_init(2048);
		text_show(&why, str_of(done.stuck_why), false);
		printf("could not be removed now: %u (%s)\n", done.stuck, buf_str(&why));
	}
	return 0;
}

/* The history as a git fast-import stream on standard output. */
static int export(struct wish *w, struct err *err)
{
	struct session *s;
	struct workspace *ws;
	struct session_info info;
	int r;
	/* Shown first, since a session that is not there must not be created by exporting it. */
	if ((r = need_id(w, err)) < 0 ||
		(r = registry_show(w->reg, w->tenant, w->id, &info, err)) < 0 ||
		(r = registry_session(w->reg, w->tenant, w->id, &s, err)) < 0)
		return r;
	if ((r = session_workspace(s, &ws, err)) == 0)
		r = history_export(ws, STDOUT_FILENO, err);
	session_release(s);
	return r;
}

/* The new session's directory, before anything has opened it as a workspace: what is in it when it
 * is opened first is counted then. */
static int open_new_directory(const struct wish *w, const char *tenant, int *ret, struct err *err)
{
	char path[2 * LIMIT_SESSION_ID + 4];
	bool own = strcmp(tenant, TENANT_DEFAULT) != 0;
	(void)snprintf(path, sizeof(path), "%s%s%s", own ? tenant : "", own ? "/" : "", w->second);
	*ret = openat(w->base_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret < 0 ? err_sys(err, errno, "opening the new session's directory") : 0;
}

/* What the fork does not have. */
static void tell_lost(const struct fork_result *done)
{
	if (done->skipped > 0)
		(void)fprintf(stderr,
			"not copied: %lld special files and other file systems, the first is %s\n",
			(long long)done->skipped, done->first_skipped);
	if (done->attributes_lost > 0)
		(void)fprintf(stderr, "owner, list or attributes could not be kept of %lld\n",
			(long long)done->attributes_lost);
}

static int fork_into(
	const struct wish *w, struct session *from, struct session *to, struct err *err)
{
	struct workspace *ws;
	struct fork_result done;
	struct session_info info;
	_cleanup_close_ int fd = -1;
	int r;
	if ((r = session_workspace(from, &ws, err)) < 0 ||
		(r = open_new_directory(w, session_tenant(to), &fd, err)) < 0 ||
		(r = workspace_fork(ws, fd, &done, err)) < 0 ||
		(r = session_workspace(to, &ws, err)) < 0)
		return r;
	session_info(to, &info);
	print_info(w->c, &info);
	tell_lost(&done);
	return 0;
}

static int fork_session(struct wish *w, struct err *err)
{
	struct session *from = NULL, *to = NULL;
	struct session_info info;
	struct session_spec spec = {.tenant = w->tenant, .id = w->second, .owner = w->owner};
	int r = need_id(w, err);
	if (r == 0 && !w->second)
		r = err_set(err, ERR_INVALID_ARGUMENT, "fork takes a session's id and the new one");
	if (r == 0)
		r = registry_show(w->reg, w->tenant, w->id, &info, err);
	if (r == 0)
		r = registry_session(w->reg, w->tenant, w->id, &from, err);
	if (r < 0)
		return r;
	spec.role = info.role;
	if ((r = registry_create(w->reg, &spec, &to, err)) == 0) {
		struct err why;
		r = fork_into(w, from, to, err);
		session_release(to);
		/* Half a copy is no session. */
		if (r < 0 && registry_delete(w->reg, w->tenant, w->second, &why) < 0)
			r = err_wrap(err, "the half copy stays (%s)", err_info(why.code)->name);
	}
	session_release(from);
	return r;
}

static const struct {
	const char *word;
	int (*run)(struct wish *w, struct err *err);
} subcommands[] = {
	{"create", create},
	{"show", show},
	{"list", list},
	{"extend", extend},
	{"delete", drop},
	{"fork", fork_session},
	{"export", export},
	{"adopt", adopt},
	{"sweep", sweep},
};

static int run(struct wish *w, const char *word, struct err *err)
{
	_cleanup_(cleanup_setup_free) struct setup *s = NULL;
	for (unsigned i = 0; i < ARRAY_LEN(subcommands); i++) {
		if (strcmp(subcommands[i].word, word) != 0)
			continue;
		int r = setup_new(w->c, SETUP_REGISTRY, &s, err);
		if (r < 0)
			return r;
		w->reg = setup_registry(s);
		w->base_fd = setup_base_fd(s);
		w->tenant = w->c->tenant;
		return subcommands[i].run(w, err);
	}
	(void)err_set(err, ERR_INVALID_ARGUMENT, "session has no subcommand '%.64s'", word);
	return err_hint(err, "create, show, list, extend, delete, fork, export, adopt, sweep");
}

int verb_session(
	struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	struct wish w = {.c = c, .ttl_s = -1, .limit = 100};
	const struct option own[] = {
		{"owner", OPTION_TEXT, "NAME", "Owner of a new session.", &w.owner},
		{"ttl", OPTION_INT, "SECONDS", "Life of the session from now; 0: no end.",
			&w.ttl_s},
		{"limit", OPTION_INT, "N", "Sessions in one page of list.", &w.limit},
		{"after", OPTION_TEXT, "ID", "List the sessions after this one.", &w.after},
		{"all", OPTION_FLAG, NULL, "Adopt every session of the tenant.", &w.all},
		OPTION_END,
	};
	struct arguments a;
	int r = cli_parse(c, own, argc, argv, &a, err);
	if (r < 0)
		return r;
	if (a.n < 1 || a.n > 3)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"session takes a subcommand and the id of a session");
	w.has_ttl = w.ttl_s >= 0;
	w.id = a.n > 1 ? a.v[1] : c->session;
	w.second = a.n > 2 ? a.v[2] : NULL;
	return run(&w, a.v[0], err);
}
