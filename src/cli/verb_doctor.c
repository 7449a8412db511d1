/* cloister doctor: what this machine can do, found out by doing it. */
#include "cli/cli.h"
#include "cli/setup.h"
#include "codec/json_write.h"
#include "session/doctor.h"

#include <stdio.h>

static void print_json(const struct doctor_check *checks, unsigned n)
{
	_cleanup_buf_ struct buf b = buf_init(256 * 1024);
	jw_open(&b, '{');
	jw_bool(&b, "healthy", doctor_healthy(checks, n));
	jw_key(&b, "checks");
	jw_open(&b, '[');
	for (unsigned i = 0; i < n; i++) {
		jw_open(&b, '{');
		jw_cstr(&b, "name", checks[i].name);
		jw_cstr(&b, "outcome", doctor_word(checks[i].outcome));
		jw_bool(&b, "required", checks[i].required);
		jw_cstr(&b, "detail", checks[i].detail);
		jw_cstr(&b, "needed_by", checks[i].needed_by);
		if (checks[i].outcome != DOCTOR_OK && checks[i].advice)
			jw_cstr(&b, "advice", checks[i].advice);
		jw_close(&b, '}');
	}
	jw_close(&b, ']');
	jw_close(&b, '}');
	printf("%s\n", buf_str(&b));
}

static void print_check(const struct doctor_check *c)
{
	_cleanup_buf_ struct buf detail = buf_init(8 * DOCTOR_DETAIL_MAX);
	text_show(&detail, str_of(c->detail), false);
	printf("%-8s %-24s %s\n", doctor_word(c->outcome), c->name, buf_str(&detail));
	if (c->outcome == DOCTOR_OK)
		return;
	printf("         needed by: %s\n", c->needed_by);
	if (c->advice)
		printf("         to do: %s\n", c->advice);
}

int verb_doctor(
	struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	struct doctor_check checks[DOCTOR_CHECKS_MAX];
	struct arguments a;
	int r = cli_parse(c, NULL, argc, argv, &a, err);
	if (r == 0 && a.n > 0)
		r = err_set(
			err, ERR_INVALID_ARGUMENT, "doctor takes no argument like '%.64s'", a.v[0]);
	if (r == 0)
		r = setup_config(c, err);
	if (r < 0)
		return r;
	struct state_paths paths = {
		.state_dir = c->config.state_dir, .base_dir = c->config.sessions_base};
	unsigned n = doctor_run(&paths, checks);
	if (c->json)
		print_json(checks, n);
	else
		for (unsigned i = 0; i < n; i++)
			print_check(&checks[i]);
	if (doctor_healthy(checks, n))
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "something that Cloister needs is missing");
}
