/*
 * Nothing leads out of the fence: attempt × entry × uid, each cell a named TAP result.
 *
 * The attempts are made by a program that lies in the workspace (attempt.c). A cell passes when the
 * program ran and was refused, and nothing outside the workspace has changed. The same program run
 * outside any fence must get through with some of them, else it proves nothing.
 */
#include "fixture/fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { NOBODY = 65534, NAMES_MAX = 128, NAME_MAX_BYTES = 64 };

static char names[NAMES_MAX][NAME_MAX_BYTES];
static unsigned n_names;

/* How a command comes in; %s is the attempt. */
static const struct {
	const char *name, *tool, *arguments;
} entries[] = {
	{"line", "shell_run", "{\"command\":\"./attempt %s\"}"},
	{"pipeline", "shell_run", "{\"command\":\"(cd / && true | /workspace/attempt %s) | cat\"}"},
	{"argv", "shell_run", "{\"argv\":[\"./attempt\",\"%s\"]}"},
	{"python", "python_run",
		"{\"code\":\"import subprocess,sys; "
		"sys.stdout.write(subprocess.run(['./attempt','%s'],stdout=-1,text=1).stdout)\"}"},
};

static void read_names(const char *program)
{
	char command[4096];
	(void)snprintf(command, sizeof(command), "%s", program);
	FILE *in = popen(command, "r");
	while (in && n_names < NAMES_MAX && fgets(names[n_names], NAME_MAX_BYTES, in)) {
		names[n_names][strcspn(names[n_names], "\n")] = '\0';
		n_names++;
	}
	if (in)
		(void)pclose(in);
}

static void install(struct fixture *f, const char *program)
{
	char to[4096], piece[65536];
	ssize_t n;
	(void)snprintf(to, sizeof(to), "%s/attempt", fixture_ws(f));
	int in = open(program, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	while (in >= 0 && out >= 0 && (n = read(in, piece, sizeof(piece))) > 0)
		if (write(out, piece, (size_t)n) != n)
			break;
	(void)close(in);
	(void)close(out);
}

static int cell(
	struct fixture *f, const char *attempt, unsigned entry, const char *who, unsigned *number)
{
	struct sha256 before, after;
	enum err_code code;
	char args[1024], outside[4096];
	const char *problem = NULL;
	(void)snprintf(args, sizeof(args), entries[entry].arguments, attempt);
	(void)snprintf(outside, sizeof(outside), "%s/outside", fixture_base(f));
	fixture_tree_hash(outside, &before);
	json_t *result = fixture_call(f, entries[entry].tool, args, &code);
	const char *out = json_string_value(json_object_get(result, "stdout"));
	fixture_tree_hash(outside, &after);
	char *text = json_dumps(result, JSON_COMPACT);
	if (code != ERR_OK)
		problem = "the command could not be run";
	else if (!out || strncmp(out, "refused", 7) != 0)
		problem = "it got through";
	if (memcmp(&before, &after, sizeof(before)) != 0)
		problem = "something outside the workspace changed";
	if (strstr(text, FIXTURE_SECRET))
		problem = "the secret leaked";
	printf("%sok %u - %s x %s x %s\n", problem ? "not " : "", ++*number, attempt,
		entries[entry].name, who);
	if (problem)
		printf("# %s: %.300s\n", problem, text);
	free(text);
	json_decref(result);
	return problem ? 1 : 0;
}

static int matrix(uid_t uid, const char *who, const char *program, unsigned *number)
{
	int failed = 0;
	struct fixture *f = fixture_new(&(struct fixture_options){.uid = uid, .with_fence = true});
	install(f, program);
	for (unsigned e = 0; e < ARRAY_LEN(entries); e++)
		for (unsigned i = 0; i < n_names; i++)
			failed += cell(f, names[i], e, who, number);
	fixture_free(f);
	return failed;
}

static int matrix_as(uid_t uid, const char *who, const char *program, unsigned *number)
{
	int pipes[2], status = 0, failed = 1;
	unsigned n = *number;
	if (pipe2(pipes, O_CLOEXEC) < 0)
		return 1;
	(void)fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		failed = matrix(uid, who, program, &n);
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

/* Outside the fence these ordinary things get through; that they do not inside is the fence's
 * doing.
 */
static int attacks_are_real(const char *program, unsigned *number)
{
	static const char *const ordinary[] = {"netlink", "host_root", "host_tmp"};
	int failed = 0;
	for (size_t i = 0; i < ARRAY_LEN(ordinary); i++) {
		char command[4096], line[64] = {0};
		(void)snprintf(command, sizeof(command), "%s %s", program, ordinary[i]);
		FILE *in = popen(command, "r");
		bool through =
			in && fgets(line, sizeof(line), in) && strncmp(line, "THROUGH", 7) == 0;
		if (in)
			(void)pclose(in);
		failed += !through;
		printf("%sok %u - outside any fence %s gets through\n", through ? "" : "not ",
			++*number, ordinary[i]);
	}
	return failed;
}

int main(int argc, char **argv)
{
	unsigned number = 0;
	if (argc != 2)
		return 2;
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)setenv("CLOISTER_TEST_SECRET", FIXTURE_SECRET, 1);
	(void)close(open("/tmp/cloister-host-mark", O_CREAT | O_RDWR | O_CLOEXEC, 0644));
	/* Open, and not to be closed on exec: the fence must close it. */
	(void)dup2(STDERR_FILENO, 251);
	read_names(argv[1]);
	int failed = attacks_are_real(argv[1], &number);
	failed += matrix_as(0, geteuid() == 0 ? "root" : "user", argv[1], &number);
	if (geteuid() == 0)
		failed += matrix_as(NOBODY, "user", argv[1], &number);
	else
		printf("ok %u - the matrix as root # SKIP not started as root\n", ++number);
	(void)unlink("/tmp/cloister-host-mark");
	printf("1..%u\n", number);
	return failed ? 1 : 0;
}
