/* From the configuration to a core that can run calls: see setup.h. */
#include "cli/setup.h"

#include "codec/config_file.h"
#include "daemon/rights_core.h"
#include "daemon/tree.h"
#include "session/state.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

enum {
	LOCK_WAIT_MS = 10000, /* for another process that is writing to the same workspace */
	HELD_SECONDS = 3600,  /* how long a held call can be read */
};

struct setup {
	const struct cli *cli;
	int state_fd, base_fd, held_fd, workspace_fd, shared_fd;
	struct tree *tree;
	struct registry *registry;
	struct session *session; /* held, so that its workspace stays open */
	struct worker *worker;
	struct workspace_options workspace;
	char *workspace_path; /* absolute; NULL: a managed session */
	struct principal principal;
	struct tool_env env;
	char id[LIMIT_SESSION_ID + 1], turn[32], profile[32];
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
	struct tree_options o = {.single_user = s->cli->single_user};
	return tree_start(&o, &s->tree, err);
}

static int open_state(struct setup *s, struct err *err)
{
	struct state_paths paths = {
		.state_dir = s->cli->config.state_dir, .base_dir = s->cli->config.sessions_base};
	int r = state_open(&paths, &s->state_fd, &s->base_fd, err);
	if (r == 0)
		r = state_subdir(s->state_fd, "held", &s->held_fd, err);
	return r;
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

/* The directory that every session sees; its writers are counted together. */
static int open_shared(struct setup *s, struct err *err)
{
	const char *dir = s->cli->config.workspace_shared;
	if (!dir)
		return 0;
	s->shared_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return s->shared_fd < 0 ? err_sys(err, errno, "opening workspace.shared") : 0;
}

static int open_registry(struct setup *s, struct err *err)
{
	const struct config *set = &s->cli->config;
	struct mount_spec shared = {.agent_path = "/workspace/shared",
		.dir_fd = s->shared_fd,
		.store_fd = -1,
		.shared = true,
		.quota_bytes = set->quota_bytes,
		.quota_entries = set->quota_entries};
	s->workspace = (struct workspace_options){.quota_bytes = set->quota_bytes,
		.quota_entries = set->quota_entries,
		.history_bytes = set->history_bytes,
		.history_age_s = set->history_age_seconds,
		.history_required = set->history_required,
		.strict_links = set->strict_links,
		.durability = set->durability == CONFIG_DURABILITY_POWER ? DURABLE_POWER
									 : DURABLE_PROCESS,
		.lock_wait_ms = LOCK_WAIT_MS,
		.client_root = s->workspace_path};
	struct registry_options o = {.state_fd = s->state_fd,
		.base_fd = s->base_fd,
		.workspace = &s->workspace,
		.volumes = s->shared_fd >= 0 ? &shared : NULL,
		.n_volumes = s->shared_fd >= 0,
		.ttl_s = set->session_ttl_seconds,
		.idle_s = set->session_idle_seconds};
	return registry_open(&o, &s->registry, err);
}

static int open_session(struct setup *s, const struct cli *c, struct err *err)
{
	struct workspace *ws;
	int r = s->workspace_path
			? registry_attach(
				  s->registry, s->workspace_fd, s->workspace_path, &s->session, err)
			: registry_session(s->registry, c->tenant, c->session, &s->session, err);
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

static const struct decider *decider_of(int profile)
{
	switch (profile) {
	case CONFIG_PROFILE_DENY_ALL: return &decider_deny_all;
	case CONFIG_PROFILE_HOLD_ALL: return &decider_hold_all;
	default: return &decider_roles;
	}
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
	const struct config *set = &s->cli->config;
	struct str profile = config_choice(&config_keys[CONFIG_ID_profile], (unsigned)set->profile);
	(void)snprintf(s->profile, sizeof(s->profile), "%.*s", (int)profile.n, profile.p);
	s->env = (struct tool_env){.tools = tools_all,
		.registry = s->registry,
		.decider = decider_of(set->profile),
		.profile = s->profile,
		.workspace = &s->workspace,
		.worker_of = worker_of,
		.worker_ctx = s,
		.held_fd = s->held_fd,
		.held_seconds = HELD_SECONDS,
		.gaps = tree_gaps(s->tree),
		.read_limit_bytes = set->files_read_limit_mb * 1024 * 1024,
		.exclude = set->files_exclude,
		.search_ms = set->search_time_ms,
		.search_bytes = set->search_bytes};
	return make_principal(s, err);
}

static int restrict_self(struct setup *s, struct err *err)
{
	int fds[4] = {s->state_fd, s->base_fd};
	unsigned n = 2;
	if (s->workspace_fd >= 0)
		fds[n++] = s->workspace_fd;
	if (s->shared_fd >= 0)
		fds[n++] = s->shared_fd;
	struct core_rights rights = {
		.write_fds = fds, .n_write_fds = n, .single_user = s->cli->single_user};
	return core_restrict(&rights, err);
}

/* --- all of it -------------------------------------------------------------------------------- */

static int set_up_calls(struct setup *s, const struct cli *c, struct err *err)
{
	int r;
	if (!c->session && !c->workspace) {
		(void)err_set(err, ERR_INVALID_ARGUMENT, "which session is not said");
		return err_hint(err, "--workspace DIR for a directory of yours, or --session ID");
	}
	if (c->session && c->workspace)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "--session and --workspace exclude each other");
	if ((r = start_tree(s, err)) < 0 || (r = open_state(s, err)) < 0)
		return r;
	if (c->workspace && (r = open_workspace_dir(s, c->workspace, err)) < 0)
		return r;
	if ((r = open_shared(s, err)) < 0 || (r = open_registry(s, err)) < 0 ||
		(r = open_session(s, c, err)) < 0 || (r = make_env(s, err)) < 0)
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
	s->state_fd = s->base_fd = s->held_fd = s->workspace_fd = s->shared_fd = -1;
	if ((r = setup_config(c, err)) < 0)
		return r;
	if (what == SETUP_CALLS)
		r = set_up_calls(s, c, err);
	else if ((r = open_state(s, err)) == 0 && (r = open_shared(s, err)) == 0)
		r = open_registry(s, err);
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
	registry_free(s->registry);
	tree_free(s->tree);
	cleanup_close(&s->shared_fd);
	cleanup_close(&s->workspace_fd);
	cleanup_close(&s->held_fd);
	cleanup_close(&s->base_fd);
	cleanup_close(&s->state_fd);
	free(s->workspace_path);
	free(s);
}

struct registry *setup_registry(struct setup *s)
{
	return s->registry;
}

int setup_base_fd(const struct setup *s)
{
	return s->base_fd;
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
