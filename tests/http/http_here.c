/*
 * The HTTP door with core in one process, in a temporary place: for tests that want sanitizers or a
 * debugger on both ends, and no daemon. Prints one line of JSON: the port and a token for each
 * role; serves until its standard input ends.
 */
#include "daemon/core.h"
#include "fixture/fixture.h"
#include "govern/token.h"
#include "transport/http/api.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

static void need(int r, const struct err *err)
{
	if (r >= 0)
		return;
	fprintf(stderr, "http_here: %s\n", err->text);
	exit(1);
}

static int listen_tcp(unsigned short *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	struct err err;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 1024) < 0 ||
		getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		need(err_sys(&err, errno, "listening"), &err);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void add_tokens(int state_fd)
{
	struct err err;
	char text[TOKEN_LEN + 1];
	for (int i = 0; i <= ROLE_MAX_; i++) {
		enum role role = i < ROLE_MAX_ ? (enum role)i : ROLE_DEVELOPER;
		struct token t = {.role = role, .admin = i == 0};
		(void)snprintf(
			t.name, sizeof(t.name), "%s", i < ROLE_MAX_ ? role_word(role) : "stranger");
		(void)snprintf(t.tenant, sizeof(t.tenant), "%s",
			i < ROLE_MAX_ ? TENANT_DEFAULT : "elsewhere");
		need(token_add(state_fd, &t, text, &err), &err);
		printf(",\"%s\":\"%s\"", t.name, text);
	}
}

static void on_input(void *ctx, int fd, uint32_t events)
{
	char c;
	(void)events;
	if (read(fd, &c, 1) <= 0)
		loop_stop(ctx);
}

int main(void)
{
	struct err err;
	struct loop *loop;
	struct loop_source *input;
	struct core *core;
	struct http_api *api;
	unsigned short port;
	char state[4096];
	struct fixture *f = fixture_new(&(struct fixture_options){.with_worker = true});
	(void)snprintf(state, sizeof(state), "%s/state", fixture_base(f));
	int state_fd = open(state, O_DIRECTORY | O_CLOEXEC);
	need(loop_new(30000, &loop, &err), &err);
	struct core_options co = {.loop = loop,
		.env = *fixture_env(f),
		.tree = fixture_tree(f),
		.state_fd = state_fd,
		.version = "0"};
	need(core_new(&co, &core, &err), &err);
	struct http_api_options ho = {.loop = loop, .door = core_door(core), .version = "0"};
	need(http_api_new(&ho, &api, &err), &err);
	need(http_api_listen(api, listen_tcp(&port), &err), &err);
	printf("{\"port\":%u,\"base\":\"%s\"", port, fixture_base(f));
	add_tokens(state_fd);
	printf("}\n");
	(void)fflush(stdout);
	need(loop_io(loop, STDIN_FILENO, EPOLLIN, on_input, loop, &input, &err), &err);
	need(loop_run(loop, &err), &err);
	loop_remove(&input);
	http_api_free(api);
	core_free(core);
	loop_free(loop);
	(void)close(state_fd);
	fixture_free(f);
	return 0;
}
