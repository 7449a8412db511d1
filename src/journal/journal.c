/* What every journal has, whatever is behind its port: see journal.h. */
#include "journal/journal.h"

bool journal_take_abandoned(
	struct journal *j, const char *tenant, const char *session, struct jopen *ret)
{
	for (unsigned i = 0; i < j->n_abandoned; i++) {
		struct jopen *o = &j->abandoned[i];
		if (strcmp(o->tenant, tenant) != 0 || strcmp(o->session, session) != 0)
			continue;
		*ret = *o;
		j->n_abandoned--;
		memmove(o, o + 1, (j->n_abandoned - i) * sizeof(*o));
		return true;
	}
	return false;
}
