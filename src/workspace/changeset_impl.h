/* Inside a change set: the operations of the view that it was made of. */
#ifndef CLOISTER_WORKSPACE_CHANGESET_IMPL_H
#define CLOISTER_WORKSPACE_CHANGESET_IMPL_H

#include "workspace/view_impl.h"

struct changeset {
	struct workspace *ws;
	struct op **ops; /* in the order of publishing; owned */
	struct change *changes;
	unsigned n;
	uint64_t seqs[LIMIT_MOUNTS]; /* as in the view */
	uint64_t undoes;
	bool hashed;
	struct sha256 hash;
};

#endif
