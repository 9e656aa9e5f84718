/* SPDX-License-Identifier: MIT */
/* What the tests that ask ptxas share. */
#ifndef CPTX_TEST_ASK_H
#define CPTX_TEST_ASK_H

#include "cli/ptxas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Path of ptxas; NULL if there is none. */
static inline const char *test_ptxas(void)
{
	static char path[4096];
	return ptxas_find(path, sizeof path) ? path : NULL;
}

/* The newest .version (times ten) that ptxas reads, which it tells when it is given one that nobody has; 0 without ptxas. */
static inline unsigned test_ptxas_version(void)
{
	static const char text[] = ".version 99.9\n.target sm_90\n";
	static unsigned version;
	char message[1024] = "";
	unsigned major, minor;

	if (version || !test_ptxas())
		return version;
	ptxas_run(test_ptxas(), "sm_90", text, sizeof text - 1, message, sizeof message);
	const char *at = strstr(message, "current version is '");
	if (at && sscanf(at, "current version is '%u.%u'", &major, &minor) == 2)
		version = major * 10 + minor;
	return version;
}

/* Ends the test program where it cannot go on (no memory, no temporary folder). */
static inline void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

#endif
