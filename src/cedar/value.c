/* Values: equality, order, and the canonical forms of sets and records. */
#include "cedar/value.h"

#include <stdlib.h>

/* ORDER KIND */
static const char *const kind_name[CED_KINDS] = {"Bool", "Long", "String", "Entity", "Set",
	"Record", "decimal", "ipaddr", "datetime", "duration"};

const char *ced_kind_name(enum ced_kind kind)
{
	return kind_name[kind];
}

struct ced_uid ced_uid_of(const struct ced_name *type, const struct ced_name *id)
{
	return (struct ced_uid){type, id, ced_hash_pair(type->hash, id->hash)};
}

const struct ced_uid *ced_uid_make(
	struct ced_arena *arena, const struct ced_name *type, const struct ced_name *id)
{
	struct ced_uid uid = ced_uid_of(type, id);
	return ced_arena_copy(arena, &uid, sizeof(uid));
}

static int number_cmp(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int uid_cmp(const struct ced_uid *a, const struct ced_uid *b)
{
	int r = ced_name_cmp(a->type, b->type);
	return r ? r : ced_name_cmp(a->id, b->id);
}

static int set_cmp(const struct ced_set *a, const struct ced_set *b)
{
	int r = a == b ? 0 : number_cmp(a->count, b->count);
	for (uint32_t i = 0; a != b && r == 0 && i < a->count; i++)
		r = ced_value_cmp(a->items[i], b->items[i]);
	return r;
}

static int record_cmp(const struct ced_record *a, const struct ced_record *b)
{
	int r = a == b ? 0 : number_cmp(a->count, b->count);
	for (uint32_t i = 0; a != b && r == 0 && i < a->count; i++) {
		r = ced_name_cmp(a->fields[i].key, b->fields[i].key);
		if (r == 0)
			r = ced_value_cmp(a->fields[i].value, b->fields[i].value);
	}
	return r;
}

static int ip_cmp(const struct ced_ip *a, const struct ced_ip *b)
{
	int r = number_cmp(a->v6, b->v6);
	if (r == 0)
		r = memcmp(a->bytes, b->bytes, sizeof(a->bytes));
	return r ? r : number_cmp(a->prefix, b->prefix);
}

int ced_value_cmp(struct ced_value a, struct ced_value b)
{
	if (a.kind != b.kind)
		return number_cmp(a.kind, b.kind);
	switch (a.kind) {
	case CED_BOOL: return number_cmp(a.u.boolean, b.u.boolean);
	case CED_STRING: return ced_name_cmp(a.u.string, b.u.string);
	case CED_ENTITY: return uid_cmp(a.u.uid, b.u.uid);
	case CED_SET: return set_cmp(a.u.set, b.u.set);
	case CED_RECORD: return record_cmp(a.u.record, b.u.record);
	case CED_IPADDR: return ip_cmp(a.u.ip, b.u.ip);
	case CED_LONG:
	case CED_DECIMAL:
	case CED_DATETIME:
	case CED_DURATION:
	case CED_KINDS: break;
	}
	return number_cmp(a.u.number, b.u.number);
}

/* The common cases decide by hash, without looking at the bytes of different names. */
bool ced_value_eq(struct ced_value a, struct ced_value b)
{
	if (a.kind != b.kind)
		return false;
	if (a.kind == CED_STRING)
		return ced_name_eq(a.u.string, b.u.string);
	if (a.kind == CED_ENTITY)
		return ced_uid_eq(a.u.uid, b.u.uid);
	return ced_value_cmp(a, b) == 0;
}

static int value_order(const void *a, const void *b)
{
	return ced_value_cmp(*(const struct ced_value *)a, *(const struct ced_value *)b);
}

/* Short lists are the rule, and qsort() may allocate: decisions must not. */
static void sort_values(struct ced_value *v, uint32_t n)
{
	if (n > 32) {
		qsort(v, n, sizeof(*v), value_order);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		struct ced_value x = v[i];
		uint32_t j = i;
		for (; j && ced_value_cmp(v[j - 1], x) > 0; j--)
			v[j] = v[j - 1];
		v[j] = x;
	}
}

const struct ced_set *ced_set_make(struct ced_arena *arena, struct ced_value *items, uint32_t n)
{
	sort_values(items, n);
	uint32_t unique = 0;
	for (uint32_t i = 0; i < n; i++)
		if (i == 0 || ced_value_cmp(items[unique - 1], items[i]) != 0)
			items[unique++] = items[i];
	struct ced_set *set = ced_arena_alloc(arena, sizeof(*set) + unique * sizeof(*items));
	if (!set)
		return NULL;
	set->count = unique;
	if (unique)
		memcpy(set->items, items, unique * sizeof(*items));
	return set;
}

bool ced_set_contains(const struct ced_set *set, struct ced_value v)
{
	uint32_t low = 0, high = set->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int r = ced_value_cmp(set->items[middle], v);
		if (r == 0)
			return true;
		if (r < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

bool ced_set_contains_all(const struct ced_set *a, const struct ced_set *b)
{
	uint32_t i = 0, j = 0;
	while (j < b->count && b->count - j <= a->count - i) {
		int r = ced_value_cmp(a->items[i], b->items[j]);
		if (r > 0)
			return false;
		j += r == 0;
		i++;
	}
	return j == b->count;
}

bool ced_set_contains_any(const struct ced_set *a, const struct ced_set *b)
{
	uint32_t i = 0, j = 0;
	while (i < a->count && j < b->count) {
		int r = ced_value_cmp(a->items[i], b->items[j]);
		if (r == 0)
			return true;
		if (r < 0)
			i++;
		else
			j++;
	}
	return false;
}

static int field_order(const void *a, const void *b)
{
	return ced_name_cmp(((const struct ced_field *)a)->key, ((const struct ced_field *)b)->key);
}

static void sort_fields(struct ced_field *f, uint32_t n)
{
	if (n > 32) {
		qsort(f, n, sizeof(*f), field_order);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		struct ced_field x = f[i];
		uint32_t j = i;
		for (; j && field_order(&f[j - 1], &x) > 0; j--)
			f[j] = f[j - 1];
		f[j] = x;
	}
}

const struct ced_record *ced_record_make(struct ced_arena *arena, struct ced_field *fields,
	uint32_t n, const struct ced_name **ret_twice)
{
	sort_fields(fields, n);
	for (uint32_t i = 1; i < n; i++)
		if (ced_name_cmp(fields[i - 1].key, fields[i].key) == 0) {
			if (ret_twice)
				*ret_twice = fields[i].key;
			return NULL;
		}
	struct ced_record *r = ced_arena_alloc(arena, sizeof(*r) + n * sizeof(*fields));
	if (!r)
		return NULL;
	r->count = n;
	if (n)
		memcpy(r->fields, fields, n * sizeof(*fields));
	return r;
}

const struct ced_value *ced_record_get(const struct ced_record *r, const struct ced_name *key)
{
	uint32_t low = 0, high = r->count;
	while (high - low > 8) {
		uint32_t middle = low + (high - low) / 2;
		if (ced_name_cmp(r->fields[middle].key, key) <= 0)
			low = middle;
		else
			high = middle;
	}
	for (; low < high; low++)
		if (ced_name_eq(r->fields[low].key, key))
			return &r->fields[low].value;
	return NULL;
}
