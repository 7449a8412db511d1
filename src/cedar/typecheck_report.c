/* Findings of the type checker that show types. */
#include "cedar/slice.h"
#include "cedar/type_print.h"
#include "cedar/typecheck.h"

void ced_report_type(
	struct ced_checker *c, struct ced_pos pos, const char *wanted, const struct ced_type *type)
{
	char text[CED_TY_TEXT_MAX];

	ced_report_error(c->report, pos, "this must be %s, but it is %s", wanted,
		ced_type_text(c->s, type, text));
}

void ced_report_pair(struct ced_checker *c, struct ced_pos pos, const char *what,
	const struct ced_type *a, const struct ced_type *b)
{
	char text_a[CED_TY_TEXT_MAX], text_b[CED_TY_TEXT_MAX];

	ced_report_error(c->report, pos, "%s: %s and %s", what, ced_type_text(c->s, a, text_a),
		ced_type_text(c->s, b, text_b));
}

void ced_report_attr(struct ced_checker *c, struct ced_pos pos, const char *what,
	const struct ced_name *name, const struct ced_type *of)
{
	char text[CED_TY_TEXT_MAX];

	ced_report_error(c->report, pos, "%s: `%.*s` of %s", what, ced_shown(ced_name_slice(name)),
		name->text, ced_type_text(c->s, of, text));
}
