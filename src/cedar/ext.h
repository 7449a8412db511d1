/*
 * Extension types: decimal, ipaddr, datetime, duration, and the functions and methods over them.
 *
 * The parsers accept exactly what Cedar accepts, hence none of strtod, inet_pton and timegm.
 */
#ifndef CEDAR_EXT_H
#define CEDAR_EXT_H

#include "cedar/json.h"
#include "cedar/value.h"

/* false: not a value of the type. */
bool ced_decimal_parse(struct ced_slice s, int64_t *ret);
bool ced_ip_parse(struct ced_slice s, struct ced_ip *ret);
bool ced_datetime_parse(struct ced_slice s, int64_t *ret);
bool ced_duration_parse(struct ced_slice s, int64_t *ret);

/* NAME, spelling, is a method, number of arguments (the receiver is one), result, receiver or
 * argument kind, second argument's kind. */
#define CED_FUNCTIONS(X)                                                                           \
	X(DECIMAL, "decimal", false, 1, CED_DECIMAL, CED_STRING, CED_STRING)                       \
	X(IP, "ip", false, 1, CED_IPADDR, CED_STRING, CED_STRING)                                  \
	X(DATETIME, "datetime", false, 1, CED_DATETIME, CED_STRING, CED_STRING)                    \
	X(DURATION, "duration", false, 1, CED_DURATION, CED_STRING, CED_STRING)                    \
	X(LESS_THAN, "lessThan", true, 2, CED_BOOL, CED_DECIMAL, CED_DECIMAL)                      \
	X(LESS_THAN_OR_EQUAL, "lessThanOrEqual", true, 2, CED_BOOL, CED_DECIMAL, CED_DECIMAL)      \
	X(GREATER_THAN, "greaterThan", true, 2, CED_BOOL, CED_DECIMAL, CED_DECIMAL)                \
	X(GREATER_THAN_OR_EQUAL, "greaterThanOrEqual", true, 2, CED_BOOL, CED_DECIMAL,             \
		CED_DECIMAL)                                                                       \
	X(IS_IPV4, "isIpv4", true, 1, CED_BOOL, CED_IPADDR, CED_IPADDR)                            \
	X(IS_IPV6, "isIpv6", true, 1, CED_BOOL, CED_IPADDR, CED_IPADDR)                            \
	X(IS_LOOPBACK, "isLoopback", true, 1, CED_BOOL, CED_IPADDR, CED_IPADDR)                    \
	X(IS_MULTICAST, "isMulticast", true, 1, CED_BOOL, CED_IPADDR, CED_IPADDR)                  \
	X(IS_IN_RANGE, "isInRange", true, 2, CED_BOOL, CED_IPADDR, CED_IPADDR)                     \
	X(OFFSET, "offset", true, 2, CED_DATETIME, CED_DATETIME, CED_DURATION)                     \
	X(DURATION_SINCE, "durationSince", true, 2, CED_DURATION, CED_DATETIME, CED_DATETIME)      \
	X(TO_DATE, "toDate", true, 1, CED_DATETIME, CED_DATETIME, CED_DATETIME)                    \
	X(TO_TIME, "toTime", true, 1, CED_DURATION, CED_DATETIME, CED_DATETIME)                    \
	X(TO_MILLISECONDS, "toMilliseconds", true, 1, CED_LONG, CED_DURATION, CED_DURATION)        \
	X(TO_SECONDS, "toSeconds", true, 1, CED_LONG, CED_DURATION, CED_DURATION)                  \
	X(TO_MINUTES, "toMinutes", true, 1, CED_LONG, CED_DURATION, CED_DURATION)                  \
	X(TO_HOURS, "toHours", true, 1, CED_LONG, CED_DURATION, CED_DURATION)                      \
	X(TO_DAYS, "toDays", true, 1, CED_LONG, CED_DURATION, CED_DURATION)

enum ced_fn {
#define CED_FN_ENUM(name, ...) CED_FN_##name,
	CED_FUNCTIONS(CED_FN_ENUM)
#undef CED_FN_ENUM
		CED_FNS,
};

struct ced_fn_info {
	const char *name;
	bool method;
	uint8_t arity;
	enum ced_kind result, args[2];
};

extern const struct ced_fn_info ced_fn_info[CED_FNS];

/* The function with this name; -1: none. */
int ced_fn_find(struct ced_slice name);

/* Apply it. The number of arguments is checked too. On failure the code (CEDAR_E_ARITY, _TYPE,
 * _EXTENSION, _OVERFLOW, _MEMORY); `ret_bad` is then the argument to blame. */
int ced_fn_call(enum ced_fn fn, struct ced_arena *arena, const struct ced_value *args, uint32_t n,
	struct ced_value *ret, uint32_t *ret_bad);

#endif
