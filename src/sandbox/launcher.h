/*
 * The launcher: a process that starts fences for one core, and nothing else.
 *
 * It is started before core gives up its rights and is the only process of the tree that may make
 * namespaces. Core hands it descriptors, words and limits; identities, maxima and what is seen of
 * the system stand in its own configuration. It interprets no word of a command. It ends, with
 * everything that it has started, when core's end of the socket closes.
 */
#ifndef CLOISTER_SANDBOX_LAUNCHER_H
#define CLOISTER_SANDBOX_LAUNCHER_H

#include "sandbox/protocol.h"

/* Serve until core is gone (0) or talks nonsense (< 0). */
int launcher_serve(int core, const struct fence_config *config, struct err *err) _must_check_;

#endif
