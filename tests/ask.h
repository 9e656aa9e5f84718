/* What the tests that ask ptxas share. */
#ifndef CPTX_TEST_ASK_H
#define CPTX_TEST_ASK_H

#include "ptxas.h"

#include <stdio.h>
#include <stdlib.h>

/* Path of ptxas; NULL if there is none. */
static inline const char *test_ptxas(void)
{
	static char path[4096];
	return ptxas_find(path, sizeof path) ? path : NULL;
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
