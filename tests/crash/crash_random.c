/*
 * Killed at random moments, raced by others, short of quota: what holds when nobody chooses the
 * moment. The seed is printed and can be given in CLOISTER_TEST_SEED. CLOISTER_TEST_FULL=1 runs the
 * long form.
 */
#include "versions.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#if defined(__has_feature)
#	if __has_feature(thread_sanitizer)
/* The ThreadSanitizer of clang 14 does not know this way of locking, and would report every unlock.
 */
int pthread_mutex_clocklock(pthread_mutex_t *m, clockid_t clock, const struct timespec *until)
{
	(void)clock, (void)until;
	return pthread_mutex_lock(m);
}
#	endif
#endif

static uint64_t seed;

static uint64_t next_random(void)
{
	seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
	return seed;
}

static bool full(void)
{
	return getenv("CLOISTER_TEST_FULL") != NULL;
}

/* --- kill -9 -----------------------------------------------------------------------------------
 */

struct shared {
	_Atomic uint64_t acked; /* last version whose commit has returned */
};

static void run_and_kill(struct fixture *f, struct shared *sh, enum durability d, long wait_us)
{
	int status;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		f->ws = NULL;
		open_with(f, d);
		for (uint64_t k = sh->acked + 1;; k++) {
			make_version(f, k);
			sh->acked = k;
		}
	}
	usleep((useconds_t)wait_us);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void kill_rounds(struct fixture *f, enum durability d, int rounds)
{
	struct shared *sh =
		mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	workspace_free(f->ws);
	f->ws = NULL;
	for (int i = 0; i < rounds; i++) {
		run_and_kill(f, sh, d, (long)(next_random() % 9000));
		open_with(f, d);
		uint64_t k = workspace_seq(f->ws);
		/* What was acknowledged is there; at most the one under way is there besides. */
		assert_true(k == sh->acked || k == sh->acked + 1);
		expect_version(f, k);
		expect_exact(f);
		sh->acked = k;
		workspace_free(f->ws);
		f->ws = NULL;
	}
	munmap(sh, sizeof(*sh));
	open_with(f, d);
}

static void kill_9_at_random_moments(void **state)
{
	kill_rounds(*state, DURABLE_PROCESS, full() ? 700 : 40);
}

static void kill_9_at_random_moments_of_synced_commits(void **state)
{
	kill_rounds(*state, DURABLE_POWER, full() ? 300 : 10);
}

/* --- quota --------------------------------------------------------------------------------------
 */

enum { QUOTA = 64 * 1024, WRITERS = 64 };

static int try_write(struct fixture *f, const char *path, size_t n)
{
	struct view *v = fx_view(f);
	struct changeset *cs;
	struct commit_result res;
	fx_put_size(f, v, path, n);
	FX_OK(view_finish(v, &cs, &fx_err));
	view_free(v);
	return changeset_commit(f->ws, cs, &fx_info, &res, &fx_err);
}

/* Writes until it has been refused often enough; 0 when every answer was one of the right two. */
static int greedy(struct fixture *f, int id)
{
	char path[32];
	unsigned refused = 0;
	seed ^= (uint64_t)id * 0x9e3779b97f4a7c15u;
	for (int i = 0; i < 30 && refused < 5; i++) {
		snprintf(path, sizeof(path), "w%d-%d", id, i % 4);
		int r = try_write(f, path, 1 + next_random() % 900);
		if (r < 0 && r != -ERR_QUOTA)
			return fprintf(stderr, "writer %d: %s\n", id, fx_err.text), 1;
		refused += r < 0;
	}
	return 0;
}

static void sixty_four_writers_never_pass_the_quota(void **state)
{
	struct fixture *f = *state;
	int status, left = WRITERS;
	struct workspace_options opt = {
		.quota_bytes = QUOTA, .history_bytes = 20000, .lock_wait_ms = 60000};
	fx_reopen(f, &opt);
	assert_int_equal(try_write(f, "most", QUOTA - 20000), 0);
	workspace_free(f->ws);
	f->ws = NULL;
	fflush(NULL);
	for (int i = 0; i < WRITERS; i++)
		if (fork() == 0) {
			fx_reopen(f, &opt);
			_exit(greedy(f, i + 1));
		}
	while (left > 0) {
		struct tree_sum sum;
		if (tree_count(f->fd, ".cloister", &sum) == 0)
			assert_true(sum.bytes <= QUOTA);
		while (left > 0 && waitpid(-1, &status, WNOHANG) > 0) {
			assert_int_equal(status, 0);
			left--;
		}
		usleep(1000);
	}
	fx_reopen(f, &opt);
	expect_exact(f);
	struct workspace_usage u;
	FX_OK(workspace_usage(f->ws, &u, &fx_err));
	assert_true(u.bytes <= QUOTA && u.bytes > QUOTA - 1000);
}

struct thread_arg {
	struct workspace *ws;
	int id, result;
};

static int thread_write(struct workspace *ws, int id, int i)
{
	struct err e;
	struct view *v = NULL;
	struct node n = {.fd = -1};
	struct staged *s = NULL;
	struct changeset *cs = NULL;
	struct commit_result res;
	char path[32];
	snprintf(path, sizeof(path), "t%d-%d", id, i % 5);
	int r = view_new(ws, &v, &e);
	if (r == 0)
		r = view_resolve(v, str_of(path), 0, &n, &e);
	if (r == 0 && (r = staged_new(v, 0, &s, &e)) == 0 &&
		(r = staged_write(s, "0123456789", 10, &e)) == 0)
		r = view_put(v, &n, s, PUT_EITHER, 0644, NULL, &e);
	if (r == 0)
		r = view_finish(v, &cs, &e);
	node_done(&n);
	view_free(v);
	return r < 0 ? r : changeset_commit(ws, cs, &fx_info, &res, &e);
}

static void *thread_main(void *arg)
{
	struct thread_arg *a = arg;
	for (int i = 0; i < 50 && a->result == 0; i++) {
		int r = thread_write(a->ws, a->id, i);
		a->result = r == -ERR_QUOTA ? 0 : r;
	}
	return NULL;
}

static void threads_of_one_process_never_pass_the_quota(void **state)
{
	struct fixture *f = *state;
	pthread_t threads[8];
	struct thread_arg args[8];
	fx_reopen(f, &(struct workspace_options){
			     .quota_bytes = 300, .history_bytes = 20000, .lock_wait_ms = 60000});
	for (int i = 0; i < 8; i++) {
		args[i] = (struct thread_arg){f->ws, i, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, thread_main, &args[i]), 0);
	}
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(args[i].result, 0);
	}
	fx_expect_usage(f, 300, 30);
	expect_exact(f);
}

/* --- a directory that turns into a link and back
 * -------------------------------------------------- */

static void flip(int dir)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		(void)fs_rename_swap(dir, "d", dir, "link");
		sched_yield();
	}
}

static void a_directory_that_flips_to_a_link_never_leads_out(void **state)
{
	struct fixture *f = *state;
	char out[96];
	unsigned done = 0, refused = 0, rounds = full() ? 100000 : 5000;
	snprintf(out, sizeof(out), "%s_out", f->dir);
	assert_int_equal(mkdir(out, 0755), 0);
	fx_host_mkdir(f, "d");
	char rel[112];
	snprintf(rel, sizeof(rel), "../%s", strrchr(out, 0x2f) + 1);
	fx_host_symlink(f, rel, "link");
	fx_reopen(f, &(struct workspace_options){.lock_wait_ms = 5000});
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		flip(f->fd);
	for (unsigned i = 0; i < rounds; i++) {
		struct view *v = fx_view(f);
		struct node n = {.fd = -1};
		struct changeset *cs;
		struct commit_result res;
		int r = view_resolve(v, STR("d/x"), 0, &n, &fx_err);
		if (r == 0)
			r = i % 3 == 2 && n.kind == NODE_FILE
				    ? view_remove(v, &n, false, NULL, &fx_err)
				    : view_put(v, &n, fx_staged(v, "x"), PUT_EITHER, 0644, NULL,
					      &fx_err);
		node_done(&n);
		if (r == 0) {
			FX_OK(view_finish(v, &cs, &fx_err));
			r = changeset_commit(f->ws, cs, &fx_info, &res, &fx_err);
		}
		view_free(v);
		done += r == 0;
		refused += r < 0;
		if (r < 0 && r != -ERR_PATH_ESCAPE && r != -ERR_CONFLICT && r != -ERR_NOT_FOUND)
			fail_msg("round %u: %s", i, fx_err.text);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(rmdir(out), 0); /* still empty */
	print_message("# %u written, %u refused\n", done, refused);
	assert_true(done > 0);
}

int main(void)
{
	const char *given = getenv("CLOISTER_TEST_SEED");
	seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 2654435761u + 1;
	print_message("# seed %llu\n", (unsigned long long)seed);
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fx_setup, fx_teardown)
	const struct CMUnitTest tests[] = {
		CASE(kill_9_at_random_moments),
		CASE(kill_9_at_random_moments_of_synced_commits),
		CASE(sixty_four_writers_never_pass_the_quota),
		CASE(threads_of_one_process_never_pass_the_quota),
		CASE(a_directory_that_flips_to_a_link_never_leads_out),
	};
	return cmocka_run_group_tests_name("random moments", tests, NULL, NULL);
}
