/*
 * Content as descriptors. An upload streams into a file without a name that core owns, bounded by
 * what was announced, and becomes a call when it is complete; until then it is nothing, so a client
 * that goes away has changed nothing.
 */
#include "daemon/core_impl.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>

enum {
	PIECE = 64 * 1024,
	PIECES_A_TURN = 16,
	UPLOAD_STALL_MS = 120 * 1000, /* without a byte for so long it is over */
	UPLOAD_BYTES_MAX_MB = 64 * 1024,
};

struct upload {
	struct loop_source *io;
	int from, to;
	int64_t size, got;
	json_t *args;
	int64_t wait_ms;
};

void ask_upload_free(struct ask *a)
{
	struct upload *u = a->upload;
	if (!u)
		return;
	loop_remove(&u->io);
	cleanup_close(&u->from);
	cleanup_close(&u->to);
	json_decref(u->args);
	free(u);
	a->upload = NULL;
	a->core->n_uploads--;
}

static void set_tool(struct ask *a, const char *name)
{
	(void)snprintf(a->tool, sizeof(a->tool), "%s", name);
}

void core_download(struct ask *a, const struct door_request *q)
{
	struct err err;
	_cleanup_(cleanup_json_decref) json_t *args = NULL;
	set_tool(a, "file_read");
	if (ask_arguments(q, NULL, &args, &err) < 0)
		ask_error(a, &err);
	else
		core_start_call(a, &a->core->bulk, args, -1, 0, q->wait_ms);
}

/* --- upload ----------------------------------------------------------------------------------- */

static void complete(struct ask *a)
{
	struct upload *u = a->upload;
	_cleanup_close_ int fd = take_fd(u->to);
	_cleanup_(cleanup_json_decref) json_t *args = take_ptr(u->args);
	int64_t size = u->got, wait_ms = u->wait_ms;
	ask_upload_free(a);
	ask_leave(a);
	core_start_call(a, &a->core->bulk, args, fd, size, wait_ms);
}

/* 1: a piece was taken, 0: nothing there now or the end (then *ret_end). */
static int take_piece(struct upload *u, bool *ret_end, struct err *err)
{
	static char piece[PIECE];
	ssize_t n = read(u->from, piece, sizeof(piece));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return err_sys(err, errno, "reading the upload");
	*ret_end = n == 0;
	if (n > u->size - u->got)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "the upload is longer than was announced");
	if (n == 0 && u->got != u->size)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "the upload is shorter than was announced");
	if (n && fs_write(u->to, piece, (size_t)n, u->got) < 0)
		return err_sys(err, errno, "keeping the upload");
	u->got += n;
	return n > 0;
}

static void on_content(void *ctx, int fd _unused_, uint32_t events _unused_)
{
	struct ask *a = ctx;
	struct err err;
	bool end = false;
	int r = 1;
	a->until_ms = loop_now_ms() + UPLOAD_STALL_MS;
	for (unsigned i = 0; r > 0 && i < PIECES_A_TURN; i++)
		r = take_piece(a->upload, &end, &err);
	if (r < 0)
		ask_error(a, &err);
	else if (end)
		complete(a);
}

void core_upload_timed_out(struct ask *a)
{
	struct err err;
	(void)err_set(
		&err, ERR_TIMEOUT, "no byte of the upload came for %d s", UPLOAD_STALL_MS / 1000);
	ask_error(a, &err);
}

/* The session first, so that nobody fills the disk for one that he cannot write to. */
static int begin(struct ask *a, const struct door_request *q, struct err *err)
{
	struct core *c = a->core;
	struct upload *u = a->upload;
	struct session_info info;
	int r = ask_arguments(q, NULL, &u->args, err);
	if (r < 0 || (r = registry_show(c->env.registry, a->tenant, a->session, &info, err)) < 0)
		return r;
	int64_t most = info.quota_bytes ? info.quota_bytes : (int64_t)UPLOAD_BYTES_MAX_MB << 20;
	if (q->body_size < 0)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "the size of an upload must be announced");
	if (q->body_size > most)
		return err_set(err, ERR_QUOTA, "Workspace quota exceeded: %.1fMB > %.0fMB limit",
			(double)q->body_size / (1 << 20), (double)most / (1 << 20));
	if (c->n_uploads > CORE_UPLOADS_MAX)
		return err_set(err, ERR_LIMIT, "%d uploads are under way", CORE_UPLOADS_MAX);
	u->size = q->body_size;
	u->wait_ms = q->wait_ms;
	if (fcntl(u->from, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, errno, "reading the upload");
	u->to = fs_tmpfile(c->opt.state_fd);
	if (u->to < 0)
		return err_sys(err, errno, "making room for the upload");
	return loop_io(c->opt.loop, u->from, EPOLLIN, on_content, a, &u->io, err);
}

void core_upload(struct ask *a, const struct door_request *q)
{
	struct err err;
	set_tool(a, "file_write");
	a->upload = calloc(1, sizeof(*a->upload));
	if (!a->upload) {
		(void)close(q->body_fd);
		(void)err_oom(&err);
		ask_error(a, &err);
		return;
	}
	*a->upload = (struct upload){.from = q->body_fd, .to = -1};
	a->core->n_uploads++;
	if (begin(a, q, &err) < 0)
		ask_error(a, &err);
	else
		ask_wait(a, UPLOAD_STALL_MS);
}
