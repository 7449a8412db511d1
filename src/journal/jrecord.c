/* Records of the journal as lines: see jrecord.h. Reader and writer follow from jrecord.def. */
#include "journal/jrecord.h"

#include "codec/json_write.h"

/* --- what a record may be --- */

static bool kind_known(struct str kind)
{
	return str_eq_c(kind, JRECORD_KIND_CALL) || str_eq_c(kind, JRECORD_KIND_INTENT) ||
	       str_eq_c(kind, JRECORD_KIND_OUTCOME) || str_eq_c(kind, JRECORD_KIND_NOTE);
}

static size_t bytes_texts(const jrecord_texts *v)
{
	size_t sum = 0;
	for (unsigned i = 0; i < v->n; i++)
		sum += v->v[i].n;
	return sum;
}

static size_t bytes_text(const jrecord_text *v)
{
	return v->n;
}

static size_t bytes_number(const jrecord_number *v _unused_)
{
	return 0;
}

static size_t bytes_of(const struct jrecord *r)
{
	size_t sum = 0;
#define MEMBER(type, name, max) sum += bytes_##type(&r->name);
#include "journal/jrecord.def"
#undef MEMBER
	return sum;
}

static bool fits_text(const jrecord_text *v, uint64_t max)
{
	return v->n <= max && utf8_valid(v->p, v->n);
}

static bool fits_texts(const jrecord_texts *v, uint64_t max)
{
	if (v->n > max)
		return false;
	for (unsigned i = 0; i < v->n; i++)
		if (!fits_text(&v->v[i], JRECORD_TEXT_MAX))
			return false;
	return true;
}

static bool fits_number(const jrecord_number *v, uint64_t max)
{
	return *v <= max;
}

/* --- writing --- */

static void put_text(struct buf *b, const char *name, const jrecord_text *v)
{
	if (v->n)
		jw_str(b, name, *v);
}

static void put_texts(struct buf *b, const char *name, const jrecord_texts *v)
{
	if (!v->n)
		return;
	jw_key(b, name);
	jw_open(b, '[');
	for (unsigned i = 0; i < v->n; i++)
		jw_elem_str(b, v->v[i]);
	jw_close(b, ']');
}

static bool always_there(const char *name)
{
	return strcmp(name, "seq") == 0 || strcmp(name, "time") == 0;
}

static void put_number(struct buf *b, const char *name, const jrecord_number *v)
{
	if (*v || always_there(name))
		jw_int(b, name, (int64_t)*v);
}

int jrecord_write(const struct jrecord *r, struct buf *out, struct err *err)
{
#define MEMBER(type, name, max)                                                                    \
	if (!fits_##type(&r->name, max))                                                           \
		return err_set(err, ERR_INVALID_ARGUMENT,                                          \
			"'%s' of a journal record is over its limit or not UTF-8", #name);
#include "journal/jrecord.def"
#undef MEMBER
	if (!kind_known(r->kind))
		return err_set(err, ERR_INVALID_ARGUMENT, "no journal record is of such a kind");
	if (bytes_of(r) > JRECORD_BYTES_MAX)
		return err_set(err, ERR_LIMIT, "the texts of a journal record have over %d bytes",
			JRECORD_BYTES_MAX);
	buf_putc(out, '{');
#define MEMBER(type, name, max) put_##type(out, #name, &r->name);
#include "journal/jrecord.def"
#undef MEMBER
	buf_put(out, "}\n", 2);
	return buf_check(out, "a group of journal records", err);
}

/* --- reading --- */

struct reader {
	const char *p, *end;
	struct jrecord_memory *memory;
	const char *why; /* what is wrong */
};

static bool fail(struct reader *r, const char *why)
{
	if (!r->why)
		r->why = why;
	return false;
}

static bool take(struct reader *r, char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

static char *keep(struct jrecord_memory *m, size_t n)
{
	if (n > sizeof(m->bytes) - m->used)
		return NULL;
	char *to = m->bytes + m->used;
	m->used += n;
	return to;
}

/* Two digits of an escape that canonical JSON spells \u00xx: the control characters without a short
 * one. */
static int control_of(const char *p)
{
	static const char hex[] = "0123456789abcdef";
	const char *hi = p[0] ? strchr(hex, p[0]) : NULL, *lo = p[1] ? strchr(hex, p[1]) : NULL;
	if (!hi || !lo || hi - hex > 1)
		return -1;
	int c = (int)((hi - hex) * 16 + (lo - hex));
	return c == '\b' || c == '\t' || c == '\n' || c == '\f' || c == '\r' ? -1 : c;
}

static int unescape(struct reader *r)
{
	static const char shorts[] = "\"\\bfnrt", values[] = "\"\\\b\f\n\r\t";
	if (r->p == r->end)
		return -1;
	char c = *r->p++;
	const char *at = c ? strchr(shorts, c) : NULL;
	if (at)
		return (unsigned char)values[at - shorts];
	if (c != 'u' || r->end - r->p < 4 || r->p[0] != '0' || r->p[1] != '0')
		return -1;
	int value = control_of(r->p + 2);
	r->p += 4;
	return value;
}

/* From the first escape on the text is copied. `from` is where it began. */
static bool read_escaped(struct reader *r, const char *from, struct str *ret)
{
	size_t plain = (size_t)(r->p - from), n = plain;
	char *to = keep(r->memory, (size_t)(r->end - from));
	if (!to)
		return fail(r, "has too much text");
	memcpy(to, from, plain);
	while (r->p < r->end && *r->p != '"') {
		int c = (unsigned char)*r->p++;
		if (c == '\\')
			c = unescape(r);
		else if (c < 0x20)
			c = -1;
		if (c < 0)
			return fail(r, "has a text that is not canonical");
		to[n++] = (char)c;
	}
	*ret = (struct str){to, n};
	r->memory->used = (size_t)(to - r->memory->bytes) + n;
	return take(r, '"') || fail(r, "ends within a text");
}

static bool read_string(struct reader *r, struct str *ret)
{
	if (!take(r, '"'))
		return fail(r, "lacks a text where one is due");
	const char *from = r->p;
	while (r->p < r->end && *r->p != '"' && *r->p != '\\' && (unsigned char)*r->p >= 0x20)
		r->p++;
	if (r->p < r->end && *r->p == '\\')
		return read_escaped(r, from, ret);
	*ret = (struct str){from, (size_t)(r->p - from)};
	return take(r, '"') || fail(r, "has a text that is not canonical");
}

static bool read_text(struct reader *r, jrecord_text *ret)
{
	return read_string(r, ret) && (ret->n > 0 || fail(r, "has an empty text"));
}

static bool read_texts(struct reader *r, jrecord_texts *ret)
{
	if (!take(r, '['))
		return fail(r, "lacks a list where one is due");
	do {
		if (ret->n == JRECORD_LIST_MAX)
			return fail(r, "has a list that is too long");
		if (!read_string(r, &ret->v[ret->n]))
			return false;
		ret->n++;
	} while (take(r, ','));
	return take(r, ']') || fail(r, "has a list without an end");
}

static bool read_number(struct reader *r, jrecord_number *ret)
{
	uint64_t n = 0;
	const char *from = r->p;
	while (r->p < r->end && *r->p >= '0' && *r->p <= '9' && r->p - from < 16)
		n = n * 10 + (uint64_t)(*r->p++ - '0');
	if (r->p == from || *from == '0') /* 0 is left out */
		return fail(r, "has a number that is not canonical");
	*ret = n;
	return true;
}

/* Is this the next member? Then its name is taken. */
static bool at_member(struct reader *r, bool first, const char *name, size_t n)
{
	const char *p = r->p;
	size_t left = (size_t)(r->end - p), need = n + 3 + !first;
	if (left < need || (!first && *p++ != ','))
		return false;
	if (p[0] != '"' || memcmp(p + 1, name, n) != 0 || p[n + 1] != '"' || p[n + 2] != ':')
		return false;
	r->p += need;
	return true;
}

static bool read_members(struct reader *r, struct jrecord *ret)
{
	bool first = true;
#define MEMBER(type, name, max)                                                                    \
	if (at_member(r, first, #name, sizeof(#name) - 1)) {                                       \
		if (!read_##type(r, &ret->name))                                                   \
			return false;                                                              \
		if (!fits_##type(&ret->name, max))                                                 \
			return fail(r, "has a member over its limit");                             \
		first = false;                                                                     \
	}
#include "journal/jrecord.def"
#undef MEMBER
	return true;
}

static bool read_line(struct reader *r, struct str line, struct jrecord *ret)
{
	if (line.n >= JRECORD_LINE_MAX)
		return fail(r, "is too long");
	if (!utf8_valid(line.p, line.n))
		return fail(r, "is not UTF-8");
	if (!take(r, '{'))
		return fail(r, "is no object");
	if (!read_members(r, ret))
		return false;
	if (!take(r, '}') || r->p != r->end)
		return fail(r, "has a member that is unknown, twice there or out of order");
	if (!ret->seq || !ret->time || !kind_known(ret->kind))
		return fail(r, "lacks its number, its time or its kind");
	return true;
}

int jrecord_read(
	struct str line, struct jrecord_memory *memory, struct jrecord *ret, struct err *err)
{
	struct reader r = {.p = line.p, .end = line.p + line.n, .memory = memory};
	memory->used = 0;
#define MEMBER(type, name, max) clear_##type(&ret->name);
#define clear_text(v) (*(v) = (struct str){NULL, 0})
#define clear_number(v) (*(v) = 0)
#define clear_texts(v) ((v)->n = 0)
#include "journal/jrecord.def"
#undef MEMBER
	if (read_line(&r, line, ret))
		return 0;
	return err_set(err, ERR_CORRUPT, "a record of the journal %s", r.why);
}

/* The text of a record cannot hold an unescaped quotation mark, so this is the member itself. */
uint64_t jrecord_seq(struct str line)
{
	static const char key[] = "\"seq\":";
	uint64_t n = 0;
	const char *p = memmem(line.p, line.n, key, sizeof(key) - 1), *end = line.p + line.n;
	for (p = p ? p + sizeof(key) - 1 : end; p < end && *p >= '0' && *p <= '9'; p++)
		if (n <= JRECORD_NUMBER_MAX / 10)
			n = n * 10 + (uint64_t)(*p - '0');
	return n;
}
