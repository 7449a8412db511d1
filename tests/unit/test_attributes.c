/*
 * What new files and directories inherit. The kernel is the oracle: the same object is made by hand
 * in the same directory.
 */
#include "attributes_oracle.h"
#include "history_fixture.h"

#include "workspace/attributes.h"
#include "workspace/history.h"

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

/* --- what is taken back ----------------------------------------------------------------------- */

struct whole {
	char text[4200];
};

static struct whole whole(struct fixture *f, const char *path)
{
	struct whole w;
	struct stat st = fx_host_stat(f, path);
	snprintf(w.text, sizeof(w.text), "%s %lld.%09ld", attributes_text(f, path),
		(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	return w;
}

static void expect_whole(struct fixture *f, const char *path, const struct whole *as)
{
	struct whole is = whole(f, path);
	if (strcmp(is.text, as->text) != 0)
		fail_msg("%s has %s, had %s", path, is.text, as->text);
}

static void dress(struct fixture *f, const char *path, mode_t mode, long age)
{
	const struct timespec t[2] = {{.tv_sec = 1000000000 + age, .tv_nsec = 5},
		{.tv_sec = 1100000000 + age, .tv_nsec = 123456789}};
	int fd = openat(f->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	assert_true(fd >= 0);
	if (geteuid() == 0)
		assert_int_equal(fchown(fd, 4321, 1234), 0);
	if (fsetxattr(fd, "user.test", path, strlen(path), 0) < 0)
		print_message("# this file system has no user attributes\n");
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(futimens(fd, t), 0);
	close(fd);
}

static const char *const dressed[] = {"tree", "tree/a", "tree/sub", "tree/sub/b", "tree/shut",
	"tree/shut/c", "file", "tree/twice"};

/* A tree with everything that can be lost. `tree/sub` hands on what the original has not got. */
static void make_dressed(struct fixture *f, struct whole *had)
{
	fx_host_mkdir(f, "tree");
	fx_host_mkdir(f, "tree/sub");
	fx_host_mkdir(f, "tree/shut");
	static const char *const files[] = {
		"tree/a", "tree/sub/b", "tree/shut/c", "file", "tree/twice"};
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		fx_host_write(f, files[i], files[i]);
	if (acls_work(f)) {
		acl_set(f, "tree/a", "system.posix_acl_access", acl_of_a_team(1));
		default_acl(f, "tree", acl_of_a_team(5));
		acl_set(f, "tree/sub", "system.posix_acl_access", acl_of_a_team(3));
	}
	static const mode_t modes[] = {03775, 0640, 0750, 0604, 0555, 0444, 0711, 0660};
	for (size_t i = ARRAY_LEN(dressed); i-- > 0;)
		dress(f, dressed[i], modes[i], (long)i);
	for (size_t i = 0; i < ARRAY_LEN(dressed); i++)
		had[i] = whole(f, dressed[i]);
}

static void expect_dressed(struct fixture *f, const struct whole *had)
{
	for (size_t i = 0; i < ARRAY_LEN(dressed); i++)
		expect_whole(f, dressed[i], &had[i]);
	fx_expect_host(f, "tree/shut/c", "tree/shut/c");
}

static void delete_all(struct fixture *f)
{
	struct view *v = fx_view(f);
	fx_remove(v, "tree", true);
	fx_remove(v, "file", false);
	fx_commit(f, v);
	view_free(v);
	assert_false(fx_host_exists(f, "tree"));
}

static struct commit_result take_back(struct fixture *f)
{
	uint64_t seq;
	struct view *v = fx_view(f);
	FX_OK(history_undo(f->ws, v, 0, &seq, &fx_err));
	struct commit_result res = fx_commit(f, v);
	view_free(v);
	return res;
}

static void undoing_a_deletion_brings_back_all_attributes(void **state)
{
	struct fixture *f = *state;
	struct whole had[ARRAY_LEN(dressed)];
	make_dressed(f, had);
	delete_all(f);
	assert_int_equal(take_back(f).attributes_lost, 0);
	expect_dressed(f, had);
}

static void a_file_with_another_name_comes_back_as_it_was(void **state)
{
	struct fixture *f = *state;
	struct whole had[ARRAY_LEN(dressed)];
	make_dressed(f, had);
	fx_host_link(f, "file", "other");
	delete_all(f);
	/* What becomes of the other name says nothing of the one that was deleted. */
	dress(f, "other", 0600, 99);
	assert_int_equal(take_back(f).attributes_lost, 0);
	expect_dressed(f, had);
}

static void restoring_a_checkpoint_brings_back_all_attributes(void **state)
{
	struct fixture *f = *state;
	struct whole had[ARRAY_LEN(dressed)];
	make_dressed(f, had);
	uint64_t seq = 0;
	FX_OK(checkpoint_create(f->ws, "here", &seq, &fx_err));
	struct view *v = fx_view(f);
	fx_rename(v, "tree", "moved", false);
	struct node n = fx_node(v, "file", 0);
	FX_OK(view_chmod(v, &n, 0600, &fx_err));
	node_done(&n);
	fx_commit(f, v);
	view_free(v);
	v = fx_view(f);
	fx_remove(v, "moved", true);
	fx_remove(v, "file", false);
	fx_commit(f, v);
	view_free(v);
	v = fx_view(f);
	FX_OK(checkpoint_restore(f->ws, v, "here", &seq, &fx_err));
	assert_int_equal(fx_commit(f, v).attributes_lost, 0);
	view_free(v);
	expect_dressed(f, had);
}

static void a_fork_has_all_attributes(void **state)
{
	struct fixture *f = *state, forked = {0};
	struct whole had[ARRAY_LEN(dressed)];
	struct fork_result res;
	char dir[64];
	make_dressed(f, had);
	make_dir(dir);
	forked.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(forked.fd >= 0);
	FX_OK(workspace_fork(f->ws, forked.fd, &res, &fx_err));
	assert_int_equal(res.attributes_lost, 0);
	expect_dressed(&forked, had);
	close(forked.fd);
	remove_dir(dir);
}

static void an_owner_that_is_not_ours_to_give_is_said(void **state)
{
	int status;
	if (geteuid() != 0) {
		print_message("# skipped: only root can make such a file\n");
		skip();
	}
	struct fixture *f = *state;
	workspace_free(f->ws);
	f->ws = NULL;
	assert_int_equal(tree_remove(f->fd, ".cloister"), 0);
	assert_int_equal(fchown(f->fd, 65534, 65534), 0);
	fx_host_write(f, "foreign", "x");
	fx_host_chmod(f, "foreign", 04755);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
			setresuid(65534, 65534, 65534) < 0)
			_exit(9);
		fx_reopen(f, &f->opt);
		struct view *v = fx_view(f);
		fx_remove(v, "foreign", false);
		fx_commit(f, v);
		view_free(v);
		struct commit_result res = take_back(f);
		struct stat st = fx_host_stat(f, "foreign");
		workspace_free(f->ws);
		/* Above all: set-user-ID does not come back for another owner. */
		_exit(res.attributes_lost == 1 && st.st_uid == 65534 && (st.st_mode & 07777) == 0755
				? 0
				: 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(fchown(f->fd, 0, 0), 0);
	assert_int_equal(tree_remove(f->fd, ".cloister"), 0);
	fx_reopen(f, &f->opt);
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
		CASE(undoing_a_deletion_brings_back_all_attributes),
		CASE(a_file_with_another_name_comes_back_as_it_was),
		CASE(restoring_a_checkpoint_brings_back_all_attributes),
		CASE(a_fork_has_all_attributes),
		CASE(an_owner_that_is_not_ours_to_give_is_said),
	};
	return cmocka_run_group_tests_name("attributes", tests, NULL, NULL);
}
