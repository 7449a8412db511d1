/*
 * Tests of path resolution: hostile spellings against every operation, denials first. Every case
 * runs with a link-free and a link-ridden tree, with an empty view (the short way) and with a view
 * that holds something (the long way), and looks afterwards that nothing outside has changed.
 */
#include "workspace_fixture.h"

#include <sys/socket.h>
#include <sys/un.h>

struct out {
	struct fixture *f;
	char dir[96]; /* beside the workspace, with its name as a prefix */
};

/* A tree with every trap in it. */
static int set_up(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	void *fx;
	fx_setup(&fx);
	struct fixture *f = o->f = fx;
	snprintf(o->dir, sizeof(o->dir), "%s_evil", f->dir);
	assert_int_equal(mkdir(o->dir, 0755), 0);
	char path[128], target[160];
	snprintf(path, sizeof(path), "%s/secret", o->dir);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(fs_write(fd, "secret", 6, 0), 0);
	close(fd);
	fx_host_mkdir(f, "d");
	fx_host_mkdir(f, "d/sub");
	fx_host_write(f, "d/file", "inside");
	fx_host_write(f, "plain", "plain");
	fx_host_symlink(f, "d/file", "good");
	fx_host_symlink(f, "d", "gooddir");
	fx_host_symlink(f, "../good", "d/back");
	fx_host_symlink(f, "sub", "d/subl");
	fx_host_symlink(f, path, "abs");
	fx_host_symlink(f, o->dir, "absdir");
	const char *base = strrchr(o->dir, '/') + 1;
	snprintf(target, sizeof(target), "../%s/secret", base);
	fx_host_symlink(f, target, "rel");
	snprintf(target, sizeof(target), "../%s", base);
	fx_host_symlink(f, target, "reldir");
	snprintf(target, sizeof(target), "../../%s", base);
	fx_host_symlink(f, target, "d/reldir");
	fx_host_symlink(f, "loop2", "loop1");
	fx_host_symlink(f, "loop1", "loop2");
	fx_host_symlink(f, "../gone", "dangling-out");
	fx_host_symlink(f, "nowhere", "dangling-in");
	fx_host_symlink(f, "/proc/self/root", "proc");
	fx_host_symlink(f, "/proc/self/cwd/x", "cwd");
	fx_host_symlink(f, ".cloister", "store");
	fx_host_symlink(f, ".cloister/state", "store-state");
	fx_host_symlink(f, "d/../.cloister", "store-up");
	for (int i = 0; i < 41; i++) {
		char a[16], b[16];
		snprintf(a, sizeof(a), "c%d", i);
		snprintf(b, sizeof(b), i == 40 ? "plain" : "c%d", i + 1);
		fx_host_symlink(f, b, a);
	}
	assert_int_equal(mkfifoat(f->fd, "fifo", 0644), 0);
	*state = o;
	return 0;
}

static int tear_down(void **state)
{
	struct out *o = *state;
	char path[128], text[16] = {0};
	snprintf(path, sizeof(path), "%s/secret", o->dir);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	assert_true(fd >= 0);
	assert_int_equal(fs_read(fd, text, sizeof(text), 0), 6);
	assert_string_equal(text, "secret");
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(st.st_nlink, 1);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(o->dir), 0); /* nothing was made in it */
	void *fx = o->f;
	fx_teardown(&fx);
	free(o);
	return 0;
}

struct attempt {
	const char *path;
	enum err_code code;
};

static const struct attempt refused[] = {
	{"", ERR_PATH_INVALID},
	{"..", ERR_PATH_ESCAPE},
	{"../", ERR_PATH_ESCAPE},
	{"../../tmp/cloister-none/passwd", ERR_PATH_ESCAPE},
	{"d/../../x", ERR_PATH_ESCAPE},
	{"./d/.././..//tmp/cloister-none/passwd/.", ERR_PATH_ESCAPE},
	{"missing/../../x", ERR_PATH_ESCAPE},
	{"/", ERR_PATH_ESCAPE},
	{"//", ERR_PATH_ESCAPE},
	{"/tmp/cloister-none/passwd", ERR_PATH_ESCAPE},
	{"//etc//passwd", ERR_PATH_ESCAPE},
	{"/workspace_evil/secret", ERR_PATH_ESCAPE},
	{"/workspace/..", ERR_PATH_ESCAPE},
	{"/workspace/../workspace/plain", ERR_PATH_ESCAPE},
	{"/workspace/../tmp/cloister-none/passwd", ERR_PATH_ESCAPE},
	{"/proc/self/root", ERR_PATH_ESCAPE},
	{"/dev/fd/0", ERR_PATH_ESCAPE},
	{"abs", ERR_PATH_ESCAPE},
	{"absdir/secret", ERR_PATH_ESCAPE},
	{"rel", ERR_PATH_ESCAPE},
	{"reldir/secret", ERR_PATH_ESCAPE},
	{"d/reldir/secret", ERR_PATH_ESCAPE},
	{"d/../d/reldir/secret", ERR_PATH_ESCAPE},
	{"reldir/new", ERR_PATH_ESCAPE},
	{"dangling-out", ERR_PATH_ESCAPE},
	{"proc/tmp/cloister-none/passwd", ERR_PATH_ESCAPE},
	{"cwd", ERR_PATH_ESCAPE},
	{"loop1", ERR_LINK_REFUSED},
	{"loop1/x", ERR_LINK_REFUSED},
	{"c0", ERR_LINK_REFUSED},
	{".cloister", ERR_PATH_INVALID},
	{".cloister/state", ERR_PATH_INVALID},
	{"./.cloister/", ERR_PATH_INVALID},
	{"d//..//.cloister//state", ERR_PATH_INVALID},
	{"/workspace/.cloister/lock", ERR_PATH_INVALID},
	{"store", ERR_PATH_INVALID},
	{"store/state", ERR_PATH_INVALID},
	{"store-state", ERR_PATH_INVALID},
	{"store-up/redo", ERR_PATH_INVALID},
	{"plain/x", ERR_NOT_DIRECTORY},
	{"plain/", ERR_NOT_DIRECTORY},
	{"plain/.", ERR_NOT_DIRECTORY},
	{"plain/..", ERR_NOT_DIRECTORY},
	{"fifo/x", ERR_NOT_DIRECTORY},
	{"missing/x", ERR_NOT_FOUND},
	{"missing/../plain", ERR_NOT_FOUND},
};

static int resolve(struct view *v, struct str path, unsigned flags, struct node *n, struct err *e)
{
	*n = (struct node){.fd = -1};
	return view_resolve(v, path, flags, n, e);
}

static void try_all(struct view *v)
{
	struct err e;
	struct node n;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		int r = resolve(v, str_of(refused[i].path), 0, &n, &e);
		if (r != -(int)refused[i].code)
			fail_msg("'%s': %s instead of %s", refused[i].path,
				r < 0 ? err_info((enum err_code) - r)->name : "success",
				err_info(refused[i].code)->name);
		assert_null(strstr(e.text, "cloister-test"));
	}
}

static void hostile_spellings_are_refused(void **state)
{
	struct out *o = *state;
	struct view *v = fx_view(o->f);
	try_all(v);
	view_free(v);
}

static void hostile_spellings_are_refused_when_the_view_holds_something(void **state)
{
	struct out *o = *state;
	struct view *v = fx_view(o->f);
	fx_put(o->f, v, "d/other", "x");
	fx_mkdir(v, "made");
	try_all(v);
	view_free(v);
}

static void links_out_refuse_every_operation(void **state)
{
	struct out *o = *state;
	struct view *v = fx_view(o->f);
	struct node n;
	struct err e;
	static const char *const outs[] = {"abs", "rel", "reldir/secret", "absdir/secret",
		"d/reldir/secret", "dangling-out", "proc/tmp/cloister-none/passwd"};
	for (size_t i = 0; i < ARRAY_LEN(outs); i++)
		for (unsigned flags = 0; flags < 4; flags++) {
			bool last_is_link = !strchr(outs[i], '/');
			int r = resolve(v, str_of(outs[i]), flags, &n, &e);
			if ((flags & RESOLVE_NOFOLLOW) && last_is_link) {
				/* The link itself: it can be looked at and removed, nothing else.
				 */
				int fd;
				struct staged *s = fx_staged(v, "over");
				assert_int_equal(r, 0);
				assert_int_equal(n.kind, NODE_LINK);
				assert_int_equal(view_open(v, &n, &fd, &e), -ERR_LINK_REFUSED);
				assert_int_equal(view_put(v, &n, s, PUT_EITHER, 0644, NULL, &e),
					-ERR_LINK_REFUSED);
				s = fx_staged(v, "over");
				assert_int_equal(
					view_append(v, &n, s, NULL, &e), -ERR_LINK_REFUSED);
				assert_int_equal(view_chmod(v, &n, 0777, &e), -ERR_LINK_REFUSED);
				node_done(&n);
			} else {
				assert_int_equal(r, -ERR_PATH_ESCAPE);
			}
		}
	view_free(v);
}

static void links_inside_work(void **state)
{
	struct out *o = *state;
	struct view *v = fx_view(o->f);
	fx_expect_content(v, "good", "inside");
	fx_expect_content(v, "gooddir/file", "inside");
	fx_expect_content(v, "d/back", "inside");
	fx_expect_content(v, "gooddir/subl/../file", "inside");
	fx_expect_content(v, "c2", "plain");
	struct node n = fx_node(v, "gooddir/../good", 0);
	assert_string_equal(n.resolved, "/workspace/d/file");
	assert_string_equal(n.spelled, "/workspace/good");
	node_done(&n);
	n = fx_node(v, "dangling-in", 0);
	assert_int_equal(n.kind, NODE_ABSENT);
	assert_string_equal(n.resolved, "/workspace/nowhere");
	node_done(&n);
	/* Writing through a link changes its target and keeps the link. */
	fx_put(o->f, v, "good", "written");
	fx_expect_content(v, "d/file", "written");
	fx_commit(o->f, v);
	fx_expect_host(o->f, "d/file", "written");
	assert_true(S_ISLNK(fx_host_stat(o->f, "good").st_mode));
	view_free(v);
}

static void one_path_has_one_spelling(void **state)
{
	struct out *o = *state;
	struct view *v = fx_view(o->f);
	static const char *const same[] = {"d/file", "/workspace/d/file", "./d//file",
		"//workspace///d/./file", "d/sub/../file", "gooddir/file"};
	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		struct node n = fx_node(v, same[i], 0);
		assert_string_equal(n.resolved, "/workspace/d/file");
		assert_string_equal(n.path, "d/file");
		assert_string_equal(n.name, "file");
		node_done(&n);
	}
	view_free(v);
}

static void odd_names_are_bytes(void **state)
{
	struct out *o = *state;
	struct view *v = fx_view(o->f);
	struct node n;
	struct err e;
	static const char *const names[] = {"new\nline", "\xff\xfe",
		("\xe2\x80\xae"
		 "rtl"),
		"\xe2\x80\x8b", "a b", "-rf", "~", "$HOME", "*", "PLAIN", "con"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		fx_put(o->f, v, names[i], "odd");
		fx_expect_content(v, names[i], "odd");
	}
	fx_commit(o->f, v);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		fx_expect_host(o->f, names[i], "odd");
	fx_expect_host(o->f, "plain", "plain");
	assert_int_equal(resolve(v, (struct str){"pl\0ain", 6}, 0, &n, &e), -ERR_PATH_INVALID);
	char *big = calloc(1, 5001);
	memset(big, 'a', 5000);
	assert_int_equal(resolve(v, str_of(big), 0, &n, &e), -ERR_PATH_INVALID);
	big[256] = '\0';
	assert_int_equal(resolve(v, str_of(big), 0, &n, &e), -ERR_PATH_INVALID);
	for (int i = 0; i < 4000; i += 2)
		memcpy(big + i, "a/", 2);
	big[4000] = '\0';
	assert_int_equal(resolve(v, str_of(big), 0, &n, &e), -ERR_NOT_FOUND);
	free(big);
	view_free(v);
}

static void special_files_are_never_opened(void **state)
{
	struct out *o = *state;
	struct view *v = fx_view(o->f);
	struct node n = fx_node(v, "fifo", 0);
	struct err e;
	int fd;
	assert_int_equal(n.kind, NODE_OTHER);
	assert_int_equal(view_open(v, &n, &fd, &e), -ERR_NOT_REGULAR);
	struct staged *s = fx_staged(v, "x");
	assert_int_equal(view_put(v, &n, s, PUT_EITHER, 0644, NULL, &e), -ERR_NOT_REGULAR);
	s = fx_staged(v, "x");
	assert_int_equal(view_append(v, &n, s, NULL, &e), -ERR_NOT_REGULAR);
	node_done(&n);
	fx_remove(v, "fifo", false);
	fx_commit(o->f, v);
	assert_false(fx_host_exists(o->f, "fifo"));
	view_free(v);
}

static void strict_links_refuse_links_and_second_names(void **state)
{
	struct out *o = *state;
	fx_host_link(o->f, "plain", "twin");
	fx_reopen(o->f, &(struct workspace_options){.strict_links = true, .lock_wait_ms = 1000});
	struct view *v = fx_view(o->f);
	static const char *const links[] = {
		"good", "gooddir/file", "d/subl", "c39", "plain", "twin"};
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		fx_refuse_resolve(v, links[i], 0, ERR_LINK_REFUSED);
		fx_refuse_resolve(v, links[i], RESOLVE_NOFOLLOW, ERR_LINK_REFUSED);
	}
	fx_expect_content(v, "d/file", "inside");
	struct node n = fx_node(v, "newlink", RESOLVE_NOFOLLOW);
	struct err e;
	assert_int_equal(view_symlink(v, &n, "plain", &e), -ERR_LINK_REFUSED);
	node_done(&n);
	view_free(v);
}

static void links_that_would_lead_out_are_not_made(void **state)
{
	struct out *o = *state;
	struct view *v = fx_view(o->f);
	struct err e;
	struct node n = fx_node(v, "d/sub/l", RESOLVE_NOFOLLOW);
	static const char *const bad[] = {
		"/tmp/cloister-none/passwd", "/", "../../..", "../../../x", "a/../../../../x"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(view_symlink(v, &n, bad[i], &e), -ERR_PATH_ESCAPE);
	assert_int_equal(view_symlink(v, &n, "", &e), -ERR_PATH_INVALID);
	assert_int_equal(view_symlink(v, &n, "../../plain", &e), 0);
	node_done(&n);
	fx_expect_content(v, "d/sub/l", "plain");
	fx_commit(o->f, v);
	fx_expect_content(v, "d/sub/l", "plain");
	view_free(v);
}

static void the_store_is_in_no_listing(void **state)
{
	struct out *o = *state;
	struct view *v = fx_view(o->f);
	assert_null(strstr(fx_list(v, "."), ".cloister"));
	fx_put(o->f, v, "x", "y");
	assert_null(strstr(fx_list(v, "."), ".cloister"));
	view_free(v);
}

static void a_directory_swapped_for_a_link_after_resolving_is_not_followed(void **state)
{
	struct out *o = *state;
	struct fixture *f = o->f;
	struct view *v = fx_view(f);
	fx_put(f, v, "d/new", "inside");
	assert_int_equal(renameat(f->fd, "d", f->fd, "d-away"), 0);
	fx_host_symlink(f, o->dir, "d");
	fx_refuse_commit(f, v, ERR_CONFLICT);
	assert_false(fx_host_exists(f, "d-away/new"));
	struct node n;
	struct err e;
	assert_int_equal(resolve(v, STR("d/secret"), 0, &n, &e), -ERR_PATH_ESCAPE);
	view_free(v);
}

static void the_clients_own_path_is_understood(void **state)
{
	struct out *o = *state;
	struct workspace_options opt = {.client_root = "/home/me/project", .lock_wait_ms = 1000};
	fx_reopen(o->f, &opt);
	struct view *v = fx_view(o->f);
	fx_expect_content(v, "/home/me/project/d/file", "inside");
	fx_expect_content(v, "/workspace/d/file", "inside");
	fx_refuse_resolve(v, "/home/me/project_evil/x", 0, ERR_PATH_ESCAPE);
	fx_refuse_resolve(v, "/home/me/project/../x", 0, ERR_PATH_ESCAPE);
	fx_refuse_resolve(v, "/home/me", 0, ERR_PATH_ESCAPE);
	view_free(v);
}

/* --- several mounts -------------------------------------------------------------------------- */

static void the_most_specific_mount_wins(void **state)
{
	struct out *o = *state;
	struct fixture *f = o->f;
	char path[128];
	struct err e;
	fx_host_mkdir(f, "shared");
	fx_host_write(f, "shared/hidden", "covered");
	fx_host_symlink(f, "shared/seen", "to-shared");
	int vol = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(vol, "seen", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_int_equal(fs_write(fd, "volume", 6, 0), 0);
	close(fd);
	struct mount_spec m[] = {{.agent_path = "/workspace", .dir_fd = f->fd, .store_fd = -1},
		{.agent_path = "/workspace/shared",
			.dir_fd = vol,
			.store_fd = -1,
			.read_only = true}};
	workspace_free(f->ws);
	f->ws = NULL;
	FX_OK(workspace_open(m, 2, &f->opt, &f->ws, &fx_err));
	struct view *v = fx_view(f);
	fx_expect_content(v, "shared/seen", "volume");
	fx_expect_content(v, "/workspace/shared/seen", "volume");
	fx_expect_content(v, "d/../shared/seen", "volume");
	fx_expect_content(v, "to-shared", "volume");
	fx_expect_content(v, "shared/../plain", "plain");
	fx_expect_absent(v, "shared/hidden");
	fx_refuse_resolve(v, "shared/../../x", 0, ERR_PATH_ESCAPE);
	assert_non_null(strstr(fx_list(v, "."), "shared/"));
	assert_string_equal(fx_list(v, "shared"), "secret seen");
	struct node n = fx_node(v, "shared/new", 0);
	struct staged *s = NULL;
	assert_int_equal(staged_new(v, 1, &s, &e), -ERR_READ_ONLY);
	assert_int_equal(view_mkdir(v, &n, 0755, false, &e), -ERR_READ_ONLY);
	node_done(&n);
	n = fx_node(v, "shared", RESOLVE_NOFOLLOW);
	assert_true(view_remove(v, &n, true, NULL, &e) < 0);
	node_done(&n);
	view_free(v);
	snprintf(path, sizeof(path), "%s/seen", o->dir);
	assert_int_equal(unlink(path), 0);
	close(vol);
}

static void a_move_between_mounts_is_one_change_set(void **state)
{
	struct out *o = *state;
	struct fixture *f = o->f;
	fx_host_mkdir(f, "vol");
	fx_host_mkdir(f, "tree");
	fx_host_mkdir(f, "tree/sub");
	fx_host_write(f, "tree/a", "A");
	fx_host_write(f, "tree/sub/b", "B");
	int vol = openat(f->fd, "vol", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct mount_spec m[] = {{.agent_path = "/workspace", .dir_fd = f->fd, .store_fd = -1},
		{.agent_path = "/tmp", .dir_fd = vol, .store_fd = -1}};
	workspace_free(f->ws);
	f->ws = NULL;
	FX_OK(workspace_open(m, 2, &f->opt, &f->ws, &fx_err));
	struct view *v = fx_view(f);
	fx_rename(v, "tree", "/tmp/tree", false);
	fx_expect_absent(v, "tree");
	fx_expect_content(v, "/tmp/tree/sub/b", "B");
	fx_commit(f, v);
	assert_false(fx_host_exists(f, "tree"));
	fx_expect_host(f, "vol/tree/a", "A");
	fx_expect_host(f, "vol/tree/sub/b", "B");
	view_free(v);
	close(vol);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(hostile_spellings_are_refused),
		CASE(hostile_spellings_are_refused_when_the_view_holds_something),
		CASE(links_out_refuse_every_operation),
		CASE(links_inside_work),
		CASE(one_path_has_one_spelling),
		CASE(odd_names_are_bytes),
		CASE(special_files_are_never_opened),
		CASE(strict_links_refuse_links_and_second_names),
		CASE(links_that_would_lead_out_are_not_made),
		CASE(the_store_is_in_no_listing),
		CASE(a_directory_swapped_for_a_link_after_resolving_is_not_followed),
		CASE(the_clients_own_path_is_understood),
		CASE(the_most_specific_mount_wins),
		CASE(a_move_between_mounts_is_one_change_set),
	};
	return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
