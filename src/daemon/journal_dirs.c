/* Where the journal's log and key are: see journal_dirs.h. */
#include "daemon/journal_dirs.h"

#include "session/state.h"

int journal_dirs_open(const struct config *set, int *ret_log_fd, int *ret_key_fd, struct err *err)
{
	_cleanup_close_ int dir = -1;
	_cleanup_close_ int log = -1;
	const struct state_paths paths = {.state_dir = set->state_dir};
	int r = state_open_beside(&paths, "-journal", set->journal_dir, &dir, err);
	if (r == 0)
		r = state_subdir(dir, "log", &log, err);
	if (r == 0)
		r = state_subdir(dir, "key", ret_key_fd, err);
	if (r < 0)
		return err_wrap(err, "journal");
	*ret_log_fd = take_fd(log);
	return 0;
}
