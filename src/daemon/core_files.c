/* The directories that core works in: see core_files.h. */
#include "daemon/core_files.h"

#include "session/state.h"
#include "tools/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum {
	LOCK_WAIT_MS = 10000, /* for another process that is writing to the same workspace */
	HELD_SECONDS = 3600,  /* how long a held call can be read */
};

static int open_state(struct core_files *f, const struct config *set, struct err *err)
{
	struct state_paths paths = {.state_dir = set->state_dir, .base_dir = set->sessions_base};
	int r = state_open(&paths, &f->state_fd, &f->base_fd, err);
	if (r == 0)
		r = state_subdir(f->state_fd, "held", &f->held_fd, err);
	return r;
}

/* The directory that every session sees; its writers are counted together. */
static int open_shared(struct core_files *f, const struct config *set, struct err *err)
{
	if (!set->workspace_shared)
		return 0;
	f->shared_fd = open(set->workspace_shared, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return f->shared_fd < 0 ? err_sys(err, errno, "opening workspace.shared") : 0;
}

static int open_registry(
	struct core_files *f, const struct core_files_options *opt, struct err *err)
{
	const struct config *set = opt->config;
	struct mount_spec shared = {.agent_path = "/workspace/shared",
		.dir_fd = f->shared_fd,
		.store_fd = -1,
		.shared = true,
		.quota_bytes = set->quota_bytes,
		.quota_entries = set->quota_entries};
	f->workspace = (struct workspace_options){.quota_bytes = set->quota_bytes,
		.quota_entries = set->quota_entries,
		.history_bytes = set->history_bytes,
		.history_age_s = set->history_age_seconds,
		.history_required = set->history_required,
		.strict_links = set->strict_links,
		.durability = set->durability == CONFIG_DURABILITY_POWER ? DURABLE_POWER
									 : DURABLE_PROCESS,
		.lock_wait_ms = LOCK_WAIT_MS,
		.client_root = opt->client_root};
	struct registry_options o = {.state_fd = f->state_fd,
		.base_fd = f->base_fd,
		.workspace = &f->workspace,
		.volumes = f->shared_fd >= 0 ? &shared : NULL,
		.n_volumes = f->shared_fd >= 0,
		.ttl_s = set->session_ttl_seconds,
		.idle_s = set->session_idle_seconds,
		.open_max = opt->open_sessions,
		.no_create = opt->no_create};
	return registry_open(&o, &f->registry, err);
}

int core_files_open(const struct core_files_options *opt, struct core_files *ret, struct err *err)
{
	*ret = (struct core_files){.state_fd = -1, .base_fd = -1, .held_fd = -1, .shared_fd = -1};
	struct str profile =
		config_choice(&config_keys[CONFIG_ID_profile], (unsigned)opt->config->profile);
	(void)snprintf(ret->profile, sizeof(ret->profile), "%.*s", (int)profile.n, profile.p);
	int r = open_state(ret, opt->config, err);
	if (r == 0)
		r = open_shared(ret, opt->config, err);
	if (r == 0)
		r = open_registry(ret, opt, err);
	if (r < 0)
		core_files_done(ret);
	return r;
}

void core_files_done(struct core_files *f)
{
	registry_free(f->registry);
	cleanup_close(&f->shared_fd);
	cleanup_close(&f->held_fd);
	cleanup_close(&f->base_fd);
	cleanup_close(&f->state_fd);
	f->registry = NULL;
	f->state_fd = f->base_fd = f->held_fd = f->shared_fd = -1;
}

unsigned core_files_fds(const struct core_files *f, int ret[4])
{
	unsigned n = 0;
	ret[n++] = f->state_fd;
	ret[n++] = f->base_fd;
	if (f->shared_fd >= 0)
		ret[n++] = f->shared_fd;
	return n;
}

static const struct decider *decider_of(int profile)
{
	switch (profile) {
	case CONFIG_PROFILE_DENY_ALL: return &decider_deny_all;
	case CONFIG_PROFILE_HOLD_ALL: return &decider_hold_all;
	default: return &decider_roles;
	}
}

void core_files_env(const struct core_files *f, const struct config *set, struct tool_env *ret)
{
	*ret = (struct tool_env){.tools = tools_all,
		.registry = f->registry,
		.decider = decider_of(set->profile),
		.profile = f->profile,
		.workspace = &f->workspace,
		.held_fd = f->held_fd,
		.held_seconds = HELD_SECONDS,
		.read_limit_bytes = set->files_read_limit_mb * 1024 * 1024,
		.exclude = set->files_exclude,
		.search_ms = set->search_time_ms,
		.search_bytes = set->search_bytes};
}
