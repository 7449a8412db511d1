/* Core's side of the journal process: see journal_client.h. What the journal says is checked, too.
 */
#include "daemon/journal_client.h"

#include "daemon/journal_page.h"
#include "daemon/messages.h"
#include "daemon/programs.h"
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { ANSWER_S = 60, END_WAIT_MS = 5000 };

struct client {
	struct journal base;
	int sock;
	struct process process;
	struct journal_page *page;
	bool greeted;
	unsigned expected; /* abandoned intents that are still to be named */
	uint64_t n;        /* of the last record */
	uint64_t written, refused;
	struct err why;  /* of `refused` */
	struct err dead; /* the journal takes no more records from us; code 0: it does */
	struct msg_record message;
	struct msg_out out;
};

static int die(struct client *c, const struct err *why)
{
	if (!c->dead.code)
		c->dead = *why;
	return -(int)c->dead.code;
}

static int gone(struct client *c, struct err *err)
{
	(void)err_set(err, ERR_UNAVAILABLE,
		"the journal's process has ended or does not answer, so nothing can be recorded");
	return die(c, err);
}

/* --- what the journal says --- */

static int take_abandoned(struct client *c, const struct msg_abandoned *m)
{
	struct jopen *o = &c->base.abandoned[c->base.n_abandoned];
	if (!c->expected || c->base.n_abandoned == JOURNAL_ABANDONED_MAX)
		return -1;
	c->expected--;
	*o = (struct jopen){.seq = m->seq};
	memcpy(o->call, m->call.p, m->call.n);
	memcpy(o->session, m->session.p, m->session.n);
	memcpy(o->tenant, m->tenant.p, m->tenant.n);
	c->base.n_abandoned++;
	return 0;
}

static int take_unwritten(struct client *c, const struct msg_unwritten *m)
{
	(void)err_set(&c->why, m->code ? (enum err_code)m->code : ERR_INTERNAL, "%.*s",
		(int)m->text.n, m->text.p);
	if (m->n == 0)
		return die(c, &c->why);
	c->refused = m->n;
	return 0;
}

static int take_message(struct client *c, enum msg_type type, struct msg_in body, struct err *err)
{
	struct msg_journal_hello hello;
	struct msg_abandoned abandoned;
	struct msg_written written;
	struct msg_unwritten unwritten;
	if (type == MSG_T_JOURNAL_HELLO && !c->greeted) {
		int r = msg_journal_hello_get(body, &hello, err);
		c->greeted = r == 0;
		c->expected = hello.abandoned;
		return r;
	}
	if (type == MSG_T_UNWRITTEN)
		return msg_unwritten_get(body, &unwritten, err) < 0 ? -1
								    : take_unwritten(c, &unwritten);
	if (type == MSG_T_ABANDONED && c->greeted)
		return msg_abandoned_get(body, &abandoned, err) < 0 ? -1
								    : take_abandoned(c, &abandoned);
	if (type != MSG_T_WRITTEN || !c->greeted || msg_written_get(body, &written, err) < 0 ||
		written.upto > c->n)
		return -1;
	c->written = written.upto;
	return 0;
}

/* One packet; waits for it. */
static int hear(struct client *c, struct err *err)
{
	static char packet[MSG_PACKET_MAX];
	enum msg_type type;
	struct msg_in body;
	int n = packet_recv(c->sock, packet, sizeof(packet), NULL, NULL, true, err), r;
	if (n <= 0)
		return gone(c, err);
	struct msg_in in = {packet, (size_t)n};
	while ((r = msg_next(&in, MSG_CORE, &type, &body, err)) == 1)
		if (take_message(c, type, body, err) < 0) {
			if (c->dead.code)
				*err = c->dead;
			return gone(c, err);
		}
	return r < 0 ? gone(c, err) : 0;
}

/* --- records --- */

static int send_out(struct client *c, struct err *err)
{
	if (!c->out.len)
		return 0;
	int r = packet_send(c->sock, c->out.data, c->out.len, NULL, 0, true, err);
	msg_out_clear(&c->out);
	return r < 0 ? gone(c, err) : 0;
}

static void copy_texts(msg_strs *to, const jrecord_texts *from)
{
	to->n = from->n;
	memcpy(to->v, from->v, from->n * sizeof(to->v[0]));
}
#define copy_text(to, from) (*(to) = *(from))
#define copy_number(to, from) (*(to) = *(from))

static int refuses(struct client *c, struct err *err)
{
	uint32_t code = atomic_load_explicit(&c->page->refuses, memory_order_relaxed);
	if (c->dead.code) {
		*err = c->dead;
		return -(int)err->code;
	}
	if (!code)
		return 0;
	if (code == ERR_NO_SPACE)
		return err_set(err, ERR_NO_SPACE, "the disk of the journal is full");
	return err_set(err, code < ERR_CODE_MAX_ ? (enum err_code)code : ERR_IO,
		"the journal takes no more records");
}

static int encode(struct client *c, const struct jrecord *r, uint8_t wait, struct err *err)
{
	struct msg_record *m = &c->message;
#define MEMBER(type, name, max) copy_##type(&m->name, &r->name);
#include "journal/jrecord.def"
#undef MEMBER
	m->seq = m->time = 0;
	m->wait = wait;
	m->n = c->n + 1;
	if (!msg_record_put(&c->out, m)) {
		int e = send_out(c, err);
		if (e < 0)
			return e;
		BUG_ON(!msg_record_put(&c->out, m));
	}
	c->n++;
	return 0;
}

static int client_add(struct journal *j, const struct jrecord *r, struct err *err)
{
	struct client *c = (struct client *)j;
	int e = refuses(c, err);
	return e < 0 ? e : encode(c, r, 0, err);
}

static int client_commit(struct journal *j, const struct jrecord *r, bool durable, struct err *err)
{
	struct client *c = (struct client *)j;
	int e = refuses(c, err);
	if (e < 0 || (e = encode(c, r, durable ? 2 : 1, err)) < 0 || (e = send_out(c, err)) < 0)
		return e;
	while (c->written < c->n && c->refused != c->n)
		if ((e = hear(c, err)) < 0)
			return e;
	if (c->refused != c->n)
		return 0;
	*err = c->why;
	return -(int)err->code;
}

static void client_flush(struct journal *j)
{
	struct client *c = (struct client *)j;
	struct err err;
	(void)send_out(c, &err); /* the next record finds that nobody takes it */
}

static int client_position(struct journal *j, struct jposition *ret, struct err *err)
{
	struct client *c = (struct client *)j;
	int r;
	while (!c->greeted || c->expected) {
		if (c->dead.code) {
			*err = c->dead;
			return -(int)err->code;
		}
		if ((r = hear(c, err)) < 0)
			return r;
	}
	for (unsigned i = 0; i < 1000000; i++)
		if (journal_page_get(c->page, ret))
			return 0;
	return gone(c, err); /* it has died while it wrote */
}

/* --- starting and ending --- */

static const struct journal_ops client_ops = {.add = client_add,
	.commit = client_commit,
	.flush = client_flush,
	.position = client_position};

int journal_page_new(int *ret_fd, struct err *err)
{
	int fd = memfd_create("cloister-journal", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, JOURNAL_PAGE_BYTES) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		int why = errno;
		cleanup_close(&fd);
		return err_sys(err, why, "making the journal's page");
	}
	*ret_fd = fd;
	return 0;
}

static int map_page(struct client *c, int fd, struct err *err)
{
	void *p = mmap(NULL, JOURNAL_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(err, errno, "mapping the journal's page");
	c->page = p;
	return 0;
}

/* A journal that hangs is no reason to hang for ever. */
static int bound_waits(int sock, struct err *err)
{
	const struct timeval t = {.tv_sec = ANSWER_S};
	if (setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)) < 0 ||
		setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t)) < 0)
		return err_sys(err, errno, "bounding the waits for the journal");
	return 0;
}

int journal_over(int channel, int page_fd, struct journal **ret, struct err *err)
{
	_cleanup_close_ int sock = channel;
	_cleanup_close_ int page = page_fd;
	struct client *c = calloc(1, sizeof(*c));
	if (!c)
		return err_oom(err);
	c->base.ops = &client_ops;
	c->sock = -1;
	c->process.pidfd = -1;
	int r = map_page(c, page, err);
	if (r == 0)
		r = bound_waits(sock, err);
	if (r < 0) {
		journal_free(&c->base);
		return r;
	}
	c->sock = take_fd(sock);
	*ret = &c->base;
	return 0;
}

static int launch(
	const struct journal_options *opt, int sock, int page, struct process *ret, struct err *err)
{
	char abi[16];
	_cleanup_close_ int exe = program_open(opt->libexecdir, "cloister-journal", err);
	if (exe < 0)
		return exe;
	_cleanup_close_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return err_sys(err, errno, "opening the null device");
	(void)snprintf(abi, sizeof(abi), "%d", opt->landlock_abi);
	const char *const argv[] = {"cloister-journal", abi, NULL};
	static const char *const envp[] = {NULL};
	const int fds[] = {sock, opt->log_fd, opt->key_fd, page};
	const struct process_spec spec = {.exec_fd = exe,
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.null_fd = null_fd,
		.survives = true};
	return process_start(&spec, ret, err);
}

int journal_start(const struct journal_options *opt, struct journal **ret, struct err *err)
{
	int pair[2], page = -1, r = packet_pair(pair, err);
	if (r < 0)
		return r;
	_cleanup_close_ int ours = pair[0];
	_cleanup_close_ int theirs = pair[1];
	struct process process;
	if ((r = journal_page_new(&page, err)) < 0)
		return r;
	if ((r = launch(opt, theirs, page, &process, err)) < 0) {
		(void)close(page);
		return r;
	}
	if ((r = journal_over(take_fd(ours), page, ret, err)) < 0)
		process_done(&process);
	else
		((struct client *)*ret)->process = process;
	return r;
}

int journal_pidfd(const struct journal *j)
{
	return ((const struct client *)j)->process.pidfd;
}

void journal_free(struct journal *j)
{
	struct client *c = (struct client *)j;
	int status;
	if (!j)
		return;
	client_flush(j);
	cleanup_close(&c->sock);
	if (c->process.pidfd >= 0) {
		if (!process_wait(&c->process, END_WAIT_MS, &status)) {
			process_kill(&c->process, SIGKILL);
			(void)process_wait(&c->process, END_WAIT_MS, &status);
		}
		process_done(&c->process);
	}
	if (c->page)
		(void)munmap(c->page, JOURNAL_PAGE_BYTES);
	free(c);
}
