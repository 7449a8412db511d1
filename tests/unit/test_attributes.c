/*
 * What new files and directories inherit. The kernel is the oracle: the same object is made by hand
 * in the same directory.
 */
#include "attributes_oracle.h"

#include "workspace/attributes.h"

#include <grp.h>
#include <sys/wait.h>

static void put_as(struct view *v, const char *path, mode_t mode, unsigned how)
{
	struct node n = fx_node(v, path, RESOLVE_PARENTS_MAY_LACK);
	FX_OK(view_put(v, &n, fx_staged(v, "x"), (enum put_how)(how | PUT_CREATE | PUT_PARENTS),
		mode, NULL, &fx_err));
	node_done(&n);
}

/* As the tools make files. */
static void put_new(struct view *v, const char *path)
{
	put_as(v, path, 0644, PUT_UMASKED);
}

static void need_acls(struct fixture *f)
{
	if (!acls_work(f)) {
		print_message("# skipped: this file system has no ACLs\n");
		skip();
	}
}

/* --- denials ---------------------------------------------------------------------------------- */

static void what_is_no_acl_is_refused(void **state)
{
	(void)state;
	struct acl a = acl_of_a_team(5), b;
	for (size_t n = 0; n < acl_size(&a); n++) {
		b = a;
		bool whole = n >= 4 && (n - 4) % 8 == 0 && n >= 4 + 3 * 8;
		assert_int_equal(attributes_mask_acl(&b, n, 0777), whole);
	}
	b = a;
	b.head.a_version = 3;
	assert_false(attributes_mask_acl(&b, acl_size(&b), 0777));
	b = (struct acl){.n = 0};
	acl_add(&b, ACL_USER_OBJ, 7, ACL_UNDEFINED_ID);
	acl_add(&b, ACL_OTHER, 7, ACL_UNDEFINED_ID);
	assert_false(attributes_mask_acl(&b, acl_size(&b), 0777));
}

static void a_group_that_is_not_ours_to_give_is_said(void **state)
{
	int status;
	if (geteuid() != 0) {
		print_message("# skipped: only root can make such a directory\n");
		skip();
	}
	struct fixture *f = *state;
	workspace_free(f->ws);
	f->ws = NULL;
	assert_int_equal(tree_remove(f->fd, ".cloister"), 0);
	assert_int_equal(fchown(f->fd, 65534, 1234), 0);
	assert_int_equal(fchmod(f->fd, 02777), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
			setresuid(65534, 65534, 65534) < 0)
			_exit(9);
		fx_reopen(f, &f->opt);
		struct view *v = fx_view(f);
		put_new(v, "file");
		put_new(v, "made/file");
		struct commit_result res = fx_commit(f, v);
		view_free(v);
		/* Directories are made by the kernel where they belong. */
		bool ok = res.attributes_lost == 2 && fx_host_stat(f, "file").st_gid == 65534 &&
			  fx_host_stat(f, "made").st_gid == 1234;
		workspace_free(f->ws);
		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(fchown(f->fd, 0, 0), 0);
	assert_int_equal(tree_remove(f->fd, ".cloister"), 0);
	fx_reopen(f, &f->opt);
}

static void a_directory_without_a_default_hands_nothing_on(void **state)
{
	struct fixture *f = *state;
	need_acls(f);
	/* The store is made below a root that hands everything on. */
	workspace_free(f->ws);
	f->ws = NULL;
	assert_int_equal(tree_remove(f->fd, ".cloister"), 0);
	fx_host_mkdir(f, "plain");
	default_acl(f, ".", acl_of_a_team(7));
	fx_host_chmod(f, ".", 02755);
	if (geteuid() == 0)
		assert_int_equal(fchown(f->fd, (uid_t)-1, 1234), 0);
	fx_reopen(f, &f->opt);
	struct view *v = fx_view(f);
	put_new(v, "plain/made/file");
	struct commit_result res = fx_commit(f, v);
	view_free(v);
	assert_int_equal(res.attributes_lost, 0);
	by_hand(f, "plain/dir", 0777, true);
	by_hand(f, "plain/by-hand", 0666, false);
	expect_same(f, "plain/made", "plain/dir");
	expect_same(f, "plain/made/file", "plain/by-hand");
}

static void a_mode_that_was_asked_for_is_a_mask(void **state)
{
	struct fixture *f = *state;
	need_acls(f);
	fx_host_mkdir(f, "d");
	default_acl(f, "d", acl_of_a_team(7));
	static const mode_t modes[] = {0600, 0640, 0644, 0666, 0755, 0000};
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct view *v = fx_view(f);
		put_as(v, "d/file", modes[i], 0);
		fx_commit(f, v);
		view_free(v);
		by_hand(f, "d/by-hand", modes[i], false);
		expect_same(f, "d/file", "d/by-hand");
		assert_int_equal(unlinkat(f->fd, "d/file", 0), 0);
		assert_int_equal(unlinkat(f->fd, "d/by-hand", 0), 0);
	}
}

static void a_mode_that_was_changed_before_the_commit_is_a_mask(void **state)
{
	struct fixture *f = *state;
	need_acls(f);
	fx_host_mkdir(f, "d");
	default_acl(f, "d", acl_of_a_team(7));
	struct view *v = fx_view(f);
	put_new(v, "d/file");
	struct node n = fx_node(v, "d/file", 0);
	FX_OK(view_chmod(v, &n, 0600, &fx_err));
	node_done(&n);
	fx_commit(f, v);
	view_free(v);
	by_hand(f, "d/by-hand", 0600, false);
	expect_same(f, "d/file", "d/by-hand");
}

/* --- what is inherited ------------------------------------------------------------------------ */

static void inherits(struct fixture *f, const char *dir)
{
	char path[8][64];
	static const char *const names[] = {"%s/file", "%s/made/deep/file", "%s/by-hand", "%s/dir",
		"%s/dir/dir", "%s/dir/dir/file"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(path[i], sizeof(path[i]), names[i], dir);
#pragma GCC diagnostic pop
	}
	struct view *v = fx_view(f);
	put_new(v, path[0]);
	put_new(v, path[1]);
	struct commit_result res = fx_commit(f, v);
	view_free(v);
	assert_int_equal(res.attributes_lost, 0);
	by_hand(f, path[2], 0666, false);
	by_hand(f, path[3], 0777, true);
	by_hand(f, path[4], 0777, true);
	by_hand(f, path[5], 0666, false);
	expect_same(f, path[0], path[2]);
	expect_same(f, path[1], path[5]);
	*strrchr(path[1], '/') = '\0';
	expect_same(f, path[1], path[4]);
	*strrchr(path[1], '/') = '\0';
	expect_same(f, path[1], path[3]);
}

static void a_default_acl_is_inherited_as_the_kernel_does(void **state)
{
	struct fixture *f = *state;
	need_acls(f);
	static const unsigned modes[] = {0777, 0750, 0700, 0000, 0755, 0770};
	char name[16];
	for (unsigned g = 0; g < 8; g++) {
		snprintf(name, sizeof(name), "team%u", g);
		fx_host_mkdir(f, name);
		default_acl(f, name, acl_of_a_team(g));
		inherits(f, name);
	}
	for (unsigned i = 0; i < ARRAY_LEN(modes); i++) {
		snprintf(name, sizeof(name), "mode%u", i);
		if (geteuid() != 0 && (modes[i] & 0700) != 0700)
			continue; /* nobody could make anything below */
		fx_host_mkdir(f, name);
		default_acl(f, name, acl_like_a_mode(modes[i]));
		inherits(f, name);
	}
}

static void the_group_of_a_set_group_id_directory_is_inherited(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, "d");
	if (geteuid() == 0)
		assert_int_equal(fchownat(f->fd, "d", (uid_t)-1, 1234, 0), 0);
	fx_host_chmod(f, "d", 02775);
	inherits(f, "d");
	assert_int_equal(fx_host_mode(f, "d/made/deep") & 02000, 02000);
	fx_host_mkdir(f, "both");
	if (!acls_work(f))
		return;
	if (geteuid() == 0)
		assert_int_equal(fchownat(f->fd, "both", (uid_t)-1, 1234, 0), 0);
	fx_host_chmod(f, "both", 02775);
	default_acl(f, "both", acl_of_a_team(5));
	inherits(f, "both");
}

static void a_replacement_keeps_its_own_list(void **state)
{
	struct fixture *f = *state;
	need_acls(f);
	fx_host_mkdir(f, "d");
	fx_host_write(f, "d/file", "old");
	acl_set(f, "d/file", "system.posix_acl_access", acl_of_a_team(1));
	default_acl(f, "d", acl_of_a_team(7));
	const char *before = attributes_text(f, "d/file");
	struct view *v = fx_view(f);
	fx_put(f, v, "d/file", "new");
	fx_commit(f, v);
	view_free(v);
	fx_expect_host(f, "d/file", "new");
	assert_string_equal(attributes_text(f, "d/file"), before);
}

static void a_changed_mode_keeps_the_set_group_id_of_a_directory(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, "d");
	fx_host_chmod(f, "d", 03755);
	struct view *v = fx_view(f);
	struct node n = fx_node(v, "d", 0);
	FX_OK(view_chmod(v, &n, 0700, &fx_err));
	node_done(&n);
	fx_commit(f, v);
	view_free(v);
	assert_int_equal(fx_host_mode(f, "d"), 03700);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, fx_setup, fx_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_acl_is_refused),
		CASE(a_group_that_is_not_ours_to_give_is_said),
		CASE(a_directory_without_a_default_hands_nothing_on),
		CASE(a_mode_that_was_asked_for_is_a_mask),
		CASE(a_mode_that_was_changed_before_the_commit_is_a_mask),
		CASE(a_default_acl_is_inherited_as_the_kernel_does),
		CASE(the_group_of_a_set_group_id_directory_is_inherited),
		CASE(a_replacement_keeps_its_own_list),
		CASE(a_changed_mode_keeps_the_set_group_id_of_a_directory),
	};
	return cmocka_run_group_tests_name("attributes", tests, NULL, NULL);
}
