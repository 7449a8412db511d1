/*
 * Files of a session as HTTP resources.
 *
 * Content never passes through messages: a download is sent from the descriptor that core opened,
 * an upload goes through a pipe whose other end core reads. A client that goes away half-way leaves
 * fewer bytes than it announced, and core refuses them, so nothing changes. For that the length has
 * to be announced (411).
 */
#include "transport/http/api_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

/* --- download --------------------------------------------------------------------------------- */

static void add_validators(struct api_request *a, const struct door_answer *answer)
{
	char text[64];
	time_t t = (time_t)(answer->modified_ms / 1000);
	struct tm tm;
	(void)snprintf(text, sizeof(text), "\"%s\"", answer->etag);
	http_reply_header(a->x, "ETag", text);
	if (gmtime_r(&t, &tm) && strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm))
		http_reply_header(a->x, "Last-Modified", text);
	http_reply_header(a->x, "Accept-Ranges", "bytes");
}

static void reply_range(struct api_request *a, struct door_answer *answer, int64_t from, int64_t n)
{
	char text[96];
	(void)snprintf(text, sizeof(text), "bytes %lld-%lld/%lld", (long long)from,
		(long long)(from + n - 1), (long long)answer->size);
	http_reply_header(a->x, "Content-Range", text);
	http_reply_fd(a->x, 206, "application/octet-stream", take_fd(answer->fd), from, n);
}

static void reply_unsatisfiable(struct api_request *a, const struct door_answer *answer)
{
	char text[64];
	struct err err;
	struct buf b = buf_init(1024);
	(void)snprintf(text, sizeof(text), "bytes */%lld", (long long)answer->size);
	http_reply_header(a->x, "Content-Range", text);
	err_set(&err, ERR_INVALID_ARGUMENT, "the range lies outside the file, which has %lld bytes",
		(long long)answer->size);
	http_put_error(&b, &err);
	http_reply_take(a->x, 416, "application/json", &b);
}

/* The conditions in the order of RFC 9110 13.2.2. */
static void reply_file(struct api_request *a, struct door_answer *answer)
{
	const struct http_request *q = a->q;
	struct str tag = str_of(answer->etag);
	int64_t from, n;
	if (q->if_match.p && !http_etag_in(q->if_match, tag)) {
		struct err err;
		struct buf b = buf_init(1024);
		err_set(&err, ERR_CONFLICT, "the file is not the one that If-Match names");
		http_put_error(&b, &err);
		http_reply_take(a->x, 412, "application/json", &b);
		return;
	}
	add_validators(a, answer);
	if (q->if_none_match.p && http_etag_in(q->if_none_match, tag)) {
		http_reply(a->x, 304, NULL, STR(""));
		return;
	}
	bool ranged = q->range.p && q->method == HTTP_GET &&
		      (!q->if_range.p || http_etag_in(q->if_range, tag));
	int r = ranged ? http_range(q->range, answer->size, &from, &n) : 0;
	if (r < 0)
		reply_unsatisfiable(a, answer);
	else if (r > 0)
		reply_range(a, answer, from, n);
	else
		http_reply_fd(a->x, 200, "application/octet-stream", take_fd(answer->fd), 0,
			answer->size);
}

static void on_download(void *ctx, struct door_answer *answer)
{
	struct api_request *a = ctx;
	a->asking = false;
	if (answer->code != ERR_OK || answer->fd < 0)
		api_reply_answer(a, answer, 500);
	else
		reply_file(a, answer);
}

void api_download(struct api_request *a)
{
	api_put_path(a, &a->arguments);
	jw_close(&a->arguments, '}');
	struct door_request d = api_door_request(a);
	(void)api_submit(a, &d, on_download);
}

/* --- upload ----------------------------------------------------------------------------------- */

struct upload {
	int write_fd; /* -1: all was written */
};

void upload_free(struct upload *u)
{
	if (!u)
		return;
	if (u->write_fd >= 0)
		(void)close(u->write_fd);
	free(u);
}

/* If-Match names the content that the file must have now by its SHA-256, so that the check is the
 * commit's own; If-None-Match: * wants none to be there. */
static int put_conditions(struct api_request *a, struct err *err)
{
	struct str m = a->q->if_match;
	if (a->q->if_none_match.p && !str_eq(a->q->if_none_match, STR("*")))
		return err_set(err, ERR_INVALID_ARGUMENT, "If-None-Match of a write can only be *");
	if (a->q->if_none_match.p)
		jw_bool(&a->arguments, "overwrite", false);
	if (!m.p)
		return 0;
	if (m.n != 66 || m.p[0] != '"' || m.p[65] != '"') {
		err_set(err, ERR_INVALID_ARGUMENT, "If-Match of a write must be one SHA-256");
		return err_hint(err, "as \"<64 hexadecimal digits>\"");
	}
	jw_str(&a->arguments, "expected_hash", (struct str){m.p + 1, 64});
	return 0;
}

static int open_pipe(struct api_request *a, int *ret_read, struct err *err)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_sys(err, errno, "the upload");
	a->upload = calloc(1, sizeof(*a->upload));
	if (!a->upload || fcntl(fds[1], F_SETFL, O_NONBLOCK) < 0) {
		(void)close(fds[0]);
		(void)close(fds[1]);
		return err_oom(err);
	}
	a->upload->write_fd = fds[1];
	*ret_read = fds[0];
	return 0;
}

static void reply_length_required(struct api_request *a)
{
	struct err err;
	struct buf b = buf_init(1024);
	err_set(&err, ERR_INVALID_ARGUMENT, "an upload must announce its Content-Length");
	http_put_error(&b, &err);
	http_reply_take(a->x, 411, "application/json", &b);
}

void api_upload(struct api_request *a)
{
	struct err err;
	int fd = -1;
	if (a->q->length < 0) {
		reply_length_required(a);
		return;
	}
	int r = put_conditions(a, &err);
	if (r == 0)
		r = open_pipe(a, &fd, &err);
	if (r < 0) {
		api_reply_error(a, &err);
		return;
	}
	api_put_path(a, &a->arguments);
	jw_close(&a->arguments, '}');
	struct door_request d = api_door_request(a);
	d.body_fd = fd;
	d.body_size = a->q->length;
	if (!api_submit(a, &d, api_answer)) {
		(void)close(fd);
		return;
	}
	http_body_pipe(a->x, a->upload->write_fd);
}

/* The end of the pipe is the end of the body. */
void upload_ready(struct api_request *a)
{
	(void)close(take_fd(a->upload->write_fd));
}
