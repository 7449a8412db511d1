/* The plan of a fence: see plan.h. */
#include "sandbox/plan.h"

#include "sandbox/calls.h"

const struct fence_tree fence_trees[] = {
#define TREE(path) {path},
#include "sandbox/trees.def"
#undef TREE
};
const unsigned fence_trees_n = ARRAY_LEN(fence_trees);

/* Nobody gets more than the configuration gives. */
static int64_t at_most(int64_t most, int64_t asked)
{
	return asked > 0 && (most == 0 || asked < most) ? asked : most;
}

void plan_make(const struct fence_config *config, const struct fence_limits *asked, unsigned slot,
	uint32_t launcher, struct fence_plan *ret)
{
	BUG_ON(slot >= FENCE_SLOTS_MAX);
	const struct fence_limits *most = &config->most;
	/* A launcher's pid is below 2^22, so every command of the machine has a uid of its own. */
	uid_t own = FENCE_HOST_UID_FIRST + (launcher & 0x3fffff) * FENCE_SLOTS_MAX + slot;
	*ret = (struct fence_plan){
		.root = config->root,
		.inside_uid = config->root ? FENCE_UID : config->uid,
		.inside_gid = config->root ? FENCE_UID : config->gid,
		.host_uid = config->root ? own : config->uid,
		.host_gid = config->root ? own : config->gid,
		.landlock_abi = config->landlock_abi,
		.limits = {.memory_bytes = at_most(most->memory_bytes, asked->memory_bytes),
			.scratch_bytes = at_most(most->scratch_bytes, asked->scratch_bytes),
			.scratch_entries = at_most(most->scratch_entries, asked->scratch_entries),
			.processes = at_most(most->processes, asked->processes),
			.cpu_s = at_most(most->cpu_s, asked->cpu_s),
			.time_ms = at_most(most->time_ms, asked->time_ms)},
		.hostname = "cloister",
		.workdir = "/workspace",
		.home = "/home/agent",
	};
}

static void print_limits(const struct fence_limits *l, struct buf *out)
{
	buf_printf(out, "limit memory %lld bytes (cgroup)\n", (long long)l->memory_bytes);
	buf_printf(out, "limit processes %lld\n", (long long)l->processes);
	buf_printf(out, "limit cpu %lld s a process\n", (long long)l->cpu_s);
	buf_printf(out, "limit time %lld ms\n", (long long)l->time_ms);
}

void plan_print(const struct fence_plan *p, struct buf *out)
{
	buf_puts(out, "namespaces user mount pid ipc uts cgroup net\n");
	buf_printf(out, "identity inside %u:%u, outside %u:%u\n", p->inside_uid, p->inside_gid,
		p->host_uid, p->host_gid);
	buf_printf(out, "scratch tmpfs %lld bytes, %lld entries: changes, /tmp, /dev/shm, %s\n",
		(long long)p->limits.scratch_bytes, (long long)p->limits.scratch_entries, p->home);
	for (unsigned i = 0; i < fence_trees_n; i++)
		buf_printf(out, "read-only %s\n", fence_trees[i].path);
	buf_puts(out, "devices null zero full random urandom tty\n");
	buf_puts(out, "proc of its own process namespace\n");
	buf_printf(out, "overlay %s, its changes in scratch%s\n", p->workdir,
		p->root ? ", idmapped" : "");
	buf_puts(out, "network loopback only\n");
	buf_printf(out, "landlock ABI %d\n", p->landlock_abi);
	buf_printf(out, "seccomp %u system calls allowed, the rest refused\n", fence_calls_n);
	buf_puts(out, "capabilities none, bounding set empty, no new privileges\n");
	print_limits(&p->limits, out);
}
