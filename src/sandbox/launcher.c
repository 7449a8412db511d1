/* Starting fences: see launcher.h. */
#include "sandbox/launcher.h"

#include "sandbox/apply.h"
#include "sandbox/calls.h"
#include "sandbox/cgroup.h"
#include "sandbox/init.h"
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

struct launcher {
	int core;
	const struct fence_config *config;
	struct seccomp_program calls;
	struct cgroup cgroup;
	struct process slots[FENCE_SLOTS_MAX]; /* pid 0: free */
};

/* The request under work: its packet, its words and its descriptors. */
struct work {
	struct fence_request request;
	struct fence_plan plan;
	int fds[FENCE_FDS];
	unsigned n_fds;
	char packet[FENCE_PACKET_MAX + 1];
	const char *words[FENCE_WORDS_MAX + 2];
};

static void tell_failure(int control, const struct err *why)
{
	struct err err;
	struct fence_report m = {.type = FENCE_FAILED, .code = (int32_t)why->code};
	(void)snprintf(m.text, sizeof(m.text), "%s", why->text);
	/* Core may have given up already; that is its own business. */
	(void)!packet_send(control, &m, sizeof(m), NULL, 0, false, &err);
}

static int free_slot(const struct launcher *l)
{
	for (int i = 0; i < FENCE_SLOTS_MAX; i++)
		if (l->slots[i].pid == 0)
			return i;
	return -1;
}

/* Clone the init, map its identity and let it go. Whatever fails kills it. */
static int start(
	struct launcher *l, struct work *w, unsigned slot, struct process *ret, struct err *err)
{
	int go[2];
	_cleanup_close_ int tree = -1;
	if (pipe2(go, O_CLOEXEC) < 0)
		return err_sys(err, errno, "making a pipe");
	_cleanup_close_ int wait_for = go[0];
	_cleanup_close_ int let_go = go[1];
	if (fchdir(w->fds[FENCE_FD_WORKSPACE]) < 0)
		return err_sys(err, errno, "entering the workspace");
	int r = w->plan.root ? idmapped_tree(&w->plan, w->fds[FENCE_FD_WORKSPACE], &tree, err) : 0;
	if (r == 0)
		r = namespaces_clone(&ret->pid, &ret->pidfd, err);
	if (r == 0 && ret->pid == 0) {
		struct init i = {.plan = &w->plan,
			.request = &w->request,
			.calls = &l->calls,
			.limited = l->cgroup.n > 0,
			.go = wait_for,
			.lower_tree = tree};
		memcpy(i.fds, w->fds, sizeof(i.fds));
		init_main(&i);
	}
	if (chdir("/") < 0 || r < 0)
		return r;
	r = cgroup_enter(&l->cgroup, &w->plan, slot, ret->pid, err);
	if (r == 0)
		r = namespaces_map(&w->plan, ret->pid, err);
	if (r == 0 && write(let_go, "", 1) != 1)
		r = err_sys(err, errno, "letting the fence go on");
	return r;
}

static void forget(struct launcher *l, unsigned slot)
{
	process_done(&l->slots[slot]);
	l->slots[slot] = (struct process){0};
	cgroup_leave(&l->cgroup, slot);
}

static void end(struct launcher *l, unsigned slot)
{
	int status;
	process_kill(&l->slots[slot], SIGKILL);
	(void)process_wait(&l->slots[slot], -1, &status);
	forget(l, slot);
}

static int handle(struct launcher *l, struct work *w, struct err *err)
{
	int slot = free_slot(l);
	if (slot < 0)
		return err_set(err, ERR_BUSY, "%d commands are running", FENCE_SLOTS_MAX);
	plan_make(l->config, &w->request.limits, (unsigned)slot, (uint32_t)getpid(), &w->plan);
	struct process *p = &l->slots[slot];
	*p = (struct process){.pidfd = -1};
	int r = start(l, w, (unsigned)slot, p, err);
	if (r < 0 && p->pid > 0)
		end(l, (unsigned)slot);
	else if (r < 0)
		*p = (struct process){0};
	return r;
}

/* 0: go on; 1: core is gone; < 0: it talks nonsense. */
static int receive(struct launcher *l, struct err *err)
{
	static struct work w;
	struct err why;
	w.n_fds = FENCE_FDS;
	int n = packet_recv(l->core, w.packet, FENCE_PACKET_MAX, w.fds, &w.n_fds, true, err);
	if (n <= 0)
		return n < 0 ? n : 1;
	w.packet[n] = '\0';
	int r = w.n_fds == FENCE_FDS
			? fence_request_get(w.packet, (size_t)n, &w.request, w.words, err)
			: err_set(err, ERR_PARSE, "a request lacks descriptors");
	if (r == 0 && handle(l, &w, &why) < 0)
		tell_failure(w.fds[FENCE_FD_CONTROL], &why);
	while (w.n_fds)
		(void)close(w.fds[--w.n_fds]);
	return r;
}

static void reap(struct launcher *l, unsigned slot)
{
	int status;
	if (process_wait(&l->slots[slot], 0, &status))
		forget(l, slot);
}

static int turn(struct launcher *l, struct err *err)
{
	struct pollfd p[1 + FENCE_SLOTS_MAX];
	p[0] = (struct pollfd){.fd = l->core, .events = POLLIN};
	for (unsigned i = 0; i < FENCE_SLOTS_MAX; i++)
		p[1 + i] = (struct pollfd){
			.fd = l->slots[i].pid ? l->slots[i].pidfd : -1, .events = POLLIN};
	if (poll(p, ARRAY_LEN(p), -1) < 0 && errno != EINTR)
		return err_sys(err, errno, "waiting");
	for (unsigned i = 0; i < FENCE_SLOTS_MAX; i++)
		if (p[1 + i].revents)
			reap(l, i);
	return p[0].revents ? receive(l, err) : 0;
}

int launcher_serve(int core, const struct fence_config *config, struct err *err)
{
	static struct launcher l;
	l = (struct launcher){.core = core, .config = config};
	cgroup_find(&l.cgroup);
	int r = seccomp_compile(fence_calls, fence_calls_n, &l.calls, err);
	while (r == 0)
		r = turn(&l, err);
	for (unsigned i = 0; i < FENCE_SLOTS_MAX; i++)
		if (l.slots[i].pid)
			end(&l, i);
	return r < 0 ? r : 0;
}
