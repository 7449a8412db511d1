/*
 * The two halves of the power-cut test (power_cut): `write DIR ACKS` makes one synced version of a
 * workspace after another and writes each number to ACKS once its commit has returned; `check DIR
 * N` opens what a cut has left, as after a reboot, and fails unless it is exactly one version, N or
 * the one after it.
 */
#include "versions.h"

#include "workspace/redo.h"

static struct fixture fx;

static void open_dir(const char *dir)
{
	snprintf(fx.dir, sizeof(fx.dir), "%s", dir);
	fx.fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fx.fd >= 0);
}

static _noreturn_ void write_on(const char *dir, const char *acks)
{
	char text[32];
	open_dir(dir);
	int ack = open(acks, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(ack >= 0);
	open_with(&fx, DURABLE_POWER);
	for (uint64_t k = workspace_seq(fx.ws) + 1;; k++) {
		make_version(&fx, k);
		int n = snprintf(text, sizeof(text), "%020llu\n", (unsigned long long)k);
		assert_int_equal(fs_write(ack, text, (size_t)n, 0), 0);
	}
}

static const char *check_dir;
static uint64_t check_acked;

static void what_a_power_cut_leaves_is_one_version(void **state)
{
	(void)state;
	static const char other_boot[STORE_BOOT_ID] = "another boot";
	open_dir(check_dir);
	int fd = openat(fx.fd, ".cloister/state", O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(
		fs_write(fd, other_boot, sizeof(other_boot), offsetof(struct store_state, boot)),
		0);
	close(fd);
	open_with(&fx, DURABLE_POWER);
	struct workspace_recovery rec;
	workspace_recovered(fx.ws, &rec);
	uint64_t k = workspace_seq(fx.ws);
	print_message("# acknowledged %llu, found %llu; %u finished, %u taken back, first "
		      "interfered: %s\n",
		(unsigned long long)check_acked, (unsigned long long)k, rec.finished,
		rec.rolled_back, rec.path);
	assert_true(k == check_acked || k == check_acked + 1);
	assert_int_equal(rec.interfered, 0);
	expect_version(&fx, k);
	expect_exact(&fx);
	make_version(&fx, k + 1);
	expect_version(&fx, k + 1);
	workspace_free(fx.ws);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "write") == 0)
		write_on(argv[2], argv[3]);
	if (argc != 4)
		return 2;
	check_dir = argv[2];
	check_acked = strtoull(argv[3], NULL, 10);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_power_cut_leaves_is_one_version)};
	return cmocka_run_group_tests_name("power cut", tests, NULL, NULL);
}
