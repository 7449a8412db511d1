/* A session as every door shows it. */
#ifndef CLOISTER_SESSION_SESSION_JSON_H
#define CLOISTER_SESSION_SESSION_JSON_H

#include "base/buf.h"
#include "session/session.h"

/* Append {"id",...,"turns"}; a comma first where one is due. */
void session_put_json(struct buf *b, const struct session_info *i);

#endif
