/* cloister call TOOL --json JSON|@FILE|-: any tool, its arguments as JSON, its result as JSON. And
 * how a call is made for every other verb. */
#include "cli/cli.h"
#include "cli/input.h"
#include "cli/setup.h"
#include "codec/json.h"
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>

static int show(struct cli *c, struct call *call, show_fn how, struct err *err)
{
	struct str text = call_result(call);
	if (c->json || !how) {
		(void)fwrite(text.p, 1, text.n, stdout);
		(void)putchar('\n');
	}
	if (call_code(call) != ERR_OK) {
		*err = *call_err(call);
		return -err->code;
	}
	if (c->json || !how)
		return 0;
	_cleanup_(cleanup_json_decref) json_t *result = NULL;
	int r = json_parse(text, text.n, &result, err);
	if (r < 0)
		return err_wrap(err, "reading the result");
	how(result);
	return 0;
}

int cli_call(struct cli *c, const char *tool, const json_t *arguments, show_fn how, struct err *err)
{
	_cleanup_(cleanup_setup_free) struct setup *s = NULL;
	_cleanup_(cleanup_call_free) struct call *call = NULL;
	const struct tool *t = tool_find(&(struct tool_env){.tools = tools_all}, tool);
	bool runs = t && t->group == GROUP_EXECUTE;
	int r = setup_new(c, runs ? SETUP_COMMANDS : SETUP_CALLS, &s, err);
	if (r < 0)
		return r;
	struct call_input in = {.tool = tool,
		.arguments = arguments,
		.session_id = setup_session(s),
		.principal = setup_principal(s),
		.turn = setup_turn(s)};
	if ((r = call_start(setup_env(s), &in, &call, err)) < 0)
		return r;
	call_wait(call);
	return show(c, call, how, err);
}

int cli_command(struct cli *c, struct call_input *in, json_t **ret_result, struct err *err)
{
	_cleanup_(cleanup_setup_free) struct setup *s = NULL;
	_cleanup_(cleanup_call_free) struct call *call = NULL;
	int r = setup_new(c, SETUP_COMMANDS, &s, err);
	if (r < 0)
		return r;
	in->session_id = setup_session(s);
	in->principal = setup_principal(s);
	in->turn = setup_turn(s);
	if ((r = call_start(setup_env(s), in, &call, err)) < 0)
		return r;
	call_wait(call);
	if (call_code(call) != ERR_OK) {
		*err = *call_err(call);
		return -err->code;
	}
	struct str text = call_result(call);
	r = json_parse(text, text.n, ret_result, err);
	return r < 0 ? err_wrap(err, "reading the result") : 0;
}

/* --json is the arguments here, and --dry-run an argument that writing tools take. */
int verb_call(struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	const char *json = "{}";
	bool dry_run = false;
	const struct option own[] = {
		{"json", OPTION_TEXT, "JSON|@FILE|-", "The arguments, an object.", &json},
		{"dry-run", OPTION_FLAG, NULL, "Show what would change without changing it.",
			&dry_run},
		OPTION_END,
	};
	struct arguments a;
	_cleanup_buf_ struct buf text = buf_init((size_t)LIMIT_REQUEST_BYTES + 65536);
	_cleanup_(cleanup_json_decref) json_t *args = NULL;
	int r = cli_parse(c, own, argc, argv, &a, err);
	if (r < 0)
		return r;
	if (a.n != 1)
		return err_set(err, ERR_INVALID_ARGUMENT, "call takes the name of one tool");
	if (input_text(json, &text, err) < 0 || json_parse((struct str){buf_str(&text), text.len},
							LIMIT_REQUEST_BYTES, &args, err) < 0)
		return err_wrap(err, "--json");
	if (dry_run && json_is_object(args))
		(void)json_object_set_new(args, "dry_run", json_true());
	return cli_call(c, a.v[0], args, NULL, err);
}
