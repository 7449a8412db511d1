/*
 * The HTTP door against a core that only says what it was asked: what goes through the port, what
 * comes back, and what never gets that far.
 */
#include "testing.h"

#include "codec/json.h"
#include "http_world.h"
#include "transport/http/api.h"
#include "transport/http/routes.h"

#include <sys/mman.h>

/* --- a core that says what it was asked ------------------------------------------------------- */

struct fake {
	struct door door;
	struct loop *loop;
	struct loop_source *soon;
	struct http_api *api;
	unsigned short port;
	unsigned asked, abandoned;
	bool silent; /* no answer comes */

	enum door_op op;
	char token[64], session[64], tool[64], id[64], role[64], turn[64], arguments[4096];
	int64_t wait_ms, body_size;
	int body_fd;

	door_done_fn done;
	void *ctx;
	struct door_answer answer;
	const char *json;
};

static void copy(char *to, struct str s)
{
	assert_true(s.n < 64);
	memcpy(to, s.p ? s.p : "", s.n);
	to[s.n] = '\0';
}

static int fake_submit(struct door *d, const struct door_request *q, door_done_fn done,
	door_progress_fn progress, void *ctx, uint64_t *ret_id, struct err *err)
{
	struct fake *f = (struct fake *)d;
	(void)progress;
	int r = door_check(q, err);
	if (r < 0)
		return r;
	f->asked++;
	f->op = q->op;
	copy(f->token, q->token);
	copy(f->session, q->session);
	copy(f->tool, q->tool);
	copy(f->id, q->id);
	copy(f->role, q->role);
	copy(f->turn, q->turn);
	assert_true(q->arguments.n < sizeof(f->arguments));
	memcpy(f->arguments, q->arguments.p ? q->arguments.p : "", q->arguments.n);
	f->arguments[q->arguments.n] = '\0';
	f->wait_ms = q->wait_ms;
	f->body_fd = q->body_fd;
	f->body_size = q->body_size;
	f->done = done;
	f->ctx = ctx;
	*ret_id = f->asked;
	if (!f->silent)
		loop_defer_again(f->soon);
	return 0;
}

static void fake_cancel(struct door *d, uint64_t id)
{
	(void)d;
	(void)id;
}

static void fake_abandon(struct door *d, uint64_t id)
{
	(void)id;
	((struct fake *)d)->abandoned++;
	((struct fake *)d)->done = NULL;
}

static const struct door_ops fake_ops = {fake_submit, fake_cancel, fake_abandon};

static void fake_answer(void *ctx)
{
	struct fake *f = ctx;
	if (!f->done)
		return;
	struct door_answer a = f->answer;
	door_done_fn done = f->done;
	f->done = NULL;
	a.json = str_of(f->json);
	f->answer.fd = -1;
	done(f->ctx, &a);
	if (a.fd >= 0)
		(void)close(a.fd);
}

static struct fake *fake_new(void)
{
	struct fake *f = calloc(1, sizeof(*f));
	struct err err;
	f->door.ops = &fake_ops;
	f->json = "{\"ok\":true}";
	f->answer.fd = -1;
	f->body_fd = -1;
	assert_int_equal(loop_new(64, &f->loop, &err), 0);
	assert_int_equal(loop_defer(f->loop, fake_answer, f, &f->soon, &err), 0);
	struct http_api_options o = {.loop = f->loop,
		.door = &f->door,
		.version = "1.2.3",
		.resource = "https://cloister.example"};
	assert_int_equal(http_api_new(&o, &f->api, &err), 0);
	assert_int_equal(http_api_listen(f->api, listen_tcp(&f->port), &err), 0);
	turn(f->loop, 0);
	return f;
}

static void fake_free(struct fake *f)
{
	http_api_free(f->api);
	loop_free(f->loop);
	free(f);
}

/* One request with a token: its status; what came is in `heard`. */
static unsigned send_request(
	struct fake *f, const char *line, const char *headers, const char *body)
{
	char text[8192];
	bool closed;
	int n = snprintf(text, sizeof(text),
		"%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\nConnection: "
		"close\r\n%s",
		line, headers);
	if (body)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "Content-Length: %zu\r\n\r\n%s",
			strlen(body), body);
	else
		n += snprintf(text + n, sizeof(text) - (size_t)n, "\r\n");
	int fd = dial(f->port);
	say(fd, text, (size_t)n);
	unsigned status = hear(f->loop, fd, NULL, 2000, &closed);
	assert_true(closed);
	(void)close(fd);
	return status;
}

static bool heard_has(const char *text)
{
	if (!strstr(heard, text))
		print_error("not heard: %s\nin: %s\n", text, heard);
	return strstr(heard, text) != NULL;
}

#define JSON "Content-Type: application/json\r\n"

/* --- what goes through ------------------------------------------------------------------------ */

static void test_a_call(void **state)
{
	(void)state;
	struct fake *f = fake_new();
	assert_int_equal(
		send_request(f, "POST /api/v1/sessions/s1/tools/file_read/execute?wait_ms=50",
			JSON "Cloister-Role: critic\r\nCloister-Turn: t9\r\n", "{\"path\":\"a\"}"),
		200);
	assert_true(heard_has("{\"ok\":true}"));
	assert_int_equal(f->op, DOOR_CALL);
	assert_string_equal(f->token, "secret");
	assert_string_equal(f->session, "s1");
	assert_string_equal(f->tool, "file_read");
	assert_string_equal(f->arguments, "{\"path\":\"a\"}");
	assert_string_equal(f->role, "critic");
	assert_string_equal(f->turn, "t9");
	assert_int_equal(f->wait_ms, 50);
	fake_free(f);
}

static void test_statuses_follow_from_codes(void **state)
{
	(void)state;
	struct fake *f = fake_new();
	for (int c = ERR_OK + 1; c < ERR_CODE_MAX_; c++) {
		f->answer.code = (enum err_code)c;
		f->json = "{\"executed\":false}";
		assert_int_equal(send_request(f, "GET /api/v1/sessions/s1", "", NULL),
			err_info((enum err_code)c)->http);
		assert_true(heard_has("{\"executed\":false}"));
	}
	f->answer.code = ERR_OK;
	f->answer.running = true;
	assert_int_equal(send_request(f, "GET /api/v1/calls/c1?wait_ms=1", "", NULL), 202);
	assert_string_equal(f->id, "c1");
	fake_free(f);
}

static void test_sessions(void **state)
{
	(void)state;
	struct fake *f = fake_new();
	assert_int_equal(send_request(f, "POST /api/v1/sessions", JSON, "{\"id\":\"s1\"}"), 201);
	assert_int_equal(f->op, DOOR_SESSION_CREATE);
	assert_string_equal(f->arguments, "{\"id\":\"s1\"}");
	assert_int_equal(
		send_request(f, "GET /api/v1/sessions?limit=5&after=a%22b", "", NULL), 200);
	assert_string_equal(f->arguments, "{\"limit\":5,\"after\":\"a\\\"b\"}");
	assert_int_equal(send_request(f, "DELETE /api/v1/sessions/s1", "", NULL), 200);
	assert_int_equal(f->op, DOOR_SESSION_DELETE);
	fake_free(f);
}

/* --- what never gets that far ----------------------------------------------------------------- */

static void test_refused_before_the_port(void **state)
{
	(void)state;
	static const struct {
		const char *line, *headers, *body;
		unsigned status;
		const char *says;
	} rows[] = {
		{"GET /", "", NULL, 404, "not_found"},
		{"GET /api/v1/nothing", "", NULL, 404, "not_found"},
		{"GET /api/v1/sessions/", "", NULL, 404, "not_found"},
		{"GET /api/v1/sessions/s1/files/", "", NULL, 404, "not_found"},
		{"PUT /api/v1/sessions", "", "", 405, "Allow: POST, GET"},
		{"DELETE /healthz", "", NULL, 405, "Allow: GET"},
		{"GET /api/v1/sessions?limit=0", "", NULL, 400, "from 1 to 1000"},
		{"GET /api/v1/sessions?limit=+5", "", NULL, 400, "limit"},
		{"GET /api/v1/sessions?limit=5x", "", NULL, 400, "limit"},
		{"GET /api/v1/sessions?limit=", "", NULL, 400, "limit"},
		{"GET /api/v1/sessions?color=red", "", NULL, 400, "'color' is not known"},
		{"DELETE /api/v1/sessions/s1/files/a?recursive=1", "", NULL, 400, "true or false"},
		{"POST /api/v1/sessions", "Content-Type: text/plain\r\n", "{}", 400,
			"application/json"},
		{"POST /api/v1/calls/c/cancel", JSON, "{\"a\":1}", 400, "'a'"},
		{"GET /api/v1/sessions", "", "{}", 413, "larger than 0 bytes"},
		{"GET /api/v1/calls/c?wait_ms=50001", "", NULL, 400, "wait_ms"},
		{"PUT /api/v1/sessions/s/files/a", "Transfer-Encoding: chunked\r\n", NULL, 411,
			"Content-Length"},
		{"PUT /api/v1/sessions/s/files/a", "If-Match: \"short\"\r\n", "x", 400, "SHA-256"},
		{"PUT /api/v1/sessions/s/files/a", "If-None-Match: \"a\"\r\n", "x", 400, "*"},
		{"GET /api/v1/sessions/s/files/a/%2e%2e/b", "", NULL, 400, ".."},
		{"GET /api/v1/events", "Last-Event-ID: 7x\r\n", NULL, 400, "Last-Event-ID"},
	};
	struct fake *f = fake_new();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned s = send_request(f, rows[i].line, rows[i].headers, rows[i].body);
		if (s != rows[i].status)
			print_error("%s: %u\n", rows[i].line, s);
		assert_int_equal(s, rows[i].status);
		assert_true(heard_has(rows[i].says));
	}
	assert_int_equal(f->asked, 0);
	fake_free(f);
}

static void test_challenge(void **state)
{
	(void)state;
	struct fake *f = fake_new();
	bool closed;
	static const char get[] =
		"GET /api/v1/whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	int fd = dial(f->port);
	say(fd, get, sizeof(get) - 1);
	assert_int_equal(hear(f->loop, fd, NULL, 1000, &closed), 401);
	assert_true(heard_has("WWW-Authenticate: Bearer realm=\"cloister\", "
			      "resource_metadata=\"https://cloister.example/.well-known/"
			      "oauth-protected-resource\""));
	assert_int_equal(f->asked, 0);
	(void)close(fd);
	fake_free(f);
}

/* --- files ------------------------------------------------------------------------------------ */

static void have_file(struct fake *f, const char *content)
{
	f->answer.fd = memfd_create("file", MFD_CLOEXEC);
	f->answer.size = (int64_t)strlen(content);
	f->answer.modified_ms = 784111777000;
	(void)snprintf(f->answer.etag, sizeof(f->answer.etag), "tag1");
	assert_int_equal(write(f->answer.fd, content, strlen(content)), strlen(content));
}

static void test_download(void **state)
{
	(void)state;
	static const struct {
		const char *method, *headers;
		unsigned status;
		const char *says, *says_not;
	} rows[] = {
		{"GET", "", 200, "\r\n\r\n0123456789", "Content-Range"},
		{"GET", "", 200, "ETag: \"tag1\"", "!"},
		{"GET", "", 200, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", "!"},
		{"HEAD", "", 200, "Content-Length: 10\r\n", "0123456789"},
		{"GET", "Range: bytes=2-4\r\n", 206, "Content-Range: bytes 2-4/10\r\n", "!"},
		{"GET", "Range: bytes=2-4\r\n", 206, "\r\n\r\n234", "\r\n\r\n2345"},
		{"GET", "Range: bytes=-3\r\n", 206, "\r\n\r\n789", "!"},
		{"GET", "Range: bytes=10-\r\n", 416, "Content-Range: bytes */10", "!"},
		{"GET", "Range: bytes=1-2,4-5\r\n", 200, "\r\n\r\n0123456789", "!"},
		{"GET", "Range: bytes=0-0\r\nIf-Range: \"old\"\r\n", 200, "0123456789", "!"},
		{"GET", "If-None-Match: \"tag1\"\r\n", 304, "ETag: \"tag1\"", "0123456789"},
		{"GET", "If-None-Match: \"tag2\"\r\n", 200, "0123456789", "!"},
		{"GET", "If-Match: \"tag2\"\r\n", 412, "conflict", "0123456789"},
	};
	struct fake *f = fake_new();
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		char line[128];
		(void)snprintf(line, sizeof(line),
			"%s /api/v1/sessions/s1/files/d/%%c3%%a4%%ff%%5c", rows[i].method);
		have_file(f, "0123456789");
		assert_int_equal(send_request(f, line, rows[i].headers, NULL), rows[i].status);
		assert_true(heard_has(rows[i].says));
		assert_null(strstr(heard, rows[i].says_not));
		assert_int_equal(f->op, DOOR_DOWNLOAD);
		assert_string_equal(f->arguments, "{\"path\":\"d/\xc3\xa4\\\\xff\\\\\\\\\"}");
	}
	fake_free(f);
}

static void test_upload(void **state)
{
	(void)state;
	struct fake *f = fake_new();
	bool closed;
	char text[16] = "";
	static const char put[] = "PUT /api/v1/sessions/s1/files/a.txt?create_parents=true "
				  "HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
				  "secret\r\nIf-None-Match: *\r\nContent-Length: 5\r\n\r\nhello";
	f->silent = true;
	int fd = dial(f->port);
	say(fd, put, sizeof(put) - 1);
	turn(f->loop, 50);
	assert_int_equal(f->op, DOOR_UPLOAD);
	assert_int_equal(f->body_size, 5);
	assert_string_equal(
		f->arguments, "{\"create_parents\":true,\"overwrite\":false,\"path\":\"a.txt\"}");
	assert_int_equal(read(f->body_fd, text, sizeof(text)), 5);
	assert_string_equal(text, "hello");
	assert_int_equal(read(f->body_fd, text, sizeof(text)), 0);
	(void)close(f->body_fd);
	fake_answer(f);
	assert_int_equal(hear(f->loop, fd, "{\"ok\":true}", 1000, &closed), 200);
	(void)close(fd);
	fake_free(f);
}

/* Half of an upload: core sees the pipe end before the announced length. */
static void test_upload_broken_off(void **state)
{
	(void)state;
	struct fake *f = fake_new();
	char text[16] = "";
	static const char put[] =
		"PUT /api/v1/sessions/s1/files/a HTTP/1.1\r\nHost: localhost\r\n"
		"Authorization: Bearer secret\r\nContent-Length: 500\r\n\r\nhello";
	f->silent = true;
	int fd = dial(f->port);
	say(fd, put, sizeof(put) - 1);
	turn(f->loop, 50);
	(void)close(fd);
	turn(f->loop, 50);
	assert_int_equal(f->abandoned, 1);
	assert_int_equal(f->body_size, 500);
	assert_int_equal(read(f->body_fd, text, sizeof(text)), 5);
	assert_int_equal(read(f->body_fd, text, sizeof(text)), 0);
	(void)close(f->body_fd);
	fake_free(f);
}

/* --- events ----------------------------------------------------------------------------------- */

static void test_events(void **state)
{
	(void)state;
	struct fake *f = fake_new();
	bool closed;
	static const char get[] = "GET /api/v1/sessions/s1/events HTTP/1.1\r\nHost: localhost\r\n"
				  "Authorization: Bearer secret\r\nLast-Event-ID: 7\r\n\r\n";
	f->silent = true;
	f->json = "{\"events\":[{\"id\":8,\"type\":\"call\"},{\"id\":9}],\"last\":9}";
	int fd = dial(f->port);
	say(fd, get, sizeof(get) - 1);
	turn(f->loop, 50);
	assert_int_equal(f->op, DOOR_EVENTS);
	assert_string_equal(f->arguments, "{\"after\":7}");
	assert_int_equal(f->wait_ms, 0);
	fake_answer(f);
	assert_int_equal(hear(f->loop, fd, "id: 9\n", 1000, &closed), 200);
	assert_true(heard_has("Content-Type: text/event-stream"));
	assert_true(heard_has("id: 8\ndata: {\"id\":8,\"type\":\"call\"}\n\n"));
	assert_string_equal(f->arguments, "{\"after\":9}");
	assert_true(f->wait_ms > 0);
	f->json = "{\"events\":[],\"last\":9}";
	fake_answer(f);
	(void)hear(f->loop, fd, ": nothing new\n\n", 1000, &closed);
	assert_true(heard_has(": nothing new\n\n"));
	/* Core is being restarted: the stream stays and asks again. */
	f->answer.code = ERR_UNAVAILABLE;
	fake_answer(f);
	unsigned asked = f->asked;
	(void)hear(f->loop, fd, NULL, 1300, &closed);
	assert_false(closed);
	assert_int_equal(f->asked, asked + 1);
	(void)close(fd);
	fake_free(f);
}

/* --- descriptions ----------------------------------------------------------------------------- */

static void test_openapi_has_every_route(void **state)
{
	(void)state;
	struct fake *f = fake_new();
	struct err err;
	json_t *v;
	f->json = "{\"tools\":[{\"name\":\"file_read\",\"description\":\"d\",\"inputSchema\":{"
		  "\"type\":\"object\"},\"outputSchema\":{\"type\":\"object\"}}]}";
	assert_int_equal(send_request(f, "GET /openapi.json", "", NULL), 200);
	const char *body = strstr(heard, "\r\n\r\n") + 4;
	if (json_parse(str_of(body), sizeof(heard), &v, &err) < 0)
		fail_msg("%s: %s", err.text, body);
	const json_t *paths = json_object_get(v, "paths");
	for (unsigned i = 0; i < n_routes; i++) {
		const char *p = routes[i].body == api_body_tool
					? "/api/v1/sessions/{session}/tools/file_read/execute"
					: routes[i].pattern;
		static const char *const methods[] = {"get", "head", "put", "post", "delete"};
		const json_t *op =
			json_object_get(json_object_get(paths, p), methods[routes[i].method]);
		if (strncmp(p, "/mcp", 4) == 0 || strncmp(p, "/.", 2) == 0) {
			assert_null(op);
			continue;
		}
		if (!op)
			print_error("missing: %s %s\n", methods[routes[i].method], p);
		assert_non_null(op);
	}
	json_decref(v);
	fake_free(f);
}

static void test_health_and_metrics(void **state)
{
	(void)state;
	struct fake *f = fake_new();
	assert_int_equal(send_request(f, "GET /healthz", "", NULL), 200);
	assert_int_equal(f->asked, 0);
	f->json = "{\"ready\":true}";
	assert_int_equal(send_request(f, "GET /readyz", "", NULL), 200);
	f->json = "{\"ready\":false}";
	assert_int_equal(send_request(f, "GET /readyz", "", NULL), 503);
	f->json = "cloister_calls_total 5\n";
	assert_int_equal(send_request(f, "GET /metrics", "", NULL), 200);
	assert_true(heard_has("cloister_calls_total 5\n# HELP cloister_http_connections_total"));
	assert_true(heard_has("cloister_http_replies_total{class=\"5xx\"} 1\n"));
	fake_free(f);
}

static void test_client_leaves(void **state)
{
	(void)state;
	struct fake *f = fake_new();
	f->silent = true;
	static const char get[] = "GET /api/v1/sessions/s1 HTTP/1.1\r\nHost: localhost\r\n"
				  "Authorization: Bearer secret\r\n\r\n";
	int fd = dial(f->port);
	say(fd, get, sizeof(get) - 1);
	turn(f->loop, 50);
	assert_int_equal(f->asked, 1);
	(void)close(fd);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_call),
		cmocka_unit_test(test_statuses_follow_from_codes),
		cmocka_unit_test(test_sessions),
		cmocka_unit_test(test_refused_before_the_port),
		cmocka_unit_test(test_challenge),
		cmocka_unit_test(test_download),
		cmocka_unit_test(test_upload),
		cmocka_unit_test(test_upload_broken_off),
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_openapi_has_every_route),
		cmocka_unit_test(test_health_and_metrics),
		cmocka_unit_test(test_client_leaves),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
