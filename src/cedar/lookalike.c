/* Warnings about characters that deceive. See lookalike.h. */
#include "cedar/lookalike.h"

#include "cedar/characters.h"
#include "cedar/out.h"
#include "cedar/slice.h"
#include "cedar/utf8.h"

#include <stdio.h>

/* ---- characters ---- */

struct scripts {
	uint64_t bits[3];
};

static const struct scripts any = {{UINT64_MAX, UINT64_MAX, UINT64_MAX}};

/* The row of a character: the last one that begins at or before it. The first row begins at 0. */
static uint32_t row_of(uint32_t c)
{
	size_t low = 0, high = sizeof(ced_characters) / sizeof(ced_characters[0]);

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (ced_characters[middle] >> 11 <= c)
			low = middle;
		else
			high = middle;
	}
	return ced_characters[low];
}

static void narrow(struct scripts *s, uint32_t c)
{
	const uint64_t *other = ced_script_sets[row_of(c) >> 2 & 511];

	for (int i = 0; i < 3; i++)
		s->bits[i] &= other[i];
}

static bool is_none(const struct scripts *s)
{
	return (s->bits[0] | s->bits[1] | s->bits[2]) == 0;
}

/* Embeddings, overrides and isolates of the bidirectional algorithm (UAX 9). */
static bool turns_direction(uint32_t c)
{
	return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static bool fits_in_name(uint32_t c)
{
	return c < 0x80 ? c >= 0x20 && c < 0x7f : row_of(c) & 1;
}

/* ---- texts ---- */

struct look {
	struct scripts scripts; /* that all characters so far have in common */
	bool turns;
	uint32_t outside; /* the first character that no name should have */
	bool has_outside;
};

static void look_at(struct look *l, struct ced_slice text)
{
	size_t length;

	for (size_t i = 0; i < text.n; i += length) {
		uint32_t c = ced_utf8_decode(text.p + i, &length);

		l->turns |= turns_direction(c);
		if (!l->has_outside && !fits_in_name(c)) {
			l->outside = c;
			l->has_outside = true;
		}
		narrow(&l->scripts, c);
	}
}

/* A pattern is judged as it is shown, like in the official engine: what cannot be seen is there an
 * escape, whose letters are Latin. */
static void look_at_shown(struct look *l, struct ced_slice text)
{
	size_t length;

	for (size_t i = 0; i < text.n; i += length) {
		uint32_t c = ced_utf8_decode(text.p + i, &length);

		if (c != 0)
			narrow(&l->scripts, row_of(c) & 2 ? 'u' : c);
	}
}

enum { SHOWN_MAX = 100 };

/* Characters of which a warning is about must not do to the reader what it warns of. */
static void show(char to[SHOWN_MAX + 16], struct ced_slice text)
{
	size_t at = 0, length;

	for (size_t i = 0; i < text.n; i += length) {
		uint32_t c = ced_utf8_decode(text.p + i, &length);

		if (at + 10 > SHOWN_MAX) {
			at += (size_t)snprintf(to + at, 4, "...");
			break;
		}
		if (row_of(c) & 2) {
			at += (size_t)snprintf(to + at, 11, "\\u{%x}", (unsigned)c);
			continue;
		}
		memcpy(to + at, text.p + i, length);
		at += length;
	}
	to[at] = '\0';
}

static void warn(struct cedar_report *report, struct ced_pos pos, const char *kind,
	struct ced_slice text, const char *what)
{
	char shown[SHOWN_MAX + 16];

	show(shown, text);
	ced_report_warning(report, pos, "the %s `%s` %s", kind, shown, what);
}

static void check_string(struct cedar_report *report, struct ced_pos pos, struct ced_slice text)
{
	struct look l = {.scripts = any};

	look_at(&l, text);
	if (l.turns)
		warn(report, pos, "string", text,
			"contains characters that turn the direction of writing");
	else if (is_none(&l.scripts))
		warn(report, pos, "string", text, "mixes scripts");
}

static void check_name(struct cedar_report *report, struct ced_pos pos, const struct ced_name *name)
{
	struct ced_slice text = ced_name_slice(name);
	struct look l = {.scripts = any};
	char what[64];

	look_at(&l, text);
	if (l.turns) {
		warn(report, pos, "name", text,
			"contains characters that turn the direction of writing");
	} else if (l.has_outside) {
		(void)snprintf(what, sizeof(what), "contains U+%04X, which no name should contain",
			(unsigned)l.outside);
		warn(report, pos, "name", text, what);
	} else if (is_none(&l.scripts)) {
		warn(report, pos, "name", text, "mixes scripts");
	}
}

static void check_pattern(
	struct cedar_report *report, struct ced_pos pos, const struct ced_pattern *pattern)
{
	struct look l = {.scripts = any};

	for (uint32_t i = 0; i < pattern->count; i++)
		look_at_shown(&l, ced_name_slice(pattern->parts[i]));
	if (is_none(&l.scripts))
		ced_report_warning(report, pos, "the pattern mixes scripts");
}

/* ---- policies ---- */

static void check(struct cedar_report *report, const struct ced_expr *e);

static void check_list(struct cedar_report *report, const struct ced_expr *const *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		check(report, items[i]);
}

static void check_record(struct cedar_report *report, const struct ced_expr *e)
{
	for (uint32_t i = 0; i < e->u.record.count; i++) {
		check_name(report, e->pos, e->u.record.entries[i].key);
		check(report, e->u.record.entries[i].value);
	}
}

static void check_literal(struct cedar_report *report, const struct ced_expr *e)
{
	const struct ced_value *v = &e->u.literal;

	if (v->kind == CED_ENTITY)
		check_name(report, e->pos, v->u.uid->id);
	else if (v->kind == CED_STRING)
		check_string(report, e->pos, ced_name_slice(v->u.string));
}

static void check_has(struct cedar_report *report, const struct ced_expr *e)
{
	for (uint32_t i = 0; i < e->u.has.count; i++)
		check_name(report, e->pos, e->u.has.path[i]);
	check(report, e->u.has.left);
}

/* As deep as the parser lets expressions nest. */
static void check(struct cedar_report *report, const struct ced_expr *e)
{
	switch ((int)e->kind) {
	case CED_EXPR_LITERAL: check_literal(report, e); break;
	case CED_EXPR_VAR: break;
	case CED_EXPR_GET:
		check_name(report, e->pos, e->u.get.attr);
		check(report, e->u.get.left);
		break;
	case CED_EXPR_HAS: check_has(report, e); break;
	case CED_EXPR_LIKE:
		check_pattern(report, e->pos, e->u.like.pattern);
		check(report, e->u.like.left);
		break;
	case CED_EXPR_IS:
		check(report, e->u.is.left);
		if (e->u.is.in)
			check(report, e->u.is.in);
		break;
	case CED_EXPR_IF:
		check(report, e->u.cond.test);
		check(report, e->u.cond.yes);
		check(report, e->u.cond.no);
		break;
	case CED_EXPR_SET: check_list(report, e->u.list.items, e->u.list.count); break;
	case CED_EXPR_CALL: check_list(report, e->u.call.args, e->u.call.count); break;
	case CED_EXPR_RECORD: check_record(report, e); break;
	default:
		check(report, e->u.op.left);
		if (ced_expr_is_binary(e->kind))
			check(report, e->u.op.right);
		break;
	}
}

static void check_scope(struct cedar_report *report, const struct ced_scope *scope)
{
	for (uint32_t i = 0; i < scope->count; i++)
		check_name(report, scope->pos, scope->uids[i]->id);
}

void ced_lookalike_check(const struct ced_policy *policy, struct cedar_report *report)
{
	check_scope(report, &policy->principal);
	check_scope(report, &policy->action);
	check_scope(report, &policy->resource);
	for (uint32_t i = 0; i < policy->condition_count; i++)
		check(report, policy->conditions[i].body);
}
