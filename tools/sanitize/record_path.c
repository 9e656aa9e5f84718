/* SPDX-License-Identifier: MIT */
/* The name of the recording is made absolute when the library is loaded, before the program can change its folder; processes
 * that it starts get that name, too. */
#include "recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void make_absolute(void)
{
	const char *path = getenv(REC_FILE_ENV);
	char *folder = path && *path && *path != '/' ? getcwd(NULL, 0) : NULL, *whole = NULL;

	if (folder && asprintf(&whole, "%s/%s", folder, path) > 0)
		setenv(REC_FILE_ENV, whole, 1);
	free(whole);
	free(folder);
}
