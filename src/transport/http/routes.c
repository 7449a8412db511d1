/* Matching requests to routes.def: see routes.h. */
#include "transport/http/api_impl.h"

static const struct route table[] = {
#define ROUTE(m, p, h, o, q, b, s, text)                                                           \
	{.method = HTTP_##m,                                                                       \
		.pattern = p,                                                                      \
		.handle = api_##h,                                                                 \
		.op = DOOR_##o,                                                                    \
		.query = api_query_##q,                                                            \
		.body = api_body_##b,                                                              \
		.status = s,                                                                       \
		.summary = text,                                                                   \
		.name = #h},
#include "transport/http/routes.def"
#undef ROUTE
};

const struct route *const routes = table;
const unsigned n_routes = ARRAY_LEN(table);

static struct str *variable(struct route_match *m, struct str name)
{
	return str_eq(name, STR("{session}")) ? &m->session
	       : str_eq(name, STR("{tool}"))  ? &m->tool
					      : &m->call;
}

/* An empty segment fits nothing but the end of "/" itself. */
static bool fits(const struct route *r, const struct http_request *q, struct route_match *m)
{
	const char *p = r->pattern;
	*m = (struct route_match){.route = r};
	for (unsigned i = 0; i < q->n_segments; i++) {
		if (*p++ != '/')
			return false;
		struct str part = {p, strcspn(p, "/")};
		p += part.n;
		if (str_eq(part, STR("{path}"))) {
			m->path_from = i;
			return q->segments[q->n_segments - 1].n > 0;
		}
		if (q->segments[i].n == 0)
			return false;
		if (part.n > 0 && part.p[0] == '{')
			*variable(m, part) = q->segments[i];
		else if (!str_eq(part, q->segments[i]))
			return false;
	}
	return *p == '\0';
}

int route_find(
	const struct http_request *q, struct route_match *ret, char *ret_allow, struct err *err)
{
	_cleanup_buf_ struct buf allow = buf_init(64);
	for (unsigned i = 0; i < n_routes; i++) {
		if (!fits(&table[i], q, ret))
			continue;
		if (table[i].method == q->method)
			return 0;
		buf_printf(
			&allow, "%s%s", allow.len ? ", " : "", http_method_name(table[i].method));
	}
	if (allow.len == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no such resource");
	(void)snprintf(ret_allow, 64, "%s", buf_str(&allow));
	err_set(err, ERR_UNSUPPORTED, "this resource does not take the method %s",
		http_method_name(q->method));
	return err_hint(err, "it takes %s", ret_allow);
}
