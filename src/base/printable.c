/* SPDX-License-Identifier: MIT */
#include "base/printable.h"

#include <string.h>

/* The length of the character at s if messages may show it, else 0. */
static size_t character(const unsigned char *s, size_t n)
{
	size_t len = *s < 0x80 ? 1 : *s >= 0xc2 && *s < 0xe0 ? 2 : *s >= 0xe0 && *s < 0xf0 ? 3 : *s >= 0xf0 && *s < 0xf5 ? 4 : 0;

	if (!len || len > n || *s == 0x7f || (*s < ' ' && *s != '\n' && *s != '\t') || (*s == 0xc2 && s[1] < 0xa0))
		return 0;
	for (size_t i = 1; i < len; i++)
		if (s[i] >> 6 != 2)
			return 0;
	return len;
}

size_t printable_span(const char *s, size_t n)
{
	size_t i = 0, len;

	while (i < n && (len = character((const unsigned char *)s + i, n - i)))
		i += len;
	return i;
}

size_t printable(char *to, size_t room, const char *from, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	size_t i = 0, at = 0;

	while (i < n) {
		size_t len = character((const unsigned char *)from + i, n - i), takes = len ? len : 4;
		if (at + takes >= room)
			break;
		if (len) {
			memcpy(to + at, from + i, len);
		} else {
			unsigned char c = (unsigned char)from[i];
			to[at] = '\\', to[at + 1] = 'x', to[at + 2] = digits[c >> 4], to[at + 3] = digits[c & 15];
		}
		at += takes;
		i += len ? len : 1;
	}
	to[at] = 0;
	return i;
}
