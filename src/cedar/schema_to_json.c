/* Prints a schema tree in the JSON notation, members in the order of the official tools. */
#include "cedar/schema_print.h"

#include "cedar/slice.h"

struct printer {
	struct ced_out *out;
};

static void puts_(struct printer *p, const char *s)
{
	ced_out_text(p->out, s);
}

static void put_string(struct printer *p, struct ced_slice s)
{
	ced_out_json_string(p->out, s.p, s.n);
}

/* `"key":` with a comma before it unless it is the first; `first` is cleared. */
static void put_key(struct printer *p, bool *first, struct ced_slice key)
{
	if (!*first)
		puts_(p, ",");
	*first = false;
	put_string(p, key);
	puts_(p, ":");
}

static void put_member(struct printer *p, bool *first, const char *key)
{
	put_key(p, first, ced_slice_of(key));
}

static void put_annots(struct printer *p, bool *first, struct ced_sch_annots annots)
{
	bool first_annot = true;

	if (annots.n == 0)
		return;
	put_member(p, first, "annotations");
	puts_(p, "{");
	for (size_t i = 0; i < annots.n; i++) {
		put_key(p, &first_annot, annots.v[i].key);
		put_string(p, annots.v[i].value);
	}
	puts_(p, "}");
}

static void put_type_members(struct printer *p, bool *first, const struct ced_sch_type *type);

static void put_attrs(struct printer *p, const struct ced_sch_type *type)
{
	bool first = true;

	puts_(p, "{");
	for (size_t i = 0; i < type->n_attrs; i++) {
		const struct ced_sch_attr *attr = &type->attrs[i];
		bool first_member = true;

		put_key(p, &first, attr->name);
		puts_(p, "{");
		put_type_members(p, &first_member, attr->type);
		put_annots(p, &first_member, attr->annots);
		if (!attr->required) {
			put_member(p, &first_member, "required");
			puts_(p, "false");
		}
		puts_(p, "}");
	}
	puts_(p, "}");
}

static void put_type(struct printer *p, const struct ced_sch_type *type)
{
	bool first = true;

	puts_(p, "{");
	put_type_members(p, &first, type);
	puts_(p, "}");
}

/* The members of a type object, without its braces: attributes add members of their own. */
static void put_type_members(struct printer *p, bool *first, const struct ced_sch_type *type)
{
	static const char *const words[] = {
		[CED_SCH_BOOL] = "Boolean",
		[CED_SCH_LONG] = "Long",
		[CED_SCH_STRING] = "String",
		[CED_SCH_SET] = "Set",
		[CED_SCH_RECORD] = "Record",
		[CED_SCH_ENTITY] = "Entity",
		[CED_SCH_EXTENSION] = "Extension",
		[CED_SCH_ENTITY_OR_COMMON] = "EntityOrCommon",
	};

	put_member(p, first, "type");
	if (type->kind == CED_SCH_COMMON) {
		put_string(p, type->name);
		return;
	}
	put_string(p, ced_slice_of(words[type->kind]));
	if (type->kind == CED_SCH_SET) {
		put_member(p, first, "element");
		put_type(p, type->elem);
	} else if (type->kind == CED_SCH_RECORD) {
		put_member(p, first, "attributes");
		put_attrs(p, type);
	} else if (type->name.n) {
		put_member(p, first, "name");
		put_string(p, type->name);
	}
}

static void put_names(struct printer *p, struct ced_sch_names names)
{
	puts_(p, "[");
	for (size_t i = 0; i < names.n; i++) {
		if (i > 0)
			puts_(p, ",");
		put_string(p, names.v[i].text);
	}
	puts_(p, "]");
}

static bool is_empty_record(const struct ced_sch_type *type)
{
	return !type || (type->kind == CED_SCH_RECORD && type->n_attrs == 0);
}

static void put_enum(struct printer *p, bool *first, const struct ced_sch_entity *entity)
{
	put_member(p, first, "enum");
	puts_(p, "[");
	for (size_t i = 0; i < entity->n_ids; i++) {
		if (i > 0)
			puts_(p, ",");
		put_string(p, entity->ids[i]);
	}
	puts_(p, "]");
}

static void put_entity(struct printer *p, const struct ced_sch_entity *entity)
{
	bool first = true;

	puts_(p, "{");
	if (entity->is_enum)
		put_enum(p, &first, entity);
	if (entity->parents.n) {
		put_member(p, &first, "memberOfTypes");
		put_names(p, entity->parents);
	}
	if (!is_empty_record(entity->shape)) {
		put_member(p, &first, "shape");
		put_type(p, entity->shape);
	}
	if (entity->tags) {
		put_member(p, &first, "tags");
		put_type(p, entity->tags);
	}
	put_annots(p, &first, entity->annots);
	puts_(p, "}");
}

static void put_applies_to(struct printer *p, const struct ced_sch_action *action)
{
	bool first = true;

	puts_(p, "{");
	put_member(p, &first, "resourceTypes");
	put_names(p, action->resources);
	put_member(p, &first, "principalTypes");
	put_names(p, action->principals);
	if (!is_empty_record(action->context)) {
		put_member(p, &first, "context");
		put_type(p, action->context);
	}
	puts_(p, "}");
}

static void put_action_refs(struct printer *p, const struct ced_sch_action *action)
{
	puts_(p, "[");
	for (size_t i = 0; i < action->n_parents; i++) {
		bool first = true;

		puts_(p, i > 0 ? ",{" : "{");
		put_member(p, &first, "id");
		put_string(p, action->parents[i].id);
		if (action->parents[i].type.n) {
			put_member(p, &first, "type");
			put_string(p, action->parents[i].type);
		}
		puts_(p, "}");
	}
	puts_(p, "]");
}

static void put_action(struct printer *p, const struct ced_sch_action *action)
{
	bool first = true;

	puts_(p, "{");
	if (action->has_applies_to) {
		put_member(p, &first, "appliesTo");
		put_applies_to(p, action);
	}
	if (action->has_member_of) {
		put_member(p, &first, "memberOf");
		put_action_refs(p, action);
	}
	put_annots(p, &first, action->annots);
	puts_(p, "}");
}

static void put_commons(struct printer *p, const struct ced_sch_namespace *space)
{
	bool first = true;

	puts_(p, "{");
	for (size_t i = 0; i < space->n_commons; i++) {
		bool first_member = true;

		put_key(p, &first, space->commons[i].name.text);
		puts_(p, "{");
		put_type_members(p, &first_member, space->commons[i].type);
		put_annots(p, &first_member, space->commons[i].annots);
		puts_(p, "}");
	}
	puts_(p, "}");
}

static void put_space(struct printer *p, const struct ced_sch_namespace *space)
{
	bool first = true, first_decl = true;

	puts_(p, "{");
	if (space->n_commons) {
		put_member(p, &first, "commonTypes");
		put_commons(p, space);
	}
	put_member(p, &first, "entityTypes");
	puts_(p, "{");
	for (size_t i = 0; i < space->n_entities; i++) {
		put_key(p, &first_decl, space->entities[i].name.text);
		put_entity(p, &space->entities[i]);
	}
	puts_(p, "}");
	first_decl = true;
	put_member(p, &first, "actions");
	puts_(p, "{");
	for (size_t i = 0; i < space->n_actions; i++) {
		put_key(p, &first_decl, space->actions[i].name.text);
		put_action(p, &space->actions[i]);
	}
	puts_(p, "}");
	put_annots(p, &first, space->annots);
	puts_(p, "}");
}

void ced_sch_print_json(const struct ced_sch_tree *tree, struct ced_out *out)
{
	struct printer p = {.out = out};
	bool first = true;

	puts_(&p, "{");
	for (size_t i = 0; i < tree->n_spaces; i++) {
		put_key(&p, &first, tree->spaces[i].name.text);
		put_space(&p, &tree->spaces[i]);
	}
	puts_(&p, "}");
}
