/* Numbers, booleans, dates and times of TOML: see toml_scalar.h. Pure. */
#include "codec/toml_scalar.h"

#include <errno.h>
#include <math.h>

enum { NUMBER_BYTES_MAX = 1024 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("+-._:", c));
}

static bool looks_like_date(struct str s)
{
	return s.n >= 5 && is_digit(s.p[0]) && is_digit(s.p[1]) && is_digit(s.p[2]) &&
	       is_digit(s.p[3]) && s.p[4] == '-';
}

size_t toml_word(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n && is_word(p[i]))
		i++;
	/* "1979-05-27 07:32:00": the blank belongs to it when a digit follows. */
	if (i == 10 && looks_like_date((struct str){p, i}) && n - i > 1 && p[i] == ' ' &&
		is_digit(p[i + 1]))
		for (i++; i < n && is_word(p[i]);)
			i++;
	return i;
}

/* --- dates and times --- */

/* Exactly `digits` digits at *p; moves on. */
static bool take_number(struct str *s, unsigned digits, int *ret)
{
	int v = 0;
	if (s->n < digits)
		return false;
	for (unsigned i = 0; i < digits; i++) {
		if (!is_digit(s->p[i]))
			return false;
		v = v * 10 + (s->p[i] - '0');
	}
	*s = (struct str){s->p + digits, s->n - digits};
	*ret = v;
	return true;
}

static bool take_char(struct str *s, const char *any_of)
{
	if (s->n == 0 || !*s->p || !strchr(any_of, *s->p))
		return false;
	*s = (struct str){s->p + 1, s->n - 1};
	return true;
}

static int days_of(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	return days[month - 1] + (month == 2 && leap);
}

static bool take_date(struct str *s, struct toml_time *t)
{
	return take_number(s, 4, &t->year) && take_char(s, "-") && take_number(s, 2, &t->month) &&
	       take_char(s, "-") && take_number(s, 2, &t->day) && t->month >= 1 && t->month <= 12 &&
	       t->day >= 1 && t->day <= days_of(t->year, t->month);
}

static bool take_fraction(struct str *s, int *ret)
{
	int v = 0, scale = 100000000;
	if (s->n == 0 || !is_digit(*s->p))
		return false;
	while (s->n && is_digit(*s->p)) {
		v += (*s->p - '0') * scale;
		scale /= 10;
		*s = (struct str){s->p + 1, s->n - 1};
	}
	*ret = v;
	return true;
}

/* A second of 60 is a leap second (RFC 3339 §5.6). */
static bool take_time(struct str *s, struct toml_time *t)
{
	if (!take_number(s, 2, &t->hour) || !take_char(s, ":") || !take_number(s, 2, &t->minute) ||
		!take_char(s, ":") || !take_number(s, 2, &t->second))
		return false;
	if (take_char(s, ".") && !take_fraction(s, &t->nanosecond))
		return false;
	return t->hour <= 23 && t->minute <= 59 && t->second <= 60;
}

static bool take_offset(struct str *s, struct toml_time *t)
{
	int hours, minutes;
	if (take_char(s, "Zz"))
		return true;
	if (s->n == 0)
		return false;
	int sign = *s->p == '-' ? -1 : 1;
	if (!take_char(s, "+-") || !take_number(s, 2, &hours) || !take_char(s, ":") ||
		!take_number(s, 2, &minutes) || hours > 23 || minutes > 59)
		return false;
	t->offset_minutes = sign * (hours * 60 + minutes);
	return true;
}

static const char *date_of(struct str s, struct toml *into)
{
	static const char wrong[] = "this is no date or time: write 1979-05-27T07:32:00Z, "
				    "1979-05-27 or 07:32:00";
	struct toml_time t = {0};
	bool date = looks_like_date(s);
	if (date && !take_date(&s, &t))
		return wrong;
	bool time = !date || s.n;
	if (date && time && !take_char(&s, "Tt "))
		return wrong;
	if (time && !take_time(&s, &t))
		return wrong;
	bool offset = date && time && s.n;
	if (offset && !take_offset(&s, &t))
		return wrong;
	if (s.n)
		return wrong;
	into->type = offset         ? TOML_DATETIME
		     : date && time ? TOML_DATETIME_LOCAL
		     : date         ? TOML_DATE_LOCAL
				    : TOML_TIME_LOCAL;
	into->time = t;
	return NULL;
}

/* --- numbers --- */

/* A run of digits from `set`, with single underscores between them, is copied without them. The
 * number of digits; 0 when it is malformed. */
static size_t take_digits(struct str *s, const char *set, char **to)
{
	size_t n = 0;
	bool after_digit = false;
	while (s->n && (*s->p == '_' || (*s->p && strchr(set, *s->p)))) {
		if (*s->p == '_') {
			if (!after_digit)
				return 0;
		} else {
			*(*to)++ = *s->p;
			n++;
		}
		after_digit = *s->p != '_';
		*s = (struct str){s->p + 1, s->n - 1};
	}
	return after_digit ? n : 0;
}

static const char *integer_of(const char *digits, int base, struct toml *into)
{
	errno = 0;
	long long v = strtoll(digits, NULL, base);
	if (errno == ERANGE)
		return "the integer does not fit 64 bits";
	into->type = TOML_INTEGER;
	into->integer = v;
	return NULL;
}

/* After "0x", "0o" or "0b". */
static const char *based_of(struct str s, int base, const char *set, struct toml *into)
{
	char digits[NUMBER_BYTES_MAX + 1], *to = digits;
	if (!take_digits(&s, set, &to) || s.n)
		return "no number is written like this";
	*to = '\0';
	return integer_of(digits, base, into);
}

static const char *float_of(const char *digits, struct toml *into)
{
	double d = strtod(digits, NULL);
	if (!isfinite(d))
		return "the number is too large for a double";
	into->type = TOML_FLOAT;
	into->real = d;
	return NULL;
}

static const char *decimal_of(struct str s, struct toml *into)
{
	static const char set[] = "0123456789", wrong[] = "no value is written like this";
	char digits[NUMBER_BYTES_MAX + 1], *to = digits;
	bool is_float = false;
	if (s.n && (*s.p == '-' || *s.p == '+')) {
		*to++ = *s.p;
		(void)take_char(&s, "+-");
	}
	const char *first = to;
	size_t n = take_digits(&s, set, &to);
	if (n == 0)
		return wrong;
	if (n > 1 && *first == '0')
		return "a number has no leading zeros";
	if (take_char(&s, ".")) {
		is_float = true;
		*to++ = '.';
		if (!take_digits(&s, set, &to))
			return "digits belong on both sides of the point";
	}
	if (take_char(&s, "eE")) {
		is_float = true;
		*to++ = 'e';
		if (s.n && (*s.p == '-' || *s.p == '+')) {
			*to++ = *s.p;
			(void)take_char(&s, "+-");
		}
		if (!take_digits(&s, set, &to))
			return "a digit belongs in the exponent";
	}
	*to = '\0';
	if (s.n)
		return wrong;
	return is_float ? float_of(digits, into) : integer_of(digits, 10, into);
}

static const char *special_of(struct str s, struct toml *into)
{
	bool minus = *s.p == '-';
	struct str bare = s;
	(void)take_char(&bare, "+-");
	if (!str_eq(bare, STR("inf")) && !str_eq(bare, STR("nan")))
		return "no value is written like this (text belongs in quotes)";
	into->type = TOML_FLOAT;
	into->real = *bare.p == 'n' ? (double)NAN : minus ? -HUGE_VAL : HUGE_VAL;
	return NULL;
}

const char *toml_scalar(struct str s, struct toml *into)
{
	if (s.n == 0)
		return "a value belongs here";
	if (s.n > NUMBER_BYTES_MAX)
		return "the value has more than 1024 characters";
	bool yes = str_eq(s, STR("true"));
	if (yes || str_eq(s, STR("false"))) {
		into->type = TOML_BOOL;
		into->boolean = yes;
		return NULL;
	}
	if (looks_like_date(s) || (s.n > 2 && s.p[2] == ':'))
		return date_of(s, into);
	struct str rest = {s.p + MIN(s.n, (size_t)2), s.n - MIN(s.n, (size_t)2)};
	if (str_starts(s, STR("0x")))
		return based_of(rest, 16, "0123456789abcdefABCDEF", into);
	if (str_starts(s, STR("0o")))
		return based_of(rest, 8, "01234567", into);
	if (str_starts(s, STR("0b")))
		return based_of(rest, 2, "01", into);
	bool has_digit = is_digit(s.p[0]) || (s.n > 1 && is_digit(s.p[1]));
	return has_digit ? decimal_of(s, into) : special_of(s, into);
}
