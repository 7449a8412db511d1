/* Finding and reading cloister.toml: see config_file.h. */
#include "codec/config_file.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int refuse(struct err *err, const char *path, const char *what, const char *right)
{
	(void)err_set(err, ERR_CONFIG, "%s: %s", path, what);
	return err_hint(err, "%s", right);
}

static int check_trust(int fd, const char *path, size_t *ret_size, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_set(err, ERR_CONFIG, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(err, path, "this is no regular file", "name a file");
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return refuse(err, path, "the file belongs to somebody else",
			"it must belong to root or to who runs Cloister");
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return refuse(err, path, "others may write this file", "chmod go-w it");
	if (st.st_size > CONFIG_FILE_BYTES_MAX)
		return refuse(err, path, "the file is too large", "it may have at most 256 KiB");
	*ret_size = (size_t)st.st_size;
	return 0;
}

/* One byte more than the size is asked for, so that a file that grows is seen as too large. */
static int read_open(struct config *c, int fd, const char *path, struct err *err)
{
	size_t size;
	_cleanup_buf_ struct buf text = buf_init(CONFIG_FILE_BYTES_MAX + 1);
	int r = check_trust(fd, path, &size, err);
	if (r < 0)
		return r;
	char *to = buf_room(&text, size + 1);
	if (!to)
		return err_oom(err);
	ssize_t n = fs_read(fd, to, size + 1, 0);
	if (n < 0)
		return err_set(err, ERR_CONFIG, "%s: %s", path, strerror(errno));
	buf_grew(&text, (size_t)n);
	return config_read(c, path, (struct str){text.data, text.len}, err);
}

/* *ret_found says whether there was a file; that there is none is an error only of `must`. */
static int read_path(
	struct config *c, const char *path, bool must, bool *ret_found, struct err *err)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	*ret_found = fd >= 0;
	if (fd >= 0)
		return read_open(c, fd, path, err);
	if (!must && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	return err_set(err, ERR_CONFIG, "%s: %s", path, strerror(errno));
}

static const char *set_variable(const char *name)
{
	const char *v = getenv(name);
	return v && *v ? v : NULL;
}

/* The user's own file. A base that is not absolute is ignored, as XDG says. */
static bool user_path(struct buf *b)
{
	const char *config = set_variable("XDG_CONFIG_HOME"), *home = set_variable("HOME");
	if (geteuid() == 0)
		return false;
	if (config && *config == '/')
		buf_printf(b, "%s/cloister/cloister.toml", config);
	else if (home && *home == '/')
		buf_printf(b, "%s/.config/cloister/cloister.toml", home);
	return b->len && !b->failed;
}

int config_load(struct config *c, const char *path, struct err *err)
{
	_cleanup_buf_ struct buf own = buf_init(LIMIT_PATH_BYTES);
	bool found = false;
	if (!path)
		path = set_variable("CLOISTER_CONFIG");
	if (path)
		return read_path(c, path, true, &found, err);
	if (user_path(&own)) {
		int r = read_path(c, buf_str(&own), false, &found, err);
		if (r < 0 || found)
			return r;
	}
	return read_path(c, CONFIG_FILE_SYSTEM, false, &found, err);
}
