/* Where the programs of the roles are: see programs.h. */
#include "daemon/programs.h"

#include <fcntl.h>
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
