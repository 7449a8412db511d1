/* The scalars of TOML that are words: numbers, booleans, dates and times. Part of toml.c. */
#ifndef CLOISTER_CODEC_TOML_SCALAR_H
#define CLOISTER_CODEC_TOML_SCALAR_H

#include "codec/toml.h"

/* Length of the word at p: letters, digits and "+-._:", with the blank between date and time. */
size_t toml_word(const char *p, size_t n);

/* Fill type and value of `into` from a word. NULL, or what is wrong with it. */
const char *toml_scalar(struct str word, struct toml *into);

#endif
