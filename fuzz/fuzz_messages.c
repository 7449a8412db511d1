/*
 * Packets between the processes, read as each of them would. What decodes is written again and must
 * give the same bytes: a value that the cursor lets through is one that the writer could have sent.
 */
#include "daemon/messages.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct msg_out out;

static void check_same(struct msg_in body)
{
	if (out.len - 8 != body.left || memcmp(out.data + 8, body.p, body.left) != 0)
		abort();
}

static void read_again(enum msg_type type, struct msg_in body)
{
	struct err err;
	msg_out_clear(&out);
	switch (type) {
#define F(type, name, limit)
#define MESSAGE(NAME, name, from, to, fds, fields)                                                 \
	case MSG_T_##NAME: {                                                                       \
		static struct msg_##name m;                                                        \
		if (msg_##name##_get(body, &m, &err) == 0 && msg_##name##_put(&out, &m))           \
			check_same(body);                                                          \
		break;                                                                             \
	}
#include "daemon/messages.def"
#undef MESSAGE
#undef F
	case MSG_NONE_:
	case MSG_TYPE_MAX_: abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (enum msg_role role = MSG_CORE; role <= MSG_FRONT; role++) {
		struct msg_in packet = {(const char *)data, size}, body;
		struct err err;
		enum msg_type type;
		while (msg_next(&packet, role, &type, &body, &err) > 0)
			read_again(type, body);
	}
	return 0;
}
