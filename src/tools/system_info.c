/* system_info: the machine in a few figures that tell an agent what it can expect, and nothing
 * about the host's names. */
#include "tools/common.h"
#include "tools/tools.h"

#include <errno.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

static const struct field args[] = {FIELD_END};

static const struct field result[] = {
	{.name = "os", .type = FIELD_STRING, .help = "Operating system and its release."},
	{.name = "machine", .type = FIELD_STRING, .help = "Processor architecture."},
	{.name = "cpu_count", .type = FIELD_INT, .help = "Processors that this process may use."},
	{.name = "memory_total_bytes", .type = FIELD_INT, .help = "Main memory."},
	{.name = "memory_free_bytes", .type = FIELD_INT, .help = "Main memory that is not in use."},
	{.name = "disk_total_bytes",
		.type = FIELD_INT,
		.help = "Size of the file system that holds the workspace."},
	{.name = "disk_free_bytes",
		.type = FIELD_INT,
		.help = "What is free there; the quota may be less."},
	{.name = "version", .type = FIELD_STRING, .help = "Version of Cloister."},
	RESULT_COMMON,
};

static int prepare(struct tool_call *tc _unused_, struct err *err _unused_)
{
	return 0;
}

static int run(struct tool_call *tc, struct err *err)
{
	struct utsname u;
	struct sysinfo mem;
	struct statvfs fs;
	struct buf *out = tool_result(tc);
	if (uname(&u) < 0 || sysinfo(&mem) < 0)
		return err_sys(err, errno, "asking the kernel about this machine");
	if (fstatvfs(workspace_mount_fd(tool_workspace(tc), 0), &fs) < 0)
		return err_sys(err, errno, "asking about the file system of the workspace");
	jw_key(out, "os");
	_cleanup_buf_ struct buf os = buf_init(256);
	buf_printf(&os, "%s %s", u.sysname, u.release);
	jw_string(out, (struct str){buf_str(&os), os.len});
	jw_cstr(out, "machine", u.machine);
	jw_int(out, "cpu_count", sysconf(_SC_NPROCESSORS_ONLN));
	jw_int(out, "memory_total_bytes", (int64_t)mem.totalram * mem.mem_unit);
	jw_int(out, "memory_free_bytes", (int64_t)mem.freeram * mem.mem_unit);
	jw_int(out, "disk_total_bytes", (int64_t)fs.f_blocks * (int64_t)fs.f_frsize);
	jw_int(out, "disk_free_bytes", (int64_t)fs.f_bavail * (int64_t)fs.f_frsize);
	jw_cstr(out, "version", CLOISTER_VERSION);
	return 0;
}

const struct tool tool_system_info = {
	.name = "system_info",
	.title = "System information",
	.description = "Operating system, processors, memory and disk of the machine that runs the "
		       "workspace.",
	.group = GROUP_READ,
	.idempotent = true,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
};
