/* Tests of the shell's parser: what is refused and where, every construct, and the scripts of this
 * machine. */
#include "testing.h"

#include "shell/script.h"

#include <ftw.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static const struct {
	const char *source, *error;
} refused[] = {
	{"echo 'a", "line 1, column 6: a ' that nothing closes"},
	{"echo \"a", "line 1, column 7: the end comes before the closing \""},
	{"echo ok\n  echo `a", "line 2, column 8: a ` that nothing closes"},
	{"echo $(a", "line 1, column 9: the end comes before )"},
	{"echo ${a", "line 1, column 6: a ${ that nothing closes"},
	{"echo ${", "line 1, column 8: a ${ without a name"},
	{"echo ${a b}", "line 1, column 9: a ${a with an unknown operator"},
	{"a &&", "line 1, column 5: the end comes before a command"},
	{"a\n| b", "line 2, column 1: '|' comes before a command"},
	{"; a", "line 1, column 1: ';' comes before a command"},
	{"a ;; b", "line 1, column 3: ';;' comes before a command"},
	{"if a; then b; done", "line 1, column 15: 'done' comes before fi"},
	{"if then b; fi", "line 1, column 4: 'then' comes before a command"},
	{"for in; do a; done", NULL},
	{"for x in a b do c; done", "line 1, column 20: 'done' comes before do"},
	{"while a; done", "line 1, column 10: 'done' comes before do"},
	{"case a in b) c", "line 1, column 15: the end comes before ;; or esac"},
	{"case a in b c) d;; esac", "line 1, column 13: 'c' comes before )"},
	{"(a", "line 1, column 3: the end comes before )"},
	{"a)", "line 1, column 2: ')' comes before a command"},
	{"{ a }", "line 1, column 6: the end comes before }"},
	{"f() a", "line 1, column 5: a function's body must be a compound command"},
	{"a >", "line 1, column 4: the end comes before the target of a redirection"},
	{"a > | b", "line 1, column 5: '|' comes before the target of a redirection"},
	{"[[ a", "line 1, column 5: a [[ that nothing closes"},
	{"[[ a == ]]", "line 1, column 9: an operand is missing in [["},
	{"[[ ( a ]]", "line 1, column 8: a ( in [[ that nothing closes"},
	{"a <<'b\nc'\n", "line 1, column 3: a here-document that no line can end"},
	{"a=(b", "line 1, column 3: an array that nothing closes"},
};

static void test_refusals_say_line_and_column(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct sh_script *script = NULL;
		struct err err = {0};
		int r = sh_parse(refused[i].source, strlen(refused[i].source), &script, &err);
		if (!refused[i].error) {
			assert_int_equal(r, 0); /* `in` may be a name, as bash says */
			sh_script_free(script);
			continue;
		}
		assert_int_equal(r, -ERR_PARSE);
		assert_null(script);
		assert_string_equal(err.text, refused[i].error);
	}
}

static void assert_limit(const char *before, const char *open, size_t count, const char *says)
{
	_cleanup_buf_ struct buf b = buf_init(64 << 20);
	struct sh_script *script = NULL;
	struct err err = {0};
	buf_puts(&b, before);
	for (size_t i = 0; i < count; i++)
		buf_puts(&b, open);
	assert_int_equal(sh_parse(buf_str(&b), b.len, &script, &err), -ERR_LIMIT);
	assert_null(script);
	assert_non_null(strstr(err.text, says));
}

static void test_every_limit_is_named(void **state)
{
	static const char *const deep[] = {"( ", "{ ", "$(", "${a:-", "$((", "if ", "case a in b) ",
		"\"$(", "a=(b=$(", "while "};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(deep); i++)
		assert_limit("", deep[i], 200, "more than 100 levels of nesting");
	assert_limit("[[ ", "( ", 200, "more than 100 levels of nesting");
	assert_limit("[[ ", "! ", 200, "more than 100 levels of nesting");
	assert_limit("[[ a ", "&& a ", 1001, "more than 1000 conditions in one [[");
	assert_limit("", "aaaaaaaa", (SH_MAX_BYTES / 8) + 1, "bytes");
	assert_limit("", "a;", SH_MAX_BYTES / 2, "bytes of tree");
}

static void test_a_zero_byte_is_refused(void **state)
{
	struct sh_script *script = NULL;
	struct err err = {0};
	(void)state;
	assert_int_equal(sh_parse("a\0b", 3, &script, &err), -ERR_PARSE);
	assert_string_equal(err.text, "the script has a zero byte at offset 1");
}

/* A line a construct; each prints to what prints the same, and keeps what names it. */
static const char *const constructs[] = {
	"a b 'c d' \"e $f\" g\\ h $'i\\'j' $\"k\"\n",
	"a=1 b+=2 c[1 + 1]=3 d=(x \"y z\") e\n",
	"a | b |& c && ! d || e &\n",
	"a > b 2>& 1 3<> c >> d >| e &> f &>> g < h <<< i {fd}> j\n",
	"cat <<A <<-'B'\nx $y\nA\nz $w\nB\n",
	"cat <<A$(b c)\nx\nA$(b c)\n",
	"< f { b }\n",
	"cat << <(a)\nx\n<(a)\n",
	"cat << -A <<- -B\nx\n-A\ny\n-B\n",
	"[[ $a =~ ^(b c|d)+$ && ! -f e || ( $g == !(h|i) ) ]]\n",
	("echo $((1 + (2 * 3))) $[4] ${#a} ${!b*} ${c:-\"}\"} ${d//\\//_} ${e[@]:1:2} ${f@Q} "
	 "${g^^} "
	 "${#} ${#-x}\n"),
	"((i = 1 , j++))\n",
	"echo `a \\`b\\``\n",
	"echo @(a|b) x{a,b}y {1..3} ~ *.c [a-z]?\n",
};

static void test_constructs_print_as_they_were(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(constructs); i++) {
		_cleanup_buf_ struct buf out = buf_init(4096);
		struct sh_script *script = NULL;
		struct err err = {0};
		if (sh_parse(constructs[i], strlen(constructs[i]), &script, &err) < 0)
			fail_msg("%s: %s", constructs[i], err.text);
		sh_print(sh_script_list(script), &out);
		assert_string_equal(buf_str(&out), constructs[i]);
		sh_script_free(script);
	}
}

static void test_positions_are_those_of_the_source(void **state)
{
	static const char source[] = "a\n  b c | d $(\n\te)\n";
	struct sh_script *script = NULL;
	struct err err = {0};
	(void)state;
	assert_int_equal(sh_parse(source, strlen(source), &script, &err), 0);
	const struct sh_command *b = sh_script_list(script)->items->next->pipelines->commands;
	const struct sh_command *d = b->next;
	const struct sh_part *sub = d->words->next->parts;
	assert_int_equal(b->pos.line, 2);
	assert_int_equal(b->pos.column, 3);
	assert_int_equal(b->words->next->pos.column, 5);
	assert_int_equal(d->pos.column, 9);
	assert_int_equal(sub->kind, SH_COMMAND);
	assert_int_equal(sub->list->items->pipelines->commands->pos.line, 3);
	assert_int_equal(sub->list->items->pipelines->commands->pos.column, 2);
	sh_script_free(script);
}

/* `((` is arithmetic where it can be, else two subshells. */
static void test_double_parentheses_are_told_apart(void **state)
{
	static const char arith[] = "((a))", shells[] = "((a); (b))";
	struct sh_script *script = NULL;
	struct err err = {0};
	(void)state;
	assert_int_equal(sh_parse(arith, strlen(arith), &script, &err), 0);
	assert_int_equal(
		sh_script_list(script)->items->pipelines->commands->kind, SH_ARITH_COMMAND);
	sh_script_free(script);
	assert_int_equal(sh_parse(shells, strlen(shells), &script, &err), 0);
	assert_int_equal(sh_script_list(script)->items->pipelines->commands->kind, SH_SUBSHELL);
	sh_script_free(script);
}

/* What the machine's scripts are tried with. */
static struct {
	unsigned long seed, seen, parsed;
	bool full;
} scripts;

static bool bash_takes(const char *path)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
			_exit(126);
		execl("/bin/bash", "bash", "-n", "--", path, NULL);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

static bool is_shell(const char *data, size_t n)
{
	static const char *const lines[] = {"#!/bin/sh", "#! /bin/sh", "#!/bin/bash",
		"#! /bin/bash", "#!/bin/dash", "#!/usr/bin/sh", "#!/usr/bin/bash",
		"#!/usr/bin/env bash", "#!/usr/bin/env sh"};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		size_t len = strlen(lines[i]);
		if (n > len && memcmp(data, lines[i], len) == 0 &&
			(data[len] == '\n' || data[len] == ' '))
			return true;
	}
	return false;
}

static void parse_twice(const char *path, const char *data, size_t n)
{
	_cleanup_buf_ struct buf once = buf_init(16 << 20), twice = buf_init(16 << 20);
	struct sh_script *script = NULL, *again = NULL;
	struct err err = {0};
	if (sh_parse(data, n, &script, &err) < 0)
		fail_msg("%s: %s", path, err.text);
	sh_print(sh_script_list(script), &once);
	if (sh_parse(buf_str(&once), once.len, &again, &err) < 0)
		fail_msg("%s, printed: %s", path, err.text);
	sh_print(sh_script_list(again), &twice);
	assert_false(once.failed);
	assert_string_equal(buf_str(&once), buf_str(&twice));
	sh_script_free(script);
	sh_script_free(again);
	scripts.parsed++;
}

static int try_file(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	static char data[1 << 20];
	(void)ftw;
	if (flag != FTW_F || !S_ISREG(st->st_mode) || (size_t)st->st_size > sizeof(data))
		return 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, data, 64);
	if (n > 0 && is_shell(data, (size_t)n) &&
		(scripts.full || scripts.seen++ % 10 == scripts.seed % 10) &&
		pread(fd, data, sizeof(data), 0) == st->st_size && bash_takes(path))
		parse_twice(path, data, (size_t)st->st_size);
	if (fd >= 0)
		(void)close(fd);
	return 0;
}

static void test_scripts_that_bash_takes_are_parsed(void **state)
{
	static const char *const roots[] = {
		"/usr/bin", "/usr/sbin", "/usr/share", "/var/lib/dpkg/info"};
	const char *full = getenv("CLOISTER_TEST_FULL"), *given = getenv("CLOISTER_TEST_SEED");
	(void)state;
	if (access("/bin/bash", X_OK) < 0)
		skip();
	scripts.full = full && *full == '1';
	scripts.seed = given ? strtoul(given, NULL, 10) : (unsigned long)time(NULL) / 86400;
	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		(void)nftw(roots[i], try_file, 32, FTW_PHYS);
	print_message("# %lu scripts parsed, seed %lu%s\n", scripts.parsed, scripts.seed,
		scripts.full ? ", all" : "");
	assert_true(scripts.parsed > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals_say_line_and_column),
		cmocka_unit_test(test_every_limit_is_named),
		cmocka_unit_test(test_a_zero_byte_is_refused),
		cmocka_unit_test(test_constructs_print_as_they_were),
		cmocka_unit_test(test_positions_are_those_of_the_source),
		cmocka_unit_test(test_double_parentheses_are_told_apart),
		cmocka_unit_test(test_scripts_that_bash_takes_are_parsed),
	};
	return cmocka_run_group_tests_name("shell parser", tests, NULL, NULL);
}
