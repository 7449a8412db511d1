/*
 * What a worker that was taken over can do to core: nothing but fail its own job. The test plays
 * the worker at the other end of the channel and lies.
 */
#include "testing.h"

#include "daemon/messages.h"
#include "daemon/tree_internal.h"
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct err e;
static struct msg_out out;

enum { ABI = 7 };

struct stage {
	struct worker *w;
	int peer; /* the worker's end */
	uint64_t id;
	int fds[4]; /* that came with the job */
	unsigned n_fds;
	char packet[MSG_PACKET_MAX];
	size_t n;
};

static const struct search_place place = {0, {"", 0}};

static void open_stage(struct stage *s)
{
	int pair[2];
	memset(s, 0, sizeof(*s));
	assert_int_equal(packet_pair(pair, &e), 0);
	s->peer = pair[1];
	assert_int_equal(client_over(pair[0], ABI, &s->w, &e), 0);
}

static void submit(struct stage *s, const struct worker_job *job)
{
	assert_int_equal(worker_submit(s->w, job, &s->id, &e), 0);
	s->n_fds = ARRAY_LEN(s->fds);
	int n = packet_recv(s->peer, s->packet, sizeof(s->packet), s->fds, &s->n_fds, false, &e);
	assert_true(n > 0);
	s->n = (size_t)n;
}

static void submit_search(struct stage *s)
{
	const struct worker_job job = {.kind = WORK_SEARCH,
		.search = {.roots = &place,
			.n_roots = 1,
			.pattern = STR("x"),
			.max_results = 3,
			.before = 1,
			.after = 1}};
	submit(s, &job);
}

static int some_content(void)
{
	int fd = memfd_create("content", MFD_CLOEXEC);
	assert_int_equal(write(fd, "abc\n", 4), 4);
	return fd;
}

static void submit_replace(struct stage *s)
{
	_cleanup_close_ int fd = some_content();
	const struct worker_job job = {.kind = WORK_REGEX_REPLACE,
		.replace = {.content_fd = fd,
			.pattern = STR("b"),
			.replacement = STR("x"),
			.max_output = 100}};
	submit(s, &job);
}

static void close_stage(struct stage *s)
{
	worker_free(s->w);
	cleanup_close(&s->peer);
	for (unsigned i = 0; i < s->n_fds; i++)
		cleanup_close(&s->fds[i]);
}

static void send_out(struct stage *s)
{
	assert_int_equal(packet_send(s->peer, out.data, out.len, NULL, 0, false, &e), 0);
	msg_out_clear(&out);
}

static void hello(struct stage *s)
{
	const struct msg_hello m = {.landlock_abi = ABI};
	msg_out_clear(&out);
	assert_true(msg_hello_put(&out, &m));
	send_out(s);
}

static struct msg_hit a_hit(const struct stage *s)
{
	return (struct msg_hit){.id = s->id,
		.path = STR("a/b"),
		.line = 1,
		.column = 1,
		.match_len = 1,
		.text = STR("x")};
}

static struct msg_searched an_end(const struct stage *s, uint64_t hits)
{
	return (struct msg_searched){.id = s->id, .hits = hits, .files_scanned = 1};
}

static void assert_ended(struct stage *s, const char *why)
{
	struct worker_answer *a = NULL;
	int r = worker_take(s->w, s->id, &a, &e);
	if (r != -ERR_UNAVAILABLE)
		fail_msg("%s: %d %s", why, r, r < 0 ? e.text : "");
	assert_null(a);
	assert_non_null(strstr(e.text, "worker"));
	assert_int_equal(worker_poll_fd(s->w), -1);
	char byte;
	assert_int_equal(recv(s->peer, &byte, 1, MSG_DONTWAIT), 0); /* its channel is closed */
}

/* --- the honest course, so that the lies below are lies --- */

static void an_honest_answer_is_taken(void **state)
{
	(void)state;
	struct stage s;
	struct worker_answer *a = NULL;
	open_stage(&s);
	submit_search(&s);
	assert_int_equal(worker_take(s.w, s.id, &a, &e), 0);
	hello(&s);
	struct msg_hit m = a_hit(&s);
	m.before.n = m.after.n = 1;
	m.before.v[0] = STR("above");
	m.after.v[0] = STR("below");
	assert_true(msg_hit_put(&out, &m));
	m.text = STR("second");
	m.before.n = 0;
	assert_true(msg_hit_put(&out, &m));
	send_out(&s);
	assert_int_equal(worker_take(s.w, s.id, &a, &e), 0);
	struct msg_searched end = an_end(&s, 2);
	end.stop = SEARCH_TIME;
	assert_true(msg_searched_put(&out, &end));
	send_out(&s);
	assert_int_equal(worker_take(s.w, s.id, &a, &e), 1);
	assert_int_equal(a->search.stats.hits, 2);
	assert_int_equal(a->search.stats.stop, SEARCH_TIME);
	assert_true(str_eq_c(a->search.hits[0].before[0], "above"));
	assert_true(str_eq_c(a->search.hits[0].after[0], "below"));
	assert_true(str_eq_c(a->search.hits[1].text, "second"));
	assert_true(str_eq_c(a->search.hits[1].after[0], "below"));
	assert_int_equal(a->search.hits[1].n_before, 0);
	worker_answer_free(a);
	assert_int_equal(worker_take(s.w, s.id, &a, &e), -ERR_INVALID_ARGUMENT);
	close_stage(&s);
}

/* --- lies about a search --- */

typedef void (*lie_fn)(struct stage *s);

static void lie_no_hello(struct stage *s)
{
	struct msg_searched m = an_end(s, 0);
	assert_true(msg_searched_put(&out, &m));
}

static void lie_weaker_hello(struct stage *s)
{
	(void)s;
	const struct msg_hello m = {.landlock_abi = ABI - 1};
	assert_true(msg_hello_put(&out, &m));
}

static void lie_two_hellos(struct stage *s)
{
	const struct msg_hello m = {.landlock_abi = ABI};
	hello(s);
	assert_true(msg_hello_put(&out, &m));
}

static void lie_other_id(struct stage *s)
{
	hello(s);
	struct msg_searched m = an_end(s, 0);
	m.id++;
	assert_true(msg_searched_put(&out, &m));
}

static void lie_hit_of_other_id(struct stage *s)
{
	hello(s);
	struct msg_hit m = a_hit(s);
	m.id++;
	assert_true(msg_hit_put(&out, &m));
}

static void lie_other_root(struct stage *s)
{
	hello(s);
	struct msg_hit m = a_hit(s);
	m.root = 1;
	assert_true(msg_hit_put(&out, &m));
}

static void lie_line_zero(struct stage *s)
{
	hello(s);
	struct msg_hit m = a_hit(s);
	m.line = 0;
	assert_true(msg_hit_put(&out, &m));
}

static void lie_column_zero(struct stage *s)
{
	hello(s);
	struct msg_hit m = a_hit(s);
	m.column = 0;
	assert_true(msg_hit_put(&out, &m));
}

static void lie_nul_in_path(struct stage *s)
{
	hello(s);
	struct msg_hit m = a_hit(s);
	m.path = (struct str){"a\0b", 3};
	assert_true(msg_hit_put(&out, &m));
}

static void lie_more_context(struct stage *s)
{
	hello(s);
	struct msg_hit m = a_hit(s);
	m.after.n = 2;
	m.after.v[0] = m.after.v[1] = STR("y");
	assert_true(msg_hit_put(&out, &m));
}

static void lie_more_hits(struct stage *s)
{
	hello(s);
	struct msg_hit m = a_hit(s);
	for (int i = 0; i < 4; i++)
		assert_true(msg_hit_put(&out, &m));
}

static void lie_count(struct stage *s)
{
	hello(s);
	struct msg_hit m = a_hit(s);
	assert_true(msg_hit_put(&out, &m));
	struct msg_searched end = an_end(s, 2);
	assert_true(msg_searched_put(&out, &end));
}

static void lie_other_kind(struct stage *s)
{
	hello(s);
	const struct msg_replaced m = {.id = s->id};
	assert_true(msg_replaced_put(&out, &m));
}

static void lie_yaml_instead(struct stage *s)
{
	hello(s);
	const struct msg_yaml_done m = {.id = s->id};
	assert_true(msg_yaml_done_put(&out, &m));
}

static void lie_failed_with_success(struct stage *s)
{
	hello(s);
	const struct msg_failed m = {.id = s->id, .code = ERR_OK, .text = STR("x")};
	assert_true(msg_failed_put(&out, &m));
}

static void lie_failed_code_of_nowhere(struct stage *s)
{
	hello(s);
	const struct msg_failed m = {.id = s->id, .code = ERR_IO, .text = STR("x")};
	assert_true(msg_failed_put(&out, &m));
	uint32_t code = ERR_CODE_MAX_;
	memcpy(out.data + 8 + 8, &code, sizeof(code));
}

static void lie_for_the_supervisor(struct stage *s)
{
	hello(s);
	const struct msg_kill m = {.lease = 1};
	assert_true(msg_kill_put(&out, &m));
}

static void lie_as_the_supervisor(struct stage *s)
{
	hello(s);
	const struct msg_ended m = {.lease = 1};
	assert_true(msg_ended_put(&out, &m));
}

static void put_raw(uint16_t type, uint16_t zero, uint32_t len, const void *body, size_t n)
{
	memcpy(out.data, &type, 2);
	memcpy(out.data + 2, &zero, 2);
	memcpy(out.data + 4, &len, 4);
	memcpy(out.data + 8, body, n);
	out.len = 8 + n;
}

static void lie_unknown_type(struct stage *s)
{
	hello(s);
	put_raw(9999, 0, 4, "abcd", 4);
}

static void lie_type_none(struct stage *s)
{
	hello(s);
	put_raw(MSG_NONE_, 0, 0, "", 0);
}

static void lie_longer_than_packet(struct stage *s)
{
	hello(s);
	put_raw(MSG_T_FAILED, 0, 0xfffffff8u, "abcd", 4);
}

static void lie_short_header(struct stage *s)
{
	hello(s);
	put_raw(MSG_T_FAILED, 0, 0, "", 0);
	out.len = 5;
}

static void lie_reserved_bits(struct stage *s)
{
	hello(s);
	put_raw(MSG_T_FAILED, 1, 4, "abcd", 4);
}

static void lie_leftover(struct stage *s)
{
	hello(s);
	struct msg_searched m = an_end(s, 0);
	assert_true(msg_searched_put(&out, &m));
	uint32_t len = (uint32_t)(out.len - 8 + 1);
	memcpy(out.data + 4, &len, 4);
	out.data[out.len++] = 'x';
}

static void lie_short_body(struct stage *s)
{
	hello(s);
	struct msg_searched m = an_end(s, 0);
	assert_true(msg_searched_put(&out, &m));
	uint32_t len = (uint32_t)(out.len - 8 - 1);
	memcpy(out.data + 4, &len, 4);
	out.len--;
}

static void lie_huge_list(struct stage *s)
{
	hello(s);
	struct msg_hit m = a_hit(s);
	assert_true(msg_hit_put(&out, &m));
	uint32_t many = 0xffffffffu; /* the count of `after`, the last field */
	memcpy(out.data + out.len - 4, &many, 4);
}

static void lie_stop_of_nowhere(struct stage *s)
{
	hello(s);
	struct msg_searched m = an_end(s, 0);
	assert_true(msg_searched_put(&out, &m));
	out.data[8 + 8] = SEARCH_STOP_MAX_;
}

static void lies_about_a_search_end_the_worker(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		lie_fn tell;
	} lies[] = {
#define L(f) {#f, f}
		L(lie_no_hello),
		L(lie_weaker_hello),
		L(lie_two_hellos),
		L(lie_other_id),
		L(lie_hit_of_other_id),
		L(lie_other_root),
		L(lie_line_zero),
		L(lie_column_zero),
		L(lie_nul_in_path),
		L(lie_more_context),
		L(lie_more_hits),
		L(lie_count),
		L(lie_other_kind),
		L(lie_yaml_instead),
		L(lie_failed_with_success),
		L(lie_failed_code_of_nowhere),
		L(lie_for_the_supervisor),
		L(lie_as_the_supervisor),
		L(lie_unknown_type),
		L(lie_type_none),
		L(lie_longer_than_packet),
		L(lie_short_header),
		L(lie_reserved_bits),
		L(lie_leftover),
		L(lie_short_body),
		L(lie_huge_list),
		L(lie_stop_of_nowhere),
#undef L
	};
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		struct stage s;
		open_stage(&s);
		submit_search(&s);
		msg_out_clear(&out);
		lies[i].tell(&s);
		send_out(&s);
		assert_ended(&s, lies[i].name);
		close_stage(&s);
	}
}

static void a_descriptor_from_the_worker_is_refused_and_closed(void **state)
{
	(void)state;
	struct stage s;
	open_stage(&s);
	submit_search(&s);
	hello(&s);
	struct msg_searched m = an_end(&s, 0);
	assert_true(msg_searched_put(&out, &m));
	int before = dup(0);
	close(before);
	assert_int_equal(packet_send(s.peer, out.data, out.len, &s.peer, 1, false, &e), 0);
	assert_ended(&s, "a descriptor");
	int after = dup(0);
	close(after);
	assert_true(after <= before);
	close_stage(&s);
}

static void an_endless_answer_is_cut_off(void **state)
{
	(void)state;
	struct stage s;
	open_stage(&s);
	static char text[SEARCH_LINE_BYTES];
	memset(text, 'x', sizeof(text));
	const struct worker_job job = {.kind = WORK_SEARCH,
		.search = {.roots = &place,
			.n_roots = 1,
			.pattern = STR("x"),
			.before = SEARCH_CONTEXT_MAX}};
	submit(&s, &job);
	hello(&s);
	struct msg_hit m = a_hit(&s);
	m.before.n = SEARCH_CONTEXT_MAX;
	for (unsigned i = 0; i < m.before.n; i++)
		m.before.v[i] = (struct str){text, sizeof(text)};
	struct worker_answer *a;
	size_t sent = 0;
	int r = 0;
	while (r == 0 && sent < 100 * 1024 * 1024) {
		assert_true(msg_hit_put(&out, &m));
		sent += out.len;
		send_out(&s);
		r = worker_take(s.w, s.id, &a, &e);
	}
	assert_int_equal(r, -ERR_UNAVAILABLE);
	assert_true(sent < 6 * 1024 * 1024);
	close_stage(&s);
}

/* --- output --- */

static void finish_replace(struct stage *s, int64_t size)
{
	const struct msg_replaced m = {.id = s->id, .size = size, .replacements = 1};
	hello(s);
	assert_true(msg_replaced_put(&out, &m));
	send_out(s);
}

static void an_output_is_sealed_before_it_is_believed(void **state)
{
	(void)state;
	struct stage s;
	struct worker_answer *a = NULL;
	open_stage(&s);
	submit_replace(&s);
	assert_int_equal(s.n_fds, 2);
	assert_int_equal(write(s.fds[1], "axc\n", 4), 4);
	finish_replace(&s, 4);
	assert_int_equal(worker_take(s.w, s.id, &a, &e), 1);
	/* the worker still has its descriptor, and it is of no use any more */
	assert_int_equal(pwrite(s.fds[1], "y", 1, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(s.fds[1], 0), -1);
	assert_ptr_equal(mmap(NULL, 4, PROT_WRITE, MAP_SHARED, s.fds[1], 0), MAP_FAILED);
	char text[8];
	assert_int_equal(pread(a->replace.content_fd, text, sizeof(text), 0), 4);
	assert_memory_equal(text, "axc\n", 4);
	worker_answer_free(a);
	close_stage(&s);
}

static void an_output_of_another_size_or_still_mapped_is_a_lie(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct stage s;
		open_stage(&s);
		submit_replace(&s);
		void *map = MAP_FAILED;
		if (how == 0) {
			assert_int_equal(write(s.fds[1], "axc\n", 4), 4);
		} else if (how == 1) {
			assert_int_equal(ftruncate(s.fds[1], 101), 0); /* over the limit */
		} else {
			assert_int_equal(ftruncate(s.fds[1], 4), 0);
			map = mmap(NULL, 4, PROT_READ | PROT_WRITE, MAP_SHARED, s.fds[1], 0);
			assert_ptr_not_equal(map, MAP_FAILED);
		}
		finish_replace(&s, how == 0 ? 5 : how == 1 ? 101 : 4);
		assert_ended(&s, "output");
		if (map != MAP_FAILED)
			munmap(map, 4);
		close_stage(&s);
	}
}

static void a_staged_file_is_handed_over_for_reading_only(void **state)
{
	(void)state;
	struct stage s;
	open_stage(&s);
	submit_replace(&s); /* its content descriptor is open for reading and writing */
	assert_int_equal(fcntl(s.fds[0], F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(write(s.fds[0], "x", 1), -1);
	char text[8];
	assert_int_equal(pread(s.fds[0], text, sizeof(text), 0), 4);
	close_stage(&s);
}

/* --- texts and ends --- */

static void texts_of_a_worker_are_made_harmless(void **state)
{
	(void)state;
	struct stage s;
	struct worker_answer *a;
	open_stage(&s);
	submit_search(&s);
	hello(&s);
	const struct msg_failed m = {.id = s.id,
		.code = ERR_INVALID_ARGUMENT,
		.text = STR("bad\x1b]52;c;aGk=\x07 \xff text"),
		.hint = STR("\xe2\x80\xaehint")};
	assert_true(msg_failed_put(&out, &m));
	send_out(&s);
	assert_int_equal(worker_take(s.w, s.id, &a, &e), -ERR_INVALID_ARGUMENT);
	assert_string_equal(e.text, "bad\\x1b]52;c;aGk=\\x07 \\xff text");
	assert_string_equal(e.hint, "\\u{202e}hint");
	assert_int_not_equal(worker_poll_fd(s.w), -1); /* an ordinary failure ends nothing */
	close_stage(&s);
}

static void an_end_in_the_middle_is_an_error_of_the_job(void **state)
{
	(void)state;
	struct stage s;
	open_stage(&s);
	submit_search(&s);
	hello(&s);
	struct msg_hit m = a_hit(&s);
	assert_true(msg_hit_put(&out, &m));
	send_out(&s);
	(void)shutdown(s.peer, SHUT_RDWR);
	struct worker_answer *a;
	assert_int_equal(worker_take(s.w, s.id, &a, &e), -ERR_UNAVAILABLE);
	close_stage(&s);
}

/* --- questions outside their limits never leave core --- */

static void bad_jobs_are_refused_before_they_are_sent(void **state)
{
	(void)state;
	static char long_text[40000];
	memset(long_text, 'x', sizeof(long_text) - 1);
	_cleanup_close_ int path_only = open("/", O_PATH | O_CLOEXEC);
	static const struct search_place outside = {LIMIT_MOUNTS, {"", 0}};
	const struct worker_job jobs[] = {
		{.kind = WORK_SEARCH, .search = {.roots = &place, .n_roots = 1}},
		{.kind = WORK_SEARCH, .search = {.pattern = STR("x")}},
		{.kind = WORK_SEARCH,
			.search = {.roots = &outside, .n_roots = 1, .pattern = STR("x")}},
		{.kind = WORK_SEARCH,
			.search = {.roots = &place,
				.n_roots = 1,
				.pattern = {long_text, LIMIT_PATTERN_BYTES + 1}}},
		{.kind = WORK_SEARCH,
			.search = {.roots = &place,
				.n_roots = 1,
				.pattern = STR("x"),
				.before = SEARCH_CONTEXT_MAX + 1}},
		{.kind = WORK_SEARCH,
			.search = {.roots = &place,
				.n_roots = 1,
				.pattern = STR("x"),
				.max_results = SEARCH_RESULTS_MAX + 1}},
		{.kind = WORK_SEARCH,
			.search =
				{.roots = &place, .n_roots = 1, .pattern = STR("x"), .max_ms = -1}},
		{.kind = WORK_SEARCH,
			.deadline_ms = WORKER_DEADLINE_MS_MAX + 1,
			.search = {.roots = &place, .n_roots = 1, .pattern = STR("x")}},
		{.kind = WORK_REGEX_REPLACE,
			.replace = {.content_fd = path_only, .pattern = STR("x")}},
		{.kind = WORK_REGEX_REPLACE, .replace = {.content_fd = -1, .pattern = STR("x")}},
		{.kind = WORK_REGEX_REPLACE,
			.replace = {.content_fd = 0,
				.pattern = STR("x"),
				.replacement = {long_text, MSG_REPLACEMENT_MAX + 1}}},
		{.kind = WORK_YAML,
			.yaml = {.content_fd = -1,
				.bytes = {long_text, WORKER_YAML_INLINE_MAX + 1}}},
		{.kind = WORK_YAML, .yaml = {.content_fd = -1, .max_output = -1}},
		{.kind = (enum work_kind)9},
	};
	struct stage s;
	open_stage(&s);
	for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
		uint64_t id;
		if (worker_submit(s.w, &jobs[i], &id, &e) != -ERR_INVALID_ARGUMENT)
			fail_msg("job %zu", i);
		char byte;
		assert_int_equal(recv(s.peer, &byte, 1, MSG_DONTWAIT), -1);
	}
	close_stage(&s);
}

static void jobs_run_one_at_a_time_in_order_and_the_queue_has_a_limit(void **state)
{
	(void)state;
	struct stage s;
	uint64_t ids[WORKER_QUEUE_MAX], id;
	struct worker_answer *a;
	const struct worker_job job = {.kind = WORK_SEARCH,
		.search = {.roots = &place, .n_roots = 1, .pattern = STR("x")}};
	open_stage(&s);
	for (int i = 0; i < WORKER_QUEUE_MAX; i++)
		assert_int_equal(worker_submit(s.w, &job, &ids[i], &e), 0);
	assert_int_equal(worker_submit(s.w, &job, &id, &e), -ERR_LIMIT);
	worker_cancel(s.w, ids[1]);
	hello(&s);
	for (int i = 0; i < WORKER_QUEUE_MAX; i++) {
		if (i == 1) {
			assert_int_equal(worker_take(s.w, ids[i], &a, &e), -ERR_INVALID_ARGUMENT);
			continue;
		}
		int n = packet_recv(s.peer, s.packet, sizeof(s.packet), NULL, NULL, false, &e);
		assert_true(n > 0);
		char byte;
		assert_int_equal(recv(s.peer, &byte, 1, MSG_DONTWAIT), -1); /* only one */
		s.id = ids[i];
		struct msg_searched end = an_end(&s, 0);
		assert_true(msg_searched_put(&out, &end));
		send_out(&s);
		assert_int_equal(worker_take(s.w, ids[i], &a, &e), 1);
		worker_answer_free(a);
	}
	close_stage(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_honest_answer_is_taken),
		cmocka_unit_test(lies_about_a_search_end_the_worker),
		cmocka_unit_test(a_descriptor_from_the_worker_is_refused_and_closed),
		cmocka_unit_test(an_endless_answer_is_cut_off),
		cmocka_unit_test(an_output_is_sealed_before_it_is_believed),
		cmocka_unit_test(an_output_of_another_size_or_still_mapped_is_a_lie),
		cmocka_unit_test(a_staged_file_is_handed_over_for_reading_only),
		cmocka_unit_test(texts_of_a_worker_are_made_harmless),
		cmocka_unit_test(an_end_in_the_middle_is_an_error_of_the_job),
		cmocka_unit_test(bad_jobs_are_refused_before_they_are_sent),
		cmocka_unit_test(jobs_run_one_at_a_time_in_order_and_the_queue_has_a_limit),
	};
	return cmocka_run_group_tests_name("worker client", tests, NULL, NULL);
}
