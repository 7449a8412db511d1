/* shell_run: what a command answers, what is kept of it, what is never left behind. */
#include "testing.h"

#include "fixture/fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static struct fixture *new_fixture(const struct decider *d, int64_t quota)
{
	return fixture_new(&(struct fixture_options){
		.with_fence = true, .decider = d, .workspace = {.quota_bytes = quota}});
}

static int64_t number(const json_t *r, const char *key)
{
	return json_integer_value(json_object_get(r, key));
}

static const char *text(const json_t *r, const char *key)
{
	const char *t = json_string_value(json_object_get(r, key));
	return t ? t : "";
}

static json_t *line(struct fixture *f, const char *command)
{
	json_t *args = json_pack("{s:s}", "command", command);
	char *dumped = json_dumps(args, JSON_COMPACT);
	json_t *r = fixture_ok(f, "shell_run", "%s", dumped);
	free(dumped);
	json_decref(args);
	return r;
}

static void refuse(struct fixture *f, const char *args, enum err_code want)
{
	struct sha256 before, after;
	enum err_code code;
	fixture_tree_hash(fixture_ws(f), &before);
	json_t *r = fixture_call(f, "shell_run", args, &code);
	fixture_tree_hash(fixture_ws(f), &after);
	if (code != want)
		fail_msg("%s: %s", args, json_dumps(r, 0));
	assert_true(json_is_false(json_object_get(r, "executed")));
	assert_memory_equal(&before, &after, sizeof(before));
	json_decref(r);
}

static void expect_file(struct fixture *f, const char *path, const char *content)
{
	char *now = fixture_get(f, path);
	if (!content)
		assert_null(now);
	else
		assert_string_equal(now, content);
	free(now);
}

static void a_line_answers_with_streams_and_status(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	json_t *r = line(f, "echo out; echo err >&2; exit 7");
	assert_string_equal(text(r, "stdout"), "out\n");
	assert_string_equal(text(r, "stderr"), "err\n");
	assert_int_equal(number(r, "exit_code"), 7);
	json_decref(r);
	r = fixture_ok(f, "shell_run", "{\"argv\":[\"printf\",\"%%s|\",\"a b\",\"$HOME\",\"\"]}");
	assert_string_equal(text(r, "stdout"), "a b|$HOME||");
	json_decref(r);
	r = fixture_ok(f, "shell_run", "{\"command\":\"cat\",\"stdin\":\"in\\u0000put\"}");
	assert_int_equal(json_string_length(json_object_get(r, "stdout")), 6);
	json_decref(r);
	r = line(f, "cat; echo end");
	assert_string_equal(text(r, "stdout"), "end\n");
	json_decref(r);
	fixture_free(f);
}

static void changes_are_kept_also_of_a_failing_line_and_can_be_undone(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	fixture_put(f, "ws/there", "old\n");
	json_decref(line(f, "echo new > there; mkdir -p a/b; echo x > a/b/c; exit 1"));
	expect_file(f, "ws/there", "new\n");
	expect_file(f, "ws/a/b/c", "x\n");
	json_decref(fixture_ok(f, "history_undo", "{}"));
	expect_file(f, "ws/there", "old\n");
	expect_file(f, "ws/a/b/c", NULL);
	fixture_free(f);
}

static void a_dry_run_shows_and_keeps_nothing(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	json_t *r = fixture_ok(f, "shell_run", "{\"command\":\"echo x > new\",\"dry_run\":true}");
	assert_non_null(strstr(text(r, "diff"), "+x"));
	json_decref(r);
	expect_file(f, "ws/new", NULL);
	fixture_free(f);
}

static void the_working_directory_is_inside(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	fixture_put(f, "ws/sub/x", "x");
	json_t *r =
		fixture_ok(f, "shell_run", "{\"command\":\"pwd\",\"working_directory\":\"sub\"}");
	assert_string_equal(text(r, "stdout"), "/workspace/sub\n");
	json_decref(r);
	refuse(f, "{\"command\":\"pwd\",\"working_directory\":\"..\"}", ERR_PATH_ESCAPE);
	refuse(f, "{\"command\":\"pwd\",\"working_directory\":\"none\"}", ERR_NOT_FOUND);
	refuse(f, "{\"command\":\"pwd\",\"working_directory\":\"sub/x\"}", ERR_NOT_DIRECTORY);
	fixture_free(f);
}

static void wrong_calls_say_what_is_wrong(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	refuse(f, "{}", ERR_INVALID_ARGUMENT);
	refuse(f, "{\"command\":\"true\",\"argv\":[\"true\"]}", ERR_INVALID_ARGUMENT);
	refuse(f, "{\"argv\":[\"no-such-program\"]}", ERR_NOT_FOUND);
	refuse(f, "{\"command\":\"true\",\"network\":true}", ERR_INVALID_ARGUMENT);
	fixture_free(f);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], stat[512] = {0};
	int ppid = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, stat, sizeof(stat) - 1) > 0 && strrchr(stat, ')'))
		(void)sscanf(strrchr(stat, ')'), ") %*c %d", &ppid);
	if (fd >= 0)
		close(fd);
	return ppid;
}

static bool is_ours(pid_t pid)
{
	while (pid > 1 && pid != getpid())
		pid = parent_of(pid);
	return pid == getpid();
}

/* Processes below this one: the launcher and what it started. */
static unsigned processes_named(const char *name)
{
	unsigned n = 0;
	struct dirent *e;
	DIR *d = opendir("/proc");
	while (d && (e = readdir(d))) {
		char path[300], comm[64] = {0};
		snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, comm, sizeof(comm) - 1) > 0 && strcmp(comm, name) == 0 &&
			is_ours(atoi(e->d_name)))
			n++;
		if (fd >= 0)
			close(fd);
	}
	closedir(d);
	return n;
}

static void a_time_out_ends_everything_and_keeps_nothing(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	json_t *r = fixture_ok(f, "shell_run", "%s",
		"{\"timeout_ms\":400,\"command\":\"cp /bin/sleep /tmp/my-sleeper; export "
		"PATH=/tmp:$PATH; echo x > new; (trap '' TERM INT HUP; setsid my-sleeper 100 & "
		"nohup my-sleeper 101 & my-sleeper 102) & echo printed; my-sleeper 103\"}");
	assert_true(json_is_true(json_object_get(r, "timed_out")));
	assert_true(json_is_true(json_object_get(r, "changes_dropped")));
	assert_string_equal(text(r, "stdout"), "printed\n");
	assert_int_equal(number(r, "exit_code"), 128 + SIGKILL);
	assert_true(number(r, "duration_ms") < 5000);
	json_decref(r);
	expect_file(f, "ws/new", NULL);
	assert_int_equal(processes_named("my-sleeper"), 0);
	fixture_free(f);
}

static void what_a_line_leaves_running_ends_with_it(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	json_decref(line(f, "cp /bin/sleep /tmp/left-over; setsid /tmp/left-over 100 & "
			    "/tmp/left-over 100 & sleep 0.1; echo x > kept"));
	assert_int_equal(processes_named("/tmp/left-over"), 0);
	expect_file(f, "ws/kept", "x\n");
	fixture_free(f);
}

static void freeing_a_running_call_ends_it(void **state)
{
	(void)state;
	struct err err;
	struct call *c = NULL;
	struct fixture *f = new_fixture(NULL, 0);
	json_t *args = json_pack("{s:s}", "command",
		"cp /bin/sleep /tmp/forgotten; echo x > new; exec /tmp/forgotten 100");
	struct principal who = {.kind = PRINCIPAL_AGENT, .id = "a", .tenant = "default"};
	struct call_input in = {.tool = "shell_run",
		.arguments = args,
		.session_id = fixture_session(f),
		.principal = &who};
	assert_int_equal(call_start(fixture_env(f), &in, &c, &err), 0);
	for (int i = 0; i < 100 && processes_named("/tmp/forgotten") == 0; i++)
		usleep(20000);
	assert_int_equal(processes_named("/tmp/forgotten"), 1);
	call_free(c);
	for (int i = 0; i < 100 && processes_named("/tmp/forgotten") > 0; i++)
		usleep(20000);
	assert_int_equal(processes_named("/tmp/forgotten"), 0);
	expect_file(f, "ws/new", NULL);
	json_decref(args);
	fixture_free(f);
}

static void output_is_bounded_and_says_so(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	json_t *r = fixture_ok(f, "shell_run", "%s",
		"{\"max_output\":1000,\"command\":\"echo first; head -c 5000000 /dev/zero | tr "
		"'\\\\0' x; echo last\"}");
	const char *out = text(r, "stdout");
	assert_true(strlen(out) < 1100);
	assert_non_null(strstr(out, "first\n"));
	assert_non_null(strstr(out, "bytes are left out here"));
	assert_non_null(strstr(out, "last\n"));
	assert_true(number(r, "stdout_omitted") > 4998000);
	json_decref(r);
	fixture_free(f);
}

/* Denies what would be changed, whatever was asked. */
static int deny_effects(const struct decider *d, const struct decide_request *q,
	struct decision *ret, struct err *err)
{
	(void)d;
	(void)err;
	*ret = (struct decision){.verdict = q->context.effects ? VERDICT_DENY : VERDICT_ALLOW,
		.reason = "no effects"};
	assert_string_equal(q->context.tier, "kernel");
	return 0;
}

static void policy_decides_the_effects(void **state)
{
	(void)state;
	static const struct decider decider = {.name = "no-effects", .decide = deny_effects};
	struct fixture *f = new_fixture(&decider, 0);
	refuse(f, "{\"command\":\"echo x > new\"}", ERR_DENIED);
	json_t *r = line(f, "echo seen");
	assert_string_equal(text(r, "stdout"), "seen\n");
	json_decref(r);
	fixture_free(f);
}

static void the_quota_holds_for_commands(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 1000 * 1000);
	refuse(f, "{\"command\":\"head -c 2000000 /dev/zero > big\"}", ERR_QUOTA);
	json_decref(line(f, "head -c 900000 /dev/zero > fits"));
	refuse(f, "{\"command\":\"head -c 900000 /dev/zero > too\"}", ERR_QUOTA);
	json_decref(line(f, "rm fits; head -c 900000 /dev/zero > too"));
	fixture_free(f);
}

static void a_change_from_outside_is_a_conflict(void **state)
{
	(void)state;
	struct err err;
	struct call *c = NULL;
	struct fixture *f = new_fixture(NULL, 0);
	fixture_put(f, "ws/a", "old");
	json_t *args = json_pack("{s:s}", "command", "sleep 0.5; echo mine > a; echo x > other");
	struct principal who = {.kind = PRINCIPAL_AGENT, .id = "a", .tenant = "default"};
	struct call_input in = {.tool = "shell_run",
		.arguments = args,
		.session_id = fixture_session(f),
		.principal = &who};
	assert_int_equal(call_start(fixture_env(f), &in, &c, &err), 0);
	usleep(100000);
	fixture_put(f, "ws/a", "theirs");
	call_wait(c);
	assert_int_equal(call_code(c), ERR_CONFLICT);
	assert_non_null(strstr(call_err(c)->text, "/workspace/a"));
	call_free(c);
	expect_file(f, "ws/a", "theirs");
	expect_file(f, "ws/other", NULL);
	json_decref(args);
	fixture_free(f);
}

static unsigned open_descriptors(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

/* CLOISTER_TEST_COMMANDS=1000 is what the full run asks for. */
static void many_commands_leave_nothing(void **state)
{
	(void)state;
	const char *asked = getenv("CLOISTER_TEST_COMMANDS");
	int n = asked ? atoi(asked) : 60;
	struct fixture *f = new_fixture(NULL, 0);
	json_decref(line(f, "true"));
	unsigned before = open_descriptors();
	for (int i = 0; i < n; i++)
		json_decref(line(f, "echo x > f; rm f; : > e"));
	assert_int_equal(open_descriptors(), before);
	/* The launcher stays. */
	for (int i = 0; i < 100 && processes_named("cloister-sandbox") > 1; i++)
		usleep(20000);
	assert_int_equal(processes_named("cloister-sandbox"), 1);
	fixture_free(f);
}

/* Where a cgroup can be used; where not, the answer says so. */
static void memory_and_processes_are_limited(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	json_t *r = fixture_ok(f, "shell_run", "%s",
		"{\"argv\":[\"python3\",\"-c\",\"import os,time\\nn=0\\ntry:\\n while "
		"n<3000:\\n  if os.fork()==0:\\n   time.sleep(99);os._exit(0)\\n  n+=1\\nexcept "
		"OSError:\\n print(n)\"]}");
	int processes = atoi(text(r, "stdout"));
	assert_true(processes > 100 && processes < 600);
	json_decref(r);
	r = fixture_ok(f, "shell_run", "%s",
		"{\"argv\":[\"python3\",\"-c\",\"import mmap\\nm=[]\\nfor i in range(25):\\n "
		"b=mmap.mmap(-1,100<<20)\\n b.write(b'x'*(100<<20))\\n m.append(b)\\n\"]}");
	bool told = *text(r, "not_limited") != '\0';
	assert_true(told || number(r, "exit_code") == 128 + SIGKILL);
	json_decref(r);
	fixture_free(f);
}

static void git_cannot_be_made_to_execute_outside(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	json_t *r =
		line(f, "git init -q a && cd a && echo evil > .git/hooks/pre-commit && chmod +x "
			".git/hooks/pre-commit && echo x > kept");
	assert_int_equal(number(r, "held_back"), 1);
	assert_string_equal(text(r, "held_back_first"), "/workspace/a/.git/hooks/pre-commit");
	json_decref(r);
	expect_file(f, "ws/a/.git/hooks/pre-commit", NULL);
	expect_file(f, "ws/a/kept", "x\n");
	char *config = fixture_get(f, "ws/a/.git/config");
	assert_non_null(config);
	r = line(f, "cd a && git config core.fsmonitor evil && git config alias.x '!evil'");
	assert_int_equal(number(r, "held_back"), 1);
	json_decref(r);
	expect_file(f, "ws/a/.git/config", config);
	r = line(f, "cd a && git config user.name somebody && git config user.email a@b");
	assert_int_equal(number(r, "held_back"), 0);
	json_decref(r);
	free(config);
	refuse(f, "{\"command\":\"git init -q --bare b && git -C b config core.sshCommand x\"}",
		ERR_DENIED);
	refuse(f, "{\"command\":\"cp -r a/.git c && echo evil > c/hooks/update\"}", ERR_DENIED);
	fixture_free(f);
}

static void programs_do_their_work(void **state)
{
	(void)state;
	struct fixture *f = new_fixture(NULL, 0);
	static const struct {
		const char *command, *out;
	} work[] = {
		{"python3 -c 'print(6*7)'", "42\n"},
		{"git init -q r && cd r && git config user.name n && git config user.email e && "
		 "echo 1 > a && git add a && git commit -qm m && git status --short | wc -l",
			"0\n"},
		{"cd r && git log --oneline | wc -l && git branch b && git stash list | wc -l",
			"1\n0\n"},
		{"git clone -q --no-hardlinks r r2 && cd r2 && git worktree add -q ../w && git -C "
		 "../w status "
		 "--short | wc -l",
			"0\n"},
		{"cd w && git config user.name n && git config user.email e && echo 2 > b && git "
		 "add b "
		 "&& git commit -qm two && git rebase -q HEAD~1 && echo 3 >> b && git stash -q && "
		 "git stash pop -q && git diff --stat | tail -1",
			" 1 file changed, 1 insertion(+)\n"},
		{"git init -q --bare bare.git && git -C r push -q ../bare.git HEAD:x && git -C "
		 "bare.git "
		 "branch | tr -d ' '",
			"x\n"},
		{"printf 'int main(void){return 3;}' > m.c && gcc -o m m.c && ./m; echo $?", "3\n"},
		{"printf 'all: m2\\nm2: m.c\\n\\tgcc -o m2 m.c\\n' > Makefile; make >/dev/null && "
		 "make | grep -c 'Nothing to be done'",
			"1\n"},
		{"make | grep -c 'Nothing to be done'", "1\n"},
		{"diff <(echo a) <(echo a) && echo same", "same\n"},
		{"seq 3 | xargs -n1 -P3 sh -c 'echo $0' | sort | tr '\\n' ' '", "1 2 3 "},
		{"mkfifo p; (echo through > p &) ; cat p; rm p", "through\n"},
		{"python3 -c \"import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); "
		 "s.listen(); c=socket.create_connection(s.getsockname()); print('ok')\"",
			"ok\n"},
		{"python3 -c \"import multiprocessing as m; print(m.Pool(2).map(abs,[-1,2]))\"",
			"[1, 2]\n"},
		{"nproc >/dev/null && id -un && echo $HOME && ls -d ~",
			"agent\n/home/agent\n/home/agent\n"},
		{"tar cf t.tar m.c && mkdir x && tar xf t.tar -C x && cmp m.c x/m.c && echo eq",
			"eq\n"},
		{"ln m.c hard && ls hard", "hard\n"},
		{"find . -name '*.c' | sort | head -2 | tr '\\n' ' '", "./m.c ./x/m.c "},
	};
	for (size_t i = 0; i < ARRAY_LEN(work); i++) {
		json_t *r = line(f, work[i].command);
		if (strcmp(text(r, "stdout"), work[i].out) != 0)
			fail_msg("%s: %s", work[i].command, json_dumps(r, 0));
		json_decref(r);
	}
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_answers_with_streams_and_status),
		cmocka_unit_test(changes_are_kept_also_of_a_failing_line_and_can_be_undone),
		cmocka_unit_test(a_dry_run_shows_and_keeps_nothing),
		cmocka_unit_test(the_working_directory_is_inside),
		cmocka_unit_test(wrong_calls_say_what_is_wrong),
		cmocka_unit_test(a_time_out_ends_everything_and_keeps_nothing),
		cmocka_unit_test(what_a_line_leaves_running_ends_with_it),
		cmocka_unit_test(freeing_a_running_call_ends_it),
		cmocka_unit_test(output_is_bounded_and_says_so),
		cmocka_unit_test(policy_decides_the_effects),
		cmocka_unit_test(the_quota_holds_for_commands),
		cmocka_unit_test(a_change_from_outside_is_a_conflict),
		cmocka_unit_test(many_commands_leave_nothing),
		cmocka_unit_test(memory_and_processes_are_limited),
		cmocka_unit_test(git_cannot_be_made_to_execute_outside),
		cmocka_unit_test(programs_do_their_work),
	};
	return cmocka_run_group_tests_name("shell_run", tests, NULL, NULL);
}
