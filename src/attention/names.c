/* SPDX-License-Identifier: MIT */
/* What cannot fail: there in every build, as there is no way to say that it is left out. */
#include "base/base.h"

#include <cptx/attention_backward.h>

enum cptx_attention_mma cptx_attention_mma_of(const cptx_target *t)
{
	return t && cptx_form_on_target(CPTX_OP_TCGEN05_MMA, 0, t)       ? CPTX_ATTENTION_TCGEN05
	       : t && cptx_form_on_target(CPTX_OP_WGMMA_MMA_ASYNC, 0, t) ? CPTX_ATTENTION_WGMMA
	                                                                 : CPTX_ATTENTION_SYNC;
}

bool cptx_attention_has_fast_ex2(const cptx_target *t) { return t && t->compute_capability == 103; }

cptx_val cptx_attention_grad_one(cptx_kernel *k, void *user, const cptx_attention_score *score)
{
	(void)k, (void)user, (void)score;
	return cptx_immf(1);
}

const char *cptx_attention_mma_name(enum cptx_attention_mma mma)
{
	static const char *const names[] = { "mma.sync", "wgmma", "tcgen05" };

	return (unsigned)mma < ARRAY_LEN(names) ? names[mma] : "?";
}
