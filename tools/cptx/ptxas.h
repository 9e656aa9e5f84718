#ifndef CPTX_PTXAS_H
#define CPTX_PTXAS_H

/* Finding and running ptxas; for the command and for the tests. */
#include <stdbool.h>
#include <stddef.h>

/* Path of ptxas: $CPTX_PTXAS (this one or none), the PATH, /usr/local/cuda/bin; false if there is none. */
bool ptxas_find(char *path, size_t size);

/* Assembles PTX text with the ptxas at `path`: its exit status, 0 for accepted; -1 if it could not be run.  What it said is
 * in out. */
int ptxas_run(const char *path, const char *target, const char *ptx, size_t size, char *out, size_t most);

#endif
