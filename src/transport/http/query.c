/* From the text of a query to the typed arguments of an operation. */
#include "transport/http/api_impl.h"

#include <errno.h>

static const struct field *field_of(const struct field *table, struct str name)
{
	for (; table->name; table++)
		if (str_eq_c(name, table->name))
			return table;
	return NULL;
}

static int read_int(const struct field *f, struct str text, int64_t *ret, struct err *err)
{
	char *end;
	errno = 0;
	long long v = strtoll(text.p, &end, 10);
	int64_t max = f->max ? f->max : INT64_MAX;
	if (text.n == 0 || end != text.p + text.n || errno || text.p[0] == '+' || v < f->min ||
		v > max || strspn(text.p, " \t\n\r\v\f"))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"argument '%s' must be an integer from %lld to %lld", f->name,
			(long long)f->min, (long long)max);
	*ret = v;
	return 0;
}

static int put_param(struct api_request *a, const struct http_param *p, struct err *err)
{
	const struct field *f = field_of(a->match.route->query, p->name);
	int64_t v;
	if (!f)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "argument '%.64s' is not known here", p->name.p);
	if (f->type == FIELD_INT) {
		int r = read_int(f, p->value, &v, err);
		if (r < 0)
			return r;
		if (strcmp(f->name, "wait_ms") == 0)
			a->wait_ms = v;
		else
			jw_int(&a->arguments, f->name, v);
		return 0;
	}
	if (f->type == FIELD_BOOL && !str_eq(p->value, STR("true")) &&
		!str_eq(p->value, STR("false")))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "argument '%s' must be true or false", f->name);
	if (f->type == FIELD_BOOL)
		jw_bool(&a->arguments, f->name, p->value.p[0] == 't');
	else
		jw_str(&a->arguments, f->name, p->value);
	return 0;
}

int api_read_query(struct api_request *a, struct err *err)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < a->q->n_params; i++)
		r = put_param(a, &a->q->params[i], err);
	return r;
}
