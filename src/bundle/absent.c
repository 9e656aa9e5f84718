/* SPDX-License-Identifier: MIT */
/* In place of gemm.c where ready kernels are left out (-Dkernels=disabled). */
#include "base/base.h"

#include <cptx/bundle.h>

bool cptx_bundle_add_gemm(cptx_bundle *bundle, const cptx_bundle_gemm *gemm, cptx_error *err)
{
	(void)bundle, (void)gemm;
	return error_absent(err, NOWHERE, "ready kernels", "kernels");
}
