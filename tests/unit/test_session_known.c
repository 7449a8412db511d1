/*
 * What is kept of attached directories is a hint: it spares the database, and it never brings back
 * a session that was deleted, nor one of another directory.
 */
#include "session_fixture.h"

#define CASE(f) cmocka_unit_test(f)

static char kept[8192];
static ssize_t n_kept;

/* The one file in st/attached. */
static const char *kept_path(void)
{
	static char path[80];
	DIR *d = opendir(below("st/attached"));
	assert_non_null(d);
	path[0] = '\0';
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.') {
			assert_string_equal(path, ""); /* one only */
			(void)snprintf(path, sizeof(path), "st/attached/%.60s", e->d_name);
		}
	(void)closedir(d);
	assert_string_not_equal(path, "");
	return below(path);
}

static void copy_kept(void)
{
	_cleanup_close_ int fd = open(kept_path(), O_RDONLY | O_CLOEXEC);
	n_kept = read(fd, kept, sizeof(kept));
	assert_true(n_kept > 0 && n_kept < (ssize_t)sizeof(kept));
}

static void put_kept(const char *path)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, kept, (size_t)n_kept), n_kept);
}

static int try_attach(const char *dir, char incarnation[INCARNATION_LEN + 1])
{
	struct registry *reg = open_registry();
	struct session *s = NULL;
	struct session_info info;
	_cleanup_close_ int fd = open(below(dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = registry_attach(reg, fd, below(dir), &s, &err);
	if (r == 0) {
		session_info(s, &info);
		memcpy(incarnation, info.incarnation, sizeof(info.incarnation));
		session_release(s);
	}
	registry_free(reg);
	return r;
}

static void begin(char first[INCARNATION_LEN + 1])
{
	start_anew();
	assert_int_equal(mkdir(below("project"), 0755), 0);
	assert_int_equal(try_attach("project", first), 0);
	copy_kept();
}

/* So that whoever asks it is told. */
static void break_database(void)
{
	static const char *const files[] = {"st/registry.db", "st/registry.db-wal"};
	char rubbish[4096];
	memset(rubbish, 'x', sizeof(rubbish));
	for (unsigned i = 0; i < ARRAY_LEN(files); i++) {
		int fd = open(below(files[i]), O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		assert_int_equal(pwrite(fd, rubbish, sizeof(rubbish), 0), sizeof(rubbish));
		(void)close(fd);
	}
}

static void attaching_again_does_not_ask_the_database(void **state)
{
	char first[INCARNATION_LEN + 1], again[INCARNATION_LEN + 1];
	(void)state;
	begin(first);
	break_database();
	assert_int_equal(try_attach("project", again), 0);
	assert_string_equal(first, again);
	assert_int_equal(unlink(kept_path()), 0);
	assert_int_equal(try_attach("project", again), -ERR_CORRUPT);
}

static void delete_first(const char *incarnation)
{
	struct registry *reg = open_registry();
	char id[64];
	(void)snprintf(id, sizeof(id), "dir-%s", incarnation);
	if (registry_delete(reg, NULL, id, &err) < 0)
		fail_msg("%s", err.text);
	registry_free(reg);
}

static void a_deleted_session_does_not_come_back(void **state)
{
	(void)state;
	for (unsigned swept = 0; swept < 2; swept++) {
		char first[INCARNATION_LEN + 1], again[INCARNATION_LEN + 1], path[160];
		begin(first);
		(void)snprintf(path, sizeof(path), "%.150s", kept_path());
		delete_first(first);
		assert_int_equal(access(path, F_OK), -1);
		if (swept) {
			struct registry *reg = open_registry();
			assert_int_equal(sweep(reg), 0);
			registry_free(reg);
		}
		put_kept(path); /* as one who wrote it too late would leave it */
		assert_int_equal(try_attach("project", again), 0);
		assert_string_not_equal(first, again);
	}
}

static void every_damaged_byte_is_noticed(void **state)
{
	char first[INCARNATION_LEN + 1], again[INCARNATION_LEN + 1], path[160];
	(void)state;
	begin(first);
	break_database(); /* what is not believed is asked for, and that fails */
	(void)snprintf(path, sizeof(path), "%.150s", kept_path());
	for (ssize_t i = 0; i < n_kept; i += i < 1200 ? 7 : 131) {
		kept[i] ^= 0x20;
		put_kept(path);
		if (try_attach("project", again) != -ERR_CORRUPT)
			fail_msg("byte %zd", i);
		kept[i] ^= 0x20;
	}
	n_kept--;
	put_kept(path);
	assert_int_equal(try_attach("project", again), -ERR_CORRUPT);
}

static void another_directory_or_database_does_not_take_it(void **state)
{
	char first[INCARNATION_LEN + 1], again[INCARNATION_LEN + 1];
	struct statx x;
	char path[80];
	(void)state;
	begin(first);
	assert_int_equal(mkdir(below("other"), 0755), 0);
	assert_int_equal(statx(AT_FDCWD, below("other"), 0, STATX_INO | STATX_BTIME, &x), 0);
	(void)snprintf(path, sizeof(path), "st/attached/%016llx-%016llx",
		(unsigned long long)x.stx_ino,
		(unsigned long long)(x.stx_btime.tv_sec * 1000000000LL + x.stx_btime.tv_nsec));
	put_kept(below(path));
	assert_int_equal(try_attach("other", again), 0);
	assert_string_not_equal(first, again);
	/* A database that was put in its place does not know the session. */
	assert_int_equal(rename(below("st/registry.db"), below("st/old.db")), 0);
	(void)unlink(below("st/registry.db-wal"));
	(void)unlink(below("st/registry.db-shm"));
	struct registry *reg = open_registry();
	assert_int_equal(use(reg, "s"), 0);
	registry_free(reg);
	assert_int_equal(try_attach("project", again), 0);
	assert_string_not_equal(first, again);
}

static void a_link_or_an_open_file_is_not_believed(void **state)
{
	char first[INCARNATION_LEN + 1], again[INCARNATION_LEN + 1], path[160];
	(void)state;
	begin(first);
	break_database();
	(void)snprintf(path, sizeof(path), "%.150s", kept_path());
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(try_attach("project", again), -ERR_CORRUPT);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(rename(path, below("moved")), 0);
	assert_int_equal(symlink(below("moved"), path), 0);
	assert_int_equal(try_attach("project", again), -ERR_CORRUPT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(attaching_again_does_not_ask_the_database),
		CASE(a_deleted_session_does_not_come_back),
		CASE(every_damaged_byte_is_noticed),
		CASE(another_directory_or_database_does_not_take_it),
		CASE(a_link_or_an_open_file_is_not_believed),
	};
	return cmocka_run_group_tests(tests, sx_setup, sx_teardown);
}
