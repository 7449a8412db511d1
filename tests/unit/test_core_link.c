/*
 * A front that was taken over, against core: whatever it sends, core lives, tells nothing that its
 * tokens may not know, and answers the others.
 */
#include "testing.h"

#include "daemon/core_link.h"
#include "daemon/messages.h"
#include "fixture/fixture.h"
#include "govern/token.h"
#include "sys/process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct fixture *f;
static struct loop *loop;
static struct core *core;
static struct core_link *link_;
static int front = -1, state_fd = -1;
static bool ended;
static char token[TOKEN_LEN + 1], foreign[TOKEN_LEN + 1];
static struct msg_out out;

static void on_end(void *ctx, struct core_link *l)
{
	(void)ctx;
	core_link_free(l);
	link_ = NULL;
	ended = true;
}

static void turns(void)
{
	struct err err;
	for (int i = 0; i < 20; i++)
		assert_int_equal(loop_turn(loop, 0, &err), 0);
}

static void connect_front(void)
{
	struct err err;
	int pair[2];
	if (front >= 0)
		(void)close(front);
	turns();
	assert_int_equal(packet_pair(pair, &err), 0);
	front = pair[0];
	assert_int_equal(core_link_new(core, loop, pair[1], on_end, NULL, &link_, &err), 0);
	ended = false;
}

static void make_token(const char *name, const char *tenant, char *text)
{
	struct err err;
	struct token t = {.role = ROLE_DEVELOPER};
	(void)snprintf(t.name, sizeof(t.name), "%s", name);
	(void)snprintf(t.tenant, sizeof(t.tenant), "%s", tenant);
	assert_int_equal(token_add(state_fd, &t, text, &err), 0);
}

static int set_up(void **state)
{
	struct err err;
	char path[256];
	(void)state;
	f = fixture_new(&(struct fixture_options){0});
	(void)snprintf(path, sizeof(path), "%s/state", fixture_base(f));
	state_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(state_fd >= 0);
	make_token("ours", "acme", token);
	make_token("theirs", "umbrella", foreign);
	assert_int_equal(loop_new(256, &loop, &err), 0);
	const struct core_options o = {
		.loop = loop, .env = *fixture_env(f), .state_fd = state_fd, .version = "test"};
	assert_int_equal(core_new(&o, &core, &err), 0);
	connect_front();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	core_link_free(link_);
	core_free(core);
	loop_free(loop);
	(void)close(front);
	(void)close(state_fd);
	front = -1;
	fixture_free(f);
	return 0;
}

/* --- what the front says and hears --- */

static struct msg_ask an_ask(uint64_t id, enum door_op op, const char *as)
{
	return (struct msg_ask){
		.id = id, .op = (uint8_t)op, .token = str_of(as), .body_size = UINT64_MAX};
}

static void say(const struct msg_ask *m, const int *fds, unsigned n)
{
	struct err err;
	msg_out_clear(&out);
	assert_true(msg_ask_put(&out, m));
	assert_int_equal(packet_send(front, out.data, out.len, fds, n, false, &err), 0);
	turns();
}

static void say_bytes(const void *p, size_t n)
{
	struct err err;
	assert_int_equal(packet_send(front, p, n, NULL, 0, false, &err), 0);
	turns();
}

/* The next answer. */
static enum err_code hear(uint64_t *ret_id, char json[4096])
{
	static char packet[MSG_PACKET_MAX];
	static struct msg_in in;
	struct err err;
	enum msg_type type;
	struct msg_in body;
	struct msg_answer m;
	if (in.left == 0) {
		int n = packet_recv(front, packet, sizeof(packet), NULL, NULL, false, &err);
		if (n <= 0)
			fail_msg("core said nothing");
		in = (struct msg_in){packet, (size_t)n};
	}
	assert_int_equal(msg_next(&in, MSG_FRONT, &type, &body, &err), 1);
	assert_int_equal(type, MSG_T_ANSWER);
	assert_int_equal(msg_answer_get(body, &m, &err), 0);
	*ret_id = m.id;
	(void)snprintf(json, 4096, "%.*s", (int)m.json.n, m.json.p);
	return (enum err_code)m.code;
}

static void check_code(uint64_t id, enum err_code code)
{
	char json[4096];
	uint64_t got;
	assert_int_equal(hear(&got, json), code);
	assert_int_equal(got, id);
}

/* Cut off, and core answers the next front. */
static void check_cut_off(void)
{
	assert_true(ended);
	connect_front();
	struct msg_ask m = an_ask(1, DOOR_WHOAMI, token);
	say(&m, NULL, 0);
	check_code(1, ERR_OK);
}

/* --- cases --- */

static void nonsense_cuts_it_off(void **state)
{
	char garbage[4096];
	(void)state;
	memset(garbage, 0xa5, sizeof(garbage));
	say_bytes(garbage, sizeof(garbage));
	check_cut_off();
	say_bytes("x", 1);
	check_cut_off();
}

static void messages_for_others_cut_it_off(void **state)
{
	(void)state;
	const struct msg_ended worker_ended = {.lease = 1};
	const struct msg_hello hello = {.landlock_abi = 5};
	const struct msg_front_is front_is = {.number = 1};
	const struct msg_retire retire = {0};
	msg_out_clear(&out);
	assert_true(msg_ended_put(&out, &worker_ended));
	say_bytes(out.data, out.len);
	check_cut_off();
	msg_out_clear(&out);
	assert_true(msg_hello_put(&out, &hello));
	say_bytes(out.data, out.len);
	check_cut_off();
	msg_out_clear(&out);
	assert_true(msg_front_is_put(&out, &front_is));
	say_bytes(out.data, out.len);
	check_cut_off();
	msg_out_clear(&out);
	assert_true(msg_retire_put(&out, &retire));
	say_bytes(out.data, out.len);
	check_cut_off();
}

static void a_number_in_use_cuts_it_off(void **state)
{
	(void)state;
	struct msg_ask m = an_ask(7, DOOR_EVENTS, token);
	m.wait_ms = 50000;
	say(&m, NULL, 0);
	assert_false(ended);
	say(&m, NULL, 0);
	check_cut_off();
	assert_int_equal(core_waiting(core), 0);
}

static void descriptors_that_were_not_announced_cut_it_off(void **state)
{
	(void)state;
	int fds[2] = {front, front};
	struct msg_ask m = an_ask(1, DOOR_WHOAMI, token);
	say(&m, fds, 2);
	check_cut_off();
	m.big = 1;
	say(&m, NULL, 0);
	check_cut_off();
}

/* Memory that could be changed or cut while core reads it. */
static void arguments_that_are_not_sealed_cut_it_off(void **state)
{
	(void)state;
	struct msg_ask m = an_ask(1, DOOR_SESSION_LIST, token);
	m.big = 1;
	int open_memory = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(write(open_memory, "{}", 2), 2);
	say(&m, &open_memory, 1);
	check_cut_off();
	assert_int_equal(fcntl(open_memory, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW), 0);
	say(&m, &open_memory, 1);
	check_cut_off();
	assert_int_equal(fcntl(open_memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	say(&m, &open_memory, 1);
	assert_false(ended);
	check_code(1, ERR_OK);
	(void)close(open_memory);
	int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	say(&m, &directory, 1);
	check_cut_off();
	(void)close(directory);
}

static void without_a_token_it_learns_nothing(void **state)
{
	(void)state;
	for (unsigned op = 0; op < DOOR_OP_MAX_; op++) {
		if (!(door_op_info((enum door_op)op)->needs & DOOR_AUTH))
			continue;
		struct msg_ask m = an_ask(op + 1, (enum door_op)op, "cloister_guessed");
		m.session = STR("ws");
		m.tool = STR("file_read");
		m.call = STR("abc");
		int memory = memfd_create("x", MFD_CLOEXEC);
		m.body = op == DOOR_UPLOAD;
		say(&m, &memory, m.body);
		check_code(op + 1, ERR_UNAUTHENTICATED);
		m = an_ask(op + 100, (enum door_op)op, "");
		m.body = op == DOOR_UPLOAD;
		say(&m, &memory, m.body);
		check_code(op + 100, ERR_UNAUTHENTICATED);
		(void)close(memory);
	}
}

static void a_token_reaches_its_own_tenant_only(void **state)
{
	char json[4096];
	uint64_t id;
	(void)state;
	struct msg_ask m = an_ask(1, DOOR_SESSION_CREATE, token);
	m.arguments = STR("{\"id\":\"s\"}");
	say(&m, NULL, 0);
	check_code(1, ERR_OK);
	static const enum door_op ops[] = {
		DOOR_SESSION_SHOW, DOOR_SESSION_DELETE, DOOR_SESSION_EXTEND, DOOR_EVENTS};
	for (unsigned i = 0; i < ARRAY_LEN(ops); i++) {
		m = an_ask(10 + i, ops[i], foreign);
		m.session = STR("s");
		if (ops[i] == DOOR_SESSION_EXTEND)
			m.arguments = STR("{\"ttl_seconds\":1}");
		say(&m, NULL, 0);
		check_code(10 + i, ERR_SESSION_NOT_FOUND);
	}
	m = an_ask(4, DOOR_METRICS, token);
	say(&m, NULL, 0);
	check_code(4, ERR_DENIED);
	m = an_ask(5, DOOR_SESSION_LIST, foreign);
	say(&m, NULL, 0);
	assert_int_equal(hear(&id, json), ERR_OK);
	assert_string_equal(json, "{\"sessions\":[],\"more\":false}");
}

static void words_with_nul_are_refused(void **state)
{
	(void)state;
	struct msg_ask m = an_ask(1, DOOR_SESSION_SHOW, token);
	m.session = (struct str){"s\0t", 3};
	say(&m, NULL, 0);
	check_code(1, ERR_INVALID_ARGUMENT);
	m = an_ask(2, DOOR_CALL, token);
	m.session = STR("s");
	m.tool = (struct str){"file_read\0", 10};
	say(&m, NULL, 0);
	check_code(2, ERR_INVALID_ARGUMENT);
}

static void stopping_what_is_not_there_is_nothing(void **state)
{
	(void)state;
	const struct msg_stop stop = {.id = 99, .forget = 1};
	msg_out_clear(&out);
	assert_true(msg_stop_put(&out, &stop));
	say_bytes(out.data, out.len);
	assert_false(ended);
}

static void a_forgotten_question_frees_its_number(void **state)
{
	(void)state;
	struct msg_ask m = an_ask(5, DOOR_EVENTS, token);
	m.wait_ms = 50000;
	const struct msg_stop stop = {.id = 5, .forget = 1};
	for (int i = 0; i < 3; i++) {
		say(&m, NULL, 0);
		assert_int_equal(core_waiting(core), 1);
		msg_out_clear(&out);
		assert_true(msg_stop_put(&out, &stop));
		say_bytes(out.data, out.len);
		check_code(5, ERR_CANCELLED);
		assert_int_equal(core_waiting(core), 0);
	}
}

/* Answers that are not read wait in core up to a limit; then it reads no more questions. */
static void one_that_does_not_read_is_not_read_from(void **state)
{
	struct err err;
	(void)state;
	struct msg_ask m = an_ask(1, DOOR_TOOLS, token);
	msg_out_clear(&out);
	unsigned sent = 0, busy = 0;
	for (; sent < 100000 && busy < 50; m.id++) {
		msg_out_clear(&out);
		assert_true(msg_ask_put(&out, &m));
		if (packet_send(front, out.data, out.len, NULL, 0, false, &err) < 0) {
			assert_int_equal(err.code, ERR_BUSY);
			busy++;
		} else {
			sent++;
		}
		assert_int_equal(loop_turn(loop, 0, &err), 0);
	}
	assert_int_equal(busy, 50);
	assert_false(ended);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(nonsense_cuts_it_off),
		CASE(messages_for_others_cut_it_off),
		CASE(a_number_in_use_cuts_it_off),
		CASE(descriptors_that_were_not_announced_cut_it_off),
		CASE(arguments_that_are_not_sealed_cut_it_off),
		CASE(without_a_token_it_learns_nothing),
		CASE(a_token_reaches_its_own_tenant_only),
		CASE(words_with_nul_are_refused),
		CASE(stopping_what_is_not_there_is_nothing),
		CASE(a_forgotten_question_frees_its_number),
		CASE(one_that_does_not_read_is_not_read_from),
	};
	return cmocka_run_group_tests_name("core_link", tests, NULL, NULL);
}
