/* Text being made, by the printers. A failed allocation is remembered and reported once, at the
 * end. */
#ifndef CEDAR_OUT_H
#define CEDAR_OUT_H

#include "cedar/value.h"

/* More than the largest source could need, except for what JSON can say shortly and text cannot. */
enum { CED_OUT_MAX = 256 << 20 };

struct ced_out {
	char *data;
	size_t length, capacity;
	bool failed, over_limit;
};

void ced_out_bytes(struct ced_out *o, const char *p, size_t n);
void ced_out_text(struct ced_out *o, const char *text);
void ced_out_name(struct ced_out *o, const struct ced_name *name);
void ced_out_number(struct ced_out *o, int64_t n);
/* `"..."` with Cedar's escapes; with JSON's. */
void ced_out_quoted(struct ced_out *o, const char *p, size_t n);
/* The same without quotes and with `\*` for a star: a part of a pattern. */
void ced_out_pattern_part(struct ced_out *o, const char *p, size_t n);
void ced_out_json_string(struct ced_out *o, const char *p, size_t n);
/* Type::"id" */
void ced_out_uid(struct ced_out *o, const struct ced_uid *uid);

/* Hand the text over, or release it and fail. */
int ced_out_take(struct ced_out *o, struct cedar_text *ret, struct cedar_error *err);

#endif
