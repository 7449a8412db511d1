/* RE2 behind a C face: see re2_face.h. */
#include "workspace/re2_face.h"

#include <re2/re2.h>

#include <cstdint>
#include <cstdio>
#include <new>
#include <string>

struct re2_face {
	re2::RE2 re;
	re2_face(const std::string &pattern, const re2::RE2::Options &options)
	    : re(pattern, options)
	{
	}
};

namespace
{

re2::RE2::Options options_of(const re2_options &opt)
{
	re2::RE2::Options o;
	o.set_log_errors(false);
	o.set_max_mem(RE2_FACE_MEMORY);
	o.set_case_sensitive(!opt.ignore_case);
	o.set_dot_nl(opt.dot_all);
	o.set_never_nl(opt.in_lines);
	return o;
}

std::string wrapped(const std::string &pattern, const re2_options &opt)
{
	std::string p = pattern;
	if (opt.whole_word)
		p = "\\b(?:" + p + ")\\b";
	if (opt.multi_line)
		p = "(?m:" + p + ")";
	return p;
}

} // namespace

extern "C" struct re2_face *re2_face_new(
	const char *pattern, size_t n, const struct re2_options *opt, char *why, size_t why_cap)
{
	std::string text(pattern, n);
	if (opt->literal)
		text = re2::RE2::QuoteMeta(text);
	const re2::RE2::Options o = options_of(*opt);
	/* Alone first: inside the wrapping, unbalanced parentheses could balance. */
	const re2::RE2 alone(text, o);
	re2_face *re = alone.ok() ? new (std::nothrow) re2_face(wrapped(text, *opt), o) : nullptr;
	if (re && re->re.ok())
		return re;
	snprintf(why, why_cap, "%s",
		!alone.ok() ? alone.error().c_str()
		: re        ? re->re.error().c_str()
			    : "out of memory");
	delete re;
	return nullptr;
}

extern "C" void re2_face_free(struct re2_face *re)
{
	delete re;
}

extern "C" bool re2_face_find(const struct re2_face *re, const char *text, size_t n, size_t from,
	struct re2_span *ret, unsigned n_spans)
{
	re2::StringPiece groups[RE2_FACE_GROUPS];
	if (n_spans > RE2_FACE_GROUPS)
		n_spans = RE2_FACE_GROUPS;
	if (!re->re.Match(re2::StringPiece(text, n), from, n, re2::RE2::UNANCHORED, groups,
		    static_cast<int>(n_spans)))
		return false;
	for (unsigned i = 0; i < n_spans; i++) {
		const re2::StringPiece &g = groups[i];
		ret[i].from = g.data() ? static_cast<size_t>(g.data() - text) : SIZE_MAX;
		ret[i].to = g.data() ? ret[i].from + g.size() : SIZE_MAX;
	}
	return true;
}

extern "C" unsigned re2_face_groups(const struct re2_face *re)
{
	return static_cast<unsigned>(re->re.NumberOfCapturingGroups());
}
