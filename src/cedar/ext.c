/* Extension types: how each is spelled, and the table of functions over them. */
#include "cedar/ext.h"
#include "cedar/utf8.h"

enum { DECIMAL_DIGITS = 4, IP_TEXT_MAX = 43 };

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS (60 * MINUTE_MS)
#define DAY_MS (24 * HOUR_MS)

static bool take_char(struct ced_slice *s, char c)
{
	if (!s->n || s->p[0] != c)
		return false;
	s->p++;
	s->n--;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* One digit onto `*v`, which grows away from zero. */
static bool push_digit(int64_t *v, char digit, bool negative)
{
	int d = negative ? -(digit - '0') : digit - '0';
	return !__builtin_mul_overflow(*v, 10, v) && !__builtin_add_overflow(*v, d, v);
}

/* At least one digit, as many as there are. */
static bool take_number(struct ced_slice *s, bool negative, int64_t *ret)
{
	int64_t v = 0;
	size_t i = 0;
	for (; i < s->n && is_digit(s->p[i]); i++)
		if (!push_digit(&v, s->p[i], negative))
			return false;
	s->p += i;
	s->n -= i;
	*ret = v;
	return i > 0;
}

/* -- decimal: -?d+.d{1,4} ------------------------------------------------------------------- */

bool ced_decimal_parse(struct ced_slice s, int64_t *ret)
{
	bool negative = take_char(&s, '-');
	int64_t v;
	if (!take_number(&s, negative, &v) || !take_char(&s, '.') || !s.n || s.n > DECIMAL_DIGITS)
		return false;
	for (size_t i = 0; i < DECIMAL_DIGITS; i++) {
		char c = i < s.n ? s.p[i] : '0';
		if (!is_digit(c) || !push_digit(&v, c, negative))
			return false;
	}
	*ret = v;
	return true;
}

/* -- ipaddr --------------------------------------------------------------------------------- */

/* A number without leading zeros up to `max`. */
static bool take_small(struct ced_slice *s, int max, int *ret)
{
	int v = 0;
	size_t i = 0;
	if (s->n > 1 && s->p[0] == '0' && is_digit(s->p[1]))
		return false;
	for (; i < s->n && is_digit(s->p[i]); i++) {
		v = v * 10 + s->p[i] - '0';
		if (v > max)
			return false;
	}
	s->p += i;
	s->n -= i;
	*ret = v;
	return i > 0;
}

static bool parse_v4(struct ced_slice s, struct ced_ip *ip)
{
	for (int i = 0; i < 4; i++) {
		int octet;
		if ((i && !take_char(&s, '.')) || !take_small(&s, 255, &octet))
			return false;
		ip->bytes[i] = (uint8_t)octet;
	}
	return s.n == 0;
}

/* Groups separated by ':' up to `max` of them, as far as they go. */
static int take_groups(struct ced_slice *s, int max, uint8_t *to)
{
	int count = 0;
	while (count < max) {
		struct ced_slice rest = *s;
		unsigned v = 0, digits = 0;
		if (count && !take_char(&rest, ':'))
			break;
		for (; rest.n && digits < 4 && ced_hex_digit(rest.p[0]) >= 0; digits++) {
			v = v << 4 | (unsigned)ced_hex_digit(rest.p[0]);
			rest.p++;
			rest.n--;
		}
		if (!digits)
			break;
		to[count * 2] = (uint8_t)(v >> 8);
		to[count * 2 + 1] = (uint8_t)v;
		count++;
		*s = rest;
	}
	return count;
}

/* "::" stands for at least one group. */
static bool parse_v6(struct ced_slice s, struct ced_ip *ip)
{
	uint8_t tail[16];
	int head = take_groups(&s, 8, ip->bytes);
	if (head == 8)
		return s.n == 0;
	bool one_colon = take_char(&s, ':');
	if (!one_colon || !take_char(&s, ':'))
		return false;
	int after = take_groups(&s, 8 - (head + 1), tail);
	memcpy(ip->bytes + 16 - 2 * after, tail, (size_t)after * 2);
	return s.n == 0;
}

bool ced_ip_parse(struct ced_slice s, struct ced_ip *ret)
{
	struct ced_ip ip = {.v6 = s.n && memchr(s.p, ':', s.n)};
	const char *slash = s.n ? memchr(s.p, '/', s.n) : NULL;
	struct ced_slice address = {s.p, slash ? (size_t)(slash - s.p) : s.n};
	int max = ip.v6 ? 128 : 32, prefix = max;
	if (s.n > IP_TEXT_MAX)
		return false;
	if (!(ip.v6 ? parse_v6(address, &ip) : parse_v4(address, &ip)))
		return false;
	if (slash) {
		struct ced_slice rest = {slash + 1, s.n - address.n - 1};
		if (!take_small(&rest, max, &prefix) || rest.n)
			return false;
	}
	ip.prefix = (uint8_t)prefix;
	*ret = ip;
	return true;
}

/* The first `bits` bits are equal. */
static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;
	if (memcmp(a, b, whole) != 0)
		return false;
	return !rest || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

static bool ip_in_range(const struct ced_ip *a, const struct ced_ip *b)
{
	return a->v6 == b->v6 && a->prefix >= b->prefix && same_bits(a->bytes, b->bytes, b->prefix);
}

static bool ip_is_loopback(const struct ced_ip *ip)
{
	static const struct ced_ip v4 = {{127}, 8, false}, v6 = {{[15] = 1}, 128, true};
	return ip_in_range(ip, ip->v6 ? &v6 : &v4);
}

static bool ip_is_multicast(const struct ced_ip *ip)
{
	static const struct ced_ip v4 = {{224}, 4, false}, v6 = {{0xff}, 8, true};
	return ip_in_range(ip, ip->v6 ? &v6 : &v4);
}

/* -- datetime: YYYY-MM-DD[THH:MM:SS[.sss](Z|+hhmm|-hhmm)] ----------------------------------- */

/* Exactly `n` digits, at most `max`. */
static bool take_fixed(struct ced_slice *s, size_t n, int max, int *ret)
{
	int v = 0;
	if (s->n < n)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_digit(s->p[i]))
			return false;
		v = v * 10 + s->p[i] - '0';
	}
	s->p += n;
	s->n -= n;
	*ret = v;
	return v <= max;
}

static int days_of_month(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return days[month - 1] + (month == 2 && leap);
}

/* Days since 1970-01-01 in the proleptic Gregorian calendar; years begin in March here, so that the
 * leap day is the last. */
static int64_t days_since_epoch(int year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t era = (y >= 0 ? y : y - 399) / 400, of_era = y - era * 400;
	int64_t of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool take_date(struct ced_slice *s, int64_t *ret_ms)
{
	int year, month, day;
	if (!take_fixed(s, 4, 9999, &year) || !take_char(s, '-') || !take_fixed(s, 2, 12, &month) ||
		!take_char(s, '-') || !take_fixed(s, 2, 31, &day))
		return false;
	if (month < 1 || day < 1 || day > days_of_month(year, month))
		return false;
	*ret_ms = days_since_epoch(year, month, day) * DAY_MS;
	return true;
}

static bool take_time(struct ced_slice *s, int64_t *ret_ms)
{
	int hour, minute, second, ms = 0;
	if (!take_char(s, 'T') || !take_fixed(s, 2, 23, &hour) || !take_char(s, ':') ||
		!take_fixed(s, 2, 59, &minute) || !take_char(s, ':') ||
		!take_fixed(s, 2, 59, &second))
		return false;
	if (take_char(s, '.') && !take_fixed(s, 3, 999, &ms))
		return false;
	*ret_ms = hour * HOUR_MS + minute * MINUTE_MS + second * SECOND_MS + ms;
	return true;
}

static bool take_zone(struct ced_slice *s, int64_t *ret_ms)
{
	int hour, minute;
	if (take_char(s, 'Z')) {
		*ret_ms = 0;
		return true;
	}
	bool west = take_char(s, '-');
	if ((!west && !take_char(s, '+')) || !take_fixed(s, 2, 23, &hour) ||
		!take_fixed(s, 2, 59, &minute))
		return false;
	int64_t ms = hour * HOUR_MS + minute * MINUTE_MS;
	*ret_ms = west ? -ms : ms;
	return true;
}

bool ced_datetime_parse(struct ced_slice s, int64_t *ret)
{
	int64_t date, time = 0, zone = 0;
	if (!take_date(&s, &date))
		return false;
	if (s.n && (!take_time(&s, &time) || !take_zone(&s, &zone)))
		return false;
	if (s.n)
		return false;
	*ret = date + time - zone;
	return true;
}

/* -- duration: -?(d+d)?(d+h)?(d+m)?(d+s)?(d+ms)? -------------------------------------------- */

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {{"d", DAY_MS}, {"h", HOUR_MS}, {"m", MINUTE_MS}, {"s", SECOND_MS}, {"ms", 1}};

enum { UNITS = sizeof(units) / sizeof(units[0]) };

/* The unit that begins here, after unit `after`; UNITS: none. */
static size_t take_unit(struct ced_slice *s, size_t after)
{
	for (size_t i = UNITS; i-- > after;) {
		size_t n = strlen(units[i].name);
		if (s->n < n || memcmp(s->p, units[i].name, n) != 0)
			continue;
		s->p += n;
		s->n -= n;
		return i;
	}
	return UNITS;
}

bool ced_duration_parse(struct ced_slice s, int64_t *ret)
{
	bool negative = take_char(&s, '-');
	int64_t total = 0, part;
	size_t next = 0;
	if (!s.n)
		return false;
	while (s.n) {
		if (!take_number(&s, negative, &part))
			return false;
		size_t unit = take_unit(&s, next);
		if (unit == UNITS)
			return false;
		if (__builtin_mul_overflow(part, units[unit].ms, &part) ||
			__builtin_add_overflow(total, part, &total))
			return false;
		next = unit + 1;
	}
	*ret = total;
	return true;
}

/* -- Functions ------------------------------------------------------------------------------ */

const struct ced_fn_info ced_fn_info[CED_FNS] = {
#define CED_FN_INFO(id, name, method, arity, result, first, second)                                \
	[CED_FN_##id] = {name, method, arity, result, {first, second}},
	CED_FUNCTIONS(CED_FN_INFO)
#undef CED_FN_INFO
};

int ced_fn_find(struct ced_slice name)
{
	for (int i = 0; i < CED_FNS; i++)
		if (ced_slice_is(name, ced_fn_info[i].name))
			return i;
	return -1;
}

static int make_ip(struct ced_arena *arena, struct ced_slice s, struct ced_value *ret)
{
	struct ced_ip ip;
	if (!ced_ip_parse(s, &ip))
		return CEDAR_E_EXTENSION;
	const struct ced_ip *copy = ced_arena_copy(arena, &ip, sizeof(ip));
	if (!copy)
		return CEDAR_E_MEMORY;
	*ret = (struct ced_value){.kind = CED_IPADDR, .u.ip = copy};
	return 0;
}

static int construct(
	enum ced_fn fn, struct ced_arena *arena, const struct ced_name *text, struct ced_value *ret)
{
	struct ced_slice s = {text->text, text->length};
	int64_t v = 0;
	bool ok;
	if (fn == CED_FN_IP)
		return make_ip(arena, s, ret);
	if (fn == CED_FN_DECIMAL)
		ok = ced_decimal_parse(s, &v);
	else if (fn == CED_FN_DATETIME)
		ok = ced_datetime_parse(s, &v);
	else
		ok = ced_duration_parse(s, &v);
	if (!ok)
		return CEDAR_E_EXTENSION;
	*ret = ced_number(ced_fn_info[fn].result, v);
	return 0;
}

static int call_ip(enum ced_fn fn, const struct ced_value *args, struct ced_value *ret)
{
	const struct ced_ip *ip = args[0].u.ip;
	bool b;
	if (fn == CED_FN_IS_IN_RANGE)
		b = ip_in_range(ip, args[1].u.ip);
	else if (fn == CED_FN_IS_LOOPBACK)
		b = ip_is_loopback(ip);
	else if (fn == CED_FN_IS_MULTICAST)
		b = ip_is_multicast(ip);
	else
		b = ip->v6 == (fn == CED_FN_IS_IPV6);
	*ret = ced_bool(b);
	return 0;
}

static int call_decimal(enum ced_fn fn, const struct ced_value *args, struct ced_value *ret)
{
	int64_t a = args[0].u.number, b = args[1].u.number;
	if (fn == CED_FN_LESS_THAN)
		*ret = ced_bool(a < b);
	else if (fn == CED_FN_LESS_THAN_OR_EQUAL)
		*ret = ced_bool(a <= b);
	else if (fn == CED_FN_GREATER_THAN)
		*ret = ced_bool(a > b);
	else
		*ret = ced_bool(a >= b);
	return 0;
}

static int call_datetime(enum ced_fn fn, const struct ced_value *args, struct ced_value *ret)
{
	int64_t v = args[0].u.number, of_day = v % DAY_MS, result = 0;
	bool over = false;
	if (of_day < 0)
		of_day += DAY_MS;
	if (fn == CED_FN_OFFSET)
		over = __builtin_add_overflow(v, args[1].u.number, &result);
	else if (fn == CED_FN_DURATION_SINCE)
		over = __builtin_sub_overflow(v, args[1].u.number, &result);
	else if (fn == CED_FN_TO_DATE)
		over = __builtin_sub_overflow(v, of_day, &result);
	else
		result = of_day;
	*ret = ced_number(ced_fn_info[fn].result, result);
	return over ? CEDAR_E_EXTENSION : 0;
}

static int call_duration(enum ced_fn fn, const struct ced_value *args, struct ced_value *ret)
{
	static const int64_t divisor[CED_FNS] = {[CED_FN_TO_MILLISECONDS] = 1,
		[CED_FN_TO_SECONDS] = SECOND_MS,
		[CED_FN_TO_MINUTES] = MINUTE_MS,
		[CED_FN_TO_HOURS] = HOUR_MS,
		[CED_FN_TO_DAYS] = DAY_MS};
	*ret = ced_number(CED_LONG, args[0].u.number / divisor[fn]);
	return 0;
}

int ced_fn_call(enum ced_fn fn, struct ced_arena *arena, const struct ced_value *args, uint32_t n,
	struct ced_value *ret, uint32_t *ret_bad)
{
	const struct ced_fn_info *info = &ced_fn_info[fn];
	*ret_bad = 0;
	if (n != info->arity)
		return CEDAR_E_ARITY;
	for (uint32_t i = 0; i < n; i++)
		if (args[i].kind != info->args[i]) {
			*ret_bad = i;
			return CEDAR_E_TYPE;
		}
	if (info->args[0] == CED_STRING)
		return construct(fn, arena, args[0].u.string, ret);
	if (info->args[0] == CED_IPADDR)
		return call_ip(fn, args, ret);
	if (info->args[0] == CED_DECIMAL)
		return call_decimal(fn, args, ret);
	if (info->args[0] == CED_DATETIME)
		return call_datetime(fn, args, ret);
	return call_duration(fn, args, ret);
}
