/* Bearer tokens: what is kept, who gets in, and what is refused. */
#include "testing.h"

#include "govern/token.h"
#include "sys/fs.h"

#include <fcntl.h>
#include <unistd.h>

static char dir[64];
static int state = -1;

static int set_up(void **ctx)
{
	(void)ctx;
	(void)snprintf(dir, sizeof(dir), "/tmp/test_token.XXXXXX");
	assert_non_null(mkdtemp(dir));
	state = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return state < 0;
}

static int tear_down(void **ctx)
{
	(void)ctx;
	(void)unlinkat(state, TOKEN_FILE, 0);
	(void)unlinkat(state, TOKEN_FILE ".lock", 0);
	(void)close(state);
	return rmdir(dir);
}

static struct token_table *loaded(void)
{
	struct err err;
	struct token_table *t;
	assert_int_equal(token_table_new(state, &t, &err), 0);
	assert_int_equal(token_table_load(t, &err), 0);
	return t;
}

static void add(const char *name, const char *tenant, enum role role, int64_t expires, char *text)
{
	struct err err;
	struct token spec = {.role = role, .expires = expires};
	(void)snprintf(spec.name, sizeof(spec.name), "%s", name);
	(void)snprintf(spec.tenant, sizeof(spec.tenant), "%s", tenant);
	assert_int_equal(token_add(state, &spec, text, &err), 0);
}

static void a_file_with(const char *text, mode_t mode)
{
	int fd = openat(state, TOKEN_FILE, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, mode);
	assert_true(fd >= 0 && fchmod(fd, mode) == 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	(void)close(fd);
}

static void nobody_is_known_without_a_file(void **ctx)
{
	(void)ctx;
	struct token_table *t = loaded();
	assert_null(token_table_find(t, STR("anything"), 0));
	assert_null(token_table_find(t, STR(""), 0));
	token_table_free(t);
}

static void a_token_is_known_and_not_kept(void **ctx)
{
	char text[TOKEN_LEN + 1], file[4096] = "";
	(void)ctx;
	add("ci", "acme", ROLE_CRITIC, 0, text);
	int fd = openat(state, TOKEN_FILE, O_RDONLY | O_CLOEXEC);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(read(fd, file, sizeof(file) - 1) > 0);
	(void)close(fd);
	assert_null(strstr(file, text));
	assert_null(strstr(file, text + sizeof(TOKEN_PREFIX) - 1));
	struct token_table *t = loaded();
	const struct token *found = token_table_find(t, str_of(text), 0);
	assert_non_null(found);
	assert_string_equal(found->name, "ci");
	assert_string_equal(found->tenant, "acme");
	assert_int_equal(found->role, ROLE_CRITIC);
	assert_false(found->admin);
	text[TOKEN_LEN - 1] ^= 1;
	assert_null(token_table_find(t, str_of(text), 0));
	text[TOKEN_LEN - 1] ^= 1;
	assert_null(token_table_find(t, (struct str){text, TOKEN_LEN - 1}, 0));
	token_table_free(t);
}

static void an_expired_token_is_nobody(void **ctx)
{
	char text[TOKEN_LEN + 1];
	(void)ctx;
	add("old", "acme", ROLE_DEVELOPER, 1000, text);
	struct token_table *t = loaded();
	assert_non_null(token_table_find(t, str_of(text), 999));
	assert_null(token_table_find(t, str_of(text), 1000));
	token_table_free(t);
}

static void a_removed_token_is_nobody_after_the_next_look(void **ctx)
{
	char text[TOKEN_LEN + 1], other[TOKEN_LEN + 1];
	struct err err;
	(void)ctx;
	add("a", "acme", ROLE_DEVELOPER, 0, text);
	add("b", "acme", ROLE_DEVELOPER, 0, other);
	struct token_table *t = loaded();
	assert_int_equal(token_table_refresh(t, 5000, &err), 0);
	assert_int_equal(token_remove(state, "a", &err), 0);
	assert_int_equal(token_table_refresh(t, 5000 + TOKEN_LOOK_MS - 1, &err), 0);
	assert_non_null(token_table_find(t, str_of(text), 0));
	assert_int_equal(token_table_refresh(t, 5000 + TOKEN_LOOK_MS, &err), 0);
	assert_null(token_table_find(t, str_of(text), 0));
	assert_non_null(token_table_find(t, str_of(other), 0));
	assert_int_equal(token_remove(state, "a", &err), -ERR_NOT_FOUND);
	token_table_free(t);
}

static void a_name_is_given_once(void **ctx)
{
	char text[TOKEN_LEN + 1];
	struct err err;
	struct token spec = {.name = "ci", .tenant = "other", .role = ROLE_DEVELOPER};
	(void)ctx;
	add("ci", "acme", ROLE_DEVELOPER, 0, text);
	assert_int_equal(token_add(state, &spec, text, &err), -ERR_EXISTS);
	struct token bad = {.name = "a b", .tenant = "other"};
	assert_int_equal(token_add(state, &bad, text, &err), -ERR_INVALID_ARGUMENT);
	struct token tab = {.name = "a", .tenant = "t\tadmin"};
	assert_int_equal(token_add(state, &tab, text, &err), -ERR_INVALID_ARGUMENT);
}

static void a_file_open_to_others_counts_for_nothing(void **ctx)
{
	struct err err;
	struct token_table *t;
	(void)ctx;
	a_file_with("", 0644);
	assert_int_equal(token_table_new(state, &t, &err), 0);
	assert_int_equal(token_table_load(t, &err), -ERR_DENIED);
	token_table_free(t);
}

#define DIGEST "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void a_line_that_does_not_read_refuses_the_file(void **ctx)
{
	static const char *const bad[] = {
		"\n",
		DIGEST "\tn\tt\tdeveloper\tuser\t0\n",
		DIGEST "\tn\tt\tdeveloper\tuser\t0\t0\t0\n",
		DIGEST "\tn\tt\troot\tuser\t0\t0\n",
		DIGEST "\tn\tt\tdeveloper\tAdmin\t0\t0\n",
		DIGEST "\tn\tt\tdeveloper\tuser\t-1\t0\n",
		DIGEST "\t\tt\tdeveloper\tuser\t0\t0\n",
		"e3\tn\tt\tdeveloper\tuser\t0\t0\n",
	};
	struct err err;
	(void)ctx;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct token_table *t;
		a_file_with(bad[i], 0600);
		assert_int_equal(token_table_new(state, &t, &err), 0);
		assert_int_equal(token_table_load(t, &err), -ERR_CORRUPT);
		assert_string_equal(err.text, "line 1 of the file of tokens does not read");
		assert_null(token_table_find(t, STR(""), 0));
		token_table_free(t);
	}
	a_file_with(DIGEST "\tn\tt\tdeveloper\tuser\t0\t0\n", 0600);
	struct token_table *t = loaded();
	assert_non_null(token_table_find(t, STR(""), 0)); /* the digest of nothing */
	token_table_free(t);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(nobody_is_known_without_a_file),
		CASE(a_token_is_known_and_not_kept),
		CASE(an_expired_token_is_nobody),
		CASE(a_removed_token_is_nobody_after_the_next_look),
		CASE(a_name_is_given_once),
		CASE(a_file_open_to_others_counts_for_nothing),
		CASE(a_line_that_does_not_read_refuses_the_file),
	};
	return cmocka_run_group_tests_name("token", tests, NULL, NULL);
}
