/*
 * cloister-core: the core of a node.
 *
 *   argv: LANDLOCK-ABI OPTIONS of the configuration
 *   fd 3: packets to and from the supervisor about workers     fd 4: its control channel
 *
 * It opens its directories, drops every other right (rights_core.c; as root also the identity's
 * capabilities), says that it is ready, and answers the fronts that the supervisor connects.
 */
#include "daemon/channel.h"
#include "daemon/core.h"
#include "daemon/core_files.h"
#include "daemon/core_link.h"
#include "daemon/journal_client.h"
#include "daemon/journal_dirs.h"
#include "daemon/node.h"
#include "daemon/rights_core.h"
#include "daemon/rights_node.h"
#include "sys/process.h"

#include <signal.h>

enum { LINKS_MAX = 8, SOURCES_MAX = 8192 };

enum { JOURNAL_FLUSH_MS = 100 };

struct core_process {
	struct node_words words;
	struct node_log log;
	struct core_files files;
	struct tree *tree;
	struct journal *journal;
	struct loop *loop;
	struct core *core;
	struct channel *control;
	struct loop_source *term, *interrupt, *journal_end, *journal_due;
	struct core_link *links[LINKS_MAX];
	unsigned n_links;
	int landlock_abi;
	bool own_user, retiring;
	struct err why;
};

/* --- fronts ----------------------------------------------------------------------------------- */

static void link_ended(void *ctx, struct core_link *l)
{
	struct core_process *p = ctx;
	for (unsigned i = 0; i < p->n_links; i++)
		if (p->links[i] == l)
			p->links[i] = p->links[--p->n_links];
	core_link_free(l);
	if (p->retiring && p->n_links == 0)
		loop_stop(p->loop);
}

static int connect_front(struct core_process *p, int *fd, struct err *err)
{
	if (p->n_links == LINKS_MAX)
		return err_set(err, ERR_LIMIT, "core has %d fronts already", LINKS_MAX);
	int r = core_link_new(p->core, p->loop, *fd, link_ended, p, &p->links[p->n_links], err);
	if (r == 0) {
		*fd = -1;
		p->n_links++;
	}
	return r;
}

/* The front closes its channel when all is answered; what waits for nothing in particular is told
 * now. */
static void retire(struct core_process *p)
{
	p->retiring = true;
	core_drain(p->core);
	if (p->n_links == 0)
		loop_stop(p->loop);
}

static int on_control(void *ctx, enum msg_type type, struct msg_in body, int *fds, unsigned n_fds,
	struct err *err)
{
	struct core_process *p = ctx;
	struct msg_front_is m;
	if (type == MSG_T_FRONT_IS && n_fds == 1) {
		int r = msg_front_is_get(body, &m, err);
		return r < 0 ? r : connect_front(p, &fds[0], err);
	}
	if (type == MSG_T_RETIRE) {
		retire(p);
		return 0;
	}
	return err_set(err, ERR_PARSE, "the supervisor does not say '%s' here", msg_name(type));
}

static void control_gone(void *ctx, const struct err *why _unused_)
{
	struct core_process *p = ctx;
	loop_stop(p->loop);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void on_term(void *ctx, int signo _unused_)
{
	struct core_process *p = ctx;
	loop_stop(p->loop); /* between two calls: each is whole or not begun */
}

/* Nothing may be changed that is not journaled, so without it there is nothing to do: the
 * supervisor starts both again. */
static void journal_ended(void *ctx)
{
	struct core_process *p = ctx;
	(void)err_set(&p->why, ERR_UNAVAILABLE, "the journal has ended");
	loop_stop(p->loop);
}

/* Of the terminal: the supervisor has it too and stops us in order. */
static void on_interrupt(void *ctx _unused_, int signo _unused_) {}

static void finish(struct core_process *p)
{
	struct err ignored;
	for (unsigned i = 0; i < p->n_links; i++)
		core_link_free(p->links[i]);
	core_free(p->core);
	if (p->files.registry && registry_flush(p->files.registry, &ignored) < 0)
		node_say(&p->log, "error", "the registry could not be saved: %s", ignored.text);
	core_files_done(&p->files);
	journal_free(p->journal);
	channel_free(p->control);
	tree_free(p->tree);
	loop_free(p->loop);
}

/* --- the start -------------------------------------------------------------------------------- */

static bool look_no_further(void *ctx _unused_, const struct session_info *info _unused_)
{
	return false;
}

/* The registry is made and opened now: what is wrong with it is told at the start, and making it
 * takes a system call that core does without. */
static int open_registry(struct core_process *p, struct err *err)
{
	bool more;
	return registry_page(p->files.registry, NULL, NULL, 1, look_no_further, NULL, &more, err);
}

/* While programs can still be started. */
static int start_journal(struct core_process *p, struct err *err)
{
	_cleanup_close_ int log = -1;
	_cleanup_close_ int key = -1;
	int r = journal_dirs_open(&p->words.config, &log, &key, err);
	if (r < 0)
		return r;
	const struct journal_options o = {
		.log_fd = log, .key_fd = key, .landlock_abi = p->landlock_abi};
	return journal_start(&o, &p->journal, err);
}

static int open_all(struct core_process *p, struct err *err)
{
	const struct config *set = &p->words.config;
	const struct tree_options tree = {.single_user = p->words.single_user,
		.max_workers = (unsigned)set->serve_workers,
		.landlock_abi = p->landlock_abi ? p->landlock_abi : -1};
	const struct core_files_options files = {.config = set,
		.open_sessions = (unsigned)set->serve_open_sessions,
		.no_create = true};
	int r = tree_over(&tree, CORE_FD_LEASES, &p->tree, err);
	if (r == 0)
		r = start_journal(p, err);
	if (r == 0)
		r = core_files_open(&files, &p->files, err);
	return r < 0 ? r : open_registry(p, err);
}

static int drop_rights(struct core_process *p, pid_t parent, struct err *err)
{
	int fds[4], r = identity_drop(0, CORE_CAPABILITIES, parent, &p->own_user, err);
	if (r < 0)
		return r;
	const struct core_rights rights = {.write_fds = fds,
		.n_write_fds = core_files_fds(&p->files, fds),
		.single_user = p->words.single_user,
		.landlock_abi = p->landlock_abi ? p->landlock_abi : -1};
	return core_restrict(&rights, err);
}

static int make_core(struct core_process *p, struct err *err)
{
	const struct config *set = &p->words.config;
	struct core_options o = {.loop = p->loop,
		.tree = p->tree,
		.state_fd = p->files.state_fd,
		.version = CLOISTER_VERSION,
		.worker_idle_ms = set->serve_worker_idle_seconds * 1000};
	core_files_env(&p->files, set, &o.env);
	o.env.gaps = tree_gaps(p->tree);
	o.env.journal = p->journal;
	return core_new(&o, &p->core, err);
}

/* Records of reads are not waited for, but on their way to the journal within this time. */
static void on_journal_due(void *ctx)
{
	struct core_process *p = ctx;
	journal_flush(p->journal);
	loop_timer_set(p->journal_due, loop_now_ms() + JOURNAL_FLUSH_MS);
}

static int make_loop(struct core_process *p, struct err *err)
{
	const struct channel_options control = {.sock = CORE_FD_CONTROL,
		.role = MSG_CORE,
		.message = on_control,
		.gone = control_gone,
		.ctx = p};
	struct channel_options o = control;
	int r = loop_new(SOURCES_MAX, &p->loop, err);
	if (r < 0)
		return r;
	o.loop = p->loop;
	if ((r = loop_signal(p->loop, SIGTERM, on_term, p, &p->term, err)) < 0 ||
		(r = loop_signal(p->loop, SIGINT, on_interrupt, p, &p->interrupt, err)) < 0 ||
		(r = loop_timer(p->loop, loop_now_ms() + JOURNAL_FLUSH_MS, on_journal_due, p,
			 &p->journal_due, err)) < 0)
		return r;
	return channel_new(&o, &p->control, err);
}

static void say_ready(struct core_process *p)
{
	const struct msg_ready m = {
		.landlock_abi = (uint32_t)p->landlock_abi, .own_user = p->own_user};
	BUG_ON(!msg_ready_put(channel_out(p->control, 256), &m));
	channel_flush(p->control);
}

static int run(struct core_process *p, int argc, char **argv, struct err *err)
{
	pid_t parent = getppid();
	int64_t abi = argc > 1 ? process_argument(argv[1], 1000) : -1;
	if (abi < 0)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "this program is started by cloister serve");
	p->landlock_abi = (int)abi;
	int r = node_config((const char *const *)argv + 2, &p->words, err);
	if (r < 0)
		return r;
	p->log.json = p->words.config.log_format == CONFIG_LOG_JSON;
	(void)signal(SIGPIPE, SIG_IGN);
	if ((r = open_all(p, err)) < 0 || (r = make_loop(p, err)) < 0 ||
		(r = drop_rights(p, parent, err)) < 0 || (r = make_core(p, err)) < 0)
		return r;
	if ((r = loop_child(p->loop, journal_pidfd(p->journal), journal_ended, p, &p->journal_end,
		     err)) < 0)
		return r;
	say_ready(p);
	if ((r = loop_run(p->loop, err)) == 0 && p->why.code != ERR_OK) {
		*err = p->why;
		r = -err->code;
	}
	return r;
}

int main(int argc, char **argv)
{
	static struct core_process p = {.log.who = "core",
		.files = {.state_fd = -1, .base_fd = -1, .held_fd = -1, .shared_fd = -1}};
	struct err err = {.code = ERR_OK};
	int r = run(&p, argc, argv, &err);
	if (r < 0)
		node_say(&p.log, "error", "%s%s%s", err.text, err.hint[0] ? ". " : "", err.hint);
	finish(&p);
	return r < 0 ? err_info(err.code)->exit : 0;
}
