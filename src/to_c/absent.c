/* SPDX-License-Identifier: MIT */
/* Replaces the other files here where writing C is left out of the build (-Dto_c=disabled). */
#include "base/base.h"

cptx_ptx *cptx_to_c(cptx_module *m, const cptx_to_c_opt *opt, cptx_error *err)
{
	(void)m, (void)opt;
	error_absent(err, NOWHERE, "way from PTX to C", "to_c");
	return NULL;
}
