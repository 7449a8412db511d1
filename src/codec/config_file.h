/*
 * Finding and reading cloister.toml. Core, supervisor and command line read the same file.
 */
#ifndef CLOISTER_CODEC_CONFIG_FILE_H
#define CLOISTER_CODEC_CONFIG_FILE_H

#include "codec/config.h"

#define CONFIG_FILE_SYSTEM "/etc/cloister/cloister.toml"

/*
 * Read `path` into the configuration. NULL: the file that CLOISTER_CONFIG names, else the first
 * there is of `$XDG_CONFIG_HOME/cloister/cloister.toml` (`~/.config/...`; not for root) and
 * CONFIG_FILE_SYSTEM, else nothing. A file that was named must be there.
 *
 * The file must be regular, owned by root or this user, and writable by nobody else: who can write
 * it decides what agents may do. ERR_CONFIG, ERR_NO_MEMORY.
 */
int config_load(struct config *c, const char *path, struct err *err) _must_check_;

#endif
