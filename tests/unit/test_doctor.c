/* The doctor finds what is missing by doing, and leaves nothing behind. */
#include "testing.h"

#include "session/doctor.h"
#include "session/remove_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a sanitizer adds to a process asks for system calls that the filtered child of the seccomp
 * check may not make. */
#if defined(__SANITIZE_ADDRESS__)
#	define UNDER_SANITIZER true
#elif defined(__has_feature)
#	if __has_feature(address_sanitizer)
#		define UNDER_SANITIZER true
#	endif
#endif
#ifndef UNDER_SANITIZER
#	define UNDER_SANITIZER false
#endif

static char tmp_name[64], state_dir[80];

static int setup(void **state)
{
	(void)state;
	(void)unsetenv("SHANNON_SESSION_WORKSPACES_DIR");
	(void)snprintf(tmp_name, sizeof(tmp_name), "/tmp/cloister-doctor-XXXXXX");
	if (!mkdtemp(tmp_name))
		return -1;
	(void)snprintf(state_dir, sizeof(state_dir), "%s/st", tmp_name);
	return 0;
}

static int teardown(void **state)
{
	struct remove_budget b = {.entries = -1};
	struct err err;
	(void)state;
	_cleanup_close_ int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return remove_tree(tmp, strrchr(tmp_name, '/') + 1, &b, &err);
}

static const struct doctor_check *find(const struct doctor_check *c, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(c[i].name, name) == 0)
			return &c[i];
	static const struct doctor_check none = {
		.name = "", .outcome = DOCTOR_SKIPPED, .detail = "none"};
	return &none;
}

static unsigned names_in(const char *path)
{
	unsigned n = 0;
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));)
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	if (d)
		(void)closedir(d);
	return n;
}

static unsigned open_descriptors(void)
{
	return names_in("/proc/self/fd");
}

static void every_check_says_what_it_found_and_leaves_nothing(void **state)
{
	struct doctor_check c[DOCTOR_CHECKS_MAX];
	struct state_paths paths = {.state_dir = state_dir};
	char sessions[96];
	(void)state;
	unsigned before = open_descriptors(), n = doctor_run(&paths, c);
	assert_int_equal(open_descriptors(), before);
	assert_true(n >= 20);
	for (unsigned i = 0; i < n; i++) {
		assert_ptr_equal(find(c, n, c[i].name), &c[i]); /* names are unique */
		assert_true(c[i].detail[0] && c[i].needed_by[0] && c[i].advice[0]);
		print_message(
			"# %-22s %-8s %s\n", c[i].name, doctor_word(c[i].outcome), c[i].detail);
		if (c[i].outcome == DOCTOR_FAILED)
			assert_true(c[i].required);
	}
	/* Only what the state always has. */
	assert_int_equal(names_in(state_dir), 1);
	(void)snprintf(sessions, sizeof(sessions), "%s/sessions", state_dir);
	assert_int_equal(names_in(sessions), 0);
	static const char *const here[] = {"kernel", "proc", "state_directory", "openat2",
		"rename_exchange", "ofd_locks", "sqlite_wal", "memfd_seals", "pidfd"};
	for (unsigned i = 0; i < ARRAY_LEN(here); i++)
		assert_int_equal(find(c, n, here[i])->outcome, DOCTOR_OK);
	if (!UNDER_SANITIZER)
		assert_int_equal(find(c, n, "seccomp")->outcome, DOCTOR_OK);
}

static void a_state_that_is_refused_fails_and_the_rest_is_skipped(void **state)
{
	struct doctor_check c[DOCTOR_CHECKS_MAX];
	struct state_paths paths = {.state_dir = state_dir};
	(void)state;
	assert_int_equal(mkdir(state_dir, 0700), 0);
	assert_int_equal(chmod(state_dir, 0755), 0);
	unsigned n = doctor_run(&paths, c);
	assert_false(doctor_healthy(c, n));
	assert_int_equal(find(c, n, "state_directory")->outcome, DOCTOR_FAILED);
	assert_non_null(strstr(find(c, n, "state_directory")->detail, "open to others"));
	assert_int_equal(find(c, n, "sqlite_wal")->outcome, DOCTOR_SKIPPED);
	assert_int_equal(names_in(state_dir), 0);
}

/* Take one system call away from this process. */
static int without(int nr)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = {ARRAY_LEN(code), code};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) | prctl(PR_SET_SECCOMP, 2, &prog);
}

static void a_facility_that_is_taken_away_is_found_missing(void **state)
{
	static const struct {
		int nr;
		const char *name;
		enum doctor_outcome outcome;
	} gone[] = {
		{SYS_landlock_create_ruleset, "landlock", DOCTOR_FAILED},
		{SYS_renameat2, "rename_exchange", DOCTOR_FAILED},
		{SYS_memfd_create, "memfd_seals", DOCTOR_FAILED},
		{SYS_pidfd_send_signal, "pidfd", DOCTOR_FAILED},
		{SYS_unshare, "user_namespaces", DOCTOR_MISSING},
		{SYS_unshare, "overlay_in_userns", DOCTOR_MISSING},
		{SYS_open_tree, "idmapped_mounts", DOCTOR_MISSING},
		{SYS_fsetxattr, "extended_attributes", DOCTOR_MISSING},
		{SYS_fdatasync, "fdatasync", DOCTOR_FAILED},
		{SYS_mkdir, "cgroup2", DOCTOR_MISSING},
	};
	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(gone); i++) {
		int status;
		pid_t pid = fork();
		if (pid == 0) {
			struct doctor_check c[DOCTOR_CHECKS_MAX];
			struct state_paths paths = {.state_dir = state_dir};
			if (without(gone[i].nr) != 0)
				_exit(77);
			unsigned n = doctor_run(&paths, c);
			_exit(find(c, n, gone[i].name)->outcome == gone[i].outcome ? 0 : 1);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status != 0)
			fail_msg("without call %d %s is not found missing", gone[i].nr,
				gone[i].name);
	}
}

/* openat2 is what opens the state, so without it there is nothing to try anything in. */
static void without_openat2_it_is_not_healthy(void **state)
{
	int status;
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		struct doctor_check c[DOCTOR_CHECKS_MAX];
		struct state_paths paths = {.state_dir = state_dir};
		if (without(SYS_openat2) != 0)
			_exit(77);
		_exit(doctor_healthy(c, doctor_run(&paths, c)) ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(every_check_says_what_it_found_and_leaves_nothing),
		CASE(a_state_that_is_refused_fails_and_the_rest_is_skipped),
		CASE(a_facility_that_is_taken_away_is_found_missing),
		CASE(without_openat2_it_is_not_healthy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
