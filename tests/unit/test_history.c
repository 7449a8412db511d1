/* Tests of the history: what can be taken back, what is refused, what is forgotten. */
#include "testing.h"

#include "history_fixture.h"

static struct err refuse_undo(struct fixture *f, uint64_t seq, enum err_code code)
{
	uint64_t done = 77;
	struct err err;
	struct view *v = fx_view(f);
	int r = history_undo(f->ws, v, seq, &done, &err);
	if (r != -(int)code)
		fail_msg("undo gave %d (%s), not %s", r, r < 0 ? err.text : "",
			err_info(code)->name);
	assert_int_equal(done, 77);
	view_free(v);
	return err;
}

/* --- denials --- */

static void an_outside_edit_is_a_conflict_that_names_the_path(void **state)
{
	struct fixture *f = *state;
	write_file(f, "d/a", "one");
	write_file(f, "d/a", "two");
	fx_host_write(f, "d/a", "mine!");
	struct err e = refuse_undo(f, 0, ERR_CONFLICT);
	assert_non_null(strstr(e.text, "/workspace/d/a"));
	fx_expect_host(f, "d/a", "mine!");
}

static void an_outside_replacement_of_the_same_size_is_a_conflict(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one");
	fx_host_write(f, "b", "two");
	assert_int_equal(renameat(f->fd, "b", f->fd, "a"), 0);
	refuse_undo(f, 0, ERR_CONFLICT);
	fx_expect_host(f, "a", "two");
}

static void undoing_below_a_later_change_of_the_path_is_a_conflict(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one");
	write_file(f, "a", "two");
	struct err e = refuse_undo(f, 1, ERR_CONFLICT);
	assert_non_null(strstr(e.text, "/workspace/a"));
	append_file(f, "a", "three");
	refuse_undo(f, 2, ERR_CONFLICT);
	fx_expect_host(f, "a", "twothree");
}

static void a_deleted_path_that_has_been_made_again_is_a_conflict(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one");
	remove_path(f, "a");
	fx_host_write(f, "a", "other");
	refuse_undo(f, 2, ERR_CONFLICT);
	fx_expect_host(f, "a", "other");
}

static void a_made_directory_that_has_been_filled_is_a_conflict(void **state)
{
	struct fixture *f = *state;
	struct view *v = fx_view(f);
	fx_mkdir(v, "d");
	fx_commit(f, v);
	view_free(v);
	fx_host_write(f, "d/x", "x");
	refuse_undo(f, 0, ERR_CONFLICT);
	fx_expect_host(f, "d/x", "x");
}

static void a_refused_undo_changes_nothing_of_a_larger_change(void **state)
{
	struct fixture *f = *state;
	struct view *v = fx_view(f);
	fx_put(f, v, "a", "1");
	fx_put(f, v, "b", "1");
	fx_put(f, v, "c", "1");
	fx_commit(f, v);
	view_free(v);
	fx_host_write(f, "a", "changed");
	refuse_undo(f, 1, ERR_CONFLICT);
	fx_expect_host(f, "b", "1");
	fx_expect_host(f, "c", "1");
}

static void nothing_to_undo_is_said(void **state)
{
	struct fixture *f = *state;
	refuse_undo(f, 0, ERR_NO_UNDO);
	refuse_undo(f, 5, ERR_NO_UNDO);
	write_file(f, "a", "one");
	undo(f, 0);
	refuse_undo(f, 0, ERR_NO_UNDO);
	refuse_undo(f, 1, ERR_CONFLICT);
}

static void content_that_has_left_the_store_is_said(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one");
	write_file(f, "a", "two");
	assert_int_equal(unlinkat(f->fd, ".cloister/saved/0000000000000002.0", 0), 0);
	refuse_undo(f, 2, ERR_NO_UNDO);
	fx_expect_host(f, "a", "two");
}

/* --- each kind of change --- */

static void creating_is_undone(void **state)
{
	struct fixture *f = *state;
	write_file(f, "d/e/a", "one");
	undo(f, 0);
	assert_false(fx_host_exists(f, "d"));
	fx_expect_usage(f, 0, 0);
}

static void replacing_is_undone(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "a", "one");
	fx_host_chmod(f, "a", 0750);
	write_file(f, "a", "longer");
	undo(f, 0);
	fx_expect_host(f, "a", "one");
	assert_int_equal(fx_host_mode(f, "a"), 0750);
}

static void appending_is_undone(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one\n");
	append_file(f, "a", "two\n");
	append_file(f, "a", "three\n");
	undo(f, 0);
	fx_expect_host(f, "a", "one\ntwo\n");
	undo(f, 0);
	fx_expect_host(f, "a", "one\n");
	undo(f, 0);
	assert_false(fx_host_exists(f, "a"));
}

static void deleting_a_file_is_undone(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "a", "one");
	fx_host_chmod(f, "a", 0711);
	remove_path(f, "a");
	assert_false(fx_host_exists(f, "a"));
	undo(f, 0);
	fx_expect_host(f, "a", "one");
	assert_int_equal(fx_host_mode(f, "a"), 0711);
}

static void deleting_a_directory_is_undone_with_everything_in_it(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, "d");
	fx_host_mkdir(f, "d/empty");
	fx_host_mkdir(f, "d/sub");
	fx_host_chmod(f, "d/sub", 0700);
	fx_host_write(f, "d/sub/a", "one");
	fx_host_write(f, "d/b", "two");
	fx_host_symlink(f, "/outside", "d/absolute");
	fx_host_symlink(f, "sub/a", "d/link");
	remove_path(f, "d");
	assert_false(fx_host_exists(f, "d"));
	undo(f, 0);
	char text[64] = "";
	fx_expect_host(f, "d/sub/a", "one");
	fx_expect_host(f, "d/b", "two");
	assert_true(fx_host_exists(f, "d/empty"));
	assert_int_equal(fx_host_mode(f, "d/sub"), 0700);
	assert_int_equal(readlinkat(f->fd, "d/link", text, sizeof(text)), 5);
	assert_int_equal(readlinkat(f->fd, "d/absolute", text, sizeof(text)), 8);
	assert_memory_equal(text, "/outside", 8);
	undo(f, 2); /* deletes it again */
	assert_false(fx_host_exists(f, "d"));
}

static void renaming_over_a_file_is_undone(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one");
	write_file(f, "b", "two");
	rename_path(f, "a", "b", true);
	fx_expect_host(f, "b", "one");
	undo(f, 0);
	fx_expect_host(f, "a", "one");
	fx_expect_host(f, "b", "two");
}

static void renaming_a_directory_is_undone(void **state)
{
	struct fixture *f = *state;
	write_file(f, "d/a", "one");
	rename_path(f, "d", "e", false);
	write_file(f, "e/b", "later");
	undo(f, 2);
	fx_expect_host(f, "d/a", "one");
	fx_expect_host(f, "d/b", "later");
	assert_false(fx_host_exists(f, "e"));
}

static void mode_and_links_are_undone(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one");
	struct view *v = fx_view(f);
	struct node n = fx_node(v, "a", 0), l = fx_node(v, "l", RESOLVE_NOFOLLOW);
	FX_OK(view_chmod(v, &n, 0700, &fx_err));
	FX_OK(view_symlink(v, &l, "a", &fx_err));
	node_done(&n), node_done(&l);
	fx_commit(f, v);
	view_free(v);
	assert_int_equal(fx_host_mode(f, "a"), 0700);
	undo(f, 0);
	assert_int_equal(fx_host_mode(f, "a"), 0644);
	assert_false(fx_host_exists(f, "l"));
	v = fx_view(f);
	fx_mkdir(v, "keep");
	l = fx_node(v, "keep/l", RESOLVE_NOFOLLOW);
	FX_OK(view_symlink(v, &l, "../a", &fx_err));
	node_done(&l);
	fx_commit(f, v);
	view_free(v);
	remove_path(f, "keep/l");
	undo(f, 0);
	assert_true(fx_host_exists(f, "keep/l"));
}

static void an_undo_can_be_undone(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one");
	write_file(f, "a", "two");
	assert_int_equal(undo(f, 0), 2);
	fx_expect_host(f, "a", "one");
	assert_int_equal(undo(f, 3), 3);
	fx_expect_host(f, "a", "two");
	/* Now the second change counts again. */
	assert_int_equal(undo(f, 0), 2);
	fx_expect_host(f, "a", "one");
}

static void undoing_goes_back_step_by_step(void **state)
{
	struct fixture *f = *state;
	char text[8];
	for (int i = 0; i < 5; i++) {
		snprintf(text, sizeof(text), "%d", i);
		write_file(f, "a", text);
	}
	for (int i = 3; i >= 0; i--) {
		undo(f, 0);
		snprintf(text, sizeof(text), "%d", i);
		fx_expect_host(f, "a", text);
	}
	undo(f, 0);
	assert_false(fx_host_exists(f, "a"));
}

static void what_undoing_has_brought_back_can_be_undone_further(void **state)
{
	struct fixture *f = *state;
	write_file(f, "d/a", "one");
	write_file(f, "d/e/b", "two");
	remove_path(f, "d");
	assert_int_equal(undo(f, 0), 3);
	assert_int_equal(undo(f, 0), 2);
	assert_false(fx_host_exists(f, "d/e"));
	assert_int_equal(undo(f, 0), 1);
	assert_false(fx_host_exists(f, "d"));
}

static void what_undoing_has_brought_back_and_somebody_edited_is_a_conflict(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one");
	write_file(f, "a", "two");
	undo(f, 0);
	fx_host_write(f, "a", "ONE");
	refuse_undo(f, 0, ERR_CONFLICT);
	fx_expect_host(f, "a", "ONE");
}

static void a_file_with_another_name_is_kept_as_a_copy(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "outside", "one");
	fx_host_link(f, "outside", "a");
	write_file(f, "a", "two");
	fx_host_write(f, "outside", "changed!");
	undo(f, 0);
	fx_expect_host(f, "a", "one");
	fx_expect_host(f, "outside", "changed!");
}

/* --- list --- */

struct seen {
	unsigned n;
	struct history_entry e[64];
};

static bool see(void *ctx, const struct history_entry *e)
{
	struct seen *s = ctx;
	s->e[s->n++] = *e;
	return s->n < 64;
}

static bool count_change(void *ctx, const struct change *c)
{
	struct buf *b = ctx;
	buf_printf(b, "%s %s;", change_kind_word(c->kind), c->agent_path);
	return true;
}

static void the_list_is_newest_first_and_pages(void **state)
{
	struct fixture *f = *state;
	struct seen s = {0};
	uint64_t seq;
	write_file(f, "d/a", "1");
	FX_OK(checkpoint_create(f->ws, "first", &seq, &fx_err));
	write_file(f, "d/a", "2");
	write_file(f, "b\\c", "3");
	undo(f, 0);
	FX_OK(history_list(f->ws, 0, 100, see, &s, &fx_err));
	assert_int_equal(s.n, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(s.e[i].seq, 4 - i);
	assert_false(s.e[0].undone);
	assert_true(s.e[1].undone);
	assert_false(s.e[1].undoable);
	assert_true(s.e[2].undoable);
	assert_string_equal(s.e[3].checkpoint, "first");
	assert_string_equal(s.e[3].tool, "test");
	assert_string_equal(s.e[3].call_id, "call-1");
	s.n = 0;
	FX_OK(history_list(f->ws, 4, 2, see, &s, &fx_err));
	assert_int_equal(s.n, 2);
	assert_int_equal(s.e[0].seq, 3);
	assert_true(s.e[0].undone);
	assert_int_equal(s.e[1].seq, 2);
	struct buf b = buf_init(4096);
	FX_OK(history_changes(f->ws, 1, count_change, &b, &fx_err));
	assert_string_equal(buf_str(&b), "directory_created /workspace/d;created /workspace/d/a;");
	buf_clear(&b);
	FX_OK(history_changes(f->ws, 3, count_change, &b, &fx_err));
	assert_string_equal(buf_str(&b), "created /workspace/b\\\\c;");
	assert_int_equal(history_changes(f->ws, 9, count_change, &b, &fx_err), -ERR_NOT_FOUND);
	buf_done(&b);
}

static void history_survives_closing(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one");
	write_file(f, "a", "two");
	fx_reopen(f, &f->opt);
	undo(f, 0);
	fx_expect_host(f, "a", "one");
}

/* --- checkpoints --- */

static void restore(struct fixture *f, const char *label)
{
	uint64_t seq;
	struct view *v = fx_view(f);
	FX_OK(checkpoint_restore(f->ws, v, label, &seq, &fx_err));
	fx_commit(f, v);
	view_free(v);
}

static struct err refuse_restore(struct fixture *f, const char *label, enum err_code code)
{
	uint64_t seq;
	struct err err;
	struct view *v = fx_view(f);
	assert_int_equal(checkpoint_restore(f->ws, v, label, &seq, &err), -(int)code);
	view_free(v);
	return err;
}

static void a_taken_label_and_an_unknown_one_are_refused(void **state)
{
	struct fixture *f = *state;
	uint64_t seq = 9;
	FX_OK(checkpoint_create(f->ws, "x", &seq, &fx_err));
	assert_int_equal(seq, 0);
	assert_int_equal(checkpoint_create(f->ws, "x", &seq, &fx_err), -ERR_EXISTS);
	assert_int_equal(checkpoint_create(f->ws, "", &seq, &fx_err), -ERR_INVALID_ARGUMENT);
	assert_int_equal(checkpoint_create(f->ws, "\xff", &seq, &fx_err), -ERR_INVALID_ARGUMENT);
	refuse_restore(f, "y", ERR_NOT_FOUND);
}

static void restoring_over_an_outside_edit_is_a_conflict(void **state)
{
	struct fixture *f = *state;
	uint64_t seq;
	write_file(f, "a", "one");
	FX_OK(checkpoint_create(f->ws, "x", &seq, &fx_err));
	write_file(f, "a", "two");
	fx_host_write(f, "a", "mine!");
	struct err e = refuse_restore(f, "x", ERR_CONFLICT);
	assert_non_null(strstr(e.text, "/workspace/a"));
	fx_expect_host(f, "a", "mine!");
}

static void an_outside_edit_between_two_changes_is_a_conflict_too(void **state)
{
	struct fixture *f = *state;
	uint64_t seq;
	FX_OK(checkpoint_create(f->ws, "x", &seq, &fx_err));
	write_file(f, "a", "one");
	fx_host_write(f, "a", "mine!");
	write_file(f, "a", "two");
	refuse_restore(f, "x", ERR_CONFLICT);
	fx_expect_host(f, "a", "two");
}

static void a_checkpoint_brings_back_the_whole_state(void **state)
{
	struct fixture *f = *state;
	uint64_t seq;
	write_file(f, "keep", "k");
	write_file(f, "d/a", "one");
	write_file(f, "log", "1\n");
	FX_OK(checkpoint_create(f->ws, "x", &seq, &fx_err));
	assert_int_equal(seq, 3);
	for (int i = 0; i < 20; i++) {
		append_file(f, "log", "more\n");
		write_file(f, "d/a", i % 2 ? "two" : "three");
	}
	rename_path(f, "d", "e", false);
	write_file(f, "e/new", "n");
	remove_path(f, "e/a");
	undo(f, 0);
	remove_path(f, "log");
	write_file(f, "log", "again");
	restore(f, "x");
	fx_expect_host(f, "keep", "k");
	fx_expect_host(f, "d/a", "one");
	fx_expect_host(f, "log", "1\n");
	assert_false(fx_host_exists(f, "e"));
	assert_false(fx_host_exists(f, "d/new"));
	fx_expect_usage(f, 6, 4);
	undo(f, 0); /* the restoring itself */
	fx_expect_host(f, "log", "again");
	fx_expect_host(f, "e/a", "two");
	restore(f, "x");
	fx_expect_host(f, "d/a", "one");
}

static void restoring_copies_what_is_needed_once(void **state)
{
	struct fixture *f = *state;
	struct workspace_options opt = f->opt;
	uint64_t seq;
	opt.quota_bytes = 1000;
	fx_reopen(f, &opt);
	struct view *v = fx_view(f);
	fx_put_size(f, v, "big", 900);
	fx_commit(f, v);
	view_free(v);
	FX_OK(checkpoint_create(f->ws, "x", &seq, &fx_err));
	for (int i = 0; i < 10; i++) {
		v = fx_view(f);
		fx_put_size(f, v, "big", 890 + (size_t)i);
		fx_commit(f, v);
		view_free(v);
	}
	restore(f, "x"); /* nine times 890 bytes would pass the quota */
	fx_expect_usage(f, 900, 1);
}

static void a_torn_checkpoint_is_overwritten(void **state)
{
	struct fixture *f = *state;
	uint64_t seq;
	FX_OK(checkpoint_create(f->ws, "x", &seq, &fx_err));
	int fd = openat(f->fd, ".cloister/checkpoints", O_RDWR | O_CLOEXEC);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(pwrite(fd, "CLR1 torn", 9, st.st_size), 9);
	close(fd);
	FX_OK(checkpoint_create(f->ws, "y", &seq, &fx_err));
	restore(f, "x");
	restore(f, "y");
}

/* --- forgetting --- */

static void when_full_the_oldest_goes(void **state)
{
	struct fixture *f = *state;
	struct workspace_options opt = f->opt;
	struct workspace_usage u;
	struct seen s = {0};
	uint64_t seq;
	opt.history_bytes = 20000;
	fx_reopen(f, &opt);
	FX_OK(checkpoint_create(f->ws, "start", &seq, &fx_err));
	for (unsigned i = 0; i < 40; i++) {
		struct view *v = fx_view(f);
		fx_put_size(f, v, "a", 3000 + i);
		assert_true(fx_commit(f, v).undo);
		view_free(v);
		FX_OK(workspace_usage(f->ws, &u, &fx_err));
		assert_true(u.history_bytes <= 20000);
	}
	FX_OK(history_list(f->ws, 0, 64, see, &s, &fx_err));
	assert_in_range(s.n, 2, 6);
	assert_int_equal(s.e[0].seq, 40);
	assert_int_equal(fx_saved_names(f), s.n);
	refuse_undo(f, 1, ERR_NO_UNDO);
	refuse_restore(f, "start", ERR_NO_UNDO);
	undo(f, 0);
	FX_OK(checkpoint_create(f->ws, "start", &seq, &fx_err));
}

static void what_is_larger_than_the_history_says_undo_no(void **state)
{
	struct fixture *f = *state;
	struct workspace_options opt = f->opt;
	opt.history_bytes = 4000;
	fx_reopen(f, &opt);
	struct view *v = fx_view(f);
	fx_put_size(f, v, "a", 10000);
	assert_true(fx_commit(f, v).undo);
	fx_put(f, v, "a", "small");
	struct commit_result res = fx_commit(f, v);
	assert_false(res.undo);
	assert_non_null(strstr(res.undo_why_not, "larger"));
	view_free(v);
	refuse_undo(f, 0, ERR_NO_UNDO);
	assert_int_equal(fx_saved_names(f), 0);
}

static void required_history_refuses_what_could_not_be_undone(void **state)
{
	struct fixture *f = *state;
	struct workspace_options opt = f->opt;
	opt.history_bytes = 4000;
	opt.history_required = true;
	fx_reopen(f, &opt);
	struct view *v = fx_view(f);
	fx_put_size(f, v, "a", 10000);
	fx_commit(f, v);
	fx_put(f, v, "a", "small");
	fx_refuse_commit(f, v, ERR_NO_UNDO);
	view_free(v);
	fx_expect_usage(f, 10000, 1);
}

static void what_is_too_old_goes(void **state)
{
	struct fixture *f = *state;
	struct workspace_options opt = f->opt;
	struct seen s = {0};
	opt.history_age_s = 1;
	fx_reopen(f, &opt);
	write_file(f, "a", "1");
	write_file(f, "a", "2");
	usleep(1200 * 1000);
	write_file(f, "a", "3");
	FX_OK(history_list(f->ws, 0, 64, see, &s, &fx_err));
	assert_int_equal(s.n, 1);
	assert_int_equal(fx_saved_names(f), 1);
}

static void without_history_nothing_is_kept(void **state)
{
	struct fixture *f = *state;
	struct workspace_options opt = f->opt;
	uint64_t seq;
	opt.history_bytes = 0;
	fx_reopen(f, &opt);
	write_file(f, "a", "1");
	write_file(f, "a", "2");
	refuse_undo(f, 0, ERR_NO_UNDO);
	assert_int_equal(checkpoint_create(f->ws, "x", &seq, &fx_err), -ERR_NO_UNDO);
	assert_int_equal(fx_saved_names(f), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fx_setup, fx_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_outside_edit_is_a_conflict_that_names_the_path),
		T(an_outside_replacement_of_the_same_size_is_a_conflict),
		T(undoing_below_a_later_change_of_the_path_is_a_conflict),
		T(a_deleted_path_that_has_been_made_again_is_a_conflict),
		T(a_made_directory_that_has_been_filled_is_a_conflict),
		T(a_refused_undo_changes_nothing_of_a_larger_change),
		T(nothing_to_undo_is_said),
		T(content_that_has_left_the_store_is_said),
		T(creating_is_undone),
		T(replacing_is_undone),
		T(appending_is_undone),
		T(deleting_a_file_is_undone),
		T(deleting_a_directory_is_undone_with_everything_in_it),
		T(renaming_over_a_file_is_undone),
		T(renaming_a_directory_is_undone),
		T(mode_and_links_are_undone),
		T(an_undo_can_be_undone),
		T(undoing_goes_back_step_by_step),
		T(what_undoing_has_brought_back_can_be_undone_further),
		T(what_undoing_has_brought_back_and_somebody_edited_is_a_conflict),
		T(a_file_with_another_name_is_kept_as_a_copy),
		T(the_list_is_newest_first_and_pages),
		T(history_survives_closing),
		T(a_taken_label_and_an_unknown_one_are_refused),
		T(restoring_over_an_outside_edit_is_a_conflict),
		T(an_outside_edit_between_two_changes_is_a_conflict_too),
		T(a_checkpoint_brings_back_the_whole_state),
		T(restoring_copies_what_is_needed_once),
		T(a_torn_checkpoint_is_overwritten),
		T(when_full_the_oldest_goes),
		T(what_is_larger_than_the_history_says_undo_no),
		T(required_history_refuses_what_could_not_be_undone),
		T(what_is_too_old_goes),
		T(without_history_nothing_is_kept),
	};
	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
