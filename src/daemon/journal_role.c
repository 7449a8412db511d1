/* The life of a journal process: see journal_role.h. What core says is checked like anybody's. */
#include "daemon/journal_role.h"

#include "daemon/journal_page.h"
#include "daemon/rights.h"
#include "sys/loop.h"
#include "sys/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>

enum { ARGUMENTS = 1 };

struct role {
	struct jkey *key;
	struct jlog *log;
	struct journal_page *page;
	uint64_t last_n; /* of the last record that came */
	char *pending;   /* messages of records, not yet in the log; JOURNAL_PENDING_MAX */
	size_t n;
	unsigned records;
	bool waits, durable, failing;
	int64_t write_at_ms; /* when what is pending is to be written; < 0: nothing is */
};

static struct msg_out out;
static char packet[MSG_PACKET_MAX];
static struct msg_record message;
static struct jrecord record;

/* --- answers --- */

static int send_out(struct err *err)
{
	int r = out.len ? packet_send(JOURNAL_FD_CORE, out.data, out.len, NULL, 0, true, err) : 0;
	msg_out_clear(&out);
	return r;
}

static int say_unwritten(uint64_t n, const struct err *why, struct err *err)
{
	const struct msg_unwritten m = {
		.n = n, .code = (uint32_t)why->code, .text = str_of(why->text)};
	if (msg_unwritten_put(&out, &m))
		return 0;
	int r = send_out(err);
	BUG_ON(!msg_unwritten_put(&out, &m));
	return r;
}

static void show_position(struct role *r)
{
	struct jposition at;
	jlog_position(r->log, &at);
	journal_page_put(r->page, &at);
}

static int say_hello(struct role *r, int abi, struct err *err)
{
	const struct jopen *open;
	unsigned n = MIN(jlog_abandoned(r->log, &open), (unsigned)JOURNAL_ABANDONED_MAX);
	const struct msg_journal_hello hello = {.landlock_abi = (uint32_t)abi, .abandoned = n};
	show_position(r);
	BUG_ON(!msg_journal_hello_put(&out, &hello));
	for (unsigned i = 0; i < n; i++) {
		const struct msg_abandoned m = {.seq = open[i].seq,
			.call = str_of(open[i].call),
			.session = str_of(open[i].session),
			.tenant = str_of(open[i].tenant)};
		BUG_ON(!msg_abandoned_put(&out, &m));
	}
	return send_out(err);
}

/* --- records --- */

static void copy_texts(jrecord_texts *to, const msg_strs *from)
{
	to->n = from->n;
	memcpy(to->v, from->v, from->n * sizeof(to->v[0]));
}
#define copy_text(to, from) (*(to) = *(from))
#define copy_number(to, from) (*(to) = *(from))

static int read_message(struct msg_in body, struct err *err)
{
	int r = msg_record_get(body, &message, err);
	if (r < 0)
		return r;
#define MEMBER(type, name, max) copy_##type(&record.name, &message.name);
#include "journal/jrecord.def"
#undef MEMBER
	return 0;
}

typedef int (*each_fn)(struct role *r, struct msg_in raw, struct err *err);

/* Every pending record, decoded into `message` and `record`; `raw` is the whole message. */
static int each_pending(struct role *r, each_fn each, struct err *err)
{
	struct msg_in in = {r->pending, r->n};
	enum msg_type type;
	struct msg_in body;
	int e;
	for (;;) {
		const char *from = in.p;
		if ((e = msg_next(&in, MSG_JOURNAL, &type, &body, err)) <= 0 ||
			(e = read_message(body, err)) < 0 ||
			(e = each(r, (struct msg_in){from, (size_t)(in.p - from)}, err)) < 0)
			return e;
	}
}

static void note_waits(struct role *r)
{
	r->waits |= message.wait > 0;
	r->durable |= message.wait > 1;
}

/* Core numbers its records, so that none can be lost or come twice on the way. */
static int accept(struct role *r, struct msg_in raw, struct err *err)
{
	if (message.n != r->last_n + 1)
		return err_set(err, ERR_PARSE, "core has numbered its records wrongly");
	if (raw.left > JOURNAL_PENDING_MAX - r->n || r->records == JLOG_GROUP_RECORDS)
		return err_set(err, ERR_LIMIT, "too many records are pending");
	memcpy(r->pending + r->n, raw.p, raw.left);
	r->n += raw.left;
	r->records++;
	r->last_n++;
	note_waits(r);
	return 0;
}

static int take_packet(struct role *r, struct msg_in in, struct err *err)
{
	enum msg_type type;
	struct msg_in body;
	int e;
	for (;;) {
		const char *from = in.p;
		if ((e = msg_next(&in, MSG_JOURNAL, &type, &body, err)) <= 0 ||
			(e = read_message(body, err)) < 0 ||
			(e = accept(r, (struct msg_in){from, (size_t)(in.p - from)}, err)) < 0)
			return e;
	}
}

/* --- groups --- */

/* A record that the log does not take (too many changes under way) is only core's that waits for
 * it; any other is one that core must not have sent. */
static int put(struct role *r, struct msg_in raw _unused_, struct err *err)
{
	uint64_t seq;
	int e = jlog_put(r->log, &record, &seq, err);
	if (e < 0 && err->code == ERR_LIMIT && message.wait > 0)
		return say_unwritten(message.n, err, err);
	return e;
}

static int write_group(struct role *r, struct err *err)
{
	int e = jlog_begin(r->log, err);
	if (e < 0)
		return e;
	struct err bad;
	if (each_pending(r, put, &bad) < 0)
		_exit(1);
	return jlog_end(r->log, r->last_n, r->durable, err);
}

static struct err failure;
static struct msg_in kept;

/* While nothing can be written core hears early that no more is taken, since what is on its way to
 * us then has to find room. */
static void tell_if_full(struct role *r)
{
	if (r->failing && (jlog_broken(r->log) || r->n > JOURNAL_PENDING_MAX / 4 ||
				  r->records > JLOG_GROUP_RECORDS / 4))
		atomic_store(&r->page->refuses, (uint32_t)failure.code);
}

/* What failed is told to whoever waits. A change that waits for its intent will not happen, so the
 * intent goes; everything else has happened and is kept for later. */
static int fail_one(struct role *r, struct msg_in raw, struct err *err)
{
	static const size_t wait_at = 8 /* header */ + sizeof(uint64_t);
	bool intent = str_eq_c(message.kind, JRECORD_KIND_INTENT);
	int e = message.wait ? say_unwritten(message.n, &failure, err) : 0;
	if (intent) {
		r->records--;
		return e;
	}
	char *to = (char *)(uintptr_t)kept.p + kept.left;
	memmove(to, raw.p, raw.left);
	to[wait_at] = 0;
	kept.left += raw.left;
	return e;
}

static int fail_group(struct role *r, struct err *err)
{
	kept = (struct msg_in){r->pending, 0};
	int e = each_pending(r, fail_one, err);
	r->n = kept.left;
	r->failing = true;
	tell_if_full(r);
	return e;
}

static int answer_group(struct role *r, struct err *err)
{
	const struct msg_written m = {.upto = r->last_n};
	int e = 0;
	if (r->waits && !msg_written_put(&out, &m)) {
		e = send_out(err);
		BUG_ON(!msg_written_put(&out, &m));
	}
	show_position(r);
	r->n = r->records = 0;
	r->failing = false;
	atomic_store(&r->page->refuses, 0);
	return e;
}

static int write_pending(struct role *r, struct err *err)
{
	int e = write_group(r, &failure) < 0 ? fail_group(r, err) : answer_group(r, err);
	r->waits = r->durable = false;
	r->write_at_ms = r->n ? loop_now_ms() + JOURNAL_RETRY_MS : -1;
	return e < 0 ? e : send_out(err);
}

/* --- the loop --- */

/* 1: a packet came, 0: there is none, < 0: core is gone or talks nonsense. */
static int receive(struct role *r, bool block, struct err *err)
{
	int n = packet_recv(JOURNAL_FD_CORE, packet, sizeof(packet), NULL, NULL, block, err);
	if (n == -ERR_BUSY)
		return 0;
	if (n <= 0)
		return n < 0 ? n : err_set(err, ERR_UNAVAILABLE, "core is gone");
	bool idle = r->n == 0;
	int e = take_packet(r, (struct msg_in){packet, (size_t)n}, err);
	tell_if_full(r);
	if (e == 0 && idle)
		r->write_at_ms = loop_now_ms() + JOURNAL_LINGER_MS;
	return e < 0 ? e : 1;
}

/* Is there room for whatever one packet can hold? Else core waits at its end. */
static bool has_room(const struct role *r)
{
	enum { RECORD_BYTES_LEAST = 112 };
	return r->n + MSG_PACKET_MAX <= JOURNAL_PENDING_MAX &&
	       r->records + MSG_PACKET_MAX / RECORD_BYTES_LEAST <= JLOG_GROUP_RECORDS;
}

static int wait_ms(const struct role *r)
{
	if (r->write_at_ms < 0)
		return -1;
	return (int)MAX(r->write_at_ms - loop_now_ms(), (int64_t)0);
}

static int turn(struct role *r, struct err *err)
{
	struct pollfd p = {.fd = JOURNAL_FD_CORE, .events = has_room(r) ? POLLIN : 0};
	int e;
	if (poll(&p, 1, wait_ms(r)) < 0 && errno != EINTR)
		return err_sys(err, errno, "waiting");
	if (r->failing && !has_room(r) && (p.revents & POLLHUP))
		return err_set(err, ERR_UNAVAILABLE, "core is gone");
	while (p.revents && has_room(r) && (e = receive(r, false, err)) != 0)
		if (e < 0)
			return e;
	bool due = r->write_at_ms >= 0 && loop_now_ms() >= r->write_at_ms;
	if (r->waits || due || (!r->failing && (r->n >= JOURNAL_PENDING_HIGH || !has_room(r))))
		return write_pending(r, err);
	return 0;
}

/* --- starting --- */

static int open_page(struct role *r, struct err *err)
{
	void *p = mmap(
		NULL, JOURNAL_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, JOURNAL_FD_PAGE, 0);
	if (p == MAP_FAILED)
		return err_sys(err, errno, "mapping the journal's page");
	r->page = p;
	(void)close(JOURNAL_FD_PAGE);
	return 0;
}

/* The key is read before the rights go, since it is in a directory of its own. */
static int prepare(struct role *r, int abi, struct err *err)
{
	const struct journal_rights rights = {.landlock_abi = abi};
	int e;
	if ((e = process_undumpable(err)) < 0 || (e = open_page(r, err)) < 0)
		return e;
	if ((e = jkey_open(JOURNAL_FD_KEY, JOURNAL_FD_LOG, &r->key, err)) < 0)
		return e;
	(void)close(JOURNAL_FD_KEY);
	r->pending = malloc(JOURNAL_PENDING_MAX);
	if (!r->pending)
		return err_oom(err);
	return journal_restrict(&rights, err);
}

static int open_log(struct role *r, struct err *err)
{
	struct jlog_options o = {.dir_fd = JOURNAL_FD_LOG, .key = r->key};
	while (!o.run)
		if (getrandom(&o.run, sizeof(o.run), 0) != (ssize_t)sizeof(o.run))
			return err_sys(err, errno, "drawing a name for this writer");
	return jlog_open(&o, &r->log, err);
}

/* Core is told why there will be no journal. */
_noreturn_ static void give_up(const struct err *why)
{
	struct err err;
	msg_out_clear(&out);
	if (say_unwritten(0, why, &err) == 0)
		(void)send_out(&err);
	_exit(1);
}

static void serve(struct role *r, struct err *err)
{
	int e = 0;
	while (e == 0)
		e = turn(r, err);
	/* What core has sent before it ended is written all the same. */
	if (err->code == ERR_UNAVAILABLE && !err->sys && r->n)
		(void)write_pending(r, err);
}

void journal_role(int argc, char **argv)
{
	static struct role r = {.write_at_ms = -1};
	struct err err = {0};
	int64_t abi = argc == 1 + ARGUMENTS ? process_argument(argv[1], 1000) : -1;
	if (abi < 0)
		_exit(2);
	(void)signal(SIGXFSZ, SIG_IGN);
	(void)signal(SIGPIPE, SIG_IGN);
	/* Signals to a whole group come here too; what ends the journal is the end of its core. */
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGINT, SIG_IGN);
	if (prepare(&r, (int)abi, &err) < 0 || open_log(&r, &err) < 0)
		give_up(&err);
	if (say_hello(&r, (int)abi, &err) == 0)
		serve(&r, &err);
	_exit(0);
}
