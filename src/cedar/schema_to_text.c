/*
 * Prints a schema tree in the text notation.
 *
 * The text it prints reads back to a schema that means the same. JSON can say a few things that
 * text cannot; those are errors here, never silently different text.
 */
#include "cedar/schema_print.h"

#include "cedar/slice.h"

#include <string.h>

#include "cedar/schema_read.h"

struct printer {
	const struct ced_sch_tree *tree;
	const struct ced_sch_namespace *space; /* being printed */
	unsigned depth;                        /* of indentation, two spaces each */
	struct ced_out *out;
	struct cedar_error *err;
};

static void puts_(struct printer *p, const char *s)
{
	ced_out_text(p->out, s);
}

static void put(struct printer *p, struct ced_slice s)
{
	ced_out_bytes(p->out, s.p, s.n);
}

static void put_string(struct printer *p, struct ced_slice s)
{
	ced_out_quoted(p->out, s.p, s.n);
}

static void newline(struct printer *p)
{
	puts_(p, "\n");
	for (unsigned i = 0; i < p->depth; i++)
		puts_(p, "  ");
}

static void put_annots(struct printer *p, struct ced_sch_annots annots)
{
	for (size_t i = 0; i < annots.n; i++) {
		puts_(p, "@");
		put(p, annots.v[i].key);
		if (annots.v[i].value.n) {
			puts_(p, "(");
			put_string(p, annots.v[i].value);
			puts_(p, ")");
		}
		newline(p);
	}
}

static bool declares_common(const struct ced_sch_namespace *space, struct ced_slice name)
{
	for (size_t i = 0; i < space->n_commons; i++)
		if (ced_slice_eq(space->commons[i].name.text, name))
			return true;
	return false;
}

/* A reference that must be an entity type is printed as a bare name, which a common type of that
 * name, here or outside of all namespaces, would capture. */
static int check_entity_ref(struct printer *p, const struct ced_sch_type *type)
{
	for (size_t i = 0; i < p->tree->n_spaces; i++) {
		const struct ced_sch_namespace *space = &p->tree->spaces[i];
		size_t n = space->name.text.n;
		struct ced_slice name = type->name;

		if (n > 0 && name.n > n + 2 && memcmp(name.p, space->name.text.p, n) == 0 &&
			memcmp(name.p + n, "::", 2) == 0)
			name = (struct ced_slice){name.p + n + 2, name.n - n - 2};
		else if (n > 0 && space != p->space)
			continue;
		if (declares_common(space, name))
			return ced_fail(p->err, CEDAR_E_SCHEMA, (struct ced_pos){0},
				"the text notation cannot refer to the entity type `%.*s`, since a "
				"common type has the same name",
				ced_shown(type->name), type->name.p);
	}
	return 0;
}

static int put_type(struct printer *p, const struct ced_sch_type *type);

static int put_attr(struct printer *p, const struct ced_sch_attr *attr)
{
	put_annots(p, attr->annots);
	if (ced_sch_is_ident(attr->name))
		put(p, attr->name);
	else
		put_string(p, attr->name);
	puts_(p, attr->required ? ": " : "?: ");
	return put_type(p, attr->type);
}

static int put_record(struct printer *p, const struct ced_sch_type *type)
{
	puts_(p, "{");
	p->depth++;
	for (size_t i = 0; i < type->n_attrs; i++) {
		newline(p);
		if (put_attr(p, &type->attrs[i]) < 0)
			return -1;
		if (i + 1 < type->n_attrs)
			puts_(p, ",");
	}
	p->depth--;
	if (type->n_attrs)
		newline(p);
	puts_(p, "}");
	return 0;
}

static int put_type(struct printer *p, const struct ced_sch_type *type)
{
	switch (type->kind) {
	case CED_SCH_BOOL: puts_(p, "__cedar::Bool"); return 0;
	case CED_SCH_LONG: puts_(p, "__cedar::Long"); return 0;
	case CED_SCH_STRING: puts_(p, "__cedar::String"); return 0;
	case CED_SCH_EXTENSION:
		puts_(p, "__cedar::");
		put(p, type->name);
		return 0;
	case CED_SCH_SET:
		puts_(p, "Set<");
		if (put_type(p, type->elem) < 0)
			return -1;
		puts_(p, ">");
		return 0;
	case CED_SCH_RECORD: return put_record(p, type);
	case CED_SCH_ENTITY:
		if (check_entity_ref(p, type) < 0)
			return -1;
		put(p, type->name);
		return 0;
	case CED_SCH_COMMON:
	case CED_SCH_ENTITY_OR_COMMON: put(p, type->name); return 0;
	}
	return 0;
}

static void put_names(struct printer *p, struct ced_sch_names names)
{
	puts_(p, "[");
	for (size_t i = 0; i < names.n; i++) {
		if (i > 0)
			puts_(p, ", ");
		put(p, names.v[i].text);
	}
	puts_(p, "]");
}

static int put_common(struct printer *p, const struct ced_sch_common *common)
{
	put_annots(p, common->annots);
	puts_(p, "type ");
	put(p, common->name.text);
	puts_(p, " = ");
	if (put_type(p, common->type) < 0)
		return -1;
	puts_(p, ";");
	return 0;
}

static int put_entity_body(struct printer *p, const struct ced_sch_entity *entity)
{
	if (entity->parents.n) {
		puts_(p, " in ");
		put_names(p, entity->parents);
	}
	if (entity->shape && entity->shape->kind != CED_SCH_RECORD)
		return ced_fail(p->err, CEDAR_E_SCHEMA, (struct ced_pos){0},
			"the text notation cannot say that the attributes of the entity type "
			"`%.*s` "
			"are those of a common type",
			ced_shown(entity->name.text), entity->name.text.p);
	if (entity->shape && entity->shape->n_attrs) {
		puts_(p, " = ");
		if (put_record(p, entity->shape) < 0)
			return -1;
	}
	if (!entity->tags)
		return 0;
	puts_(p, " tags ");
	return put_type(p, entity->tags);
}

static int put_entity(struct printer *p, const struct ced_sch_entity *entity)
{
	put_annots(p, entity->annots);
	puts_(p, "entity ");
	put(p, entity->name.text);
	if (entity->is_enum) {
		puts_(p, " enum [");
		for (size_t i = 0; i < entity->n_ids; i++) {
			if (i > 0)
				puts_(p, ", ");
			put_string(p, entity->ids[i]);
		}
		puts_(p, "]");
	} else if (put_entity_body(p, entity) < 0) {
		return -1;
	}
	puts_(p, ";");
	return 0;
}

static void put_action_refs(struct printer *p, const struct ced_sch_action *action)
{
	puts_(p, " in [");
	for (size_t i = 0; i < action->n_parents; i++) {
		if (i > 0)
			puts_(p, ", ");
		if (action->parents[i].type.n) {
			put(p, action->parents[i].type);
			puts_(p, "::");
		}
		put_string(p, action->parents[i].id);
	}
	puts_(p, "]");
}

static int put_context(struct printer *p, const struct ced_sch_action *action)
{
	const struct ced_sch_type *context = action->context;

	if (!context) {
		puts_(p, "{}");
		return 0;
	}
	if (context->kind != CED_SCH_RECORD && context->kind != CED_SCH_COMMON &&
		context->kind != CED_SCH_ENTITY_OR_COMMON)
		return ced_fail(p->err, CEDAR_E_SCHEMA, (struct ced_pos){0},
			"the context of the action \"%.*s\" is neither a record nor a common type",
			ced_shown(action->name.text), action->name.text.p);
	return put_type(p, context);
}

/* An action that applies to no principal or no resource applies to nothing. */
static int put_applies_to(struct printer *p, const struct ced_sch_action *action)
{
	if (!action->has_applies_to || action->principals.n == 0 || action->resources.n == 0)
		return 0;
	puts_(p, " appliesTo {");
	p->depth++;
	newline(p);
	puts_(p, "principal: ");
	put_names(p, action->principals);
	puts_(p, ",");
	newline(p);
	puts_(p, "resource: ");
	put_names(p, action->resources);
	puts_(p, ",");
	newline(p);
	puts_(p, "context: ");
	if (put_context(p, action) < 0)
		return -1;
	p->depth--;
	newline(p);
	puts_(p, "}");
	return 0;
}

static int put_action(struct printer *p, const struct ced_sch_action *action)
{
	put_annots(p, action->annots);
	puts_(p, "action ");
	put_string(p, action->name.text);
	if (action->n_parents)
		put_action_refs(p, action);
	if (put_applies_to(p, action) < 0)
		return -1;
	puts_(p, ";");
	return 0;
}

/* Declarations are separated by an empty line. */
static void separate(struct printer *p, bool *first)
{
	if (!*first)
		puts_(p, "\n");
	if (!*first || p->depth > 0)
		newline(p);
	*first = false;
}

static int put_decls(struct printer *p, const struct ced_sch_namespace *space)
{
	bool first = true;

	for (size_t i = 0; i < space->n_commons; i++) {
		separate(p, &first);
		if (put_common(p, &space->commons[i]) < 0)
			return -1;
	}
	for (size_t i = 0; i < space->n_entities; i++) {
		separate(p, &first);
		if (put_entity(p, &space->entities[i]) < 0)
			return -1;
	}
	for (size_t i = 0; i < space->n_actions; i++) {
		separate(p, &first);
		if (put_action(p, &space->actions[i]) < 0)
			return -1;
	}
	return 0;
}

static int put_space(struct printer *p, const struct ced_sch_namespace *space)
{
	p->space = space;
	if (space->name.text.n == 0)
		return put_decls(p, space);
	put_annots(p, space->annots);
	puts_(p, "namespace ");
	put(p, space->name.text);
	puts_(p, " {");
	p->depth++;
	if (put_decls(p, space) < 0)
		return -1;
	p->depth--;
	puts_(p, "\n}");
	return 0;
}

/* JSON can name the namespace without a name and declare nothing in it; text has no word for that.
 */
static bool is_nothing(const struct ced_sch_namespace *space)
{
	return space->name.text.n == 0 && space->n_commons == 0 && space->n_entities == 0 &&
	       space->n_actions == 0;
}

int ced_sch_print_text(
	const struct ced_sch_tree *tree, struct ced_out *out, struct cedar_error *err)
{
	struct printer p = {.tree = tree, .out = out, .err = err};
	bool first = true;

	for (size_t i = 0; i < tree->n_spaces; i++) {
		if (is_nothing(&tree->spaces[i]))
			continue;
		if (!first)
			puts_(&p, "\n\n");
		first = false;
		if (put_space(&p, &tree->spaces[i]) < 0)
			return -1;
	}
	if (!first)
		puts_(&p, "\n");
	return 0;
}
