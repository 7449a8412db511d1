/* Which names a search takes: see search_names.h. */
#include "workspace/search_names.h"
#include "base/glob.h"

#include <string.h>

enum name_rule_kind { RULE_NAME, RULE_SUFFIX, RULE_GLOB };

struct name_rule {
	enum name_rule_kind kind;
	struct str text; /* of NAME, SUFFIX; borrowed from the query */
	struct glob *glob;
};

struct rule_list {
	unsigned n;
	struct name_rule v[SEARCH_GLOBS_MAX];
};

struct name_filter {
	struct rule_list include, exclude, default_exclude;
	bool needs_path; /* some rule is a glob, so paths have to be put together */
};

static bool special(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (strchr("*?[{\\/", s.p[i]))
			return true;
	return false;
}

static int rule_new(struct str pattern, struct name_rule *ret, struct err *err)
{
	*ret = (struct name_rule){.kind = RULE_NAME, .text = pattern};
	if (pattern.n && !special(pattern))
		return 0;
	struct str rest = {pattern.p + 1, pattern.n - 1};
	if (pattern.n > 1 && pattern.p[0] == '*' && !special(rest)) {
		*ret = (struct name_rule){.kind = RULE_SUFFIX, .text = rest};
		return 0;
	}
	ret->kind = RULE_GLOB;
	return glob_compile(pattern, GLOB_BASENAME, &ret->glob, err);
}

static int list_new(const char *const *globs, const char *what, struct rule_list *list,
	bool *needs_path, struct err *err)
{
	for (; globs && *globs; globs++) {
		if (list->n == SEARCH_GLOBS_MAX)
			return err_set(err, ERR_INVALID_ARGUMENT, "more than %d patterns in '%s'",
				SEARCH_GLOBS_MAX, what);
		int r = rule_new(str_of(*globs), &list->v[list->n], err);
		if (r < 0)
			return err_wrap(err, "pattern '%.100s' in '%s'", *globs, what);
		*needs_path |= list->v[list->n++].kind == RULE_GLOB;
	}
	return 0;
}

int name_filter_new(const struct search_query *q, struct name_filter **ret, struct err *err)
{
	struct name_filter *f = calloc(1, sizeof(*f));
	if (!f)
		return err_oom(err);
	int r = list_new(q->include, "include", &f->include, &f->needs_path, err);
	if (r == 0)
		r = list_new(q->exclude, "exclude", &f->exclude, &f->needs_path, err);
	if (r == 0)
		r = list_new(q->default_exclude, "default exclusions", &f->default_exclude,
			&f->needs_path, err);
	if (r < 0)
		name_filter_free(f);
	else
		*ret = f;
	return r;
}

static void list_free(struct rule_list *list)
{
	for (unsigned i = 0; i < list->n; i++)
		glob_free(list->v[i].glob);
}

void name_filter_free(struct name_filter *f)
{
	if (!f)
		return;
	list_free(&f->include);
	list_free(&f->exclude);
	list_free(&f->default_exclude);
	free(f);
}

static bool list_matches(const struct rule_list *list, struct str name, struct str path)
{
	for (unsigned i = 0; i < list->n; i++) {
		const struct name_rule *r = &list->v[i];
		if (r->kind == RULE_NAME         ? str_eq(name, r->text)
			: r->kind == RULE_SUFFIX ? str_ends(name, r->text)
						 : glob_match(r->glob, path))
			return true;
	}
	return false;
}

bool name_filter_takes(const struct name_filter *f, struct str dir, struct str name, bool is_dir)
{
	char room[LIMIT_PATH_BYTES + LIMIT_NAME_BYTES + 2];
	struct str path = name;
	if (f->needs_path && dir.n && dir.n + 1 + name.n <= sizeof(room)) {
		memcpy(room, dir.p, dir.n);
		room[dir.n] = '/';
		memcpy(room + dir.n + 1, name.p, name.n);
		path = (struct str){room, dir.n + 1 + name.n};
	}
	if (list_matches(&f->exclude, name, path) || list_matches(&f->default_exclude, name, path))
		return false;
	return is_dir || f->include.n == 0 || list_matches(&f->include, name, path);
}

bool name_filter_hides(
	const struct search_query *q, unsigned mount, struct str dir, struct str name)
{
	for (unsigned i = 0; i < q->n_hidden_places; i++) {
		const struct search_place *p = &q->hidden_places[i];
		size_t n = dir.n + (dir.n ? 1 : 0) + name.n;
		if (p->mount == mount && p->path.n == n && str_ends(p->path, name) &&
			str_starts(p->path, dir) && (!dir.n || p->path.p[dir.n] == '/'))
			return true;
	}
	return false;
}
