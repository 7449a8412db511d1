/* Types in messages. See type_print.h. */
#include "cedar/type_print.h"

#include <string.h>

struct printer {
	const struct cedar_schema *s;
	char *text;
	size_t n;
	bool full;
};

static void put(struct printer *p, const char *s, size_t n)
{
	static const char rest[] = "...";

	if (p->full)
		return;
	if (n > CED_TY_TEXT_MAX - sizeof(rest) - p->n) {
		memcpy(p->text + p->n, rest, sizeof(rest));
		p->full = true;
		return;
	}
	if (n)
		memcpy(p->text + p->n, s, n);
	p->n += n;
	p->text[p->n] = '\0';
}

static void puts_(struct printer *p, const char *s)
{
	put(p, s, strlen(s));
}

/* Stops when the text is full, so that a shared graph cannot make it long-winded. */
static void put_type(struct printer *p, const struct ced_type *type)
{
	if (p->full)
		return;
	switch (type->kind) {
	case CED_TY_FALSE: puts_(p, "False"); break;
	case CED_TY_TRUE: puts_(p, "True"); break;
	case CED_TY_BOOL: puts_(p, "Bool"); break;
	case CED_TY_LONG: puts_(p, "Long"); break;
	case CED_TY_STRING: puts_(p, "String"); break;
	case CED_TY_EXT: puts_(p, ced_kind_name((enum ced_kind)type->id)); break;
	case CED_TY_ENTITY:
		put(p, p->s->etypes[type->id].name.p, p->s->etypes[type->id].name.n);
		break;
	case CED_TY_SET:
		puts_(p, "Set<");
		put_type(p, type->elem);
		puts_(p, ">");
		break;
	case CED_TY_RECORD:
		puts_(p, "{");
		for (size_t i = 0; i < type->n_attrs && !p->full; i++) {
			puts_(p, i > 0 ? ", " : "");
			put(p, type->attrs[i].name.p, type->attrs[i].name.n);
			puts_(p, type->attrs[i].required ? ": " : "?: ");
			put_type(p, type->attrs[i].type);
		}
		puts_(p, "}");
		break;
	}
}

const char *ced_type_text(const struct cedar_schema *s, const struct ced_type *type, char *text)
{
	struct printer p = {.s = s, .text = text};

	text[0] = '\0';
	put_type(&p, type);
	return text;
}
