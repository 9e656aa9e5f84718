/* SPDX-License-Identifier: MIT */
/* Prints a module as PTX, or the error that it has; destroys it. */
#ifndef EXAMPLES_SHOW_H
#define EXAMPLES_SHOW_H

#include <cptx/cptx.h>
#include <stdio.h>

static inline int show(cptx_module *m, const char *target)
{
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, target, NULL, &err);

	if (ptx)
		fputs(cptx_ptx_text(ptx), stdout);
	else
		fprintf(stderr, "%s\n", err.text);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return !ptx;
}

#endif
