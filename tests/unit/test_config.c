/* Tests of src/codec/config.h: the table, each key from each place, and what messages say. */
#include "testing.h"

#include "base/glob.h"
#include "codec/config_file.h"

#include <ctype.h>
#include <fcntl.h>
#include <sys/stat.h>

static struct config fresh(void)
{
	struct config c;
	struct err err;
	assert_int_equal(config_init(&c, &err), 0);
	return c;
}

static int from_file(struct config *c, const char *text, struct err *err)
{
	return config_read(c, "cloister.toml", str_of(text), err);
}

static int from_environment(struct config *c, const char *name, const char *value, struct err *err)
{
	char entry[1024];
	(void)snprintf(entry, sizeof(entry), "%s=%s", name, value);
	const char *const environment[] = {"PATH=/bin", entry, "HOME=/", NULL};
	return config_environment(c, environment, err);
}

static int from_flag(struct config *c, const char *flag, const char *value, struct err *err)
{
	char argument[1024];
	unsigned taken = 9;
	(void)snprintf(argument, sizeof(argument), "--%s=%s", flag, value);
	const char *const args[] = {argument, "next", NULL};
	int r = config_argument(c, args, &taken, err);
	assert_int_equal(taken, r == 0 ? 1 : 9);
	return r;
}

/* A value as text into one place; 0 or the error. */
static int from(enum config_source source, struct config *c, const struct config_key *k,
	const char *value, struct err *err)
{
	char line[1024];
	bool bare = k->type == CONFIG_NUMBER || k->type == CONFIG_BOOL;
	if (source == CONFIG_ENVIRONMENT)
		return from_environment(c, k->environment, value, err);
	if (source == CONFIG_FLAG)
		return from_flag(c, k->flag, value, err);
	(void)snprintf(line, sizeof(line), bare ? "%s = %s\n" : "%s = '%s'\n", k->key, value);
	return from_file(c, line, err);
}

#define EACH_KEY(k)                                                                                \
	for (const struct config_key *k = config_keys; k < config_keys + CONFIG_ID_MAX_; k++)

static void names_of_variables_and_options_follow_from_the_key(void **state)
{
	(void)state;
	EACH_KEY(k)
	{
		char environment[128] = "CLOISTER_", flag[128] = "";
		for (size_t i = 0; k->key[i]; i++) {
			bool word = isalpha((unsigned char)k->key[i]) != 0;
			environment[9 + i] = word ? (char)toupper((unsigned char)k->key[i]) : '_';
			flag[i] = word ? k->key[i] : '-';
		}
		assert_string_equal(k->environment, environment);
		assert_string_equal(k->flag, flag);
		assert_true(k->sentence[0] && k->sentence[strlen(k->sentence) - 1] != '.');
	}
}

static void every_default_could_be_said_in_the_environment(void **state)
{
	(void)state;
	struct err err;
	EACH_KEY(k)
	{
		struct config c = fresh();
		if (*k->fallback)
			assert_int_equal(from(CONFIG_ENVIRONMENT, &c, k, k->fallback, &err), 0);
		config_done(&c);
	}
	struct config c = fresh();
	assert_int_equal(c.quota_bytes, QUOTA_BYTES_DEFAULT);
	assert_int_equal(c.quota_entries, QUOTA_ENTRIES_DEFAULT);
	assert_int_equal(c.files_read_limit_mb, LIMIT_READ_DEFAULT_MB);
	assert_int_equal(c.durability, CONFIG_DURABILITY_PROCESS);
	assert_int_equal(c.profile, CONFIG_PROFILE_WORKSPACE);
	assert_false(c.strict_links || c.history_required);
	assert_null(c.state_dir);
	assert_string_equal(c.files_exclude[0], ".git");
	config_done(&c);
}

static void every_number_is_taken_up_to_its_bounds_from_every_place(void **state)
{
	(void)state;
	EACH_KEY(k)
	{
		const struct {
			long long v;
			bool ok;
		} rows[] = {
			{k->min, true}, {k->max, true}, {k->max + 1, false}, {k->min - 1, false}};
		if (k->type != CONFIG_NUMBER && k->type != CONFIG_SIZE)
			continue;
		for (int place = CONFIG_FILE; place <= CONFIG_FLAG; place++)
			for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
				char value[32];
				struct err err;
				struct config c = fresh();
				const int64_t *field = (const int64_t *)((char *)&c + k->offset);
				int64_t before = *field;
				(void)snprintf(value, sizeof(value), "%lld", rows[i].v);
				int r = from((enum config_source)place, &c, k, value, &err);
				assert_int_equal(r, rows[i].ok ? 0 : -ERR_CONFIG);
				assert_int_equal(*field, rows[i].ok ? rows[i].v : before);
				config_done(&c);
			}
	}
}

/* What the highest of some places said must stand, whatever the order. */
static void a_flag_beats_the_environment_beats_the_file(void **state)
{
	(void)state;
	static const int orders[][3] = {
		{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
	static const char *const words[] = {"", "/file", "/environment", "/flag"};
	static const char *const numbers[] = {"", "11", "12", "13"};
	for (size_t o = 0; o < ARRAY_LEN(orders); o++) {
		struct err err;
		struct config c = fresh();
		int best = CONFIG_DEFAULT;
		for (int i = 0; i < 3; i++) {
			enum config_source s = (enum config_source)orders[o][i];
			best = MAX(best, (int)s);
			assert_int_equal(
				from(s, &c, &config_keys[CONFIG_ID_state_dir], words[s], &err), 0);
			assert_int_equal(from(s, &c, &config_keys[CONFIG_ID_search_time_ms],
						 numbers[s], &err),
				0);
			assert_string_equal(c.state_dir, words[best]);
			assert_int_equal(c.search_time_ms, 10 + best);
			assert_int_equal(c.source[CONFIG_ID_state_dir], best);
			assert_int_equal(c.source[CONFIG_ID_profile], CONFIG_DEFAULT);
		}
		config_done(&c);
	}
}

static void refusals_name_the_place_and_what_would_be_right(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want, *hint;
	} rows[] = {
		{"quota.bytes = 0\n", "cloister.toml, line 1: quota.bytes: '0' is out of range",
			"a number of bytes from 1 to 1125899906842624, or text such as \"100M\" "
			"(K, M, G, "
			"T)"},
		{"\n[quota]\nentries = 'many'\n",
			"cloister.toml, line 3: quota.entries: the value cannot be of type string",
			"a whole number from 1 to 1000000000"},
		{"quota.bytes = '5X'\n",
			"cloister.toml, line 1: quota.bytes: '5X' is no whole number",
			"a number of bytes"},
		{"quota.bytes = '9999999999999T'\n",
			"cloister.toml, line 1: quota.bytes: '9999999999999T' is out of range",
			"a number"},
		{"strict_links = 1\n",
			"cloister.toml, line 1: strict_links: the value cannot be of type integer",
			"true or false"},
		{"durability = 'disk'\n",
			"cloister.toml, line 1: durability: 'disk' is none of the words",
			"one of process, power"},
		{"state.dir = 'var'\n",
			"cloister.toml, line 1: state.dir: 'var' is no absolute path",
			"an absolute path"},
		{"state.dir = \"/a\\u0000b\"\n",
			"cloister.toml, line 1: state.dir: '/a\\x00b' is too long for a path or "
			"holds NUL",
			"an absolute path"},
		{"files.exclude = [\n'a',\n'[b'\n]\n",
			"cloister.toml, line 3: files.exclude: '[b' ",
			"a list of at most 64 patterns"},
		{"files.exclude = 'a'\n",
			"cloister.toml, line 1: files.exclude: the value cannot be of type string",
			"a list of"},
		{"files.exclude = [1]\n",
			"cloister.toml, line 1: files.exclude: every item is text in quotes",
			"a list"},
		{"# x\nquota.byte = 1\n", "cloister.toml, line 2: there is no key quota.byte",
			"the nearest key is quota.bytes"},
		{"\"quota.bytes\" = 1\n", "cloister.toml, line 1: there is no key quota.bytes", ""},
		{"elsewhere = 1\n", "cloister.toml, line 1: there is no key elsewhere",
			"cloister.toml(5) lists the keys"},
		{"[quota.bytes]\n",
			"cloister.toml, line 1: quota.bytes: the value cannot be of type table",
			"a number of bytes"},
		{"quota = 5\n", "cloister.toml, line 1: quota is a table, no value", ""},
		{"[[quota]]\nbytes = 1\n", "cloister.toml, line 1: quota is a table, no value", ""},
		{"profile = 'open\n", "cloister.toml: TOML, line 1, column 16: ", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err;
		struct config c = fresh();
		err_clear(&err);
		assert_int_equal(from_file(&c, rows[i].text, &err), -ERR_CONFIG);
		if (strncmp(err.text, rows[i].want, strlen(rows[i].want)) != 0)
			fail_msg("'%s' gave '%s'", rows[i].text, err.text);
		if (strncmp(err.hint, rows[i].hint, strlen(rows[i].hint)) != 0)
			fail_msg("'%s' gave the hint '%s'", rows[i].text, err.hint);
		config_done(&c);
	}
}

static void variables_and_options_are_named_too(void **state)
{
	(void)state;
	struct err err;
	unsigned taken;
	struct config c = fresh();
	assert_int_equal(from_environment(&c, "CLOISTER_QUOTA_ENTRIES", "-1", &err), -ERR_CONFIG);
	assert_string_equal(
		err.text, "environment variable CLOISTER_QUOTA_ENTRIES: '-1' is no whole number");
	assert_int_equal(from_flag(&c, "durability", "", &err), -ERR_CONFIG);
	assert_string_equal(err.text, "option --durability: '' is none of the words");
	const char *const alone[] = {"--quota-bytes", NULL};
	assert_int_equal(config_argument(&c, alone, &taken, &err), -ERR_CONFIG);
	assert_string_equal(err.text, "option --quota-bytes: a value is missing");
	assert_int_equal(from_flag(&c, "quota-entries", "\x1b[2J\xff", &err), -ERR_CONFIG);
	assert_null(strchr(err.text, '\x1b'));
	assert_true(utf8_valid(err.text, strlen(err.text)));
	assert_int_equal(c.quota_entries, QUOTA_ENTRIES_DEFAULT);
	config_done(&c);
}

static void older_variables_are_honoured_and_ours_win(void **state)
{
	(void)state;
	struct err err;
	struct config c = fresh();
	assert_int_equal(from_environment(&c, "SHANNON_SESSION_WORKSPACES_DIR", "/srv/s", &err), 0);
	assert_string_equal(c.sessions_base, "/srv/s");
	assert_int_equal(from_environment(&c, "SHANNON_WORKSPACE", "/srv/w", &err), 0);
	assert_string_equal(c.workspace_shared, "/srv/w");
	assert_int_equal(from_environment(&c, "SHANNON_MAX_WORKSPACE_SIZE_MB", "5", &err), 0);
	assert_int_equal(c.quota_bytes, 5 * 1024 * 1024);
	static const char *const bad[] = {
		"0", "1G", "1073741825", "9223372036854775807", "x", "1.5"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(
			from_environment(&c, "SHANNON_MAX_WORKSPACE_SIZE_MB", bad[i], &err),
			-ERR_CONFIG);
		assert_string_equal(err.hint, "a whole number from 1 to 1073741824");
	}
	assert_int_equal(c.quota_bytes, 5 * 1024 * 1024);
	const char *const both[] = {
		"CLOISTER_QUOTA_BYTES=7", "SHANNON_MAX_WORKSPACE_SIZE_MB=3", NULL};
	assert_int_equal(config_environment(&c, both, &err), 0);
	assert_int_equal(c.quota_bytes, 7);
	config_done(&c);
}

static void empty_variables_count_as_none(void **state)
{
	(void)state;
	struct err err;
	struct config c = fresh();
	EACH_KEY(k)
	assert_int_equal(from_environment(&c, k->environment, "", &err), 0);
	for (int i = 0; i < CONFIG_ID_MAX_; i++)
		assert_int_equal(c.source[i], CONFIG_DEFAULT);
	config_done(&c);
}

static void options_are_taken_with_their_values_and_others_left(void **state)
{
	(void)state;
	static const struct {
		const char *args[3];
		unsigned taken;
	} rows[] = {
		{{"--quota-bytes", "5M", NULL}, 2},
		{{"--quota-bytes=5M", "x", NULL}, 1},
		{{"--strict-links", "false", NULL}, 1},
		{{"--strict-links=false", NULL}, 1},
		{{"--json", "x", NULL}, 0},
		{{"-quota-bytes", "x", NULL}, 0},
		{{"--", NULL}, 0},
		{{"--quota", "5", NULL}, 0},
		{{"--quota-bytesx=5", NULL}, 0},
		{{"write", NULL}, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err;
		struct config c = fresh();
		unsigned taken = 9;
		assert_int_equal(config_argument(&c, rows[i].args, &taken, &err), 0);
		assert_int_equal(taken, rows[i].taken);
		assert_int_equal(c.quota_bytes, i < 2 ? 5 << 20 : QUOTA_BYTES_DEFAULT);
		assert_int_equal(c.strict_links, i == 2);
		config_done(&c);
	}
}

static void lists_come_as_arrays_or_words(void **state)
{
	(void)state;
	struct err err;
	struct config c = fresh();
	assert_int_equal(from_file(&c, "files.exclude = ['a b', '*.o']", &err), 0);
	assert_string_equal(c.files_exclude[0], "a b");
	assert_string_equal(c.files_exclude[1], "*.o");
	assert_null(c.files_exclude[2]);
	assert_int_equal(from_environment(&c, "CLOISTER_FILES_EXCLUDE", "  x \t{a,b} ", &err), 0);
	assert_string_equal(c.files_exclude[0], "x");
	assert_string_equal(c.files_exclude[1], "{a,b}");
	assert_null(c.files_exclude[2]);
	assert_int_equal(from_flag(&c, "files-exclude", "", &err), 0);
	assert_null(c.files_exclude[0]);
	char many[2 * (CONFIG_LIST_MAX + 1) + 1];
	for (size_t i = 0; i <= CONFIG_LIST_MAX; i++)
		memcpy(many + 2 * i, "a ", 3);
	assert_int_equal(from_flag(&c, "files-exclude", many, &err), -ERR_CONFIG);
	assert_string_equal(err.text, "option --files-exclude: the list is too long");
	many[2 * CONFIG_LIST_MAX] = '\0';
	assert_int_equal(from_flag(&c, "files-exclude", many, &err), 0);
	config_done(&c);
}

/* --- the file on disk --- */

static char path[64];

static void write_file(mode_t mode, const char *text, off_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(ftruncate(fd, size ? size : (off_t)strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
}

static void only_a_file_that_nobody_else_can_write_is_read(void **state)
{
	(void)state;
	struct err err;
	struct config c = fresh();
	char dir[] = "/tmp/test_config.XXXXXX";
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/c.toml", dir);
	assert_int_equal(config_load(&c, path, &err), -ERR_CONFIG);
	assert_non_null(strstr(err.text, "No such file"));
	assert_int_equal(config_load(&c, dir, &err), -ERR_CONFIG);
	assert_non_null(strstr(err.text, "no regular file"));
	static const mode_t open_modes[] = {0660, 0606, 0666, 0622};
	for (size_t i = 0; i < ARRAY_LEN(open_modes); i++) {
		write_file(open_modes[i], "quota.bytes = 5\n", 0);
		assert_int_equal(config_load(&c, path, &err), -ERR_CONFIG);
		assert_non_null(strstr(err.text, "others may write this file"));
	}
	write_file(0600, "# large\n", CONFIG_FILE_BYTES_MAX + 1);
	assert_int_equal(config_load(&c, path, &err), -ERR_CONFIG);
	assert_non_null(strstr(err.text, "too large"));
	assert_int_equal(c.quota_bytes, QUOTA_BYTES_DEFAULT);
	write_file(0644, "quota.bytes = 5\n", 0);
	assert_int_equal(config_load(&c, path, &err), 0);
	assert_int_equal(c.quota_bytes, 5);
	write_file(0644, "", 0);
	assert_int_equal(config_load(&c, path, &err), 0);
	config_done(&c);
	(void)unlink(path);
	(void)rmdir(dir);
}

static void the_variable_names_the_file(void **state)
{
	(void)state;
	struct err err;
	struct config c = fresh();
	char dir[] = "/tmp/test_config.XXXXXX";
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/c.toml", dir);
	write_file(0600, "durability = 'power'\n", 0);
	assert_int_equal(setenv("CLOISTER_CONFIG", path, 1), 0);
	assert_int_equal(config_load(&c, NULL, &err), 0);
	assert_int_equal(c.durability, CONFIG_DURABILITY_POWER);
	(void)unlink(path);
	assert_int_equal(config_load(&c, NULL, &err), -ERR_CONFIG);
	assert_int_equal(unsetenv("CLOISTER_CONFIG"), 0);
	config_done(&c);
	(void)rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_variables_and_options_follow_from_the_key),
		cmocka_unit_test(every_default_could_be_said_in_the_environment),
		cmocka_unit_test(every_number_is_taken_up_to_its_bounds_from_every_place),
		cmocka_unit_test(a_flag_beats_the_environment_beats_the_file),
		cmocka_unit_test(refusals_name_the_place_and_what_would_be_right),
		cmocka_unit_test(variables_and_options_are_named_too),
		cmocka_unit_test(older_variables_are_honoured_and_ours_win),
		cmocka_unit_test(empty_variables_count_as_none),
		cmocka_unit_test(options_are_taken_with_their_values_and_others_left),
		cmocka_unit_test(lists_come_as_arrays_or_words),
		cmocka_unit_test(only_a_file_that_nobody_else_can_write_is_read),
		cmocka_unit_test(the_variable_names_the_file),
	};
	return cmocka_run_group_tests_name("config", tests, NULL, NULL);
}
