/* Tests of workspace/text_read: windows by byte and line in every encoding, and files that do not
 * fit their encoding. */
#include "testing.h"

#include "codec/json.h"
#include "workspace/text_read.h"

#include <sys/mman.h>
#include <unistd.h>

static int file_of(const void *p, size_t n)
{
	int fd = memfd_create("text", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	return fd;
}

/* The window as it reads once the JSON string is parsed; NULL when it was refused. */
static char *window(const char *text, size_t n, struct text_window w, struct text_read *ret,
	size_t *ret_n, struct err *err)
{
	_cleanup_buf_ struct buf out = buf_init(1 << 26);
	_cleanup_close_ int fd = file_of(text, n);
	json_t *v = NULL;
	w.max_bytes = w.max_bytes ? w.max_bytes : UINT64_MAX;
	w.max_file = w.max_file ? w.max_file : 1 << 30;
	buf_putc(&out, '"');
	if (text_read(fd, (int64_t)n, &w, &out, ret, err) < 0)
		return NULL;
	buf_putc(&out, '"');
	assert_int_equal(json_parse((struct str){out.data, out.len}, out.len, &v, err), 0);
	*ret_n = json_string_length(v);
	char *copy = malloc(*ret_n + 1);
	memcpy(copy, json_string_value(v), *ret_n + 1);
	json_decref(v);
	return copy;
}

static const struct {
	const char *cell, *text;
	struct text_window w;
	const char *content;
	uint64_t total, lines, next;
} cells[] = {
	{"whole", "a\nb\n", {0}, "a\nb\n", 0, 0, 0},
	{"empty", "", {0}, "", 0, 0, 0},
	{"first lines", "1\n2\n3\n", {.by_line = true, .offset = 1, .limit = 2}, "1\n2\n", 3, 2, 3},
	{"middle line", "1\n2\n3\n", {.by_line = true, .offset = 2, .limit = 1}, "2\n", 3, 1, 3},
	{"last line", "1\n2\n3\n", {.by_line = true, .offset = 3, .limit = 5}, "3\n", 3, 1, 0},
	{"open last line", "1\n2", {.by_line = true, .offset = 2}, "2", 2, 1, 0},
	{"behind the end", "1\n2\n", {.by_line = true, .offset = 3}, "", 2, 0, 0},
	{"far behind the end", "1\n2\n", {.by_line = true, .offset = UINT64_MAX}, "", 2, 0, 0},
	{"blank lines count", "\n\n\n", {.by_line = true, .offset = 2, .limit = 1}, "\n", 3, 1, 3},
	{"CRLF kept", "1\r\n2\r\n", {.by_line = true, .offset = 1, .limit = 1}, "1\r\n", 2, 1, 2},
	{"bytes", "abcdef", {.offset = 2, .limit = 3}, "cde", 0, 0, 5},
	{"bytes to the end", "abcdef", {.offset = 2}, "cdef", 0, 0, 0},
	{"bytes behind the end", "abc", {.offset = 9}, "", 0, 0, 0},
	{"window does not cut a character",
		"a\xe2\x82\xac"
		"b",
		{.offset = 0, .limit = 3}, "a", 0, 0, 1},
	{"latin-1", "\xe4\xf6", {.encoding = ENCODING_LATIN1}, "\xc3\xa4\xc3\xb6", 0, 0, 0},
	{"base64", "any carnal pleas", {.encoding = ENCODING_BASE64}, "YW55IGNhcm5hbCBwbGVhcw==", 0,
		0, 0},
	{"base64 window", "any carnal pleas",
		{.encoding = ENCODING_BASE64, .offset = 4, .limit = 2}, "Y2E=", 0, 0, 6},
	{"lines within a budget", "111\n222\n333\n", {.by_line = true, .max_bytes = 9},
		"111\n222\n", 3, 2, 3},
};

static void each_window_is_exact(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		struct err err;
		struct text_read got;
		size_t n = 0;
		char *text =
			window(cells[i].text, strlen(cells[i].text), cells[i].w, &got, &n, &err);
		if (!text)
			fail_msg("%s: %s", cells[i].cell, err.text);
		if (strcmp(text, cells[i].content) != 0 || got.total_lines != cells[i].total ||
			got.lines != cells[i].lines || got.next_offset != cells[i].next)
			fail_msg("%s: '%s' total %d lines %d next %d", cells[i].cell, text,
				(int)got.total_lines, (int)got.lines, (int)got.next_offset);
		free(text);
	}
}

static const struct {
	const char *cell, *text;
	struct text_window w;
	enum err_code code;
	const char *says;
} refused[] = {
	{"not UTF-8", "abc\xff", {0}, ERR_ENCODING, "not UTF-8 at byte 3"},
	{"cut character at the end", "ab\xe2\x82", {0}, ERR_ENCODING, "not UTF-8 at byte 2"},
	{"not ASCII", "ab\xc3\xa4", {.encoding = ENCODING_ASCII}, ERR_ENCODING,
		"not ASCII at byte 2"},
	{"too large", "abcdef", {.max_file = 5}, ERR_TOO_LARGE,
		"the file has 6 bytes; at most 5 are read"},
	{"line over budget", "aaaaaaaaaaaa\n", {.by_line = true, .max_bytes = 5}, ERR_TOO_LARGE,
		"line 1 alone is longer than 5 bytes"},
	{"limit inside a character", "\xe2\x82\xac", {.limit = 1}, ERR_INVALID_ARGUMENT,
		"smaller than the character at byte 0"},
};

static void what_does_not_fit_is_refused_with_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct err err;
		struct text_read got;
		size_t n;
		assert_null(window(
			refused[i].text, strlen(refused[i].text), refused[i].w, &got, &n, &err));
		if (err.code != refused[i].code || !strstr(err.text, refused[i].says))
			fail_msg("%s: %s", refused[i].cell, err.text);
	}
}

/* Windows put together give the file, whatever their size: characters and lines cut by a piece's
 * end included. */
static void windows_put_together_are_the_file(void **state)
{
	(void)state;
	enum { N = 300000 };
	char *text = malloc(N), *all = malloc(N + 1);
	size_t n = 0;
	for (unsigned i = 0; n < N - 10; i++)
		n += (size_t)sprintf(
			text + n, i % 7 ? "\xe2\x82\xac%u" : "%u\n", i * 2654435761u % 1000);
	for (int by_line = 0; by_line <= 1; by_line++)
		for (int step = 0; step < 3; step++) {
			struct text_window w = {.by_line = by_line,
				.offset = (uint64_t)by_line,
				.limit = by_line ? 1009 : 70001 + (unsigned)step};
			size_t at = 0;
			struct text_read got;
			do {
				struct err err;
				size_t len = 0;
				char *piece = window(text, n, w, &got, &len, &err);
				if (!piece)
					fail_msg("%s", err.text);
				assert_true(at + len <= n);
				memcpy(all + at, piece, len);
				at += len;
				free(piece);
				w.offset = got.next_offset;
			} while (got.next_offset);
			assert_int_equal(at, n);
			assert_memory_equal(all, text, n);
		}
	free(text);
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_window_is_exact),
		cmocka_unit_test(what_does_not_fit_is_refused_with_its_place),
		cmocka_unit_test(windows_put_together_are_the_file),
	};
	return cmocka_run_group_tests_name("text_read", tests, NULL, NULL);
}
