/*
 * The supervisor of a node: see node.h.
 *
 * A child is started, watched through its pidfd, and started again when it ends, later each time it
 * fails soon after its start. Nothing here waits for a child: what a child does not read in time
 * ends that child.
 */
#include "daemon/node.h"

#include "daemon/journal_dirs.h"
#include "daemon/leases.h"
#include "daemon/listen.h"
#include "daemon/messages.h"
#include "daemon/programs.h"
#include "daemon/rights_node.h"
#include "session/state.h"
#include "sys/landlock.h"
#include "sys/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

enum {
	CORES = 3, /* one that serves, one that is starting, one that retires */
	WORDS_MAX = 128,
	ENVIRONMENT_MAX = 64,
	AGAIN_FIRST_MS = 20,
	AGAIN_LAST_MS = 10 * 1000,
	LIVED_MS = 60 * 1000, /* after so long a failure is no longer one of the start */
	STOP_MS = 20 * 1000,
	WORKER_CPU_S = 3600,
	POLL_FIXED = 2 + 3 * CORES,
};

struct child {
	struct process process; /* pidfd -1: not running */
	int control;
	int64_t started_ms, again_ms; /* again: when to start it; -1: not */
	unsigned failures;
};

enum core_state { CORE_NONE, CORE_STARTING, CORE_SERVING, CORE_RETIRING };

struct core_child {
	struct child child;
	enum core_state state;
	struct leases leases;
	uint64_t number;
};

struct node {
	struct node_words words;
	struct node_log log;
	const char *given[WORDS_MAX], *environment[ENVIRONMENT_MAX];
	int core_exe, front_exe, worker_exe, journal_exe, log_fd, key_fd, null_fd, signals,
		state_fd, base_fd, shared_fd;
	struct listener listeners[LISTEN_MAX];
	unsigned n_listeners;
	int landlock_abi;
	char abi[16], n_listen[16], uid[16], memory[32], cpu[16];
	struct child front;
	struct core_child cores[CORES];
	uint64_t last_number;
	bool was_ready, stopping, failed;
	int64_t stop_ms;
};

/* --- children --------------------------------------------------------------------------------- */

static bool running(const struct child *c)
{
	return c->process.pidfd >= 0;
}

static void kill_child(struct child *c, int signo)
{
	if (running(c))
		process_kill(&c->process, signo);
}

static int start(struct node *n, struct child *c, int exe, const char *const *argv, int *fds,
	unsigned n_fds, struct err *err)
{
	const struct process_spec spec = {.exec_fd = exe,
		.argv = argv,
		.envp = n->environment,
		.fds = fds,
		.n_fds = n_fds,
		.null_fd = n->null_fd,
		.keep_stderr = true};
	int r = process_start(&spec, &c->process, err);
	if (r < 0)
		c->process.pidfd = -1;
	c->started_ms = loop_now_ms();
	c->again_ms = -1;
	return r;
}

/* When to try again: at once after a long life, later and later after short ones. */
static void schedule(struct child *c)
{
	int64_t now = loop_now_ms();
	if (now - c->started_ms >= LIVED_MS)
		c->failures = 0;
	int64_t wait = c->failures < 10 ? (int64_t)AGAIN_FIRST_MS << c->failures : AGAIN_LAST_MS;
	c->failures++;
	c->again_ms = now + MIN(wait, (int64_t)AGAIN_LAST_MS);
}

/* A child that does not read what it is told, or is gone: ended here, reaped in the loop. */
static void tell(struct child *c, const struct msg_out *m, int fd)
{
	struct err err;
	if (running(c) && packet_send(c->control, m->data, m->len, &fd, fd >= 0, false, &err) < 0)
		kill_child(c, SIGKILL);
}

/* --- cores ------------------------------------------------------------------------------------ */

static struct core_child *serving(struct node *n)
{
	for (unsigned i = 0; i < CORES; i++)
		if (n->cores[i].state == CORE_SERVING)
			return &n->cores[i];
	return NULL;
}

static struct core_child *core_in(struct node *n, enum core_state state)
{
	for (unsigned i = 0; i < CORES; i++)
		if (n->cores[i].state == state)
			return &n->cores[i];
	return NULL;
}

static void clear_core(struct core_child *c)
{
	leases_end(&c->leases);
	c->leases.n = 0;
	cleanup_close(&c->leases.sock);
	cleanup_close(&c->child.control);
	c->leases.sock = c->child.control = -1;
	process_done(&c->child.process);
	c->child.process.pidfd = -1;
	c->state = CORE_NONE;
}

static int launch_core(struct node *n, struct core_child *c, struct err *err)
{
	const char *argv[WORDS_MAX + 4] = {"cloister-core", n->abi};
	int lease[2], control[2], r = packet_pair(lease, err);
	if (r < 0)
		return r;
	_cleanup_close_ int lease_theirs = lease[1];
	c->leases.sock = lease[0];
	if ((r = packet_pair(control, err)) < 0)
		return r;
	_cleanup_close_ int control_theirs = control[1];
	c->child.control = control[0];
	memcpy(argv + 2, n->given, sizeof(n->given));
	int fds[] = {lease_theirs, control_theirs};
	return start(n, &c->child, n->core_exe, argv, fds, ARRAY_LEN(fds), err);
}

static void start_core(struct node *n, struct core_child *c)
{
	struct err err;
	c->leases = (struct leases){.sock = -1,
		.worker_exe = n->worker_exe,
		.null_fd = n->null_fd,
		.landlock_abi = n->landlock_abi,
		.max = (unsigned)n->words.config.serve_workers,
		.memory = n->memory,
		.cpu_s = n->cpu};
	c->state = CORE_STARTING;
	c->number = ++n->last_number;
	if (launch_core(n, c, &err) == 0)
		return;
	node_say(&n->log, "error", "core could not be started: %s", err.text);
	clear_core(c);
	c->state = CORE_STARTING;
	schedule(&c->child);
}

/* --- front ------------------------------------------------------------------------------------ */

/* A new channel between the core that serves and the front. */
static void connect_front(struct node *n)
{
	static struct msg_out out;
	struct err err;
	struct core_child *c = serving(n);
	int pair[2];
	if (!c || !running(&n->front))
		return;
	if (packet_pair(pair, &err) < 0) {
		node_say(&n->log, "error", "no channel between front and core: %s", err.text);
		return;
	}
	const struct msg_front_is to_core = {.number = n->last_number};
	const struct msg_core_is to_front = {.number = c->number};
	msg_out_clear(&out);
	BUG_ON(!msg_front_is_put(&out, &to_core));
	tell(&c->child, &out, pair[0]);
	msg_out_clear(&out);
	BUG_ON(!msg_core_is_put(&out, &to_front));
	tell(&n->front, &out, pair[1]);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void clear_front(struct node *n)
{
	cleanup_close(&n->front.control);
	n->front.control = -1;
	process_done(&n->front.process);
	n->front.process.pidfd = -1;
}

static void start_front(struct node *n)
{
	const char *argv[WORDS_MAX + 6] = {"cloister-front", n->abi, n->n_listen, n->uid};
	struct err err;
	int control[2], fds[1 + LISTEN_MAX], r = packet_pair(control, &err);
	memcpy(argv + 4, n->given, sizeof(n->given));
	if (r == 0) {
		n->front.control = control[0];
		fds[0] = control[1];
		for (unsigned i = 0; i < n->n_listeners; i++)
			fds[1 + i] = n->listeners[i].fd;
		r = start(n, &n->front, n->front_exe, argv, fds, 1 + n->n_listeners, &err);
		(void)close(control[1]);
	}
	if (r == 0) {
		connect_front(n);
		return;
	}
	node_say(&n->log, "error", "front could not be started: %s", err.text);
	clear_front(n);
	schedule(&n->front);
}

/* --- what children say ------------------------------------------------------------------------ */

static int hear(struct child *c, enum msg_type expected, struct msg_in *ret_body, char *packet,
	size_t cap, struct err *err)
{
	enum msg_type type;
	int n = packet_recv(c->control, packet, cap, NULL, NULL, false, err);
	if (n <= 0)
		return n < 0 ? n : err_set(err, ERR_UNAVAILABLE, "it has closed its channel");
	struct msg_in in = {packet, (size_t)n};
	int r = msg_next(&in, MSG_SUPERVISOR, &type, ret_body, err);
	if (r < 0)
		return r;
	return r > 0 && type == expected && !in.left
		       ? 0
		       : err_set(err, ERR_PARSE, "it says what it must not");
}

/* One that has closed its channel is ending and tells how by its status; one that misbehaves is
 * ended. */
static void cut_off(struct child *c, const struct err *why)
{
	if (why->code != ERR_UNAVAILABLE)
		kill_child(c, SIGKILL);
	cleanup_close(&c->control);
	c->control = -1;
}

static void retire(struct core_child *c)
{
	static struct msg_out out;
	const struct msg_retire m = {0};
	msg_out_clear(&out);
	BUG_ON(!msg_retire_put(&out, &m));
	c->state = CORE_RETIRING;
	tell(&c->child, &out, -1);
}

static void core_is_ready(struct node *n, struct core_child *c, const struct msg_ready *m)
{
	struct core_child *before = serving(n);
	if (c->state != CORE_STARTING)
		return;
	c->state = CORE_SERVING;
	if (before)
		retire(before);
	n->was_ready = true;
	node_say(&n->log, "info", "core %llu serves (pid %d, Landlock ABI %u)",
		(unsigned long long)c->number, (int)c->child.process.pid, m->landlock_abi);
	connect_front(n);
	if (!running(&n->front) && n->front.again_ms < 0)
		start_front(n);
}

static void hear_core(struct node *n, struct core_child *c)
{
	char packet[256];
	struct err err;
	struct msg_in body;
	struct msg_ready m = {0};
	int r = hear(&c->child, MSG_T_READY, &body, packet, sizeof(packet), &err);
	if (r == 0)
		r = msg_ready_get(body, &m, &err);
	if (r == 0)
		core_is_ready(n, c, &m);
	else if (r != -ERR_BUSY)
		cut_off(&c->child, &err);
}

static void hear_front(struct node *n)
{
	char packet[256];
	struct err err;
	struct msg_in body;
	struct msg_front_ready m;
	int r = hear(&n->front, MSG_T_FRONT_READY, &body, packet, sizeof(packet), &err);
	if (r == 0)
		r = msg_front_ready_get(body, &m, &err);
	if (r == 0)
		for (unsigned i = 0; i < n->n_listeners; i++)
			node_say(&n->log, "info", "front serves on %s (pid %d%s)",
				n->listeners[i].name, (int)n->front.process.pid,
				m.own_user ? ", a user of its own" : "");
	else if (r != -ERR_BUSY)
		cut_off(&n->front, &err);
}

static void hear_leases(struct node *n, struct core_child *c)
{
	struct err err;
	if (leases_receive(&c->leases, &err) == 0)
		return;
	if (err.code != ERR_UNAVAILABLE) {
		node_say(&n->log, "error", "core %llu is ended: %s", (unsigned long long)c->number,
			err.text);
		kill_child(&c->child, SIGKILL);
	}
	cleanup_close(&c->leases.sock);
	c->leases.sock = -1;
}

/* --- ends ------------------------------------------------------------------------------------- */

static void say_end(struct node *n, const char *who, struct child *c, int status)
{
	char how[96];
	process_describe(status, how, sizeof(how));
	bool wanted = n->stopping && status == 0;
	node_say(&n->log, wanted ? "info" : "error", "%s (pid %d) %s%s", who, (int)c->process.pid,
		how, n->stopping ? "" : "; it is started again");
}

static void stop_next(struct node *n)
{
	if (running(&n->front)) {
		kill_child(&n->front, SIGTERM);
		return;
	}
	for (unsigned i = 0; i < CORES; i++)
		kill_child(&n->cores[i].child, SIGTERM);
}

static void begin_stop(struct node *n)
{
	if (n->stopping)
		return;
	n->stopping = true;
	n->stop_ms = loop_now_ms() + STOP_MS;
	node_say(&n->log, "info", "stopping");
	stop_next(n);
}

static void front_ended(struct node *n, int status)
{
	say_end(n, "front", &n->front, status);
	clear_front(n);
	if (n->stopping)
		stop_next(n);
	else
		schedule(&n->front);
}

static void core_ended(struct node *n, struct core_child *c, int status)
{
	char how[96];
	enum core_state was = c->state;
	process_describe(status, how, sizeof(how));
	if (was == CORE_RETIRING)
		node_say(&n->log, "info", "core %llu has retired", (unsigned long long)c->number);
	else if (was == CORE_STARTING && serving(n))
		node_say(&n->log, "error", "the new core %s; the one before goes on serving", how);
	else
		say_end(n, "core", &c->child, status);
	struct child kept = c->child;
	clear_core(c);
	if (n->stopping || was == CORE_RETIRING || (was == CORE_STARTING && serving(n)))
		return;
	if (!n->was_ready) { /* it never worked: a mistake in the configuration, not a crash */
		n->failed = true;
		begin_stop(n);
		return;
	}
	c->child.started_ms = kept.started_ms;
	c->child.failures = kept.failures;
	c->state = CORE_STARTING;
	schedule(&c->child);
}

static void reap(struct node *n, struct child *c, struct core_child *core)
{
	int status = 0;
	if (!running(c) || !process_wait(&c->process, 0, &status))
		return;
	if (core)
		core_ended(n, core, status);
	else
		front_ended(n, status);
}

/* --- signals ---------------------------------------------------------------------------------- */

static void reload(struct node *n)
{
	struct core_child *c = core_in(n, CORE_NONE);
	if (!serving(n) || core_in(n, CORE_STARTING) || !c) {
		node_say(&n->log, "error", "not reloading: the reload before is not finished");
		return;
	}
	node_say(&n->log, "info", "reloading: a new core is started");
	c->child = (struct child){.process.pidfd = -1, .control = -1};
	start_core(n, c);
}

static void on_signals(struct node *n)
{
	struct signalfd_siginfo s;
	while (read(n->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		if (s.ssi_signo == SIGHUP && !n->stopping)
			reload(n);
		else if (s.ssi_signo != SIGHUP)
			begin_stop(n);
	}
}

/* --- the loop --------------------------------------------------------------------------------- */

static void look_at(struct pollfd *p, int fd)
{
	*p = (struct pollfd){.fd = fd, .events = POLLIN}; /* poll(2) ignores negative descriptors */
}

static int next_timeout(const struct node *n)
{
	int64_t at = n->front.again_ms >= 0 ? n->front.again_ms : INT64_MAX, now = loop_now_ms();
	for (unsigned i = 0; i < CORES; i++)
		if (n->cores[i].child.again_ms >= 0)
			at = MIN(at, n->cores[i].child.again_ms);
	if (n->stopping)
		at = MIN(at, n->stop_ms);
	return at == INT64_MAX ? -1 : (int)MIN(MAX(at - now, (int64_t)0), (int64_t)60000);
}

static void start_due(struct node *n)
{
	int64_t now = loop_now_ms();
	if (n->stopping && now >= n->stop_ms) {
		node_say(&n->log, "error", "it took too long; what still runs is ended");
		kill_child(&n->front, SIGKILL);
		for (unsigned i = 0; i < CORES; i++)
			kill_child(&n->cores[i].child, SIGKILL);
		n->stop_ms = now + STOP_MS;
	}
	if (n->stopping)
		return;
	if (n->front.again_ms >= 0 && now >= n->front.again_ms)
		start_front(n);
	for (unsigned i = 0; i < CORES; i++)
		if (n->cores[i].child.again_ms >= 0 && now >= n->cores[i].child.again_ms)
			start_core(n, &n->cores[i]);
}

static bool anything_runs(const struct node *n)
{
	bool any = running(&n->front);
	for (unsigned i = 0; i < CORES; i++)
		any = any || running(&n->cores[i].child);
	return any;
}

static void turn_core(struct node *n, struct core_child *c, const struct pollfd *own,
	const struct pollfd *workers, unsigned n_workers)
{
	struct err err;
	if (own[1].revents && running(&c->child))
		hear_core(n, c);
	if (leases_reap(&c->leases, workers, n_workers, &err) < 0)
		kill_child(&c->child, SIGKILL);
	if (own[2].revents && running(&c->child))
		hear_leases(n, c);
	if (own[0].revents)
		reap(n, &c->child, c);
}

static int turn(struct node *n, struct err *err)
{
	static struct pollfd p[POLL_FIXED + 1 + CORES * LEASES_MAX];
	unsigned at[CORES + 1], count[CORES];
	look_at(&p[0], n->signals);
	look_at(&p[1], n->front.process.pidfd);
	look_at(&p[2], n->front.control);
	at[0] = 3 + 3 * CORES;
	for (unsigned i = 0; i < CORES; i++) {
		struct core_child *c = &n->cores[i];
		look_at(&p[3 + 3 * i], c->child.process.pidfd);
		look_at(&p[4 + 3 * i], c->child.control);
		look_at(&p[5 + 3 * i], c->leases.sock);
		count[i] = c->leases.n;
		leases_poll(&c->leases, &p[at[i]]);
		at[i + 1] = at[i] + count[i];
	}
	if (poll(p, at[CORES], next_timeout(n)) < 0 && errno != EINTR)
		return err_sys(err, errno, "waiting");
	for (unsigned i = 0; i < CORES; i++)
		turn_core(n, &n->cores[i], &p[3 + 3 * i], &p[at[i]], count[i]);
	if (p[2].revents && running(&n->front))
		hear_front(n);
	if (p[1].revents)
		reap(n, &n->front, NULL);
	if (p[0].revents)
		on_signals(n);
	start_due(n);
	return 0;
}

/* --- the start -------------------------------------------------------------------------------- */

static int take_words(struct node *n, char **words, struct err *err)
{
	static const char *const passed[] = {
		"CLOISTER_", "SHANNON_", "HOME=", "XDG_", "ASAN_", "UBSAN_"};
	unsigned w = 0, e = 0;
	for (; words[w]; w++) {
		if (w == WORDS_MAX - 1)
			return err_set(
				err, ERR_INVALID_ARGUMENT, "more than %d arguments", WORDS_MAX - 1);
		n->given[w] = words[w];
	}
	for (char **v = environ; *v && e < ENVIRONMENT_MAX - 1; v++)
		for (unsigned i = 0; i < ARRAY_LEN(passed); i++)
			if (strncmp(*v, passed[i], strlen(passed[i])) == 0)
				n->environment[e++] = *v;
	return node_config(n->given, &n->words, err);
}

static int check_machine(struct node *n, struct err *err)
{
	int abi = landlock_abi();
	const char *lower =
		getenv("CLOISTER_LANDLOCK_ABI"); /* for tests: pretend an older kernel */
	int64_t asked = lower ? process_argument(lower, 1000) : -1;
	if (asked >= 0)
		abi = MIN(abi, (int)asked);
	n->landlock_abi = abi >= LANDLOCK_ABI_NEEDED ? abi : 0;
	if (n->landlock_abi || n->words.single_user)
		return 0;
	(void)err_set(err, ERR_UNAVAILABLE, "this machine has no Landlock of ABI 2 or newer");
	return err_hint(err, "Linux 6.1 with Landlock, or --single-user to start with this gap");
}

static int open_programs(struct node *n, struct err *err)
{
	if ((n->core_exe = program_open(NULL, "cloister-core", err)) < 0)
		return n->core_exe;
	if ((n->front_exe = program_open(NULL, "cloister-front", err)) < 0)
		return n->front_exe;
	if ((n->journal_exe = program_open(NULL, "cloister-journal", err)) < 0)
		return n->journal_exe;
	n->worker_exe = program_open(NULL, "cloister-worker", err);
	return MIN(n->worker_exe, 0);
}

static int open_directories(struct node *n, struct err *err)
{
	const struct config *set = &n->words.config;
	const struct state_paths paths = {
		.state_dir = set->state_dir, .base_dir = set->sessions_base};
	int r = state_open(&paths, &n->state_fd, &n->base_fd, err);
	if (r == 0)
		r = journal_dirs_open(set, &n->log_fd, &n->key_fd, err);
	if (r < 0 || !set->workspace_shared)
		return r;
	n->shared_fd = open(set->workspace_shared, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return n->shared_fd < 0 ? err_sys(err, errno, "opening workspace.shared") : 0;
}

static int open_listeners(struct node *n, struct err *err)
{
	const struct config *set = &n->words.config;
	for (; set->serve_listen[n->n_listeners]; n->n_listeners++) {
		struct listener *l = &n->listeners[n->n_listeners];
		int r = listen_on(set->serve_listen[n->n_listeners], n->state_fd, l, err);
		if (r < 0)
			return r;
		if (!l->loopback && !set->serve_tls_key)
			node_say(&n->log, "warning",
				"%s is reached from other machines without TLS: tokens "
				"and content are readable on the way",
				l->name);
	}
	return n->n_listeners ? 0 : err_set(err, ERR_CONFIG, "serve.listen names no address");
}

static int take_signals(struct node *n, struct err *err)
{
	sigset_t set;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	n->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return n->signals < 0 ? err_sys(err, errno, "taking signals") : 0;
}

static int drop_rights(struct node *n, struct err *err)
{
	int write_fds[6] = {
		n->state_fd, n->base_fd, n->log_fd, n->key_fd, n->null_fd, n->shared_fd};
	int exec_fds[5] = {n->core_exe, n->front_exe, n->worker_exe, n->journal_exe};
	struct node_rights rights = {.landlock_abi = n->landlock_abi,
		.write_fds = write_fds,
		.n_write_fds = n->shared_fd >= 0 ? 6 : 5,
		.exec_fds = exec_fds,
		.n_exec_fds = 4};
	/* Front is linked with shared libraries, whatever the others are. */
	_cleanup_close_ int loader = program_loader(n->front_exe);
	if (loader >= 0)
		exec_fds[rights.n_exec_fds++] = loader;
	int r = process_undumpable(err);
	return r < 0 ? r : node_restrict(&rights, err);
}

static void write_arguments(struct node *n)
{
	const struct config *set = &n->words.config;
	(void)snprintf(n->abi, sizeof(n->abi), "%d", n->landlock_abi);
	(void)snprintf(n->n_listen, sizeof(n->n_listen), "%u", n->n_listeners);
	(void)snprintf(n->uid, sizeof(n->uid), "%lld", (long long)set->serve_front_uid);
	(void)snprintf(n->memory, sizeof(n->memory), "%lld", (long long)set->serve_worker_memory);
	(void)snprintf(n->cpu, sizeof(n->cpu), "%d", WORKER_CPU_S);
}

static int prepare(struct node *n, char **words, struct err *err)
{
	int r = take_words(n, words, err);
	if (r < 0)
		return r;
	n->log.json = n->words.config.log_format == CONFIG_LOG_JSON;
	if ((r = check_machine(n, err)) < 0 || (r = open_programs(n, err)) < 0 ||
		(r = open_directories(n, err)) < 0 || (r = open_listeners(n, err)) < 0 ||
		(r = take_signals(n, err)) < 0)
		return r;
	n->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (n->null_fd < 0)
		return err_sys(err, errno, "opening /dev/null");
	write_arguments(n);
	return drop_rights(n, err);
}

int node_main(int argc _unused_, char **argv)
{
	static struct node n = {.log.who = "supervisor", .shared_fd = -1};
	struct err err = {.code = ERR_OK};
	n.front = (struct child){.process.pidfd = -1, .control = -1, .again_ms = -1};
	for (unsigned i = 0; i < CORES; i++) {
		n.cores[i].child = n.front;
		n.cores[i].leases.sock = -1;
	}
	int r = prepare(&n, argv + 1, &err);
	if (r == 0)
		start_core(&n, &n.cores[0]);
	while (r == 0 && (!n.stopping || anything_runs(&n)))
		r = turn(&n, &err);
	if (r < 0) {
		node_say(&n.log, "error", "%s%s%s", err.text, err.hint[0] ? ". " : "", err.hint);
		return err_info(err.code)->exit;
	}
	return n.failed;
}
