/* The state directory: what cannot be trusted is refused, and nothing is made there. */
#include "testing.h"

#include "session/remove_tree.h"
#include "session/state.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char tmp_name[64];

static const char *below(const char *rest)
{
	static char path[4][128];
	static unsigned turn;
	char *out = path[turn++ % 4];
	(void)snprintf(out, sizeof(path[0]), "%s/%s", tmp_name, rest);
	return out;
}

static int setup(void **state)
{
	(void)state;
	(void)snprintf(tmp_name, sizeof(tmp_name), "/tmp/cloister-state-XXXXXX");
	(void)unsetenv("SHANNON_SESSION_WORKSPACES_DIR");
	(void)unsetenv("XDG_STATE_HOME");
	return mkdtemp(tmp_name) ? 0 : -1;
}

static int teardown(void **state)
{
	struct remove_budget b = {.entries = -1};
	struct err err;
	(void)state;
	_cleanup_close_ int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return remove_tree(tmp, strrchr(tmp_name, '/') + 1, &b, &err);
}

static int try_open(const char *state_dir, const char *base_dir, struct err *err)
{
	struct state_paths paths = {.state_dir = state_dir, .base_dir = base_dir};
	int state = -1, base = -1, r = state_open(&paths, &state, &base, err);
	if (r < 0) {
		assert_int_equal(state, -1);
		assert_int_equal(base, -1);
	} else {
		(void)close(state);
		(void)close(base);
	}
	return r;
}

static void refused(const char *state_dir, const char *base_dir, int code, const char *says)
{
	struct err err;
	assert_int_equal(try_open(state_dir, base_dir, &err), -code);
	if (!strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
}

static void a_linked_state_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkdir(below("real"), 0700), 0);
	assert_int_equal(symlink("real", below("link")), 0);
	refused(below("link"), NULL, ERR_DENIED, "symbolic link");
	assert_int_not_equal(access(below("real/sessions"), F_OK), 0);
	refused(below("st"), below("link"), ERR_DENIED, "symbolic link");
}

static void a_state_open_to_others_is_refused(void **state)
{
	static const mode_t modes[] = {0701, 0710, 0720, 0777, 0750};
	(void)state;
	assert_int_equal(mkdir(below("st"), 0700), 0);
	for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
		assert_int_equal(chmod(below("st"), modes[i]), 0);
		refused(below("st"), NULL, ERR_DENIED, "open to others");
	}
	assert_int_not_equal(access(below("st/sessions"), F_OK), 0);
}

static void a_base_that_others_may_write_in_is_refused(void **state)
{
	struct err err;
	(void)state;
	assert_int_equal(mkdir(below("base"), 0700), 0);
	assert_int_equal(chmod(below("base"), 0770), 0);
	refused(below("st"), below("base"), ERR_DENIED, "open to others");
	assert_int_equal(chmod(below("base"), 0755), 0);
	assert_int_equal(try_open(below("st"), below("base"), &err), 0);
}

static void a_directory_above_that_others_may_write_in_is_refused(void **state)
{
	(void)state;
	assert_int_equal(mkdir(below("shared"), 0700), 0);
	assert_int_equal(chmod(below("shared"), 0777), 0);
	refused(below("shared/st"), NULL, ERR_DENIED, "others may write");
	assert_int_not_equal(access(below("shared/st"), F_OK), 0);
}

static void another_users_state_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(below("st"), 0700), 0);
	assert_int_equal(chown(below("st"), 65534, 65534), 0);
	refused(below("st"), NULL, ERR_DENIED, "another user");
	assert_int_equal(mkdir(below("theirs"), 0755), 0);
	assert_int_equal(chown(below("theirs"), 65534, 65534), 0);
	refused(below("theirs/st"), NULL, ERR_DENIED, "another user");
	/* A link that somebody else has put on the way. */
	assert_int_equal(mkdir(below("mine"), 0700), 0);
	assert_int_equal(symlink("mine", below("way")), 0);
	assert_int_equal(lchown(below("way"), 65534, 65534), 0);
	refused(below("way/st"), NULL, ERR_DENIED, "another user");
	assert_int_not_equal(access(below("mine/st"), F_OK), 0);
}

static void a_relative_state_is_refused(void **state)
{
	(void)state;
	refused("relative/st", NULL, ERR_CONFIG, "absolute");
	refused(below("st"), "relative", ERR_CONFIG, "absolute");
}

static void a_file_in_its_place_is_refused(void **state)
{
	struct err err;
	(void)state;
	int fd = open(below("st"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_true(try_open(below("st"), NULL, &err) < 0);
}

static void missing_directories_are_made_closed(void **state)
{
	struct err err;
	struct stat st;
	(void)state;
	assert_int_equal(try_open(below("a/b/st"), NULL, &err), 0);
	assert_int_equal(stat(below("a/b/st"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(below("a/b/st/sessions"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
}

static void the_base_of_shannon_is_honoured(void **state)
{
	struct err err;
	(void)state;
	assert_int_equal(setenv("SHANNON_SESSION_WORKSPACES_DIR", below("shannon"), 1), 0);
	assert_int_equal(try_open(below("st"), NULL, &err), 0);
	assert_int_equal(access(below("shannon"), F_OK), 0);
	assert_int_not_equal(access(below("st/sessions"), F_OK), 0);
	/* What the caller names wins. */
	assert_int_equal(setenv("SHANNON_SESSION_WORKSPACES_DIR", below("other"), 1), 0);
	assert_int_equal(try_open(below("st"), below("named"), &err), 0);
	assert_int_not_equal(access(below("other"), F_OK), 0);
}

static int as_ordinary_user(void)
{
	struct err err;
	int state = -1, base = -1;
	if (geteuid() == 0 &&
		(setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0))
		return 77;
	(void)setenv("HOME", tmp_name, 1);
	(void)setenv("XDG_STATE_HOME", "relative", 1);
	if (state_open(NULL, &state, &base, &err) < 0)
		return 2;
	if (access(below(".local/state/cloister/sessions"), F_OK) < 0)
		return 3;
	(void)setenv("XDG_STATE_HOME", below("xdg"), 1);
	if (state_open(NULL, &state, &base, &err) < 0)
		return 4;
	if (access(below("xdg/cloister/sessions"), F_OK) < 0)
		return 5;
	(void)unsetenv("XDG_STATE_HOME");
	(void)unsetenv("HOME");
	return state_open(NULL, &state, &base, &err) == -ERR_CONFIG ? 0 : 6;
}

static void an_ordinary_users_state_follows_the_xdg_rules(void **state)
{
	int status;
	(void)state;
	if (geteuid() == 0)
		assert_int_equal(chown(tmp_name, 65534, 65534), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(as_ordinary_user());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_linked_state_is_refused),
		CASE(a_state_open_to_others_is_refused),
		CASE(a_base_that_others_may_write_in_is_refused),
		CASE(a_directory_above_that_others_may_write_in_is_refused),
		CASE(another_users_state_is_refused),
		CASE(a_relative_state_is_refused),
		CASE(a_file_in_its_place_is_refused),
		CASE(missing_directories_are_made_closed),
		CASE(the_base_of_shannon_is_honoured),
		CASE(an_ordinary_users_state_follows_the_xdg_rules),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
