/* Where the programs of the roles are: see programs.h. */
#include "daemon/programs.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int open_program(const char *dir, const char *name)
{
	char path[4096];
	int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof(path) || access(path, X_OK) < 0)
		return -1;
	return open(path, O_PATH | O_CLOEXEC);
}

static bool own_directory(char *out, size_t cap)
{
	ssize_t n = readlink("/proc/self/exe", out, cap - 1);
	if (n <= 0)
		return false;
	out[n] = '\0';
	*strrchr(out, '/') = '\0';
	return true;
}

int program_open(const char *dir, const char *name, struct err *err)
{
	char own[4096];
	const char *const env = getenv("CLOISTER_LIBEXECDIR");
	if (dir || env) {
		int fd = open_program(dir ? dir : env, name);
		return fd >= 0 ? fd
			       : err_set(err, ERR_UNAVAILABLE,
					 "the program '%s' is not where it was said to be", name);
	}
	int fd = own_directory(own, sizeof(own)) ? open_program(own, name) : -1;
	if (fd < 0)
		fd = open_program(CLOISTER_LIBEXECDIR, name);
	return fd >= 0 ? fd
		       : err_set(err, ERR_UNAVAILABLE, "the program '%s' is not installed", name);
}

int program_start_later(
	const char *dir, const struct process_spec *spec, struct process *ret, struct err *err)
{
	char number[16];
	const char *argv[2 + PROGRAM_ARGS_MAX + 1] = {"cloister-later", number};
	int fds[PROCESS_FDS_MAX];
	struct process_spec later = *spec;
	if (!CLOISTER_LATER)
		return process_start(spec, ret, err);
	_cleanup_close_ int exe = program_open(dir, "cloister-later", err);
	if (exe < 0)
		return exe;
	BUG_ON(spec->n_fds >= PROCESS_FDS_MAX);
	memcpy(fds, spec->fds, spec->n_fds * sizeof(fds[0]));
	fds[spec->n_fds] = spec->exec_fd;
	(void)snprintf(number, sizeof(number), "%u", 3 + spec->n_fds);
	for (unsigned i = 0; spec->argv[i]; i++) {
		BUG_ON(i == PROGRAM_ARGS_MAX);
		argv[2 + i] = spec->argv[i];
	}
	later.exec_fd = exe;
	later.argv = argv;
	later.fds = fds;
	later.n_fds = spec->n_fds + 1;
	return process_start(&later, ret, err);
}

static bool read_at(int fd, void *p, size_t n, uint64_t at)
{
	return at <= INT64_MAX && pread(fd, p, n, (off_t)at) == (ssize_t)n;
}

int program_loader(int exe_fd)
{
	char path[64], loader[256];
	ElfW(Ehdr) h;
	ElfW(Phdr) p;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", exe_fd);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !read_at(fd, &h, sizeof(h), 0) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return -1;
	for (unsigned i = 0; i < h.e_phnum; i++) {
		if (!read_at(fd, &p, sizeof(p), h.e_phoff + i * sizeof(p)))
			return -1;
		if (p.p_type != PT_INTERP || p.p_filesz == 0 || p.p_filesz > sizeof(loader))
			continue;
		if (!read_at(fd, loader, p.p_filesz, p.p_offset) || loader[p.p_filesz - 1] != '\0')
			return -1;
		return open(loader, O_PATH | O_CLOEXEC);
	}
	return -1;
}
