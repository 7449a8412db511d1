/*
 * libcedar-c: the Cedar policy language (4.5) in C, with no dependency beyond libc.
 *
 *     cedar_policies *policies;
 *     cedar_entities *entities;
 *     cedar_request *request;
 *     cedar_answer *answer = cedar_answer_new(NULL);
 *     struct cedar_error err;
 *
 *     if (cedar_policies_from_text(text, strlen(text), NULL, &policies, &err) < 0)
 *             fprintf(stderr, "%u:%u: %s\n", err.line, err.column, err.text);
 *     ...
 *     cedar_decide(policies, entities, request, NULL, answer);
 *     if (cedar_answer_decision(answer) == CEDAR_ALLOW)
 *             ...
 *
 * Objects are immutable once made: policy sets, entities, requests and schemas may be used by any
 * number of threads at once without a lock. An answer is the one mutable object: it holds the
 * memory that a decision works in, so each thread has its own and keeps it from call to call; a
 * decision then allocates nothing unless policies build sets or records larger than what earlier
 * decisions needed.
 *
 * Functions that can fail return 0 or one of the negative codes below and fill `err`, which may be
 * NULL. `ret_` outputs are untouched on failure. Text goes in as bytes and length and need not end
 * in NUL. Every `_free` accepts NULL. Limits may be NULL everywhere: the defaults then hold.
 */
#ifndef CEDAR_H
#define CEDAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CEDAR_LANGUAGE_VERSION "4.5"

#if defined(__GNUC__)
#	define CEDAR_PUBLIC __attribute__((visibility("default")))
#else
#	define CEDAR_PUBLIC
#endif

/* Codes are stable. */
enum cedar_code {
	CEDAR_OK = 0,
	CEDAR_E_MEMORY = -1,    /* the system has none left */
	CEDAR_E_LIMIT = -2,     /* a limit of struct cedar_limits; the text names it */
	CEDAR_E_SYNTAX = -3,    /* text or JSON that is not of the language */
	CEDAR_E_DUPLICATE = -4, /* an id, key, annotation or entity twice */
	CEDAR_E_VALUE = -5,     /* a literal, number or extension value out of its range */
	CEDAR_E_TEMPLATE = -6,  /* unknown template, slots that do not fit, an unlinked slot */
	CEDAR_E_CYCLE = -7,     /* entities, types or actions that descend from themselves */
	CEDAR_E_SCHEMA =
		-8, /* a schema that contradicts itself or names what it does not declare */
	CEDAR_E_INVALID = -9,    /* policies, entities or a request that a schema does not permit */
	CEDAR_E_TYPE = -10,      /* evaluation: an operand of the wrong type */
	CEDAR_E_OVERFLOW = -11,  /* evaluation: outside of 64 bits */
	CEDAR_E_ATTRIBUTE = -12, /* evaluation: no such attribute or tag */
	CEDAR_E_ENTITY = -13,    /* evaluation: no such entity */
	CEDAR_E_EXTENSION = -14, /* evaluation: an extension function refused its arguments */
	CEDAR_E_ARITY = -15, /* evaluation: an extension function got the wrong number of them */
};

enum { CEDAR_ERROR_TEXT = 320 };

/* Lines and columns count from 1, columns in characters; line 0: the place is not known. */
struct cedar_error {
	enum cedar_code code;
	uint32_t line, column;
	size_t offset, length; /* bytes of the source */
	char text[CEDAR_ERROR_TEXT];
};

/* Everything that input can make large. The error of each names it and its value. */
struct cedar_limits {
	size_t text_bytes;    /* one text or JSON document */
	size_t memory_bytes;  /* what one policy set, entity set, request or schema takes */
	size_t scratch_bytes; /* what the evaluation of one policy takes */
	uint32_t policies;    /* policies, templates and links of a set, together */
	uint32_t nesting;     /* parentheses, lists, records and calls within each other */
	uint32_t height;      /* operators above each other in one expression */
	uint32_t json_depth;  /* arrays and objects within each other, in data */
	uint32_t entities;    /* entities of a set */
	uint32_t ancestors;   /* pairs of entity and ancestor of a set */
};

CEDAR_PUBLIC struct cedar_limits cedar_limits_default(void);

typedef struct cedar_policies cedar_policies;
typedef struct cedar_builder cedar_builder;
typedef struct cedar_entities cedar_entities;
typedef struct cedar_request cedar_request;
typedef struct cedar_answer cedar_answer;
typedef struct cedar_schema cedar_schema;
typedef struct cedar_report cedar_report;

/* Text that the library made: NUL-terminated, `length` without the NUL. Free with
 * cedar_text_free(). */
struct cedar_text {
	char *data;
	size_t length;
};

CEDAR_PUBLIC void cedar_text_free(struct cedar_text *text);

/* -- Policy sets ---------------------------------------------------------------------------- */

/* Policies and templates in one text. Their ids are policy0, policy1, ... in source order. */
CEDAR_PUBLIC int cedar_policies_from_text(const char *text, size_t n,
	const struct cedar_limits *limits, cedar_policies **ret, struct cedar_error *err);

/* The JSON form of a set: {"staticPolicies", "templates", "templateLinks"}. */
CEDAR_PUBLIC int cedar_policies_from_json(const char *json, size_t n,
	const struct cedar_limits *limits, cedar_policies **ret, struct cedar_error *err);

/* One reference more, or one less: the last one frees. */
CEDAR_PUBLIC cedar_policies *cedar_policies_ref(cedar_policies *policies);
CEDAR_PUBLIC void cedar_policies_free(cedar_policies *policies);

/*
 * A set from several sources. Every add is all or nothing. Ids are one name space over policies,
 * templates and links. cedar_builder_finish() consumes the builder when it succeeds.
 */
enum cedar_ids {
	CEDAR_IDS_COUNT,      /* prefix (NULL: "policy") and the number within the text, from 0 */
	CEDAR_IDS_ANNOTATION, /* the value of @id where there is one, else as above */
};

CEDAR_PUBLIC cedar_builder *cedar_builder_new(const struct cedar_limits *limits);
CEDAR_PUBLIC int cedar_builder_add_text(cedar_builder *b, const char *prefix, enum cedar_ids ids,
	const char *text, size_t n, struct cedar_error *err);
/* Exactly one policy or template, in text or JSON. */
CEDAR_PUBLIC int cedar_builder_add_policy_text(
	cedar_builder *b, const char *id, const char *text, size_t n, struct cedar_error *err);
CEDAR_PUBLIC int cedar_builder_add_policy_json(
	cedar_builder *b, const char *id, const char *json, size_t n, struct cedar_error *err);
CEDAR_PUBLIC int cedar_builder_add_json(
	cedar_builder *b, const char *json, size_t n, struct cedar_error *err);
/* Entities in the text form `Type::"id"`, NULL for a slot that the template does not have. */
CEDAR_PUBLIC int cedar_builder_link(cedar_builder *b, const char *template_id, const char *id,
	const char *principal, const char *resource, struct cedar_error *err);
CEDAR_PUBLIC int cedar_builder_finish(
	cedar_builder *b, cedar_policies **ret, struct cedar_error *err);
CEDAR_PUBLIC void cedar_builder_free(cedar_builder *b);

/* The whole set in text (links cannot be written in text: CEDAR_E_TEMPLATE when there are any) or
 * in JSON. */
CEDAR_PUBLIC int cedar_policies_to_text(
	const cedar_policies *policies, struct cedar_text *ret, struct cedar_error *err);
CEDAR_PUBLIC int cedar_policies_to_json(
	const cedar_policies *policies, struct cedar_text *ret, struct cedar_error *err);

/* What can be asked about single policies. `index` runs over policies and links, the things that
 * decide; templates come after them. The pointers live as long as the set. */
enum cedar_effect { CEDAR_FORBID, CEDAR_PERMIT };

CEDAR_PUBLIC size_t cedar_policies_count(const cedar_policies *policies);
CEDAR_PUBLIC size_t cedar_policies_template_count(const cedar_policies *policies);
CEDAR_PUBLIC const char *cedar_policy_id(const cedar_policies *policies, size_t index);
CEDAR_PUBLIC enum cedar_effect cedar_policy_effect(const cedar_policies *policies, size_t index);
/* NULL: no such annotation. An annotation without a value has "". */
CEDAR_PUBLIC const char *cedar_policy_annotation(
	const cedar_policies *policies, size_t index, const char *key);
CEDAR_PUBLIC size_t cedar_policy_annotation_count(const cedar_policies *policies, size_t index);
CEDAR_PUBLIC void cedar_policy_annotation_at(const cedar_policies *policies, size_t index, size_t n,
	const char **ret_key, const char **ret_value);
CEDAR_PUBLIC int cedar_policy_to_text(const cedar_policies *policies, size_t index,
	struct cedar_text *ret, struct cedar_error *err);
CEDAR_PUBLIC int cedar_policy_to_json(const cedar_policies *policies, size_t index,
	struct cedar_text *ret, struct cedar_error *err);

/*
 * A place that holds the current set. Readers take a reference without a lock and without waiting;
 * cedar_slot_set() makes later readers see the new set, while those who hold the old one keep it
 * until they free it. All zero is an empty slot.
 */
struct cedar_slot {
	uint64_t word;
};

/* The caller's reference moves into the slot; NULL empties it. */
CEDAR_PUBLIC void cedar_slot_set(struct cedar_slot *slot, cedar_policies *policies);
CEDAR_PUBLIC cedar_policies *cedar_slot_get(struct cedar_slot *slot);

/* -- Entities and requests ------------------------------------------------------------------ */

CEDAR_PUBLIC int cedar_entities_from_json(const char *json, size_t n,
	const struct cedar_limits *limits, cedar_entities **ret, struct cedar_error *err);
CEDAR_PUBLIC void cedar_entities_free(cedar_entities *entities);
CEDAR_PUBLIC size_t cedar_entities_count(const cedar_entities *entities);

/* principal, action and resource as text, `Type::"id"`; the context as a JSON object. */
CEDAR_PUBLIC int cedar_request_new(const char *principal, const char *action, const char *resource,
	const char *context, size_t context_n, const struct cedar_limits *limits,
	cedar_request **ret, struct cedar_error *err);
/* The same as one object {"principal", "action", "resource", "context"?}; the three are
 * {"type","id"} or text. */
CEDAR_PUBLIC int cedar_request_from_json(const char *json, size_t n,
	const struct cedar_limits *limits, cedar_request **ret, struct cedar_error *err);
CEDAR_PUBLIC void cedar_request_free(cedar_request *request);

/* -- Decisions ------------------------------------------------------------------------------ */

enum cedar_decision { CEDAR_DENY, CEDAR_ALLOW };

struct cedar_options {
	/* Outside of the language: deny when a forbid could not be evaluated. */
	bool deny_on_forbid_error;
};

CEDAR_PUBLIC cedar_answer *cedar_answer_new(const struct cedar_limits *limits);
CEDAR_PUBLIC void cedar_answer_free(cedar_answer *answer);

/*
 * Decide. 0, or CEDAR_E_MEMORY (the answer then denies). The answer refers to the policies, the
 * entities and the request until the next decision: they must live that long.
 */
CEDAR_PUBLIC int cedar_decide(const cedar_policies *policies, const cedar_entities *entities,
	const cedar_request *request, const struct cedar_options *options, cedar_answer *answer);

CEDAR_PUBLIC enum cedar_decision cedar_answer_decision(const cedar_answer *answer);
/* The option deny_on_forbid_error made this a denial. */
CEDAR_PUBLIC bool cedar_answer_denied_by_error(const cedar_answer *answer);
/* The determining policies, as indices into the set, ascending. */
CEDAR_PUBLIC size_t cedar_answer_reason_count(const cedar_answer *answer);
CEDAR_PUBLIC size_t cedar_answer_reason(const cedar_answer *answer, size_t n);
/* The policies whose evaluation failed, ascending; why and where, as text made now. */
CEDAR_PUBLIC size_t cedar_answer_error_count(const cedar_answer *answer);
CEDAR_PUBLIC size_t cedar_answer_error(
	const cedar_answer *answer, size_t n, struct cedar_error *ret_why);

/* What decided about one policy. */
enum cedar_part {
	CEDAR_PART_PRINCIPAL, /* its scope does not match */
	CEDAR_PART_ACTION,
	CEDAR_PART_RESOURCE,
	CEDAR_PART_CONDITION, /* condition `condition` did not hold, or failed with `error` */
	CEDAR_PART_ALL,       /* it is satisfied */
};

struct cedar_explanation {
	bool satisfied, failed;
	enum cedar_part part;
	size_t condition;         /* counts from 0 */
	struct cedar_error place; /* where that part is; its text says in words what happened */
};

CEDAR_PUBLIC int cedar_explain(const cedar_policies *policies, const cedar_entities *entities,
	const cedar_request *request, size_t index, cedar_answer *scratch,
	struct cedar_explanation *ret);

/* -- Schemas and validation ----------------------------------------------------------------- */

CEDAR_PUBLIC int cedar_schema_from_text(const char *text, size_t n,
	const struct cedar_limits *limits, cedar_schema **ret, struct cedar_error *err);
CEDAR_PUBLIC int cedar_schema_from_json(const char *json, size_t n,
	const struct cedar_limits *limits, cedar_schema **ret, struct cedar_error *err);
CEDAR_PUBLIC void cedar_schema_free(cedar_schema *schema);
CEDAR_PUBLIC int cedar_schema_to_text(
	const cedar_schema *schema, struct cedar_text *ret, struct cedar_error *err);
CEDAR_PUBLIC int cedar_schema_to_json(
	const cedar_schema *schema, struct cedar_text *ret, struct cedar_error *err);

/* Entities and requests read with the schema's help (escapes may be implicit) and checked against
 * it; the schema's action hierarchy is added to the entities. */
CEDAR_PUBLIC int cedar_schema_entities_from_json(const cedar_schema *schema, const char *json,
	size_t n, const struct cedar_limits *limits, cedar_entities **ret, struct cedar_error *err);
CEDAR_PUBLIC int cedar_schema_request_from_json(const cedar_schema *schema, const char *json,
	size_t n, const struct cedar_limits *limits, cedar_request **ret, struct cedar_error *err);

/* Entities and requests made otherwise, checked against a schema: 0, or CEDAR_E_INVALID. */
CEDAR_PUBLIC int cedar_schema_check_entities(
	const cedar_schema *schema, const cedar_entities *entities, struct cedar_error *err);
CEDAR_PUBLIC int cedar_schema_check_request(
	const cedar_schema *schema, const cedar_request *request, struct cedar_error *err);

struct cedar_validation {
	/* Errors up to 4.12: a policy that no action of the schema can match is invalid. */
	bool inapplicable_is_error;
	/* 0: no level check; n: at most n - 1 dereferences, that is, level n - 1. */
	unsigned level_plus_one;
};

/* Findings about policies. 0 with a report, valid or not; negative only when out of memory or
 * limits. */
CEDAR_PUBLIC int cedar_validate(const cedar_schema *schema, const cedar_policies *policies,
	const struct cedar_validation *options, cedar_report **ret, struct cedar_error *err);
CEDAR_PUBLIC void cedar_report_free(cedar_report *report);
CEDAR_PUBLIC bool cedar_report_valid(const cedar_report *report);
CEDAR_PUBLIC size_t cedar_report_count(const cedar_report *report);
CEDAR_PUBLIC void cedar_report_at(const cedar_report *report, size_t n, bool *ret_is_warning,
	const char **ret_policy_id, struct cedar_error *ret_finding);

#ifdef __cplusplus
}
#endif

#endif
