/* Tests of workspace/record: what is written is read, and nothing else is. */
#include "testing.h"

#include "workspace/record.h"

static const struct record head = {
	.type = RECORD_COMMIT,
	.seq = 7,
	.undoes = 3,
	.time_ms = 1700000000123,
	.undoable = true,
	.call_id = "c-1",
	.tool = "file_write",
	.turn = "",
	.mounts = {"/workspace", "/tmp"},
	.n_mounts = 2,
	.n_changes = 2,
};

static const struct record_change changes[2] = {
	{.kind = CHANGE_REPLACE,
		.flags = RECORD_HAD | RECORD_HAS,
		.path = "a/b",
		.saved = "old-1",
		.mode_before = 0100644,
		.mode_after = 0100644,
		.size_before = 3,
		.size_after = 5,
		.bytes_delta = 2,
		.before = {.dev = 1, .ino = 2, .size = 3, .mtime = {4, 5}, .ctime = {-6, 7}}},
	{.kind = CHANGE_LINK, .mount = 1, .path = "l", .target = "a/b", .size_before = -1},
};

static struct buf written(const struct record *h, const struct record_change *c)
{
	struct err err;
	struct buf b = buf_init(1 << 20);
	struct record_writer w;
	record_begin(&w, &b, h);
	for (unsigned i = 0; i < h->n_changes; i++)
		record_put(&w, &c[i]);
	record_end(&w);
	assert_int_equal(buf_check(&b, "record", &err), 0);
	return b;
}

static int read_all(const void *p, size_t n, struct err *err)
{
	struct record_reader r;
	struct record_change c;
	int e = record_open(&r, p, n, err);
	while (e >= 0 && (e = record_next(&r, &c, err)) == 1)
		;
	return e;
}

static void any_bit_that_changes_is_noticed(void **state)
{
	(void)state;
	struct err err;
	struct buf b = written(&head, changes);
	assert_int_equal(read_all(b.data, b.len, &err), 0);
	for (size_t i = 0; i < b.len * 8; i++) {
		b.data[i / 8] = (char)(b.data[i / 8] ^ (1 << (i % 8)));
		int r = read_all(b.data, b.len, &err);
		assert_true(r == -ERR_CORRUPT || r == -ERR_UNSUPPORTED);
		b.data[i / 8] = (char)(b.data[i / 8] ^ (1 << (i % 8)));
	}
	buf_done(&b);
}

static void a_torn_record_is_refused_at_every_length(void **state)
{
	(void)state;
	struct err err;
	struct buf b = written(&head, changes);
	for (size_t n = 0; n < b.len; n++) {
		char *exact = malloc(n ? n : 1);
		memcpy(exact, b.data, n);
		assert_int_equal(read_all(exact, n, &err), -ERR_CORRUPT);
		free(exact);
	}
	buf_putc(&b, 'x');
	assert_int_equal(read_all(b.data, b.len, &err), -ERR_CORRUPT);
	buf_done(&b);
}

static void a_sealed_record_with_a_path_that_leads_elsewhere_is_refused(void **state)
{
	(void)state;
	struct err err;
	static const char *const paths[] = {
		"/etc/passwd", "..", "../x", "a/../b", "a//b", "./a", "a/.", "a/", "a/..", "."};
	static const char *const names[] = {"a/b", "..", "."};
	struct record h = head;
	h.n_changes = 1;
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct record_change c = changes[0], d = changes[0];
		c.path = paths[i];
		d.from = paths[i];
		struct buf b = written(&h, &c), e = written(&h, &d);
		assert_int_equal(read_all(b.data, b.len, &err), -ERR_CORRUPT);
		assert_int_equal(read_all(e.data, e.len, &err), -ERR_CORRUPT);
		buf_done(&b);
		buf_done(&e);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct record_change c = changes[0];
		c.saved = names[i];
		struct buf b = written(&h, &c);
		assert_int_equal(read_all(b.data, b.len, &err), -ERR_CORRUPT);
		buf_done(&b);
	}
}

static void a_change_of_an_unknown_mount_is_refused(void **state)
{
	(void)state;
	struct err err;
	struct record h = head;
	struct record_change c = changes[0];
	h.n_changes = 1;
	c.mount = 2;
	struct buf b = written(&h, &c);
	assert_int_equal(read_all(b.data, b.len, &err), -ERR_CORRUPT);
	buf_done(&b);
}

static void lengths_are_bounded(void **state)
{
	(void)state;
	struct err err;
	size_t len = 77;
	struct buf b = written(&head, changes);
	memset(b.data + 8, 0xff, 4);
	assert_int_equal(record_length(b.data, b.len, &len, &err), -ERR_CORRUPT);
	assert_int_equal(record_length(b.data, RECORD_HEAD - 1, &len, &err), -ERR_CORRUPT);
	assert_int_equal(record_length_back("\xff\xff\xff\xff", 4, &len, &err), -ERR_CORRUPT);
	assert_int_equal(record_length_back("\0\0\0\0", 4, &len, &err), -ERR_CORRUPT);
	assert_int_equal(len, 77);
	buf_done(&b);
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	struct err err;
	struct record_reader r;
	struct record_change c;
	struct buf b = written(&head, changes);
	size_t len = 0, back = 0;
	assert_int_equal(record_length(b.data, RECORD_HEAD, &len, &err), 0);
	assert_int_equal(record_length_back(b.data + b.len - RECORD_TAIL, 4, &back, &err), 0);
	assert_int_equal(len, b.len);
	assert_int_equal(back, b.len);
	assert_int_equal(record_open(&r, b.data, b.len, &err), 0);
	assert_int_equal(r.head.seq, 7);
	assert_int_equal(r.head.undoes, 3);
	assert_int_equal(r.head.time_ms, 1700000000123);
	assert_true(r.head.undoable);
	assert_string_equal(r.head.tool, "file_write");
	assert_string_equal(r.head.why_not, "");
	assert_string_equal(r.head.mounts[1], "/tmp");
	assert_int_equal(record_next(&r, &c, &err), 1);
	assert_int_equal(c.kind, CHANGE_REPLACE);
	assert_string_equal(c.path, "a/b");
	assert_string_equal(c.saved, "old-1");
	assert_int_equal(c.bytes_delta, 2);
	assert_int_equal(c.flags, RECORD_HAD | RECORD_HAS);
	assert_memory_equal(&c.before, &changes[0].before, sizeof(c.before));
	assert_int_equal(record_next(&r, &c, &err), 1);
	assert_int_equal(c.mount, 1);
	assert_int_equal(c.size_before, -1);
	assert_string_equal(c.target, "a/b");
	assert_int_equal(record_next(&r, &c, &err), 0);
	buf_done(&b);
}

static void records_can_follow_each_other_in_one_buffer(void **state)
{
	(void)state;
	struct err err;
	struct record second = {.type = RECORD_CHECKPOINT, .seq = 9, .label = "before"};
	struct buf b = written(&head, changes);
	size_t first = b.len;
	struct record_writer w;
	record_begin(&w, &b, &second);
	record_end(&w);
	assert_int_equal(read_all(b.data, first, &err), 0);
	assert_int_equal(read_all(b.data + first, b.len - first, &err), 0);
	buf_done(&b);
}

static void a_buffer_that_is_too_small_is_reported_not_overrun(void **state)
{
	(void)state;
	struct err err;
	for (size_t max = 0; max < 200; max += 7) {
		struct buf b = buf_init(max);
		struct record_writer w;
		record_begin(&w, &b, &head);
		record_put(&w, &changes[0]);
		record_put(&w, &changes[1]);
		record_end(&w);
		assert_int_equal(buf_check(&b, "record", &err), -ERR_LIMIT);
		buf_done(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_bit_that_changes_is_noticed),
		cmocka_unit_test(a_torn_record_is_refused_at_every_length),
		cmocka_unit_test(a_sealed_record_with_a_path_that_leads_elsewhere_is_refused),
		cmocka_unit_test(a_change_of_an_unknown_mount_is_refused),
		cmocka_unit_test(lengths_are_bounded),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(records_can_follow_each_other_in_one_buffer),
		cmocka_unit_test(a_buffer_that_is_too_small_is_reported_not_overrun),
	};
	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
