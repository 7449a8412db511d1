/*
 * Functions that have no safe use here do not compile: each has a form that knows the size of its
 * destination, reports errors, or needs no shell. Included by attr.h, behind the headers that
 * declare them.
 */
#ifndef CLOISTER_BASE_BANNED_H
#define CLOISTER_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BANNED(name) this_function_is_banned_##name

#undef strcpy
#define strcpy(...) BANNED(strcpy) /* memcpy with a checked length, or a struct buf */
#undef strcat
#define strcat(...) BANNED(strcat)
#undef strncpy
#define strncpy(...) BANNED(strncpy)
#undef strncat
#define strncat(...) BANNED(strncat)
#undef strtok
#define strtok(...) BANNED(strtok) /* memchr over a struct str */
#undef sprintf
#define sprintf(...) BANNED(sprintf) /* snprintf, buf_printf */
#undef vsprintf
#define vsprintf(...) BANNED(vsprintf)
#undef atoi
#define atoi(...) BANNED(atoi) /* strtol with its checks */
#undef atol
#define atol(...) BANNED(atol)
#undef system
#define system(...) BANNED(system) /* sys/process.h */
#undef popen
#define popen(...) BANNED(popen)
#undef rand
#define rand(...) BANNED(rand) /* getrandom(2) */
#undef mktemp
#define mktemp(...) BANNED(mktemp) /* O_TMPFILE, mkdtemp */
#undef tmpnam
#define tmpnam(...) BANNED(tmpnam)

#endif
