/*
 * What a validation found: errors and warnings, each with its policy and place.
 *
 * The same finding in several request environments is reported once. A report holds at most
 * CEDAR_REPORT_MAX findings and counts the rest, so that hostile policies cannot make it long.
 */
#ifndef CEDAR_REPORT_H
#define CEDAR_REPORT_H

#include "cedar/intern.h"

enum { CEDAR_REPORT_MAX = 1000, REPORT_TEXT_MAX = 512 };

struct ced_finding {
	bool warning;
	const struct ced_name *policy; /* its id */
	struct ced_pos pos;
	const char *text;
};

struct cedar_report {
	struct ced_arena arena;
	const struct ced_name *policy; /* whose findings come next */
	struct ced_finding *v;
	size_t n, cap;
	size_t n_errors, n_warnings; /* all of them, kept or not */
	bool out_of_memory;
};

void ced_report_init(struct cedar_report *r, size_t bytes_max);
void ced_report_done(struct cedar_report *r);

/* What is found from here on is about the policy with this id, which is copied. */
void ced_report_about(struct cedar_report *r, const struct ced_name *policy_id);

void ced_report_error(struct cedar_report *r, struct ced_pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void ced_report_warning(struct cedar_report *r, struct ced_pos at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
