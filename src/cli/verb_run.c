/*
 * cloister run -- COMMAND: a program in the fence on a copy of a directory; when it has ended its
 * changes are shown, and taken or left.
 */
#include "cli/cli.h"
#include "cli/setup.h"
#include "cli/stream.h"
#include "codec/json.h"
#include "daemon/sandbox_start.h"

#include <stdio.h>
#include <string.h>

enum { RUN_TIMEOUT_MS = 600 * 1000 };

struct run_options {
	bool commit, ask, discard, print_plan;
	int64_t timeout;
};

/* A diff comes from files: what could move a cursor in it is made visible. */
static void show_text(struct str text)
{
	_cleanup_buf_ struct buf b = buf_init(8 * text.n + 64);
	text_show(&b, text, true);
	(void)fputs(buf_str(&b), stdout);
	(void)fflush(stdout);
}

static bool agree(void *ctx _unused_, struct str diff)
{
	char answer[16];
	show_text(diff);
	(void)fputs("Keep these changes? [y/N] ", stderr);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void show(const json_t *result)
{
	const json_t *undo = json_object_get(result, "undo");
	size_t n = json_array_size(json_object_get(result, "changes"));
	if (json_is_true(json_object_get(result, "dry_run"))) {
		if (n > 0)
			(void)fprintf(stderr, "cloister: %zu %s left\n", n,
				n == 1 ? "change was" : "changes were");
	} else if (undo) {
		(void)fprintf(stderr, "cloister: %zu %s kept; cloister undo %lld takes it back\n",
			n, n == 1 ? "change was" : "changes were",
			(long long)json_integer_value(json_object_get(undo, "seq")));
	}
}

static void show_discarded(const json_t *result)
{
	const char *diff = json_string_value(json_object_get(result, "diff"));
	if (diff)
		show_text(str_of(diff));
	show(result);
}

static int print_plan(struct cli *c, struct err *err)
{
	struct fence_config config;
	struct fence_plan plan;
	const struct fence_limits nothing = {0};
	_cleanup_buf_ struct buf b = buf_init(65536);
	int r = setup_config(c, err);
	if (r < 0)
		return r;
	const struct sandbox_options o = {.most = {.scratch_bytes = 2 * c->config.quota_bytes,
						  .scratch_entries = 2 * c->config.quota_entries}};
	sandbox_config(&o, &config);
	plan_make(&config, &nothing, 0, (uint32_t)getpid(), &plan);
	plan_print(&plan, &b);
	(void)fputs(buf_str(&b), stdout);
	return 0;
}

static json_t *arguments_of(const struct arguments *a, const struct run_options *o)
{
	json_t *words = json_array();
	for (unsigned i = 0; i < a->n; i++)
		if (json_array_append_new(words, json_string(a->v[i])) < 0) {
			json_decref(words);
			return NULL;
		}
	return json_pack("{s:o,s:I,s:b}", "argv", words, "timeout_ms",
		(json_int_t)(o->timeout ? o->timeout : RUN_TIMEOUT_MS), "dry_run",
		o->discard ? 1 : 0);
}

static int check(struct run_options *o, const struct arguments *a, struct err *err)
{
	bool terminal = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	if (o->commit + o->ask + o->discard > 1)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"--commit, --ask and --discard exclude each other");
	if (a->n == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "run takes a command after --");
	if (!o->commit && !o->discard)
		o->ask = true;
	if (o->ask && !terminal) {
		(void)err_set(err, ERR_INVALID_ARGUMENT,
			"there is no terminal to ask whether the changes are to be kept");
		return err_hint(err, "--commit keeps them, --discard shows and leaves them");
	}
	return 0;
}

int verb_run(struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	struct arguments a;
	struct run_options o = {0};
	const struct option own[] = {
		{"commit", OPTION_FLAG, NULL, "Keep what the command changed.", &o.commit},
		{"ask", OPTION_FLAG, NULL, "Show it and ask; so without any of the three.", &o.ask},
		{"discard", OPTION_FLAG, NULL, "Show it and leave it.", &o.discard},
		{"timeout-ms", OPTION_INT, "MS", "When to end the command.", &o.timeout},
		{"print-plan", OPTION_FLAG, NULL, "Print what the fence is made of.",
			&o.print_plan},
		OPTION_END,
	};
	_cleanup_(cleanup_json_decref) json_t *args = NULL;
	int r = cli_parse(c, own, argc, argv, &a, err);
	if (r == 0 && o.print_plan)
		return print_plan(c, err);
	if (r < 0 || (r = check(&o, &a, err)) < 0)
		return r;
	if (!(args = arguments_of(&a, &o)))
		return err_set(err, ERR_INVALID_ARGUMENT, "an argument is not UTF-8");
	struct call_input in = {.tool = "shell_run",
		.arguments = args,
		.output = stream_put,
		.has_input = !o.ask,
		.input_fd = STDIN_FILENO,
		.agree = o.ask ? agree : NULL};
	return stream_run(c, &in, o.discard ? show_discarded : show, err);
}
