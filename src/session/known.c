/* Directories that were attached before: see known.h. */
#include "session/known.h"

#include "base/sha256.h"
#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define KNOWN_DIR "attached"

enum { KNOWN_NAME_MAX = sizeof(KNOWN_DIR "/") + 16 + 1 + 16 };

/* A change of struct session_row shows in its size, or has to be told by another magic. */
#define KNOWN_MAGIC "CLOIKNO1"

struct known {
	struct {
		char magic[8];
		uint64_t database; /* inode of the database that has the row */
		struct session_row row;
	} body;
	struct sha256 sum; /* of the body: the file is not synced, so it may be torn */
};

static void known_name(const struct dir_identity *dir, char ret[KNOWN_NAME_MAX])
{
	(void)snprintf(ret, KNOWN_NAME_MAX, KNOWN_DIR "/%016llx-%016llx",
		(unsigned long long)dir->ino, (unsigned long long)dir->btime_ns);
}

static bool database_of(int state_fd, uint64_t *ret)
{
	struct stat st;
	if (fs_lstat(state_fd, SESSION_DATABASE, &st) < 0)
		return false;
	*ret = st.st_ino;
	return true;
}

static bool is_text(const char *p, size_t cap)
{
	return memchr(p, '\0', cap) != NULL;
}

static bool plausible(const struct session_row *row, const struct dir_identity *dir)
{
	const struct session_info *i = &row->info;
	return i->kind == SESSION_ATTACHED && row->dir.dev == dir->dev &&
	       row->dir.ino == dir->ino && row->dir.btime_ns == dir->btime_ns &&
	       is_text(i->id, sizeof(i->id)) && is_text(i->tenant, sizeof(i->tenant)) &&
	       is_text(i->owner, sizeof(i->owner)) && is_text(i->role, sizeof(i->role)) &&
	       is_text(row->path, sizeof(row->path)) &&
	       strnlen(i->incarnation, sizeof(i->incarnation)) == INCARNATION_LEN;
}

static bool read_known(int state_fd, const char *name, struct known *ret)
{
	struct stat st;
	struct sha256 sum;
	_cleanup_close_ int fd = fs_open(state_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		(st.st_mode & 077) || st.st_size != (off_t)sizeof(*ret) ||
		fs_read(fd, ret, sizeof(*ret), 0) != (ssize_t)sizeof(*ret))
		return false;
	sha256_of(&ret->body, sizeof(ret->body), &sum);
	return memcmp(&sum, &ret->sum, sizeof(sum)) == 0;
}

bool known_find(int state_fd, const struct dir_identity *dir, struct session_row *ret)
{
	char name[KNOWN_NAME_MAX];
	uint64_t database;
	_cleanup_free_ struct known *k = malloc(sizeof(*k));
	if (!k || dir->btime_ns == 0)
		return false;
	known_name(dir, name);
	if (!read_known(state_fd, name, k) || !database_of(state_fd, &database))
		return false;
	if (memcmp(k->body.magic, KNOWN_MAGIC, sizeof(k->body.magic)) != 0 ||
		k->body.database != database || !plausible(&k->body.row, dir))
		return false;
	*ret = k->body.row;
	return true;
}

/* Named only when it is whole, so that no kill leaves anything behind. */
static void write_known(int dir_fd, const struct known *k, const char *name)
{
	_cleanup_close_ int fd = fs_tmpfile(dir_fd);
	if (fd < 0 || fs_write(fd, k, sizeof(*k), 0) < 0)
		return;
	(void)unlinkat(dir_fd, name, 0);
	(void)fs_link(fd, dir_fd, name);
}

void known_keep(int state_fd, const struct session_row *row)
{
	char name[KNOWN_NAME_MAX];
	_cleanup_close_ int dir_fd = -1;
	_cleanup_free_ struct known *k = calloc(1, sizeof(*k));
	if (!k || row->info.kind != SESSION_ATTACHED || row->dir.btime_ns == 0 ||
		!database_of(state_fd, &k->body.database))
		return;
	if (mkdirat(state_fd, KNOWN_DIR, 0700) < 0 && errno != EEXIST)
		return;
	dir_fd = fs_open(state_fd, KNOWN_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (dir_fd < 0)
		return;
	memcpy(k->body.magic, KNOWN_MAGIC, sizeof(k->body.magic));
	k->body.row = *row;
	sha256_of(&k->body, sizeof(k->body), &k->sum);
	known_name(&row->dir, name);
	write_known(dir_fd, k, name + sizeof(KNOWN_DIR));
}

void known_forget(int state_fd, const struct dir_identity *dir)
{
	char name[KNOWN_NAME_MAX];
	known_name(dir, name);
	(void)unlinkat(state_fd, name, 0);
}
