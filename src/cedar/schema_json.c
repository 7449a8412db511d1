/*
 * Reads the schema JSON notation into a tree.
 *
 * Strict as the official reader is: unknown members are errors everywhere, `null` stands only where
 * it may stand for "not there", names are in normal form. Duplicate members are the JSON reader's
 * to refuse.
 */
#include "cedar/schema_read.h"

#include "cedar/slice.h"

struct reader {
	struct ced_sch_reader r;
};

static int expect_kind(
	struct reader *v, const struct ced_json *j, enum ced_json_kind kind, const char *what)
{
	if (j->kind == kind)
		return 0;
	return ced_fail(v->r.err, CEDAR_E_SYNTAX, j->pos, "%s must be %s", what,
		kind == CED_JSON_OBJECT  ? "an object"
		: kind == CED_JSON_ARRAY ? "an array"
					 : "a string");
}

/* The members of an object, by the names in `wanted`, NULL where there is none. Any other name is
 * an error. */
static int pick(struct reader *v, const struct ced_json *j, const char *what,
	const char *const *wanted, size_t n_wanted, const struct ced_json **ret_members)
{
	if (expect_kind(v, j, CED_JSON_OBJECT, what) < 0)
		return -1;
	for (size_t k = 0; k < n_wanted; k++)
		ret_members[k] = NULL;
	for (size_t i = 0; i < j->count; i++) {
		const struct ced_member *m = &j->u.members[i];
		size_t k = 0;

		while (k < n_wanted && !ced_slice_is(m->key, wanted[k]))
			k++;
		if (k == n_wanted)
			return ced_fail(v->r.err, CEDAR_E_SYNTAX, m->pos,
				"%s has no member \"%.*s\"", what, ced_shown(m->key), m->key.p);
		ret_members[k] = &m->value;
	}
	return 0;
}

static const struct ced_json *null_is_absent(const struct ced_json *j)
{
	return j && j->kind == CED_JSON_NULL ? NULL : j;
}

/* ---- names ---- */

static int read_path(
	struct reader *v, const struct ced_json *j, const char *what, struct ced_sch_name *ret_name)
{
	if (expect_kind(v, j, CED_JSON_STRING, what) < 0)
		return -1;
	if (!ced_sch_is_path(j->u.text))
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, j->pos,
			"\"%.*s\" is not a name in normal form", ced_shown(j->u.text), j->u.text.p);
	*ret_name = (struct ced_sch_name){.text = j->u.text, .pos = j->pos};
	return 0;
}

static int read_paths(struct reader *v, const struct ced_json *j, const char *what,
	struct ced_sch_names *ret_names)
{
	struct ced_sch_vec names = {0};

	if (expect_kind(v, j, CED_JSON_ARRAY, what) < 0)
		return -1;
	for (size_t i = 0; i < j->count; i++) {
		struct ced_sch_name *name = ced_sch_push(&v->r, &names, sizeof(*name));

		if (!name || read_path(v, &j->u.items[i], "an entity type", name) < 0)
			return -1;
	}
	*ret_names = (struct ced_sch_names){.v = names.v, .n = names.n};
	return 0;
}

/* The name of a declaration: one identifier. */
static int read_ident(struct reader *v, const struct ced_member *m, struct ced_sch_name *ret_name)
{
	if (!ced_sch_is_ident(m->key))
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, m->pos, "\"%.*s\" is not an identifier",
			ced_shown(m->key), m->key.p);
	*ret_name = (struct ced_sch_name){.text = m->key, .pos = m->pos};
	return 0;
}

/* ---- annotations ---- */

static int read_annots(
	struct reader *v, const struct ced_json *j, struct ced_sch_annots *ret_annots)
{
	struct ced_sch_vec annots = {0};

	if (!j)
		return 0;
	if (expect_kind(v, j, CED_JSON_OBJECT, "\"annotations\"") < 0)
		return -1;
	for (size_t i = 0; i < j->count; i++) {
		const struct ced_member *m = &j->u.members[i];
		struct ced_sch_annot annot = {.key = m->key, .value = {"", 0}};

		if (!ced_sch_is_any_ident(m->key))
			return ced_fail(v->r.err, CEDAR_E_SYNTAX, m->pos,
				"\"%.*s\" is not an identifier", ced_shown(m->key), m->key.p);
		if (m->value.kind != CED_JSON_NULL) {
			if (expect_kind(v, &m->value, CED_JSON_STRING, "an annotation") < 0)
				return -1;
			annot.value = m->value.u.text;
		}
		if (ced_sch_add_annot(&v->r, &annots, &annot, m->pos) < 0)
			return -1;
	}
	ced_sch_sort_annots(&annots);
	*ret_annots = (struct ced_sch_annots){.v = annots.v, .n = annots.n};
	return 0;
}

/* ---- types ---- */

/* What may stand in a type object. The first five make the type; `extra` members belong to what
 * holds it. */
enum { M_TYPE, M_ELEMENT, M_ATTRIBUTES, M_ADDITIONAL, M_NAME, M_ANNOTATIONS, M_REQUIRED, M_COUNT_ };

static const char *const type_members[M_COUNT_] = {
	"type", "element", "attributes", "additionalAttributes", "name", "annotations", "required"};

static int read_type(
	struct reader *v, const struct ced_json *j, const struct ced_sch_type **ret_type);
static int read_type_members(struct reader *v, const struct ced_json *j,
	const struct ced_json *const *m, const struct ced_sch_type **ret_type);

static int read_attr(struct reader *v, const struct ced_member *j, struct ced_sch_attr *attr)
{
	const struct ced_json *m[M_COUNT_];

	attr->name = j->key;
	attr->required = true;
	if (pick(v, &j->value, "an attribute's type", type_members, M_COUNT_, m) < 0 ||
		read_type_members(v, &j->value, m, &attr->type) < 0)
		return -1;
	if (m[M_REQUIRED]) {
		if (m[M_REQUIRED]->kind != CED_JSON_BOOL)
			return ced_fail(v->r.err, CEDAR_E_SYNTAX, m[M_REQUIRED]->pos,
				"\"required\" must be true or false");
		attr->required = m[M_REQUIRED]->boolean;
	}
	return read_annots(v, m[M_ANNOTATIONS], &attr->annots);
}

static int read_attrs(struct reader *v, const struct ced_json *j, struct ced_sch_type *type)
{
	struct ced_sch_vec attrs = {0};

	if (expect_kind(v, j, CED_JSON_OBJECT, "\"attributes\"") < 0)
		return -1;
	for (size_t i = 0; i < j->count; i++) {
		struct ced_sch_attr *slot, attr = {0};

		if (read_attr(v, &j->u.members[i], &attr) < 0)
			return -1;
		slot = ced_sch_push(&v->r, &attrs, sizeof(*slot));
		if (!slot)
			return -1;
		*slot = attr;
	}
	type->n_attrs = ced_sch_sort_attrs(attrs.v, attrs.n);
	type->attrs = attrs.v;
	return 0;
}

static int read_record(struct reader *v, const struct ced_json *const *m, struct ced_sch_type *type)
{
	const struct ced_json *open = m[M_ADDITIONAL];

	if (open && (open->kind != CED_JSON_BOOL || open->boolean))
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, open->pos,
			"\"additionalAttributes\" may only be false: records are closed");
	if (!m[M_ATTRIBUTES])
		return ced_fail(
			v->r.err, CEDAR_E_SYNTAX, type->pos, "a Record needs \"attributes\"");
	return read_attrs(v, m[M_ATTRIBUTES], type);
}

static int read_set(struct reader *v, const struct ced_json *const *m, struct ced_sch_type *type)
{
	if (!m[M_ELEMENT])
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, type->pos, "a Set needs \"element\"");
	return read_type(v, m[M_ELEMENT], &type->elem);
}

static int read_named(struct reader *v, const struct ced_json *const *m, struct ced_sch_type *type)
{
	struct ced_sch_name name;

	if (!m[M_NAME])
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, type->pos, "this type needs \"name\"");
	if (read_path(v, m[M_NAME], "\"name\"", &name) < 0)
		return -1;
	type->name = name.text;
	return 0;
}

/* Each kind allows the members that belong to it. */
static const struct kind_row {
	const char *word;
	enum ced_sch_type_kind kind;
	unsigned allowed; /* bits of M_* */
	int (*read)(struct reader *v, const struct ced_json *const *m, struct ced_sch_type *type);
} kind_rows[] = {
	{"String", CED_SCH_STRING, 0, NULL},
	{"Long", CED_SCH_LONG, 0, NULL},
	{"Boolean", CED_SCH_BOOL, 0, NULL},
	{"Set", CED_SCH_SET, 1u << M_ELEMENT, read_set},
	{"Record", CED_SCH_RECORD, 1u << M_ATTRIBUTES | 1u << M_ADDITIONAL, read_record},
	{"Entity", CED_SCH_ENTITY, 1u << M_NAME, read_named},
	{"EntityOrCommon", CED_SCH_ENTITY_OR_COMMON, 1u << M_NAME, read_named},
	{"Extension", CED_SCH_EXTENSION, 1u << M_NAME, read_named},
};

static const struct kind_row *find_kind(struct ced_slice word)
{
	static const struct kind_row common = {NULL, CED_SCH_COMMON, 0, NULL};

	for (size_t i = 0; i < sizeof(kind_rows) / sizeof(*kind_rows); i++)
		if (ced_slice_is(word, kind_rows[i].word))
			return &kind_rows[i];
	return &common;
}

static int read_type_members(struct reader *v, const struct ced_json *j,
	const struct ced_json *const *m, const struct ced_sch_type **ret_type)
{
	const struct kind_row *row;
	struct ced_sch_type *type;
	struct ced_sch_name name;

	if (!m[M_TYPE])
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, j->pos, "a type needs \"type\"");
	if (read_path(v, m[M_TYPE], "\"type\"", &name) < 0)
		return -1;
	row = find_kind(m[M_TYPE]->u.text);
	for (unsigned k = M_ELEMENT; k <= M_NAME; k++)
		if (m[k] && !(row->allowed & 1u << k))
			return ced_fail(v->r.err, CEDAR_E_SYNTAX, m[k]->pos,
				"the type `%.*s` has no member \"%s\"", ced_shown(name.text),
				name.text.p, type_members[k]);
	type = ced_sch_new_type(&v->r, row->kind, j->pos);
	if (!type || ced_sch_enter(&v->r, j->pos) < 0)
		return -1;
	if (row->kind == CED_SCH_COMMON)
		type->name = name.text;
	if (row->read && row->read(v, m, type) < 0)
		return -1;
	ced_sch_leave(&v->r);
	*ret_type = type;
	return 0;
}

/* A type that nothing but itself belongs to: an element, a shape, tags, a context. */
static int read_type(
	struct reader *v, const struct ced_json *j, const struct ced_sch_type **ret_type)
{
	const struct ced_json *m[M_COUNT_] = {0};

	if (pick(v, j, "a type", type_members, M_ANNOTATIONS, m) < 0)
		return -1;
	return read_type_members(v, j, m, ret_type);
}

/* ---- declarations ---- */

static int read_common(
	struct reader *v, struct ced_sch_space_builder *b, const struct ced_member *j)
{
	const struct ced_json *m[M_COUNT_] = {0};
	struct ced_sch_common common = {0};

	if (read_ident(v, j, &common.name) < 0 ||
		pick(v, &j->value, "a common type", type_members, M_REQUIRED, m) < 0 ||
		read_type_members(v, &j->value, m, &common.type) < 0 ||
		read_annots(v, m[M_ANNOTATIONS], &common.annots) < 0)
		return -1;
	return ced_sch_add_common(&v->r, b, &common);
}

static int read_enum(struct reader *v, const struct ced_json *j, struct ced_sch_entity *entity)
{
	struct ced_sch_vec ids = {0};

	if (expect_kind(v, j, CED_JSON_ARRAY, "\"enum\"") < 0)
		return -1;
	if (j->count == 0)
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, j->pos, "\"enum\" needs at least one id");
	for (size_t i = 0; i < j->count; i++) {
		struct ced_slice *id = ced_sch_push(&v->r, &ids, sizeof(*id));

		if (!id || expect_kind(v, &j->u.items[i], CED_JSON_STRING, "an id") < 0)
			return -1;
		*id = j->u.items[i].u.text;
	}
	entity->is_enum = true;
	entity->ids = ids.v;
	entity->n_ids = ids.n;
	return 0;
}

static int read_entity(
	struct reader *v, struct ced_sch_space_builder *b, const struct ced_member *j)
{
	static const char *const members[] = {
		"enum", "memberOfTypes", "shape", "tags", "annotations"};
	const struct ced_json *m[5];
	struct ced_sch_entity entity = {0};

	if (read_ident(v, j, &entity.name) < 0 ||
		pick(v, &j->value, "an entity type", members, 5, m) < 0)
		return -1;
	if (m[0] && (m[1] || m[2] || m[3]))
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, j->value.pos,
			"an enumerated entity type has nothing but \"enum\"");
	if (m[0] && read_enum(v, m[0], &entity) < 0)
		return -1;
	if (m[1] && read_paths(v, m[1], "\"memberOfTypes\"", &entity.parents) < 0)
		return -1;
	if (m[2] && read_type(v, m[2], &entity.shape) < 0)
		return -1;
	if (m[3] && read_type(v, m[3], &entity.tags) < 0)
		return -1;
	if (read_annots(v, m[4], &entity.annots) < 0)
		return -1;
	return ced_sch_add_entity(&v->r, b, &entity);
}

static int read_applies_to(
	struct reader *v, const struct ced_json *j, struct ced_sch_action *action)
{
	static const char *const members[] = {"principalTypes", "resourceTypes", "context"};
	const struct ced_json *m[3];

	action->has_applies_to = true;
	if (pick(v, j, "\"appliesTo\"", members, 3, m) < 0)
		return -1;
	for (int k = 0; k < 2; k++)
		if (!m[k])
			return ced_fail(v->r.err, CEDAR_E_SYNTAX, j->pos,
				"\"appliesTo\" needs \"%s\"", members[k]);
	if (read_paths(v, m[0], "\"principalTypes\"", &action->principals) < 0 ||
		read_paths(v, m[1], "\"resourceTypes\"", &action->resources) < 0)
		return -1;
	return m[2] ? read_type(v, m[2], &action->context) : 0;
}

static int read_action_ref(
	struct reader *v, const struct ced_json *j, struct ced_sch_action_ref *ref)
{
	static const char *const members[] = {"id", "type"};
	const struct ced_json *m[2], *type;
	struct ced_sch_name name;

	if (pick(v, j, "an action group", members, 2, m) < 0)
		return -1;
	if (!m[0])
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, j->pos, "an action group needs \"id\"");
	if (expect_kind(v, m[0], CED_JSON_STRING, "\"id\"") < 0)
		return -1;
	ref->pos = j->pos;
	ref->id = m[0]->u.text;
	type = null_is_absent(m[1]);
	if (!type)
		return 0;
	if (read_path(v, type, "\"type\"", &name) < 0)
		return -1;
	ref->type = name.text;
	return 0;
}

static int read_member_of(struct reader *v, const struct ced_json *j, struct ced_sch_action *action)
{
	struct ced_sch_vec refs = {0};

	action->has_member_of = true;
	if (expect_kind(v, j, CED_JSON_ARRAY, "\"memberOf\"") < 0)
		return -1;
	for (size_t i = 0; i < j->count; i++) {
		struct ced_sch_action_ref *ref = ced_sch_push(&v->r, &refs, sizeof(*ref));

		if (!ref || read_action_ref(v, &j->u.items[i], ref) < 0)
			return -1;
	}
	action->parents = refs.v;
	action->n_parents = refs.n;
	return 0;
}

static int read_action(
	struct reader *v, struct ced_sch_space_builder *b, const struct ced_member *j)
{
	static const char *const members[] = {"appliesTo", "memberOf", "annotations", "attributes"};
	struct ced_sch_action action = {.name = {.text = j->key, .pos = j->pos}};
	const struct ced_json *m[4], *applies_to, *member_of;

	if (pick(v, &j->value, "an action", members, 4, m) < 0)
		return -1;
	if (null_is_absent(m[3]))
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, m[3]->pos, "actions have no attributes");
	applies_to = null_is_absent(m[0]);
	member_of = null_is_absent(m[1]);
	if ((applies_to && read_applies_to(v, applies_to, &action) < 0) ||
		(member_of && read_member_of(v, member_of, &action) < 0) ||
		read_annots(v, m[2], &action.annots) < 0)
		return -1;
	return ced_sch_add_action(&v->r, b, &action);
}

/* ---- namespaces ---- */

static int read_decls(struct reader *v, struct ced_sch_space_builder *b, const struct ced_json *j,
	const char *what,
	int (*read)(struct reader *, struct ced_sch_space_builder *, const struct ced_member *))
{
	if (expect_kind(v, j, CED_JSON_OBJECT, what) < 0)
		return -1;
	for (size_t i = 0; i < j->count; i++)
		if (read(v, b, &j->u.members[i]) < 0)
			return -1;
	return 0;
}

static int read_space(struct reader *v, struct ced_sch_builder *tree, const struct ced_member *j)
{
	static const char *const members[] = {
		"entityTypes", "actions", "commonTypes", "annotations"};
	struct ced_sch_name name = {.text = j->key, .pos = j->pos};
	struct ced_sch_annots annots = {0};
	struct ced_sch_space_builder *b;
	const struct ced_json *m[4];

	if (j->key.n > 0 && !ced_sch_is_path(j->key))
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, j->pos,
			"\"%.*s\" is not the name of a namespace in normal form", ced_shown(j->key),
			j->key.p);
	if (pick(v, &j->value, "a namespace", members, 4, m) < 0 ||
		read_annots(v, m[3], &annots) < 0)
		return -1;
	if (j->key.n == 0 && annots.n > 0)
		return ced_fail(v->r.err, CEDAR_E_SYNTAX, m[3]->pos,
			"the unnamed namespace cannot have annotations");
	for (int k = 0; k < 2; k++)
		if (!m[k])
			return ced_fail(v->r.err, CEDAR_E_SYNTAX, j->value.pos,
				"a namespace needs \"%s\"", members[k]);
	b = ced_sch_add_space(&v->r, tree, &name, annots);
	if (!b || read_decls(v, b, m[0], "\"entityTypes\"", read_entity) < 0 ||
		read_decls(v, b, m[1], "\"actions\"", read_action) < 0)
		return -1;
	return m[2] ? read_decls(v, b, m[2], "\"commonTypes\"", read_common) : 0;
}

int ced_sch_parse_json(struct ced_slice src, struct ced_arena *arena,
	const struct cedar_limits *limits, struct ced_sch_tree *ret_tree, struct cedar_error *err)
{
	struct reader v = {.r = {.arena = arena, .limits = limits, .err = err}};
	struct ced_sch_builder tree = {0};
	struct ced_json top;

	if (src.n > limits->text_bytes)
		return ced_fail_limit(err, (struct ced_pos){0}, "text_bytes", limits->text_bytes);
	/* A level of nesting of types is at most three of JSON, and a schema starts with some. */
	if (ced_json_read(arena, src.p, src.n, limits->nesting * 3 + 8, "nesting", &top, err) < 0 ||
		expect_kind(&v, &top, CED_JSON_OBJECT, "a schema") < 0)
		return -1;
	for (size_t i = 0; i < top.count; i++)
		if (read_space(&v, &tree, &top.u.members[i]) < 0)
			return -1;
	return ced_sch_finish(&v.r, &tree, ret_tree);
}
