/*
 * cloister-front: the process of a node that talks to clients.
 *
 *   argv: LANDLOCK-ABI LISTENERS UID OPTIONS of the configuration
 *   fd 3: the supervisor's control channel     fd 4...: listening sockets
 *
 * It reads the TLS key if there is one, drops every right but those of rights_front.c, and serves.
 * What a client may do is none of its business: it forwards tokens to core. Whoever takes it over
 * has the connections and the tokens that pass through it, and can ask core what their owners could
 * ask.
 */
#include "daemon/channel.h"
#include "daemon/door_client.h"
#include "daemon/node.h"
#include "daemon/rights_node.h"
#include "sys/process.h"
#include "transport/http/api.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>

enum {
	SOURCES_MAX = 16384, /* a stream has a timer, an upload a pipe */
	DRAIN_MS = 8000,     /* for what was begun when the end was asked for */
	PEM_MAX = 1024 * 1024,
};

struct front {
	struct node_words words;
	struct node_log log;
	struct loop *loop;
	struct door_client *door;
	struct http_api *api;
	struct channel *control;
	struct loop_source *term, *interrupt, *drain;
	char *key, *cert;
	int landlock_abi;
	unsigned n_listeners;
	uid_t uid;
	bool own_user;
	int64_t drain_until;
};

/* --- the supervisor --------------------------------------------------------------------------- */

static int on_control(void *ctx, enum msg_type type, struct msg_in body, int *fds, unsigned n_fds,
	struct err *err)
{
	struct front *f = ctx;
	struct msg_core_is m;
	if (type != MSG_T_CORE_IS || n_fds != 1)
		return err_set(
			err, ERR_PARSE, "the supervisor does not say '%s' here", msg_name(type));
	int r = msg_core_is_get(body, &m, err);
	if (r == 0)
		r = door_client_attach(f->door, fds[0], err);
	if (r == 0)
		fds[0] = -1;
	return r;
}

static void control_gone(void *ctx, const struct err *why _unused_)
{
	struct front *f = ctx;
	loop_stop(f->loop);
}

/* --- the end ---------------------------------------------------------------------------------- */

static void look_whether_done(void *ctx)
{
	struct front *f = ctx;
	int64_t now = loop_now_ms();
	if (http_api_busy(f->api) == 0 || now >= f->drain_until)
		loop_stop(f->loop);
	else
		loop_timer_set(f->drain, now + 20);
}

static void on_term(void *ctx, int signo _unused_)
{
	struct front *f = ctx;
	if (f->drain_until)
		return;
	f->drain_until = loop_now_ms() + DRAIN_MS;
	http_api_quiesce(f->api);
	loop_timer_set(f->drain, loop_now_ms());
}

/* Of the terminal: the supervisor has it too and stops us in order. */
static void on_interrupt(void *ctx _unused_, int signo _unused_) {}

/* --- the start -------------------------------------------------------------------------------- */

/* A whole small file as text; NULL path: nothing. */
static int read_pem(const char *path, char **ret, struct err *err)
{
	if (!path)
		return 0;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text = fd >= 0 ? calloc(1, PEM_MAX + 1) : NULL;
	ssize_t n = text ? read(fd, text, PEM_MAX) : -1;
	if (n <= 0 || n == PEM_MAX) {
		free(text);
		return err_sys(
			err, n == PEM_MAX ? EFBIG : errno, "reading the TLS key or certificate");
	}
	*ret = text;
	return 0;
}

static int make_loop(struct front *f, struct err *err)
{
	struct channel_options o = {.sock = FRONT_FD_CONTROL,
		.role = MSG_FRONT,
		.message = on_control,
		.gone = control_gone,
		.ctx = f};
	int r = loop_new(SOURCES_MAX, &f->loop, err);
	if (r < 0)
		return r;
	o.loop = f->loop;
	if ((r = loop_signal(f->loop, SIGTERM, on_term, f, &f->term, err)) < 0 ||
		(r = loop_signal(f->loop, SIGINT, on_interrupt, f, &f->interrupt, err)) < 0 ||
		(r = loop_timer(f->loop, -1, look_whether_done, f, &f->drain, err)) < 0 ||
		(r = door_client_new(f->loop, &f->door, err)) < 0)
		return r;
	return channel_new(&o, &f->control, err);
}

static int make_api(struct front *f, struct err *err)
{
	const struct config *set = &f->words.config;
	const struct http_api_options o = {.loop = f->loop,
		.door = door_client_door(f->door),
		.version = CLOISTER_VERSION,
		.hosts = set->serve_hosts,
		.origins = set->serve_origins,
		.resource = set->serve_resource ? set->serve_resource[0] : NULL,
		.authorization_servers = set->serve_authorization_servers,
		.conformance = set->serve_conformance,
		.tls_key = f->key,
		.tls_cert = f->cert,
		.connections_max = (unsigned)set->serve_connections,
		.per_address_max = (unsigned)set->serve_connections_per_address};
	int r = http_api_new(&o, &f->api, err);
	for (unsigned i = 0; r == 0 && i < f->n_listeners; i++)
		r = http_api_listen(f->api, FRONT_FD_LISTEN + (int)i, err);
	return r;
}

static bool take_arguments(struct front *f, int argc, char **argv)
{
	int64_t v[3];
	for (int i = 0; i < 3; i++)
		if (argc <= i + 1 || (v[i] = process_argument(argv[i + 1], UINT32_MAX)) < 0)
			return false;
	f->landlock_abi = (int)v[0];
	f->n_listeners = (unsigned)v[1];
	f->uid = (uid_t)v[2];
	return true;
}

static int run(struct front *f, int argc, char **argv, struct err *err)
{
	pid_t parent = getppid();
	if (!take_arguments(f, argc, argv))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "this program is started by cloister serve");
	int r = node_config((const char *const *)argv + 4, &f->words, err);
	if (r < 0)
		return r;
	f->log.json = f->words.config.log_format == CONFIG_LOG_JSON;
	(void)signal(SIGPIPE, SIG_IGN);
	tzset(); /* else the first date opens a file */
	if ((r = read_pem(f->words.config.serve_tls_key, &f->key, err)) < 0 ||
		(r = read_pem(f->words.config.serve_tls_cert, &f->cert, err)) < 0 ||
		(r = make_loop(f, err)) < 0 || (r = make_api(f, err)) < 0 ||
		(r = identity_drop(f->uid, 0, parent, &f->own_user, err)) < 0 ||
		(r = front_restrict(f->landlock_abi, err)) < 0)
		return r;
	const struct msg_front_ready m = {
		.landlock_abi = (uint32_t)f->landlock_abi, .own_user = f->own_user};
	BUG_ON(!msg_front_ready_put(channel_out(f->control, 256), &m));
	return loop_run(f->loop, err);
}

int main(int argc, char **argv)
{
	static struct front f = {.log.who = "front"};
	struct err err = {.code = ERR_OK};
	int r = run(&f, argc, argv, &err);
	if (r < 0)
		node_say(&f.log, "error", "%s%s%s", err.text, err.hint[0] ? ". " : "", err.hint);
	http_api_free(f.api);
	_exit(r < 0 ? err_info(err.code)->exit : 0); /* what libraries do at exit is not allowed */
}
