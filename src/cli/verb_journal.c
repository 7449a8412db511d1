/* cloister journal show|verify: what was done, and whether the record of it is whole. Both only
 * read. */
#include "cli/cli.h"
#include "cli/setup.h"
#include "codec/json_write.h"
#include "journal/jshow.h"
#include "journal/jverify.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct wish {
	struct cli *c;
	struct jfilter filter;
	const char *expect, *key;
	bool every_seal;
	int log_fd;
};

static void put_text(struct str s)
{
	_cleanup_buf_ struct buf b = buf_init(s.n * 8 + 64);
	text_show(&b, s, false);
	(void)fwrite(buf_str(&b), 1, b.len, stdout);
}

static void put_time(uint64_t ms)
{
	char text[32];
	time_t s = (time_t)(ms / 1000);
	struct tm tm;
	if (!gmtime_r(&s, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		text[0] = '\0';
	printf("%s", text);
}

/* SEQ TIME SESSION TURN KIND TOOL CODE PATHS */
static bool show_record(void *ctx, const struct jrecord *r, struct str line)
{
	const struct wish *w = ctx;
	if (w->c->json) {
		(void)fwrite(line.p, 1, line.n, stdout);
		(void)putchar('\n');
		return !ferror(stdout);
	}
	printf("%8llu  ", (unsigned long long)r->seq);
	put_time(r->time);
	const struct str columns[] = {r->session, r->turn, r->kind, r->tool, r->code};
	for (unsigned i = 0; i < ARRAY_LEN(columns); i++) {
		printf("  ");
		put_text(columns[i].n ? columns[i] : str_of("-"));
	}
	for (unsigned i = 0; i < r->paths.n; i++) {
		(void)putchar(' ');
		put_text(r->paths.v[i]);
	}
	(void)putchar('\n');
	return !ferror(stdout);
}

static int show(struct wish *w, struct err *err)
{
	return jshow(w->log_fd, &w->filter, show_record, w, err);
}

static int open_key(const struct wish *w, struct jkey **ret, struct err *err)
{
	char pem[4096];
	if (!w->key)
		return jkey_published(w->log_fd, ret, err);
	FILE *f = fopen(w->key, "re");
	if (!f)
		return err_set(err, ERR_NOT_FOUND, "the key '%.200s' cannot be opened", w->key);
	size_t n = fread(pem, 1, sizeof(pem), f);
	(void)fclose(f);
	return jkey_public((struct str){pem, n}, ret, err);
}

static void say_verified(const struct wish *w, const struct jverify_result *v, struct jkey *key)
{
	char hex[SHA256_HEX + 1];
	struct sha256 print;
	jkey_fingerprint(key, &print);
	sha256_hex(&print, hex);
	if (!w->c->json) {
		printf("%llu records in %llu groups are whole\nposition: %llu:%s\nkey: sha256:%s\n",
			(unsigned long long)v->records, (unsigned long long)v->groups,
			(unsigned long long)v->last.seq, v->last.head, hex);
		return;
	}
	_cleanup_buf_ struct buf b = buf_init(4096);
	jw_open(&b, '{');
	jw_int(&b, "seq", (int64_t)v->last.seq);
	jw_cstr(&b, "head", v->last.head);
	jw_int(&b, "records", (int64_t)v->records);
	jw_int(&b, "groups", (int64_t)v->groups);
	jw_int(&b, "segments", v->segments);
	jw_cstr(&b, "key_sha256", hex);
	jw_close(&b, '}');
	printf("%s\n", buf_str(&b));
}

static int verify(struct wish *w, struct err *err)
{
	_cleanup_(cleanup_jkey_free) struct jkey *key = NULL;
	struct jposition expect;
	struct jverify_result v;
	int r = w->expect ? jposition_parse(w->expect, &expect, err) : 0;
	if (r < 0 || (r = open_key(w, &key, err)) < 0)
		return r;
	const struct jverify_options o = {.dir_fd = w->log_fd,
		.key = key,
		.expect = w->expect ? &expect : NULL,
		.every_seal = w->every_seal};
	r = jverify(&o, &v, err);
	if (r == 0)
		say_verified(w, &v, key);
	return r;
}

int verb_journal(
	struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	struct wish w = {.c = c, .log_fd = -1};
	struct arguments a;
	int64_t since = 0;
	int key_fd;
	const struct option own[] = {
		{"turn", OPTION_TEXT, "TURN", "show: only records of this turn.", &w.filter.turn},
		{"tool", OPTION_TEXT, "NAME", "show: only records of this tool.", &w.filter.tool},
		{"code", OPTION_TEXT, "CODE", "show: only records with this outcome.",
			&w.filter.code},
		{"call", OPTION_TEXT, "ID", "show: only records of this call.", &w.filter.call},
		{"since", OPTION_INT, "SEQ", "show: only records behind this number.", &since},
		{"expect", OPTION_TEXT, "SEQ:HASH",
			"verify: this position of an earlier result must be in the journal.",
			&w.expect},
		{"key", OPTION_TEXT, "FILE",
			"verify: the public key (PEM); by default the one beside the journal.",
			&w.key},
		{"every-seal", OPTION_FLAG, NULL,
			"verify: check every signature, not only the last of each segment.",
			&w.every_seal},
		OPTION_END,
	};
	int r = cli_parse(c, own, argc, argv, &a, err);
	if (r == 0 && a.n != 1)
		r = err_set(err, ERR_INVALID_ARGUMENT, "journal takes one of: show, verify");
	if (r < 0 || (r = setup_config(c, err)) < 0 ||
		(r = setup_journal_dirs(&c->config, &w.log_fd, &key_fd, err)) < 0)
		return r;
	(void)close(key_fd);
	w.filter.session = c->session;
	w.filter.since = since > 0 ? (uint64_t)since : 0;
	if (strcmp(a.v[0], "show") == 0)
		r = show(&w, err);
	else if (strcmp(a.v[0], "verify") == 0)
		r = verify(&w, err);
	else
		r = err_set(err, ERR_INVALID_ARGUMENT,
			"journal takes no '%.64s'; it takes show or verify", a.v[0]);
	(void)close(w.log_fd);
	return r;
}
