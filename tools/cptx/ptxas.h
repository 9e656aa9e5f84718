#ifndef CPTX_PTXAS_H
#define CPTX_PTXAS_H

#include "cli.h"

/* Assembles PTX text with the ptxas at `path`: its exit status, 0 for accepted; -1 if it could not be run.  What it said is
 * in out. */
int ptxas_run(const char *path, const char *target, const char *ptx, size_t size, char *out, size_t most);

#endif
