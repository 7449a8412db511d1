/*
 * The rights of worker, supervisor, journal and core, tried at run time: attempt × Landlock ABI ×
 * user.
 *
 *   test_rights SUPERVISOR TRY-WORKER
 *
 * Every attempt is first made without a fence, where it must work; then inside each role, where it
 * must be refused and must have left the workspace byte for byte as it was. A forked child makes
 * the attempts of one role, user and ABI and reports; every cell is a test case of its own.
 */
#include "../unit/testing.h"
#include "attempts.h"

#include "base/sha256.h"
#include "daemon/rights.h"
#include "daemon/rights_core.h"
#include "daemon/rights_node.h"
#include "daemon/tree.h"
#include "sys/landlock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	ORDINARY_UID = 12345,
	NOT_TRIED = -1,
	DIED = 1000,
	GROUPS_MAX = 64,
	ATTEMPTS_MAX = 128,
	UNCHANGED = ATTEMPTS_MAX - 1
};

enum role {
	ROLE_FREE,
	ROLE_WORKER,
	ROLE_SUPERVISOR,
	ROLE_JOURNAL,
	ROLE_CORE,
	ROLE_FRONT,
	ROLE_NODE
};
static const char *const role_names[] = {
	"no fence", "worker", "supervisor", "journal", "core", "front", "node"};

struct try_group {
	enum role role;
	int abi; /* as in tree_options: 0 current, -1 none */
	bool root;
	bool ran;
	char problem[200];
	int results[ATTEMPTS_MAX];
};

static struct try_group groups[GROUPS_MAX];
static unsigned n_groups;
static char top[64], workspace[96], programs[96], journal_log[96];

/* --- the workspace of the attempts --- */

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	(void)fprintf(stderr, "test_rights: %s: %s\n", what, strerror(errno));
	exit(99);
}

static void path_in(const char *dir, const char *name, char *out, size_t cap)
{
	must((size_t)snprintf(out, cap, "%s/%s", dir, name) < cap, "path");
}

static void make_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	path_in(dir, name, path, sizeof(path));
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "write");
	(void)fsetxattr(fd, "user.there", "1", 1, 0);
	close(fd);
}

static void clear_workspace(void)
{
	char path[400];
	DIR *d = opendir(workspace);
	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		path_in(workspace, e->d_name, path, sizeof(path));
		(void)remove(path);
	}
	if (d)
		closedir(d);
}

static void make_workspace(bool root)
{
	char path[256];
	clear_workspace();
	make_file(workspace, "file", "content\n");
	path_in(workspace, "dir", path, sizeof(path));
	must(mkdir(path, 0755) == 0, "mkdir");
	path_in(workspace, "out", path, sizeof(path));
	must(symlink("/etc/passwd", path) == 0, "symlink");
	uid_t uid = root ? 0 : ORDINARY_UID;
	if (geteuid() != 0)
		return;
	must(chown(workspace, uid, uid) == 0, "chown");
	path_in(workspace, "file", path, sizeof(path));
	must(chown(path, uid, uid) == 0, "chown");
	path_in(workspace, "dir", path, sizeof(path));
	must(chown(path, uid, uid) == 0, "chown");
}

static void hash_entry(struct sha256_ctx *c, const char *name)
{
	char path[400], text[256];
	struct stat st;
	path_in(workspace, name, path, sizeof(path));
	must(lstat(path, &st) == 0, "lstat");
	int n = snprintf(text, sizeof(text), "%s %o %u %u %lld %lld.%ld %lld.%ld %u\n", name,
		st.st_mode, st.st_uid, st.st_gid, (long long)st.st_size,
		(long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec,
		st.st_ctim.tv_nsec, (unsigned)st.st_nlink);
	sha256_add(c, text, (size_t)n);
	ssize_t x = llistxattr(path, text, sizeof(text));
	sha256_add(c, text, x > 0 ? (size_t)x : 0);
	if (S_ISREG(st.st_mode)) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t got = read(fd, text, sizeof(text));
		sha256_add(c, text, got > 0 ? (size_t)got : 0);
		close(fd);
	}
}

static int any(const struct dirent *e)
{
	return strcmp(e->d_name, "..") != 0;
}

static struct sha256 hash_workspace(void)
{
	struct sha256_ctx *c = sha256_start();
	struct sha256 h;
	struct dirent **names;
	int n = scandir(workspace, &names, any, alphasort);
	for (int i = 0; i < n; i++) {
		hash_entry(c, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	sha256_finish(c, &h);
	return h;
}

/* --- making the attempts --- */

static void become(bool root)
{
	if (root || geteuid() != 0)
		return;
	must(setgroups(0, NULL) == 0 && setresgid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID) == 0 &&
			setresuid(ORDINARY_UID, ORDINARY_UID, ORDINARY_UID) == 0,
		"changing the user");
	(void)prctl(PR_SET_DUMPABLE, 1); /* the change has switched it off */
}

/* Somebody else's process: not above or below the one that tries. */
static pid_t foreign_process(void)
{
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* A parent that Landlock keeps from sending signals does not send this one either.
		 */
		while (getppid() == parent)
			(void)poll(NULL, 0, 20);
		_exit(0);
	}
	return pid;
}

static void report(int to, unsigned attempt, int result)
{
	int m[2] = {(int)attempt, result};
	must(write(to, m, sizeof(m)) == sizeof(m), "report");
}

static void problem(int to, const char *text)
{
	int m[2] = {ATTEMPTS_MAX, (int)strlen(text)};
	must(write(to, m, sizeof(m)) == sizeof(m) && write(to, text, strlen(text)) > 0, "report");
	_exit(1);
}

static int in_child(const struct attempt *a, const struct attempt_env *env)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(a->run(env));
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return NOT_TRIED;
	return WIFEXITED(status) ? WEXITSTATUS(status) : DIED;
}

static struct attempt_env new_env(void)
{
	int pair[2];
	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
	struct attempt_env env = {.mount_fd = open(workspace, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.host = workspace,
		.channel = pair[0]};
	must(env.mount_fd >= 0, "opening the workspace");
	return env;
}

static void try_free(const struct try_group *g, int to)
{
	for (unsigned i = 0; i < n_attempts; i++) {
		pid_t child = fork();
		if (child == 0) {
			/* mounts that an attempt makes are this child's own */
			if (g->root && unshare(CLONE_NEWNS) == 0)
				(void)mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
			make_workspace(g->root);
			become(g->root);
			struct attempt_env env = new_env();
			env.foreign_pid = foreign_process();
			report(to, i, in_child(&attempts[i], &env));
			(void)kill(env.foreign_pid, SIGKILL);
			_exit(0);
		}
		(void)waitpid(child, NULL, 0);
	}
}

/* One attempt in the worker; an answer is ERR_DENIED with the errno as its text. */
static int ask_worker(
	struct worker *w, const char *name, const char *const *parameters, struct err *err)
{
	static const struct search_place place = {0, {"", 0}};
	const struct worker_job job = {.kind = WORK_SEARCH,
		.deadline_ms = 10000,
		.search = {.roots = &place,
			.n_roots = 1,
			.pattern = str_of(name),
			.include = parameters}};
	uint64_t id;
	struct worker_answer *answer;
	int r = worker_submit(w, &job, &id, err);
	if (r == 0)
		r = worker_wait(w, id, &answer, err);
	return r == -ERR_DENIED ? atoi(err->text) : r == -ERR_UNAVAILABLE ? DIED : NOT_TRIED;
}

static void try_in_worker(const struct try_group *g, int to)
{
	struct err err;
	struct tree *tree;
	struct worker *w;
	char pid[32];
	make_workspace(g->root);
	become(g->root);
	struct attempt_env env = new_env();
	(void)snprintf(pid, sizeof(pid), "%d", (int)foreign_process());
	const char *const parameters[] = {workspace, pid, NULL};
	const struct tree_options opt = {.libexecdir = programs,
		.landlock_abi = g->abi,
		.single_user = g->abi < 0,
		.worker_stderr = true};
	if (tree_start(&opt, &tree, &err) < 0 || tree_worker(tree, &env.mount_fd, 1, &w, &err) < 0)
		problem(to, err.text);
	if (g->abi < 0 && !tree_gaps(tree))
		problem(to, "the gap is not named");
	struct sha256 before = hash_workspace();
	for (unsigned i = 0; i < n_attempts; i++)
		report(to, i, ask_worker(w, attempts[i].name, parameters, &err));
	struct sha256 after = hash_workspace();
	report(to, UNCHANGED, memcmp(&before, &after, sizeof(before)) == 0);
	worker_free(w);
	tree_free(tree);
}

static void try_in_supervisor(const struct try_group *g, int to)
{
	struct err err;
	char path[200];
	make_workspace(g->root);
	become(g->root);
	struct attempt_env env = new_env();
	env.foreign_pid = foreign_process();
	path_in(programs, "cloister-worker", path, sizeof(path));
	int exe = open(path, O_PATH | O_CLOEXEC);
	to = fcntl(to, F_DUPFD_CLOEXEC, 20);
	env.mount_fd = fcntl(env.mount_fd, F_DUPFD_CLOEXEC, 20);
	env.channel = fcntl(env.channel, F_DUPFD_CLOEXEC, 20);
	must(exe >= 0 && dup2(exe, SUPERVISOR_FD_WORKER_EXE) >= 0, "opening the worker");
	const struct supervisor_rights rights = {.landlock_abi = g->abi < 0 ? 0
								 : g->abi   ? g->abi
									    : landlock_abi()};
	if (supervisor_restrict(&rights, &err) < 0)
		problem(to, err.text);
	for (unsigned i = 0; i < n_attempts; i++)
		report(to, i, in_child(&attempts[i], &env));
}

/* What the journal does all day still works, and what a damaged log would be repaired with. */
static const char *journal_cannot(void)
{
	int fd = openat(JOURNAL_FD_LOG, "segment", O_CREAT | O_EXCL | O_RDWR | O_APPEND, 0600);
	if (fd < 0 || write(fd, "line\n", 5) != 5 || fdatasync(fd) < 0 || fsync(JOURNAL_FD_LOG) < 0)
		return "append to its log";
	if (ftruncate(fd, 1) < 0)
		return "cut its log";
	return close(fd) < 0 ? "close" : NULL;
}

/* Its log is a directory of its own; the attempts are made on a workspace like everywhere. */
static void try_in_journal(const struct try_group *g, int to)
{
	struct err err;
	char segment[200];
	make_workspace(g->root);
	path_in(journal_log, "segment", segment, sizeof(segment));
	(void)unlink(segment);
	become(g->root);
	struct attempt_env env = new_env();
	env.foreign_pid = foreign_process();
	int log_fd = open(journal_log, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	to = fcntl(to, F_DUPFD_CLOEXEC, 20);
	env.mount_fd = fcntl(env.mount_fd, F_DUPFD_CLOEXEC, 20);
	env.channel = fcntl(env.channel, F_DUPFD_CLOEXEC, 20);
	must(log_fd >= 0 && dup2(log_fd, JOURNAL_FD_LOG) >= 0, "opening the log");
	const struct journal_rights rights = {.landlock_abi = g->abi < 0 ? 0
							      : g->abi   ? g->abi
									 : landlock_abi()};
	if (journal_restrict(&rights, &err) < 0)
		problem(to, err.text);
	if (journal_cannot())
		problem(to, journal_cannot());
	for (unsigned i = 0; i < n_attempts; i++)
		if (!(attempts[i].flags & KILLS))
			report(to, i, attempts[i].run(&env));
}

static void *thread_main(void *arg)
{
	return arg;
}

/* What core does all day still works. */
static const char *core_cannot(const struct attempt_env *env)
{
	pthread_t t;
	int pair[2];
	int fd = openat(env->mount_fd, "made by core", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, "x", 1) != 1 || fdatasync(fd) < 0)
		return "write a file";
	if (renameat(env->mount_fd, "made by core", env->mount_fd, "renamed") < 0)
		return "rename";
	if (unlinkat(env->mount_fd, "renamed", 0) < 0)
		return "unlink";
	if (memfd_create("x", MFD_CLOEXEC) < 0)
		return "make a memfd";
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return "make a socket pair";
	if (pthread_create(&t, NULL, thread_main, NULL) != 0 || pthread_join(t, NULL) != 0)
		return "start a thread";
	return NULL;
}

static void try_in_core(const struct try_group *g, int to)
{
	struct err err;
	make_workspace(g->root);
	become(g->root);
	struct attempt_env env = new_env();
	env.foreign_pid = foreign_process();
	const struct core_rights rights = {.write_fds = &env.mount_fd,
		.n_write_fds = 1,
		.single_user = g->abi < 0,
		.landlock_abi = g->abi};
	if (core_restrict(&rights, &err) < 0)
		problem(to, err.text);
	if (core_cannot(&env))
		problem(to, core_cannot(&env));
	for (unsigned i = 0; i < n_attempts; i++)
		if (!(attempts[i].flags & (CORE_MAY | KILLS)))
			report(to, i, attempts[i].run(&env));
}

static int abi_of(const struct try_group *g)
{
	return g->abi < 0 ? 0 : g->abi ? MIN(g->abi, landlock_abi()) : landlock_abi();
}

/* What front does all day still works. */
static const char *front_cannot(void)
{
	int fds[2], m = memfd_create("x", MFD_CLOEXEC);
	if (m < 0 || write(m, "x", 1) != 1 || ftruncate(m, 0) < 0)
		return "keep content in memory";
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0 || write(fds[1], "x", 1) != 1)
		return "use a pipe";
	return NULL;
}

static void restricted_front(const struct try_group *g, int to, const struct attempt_env *env)
{
	struct err err;
	bool own_user;
	if (identity_drop(64631, 0, getppid(), &own_user, &err) < 0)
		problem(to, err.text);
	if (own_user != g->root)
		problem(to, "as root it has no user of its own");
	if (front_restrict(abi_of(g), &err) < 0)
		problem(to, err.text);
	if (front_cannot())
		problem(to, front_cannot());
	for (unsigned i = 0; i < n_attempts; i++)
		if (!(attempts[i].flags & KILLS))
			report(to, i, attempts[i].run(env));
	_exit(0);
}

/* In a child, since afterwards nobody can look at the workspace. */
static void try_in_front(const struct try_group *g, int to)
{
	int status;
	make_workspace(g->root);
	become(g->root);
	struct attempt_env env = new_env();
	env.foreign_pid = foreign_process();
	struct sha256 before = hash_workspace();
	pid_t pid = fork();
	if (pid == 0)
		restricted_front(g, to, &env);
	(void)waitpid(pid, &status, 0);
	struct sha256 after = hash_workspace();
	report(to, UNCHANGED,
		WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
			memcmp(&before, &after, sizeof(before)) == 0);
	(void)kill(env.foreign_pid, SIGKILL);
}

/* The supervisor of a node: what core may below the directories, what a supervisor may, and nothing
 * else. */
static void try_in_node(const struct try_group *g, int to)
{
	struct err err;
	char path[200];
	make_workspace(g->root);
	become(g->root);
	struct attempt_env env = new_env();
	env.foreign_pid = foreign_process();
	path_in(programs, "cloister-worker", path, sizeof(path));
	int exe = open(path, O_PATH | O_CLOEXEC);
	must(exe >= 0, "opening the worker");
	const struct node_rights rights = {.landlock_abi = abi_of(g),
		.write_fds = &env.mount_fd,
		.n_write_fds = 1,
		.exec_fds = &exe,
		.n_exec_fds = 1};
	if (node_restrict(&rights, &err) < 0)
		problem(to, err.text);
	if (core_cannot(&env))
		problem(to, core_cannot(&env));
	for (unsigned i = 0; i < n_attempts; i++)
		if (!(attempts[i].flags & (CORE_MAY | SUPERVISOR_MAY | KILLS)))
			report(to, i, in_child(&attempts[i], &env));
}

static void collect(struct try_group *g, int from)
{
	int m[2];
	while (read(from, m, sizeof(m)) == sizeof(m)) {
		if (m[0] < ATTEMPTS_MAX) {
			g->results[m[0]] = m[1];
		} else {
			ssize_t n = read(from, g->problem, sizeof(g->problem) - 1);
			g->problem[n > 0 ? n : 0] = '\0';
		}
	}
}

static void run_group(struct try_group *g)
{
	static void (*const run[])(const struct try_group *g, int to) = {try_free, try_in_worker,
		try_in_supervisor, try_in_journal, try_in_core, try_in_front, try_in_node};
	int pipes[2];
	for (unsigned i = 0; i < ATTEMPTS_MAX; i++)
		g->results[i] = NOT_TRIED;
	make_workspace(g->root);
	must(pipe2(pipes, O_CLOEXEC) == 0, "pipe");
	pid_t pid = fork();
	if (pid == 0) {
		close(pipes[0]);
		run[g->role](g, pipes[1]);
		_exit(0);
	}
	close(pipes[1]);
	collect(g, pipes[0]);
	close(pipes[0]);
	int status;
	waitpid(pid, &status, 0);
	g->ran = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (!g->ran && !g->problem[0])
		(void)snprintf(g->problem, sizeof(g->problem),
			"the process of the attempts ended "
			"with status %x",
			status);
}

/* --- cells --- */

static bool must_work_free(const struct attempt *a, bool root)
{
	return !(a->flags & NOT_HERE) && (root || !(a->flags & NEEDS_ROOT));
}

/* Is the attempt this role's right, or refused only by the Landlock that is not there? */
static bool is_permitted(const struct try_group *g, const struct attempt *a)
{
	if (g->role == ROLE_WORKER)
		return g->abi < 0 && (a->flags & READS_OUTSIDE);
	if (g->role == ROLE_SUPERVISOR)
		return (a->flags & SUPERVISOR_MAY) ||
		       (g->abi < 0 && (a->flags & SUPERVISOR_LANDLOCK));
	if (g->role == ROLE_JOURNAL)
		return (a->flags & KILLS) ||
		       (g->abi < 0 && (a->flags & (READS_OUTSIDE | CORE_MAY | CORE_LANDLOCK)));
	if (g->role == ROLE_FRONT)
		return (a->flags & KILLS) != 0;
	if (g->role == ROLE_NODE)
		return (a->flags & (CORE_MAY | SUPERVISOR_MAY | KILLS)) ||
		       (g->abi < 0 && (a->flags & (NODE_LANDLOCK | CORE_LANDLOCK |
							  SUPERVISOR_LANDLOCK | READS_OUTSIDE)));
	return (a->flags & (CORE_MAY | KILLS)) ||
	       (g->abi < 0 && (a->flags & (READS_OUTSIDE | CORE_LANDLOCK)));
}

struct cell {
	struct try_group *group;
	unsigned attempt;
};

static void check_cell(void **state)
{
	const struct cell *c = *state;
	const struct try_group *g = c->group;
	int result = g->results[c->attempt];
	if (g->problem[0])
		fail_msg("%s", g->problem);
	assert_int_not_equal(result, NOT_TRIED);
	if (g->role == ROLE_FREE) {
		if (result != 0)
			fail_msg("without a fence this fails with errno %d: the attempt proves "
				 "nothing",
				result);
	} else if (result == 0) {
		fail_msg("it worked");
	}
}

static void nothing_changed(void **state)
{
	const struct cell *c = *state;
	if (c->group->problem[0])
		fail_msg("%s", c->group->problem);
	assert_true(c->group->ran);
	assert_int_equal(c->group->results[UNCHANGED], 1);
}

static void without_landlock_it_does_not_start(void **state)
{
	(void)state;
	struct err err = {0};
	struct tree *tree;
	static const int abis[] = {-1, 1};
	for (size_t i = 0; i < ARRAY_LEN(abis); i++) {
		struct tree_options opt = {.libexecdir = programs, .landlock_abi = abis[i]};
		assert_int_equal(tree_start(&opt, &tree, &err), -ERR_UNAVAILABLE);
		assert_non_null(strstr(err.text, "Landlock"));
		assert_non_null(strstr(err.hint, "single_user"));
		opt.single_user = true;
		assert_int_equal(tree_start(&opt, &tree, &err), 0);
		assert_non_null(strstr(tree_gaps(tree), "Landlock"));
		tree_free(tree);
		struct core_rights rights = {.landlock_abi = abis[i]};
		assert_int_equal(core_restrict(&rights, &err), -ERR_UNAVAILABLE);
	}
	struct tree_options opt = {.libexecdir = programs, .landlock_abi = 2};
	assert_int_equal(tree_start(&opt, &tree, &err), 0);
	assert_null(tree_gaps(tree));
	tree_free(tree);
}

/* --- set-up --- */

static void copy_program(const char *from, const char *name)
{
	char path[200], buffer[65536];
	path_in(programs, name, path, sizeof(path));
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	must(in >= 0 && out >= 0, from);
	ssize_t n;
	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		must(write(out, buffer, (size_t)n) == n, "copy");
	close(in);
	close(out);
}

/* As the arguments name them; a machine for which there is no cloister-later has the first two. */
static const char *const program_names[] = {
	"cloister-supervisor", "cloister-worker", "cloister-later"};

static void set_up(int argc, char **argv)
{
	/* a new file gets its mode whatever the caller's mask is */
	(void)umask(022);
	strcpy(top, "/tmp/cloister-rights-XXXXXX");
	must(mkdtemp(top) && chmod(top, 0755) == 0, "making a directory");
	path_in(top, "workspace", workspace, sizeof(workspace));
	path_in(top, "programs", programs, sizeof(programs));
	must(mkdir(workspace, 0755) == 0 && mkdir(programs, 0755) == 0, "mkdir");
	path_in(top, "log", journal_log, sizeof(journal_log));
	must(mkdir(journal_log, 0777) == 0 && chmod(journal_log, 0777) == 0, "mkdir");
	for (int i = 1; i < argc; i++)
		copy_program(argv[i], program_names[i - 1]);
}

static void tear_down(void)
{
	char path[200];
	clear_workspace();
	for (size_t i = 0; i < ARRAY_LEN(program_names); i++) {
		path_in(programs, program_names[i], path, sizeof(path));
		(void)unlink(path);
	}
	(void)rmdir(programs);
	path_in(journal_log, "segment", path, sizeof(path));
	(void)unlink(path);
	(void)rmdir(journal_log);
	(void)rmdir(workspace);
	(void)rmdir(top);
}

static void add_groups(bool root)
{
	static const int abis[] = {0, 3, 2, -1};
	groups[n_groups++] = (struct try_group){.role = ROLE_FREE, .root = root};
	for (enum role r = ROLE_WORKER; r <= ROLE_NODE; r++)
		for (size_t i = 0; i < ARRAY_LEN(abis); i++)
			groups[n_groups++] =
				(struct try_group){.role = r, .abi = abis[i], .root = root};
}

static char *case_name(const struct try_group *g, const char *what)
{
	char abi[32] = "", *name = NULL;
	if (g->role != ROLE_FREE)
		(void)snprintf(abi, sizeof(abi),
			g->abi < 0    ? ", no Landlock"
			: g->abi == 0 ? ", Landlock"
				      : ", Landlock ABI %d",
			g->abi);
	must(asprintf(&name, "%s as %s%s: %s", role_names[g->role],
		     g->root ? "root" : "an ordinary user", abi, what) > 0,
		"name");
	return name;
}

static struct CMUnitTest *tests;
static size_t n_tests;

static void add_case(struct try_group *g, unsigned attempt, const char *what, CMUnitTestFunction fn)
{
	struct cell *c = malloc(sizeof(*c));
	*c = (struct cell){g, attempt};
	tests = realloc(tests, (n_tests + 1) * sizeof(*tests));
	tests[n_tests++] = (struct CMUnitTest){
		.name = case_name(g, what), .test_func = fn, .initial_state = c};
}

static void add_cases(struct try_group *g)
{
	for (unsigned i = 0; i < n_attempts; i++)
		if (g->role == ROLE_FREE ? must_work_free(&attempts[i], g->root)
					 : !is_permitted(g, &attempts[i]))
			add_case(g, i, attempts[i].name, check_cell);
	if (g->role == ROLE_WORKER || g->role == ROLE_FRONT)
		add_case(g, 0, "the workspace is byte for byte as it was", nothing_changed);
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc > 4)
		return 2;
	set_up(argc, argv);
	if (geteuid() == 0)
		add_groups(true);
	add_groups(false);
	for (unsigned i = 0; i < n_groups; i++) {
		run_group(&groups[i]);
		add_cases(&groups[i]);
	}
	tests = realloc(tests, (n_tests + 1) * sizeof(*tests));
	tests[n_tests++] = (struct CMUnitTest)cmocka_unit_test(without_landlock_it_does_not_start);
	int failed = _cmocka_run_group_tests("rights", tests, n_tests, NULL, NULL);
	tear_down();
	return failed;
}
