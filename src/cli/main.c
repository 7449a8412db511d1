/* cloister: finds the verb, runs it, says what went wrong. */
#include "cli/cli.h"
#include "tools/tools.h"

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define VERB(w, function, args, sentence)                                                          \
	{.word = #w, .arguments = args, .help = sentence, .run = function},
#define TOOL_VERB(w, t, args, how, sentence)                                                       \
	{.word = #w,                                                                               \
		.arguments = args,                                                                 \
		.help = sentence,                                                                  \
		.run = verb_tool,                                                                  \
		.tool = &tool_##t,                                                                 \
		.show = how},
const struct verb verbs[] = {
#include "cli/verbs.def"
	{.word = NULL},
};
#undef VERB
#undef TOOL_VERB

const struct verb *verb_find(const char *word)
{
	for (const struct verb *v = verbs; v->word; v++)
		if (strcmp(v->word, word) == 0)
			return v;
	return NULL;
}

void common_options(struct cli *c, struct option ret[COMMON_OPTIONS + 1])
{
	const struct option table[] = {
		{"session", OPTION_TEXT, "ID", "The session to work in.", &c->session},
		{"workspace", OPTION_TEXT, "DIR", "A directory of your own to work in.",
			&c->workspace},
		{"role", OPTION_TEXT, "ROLE", "Role of the caller; developer when not said.",
			&c->role},
		{"tenant", OPTION_TEXT, "NAME", "Tenant whose sessions are meant.", &c->tenant},
		{"config", OPTION_TEXT, "FILE", "Configuration file.", &c->config_file},
		{"single-user", OPTION_FLAG, NULL,
			"Start also without Landlock or openat2; every result then says so.",
			&c->single_user},
		{"json", OPTION_FLAG, NULL, "Print results as JSON objects.", &c->json},
		OPTION_END,
	};
	memcpy(ret, table, sizeof(table));
}

int take_setting(void *ctx, const char *const *args, unsigned *ret_taken, struct err *err)
{
	struct cli *c = ctx;
	return config_argument(&c->config, args, ret_taken, err);
}

int cli_parse(struct cli *c, const struct option *own, int argc, char **argv, struct arguments *ret,
	struct err *err)
{
	enum { OWN_MAX = 32 };
	struct option table[OWN_MAX + COMMON_OPTIONS + 1];
	unsigned n = 0;
	/* Its own first: what a verb calls --json may be something else. */
	for (; own && own->name; own++) {
		BUG_ON(n == OWN_MAX);
		table[n++] = *own;
	}
	common_options(c, table + n);
	return options_parse(table, argc, argv, take_setting, c, ret, err);
}

/* What was wrong and what would be right, made harmless for a terminal. */
static int complain(const struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(8192);
	buf_puts(&b, "cloister: ");
	text_show(&b, str_of(err->text[0] ? err->text : err_info(err->code)->text), false);
	buf_printf(&b, " (%s)\n", err_info(err->code)->name);
	if (err->hint[0]) {
		text_show(&b, str_of(err->hint), false);
		buf_putc(&b, '\n');
	}
	(void)fputs(buf_str(&b), stderr);
	return err_info(err->code)->exit;
}

static int run(int argc, char **argv, struct err *err)
{
	struct cli c = {.session = NULL};
	const char *word = argc > 1 ? argv[1] : "help";
	const struct verb *v = verb_find(strcmp(word, "--help") == 0      ? "help"
					 : strcmp(word, "--version") == 0 ? "version"
									  : word);
	if (!v) {
		(void)err_set(err, ERR_INVALID_ARGUMENT, "no command is called '%.64s'", word);
		return err_hint(err, "the commands: cloister help");
	}
	int r = config_init(&c.config, err);
	if (r == 0)
		r = v->run(&c, v, argc > 1 ? argc - 2 : 0, argv + 2, err);
	config_done(&c.config);
	if (fflush(stdout) != 0 && r == 0)
		r = err_set(err, ERR_IO, "the output could not be written");
	return r;
}

/* Keep what one call has used for the next, up to a limit: giving it back and touching it anew
 * costs more than a small call itself. */
static void keep_memory(void)
{
	enum { KEPT = 1024 * 1024, GROWN_BY = 256 * 1024 };
	(void)mallopt(M_TRIM_THRESHOLD, KEPT);
	(void)mallopt(M_TOP_PAD, GROWN_BY);
}

int main(int argc, char **argv)
{
	struct err err = {.code = ERR_OK};
	size_t seed = 0;
	keep_memory();
	(void)signal(SIGPIPE, SIG_IGN);
	/* Now, since jansson would read /dev/urandom at the first object, which core no longer may
	 * then: without it names could be chosen to collide. */
	if (getrandom(&seed, sizeof(seed), 0) == (ssize_t)sizeof(seed))
		json_object_seed(seed);
	int r = run(argc, argv, &err);
	return r < 0 ? complain(&err) : r;
}
