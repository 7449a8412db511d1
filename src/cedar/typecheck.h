/*
 * The type checker: one expression in one request environment.
 *
 * An environment fixes the action, the types of principal and resource and, for a template, the
 * types of the entities that its slots stand for. The rules are those of strict validation: boolean
 * singletons, capabilities, least upper bounds without subtyping of records or entities (cedar.md
 * §10 and the language's formal model).
 *
 * A failed expression still gets a type where one is clear, so that one mistake is reported once
 * and the rest is looked at too.
 */
#ifndef CEDAR_TYPECHECK_H
#define CEDAR_TYPECHECK_H

#include "cedar/ast.h"
#include "cedar/caps.h"
#include "cedar/report.h"
#include "cedar/schema.h"

/* Steps of checking and of asking capability sets, for one policy in all its environments. */
enum { CEDAR_CHECK_STEPS_MAX = 20000000 };

struct ced_env {
	uint32_t action;                        /* index in the schema */
	uint32_t principal, resource;           /* entity types */
	uint32_t principal_slot, resource_slot; /* entity types, or CED_SCHEMA_NONE */
};

/* The type of every expression that was reached, by address; for the level checker. */
struct ced_type_memo;

struct ced_checker {
	const struct cedar_schema *s;
	struct ced_arena *arena;
	struct ced_types types; /* on top of the schema's */
	struct ced_shape_table shapes;
	struct cedar_report *report;
	struct ced_env env;
	const struct ced_type *t_bool, *t_true, *t_false, *t_long, *t_string;
	struct ced_type_memo *memo; /* NULL: not wanted */
	uint64_t steps;
	bool out_of_memory;
};

/* `arena` holds what the checker makes; it may be emptied after checker use. 0 or -1 (memory). */
int ced_checker_init(struct ced_checker *c, const struct cedar_schema *s, struct ced_arena *arena,
	struct cedar_report *report);

/* What checking gives. */
struct ced_answer {
	const struct ced_type *type; /* NULL: none could be found */
	const struct ced_caps *caps;
	bool ok;
};

struct ced_answer ced_check_expr(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e);

/* The conjunction of two answers, of which the left one is not False. */
struct ced_answer ced_check_join_and(
	struct ced_checker *c, struct ced_answer l, struct ced_answer r);

/* What an operand may have for a type. */
enum ced_want {
	CED_WANT_BOOL,
	CED_WANT_LONG,
	CED_WANT_STRING,
	CED_WANT_ENTITY,
	CED_WANT_RECORD_OR_ENTITY,
	CED_WANT_SET,
	CED_WANT_ENTITY_OR_SET, /* of entities */
	CED_WANT_EXT,           /* CED_WANT_EXT + enum ced_kind */
};
struct ced_answer ced_check_expect(struct ced_checker *c, const struct ced_caps *prior,
	const struct ced_expr *e, enum ced_want want);

/* Has checking run out of steps or memory? All answers are failures from then on. */
bool ced_checker_stopped(const struct ced_checker *c);

/* Parts of the checker that stand in files of their own. */
struct ced_answer ced_check_call(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e);
struct ced_answer ced_check_in(struct ced_checker *c, const struct ced_caps *prior,
	const struct ced_expr *left, const struct ced_expr *right);
struct ced_answer ced_check_equality(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e);

/* Findings that show types. They stand in a file of their own, so that the checker's recursion does
 * not carry their buffers. */
void ced_report_type(
	struct ced_checker *c, struct ced_pos pos, const char *wanted, const struct ced_type *type);
void ced_report_pair(struct ced_checker *c, struct ced_pos pos, const char *what,
	const struct ced_type *a, const struct ced_type *b);
void ced_report_attr(struct ced_checker *c, struct ced_pos pos, const char *what,
	const struct ced_name *name, const struct ced_type *of);

/* Type and action that an entity literal has, or CED_SCHEMA_NONE. */
uint32_t ced_check_literal_etype(const struct ced_checker *c, const struct ced_uid *uid);
uint32_t ced_check_literal_action(const struct ced_checker *c, const struct ced_uid *uid);

static inline struct ced_answer ced_answer_ok(
	const struct ced_type *type, const struct ced_caps *caps)
{
	return (struct ced_answer){.type = type, .caps = caps, .ok = true};
}

static inline struct ced_answer ced_answer_failed(const struct ced_type *type)
{
	return (struct ced_answer){.type = type};
}

/* The answer of something whose parts were `ok` or not: what failed passes no capabilities on. */
static inline struct ced_answer ced_answer_of(
	bool ok, const struct ced_type *type, const struct ced_caps *caps)
{
	return (struct ced_answer){.type = type, .caps = ok ? caps : NULL, .ok = ok};
}

static inline const struct ced_type *ced_check_bool(const struct ced_checker *c, bool value)
{
	return value ? c->t_true : c->t_false;
}

/* The type that was recorded for an expression in the last environment, or NULL. */
const struct ced_type *ced_check_type_of(const struct ced_checker *c, const struct ced_expr *e);
int ced_check_remember_types(struct ced_checker *c);
void ced_check_forget_types(struct ced_checker *c);

#endif
