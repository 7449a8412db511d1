/* Files, and the objects that are made of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cedar/json.h"
#include "cedar/out.h"
#include "tool.h"

enum { FILE_MAX = 64 << 20 };

static int cannot_read(const char *name, const char *why)
{
	diag_say("error", "cannot read %s: %s", name, why);
	return TOOL_FAILURE;
}

/* Doubling, up to the limit; a NUL follows the data. */
static int read_all(FILE *in, struct file *f)
{
	size_t room = 0, got;

	do {
		if (f->n + 1 >= room) {
			char *grown = realloc(f->data, room ? room * 2 : 65536);

			if (!grown)
				return cannot_read(f->name, "out of memory");
			f->data = grown;
			room = room ? room * 2 : 65536;
		}
		got = fread(f->data + f->n, 1, room - f->n - 1, in);
		f->n += got;
		if (f->n > FILE_MAX)
			return cannot_read(f->name, "it is longer than 64 MiB");
	} while (got > 0);
	f->data[f->n] = '\0';
	return ferror(in) ? cannot_read(f->name, strerror(errno)) : 0;
}

int read_number(const char *option, const char *text, uint32_t max, uint32_t *ret)
{
	char *end;
	unsigned long n;

	if (!text)
		return 0;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n > max) {
		diag_say("error", "--%s takes a number of at most %u, not `%s`", option,
			(unsigned)max, text);
		return TOOL_FAILURE;
	}
	*ret = (uint32_t)n;
	return 0;
}

int file_read(const char *path, struct file *ret)
{
	bool standard = !path || strcmp(path, "-") == 0;
	struct file f = {.name = standard ? "<stdin>" : path};
	FILE *in = standard ? stdin : fopen(path, "re");
	int r;

	if (!in)
		return cannot_read(path, strerror(errno));
	r = read_all(in, &f);
	if (!standard)
		(void)fclose(in);
	if (r != 0) {
		free(f.data);
		return r;
	}
	*ret = f;
	return 0;
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

/* ---- policies ---- */

static int add_policies(
	cedar_builder *b, const struct options *o, const struct file *f, struct cedar_error *err)
{
	if (is_json(o->policy_format))
		return cedar_builder_add_json(b, f->data, f->n, err);
	return cedar_builder_add_text(b, "policy", CEDAR_IDS_ANNOTATION, f->data, f->n, err);
}

/* A string member as C text, or NULL when it is not there. `buf` holds it. */
static const char *text_member(
	const struct ced_json *j, const char *key, char *buf, size_t size, bool *ret_bad)
{
	const struct ced_json *m = ced_json_get(j, key);

	if (!m)
		return NULL;
	if (m->kind != CED_JSON_STRING || m->u.text.n >= size ||
		memchr(m->u.text.p, 0, m->u.text.n)) {
		*ret_bad = true;
		return NULL;
	}
	memcpy(buf, m->u.text.p, m->u.text.n);
	buf[m->u.text.n] = '\0';
	return buf;
}

enum { LINK_TEXT = 4096 };

/* {"template_id", "link_id", "args": {"?principal": "...", "?resource": "..."}} */
static int add_link(cedar_builder *b, const struct ced_json *j, struct cedar_error *err)
{
	static char template_id[LINK_TEXT], link_id[LINK_TEXT], principal[LINK_TEXT],
		resource[LINK_TEXT];
	const struct ced_json *args = ced_json_get(j, "args");
	const char *t, *l, *p, *r;
	bool bad = false;

	t = text_member(j, "template_id", template_id, sizeof(template_id), &bad);
	l = text_member(j, "link_id", link_id, sizeof(link_id), &bad);
	p = args ? text_member(args, "?principal", principal, sizeof(principal), &bad) : NULL;
	r = args ? text_member(args, "?resource", resource, sizeof(resource), &bad) : NULL;
	if (bad || !t || !l)
		return ced_fail(err, CEDAR_E_SYNTAX, j->pos,
			"expected a link: {\"template_id\", \"link_id\", \"args\"}");
	return cedar_builder_link(b, t, l, p, r, err);
}

static int add_link_list(cedar_builder *b, const struct file *f, struct cedar_error *err)
{
	struct ced_arena arena;
	struct ced_json j;
	int r;

	ced_arena_init(&arena, (size_t)FILE_MAX * 4, "memory_bytes");
	r = ced_json_read(&arena, f->data, f->n, 100, "json_depth", &j, err);
	if (r == 0 && j.kind != CED_JSON_ARRAY)
		r = ced_fail(err, CEDAR_E_SYNTAX, j.pos, "expected an array of links");
	for (uint32_t i = 0; r == 0 && i < j.count; i++)
		r = add_link(b, &j.u.items[i], err);
	ced_arena_done(&arena);
	return r;
}

static int add_links(cedar_builder *b, const struct options *o)
{
	struct cedar_error err;
	struct file f;
	int r;

	if (!o->links)
		return 0;
	if (file_read(o->links, &f) != 0)
		return TOOL_FAILURE;
	r = add_link_list(b, &f, &err);
	if (r < 0)
		diag_error("error", &f, &err);
	file_done(&f);
	return r < 0 ? TOOL_FAILURE : 0;
}

static int build(const struct options *o, cedar_builder *b, cedar_policies **ret)
{
	struct cedar_error err;
	struct file f;
	int r;

	if (file_read(o->policies, &f) != 0)
		return TOOL_FAILURE;
	r = add_policies(b, o, &f, &err);
	if (r < 0)
		diag_error("error", &f, &err);
	file_done(&f);
	if (r < 0 || add_links(b, o) != 0)
		return TOOL_FAILURE;
	r = cedar_builder_finish(b, ret, &err);
	if (r < 0)
		diag_error("error", NULL, &err);
	return r < 0 ? TOOL_FAILURE : 0;
}

int load_policies(const struct options *o, cedar_policies **ret)
{
	cedar_builder *b = cedar_builder_new(NULL);

	if (!b) {
		diag_say("error", "out of memory");
		return TOOL_FAILURE;
	}
	if (build(o, b, ret) == 0)
		return 0;
	cedar_builder_free(b);
	return TOOL_FAILURE;
}

/* ---- schema and data ---- */

int load_schema(const struct options *o, cedar_schema **ret)
{
	struct cedar_error err;
	struct file f;
	int r;

	*ret = NULL;
	if (!o->schema)
		return 0;
	if (file_read(o->schema, &f) != 0)
		return TOOL_FAILURE;
	r = is_json(o->schema_format) ? cedar_schema_from_json(f.data, f.n, NULL, ret, &err)
				      : cedar_schema_from_text(f.data, f.n, NULL, ret, &err);
	if (r < 0)
		diag_error("error", &f, &err);
	file_done(&f);
	return r < 0 ? TOOL_FAILURE : 0;
}

int load_entities(const struct options *o, const cedar_schema *schema, cedar_entities **ret)
{
	struct cedar_error err;
	struct file f = {.name = "<no entities>", .data = strdup("[]"), .n = 2};
	int r;

	if (o->entities) {
		file_done(&f);
		if (file_read(o->entities, &f) != 0)
			return TOOL_FAILURE;
	}
	r = schema ? cedar_schema_entities_from_json(schema, f.data, f.n, NULL, ret, &err)
		   : cedar_entities_from_json(f.data, f.n, NULL, ret, &err);
	if (r < 0)
		diag_error("error", &f, &err);
	file_done(&f);
	return r < 0 ? TOOL_FAILURE : 0;
}

static void put_member(struct ced_out *out, const char *key, const char *text)
{
	ced_out_text(out, out->length ? "," : "{");
	ced_out_json_string(out, key, strlen(key));
	ced_out_text(out, ":");
	ced_out_json_string(out, text, strlen(text));
}

/* The request of the options as the JSON object that the library reads. */
static int request_json(const struct options *o, struct file *ret)
{
	struct ced_out out = {0};
	struct cedar_text text;
	struct cedar_error err;
	struct file context = {0};

	if (!o->principal || !o->action || !o->resource) {
		diag_say("error", "a request needs --principal, --action and --resource, or "
				  "--request-json");
		return TOOL_FAILURE;
	}
	if (o->context && file_read(o->context, &context) != 0)
		return TOOL_FAILURE;
	put_member(&out, "principal", o->principal);
	put_member(&out, "action", o->action);
	put_member(&out, "resource", o->resource);
	ced_out_text(&out, ",\"context\":");
	if (o->context)
		ced_out_bytes(&out, context.data, context.n);
	else
		ced_out_text(&out, "{}");
	ced_out_text(&out, "}");
	file_done(&context);
	if (ced_out_take(&out, &text, &err) < 0) {
		diag_error("error", NULL, &err);
		return TOOL_FAILURE;
	}
	*ret = (struct file){.name = "<request>", .data = text.data, .n = text.length};
	return 0;
}

int load_request(const struct options *o, const cedar_schema *schema, cedar_request **ret)
{
	struct cedar_error err;
	struct file f;
	int r = o->request ? file_read(o->request, &f) : request_json(o, &f);

	if (r != 0)
		return r;
	r = schema && !o->no_request_validation
		    ? cedar_schema_request_from_json(schema, f.data, f.n, NULL, ret, &err)
		    : cedar_request_from_json(f.data, f.n, NULL, ret, &err);
	if (r < 0)
		diag_error("error", &f, &err);
	file_done(&f);
	return r < 0 ? TOOL_FAILURE : 0;
}
