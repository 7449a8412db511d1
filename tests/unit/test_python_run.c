/* python_run: code and files, what they print, what is kept, what is refused. */
#include "testing.h"

#include "fixture/fixture.h"

#include <fcntl.h>
#include <unistd.h>

static struct fixture *new_fixture(void)
{
	return fixture_new(&(struct fixture_options){.with_fence = true});
}

static json_t *member(const json_t *r, const char *key)
{
	return json_object_get(r, key);
}

static const char *text(const json_t *r, const char *key)
{
	const char *t = json_string_value(member(r, key));
	return t ? t : "";
}

/* Arguments are given as jansson packs them: FORMAT, then keys and values. */
#define RUN(f, ...) run(f, json_pack(__VA_ARGS__))
static json_t *run(struct fixture *f, json_t *args)
{
	assert_non_null(args);
	char *dumped = json_dumps(args, JSON_COMPACT);
	json_t *r = fixture_ok(f, "python_run", "%s", dumped);
	free(dumped);
	json_decref(args);
	return r;
}

static void expect(json_t *r, int exit_code, const char *out, const char *in_stderr)
{
	if (json_integer_value(member(r, "exit_code")) != exit_code ||
		strcmp(text(r, "stdout"), out) != 0 || !strstr(text(r, "stderr"), in_stderr))
		fail_msg("%s", json_dumps(r, 0));
	json_decref(r);
}

static void refuse(struct fixture *f, const char *args, enum err_code want, const char *words)
{
	struct sha256 before, after;
	enum err_code code;
	fixture_tree_hash(fixture_ws(f), &before);
	json_t *r = fixture_call(f, "python_run", args, &code);
	fixture_tree_hash(fixture_ws(f), &after);
	if (code != want || !strstr(text(member(r, "error"), "message"), words))
		fail_msg("%s: %s", args, json_dumps(r, 0));
	assert_true(json_is_false(member(r, "executed")));
	assert_memory_equal(&before, &after, sizeof(before));
	json_decref(r);
}

static void code_gets_arguments_input_and_answers_with_its_status(void **state)
{
	struct fixture *f = new_fixture();
	(void)state;
	expect(RUN(f, "{s:s,s:[s,s,s],s:s}", "code",
		       "import sys\nprint(sys.argv[1:], sys.stdin.read())\n"
		       "print('bad', file=sys.stderr)\nsys.exit(3)",
		       "args", "a b", "", "--c", "stdin", "given"),
		3, "['a b', '', '--c'] given\n", "bad\n");
	expect(RUN(f, "{s:s}", "code", "import sys; print(repr(sys.stdin.read()))"), 0, "''\n", "");
	expect(RUN(f, "{s:s}", "code", "1/0"), 1, "", "ZeroDivisionError");
	fixture_free(f);
}

static void a_file_runs_from_any_directory(void **state)
{
	struct fixture *f = new_fixture();
	(void)state;
	fixture_put(f, "ws/tool/main.py",
		"import os, sys, helper\nprint(os.getcwd(), sys.argv, helper.word)\n");
	fixture_put(f, "ws/tool/helper.py", "word = 'found'\n");
	fixture_put(f, "ws/elsewhere/x", "");
	expect(RUN(f, "{s:s,s:s,s:[s]}", "path", "tool/main.py", "working_directory", "elsewhere",
		       "args", "1"),
		0, "/workspace/elsewhere ['/workspace/tool/main.py', '1'] found\n", "");
	/* Nothing is left of having imported. */
	char path[4096];
	snprintf(path, sizeof(path), "%s/tool/__pycache__", fixture_ws(f));
	assert_int_equal(access(path, F_OK), -1);
	fixture_free(f);
}

static void changes_are_kept_and_can_be_undone(void **state)
{
	struct fixture *f = new_fixture();
	(void)state;
	fixture_put(f, "ws/data", "1\n2\n");
	json_t *r = RUN(f, "{s:s}", "code",
		"n = sum(map(int, open('data')))\nopen('sum', 'w').write(str(n))");
	assert_int_equal(json_array_size(member(r, "changes")), 1);
	json_decref(r);
	char *now = fixture_get(f, "ws/sum");
	assert_string_equal(now, "3");
	free(now);
	json_decref(fixture_ok(f, "history_undo", "{}"));
	assert_null(fixture_get(f, "ws/sum"));
	r = RUN(f, "{s:s,s:b}", "code", "open('new', 'w').write('x\\n')", "dry_run", 1);
	assert_non_null(strstr(text(r, "diff"), "+x"));
	json_decref(r);
	assert_null(fixture_get(f, "ws/new"));
	fixture_free(f);
}

static void a_time_out_keeps_nothing_but_what_was_printed(void **state)
{
	struct fixture *f = new_fixture();
	(void)state;
	json_t *r = RUN(f, "{s:s,s:i}", "code",
		"print('before', flush=True)\nopen('made', 'w').close()\nwhile True: pass",
		"timeout_ms", 1500);
	assert_true(json_is_true(member(r, "timed_out")));
	assert_true(json_is_true(member(r, "changes_dropped")));
	expect(r, 137, "before\n", "");
	assert_null(fixture_get(f, "ws/made"));
	fixture_free(f);
}

static void memory_is_limited(void **state)
{
	struct fixture *f = new_fixture();
	(void)state;
	json_t *r = RUN(f, "{s:s,s:i}", "code",
		"import sys\nprint('start', flush=True)\nx = b'x' * (400 * 1024 * "
		"1024)\nprint(len(x))",
		"memory_mb", 64);
	/* Where no cgroup can be used the answer says so, and nothing ends the program. */
	if (member(r, "not_limited")) {
		json_decref(r);
		fixture_free(f);
		print_message("# skipped: memory cannot be limited here\n");
		skip();
	}
	assert_string_equal(text(r, "stdout"), "start\n");
	assert_int_not_equal(json_integer_value(member(r, "exit_code")), 0);
	json_decref(r);
	fixture_free(f);
}

static void there_is_no_network_and_nothing_of_the_host(void **state)
{
	struct fixture *f = new_fixture();
	(void)state;
	expect(RUN(f, "{s:s}", "code",
		       "import socket, os\n"
		       "try: socket.create_connection(('192.0.2.1', 9), 2)\n"
		       "except OSError as e: print(e.errno == 101)\n"
		       "print(os.path.exists('/root'), os.getuid() != 0)\n"
		       "print([p for p in os.listdir('/proc') if p.isdigit() and int(p) > 100])"),
		0, "True\nFalse True\n[]\n", "");
	fixture_free(f);
}

static void wrong_calls_say_what_is_wrong(void **state)
{
	struct fixture *f = new_fixture();
	(void)state;
	fixture_put(f, "ws/dir/x", "");
	refuse(f, "{}", ERR_INVALID_ARGUMENT, "either code or path");
	refuse(f, "{\"code\":\"1\",\"path\":\"dir/x\"}", ERR_INVALID_ARGUMENT,
		"either code or path");
	refuse(f, "{\"code\":\"\"}", ERR_INVALID_ARGUMENT, "code");
	refuse(f, "{\"code\":\"1\",\"memory_mb\":1}", ERR_INVALID_ARGUMENT, "memory_mb");
	refuse(f, "{\"code\":\"1\",\"network\":true}", ERR_INVALID_ARGUMENT, "network");
	refuse(f, "{\"path\":\"none.py\"}", ERR_NOT_FOUND, "none.py");
	refuse(f, "{\"path\":\"dir\"}", ERR_IS_DIRECTORY, "dir");
	refuse(f, "{\"path\":\"../x.py\"}", ERR_PATH_ESCAPE, "outside");
	refuse(f, "{\"code\":\"1\",\"working_directory\":\"/etc\"}", ERR_PATH_ESCAPE, "outside");
	fixture_free(f);
}

static void without_a_launcher_nothing_runs(void **state)
{
	struct fixture *f = fixture_new(&(struct fixture_options){0});
	(void)state;
	refuse(f, "{\"code\":\"open('made', 'w')\"}", ERR_UNAVAILABLE, "starts commands");
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_gets_arguments_input_and_answers_with_its_status),
		cmocka_unit_test(a_file_runs_from_any_directory),
		cmocka_unit_test(changes_are_kept_and_can_be_undone),
		cmocka_unit_test(a_time_out_keeps_nothing_but_what_was_printed),
		cmocka_unit_test(memory_is_limited),
		cmocka_unit_test(there_is_no_network_and_nothing_of_the_host),
		cmocka_unit_test(wrong_calls_say_what_is_wrong),
		cmocka_unit_test(without_a_launcher_nothing_runs),
	};
	return cmocka_run_group_tests_name("python_run", tests, NULL, NULL);
}
