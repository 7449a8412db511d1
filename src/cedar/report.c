/* What a validation found. See report.h. */
#include "cedar/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ced_report_init(struct cedar_report *r, size_t bytes_max)
{
	*r = (struct cedar_report){0};
	ced_arena_init(&r->arena, bytes_max, "memory_bytes");
}

void ced_report_done(struct cedar_report *r)
{
	ced_arena_done(&r->arena);
}

void ced_report_about(struct cedar_report *r, const struct ced_name *policy_id)
{
	static const struct ced_name none;

	r->policy = ced_name_make(&r->arena, policy_id->text, policy_id->length);
	if (!r->policy) {
		r->policy = &none;
		r->out_of_memory = true;
	}
}

static bool known(const struct cedar_report *r, const struct ced_finding *f)
{
	for (size_t i = r->n; i > 0; i--) {
		const struct ced_finding *other = &r->v[i - 1];

		if (other->policy != f->policy)
			return false;
		if (other->warning == f->warning && other->pos.offset == f->pos.offset &&
			other->pos.length == f->pos.length && strcmp(other->text, f->text) == 0)
			return true;
	}
	return false;
}

static bool make_room(struct cedar_report *r)
{
	size_t cap = r->cap ? r->cap * 2 : 16;
	struct ced_finding *v;

	if (r->n < r->cap)
		return true;
	v = ced_arena_alloc(&r->arena, cap * sizeof(*v));
	if (!v)
		return false;
	if (r->n)
		memcpy(v, r->v, r->n * sizeof(*v));
	r->v = v;
	r->cap = cap;
	return true;
}

static void keep(struct cedar_report *r, struct ced_finding *f)
{
	size_t size = strlen(f->text) + 1;
	char *text;

	text = make_room(r) ? ced_arena_alloc(&r->arena, size) : NULL;
	if (!text) {
		r->out_of_memory = true;
		return;
	}
	memcpy(text, f->text, size);
	f->text = text;
	r->v[r->n++] = *f;
}

static void add(struct cedar_report *r, bool warning, struct ced_pos at, const char *fmt,
	va_list ap) __attribute__((format(printf, 4, 0)));

static void add(
	struct cedar_report *r, bool warning, struct ced_pos at, const char *fmt, va_list ap)
{
	char text[REPORT_TEXT_MAX];
	struct ced_finding f = {.warning = warning, .policy = r->policy, .pos = at, .text = text};

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	if (known(r, &f))
		return;
	if (warning)
		r->n_warnings++;
	else
		r->n_errors++;
	if (r->n < CEDAR_REPORT_MAX)
		keep(r, &f);
}

void ced_report_error(struct cedar_report *r, struct ced_pos at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(r, false, at, fmt, ap);
	va_end(ap);
}

void ced_report_warning(struct cedar_report *r, struct ced_pos at, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(r, true, at, fmt, ap);
	va_end(ap);
}
