/*
 * The net effect of a change set: what each object was before and is afterwards, when the
 * operations between are put together.
 */
#ifndef CLOISTER_WORKSPACE_NETCHANGE_H
#define CLOISTER_WORKSPACE_NETCHANGE_H

#include "workspace/changeset_impl.h"

/* Texts and operations are borrowed from the change set, except `path`. */
struct net_change {
	unsigned mount;
	const struct base *before; /* the real object; NULL: there is none */
	char *path;                /* where it is in the end; NULL: nowhere; owned */
	mode_t mode;               /* in the end, with the type */
	struct staged *content;    /* in the end; NULL: that of `before` */
	struct staged *tail;       /* behind the content of `before` */
	const char *target;        /* of a link that is made */
	int64_t bytes, entries;
	uint64_t hash;
	struct net_change *next; /* of the same bucket */
};

struct net_changes {
	struct net_change **all; /* in the order of their first operation */
	size_t n;
};

int net_changes_of(
	const struct changeset *cs, struct net_changes *ret, struct err *err) _must_check_;
void net_changes_done(struct net_changes *n);

#endif
