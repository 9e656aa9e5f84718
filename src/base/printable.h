/* SPDX-License-Identifier: MIT */
/* Text of others in messages: what would drive a terminal is shown as \x1b. */
#ifndef BASE_PRINTABLE_H
#define BASE_PRINTABLE_H

#include <stddef.h>

/*
 * Copies n bytes to `to`, of `room` bytes (1 or more), with a NUL behind them; what has no room is left out.  Control
 * characters but newline and tab, also those of UTF-8 (U+0080 to U+009F), and bytes that are no UTF-8 become \x and two
 * digits.  Returns how many bytes were taken of `from`.
 */
size_t printable(char *to, size_t room, const char *from, size_t n);
/* The bytes at the start of s, n of them, that may be shown as they are. */
size_t printable_span(const char *s, size_t n);

#endif
