/* SPDX-License-Identifier: MIT */
/* A folder for a test, with a cache in it, and what is seen in it from outside. */
#ifndef CPTX_TEST_FOLDER_H
#define CPTX_TEST_FOLDER_H

#include "../runtime/harness.h"

#include <cptx/cache.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], place[96]; /* place: the cache's, in the folder */

static inline void folder_make(void)
{
	snprintf(folder, sizeof folder, "/tmp/cptx-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(place, sizeof place, "%s/cache", folder);
}

static inline void folder_remove(void)
{
	char command[160];
	snprintf(command, sizeof command, "chmod -R u+w %s && rm -rf %s", folder, folder);
	ck_assert_int_eq(system(command), 0);
}

/* How many files have names that begin so; the last of them in `path`, of 512 bytes. */
static inline unsigned folder_files(const char *begin, char *path)
{
	DIR *d = opendir(place);
	unsigned n = 0;

	if (!d)
		return 0;
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.' && !strncmp(e->d_name, begin, strlen(begin))) {
			n++;
			if (path)
				snprintf(path, 512, "%s/%s", place, e->d_name);
		}
	closedir(d);
	return n;
}

#endif
