/* Reading files and loading what they hold. */
#include "tool.h"

#include "cedar/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool file_read(const char *name, struct file *ret)
{
	bool standard = !name || strcmp(name, "-") == 0;
	FILE *in = standard ? stdin : fopen(name, "re"), *out = NULL;
	struct file f = {.name = standard ? "<stdin>" : name};
	char part[65536];
	size_t n;
	if (in)
		out = open_memstream(&f.data, &f.n);
	while (out && (n = fread(part, 1, sizeof(part), in)) > 0)
		(void)fwrite(part, 1, n, out);
	bool ok = out && !ferror(in) && fclose(out) == 0;
	if (!ok)
		tell_plain("cannot read %s: %s", f.name, strerror(errno));
	if (in && !standard)
		(void)fclose(in);
	*ret = f;
	return ok;
}

void file_done(struct file *f)
{
	free(f->data);
	*f = (struct file){0};
}

static bool is_json(const char *format)
{
	return format && strcmp(format, "json") == 0;
}

static bool told(int code, const struct file *f, const struct cedar_error *err)
{
	if (code < 0)
		tell("error", f, err);
	return code == 0;
}

/* -- Template links: [{"template_id", "link_id", "args": {"?principal": "U::\"a\""}}] --------- */

/* A member's text, NUL-terminated in the arena; NULL: none. */
static const char *member_text(
	struct ced_arena *arena, const struct ced_json *object, const char *key)
{
	const struct ced_json *j = ced_json_get(object, key);
	char *copy =
		j && j->kind == CED_JSON_STRING ? ced_arena_alloc(arena, j->u.text.n + 1) : NULL;
	return copy ? memcpy(copy, j->u.text.p, j->u.text.n) : NULL;
}

static bool link_one(cedar_builder *b, struct ced_arena *arena, const struct ced_json *j)
{
	struct cedar_error err;
	const char *template_id = member_text(arena, j, "template_id");
	const char *link_id = member_text(arena, j, "link_id");
	const struct ced_json *args = ced_json_get(j, "args");
	if (!template_id || !link_id || !args) {
		tell_plain("a link is {\"template_id\", \"link_id\", \"args\"}");
		return false;
	}
	int code =
		cedar_builder_link(b, template_id, link_id, member_text(arena, args, "?principal"),
			member_text(arena, args, "?resource"), &err);
	return told(code, NULL, &err);
}

static bool add_links(cedar_builder *b, const char *name)
{
	struct file f;
	struct ced_arena arena;
	struct ced_json j;
	struct cedar_error err;
	if (!file_read(name, &f))
		return false;
	ced_arena_init(&arena, 64 << 20, "memory_bytes");
	bool ok = told(ced_json_read(&arena, f.data, f.n, 16, "depth", &j, &err), &f, &err);
	if (ok && j.kind != CED_JSON_ARRAY) {
		tell_plain("%s is not an array of links", f.name);
		ok = false;
	}
	for (uint32_t i = 0; ok && i < j.count; i++)
		ok = link_one(b, &arena, &j.u.items[i]);
	ced_arena_done(&arena);
	file_done(&f);
	return ok;
}

/* -- Loading -------------------------------------------------------------------------------- */

bool load_policies(const struct options *o, struct question *q)
{
	struct cedar_error err;
	cedar_builder *b = cedar_builder_new(NULL);
	if (!b || !file_read(o->policies, &q->policies_file)) {
		cedar_builder_free(b);
		return false;
	}
	const struct file *f = &q->policies_file;
	int code = is_json(o->policy_format) ? cedar_builder_add_json(b, f->data, f->n, &err)
					     : cedar_builder_add_text(b, NULL, CEDAR_IDS_ANNOTATION,
						       f->data, f->n, &err);
	bool ok = told(code, f, &err) && (!o->links || add_links(b, o->links));
	if (ok && told(cedar_builder_finish(b, &q->policies, &err), NULL, &err))
		return true;
	cedar_builder_free(b);
	return false;
}

bool load_schema(const struct options *o, struct question *q)
{
	struct cedar_error err;
	if (!file_read(o->schema, &q->schema_file))
		return false;
	const struct file *f = &q->schema_file;
	int code = is_json(o->schema_format)
			   ? cedar_schema_from_json(f->data, f->n, NULL, &q->schema, &err)
			   : cedar_schema_from_text(f->data, f->n, NULL, &q->schema, &err);
	return told(code, f, &err);
}

static bool load_entities(const struct options *o, struct question *q)
{
	struct cedar_error err;
	if (!o->entities)
		return true;
	if (!file_read(o->entities, &q->entities_file))
		return false;
	const struct file *f = &q->entities_file;
	int code = q->schema ? cedar_schema_entities_from_json(
				       q->schema, f->data, f->n, NULL, &q->entities, &err)
			     : cedar_entities_from_json(f->data, f->n, NULL, &q->entities, &err);
	return told(code, f, &err);
}

/* {"principal", "action", "resource", "context"} from the single options. */
static bool compose_request(const struct options *o, struct file *ret)
{
	struct file context = {.data = NULL};
	struct file f = {.name = "the request"};
	if (!o->principal || !o->action || !o->resource) {
		tell_plain("a request needs --principal, --action and --resource, or "
			   "--request-json");
		return false;
	}
	if (o->context && !file_read(o->context, &context))
		return false;
	const char *const parts[] = {o->principal, o->action, o->resource};
	const char *const names[] = {"{\"principal\":\"", "\",\"action\":\"", "\",\"resource\":\""};
	FILE *out = open_memstream(&f.data, &f.n);
	for (int i = 0; out && i < 3; i++) {
		fputs(names[i], out);
		for (const char *c = parts[i]; *c; c++)
			fprintf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
	}
	if (out) {
		fprintf(out, "\",\"context\":%.*s}", context.data ? (int)context.n : 2,
			context.data ? context.data : "{}");
		(void)fclose(out);
	}
	file_done(&context);
	*ret = f;
	return out != NULL;
}

static bool load_request(const struct options *o, struct question *q)
{
	struct cedar_error err;
	bool have = o->request ? file_read(o->request, &q->request_file)
			       : compose_request(o, &q->request_file);
	if (!have)
		return false;
	const struct file *f = &q->request_file;
	int code = q->schema ? cedar_schema_request_from_json(
				       q->schema, f->data, f->n, NULL, &q->request, &err)
			     : cedar_request_from_json(f->data, f->n, NULL, &q->request, &err);
	return told(code, f, &err);
}

bool load_question(const struct options *o, struct question *q)
{
	return (!o->schema || load_schema(o, q)) && load_policies(o, q) && load_entities(o, q) &&
	       load_request(o, q);
}

void question_done(struct question *q)
{
	cedar_request_free(q->request);
	cedar_entities_free(q->entities);
	cedar_schema_free(q->schema);
	cedar_policies_free(q->policies);
	file_done(&q->request_file);
	file_done(&q->entities_file);
	file_done(&q->schema_file);
	file_done(&q->policies_file);
}
