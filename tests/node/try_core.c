/*
 * A core that was taken over, against the supervisor of its node: started as cloister-core by the
 * real supervisor, it does what CLOISTER_TRY says and shows on standard error what it got.
 */
#include "daemon/messages.h"
#include "daemon/rights_node.h"
#include "sys/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct msg_out out;

static void send_one(int sock, const int *fds, unsigned n)
{
	struct err err;
	(void)!packet_send(sock, out.data, out.len, fds, n, true, &err);
	msg_out_clear(&out);
}

static void say_ready(void)
{
	const struct msg_ready m = {.landlock_abi = 2};
	BUG_ON(!msg_ready_put(&out, &m));
	send_one(CORE_FD_CONTROL, NULL, 0);
}

static void put_spawn(uint64_t lease)
{
	const struct msg_spawn m = {.lease = lease};
	BUG_ON(!msg_spawn_put(&out, &m));
}

/* More workers than its supervisor allows: counts how many were refused. */
static void spawn_many(void)
{
	int pair[2];
	struct err err;
	char packet[256];
	unsigned refused = 0;
	for (unsigned i = 0; i < 8; i++) {
		BUG_ON(packet_pair(pair, &err) < 0);
		put_spawn(i);
		send_one(CORE_FD_LEASES, &pair[1], 1);
		(void)close(pair[1]);
	}
	while (refused < 5) {
		enum msg_type type;
		struct msg_in body;
		struct msg_ended m;
		int n = packet_recv(CORE_FD_LEASES, packet, sizeof(packet), NULL, NULL, true, &err);
		struct msg_in in = {packet, n > 0 ? (size_t)n : 0};
		BUG_ON(n <= 0 || msg_next(&in, MSG_CORE, &type, &body, &err) <= 0 ||
			msg_ended_get(body, &m, &err) < 0);
		refused += m.error != 0;
	}
	(void)fprintf(stderr, "TRY: 5 of 8 workers were refused\n");
}

int main(void)
{
	const char *what = getenv("CLOISTER_TRY");
	struct err err;
	say_ready();
	if (!what)
		return 3;
	if (strcmp(what, "garbage to leases") == 0)
		(void)!packet_send(
			CORE_FD_LEASES, "garbage that is no message", 26, NULL, 0, true, &err);
	else if (strcmp(what, "garbage to control") == 0)
		(void)!packet_send(
			CORE_FD_CONTROL, "garbage that is no message", 26, NULL, 0, true, &err);
	else if (strcmp(what, "no channel") == 0) {
		put_spawn(1);
		send_one(CORE_FD_LEASES, NULL, 0);
	} else if (strcmp(what, "wrong message") == 0) {
		const struct msg_front_ready m = {.landlock_abi = 1};
		BUG_ON(!msg_front_ready_put(&out, &m));
		send_one(CORE_FD_CONTROL, NULL, 0);
	} else if (strcmp(what, "many workers") == 0)
		spawn_many();
	else if (strcmp(what, "does not read") == 0)
		for (;;) { /* each is refused, and nobody reads that */
			put_spawn(1);
			put_spawn(2);
			send_one(CORE_FD_LEASES, NULL, 0);
		}
	/* Waits to be ended. */
	for (;;)
		(void)pause();
}
