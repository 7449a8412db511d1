/* Requests, checked: see request.h. Pure: no I/O. */
#include "transport/http/request.h"

#include <strings.h>

static const char *const method_names[] = {
#define HTTP_METHOD(name) #name,
	HTTP_METHODS(HTTP_METHOD)
#undef HTTP_METHOD
};

const char *http_method_name(enum http_method m)
{
	return method_names[m];
}

/* --- the target ------------------------------------------------------------------------------- */

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool http_unpercent(struct str s, bool plus_is_blank, char *to, size_t *ret_n)
{
	size_t n = 0;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (c == '%') {
			if (s.n - i < 3 || hex(s.p[i + 1]) < 0 || hex(s.p[i + 2]) < 0)
				return false;
			c = (char)(hex(s.p[i + 1]) << 4 | hex(s.p[i + 2]));
			i += 2;
		} else if (c == '+' && plus_is_blank) {
			c = ' ';
		}
		to[n++] = c;
	}
	*ret_n = n;
	return true;
}

static bool is_target_byte(char c)
{
	return c > 0x20 && c < 0x7f && c != '"' && c != '<' && c != '>' && c != '\\' && c != '^' &&
	       c != '`' && c != '{' && c != '|' && c != '}' && c != '#';
}

static int add_segment(struct http_request *q, struct str raw, char **at, struct err *err)
{
	struct str *s = &q->segments[q->n_segments];
	if (q->n_segments == HTTP_SEGMENTS_MAX)
		return err_set(err, ERR_TOO_LARGE, "the path has more than %d segments",
			HTTP_SEGMENTS_MAX);
	s->p = *at;
	if (!http_unpercent(raw, false, *at, &s->n))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the path has a %% that is not followed by two hexadecimal digits");
	if (memchr(s->p, '\0', s->n) || memchr(s->p, '/', s->n))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"a segment of the path may not hold an encoded slash or NUL");
	if (str_eq(*s, STR(".")) || str_eq(*s, STR("..")))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "the path may not have the segments . and ..");
	*at += s->n;
	*(*at)++ = '\0';
	q->n_segments++;
	return 0;
}

/* "/a/b" has the segments a and b, "/a/" has a and an empty one, "/" an empty one. */
static int split_path(struct http_request *q, struct str path, char **at, struct err *err)
{
	size_t from = 1;
	for (size_t i = 1; i <= path.n; i++) {
		if (i < path.n && path.p[i] != '/')
			continue;
		if (i == from && i < path.n)
			return err_set(err, ERR_INVALID_ARGUMENT, "the path has an empty segment");
		int r = add_segment(q, (struct str){path.p + from, i - from}, at, err);
		if (r < 0)
			return r;
		from = i + 1;
	}
	return 0;
}

static int unescape_param(struct str raw, struct str *ret, char **at, struct err *err)
{
	ret->p = *at;
	if (!http_unpercent(raw, true, *at, &ret->n))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the query has a %% that is not followed by two hexadecimal digits");
	if (memchr(ret->p, '\0', ret->n) || !utf8_valid(ret->p, ret->n))
		return err_set(err, ERR_INVALID_ARGUMENT, "the query is not UTF-8 text");
	*at += ret->n;
	*(*at)++ = '\0';
	return 0;
}

static int add_param(struct http_request *q, struct str raw, char **at, struct err *err)
{
	const char *eq = memchr(raw.p, '=', raw.n);
	size_t n = eq ? (size_t)(eq - raw.p) : raw.n;
	struct http_param *p = &q->params[q->n_params];
	if (q->n_params == HTTP_PARAMS_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "the query has more than %d parameters",
			HTTP_PARAMS_MAX);
	int r = unescape_param((struct str){raw.p, n}, &p->name, at, err);
	if (r == 0)
		r = unescape_param(
			eq ? (struct str){eq + 1, raw.n - n - 1} : STR(""), &p->value, at, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < q->n_params; i++)
		if (str_eq(q->params[i].name, p->name))
			return err_set(err, ERR_INVALID_ARGUMENT, "the parameter %.40s comes twice",
				p->name.p);
	q->n_params++;
	return 0;
}

static int split_query(struct http_request *q, struct str query, char **at, struct err *err)
{
	size_t from = 0;
	for (size_t i = 0; i <= query.n; i++) {
		if (i < query.n && query.p[i] != '&')
			continue;
		int r = i > from ? add_param(q, (struct str){query.p + from, i - from}, at, err)
				 : 0;
		if (r < 0)
			return r;
		from = i + 1;
	}
	return 0;
}

static int read_target(struct http_request *q, struct str target, struct err *err)
{
	if (target.n > HTTP_TARGET_MAX)
		return err_set(
			err, ERR_TOO_LARGE, "the target is longer than %d bytes", HTTP_TARGET_MAX);
	if (target.n == 0 || target.p[0] != '/')
		return err_set(err, ERR_INVALID_ARGUMENT, "the target must start with a slash");
	for (size_t i = 0; i < target.n; i++)
		if (!is_target_byte(target.p[i]))
			return err_set(err, ERR_INVALID_ARGUMENT,
				"the target holds a byte that must be percent-encoded");
	/* Decoding only shrinks, and every piece ends in a NUL of its own: a parameter without
	 * `=` has two. */
	q->memory = malloc(target.n + HTTP_PARAMS_MAX + 4);
	if (!q->memory)
		return err_oom(err);
	char *at = q->memory;
	const char *mark = memchr(target.p, '?', target.n);
	size_t n = mark ? (size_t)(mark - target.p) : target.n;
	int r = split_path(q, (struct str){target.p, n}, &at, err);
	return r < 0 || !mark ? r
			      : split_query(q, (struct str){mark + 1, target.n - n - 1}, &at, err);
}

int http_request_start(
	struct http_request *q, struct str method, struct str target, struct err *err)
{
	memset(q, 0, sizeof(*q));
	for (unsigned i = 0; i < HTTP_METHOD_MAX_; i++)
		if (str_eq_c(method, method_names[i])) {
			q->method = (enum http_method)i;
			return read_target(q, target, err);
		}
	return err_set(err, ERR_UNSUPPORTED, "this method is not known here");
}

void http_request_done(struct http_request *q)
{
	free(take_ptr(q->memory));
}

/* --- headers ---------------------------------------------------------------------------------- */

static bool is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
		if (!alnum && (c == '\0' || !strchr("!#$%&'*+-.^_`|~", c)))
			return false;
	}
	return s.n > 0;
}

static bool is_value(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 ? s.p[i] != '\t' : s.p[i] == 0x7f)
			return false;
	return true;
}

static struct str *known_header(struct http_request *q, struct str name)
{
#define HTTP_HEADER(member, text)                                                                  \
	if (name.n == sizeof(text) - 1 && strncasecmp(name.p, text, name.n) == 0)                  \
		return &q->member;
	HTTP_HEADERS(HTTP_HEADER)
#undef HTTP_HEADER
	return NULL;
}

static struct str trim(struct str s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
		s.p++, s.n--;
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

int http_request_header(struct http_request *q, struct str name, struct str value, struct err *err)
{
	if (++q->n_headers > HTTP_HEADERS_MAX)
		return err_set(err, ERR_TOO_LARGE, "the request has more than %d headers",
			HTTP_HEADERS_MAX);
	if (!is_token(name))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"a header's name is malformed, or a header line is folded");
	if (!is_value(value))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the value of the header %.40s has a control character", name.p);
	struct str *known = known_header(q, name);
	if (!known)
		return 0;
	if (known->p)
		return err_set(err, ERR_INVALID_ARGUMENT, "the header %.40s comes twice", name.p);
	*known = trim(value);
	return 0;
}

static bool host_byte(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '-' ||
	       c == '.' || c == '_';
}

/* uri-host [":" port]: the length of the host part, 0 when malformed. */
static size_t host_part(struct str h)
{
	size_t n = 0;
	if (h.n > 0 && h.p[0] == '[') {
		for (n = 1; n < h.n && (hex(h.p[n]) >= 0 || h.p[n] == ':' || h.p[n] == '.');)
			n++;
		if (n == h.n || h.p[n++] != ']')
			return 0;
	} else {
		while (n < h.n && host_byte(h.p[n]))
			n++;
	}
	if (n == h.n)
		return n;
	if (h.p[n] != ':' || h.n - n > 6)
		return 0;
	for (size_t i = n + 1; i < h.n; i++)
		if (h.p[i] < '0' || h.p[i] > '9')
			return 0;
	return n;
}

static bool listed(struct str s, const char *const *list)
{
	for (; list && *list; list++)
		if (s.n == strlen(*list) && strncasecmp(s.p, *list, s.n) == 0)
			return true;
	return false;
}

static int check_host(const struct http_request *q, const struct http_hosts *ours, struct err *err)
{
	size_t n = host_part(q->host);
	if (!q->host.p)
		return err_set(err, ERR_INVALID_ARGUMENT, "the request has no Host header");
	if (n == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "the Host header is malformed");
	if (ours->any || listed((struct str){q->host.p, n}, ours->hosts))
		return 0;
	err_set(err, ERR_DENIED, "the Host header names a host that is not this server");
	return err_hint(err, "list the name in serve.hosts");
}

/* An origin is ours when it is listed, or when it is the very host that the request names, which
 * check_host() has found to be ours. */
static int check_origin(
	const struct http_request *q, const struct http_hosts *ours, struct err *err)
{
	struct str o = q->origin;
	if (!o.p || listed(o, ours->origins))
		return 0;
	size_t skip = str_starts(o, STR("http://")) ? 7 : str_starts(o, STR("https://")) ? 8 : 0;
	if (skip && !ours->any && o.n - skip == q->host.n &&
		strncasecmp(o.p + skip, q->host.p, q->host.n) == 0)
		return 0;
	err_set(err, ERR_DENIED, "the request comes from a web page of another origin");
	return err_hint(err, "list the origin in serve.origins");
}

static int read_length(struct http_request *q, struct err *err)
{
	struct str n = q->content_length;
	if (!n.p)
		return 0;
	for (size_t i = 0; i < n.n; i++) {
		if (n.p[i] < '0' || n.p[i] > '9')
			return err_set(
				err, ERR_INVALID_ARGUMENT, "Content-Length is not a plain number");
		if (q->length > (INT64_MAX - 9) / 10)
			return err_set(err, ERR_TOO_LARGE, "Content-Length is beyond any limit");
		q->length = q->length * 10 + (n.p[i] - '0');
	}
	return n.n > 0 ? 0
		       : err_set(err, ERR_INVALID_ARGUMENT, "Content-Length is not a plain number");
}

static int check_framing(struct http_request *q, struct err *err)
{
	struct str te = q->transfer_encoding;
	if (te.p && q->content_length.p)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the request has both Content-Length and Transfer-Encoding");
	if (te.p && (te.n != 7 || strncasecmp(te.p, "chunked", 7) != 0))
		return err_set(err, ERR_UNSUPPORTED, "no transfer encoding but chunked is known");
	if (te.p)
		q->length = -1;
	if (q->content_encoding.p && !str_eq(q->content_encoding, STR("identity")))
		return err_set(err, ERR_UNSUPPORTED, "bodies are taken without content encoding");
	return read_length(q, err);
}

static int read_token(struct http_request *q, struct err *err)
{
	struct str a = q->authorization;
	if (!a.p)
		return 0;
	if (a.n < 8 || strncasecmp(a.p, "bearer ", 7) != 0)
		return err_set(err, ERR_UNAUTHENTICATED, "Authorization must be a bearer token");
	q->token = trim((struct str){a.p + 7, a.n - 7});
	for (size_t i = 0; i < q->token.n; i++)
		if (q->token.p[i] <= 0x20 || q->token.p[i] >= 0x7f)
			return err_set(err, ERR_UNAUTHENTICATED, "the bearer token is malformed");
	return q->token.n > 0 ? 0 : err_set(err, ERR_UNAUTHENTICATED, "the bearer token is empty");
}

int http_request_finish(struct http_request *q, const struct http_hosts *ours, struct err *err)
{
	int r = check_framing(q, err);
	if (r == 0)
		r = check_host(q, ours, err);
	if (r == 0)
		r = check_origin(q, ours, err);
	if (r == 0)
		r = read_token(q, err);
	return r;
}

/* --- reading it ------------------------------------------------------------------------------- */

struct str http_request_param(const struct http_request *q, const char *name)
{
	for (unsigned i = 0; i < q->n_params; i++)
		if (str_eq_c(q->params[i].name, name))
			return q->params[i].value;
	return (struct str){NULL, 0};
}

bool http_request_is(const struct http_request *q, const char *media_type)
{
	struct str t = q->content_type;
	const char *end = t.p ? memchr(t.p, ';', t.n) : NULL;
	if (end)
		t.n = (size_t)(end - t.p);
	t = t.p ? trim(t) : STR("");
	return t.n == strlen(media_type) && strncasecmp(t.p, media_type, t.n) == 0;
}

/* Digits from *at on; -1: none, or too many. */
static int64_t number(struct str s, size_t *at)
{
	int64_t v = 0;
	size_t from = *at;
	for (; *at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9'; (*at)++) {
		if (v > (INT64_MAX - 9) / 10)
			return -1;
		v = v * 10 + (s.p[*at] - '0');
	}
	return *at > from ? v : -1;
}

int http_range(struct str range, int64_t size, int64_t *ret_from, int64_t *ret_n)
{
	size_t at = 6;
	if (range.n < 8 || strncasecmp(range.p, "bytes=", 6) != 0)
		return 0;
	int64_t first = number(range, &at);
	if (at == range.n || range.p[at++] != '-')
		return 0;
	bool has_last = at < range.n;
	int64_t last = number(range, &at);
	if (at != range.n || (has_last && last < 0) || (first < 0 && !has_last) ||
		(first >= 0 && has_last && last < first))
		return 0;
	if (first < 0) { /* the last `last` bytes */
		if (last == 0 || size == 0)
			return -1;
		first = MAX(size - last, (int64_t)0);
		has_last = false;
	}
	if (first >= size)
		return -1;
	*ret_from = first;
	*ret_n = (has_last && last < size ? last + 1 : size) - first;
	return 1;
}

bool http_etag_in(struct str list, struct str tag)
{
	if (str_eq(trim(list), STR("*")))
		return true;
	for (size_t i = 0; i < list.n;) {
		if (list.p[i] != '"') {
			i++;
			continue;
		}
		const char *end = memchr(list.p + i + 1, '"', list.n - i - 1);
		if (!end)
			return false;
		size_t n = (size_t)(end - list.p) - i - 1;
		bool weak = i >= 2 && list.p[i - 1] == '/' && list.p[i - 2] == 'W';
		if (!weak && str_eq((struct str){list.p + i + 1, n}, tag))
			return true;
		i += n + 2;
	}
	return false;
}
