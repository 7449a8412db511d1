/* Growing text, and the two ways to quote a string. */
#include "cedar/out.h"

#include <stdio.h>
#include <stdlib.h>

static bool reserve(struct ced_out *o, size_t n)
{
	if (o->failed)
		return false;
	if (n > CED_OUT_MAX - o->length) {
		o->failed = o->over_limit = true;
		return false;
	}
	if (o->length + n < o->capacity)
		return true;
	size_t capacity = (o->length + n) * 2 + 64;
	char *data = realloc(o->data, capacity);
	if (!data) {
		o->failed = true;
		return false;
	}
	o->data = data;
	o->capacity = capacity;
	return true;
}

void ced_out_bytes(struct ced_out *o, const char *p, size_t n)
{
	if (!n || !reserve(o, n))
		return;
	memcpy(o->data + o->length, p, n);
	o->length += n;
}

void ced_out_text(struct ced_out *o, const char *text)
{
	ced_out_bytes(o, text, strlen(text));
}

void ced_out_name(struct ced_out *o, const struct ced_name *name)
{
	ced_out_bytes(o, name->text, name->length);
}

void ced_out_number(struct ced_out *o, int64_t n)
{
	char text[24];
	(void)snprintf(text, sizeof(text), "%lld", (long long)n);
	ced_out_text(o, text);
}

/* How one byte is written inside of quotes; NULL: as it is. */
static const char *cedar_escape(unsigned char c, char room[8])
{
	switch (c) {
	case '"': return "\\\"";
	case '\\': return "\\\\";
	case '\n': return "\\n";
	case '\r': return "\\r";
	case '\t': return "\\t";
	case 0: return "\\0";
	default: break;
	}
	if (c >= 0x20 && c != 0x7f)
		return NULL;
	(void)snprintf(room, 8, "\\u{%x}", c);
	return room;
}

static const char *json_escape(unsigned char c, char room[8])
{
	switch (c) {
	case '"': return "\\\"";
	case '\\': return "\\\\";
	case '\b': return "\\b";
	case '\f': return "\\f";
	case '\n': return "\\n";
	case '\r': return "\\r";
	case '\t': return "\\t";
	default: break;
	}
	if (c >= 0x20)
		return NULL;
	(void)snprintf(room, 8, "\\u%04x", c);
	return room;
}

static const char *pattern_escape(unsigned char c, char room[8])
{
	return c == '*' ? "\\*" : cedar_escape(c, room);
}

static void escaped(struct ced_out *o, const char *p, size_t n,
	const char *(*escape)(unsigned char c, char room[8]))
{
	size_t plain = 0;
	char room[8];
	for (size_t i = 0; i < n; i++) {
		const char *e = escape((unsigned char)p[i], room);
		if (!e)
			continue;
		ced_out_bytes(o, p + plain, i - plain);
		ced_out_text(o, e);
		plain = i + 1;
	}
	ced_out_bytes(o, p + plain, n - plain);
}

void ced_out_quoted(struct ced_out *o, const char *p, size_t n)
{
	ced_out_bytes(o, "\"", 1);
	escaped(o, p, n, cedar_escape);
	ced_out_bytes(o, "\"", 1);
}

void ced_out_pattern_part(struct ced_out *o, const char *p, size_t n)
{
	escaped(o, p, n, pattern_escape);
}

void ced_out_json_string(struct ced_out *o, const char *p, size_t n)
{
	ced_out_bytes(o, "\"", 1);
	escaped(o, p, n, json_escape);
	ced_out_bytes(o, "\"", 1);
}

void ced_out_uid(struct ced_out *o, const struct ced_uid *uid)
{
	ced_out_name(o, uid->type);
	ced_out_text(o, "::");
	ced_out_quoted(o, uid->id->text, uid->id->length);
}

int ced_out_take(struct ced_out *o, struct cedar_text *ret, struct cedar_error *err)
{
	if (!reserve(o, 1)) {
		bool over = o->over_limit;
		free(o->data);
		*o = (struct ced_out){0};
		return over ? ced_fail_limit(err, (struct ced_pos){0}, "output bytes", CED_OUT_MAX)
			    : ced_fail_memory(err);
	}
	o->data[o->length] = '\0';
	*ret = (struct cedar_text){o->data, o->length};
	*o = (struct ced_out){0};
	return 0;
}

void cedar_text_free(struct cedar_text *text)
{
	if (!text)
		return;
	free(text->data);
	*text = (struct cedar_text){0};
}
