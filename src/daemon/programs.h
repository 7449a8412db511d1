/* Where the programs of the roles are. */
#ifndef CLOISTER_DAEMON_PROGRAMS_H
#define CLOISTER_DAEMON_PROGRAMS_H

#include "base/err.h"

/* O_PATH descriptor of an executable in `dir`; NULL: the environment's CLOISTER_LIBEXECDIR, else
 * beside this executable, else the installed place. ERR_UNAVAILABLE. */
int program_open(const char *dir, const char *name, struct err *err) _must_check_;

/* The loader that the kernel runs for an executable (ELF, PT_INTERP), as an O_PATH descriptor; -1:
 * it is linked statically, or is not one of this machine's. */
int program_loader(int exe_fd);

#endif
