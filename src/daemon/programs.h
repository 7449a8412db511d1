/* Where the programs of the roles are. */
#ifndef CLOISTER_DAEMON_PROGRAMS_H
#define CLOISTER_DAEMON_PROGRAMS_H

#include "sys/process.h"

/* O_PATH descriptor of an executable in `dir`; NULL: the environment's CLOISTER_LIBEXECDIR, else
 * beside this executable, else the installed place. ERR_UNAVAILABLE. */
int program_open(const char *dir, const char *name, struct err *err) _must_check_;

enum { PROGRAM_ARGS_MAX = 24 };

/*
 * As process_start(), but the program begins when something is sent to its first descriptor, a
 * socket; until then it is cloister-later (later.c), and ends when the other end is closed. That
 * the program cannot be executed shows then, as its end. Where this build has no cloister-later it
 * begins at once. `spec` has at most PROGRAM_ARGS_MAX arguments. Errors: ERR_UNAVAILABLE, and those
 * of process_start().
 */
int program_start_later(const char *dir, const struct process_spec *spec, struct process *ret,
	struct err *err) _must_check_;

/* The loader that the kernel runs for an executable (ELF, PT_INTERP), as an O_PATH descriptor; -1:
 * it is linked statically, or is not one of this machine's. */
int program_loader(int exe_fd);

#endif
