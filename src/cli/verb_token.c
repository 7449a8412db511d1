/* cloister token add|list|remove: who may come in through the network doors. */
#include "cli/cli.h"
#include "cli/setup.h"
#include "codec/json_write.h"
#include "govern/token.h"
#include "session/session.h"
#include "session/state.h"
#include "sys/clock.h"

#include <stdio.h>
#include <string.h>

struct wish {
	struct cli *c;
	const char *name; /* NULL: none */
	bool admin;
	int64_t ttl_s;
	int state_fd;
};

static void put_token(struct buf *b, const struct token *t)
{
	jw_open(b, '{');
	jw_cstr(b, "name", t->name);
	jw_cstr(b, "tenant", t->tenant);
	jw_cstr(b, "role", role_word(t->role));
	jw_bool(b, "admin", t->admin);
	jw_int(b, "created", t->created);
	jw_int(b, "expires", t->expires);
}

static int set_names(const struct wish *w, struct token *t, struct err *err)
{
	const char *tenant = w->c->tenant ? w->c->tenant : TENANT_DEFAULT;
	int r = session_id_check("tenant", tenant, err);
	if (r == 0 && strlen(w->name) > TOKEN_NAME_MAX)
		r = err_set(err, ERR_INVALID_ARGUMENT, "a token's name has at most %d bytes",
			TOKEN_NAME_MAX);
	if (r == 0 && w->c->role)
		r = role_parse(w->c->role, &t->role, err);
	if (r < 0)
		return r;
	(void)snprintf(t->name, sizeof(t->name), "%s", w->name);
	(void)snprintf(t->tenant, sizeof(t->tenant), "%s", tenant);
	return 0;
}

static int add(struct wish *w, struct err *err)
{
	char text[TOKEN_LEN + 1];
	struct token t = {.role = ROLE_DEVELOPER, .admin = w->admin};
	if (!w->name)
		return err_set(err, ERR_INVALID_ARGUMENT, "the token's name is missing");
	int r = set_names(w, &t, err);
	if (r == 0 && w->ttl_s > 0)
		t.expires = clock_unix_ms() / 1000 + w->ttl_s;
	if (r == 0)
		r = token_add(w->state_fd, &t, text, err);
	if (r < 0)
		return r;
	if (!w->c->json) {
		printf("%s\n", text);
		(void)fprintf(stderr, "This token is shown once; only its digest is kept.\n");
		return 0;
	}
	_cleanup_buf_ struct buf b = buf_init(4096);
	put_token(&b, &t);
	jw_cstr(&b, "token", text);
	jw_close(&b, '}');
	printf("%s\n", buf_str(&b));
	return 0;
}

static int list(struct wish *w, struct err *err)
{
	_cleanup_(cleanup_token_table_free) struct token_table *t = NULL;
	_cleanup_buf_ struct buf b = buf_init(16 * 1024 * 1024);
	int r = token_table_new(w->state_fd, &t, err);
	if (r == 0)
		r = token_table_load(t, err);
	if (r < 0)
		return r;
	jw_open(&b, '{');
	jw_key(&b, "tokens");
	jw_open(&b, '[');
	for (unsigned i = 0; i < token_table_count(t); i++) {
		const struct token *k = token_table_at(t, i);
		put_token(&b, k);
		jw_close(&b, '}');
		if (!w->c->json)
			printf("%-32s %-24s %-12s%s%s\n", k->name, k->tenant, role_word(k->role),
				k->admin ? " admin" : "", k->expires ? " expires" : "");
	}
	jw_close(&b, ']');
	jw_close(&b, '}');
	if (w->c->json)
		printf("%s\n", buf_str(&b));
	return 0;
}

static int drop(struct wish *w, struct err *err)
{
	if (!w->name)
		return err_set(err, ERR_INVALID_ARGUMENT, "the token's name is missing");
	return token_remove(w->state_fd, w->name, err);
}

static int run(struct wish *w, const char *word, struct err *err)
{
	int (*what)(struct wish *, struct err *) = strcmp(word, "add") == 0      ? add
						   : strcmp(word, "list") == 0   ? list
						   : strcmp(word, "remove") == 0 ? drop
										 : NULL;
	if (!what) {
		(void)err_set(err, ERR_INVALID_ARGUMENT, "token has no subcommand '%.64s'", word);
		return err_hint(err, "add, list, remove");
	}
	struct state_paths paths = {
		.state_dir = w->c->config.state_dir, .base_dir = w->c->config.sessions_base};
	_cleanup_close_ int base = -1;
	int r = state_open(&paths, &w->state_fd, &base, err);
	if (r < 0)
		return r;
	r = what(w, err);
	(void)close(w->state_fd);
	return r;
}

int verb_token(struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	struct wish w = {.c = c};
	const struct option own[] = {
		{"admin", OPTION_FLAG, NULL, "It may read metrics and reload.", &w.admin},
		{"ttl", OPTION_INT, "SECONDS", "How long it counts; 0: without end.", &w.ttl_s},
		OPTION_END,
	};
	struct arguments a;
	int r = cli_parse(c, own, argc, argv, &a, err);
	if (r == 0)
		r = setup_config(c, err);
	if (r < 0)
		return r;
	if (a.n < 1 || a.n > 2)
		return err_set(err, ERR_INVALID_ARGUMENT, "token takes a subcommand and a name");
	w.name = a.n > 1 ? a.v[1] : NULL;
	return run(&w, a.v[0], err);
}
