/*
 * No input reaches outside the workspace: attack × tool × uid, each cell a named TAP result.
 *
 * A cell passes when the call answers at once, nothing outside the workspace has changed, the
 * secret does not occur in the answer, and the answer is a refusal with a code that the attack
 * deserves (or, for tools that act on a name itself, a success on the link itself).
 */
#include "fixture/fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { NOBODY = 65534, LONG_PATH = 5000, MS_MAX = 5000 };

/* What an attack may be answered with. */
enum expect {
	REFUSED,     /* by every tool */
	LINK_ITSELF, /* tools that act on a name may act on the link itself; what follows it is
			refused */
	HARD_LINK,   /* the name is inside; what other names see must not change */
};

struct attack {
	const char *name, *path;
	enum expect expect;
	bool root_only;
};

static char long_path[LONG_PATH + 1], long_name[300];

static const struct attack attacks[] = {
	{"parent", "../outside/secret", REFUSED, false},
	{"grandparent", "../../../../../../tmp/cloister-none/passwd", REFUSED, false},
	{"absolute", "/tmp/cloister-none/passwd", REFUSED, false},
	{"absolute-double-slash", "//tmp/cloister-none/passwd", REFUSED, false},
	{"down-and-up", "sub/../../outside/secret", REFUSED, false},
	{"down-and-up-dot", "sub/./.././../outside/secret/.", REFUSED, false},
	{"workspace-and-up", "/workspace/../outside/secret", REFUSED, false},
	{"workspace-prefix", "/workspace_evil/secret", REFUSED, false},
	{"sibling-prefix", "../ws_evil/secret", REFUSED, false},
	{"missing-and-up", "nothing/../../outside/secret", REFUSED, false},
	{"empty", "", REFUSED, false},
	{"overlong-path", long_path, REFUSED, false},
	{"overlong-name", long_name, REFUSED, false},
	{"nul", "sub\\u0000/../../outside/secret", REFUSED, false},
	{"bad-escape", "\\\\xZZ", REFUSED, false},
	{"link-absolute", "link_abs", LINK_ITSELF, false},
	{"link-relative", "link_rel", LINK_ITSELF, false},
	{"link-dangling-out", "link_new", LINK_ITSELF, false},
	{"link-loop", "loop_a", LINK_ITSELF, false},
	{"link-chain-41", "chain_0", LINK_ITSELF, false},
	{"link-to-proc-root", "link_proc", LINK_ITSELF, false},
	{"through-directory-link", "dir_link/secret", REFUSED, false},
	{"through-directory-link-new", "dir_link/new", REFUSED, false},
	{"through-link-to-proc", "link_proc/tmp/cloister-none/passwd", REFUSED, false},
	{"middle-link-and-up", "sub/dir_up/../outside/secret", REFUSED, false},
	{"proc-self-root", "/proc/self/root/tmp/cloister-none/passwd", REFUSED, false},
	{"proc-self-cwd", "/proc/self/cwd/state", REFUSED, false},
	{"dev-fd", "/dev/fd/0", REFUSED, false},
	{"dev-stdin", "/dev/stdin", REFUSED, false},
	{"store", ".cloister/state", REFUSED, false},
	{"store-dot", "./.cloister/state", REFUSED, false},
	{"store-down-up", "sub/../.cloister/state", REFUSED, false},
	{"store-link", "store_link/state", REFUSED, false},
	{"store-itself", ".cloister", REFUSED, false},
	{"fifo", "fifo", LINK_ITSELF, false},
	{"socket", "socket", LINK_ITSELF, false},
	{"device", "device", LINK_ITSELF, true},
	{"hard-link", "hard", HARD_LINK, false},
};

/* Arguments of a tool with the attacked path at %s. Tools that act on the name itself may succeed
 * on a link. */
static const struct shape {
	const char *name, *tool, *args;
	bool on_name, reads;
} shapes[] = {
	{"read", "file_read", "{\"path\":\"%s\"}", false, true},
	{"read-lines", "file_read", "{\"path\":\"%s\",\"offset\":1,\"limit\":2}", false, true},
	{"write", "file_write", "{\"path\":\"%s\",\"content\":\"x\"}", false, false},
	{"write-dirs", "file_write", "{\"path\":\"%s\",\"content\":\"x\",\"create_dirs\":true}",
		false, false},
	{"append", "file_write", "{\"path\":\"%s\",\"content\":\"x\",\"mode\":\"append\"}", false,
		false},
	{"create", "file_write", "{\"path\":\"%s\",\"content\":\"x\",\"mode\":\"create\"}", false,
		false},
	{"dry-run", "file_write", "{\"path\":\"%s\",\"content\":\"x\",\"dry_run\":true}", false,
		false},
	{"edit", "file_edit", "{\"path\":\"%s\",\"old_text\":\"secret\",\"new_text\":\"x\"}", false,
		false},
	{"list", "file_list", "{\"path\":\"%s\"}", false, true},
	{"list-deep", "file_list", "{\"path\":\"%s\",\"recursive\":true,\"include_hidden\":true}",
		false, true},
	{"search", "file_search", "{\"path\":\"%s\",\"query\":\"secret\"}", false, true},
	{"info", "file_info", "{\"path\":\"%s\",\"hash\":true}", true, true},
	{"delete", "file_delete", "{\"path\":\"%s\"}", true, false},
	{"delete-tree", "file_delete", "{\"path\":\"%s\",\"recursive\":true}", true, false},
	{"move-from", "file_move", "{\"from\":\"%s\",\"to\":\"moved\"}", true, false},
	{"move-to", "file_move", "{\"from\":\"plain\",\"to\":\"%s\",\"replace\":true}", true,
		false},
	{"move-to-dirs", "file_move", "{\"from\":\"plain\",\"to\":\"%s\",\"create_dirs\":true}",
		true, false},
};

static void link_in(struct fixture *f, const char *target, const char *name)
{
	char path[4096];
	(void)snprintf(path, sizeof(path), "%s/%s", fixture_ws(f), name);
	(void)unlink(path);
	if (symlink(target, path) < 0)
		printf("Bail out! symlink %s: %s\n", name, strerror(errno));
}

static void make_socket(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%.*s", (int)sizeof(a.sun_path) - 1, path);
	(void)unlink(path);
	(void)bind(fd, (struct sockaddr *)&a, sizeof(a));
	(void)close(fd);
}

/* The attacked workspace as it is before every cell. */
static void arrange(struct fixture *f)
{
	char path[4096], target[4096];
	fixture_put(f, "ws/plain", "plain\n");
	fixture_put(f, "ws/sub/file", "inside\n");
	(void)snprintf(target, sizeof(target), "%s/outside/secret", fixture_base(f));
	link_in(f, target, "link_abs");
	link_in(f, "../outside/secret", "link_rel");
	link_in(f, "../outside/new", "link_new");
	link_in(f, "../outside", "dir_link");
	link_in(f, "/proc/self/root", "link_proc");
	link_in(f, "loop_b", "loop_a");
	link_in(f, "loop_a", "loop_b");
	link_in(f, ".cloister", "store_link");
	link_in(f, "../..", "sub/dir_up");
	for (int i = 0; i < 42; i++) {
		char name[32], next[64];
		(void)snprintf(name, sizeof(name), "chain_%d", i);
		(void)snprintf(
			next, sizeof(next), i == 41 ? "../outside/secret" : "chain_%d", i + 1);
		link_in(f, next, name);
	}
	(void)snprintf(path, sizeof(path), "%s/hard", fixture_ws(f));
	(void)unlink(path);
	if (link(target, path) < 0)
		printf("Bail out! link: %s\n", strerror(errno));
	(void)snprintf(path, sizeof(path), "%s/fifo", fixture_ws(f));
	(void)mkfifo(path, 0600);
	(void)snprintf(path, sizeof(path), "%s/socket", fixture_ws(f));
	make_socket(path);
	if (geteuid() == 0) {
		(void)snprintf(path, sizeof(path), "%s/device", fixture_ws(f));
		(void)mknod(path, S_IFCHR | 0600, 0x103);
	}
}

static bool refusal(enum err_code code)
{
	static const enum err_code codes[] = {ERR_PATH_ESCAPE, ERR_PATH_INVALID, ERR_LINK_REFUSED,
		ERR_NOT_FOUND, ERR_NOT_REGULAR, ERR_NOT_DIRECTORY, ERR_IS_DIRECTORY,
		ERR_INVALID_ARGUMENT, ERR_EXISTS, ERR_READ_ONLY};
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (codes[i] == code)
			return true;
	return false;
}

static const char *judge(
	const struct attack *a, const struct shape *s, enum err_code code, const char *text)
{
	if (a->expect != HARD_LINK && strstr(text, FIXTURE_SECRET))
		return "the secret leaked";
	if (strstr(text, "/outside") && !strstr(a->path, "outside") && !strstr(text, "target"))
		return "a host path leaked";
	if (code == ERR_OK && a->expect == REFUSED)
		return "it was carried out";
	if (code == ERR_OK && a->expect == LINK_ITSELF && !s->on_name &&
		strcmp(s->name, "dry-run") != 0)
		return "it was carried out through the link";
	if (code != ERR_OK && !refusal(code))
		return "it was refused with a code that fits something else";
	return NULL;
}

static int cell(struct fixture *f, const struct attack *a, const struct shape *s, const char *who,
	unsigned *number)
{
	struct sha256 before, after;
	char args[LONG_PATH + 512], outside[4096];
	enum err_code code;
	arrange(f);
	(void)snprintf(args, sizeof(args), s->args, a->path);
	(void)snprintf(outside, sizeof(outside), "%s/outside", fixture_base(f));
	fixture_tree_hash(outside, &before);
	int64_t start = time(NULL);
	json_t *result = fixture_call(f, s->tool, args, &code);
	char *text = json_dumps(result, JSON_COMPACT);
	fixture_tree_hash(outside, &after);
	const char *problem = judge(a, s, code, text);
	if (memcmp(&before, &after, sizeof(before)) != 0)
		problem = "something outside the workspace changed";
	if ((time(NULL) - start) * 1000 > MS_MAX)
		problem = "it took too long";
	printf("%sok %u - %s x %s x %s\n", problem ? "not " : "", ++*number, a->name, s->name, who);
	if (problem)
		printf("# %s: %.300s\n", problem, text);
	free(text);
	json_decref(result);
	return problem ? 1 : 0;
}

static int matrix(uid_t uid, const char *who, unsigned *number)
{
	int failed = 0;
	struct fixture *f = fixture_new(&(struct fixture_options){.uid = uid, .with_worker = true});
	for (size_t a = 0; a < ARRAY_LEN(attacks); a++)
		for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
			if (!attacks[a].root_only || geteuid() == 0)
				failed += cell(f, &attacks[a], &shapes[s], who, number);
	fixture_free(f);
	return failed;
}

/* The matrix as another user runs in a child, since there is no way back from a changed uid. */
static int matrix_as(uid_t uid, const char *who, unsigned *number)
{
	int pipes[2], status = 0, failed = 1;
	unsigned n = *number;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return 1;
	(void)fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		failed = matrix(uid, who, &n);
		(void)!write(pipes[1], &n, sizeof(n));
		(void)fflush(stdout);
		_exit(failed ? 1 : 0);
	}
	(void)close(pipes[1]);
	if (read(pipes[0], &n, sizeof(n)) == sizeof(n))
		*number = n;
	(void)close(pipes[0]);
	if (pid > 0 && waitpid(pid, &status, 0) == pid)
		failed = status != 0;
	return failed;
}

int main(void)
{
	unsigned number = 0;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	memset(long_path, 'p', LONG_PATH);
	for (size_t i = 100; i < LONG_PATH; i += 100)
		long_path[i] = '/';
	memset(long_name, 'n', sizeof(long_name) - 1);
	int failed = matrix_as(0, geteuid() == 0 ? "root" : "user", &number);
	if (geteuid() == 0)
		failed += matrix_as(NOBODY, "user", &number);
	else
		printf("ok %u - the matrix as root # SKIP not started as root\n", ++number);
	printf("1..%u\n", number);
	return failed ? 1 : 0;
}
