/*
 * Calls inside one process, through the whole pipeline, against the plain system calls.
 *
 *   file_read of 1 KiB           <= 4 x openat + read + close
 *   file_write of 22 B           with 50,000 files in the workspace <= 1.2 x with 10
 */
#include "fixture/fixture.h"
#include "harness.h"

#include <fcntl.h>
#include <stdio.h>

struct caller {
	struct fixture *f;
	struct principal who;
	const char *tool;
	json_t *args;
	int dir;
};

static int call_once(void *ctx)
{
	struct caller *c = ctx;
	struct err err;
	struct call *call = NULL;
	struct call_input in = {.tool = c->tool,
		.arguments = c->args,
		.session_id = fixture_session(c->f),
		.principal = &c->who};
	if (call_start(fixture_env(c->f), &in, &call, &err) < 0)
		return -1;
	call_wait(call);
	int r = call_code(call) == ERR_OK ? 0 : -1;
	call_free(call);
	return r;
}

static int read_plainly(void *ctx)
{
	const struct caller *c = ctx;
	char content[4096];
	int fd = openat(c->dir, "file", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, content, sizeof(content));
	(void)close(fd);
	return n == 1024 ? 0 : -1;
}

static struct caller caller_of(struct fixture *f, const char *tool, const char *args)
{
	return (struct caller){.f = f,
		.who = {.kind = PRINCIPAL_AGENT,
			.id = "bench",
			.tenant = "default",
			.role = ROLE_DEVELOPER},
		.tool = tool,
		.args = json_loads(args, 0, NULL),
		.dir = open(fixture_ws(f), O_PATH | O_DIRECTORY | O_CLOEXEC)};
}

static void fill(struct fixture *f, unsigned files)
{
	char path[64];
	for (unsigned i = 0; i < files; i++) {
		(void)snprintf(path, sizeof(path), "ws/d%u/f%u", i / 500, i);
		fixture_put(f, path, "x");
	}
}

static int bench_read(void)
{
	struct fixture *f = fixture_new(&(struct fixture_options){0});
	char kib[1025];
	memset(kib, 'k', 1024);
	for (int i = 63; i < 1024; i += 64)
		kib[i] = '\n';
	kib[1024] = '\0';
	fixture_put(f, "ws/file", kib);
	struct caller c = caller_of(f, "file_read", "{\"path\":\"file\"}");
	struct bench b = bench_begin("in-process file_read 1 KiB");
	unsigned plain = bench_add(&b, "openat+read+close", read_plainly, &c),
		 ours = bench_add(&b, "file_read", call_once, &c);
	bench_run(&b, 400, 100);
	bench_ratio(&b, ours, plain, 4);
	fixture_free(f);
	return bench_end(&b);
}

static int bench_write(void)
{
	struct fixture *small = fixture_new(&(struct fixture_options){0}),
		       *large = fixture_new(&(struct fixture_options){0});
	static const char args[] = "{\"path\":\"note\",\"content\":\"twenty-two bytes here.\"}";
	fill(small, 10);
	fill(large, 50000);
	struct caller cs = caller_of(small, "file_write", args),
		      cl = caller_of(large, "file_write", args);
	struct bench b = bench_begin("file_write 22 B");
	unsigned few = bench_add(&b, "10 files", call_once, &cs),
		 many = bench_add(&b, "50,000 files", call_once, &cl);
	bench_run(&b, 300, 10);
	bench_ratio(&b, many, few, 1.2);
	fixture_free(small);
	fixture_free(large);
	return bench_end(&b);
}

int main(void)
{
	bench_pin();
	return bench_read() | bench_write();
}
