/*
 * What of a git repository a command may change: everything but what git would later execute
 * outside of the fence (gitrepository-layout(5), git-config(1), githooks(5)).
 *
 * Judged on the finished change set, so it does not matter how a name came about, how deep it lies,
 * or whether the repository was there before: hooks that are not samples, configuration keys that
 * are not known to be harmless, attributes and alternates of the repository's own, and files that
 * name a repository elsewhere are held back. What is held back stays as it was.
 *
 * Configuration is read line by line in the form in which git writes it; anything else (a line that
 * goes on in the next one, a key behind a section on the same line) is held back, so there is no
 * second parser that could understand more than this one.
 */
#ifndef CLOISTER_SANDBOX_GITGUARD_H
#define CLOISTER_SANDBOX_GITGUARD_H

#include "base/text.h"

#include <stdbool.h>

/* What a path is to git. */
enum git_part {
	GIT_NOTHING, /* ordinary, or git's own data */
	GIT_NEVER,   /* a hook, attributes, alternates: may go, may not come or change */
	GIT_CONFIG,  /* a configuration file: by its keys */
	GIT_POINTER, /* names another directory of git's: `.git`, commondir, gitdir */
	GIT_DIR,     /* `.git` itself: fine as a directory */
	/* Only if the directory above is, or becomes, a repository without a `.git`: */
	GIT_BARE_HOOK,
	GIT_BARE_CONFIG,
	GIT_BARE_MARK, /* makes that directory one, when it is new */
};

/* For a path relative to the workspace's root. *ret_repository is how much of the path names the
 * directory that would have to be a repository, for the BARE parts. */
enum git_part git_part_of(struct str path, size_t *ret_repository);

/* Is this the name of a hook that does nothing? */
bool git_hook_sample(struct str name);

/* Does every key of `now` that was not in `before` with the same value do no harm? */
bool git_config_harmless(struct str before, struct str now);

/* Does a pointer file at `path` ("gitdir: X" or "X") lead to somewhere inside the workspace? */
bool git_pointer_inside(struct str path, struct str content);

#endif
