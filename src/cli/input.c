/* Arguments from files and standard input: see input.h. */
#include "cli/input.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int read_all(int fd, struct buf *out, struct err *err)
{
	enum { PIECE = 65536 };
	for (;;) {
		char *to = buf_room(out, PIECE);
		if (!to)
			return err_set(err, ERR_LIMIT, "the input is larger than %zu bytes",
				out->max - PIECE);
		ssize_t n = read(fd, to, PIECE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "reading the input");
		if (n == 0)
			return 0;
		buf_grew(out, (size_t)n);
	}
}

int input_text(const char *spec, struct buf *out, struct err *err)
{
	if (strcmp(spec, "-") == 0)
		return read_all(STDIN_FILENO, out, err);
	if (spec[0] != '@') {
		buf_puts(out, spec);
		return buf_check(out, "the argument", err);
	}
	_cleanup_close_ int fd = open(spec + 1, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return err_sys(err, errno, "opening '%.200s'", spec + 1);
	return read_all(fd, out, err);
}

/* RFC 4648, with padding. */
static void put_base64(struct buf *b, const unsigned char *p, size_t n)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < n; i += 3) {
		size_t have = MIN(n - i, (size_t)3);
		uint32_t v = (uint32_t)p[i] << 16 | (have > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
			     (have > 2 ? p[i + 2] : 0);
		char out[4] = {letters[v >> 18], letters[v >> 12 & 63],
			have > 1 ? letters[v >> 6 & 63] : '=', have > 2 ? letters[v & 63] : '='};
		buf_put(b, out, sizeof(out));
	}
}

int input_content(json_t *args, struct err *err)
{
	_cleanup_buf_ struct buf in = buf_init(LIMIT_REQUEST_BYTES);
	int r = read_all(STDIN_FILENO, &in, err);
	if (r < 0)
		return r;
	if (utf8_valid(buf_str(&in), in.len)) {
		json_t *text = json_stringn_nocheck(buf_str(&in), in.len);
		return json_object_set_new_nocheck(args, "content", text) < 0 ? err_oom(err) : 0;
	}
	_cleanup_buf_ struct buf out = buf_init((size_t)LIMIT_REQUEST_BYTES * 2);
	put_base64(&out, (const unsigned char *)in.data, in.len);
	json_t *text = json_stringn_nocheck(buf_str(&out), out.len);
	if (json_object_set_new_nocheck(args, "content", text) < 0 ||
		json_object_set_new_nocheck(args, "encoding", json_string("base64")) < 0)
		return err_oom(err);
	return 0;
}
