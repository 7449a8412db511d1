/* From the configuration to a core that can run calls: see setup.h. */
#include "cli/setup.h"

#include "codec/config_file.h"
#include "daemon/core_files.h"
#include "daemon/journal_client.h"
#include "daemon/journal_dirs.h"
#include "daemon/rights_core.h"
#include "daemon/sandbox_start.h"
#include "daemon/tree.h"
#include "session/state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

struct setup {
	const struct cli *cli;
	struct core_files files;
	int workspace_fd;
	struct tree *tree;
	struct journal *journal;
	struct sandbox *sandbox; /* NULL: no command runs here */
	struct session *session; /* held, so that its workspace stays open */
	struct worker *worker;
	char *workspace_path; /* absolute; NULL: a managed session */
	struct principal principal;
	struct tool_env env;
	char id[LIMIT_SESSION_ID + 1], turn[32];
};

int setup_config(struct cli *c, struct err *err)
{
	int r = config_load(&c->config, c->config_file, err);
	if (r == 0)
		r = config_environment(&c->config, (const char *const *)environ, err);
	return r;
}

/* --- parts ------------------------------------------------------------------------------------ */

static int start_tree(struct setup *s, struct err *err)
{
	const struct tree_options o = {.single_user = s->cli->single_user};
	return tree_start(&o, &s->tree, err);
}

/* What a command may write is the session's whole quota, and as much again for what it does not
 * keep. */
static int start_sandbox(struct setup *s, struct err *err)
{
	const struct config *set = &s->cli->config;
	struct sandbox_options o = {.most = {.scratch_bytes = 2 * set->quota_bytes,
					    .scratch_entries = 2 * set->quota_entries}};
	return sandbox_start(&o, &s->sandbox, err);
}

int setup_journal_dirs(const struct config *set, int *ret_log_fd, int *ret_key_fd, struct err *err)
{
	return journal_dirs_open(set, ret_log_fd, ret_key_fd, err);
}

static bool same_directory(int a, int b)
{
	struct stat x, y;
	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
	       x.st_ino == y.st_ino;
}

/* The journal starts first, so that it is there when the first call waits for it. Core keeps no
 * right to its directories, so they can be no workspace. */
static int start_journal(struct setup *s, struct err *err)
{
	_cleanup_close_ int log = -1;
	_cleanup_close_ int key = -1;
	int r = setup_journal_dirs(&s->cli->config, &log, &key, err);
	if (r < 0)
		return r;
	_cleanup_close_ int above = openat(log, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const int theirs[] = {log, key, above};
	for (unsigned i = 0; s->workspace_fd >= 0 && i < ARRAY_LEN(theirs); i++)
		if (same_directory(s->workspace_fd, theirs[i]))
			return err_set(err, ERR_DENIED, "this directory is the journal's");
	const struct tree_options tree = {.single_user = s->cli->single_user};
	const struct journal_options o = {
		.log_fd = log, .key_fd = key, .landlock_abi = tree_landlock_usable(&tree)};
	return journal_start(&o, &s->journal, err);
}

static int open_workspace_dir(struct setup *s, const char *dir, struct err *err)
{
	s->workspace_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->workspace_fd < 0)
		return err_sys(err, errno, "opening the workspace '%.200s'", dir);
	s->workspace_path = realpath(dir, NULL);
	if (!s->workspace_path)
		return err_sys(err, errno, "the workspace '%.200s'", dir);
	return 0;
}

static int open_files(struct setup *s, struct err *err)
{
	const struct core_files_options o = {
		.config = &s->cli->config, .client_root = s->workspace_path};
	return core_files_open(&o, &s->files, err);
}

static int open_session(struct setup *s, const struct cli *c, struct err *err)
{
	struct workspace *ws;
	int r = s->workspace_path ? registry_attach(s->files.registry, s->workspace_fd,
					    s->workspace_path, &s->session, err)
				  : registry_session(s->files.registry, c->tenant, c->session,
					    &s->session, err);
	if (r == 0)
		r = session_workspace(s->session, &ws, err);
	if (r < 0)
		return r;
	(void)snprintf(s->id, sizeof(s->id), "%s", session_id(s->session));
	(void)snprintf(s->turn, sizeof(s->turn), "%llu",
		(unsigned long long)session_next_turn(s->session));
	return 0;
}

/* The worker of the one session that this process serves; it starts at its first job. */
static struct worker *worker_of(void *ctx, struct session *session, struct err *err)
{
	struct setup *s = ctx;
	struct workspace *ws;
	int fds[LIMIT_MOUNTS];
	unsigned n;
	if (s->worker)
		return s->worker;
	if (session_workspace(session, &ws, err) < 0)
		return NULL;
	for (n = 0; n < workspace_mounts(ws) && n < LIMIT_MOUNTS; n++)
		fds[n] = workspace_mount_fd(ws, n);
	return tree_worker(s->tree, fds, n, &s->worker, err) < 0 ? NULL : s->worker;
}

/* The local owner is a developer, and never more than the session's own role. */
static int make_principal(struct setup *s, struct err *err)
{
	enum role asked = ROLE_DEVELOPER, owned;
	int r = s->cli->role ? role_parse(s->cli->role, &asked, err) : 0;
	if (r == 0)
		r = role_parse(session_role(s->session), &owned, err);
	if (r == 0)
		s->principal = (struct principal){.kind = PRINCIPAL_AGENT,
			.id = "local",
			.tenant = session_tenant(s->session),
			.role = role_lesser(asked, owned)};
	return r;
}

static int make_env(struct setup *s, struct err *err)
{
	core_files_env(&s->files, &s->cli->config, &s->env);
	s->env.worker_of = worker_of;
	s->env.worker_ctx = s;
	s->env.fence = s->sandbox ? sandbox_fence(s->sandbox) : NULL;
	s->env.gaps = tree_gaps(s->tree);
	s->env.journal = s->journal;
	return make_principal(s, err);
}

static int restrict_self(struct setup *s, struct err *err)
{
	int fds[5];
	unsigned n = core_files_fds(&s->files, fds);
	if (s->workspace_fd >= 0)
		fds[n++] = s->workspace_fd;
	struct core_rights rights = {
		.write_fds = fds, .n_write_fds = n, .single_user = s->cli->single_user};
	return core_restrict(&rights, err);
}

/* --- all of it -------------------------------------------------------------------------------- */

static int set_up_calls(struct setup *s, const struct cli *c, enum setup_for what, struct err *err)
{
	int r;
	if (!c->session && !c->workspace) {
		(void)err_set(err, ERR_INVALID_ARGUMENT, "which session is not said");
		return err_hint(err, "--workspace DIR for a directory of yours, or --session ID");
	}
	if (c->session && c->workspace)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "--session and --workspace exclude each other");
	if (c->workspace && (r = open_workspace_dir(s, c->workspace, err)) < 0)
		return r;
	if ((r = start_journal(s, err)) < 0 || (r = start_tree(s, err)) < 0 ||
		(what == SETUP_COMMANDS && (r = start_sandbox(s, err)) < 0) ||
		(r = open_files(s, err)) < 0 || (r = open_session(s, c, err)) < 0 ||
		(r = make_env(s, err)) < 0)
		return r;
	return restrict_self(s, err);
}

int setup_new(struct cli *c, enum setup_for what, struct setup **ret, struct err *err)
{
	_cleanup_(cleanup_setup_free) struct setup *s = calloc(1, sizeof(*s));
	int r;
	if (!s)
		return err_oom(err);
	s->cli = c;
	s->workspace_fd = -1;
	s->files =
		(struct core_files){.state_fd = -1, .base_fd = -1, .held_fd = -1, .shared_fd = -1};
	if ((r = setup_config(c, err)) < 0)
		return r;
	if (what != SETUP_REGISTRY)
		r = set_up_calls(s, c, what, err);
	else
		r = open_files(s, err);
	if (r == 0)
		*ret = take_ptr(s);
	return r;
}

void setup_free(struct setup *s)
{
	if (!s)
		return;
	worker_free(s->worker);
	if (s->session)
		session_release(s->session);
	core_files_done(&s->files);
	sandbox_free(s->sandbox);
	journal_free(s->journal);
	tree_free(s->tree);
	cleanup_close(&s->workspace_fd);
	free(s->workspace_path);
	free(s);
}

struct registry *setup_registry(struct setup *s)
{
	return s->files.registry;
}

int setup_base_fd(const struct setup *s)
{
	return s->files.base_fd;
}

const struct tool_env *setup_env(const struct setup *s)
{
	return &s->env;
}

const char *setup_session(const struct setup *s)
{
	return s->id;
}

const struct principal *setup_principal(const struct setup *s)
{
	return &s->principal;
}

const char *setup_turn(const struct setup *s)
{
	return s->turn;
}
