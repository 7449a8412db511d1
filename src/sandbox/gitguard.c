/* What git would execute later: see gitguard.h. */
#include "sandbox/gitguard.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* --- paths ------------------------------------------------------------------------------------ */

static struct str component(struct str path, size_t *at)
{
	const char *start = path.p + *at;
	const char *slash = memchr(start, '/', path.n - *at);
	size_t n = slash ? (size_t)(slash - start) : path.n - *at;
	*at += n + (slash != NULL);
	return (struct str){start, n};
}

/* A file system may fold case, so names are compared without it. */
static bool is_name(struct str s, const char *name)
{
	return s.n == strlen(name) && strncasecmp(s.p, name, s.n) == 0;
}

bool git_hook_sample(struct str name)
{
	return str_ends(name, STR(".sample"));
}

static struct str last_of(struct str path)
{
	const char *slash = memrchr(path.p, '/', path.n);
	return slash ? (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)} : path;
}

/* Below a `.git`: `rest` is relative to it. Submodules and worktrees hold the same names deeper. */
static enum git_part part_inside(struct str rest)
{
	struct str last = last_of(rest);
	for (size_t at = 0; at < rest.n;) {
		struct str c = component(rest, &at);
		if (is_name(c, "hooks") && (at >= rest.n || !git_hook_sample(last)))
			return at >= rest.n ? GIT_DIR : GIT_NEVER;
	}
	if (is_name(last, "config") || is_name(last, "config.worktree"))
		return GIT_CONFIG;
	if (is_name(last, "commondir") || is_name(last, "gitdir"))
		return GIT_POINTER;
	if (is_name(last, "attributes") || is_name(last, "alternates") ||
		is_name(last, "http-alternates"))
		return GIT_NEVER;
	return GIT_NOTHING;
}

/* Names that matter when the directory above is a repository itself. */
static enum git_part part_of_bare(struct str path, size_t *ret_repository)
{
	struct str last = last_of(path);
	for (size_t at = 0; at < path.n;) {
		size_t from = at;
		struct str c = component(path, &at);
		if (is_name(c, "hooks") && at < path.n && !git_hook_sample(last)) {
			*ret_repository = from ? from - 1 : 0;
			return GIT_BARE_HOOK;
		}
	}
	*ret_repository = path.n > last.n ? path.n - last.n - 1 : 0;
	if (is_name(last, "config") || is_name(last, "config.worktree"))
		return GIT_BARE_CONFIG;
	bool mark = is_name(last, "HEAD") || is_name(last, "objects") ||
		    is_name(last, "commondir") || is_name(last, "hooks");
	return mark ? GIT_BARE_MARK : GIT_NOTHING;
}

enum git_part git_part_of(struct str path, size_t *ret_repository)
{
	*ret_repository = 0;
	for (size_t at = 0; at < path.n;) {
		struct str c = component(path, &at);
		if (!is_name(c, ".git"))
			continue;
		if (at >= path.n)
			return GIT_DIR;
		struct str rest = {path.p + at, path.n - at};
		size_t first = 0;
		c = component(rest, &first);
		/* Branches may be called as they like; what is below is judged as anywhere else. */
		if (is_name(c, "refs") || is_name(c, "logs"))
			break;
		return part_inside(rest);
	}
	return part_of_bare(path, ret_repository);
}

/* --- configuration ---------------------------------------------------------------------------- */

/* Keys that make git neither execute nor read anything elsewhere. `*` is a whole subsection or a
 * whole key. */
static const char *const harmless[] = {
#define KEY(name) name,
#include "sandbox/git_keys.def"
#undef KEY
};

struct setting {
	struct str section, subsection, key, value;
};

enum { LINE_SETTING, LINE_NOTHING, LINE_STRANGE };

static struct str trim(struct str s)
{
	while (s.n && (*s.p == ' ' || *s.p == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

static bool plain_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!isalnum((unsigned char)s.p[i]) && s.p[i] != '-')
			return false;
	return s.n > 0;
}

/* `[section]` or `[section "subsection"]`, alone on its line. */
static int read_section(struct str line, struct setting *now)
{
	struct str in = {line.p + 1, line.n - 2};
	if (line.n < 3 || line.p[line.n - 1] != ']')
		return LINE_STRANGE;
	const char *quote = memchr(in.p, '"', in.n);
	now->subsection = (struct str){"", 0};
	now->section = trim((struct str){in.p, quote ? (size_t)(quote - in.p) : in.n});
	if (quote) {
		struct str sub = {quote + 1, in.n - (size_t)(quote + 1 - in.p)};
		if (sub.n == 0 || sub.p[sub.n - 1] != '"')
			return LINE_STRANGE;
		now->subsection = (struct str){sub.p, sub.n - 1};
		if (memchr(now->subsection.p, '"', now->subsection.n) ||
			memchr(now->subsection.p, '\\', now->subsection.n))
			return LINE_STRANGE;
	}
	return plain_word(now->section) ? LINE_NOTHING : LINE_STRANGE;
}

static int read_line(struct str line, struct setting *now)
{
	line = trim(line);
	if (line.n == 0 || *line.p == '#' || *line.p == ';')
		return LINE_NOTHING;
	if (*line.p == '[')
		return read_section(line, now);
	const char *equals = memchr(line.p, '=', line.n);
	size_t n = equals ? (size_t)(equals - line.p) : line.n;
	now->key = trim((struct str){line.p, n});
	now->value = equals ? trim((struct str){equals + 1, line.n - n - 1}) : (struct str){"", 0};
	return plain_word(now->key) && now->section.n ? LINE_SETTING : LINE_STRANGE;
}

/* The next setting: 1, 0 at the end, -1: something that git does not write itself. */
static int next_setting(struct str *text, struct setting *now)
{
	while (text->n > 0) {
		const char *end = memchr(text->p, '\n', text->n);
		size_t n = end ? (size_t)(end - text->p) : text->n;
		struct str line = {text->p, n};
		text->p += n + (end != NULL);
		text->n -= n + (end != NULL);
		/* A line that goes on, or bytes that git and we might take differently. */
		if ((n && line.p[n - 1] == '\\') || memchr(line.p, '\r', n) ||
			memchr(line.p, '\0', n))
			return -1;
		int what = read_line(line, now);
		if (what != LINE_NOTHING)
			return what == LINE_SETTING ? 1 : -1;
	}
	return 0;
}

static bool same_word(struct str a, struct str b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

static bool was_there(struct str before, const struct setting *s)
{
	struct setting old = {0};
	while (next_setting(&before, &old) == 1)
		if (same_word(old.section, s->section) && same_word(old.key, s->key) &&
			str_eq(old.subsection, s->subsection) && str_eq(old.value, s->value))
			return true;
	return false;
}

/* "section.key", "section.*.key" or "section.*". */
static bool matches(const char *name, const struct setting *s)
{
	struct str n = str_of(name);
	size_t dot = (size_t)(strchr(name, '.') - name);
	struct str key = {name + dot + 1, n.n - dot - 1};
	if (!same_word((struct str){name, dot}, s->section))
		return false;
	bool any_sub = str_starts(key, STR("*."));
	if (any_sub)
		key = (struct str){key.p + 2, key.n - 2};
	if (any_sub != (s->subsection.n > 0))
		return false;
	return str_eq_c(key, "*") || same_word(key, s->key);
}

/* Addresses that git hands to a program: `ext::`, a helper's `name::`, an option as an address. */
static bool calls_a_program(struct str value)
{
	while (value.n && *value.p == '"') {
		value.p++;
		value.n--;
	}
	return memmem(value.p, value.n, "::", 2) || (value.n && *value.p == '-');
}

static bool is_harmless(const struct setting *s)
{
	if (is_name(s->key, "url") && calls_a_program(s->value))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		if (matches(harmless[i], s))
			return true;
	return false;
}

bool git_config_harmless(struct str before, struct str now)
{
	struct setting s = {0};
	int r;
	while ((r = next_setting(&now, &s)) == 1)
		if (!is_harmless(&s) && !was_there(before, &s))
			return false;
	return r == 0;
}

/* --- pointers --------------------------------------------------------------------------------- */

bool git_pointer_inside(struct str path, struct str content)
{
	long depth = 0;
	struct str to = content;
	if (str_starts(to, STR("gitdir:")))
		to = (struct str){to.p + 7, to.n - 7};
	while (to.n && (to.p[to.n - 1] == '\n'))
		to.n--;
	to = trim(to);
	if (to.n == 0 || memchr(to.p, '\n', to.n) || memchr(to.p, '\0', to.n))
		return false;
	if (str_starts(to, STR("/workspace/")))
		to = (struct str){to.p + 11, to.n - 11};
	else if (*to.p == '/')
		return false;
	else
		for (size_t i = 0; i < path.n; i++)
			depth += path.p[i] == '/';
	for (size_t at = 0; at < to.n;) {
		struct str c = component(to, &at);
		if (str_eq(c, STR("..")))
			depth--;
		else if (c.n && !str_eq(c, STR(".")))
			depth++;
		if (depth < 0)
			return false;
	}
	return true;
}
