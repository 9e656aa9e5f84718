/* SPDX-License-Identifier: MIT */
/* Foreign text in messages: bytes that would control a terminal are shown as \x1b. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stddef.h>

/*
 * Copies n bytes to `to`, of `room` bytes (1 or more), with a NUL behind them, and leaves out what has no room.  Control
 * characters other than newline and tab, also those of UTF-8 (U+0080 to U+009F), and bytes that are no UTF-8 become \x and
 * two digits.  Returns how many bytes of `from` were copied.
 */
size_t printable(char *to, size_t room, const char *from, size_t n);
/* How many of the n bytes at s can be shown as they are, from the first on. */
size_t printable_span(const char *s, size_t n);

#endif
