/* SPDX-License-Identifier: MIT */
#include "base/options.h"

bool options_read(void *to, const void *from, size_t room, size_t known, size_t first, const char *type, cptx_site at,
                  cptx_error *err)
{
	uint32_t size = 0;

	memset(to, 0, room);
	if (!may_go(err))
		return false;
	if (!from)
		return true;
	memcpy(&size, from, sizeof size);
	size = size ? size : (uint32_t)MIN(first, known);
	if (size < sizeof size || size > OPTIONS_MOST_BYTES)
		return error_set(err, CPTX_E_ARG, at, "%s: .size = %u, which no version has; CPTX_OPT fills it in, or leave it 0",
		                 type, size);
	for (size_t i = known; i < size; i++)
		if (((const char *)from)[i])
			return error_set(err, CPTX_E_ARG, at,
			                 "%s: the program's header has an option %zu bytes behind the start, which library " CPTX_VERSION
			                 " does not know and which is not 0; load a newer library (cptx_version), or leave it 0",
			                 type, i);
	memcpy(to, from, MIN(size, known));
	size = (uint32_t)known;
	memcpy(to, &size, sizeof size);
	return true;
}

void options_write(void *to, const void *from, size_t known, size_t first)
{
	uint32_t given, size;

	memcpy(&given, to, sizeof given);
	size = given ? given : (uint32_t)MIN(first, known);
	memset(to, 0, size);
	memcpy(to, from, MIN(size, known));
	memcpy(to, &given, sizeof given);
}

void choice_write(void *to, size_t size, const void *from, size_t at, uint32_t given, size_t known, size_t first)
{
	const uint32_t room = (uint32_t)MIN(given, size - at);
	char *opt = (char *)to + at;

	memset(to, 0, size);
	memcpy(to, from, at);
	memcpy(opt, &room, sizeof room);
	options_write(opt, (const char *)from + at, known, first);
}

bool options_read_in(void *to, const void *from, size_t room, size_t known, size_t first, const char *type, cptx_site at,
                     cptx_kernel *k)
{
	cptx_error err = { .code = CPTX_OK };

	if (options_read(to, from, room, known, first, type, NOWHERE, &err))
		return true;
	cptx_fail_(k, at, "%s", err.text);
	return false;
}
