/* SPDX-License-Identifier: MIT */
/* Inside the library: powers of .f32 without the error of ex2.approx of a product. */
#ifndef CPTX_KIT_EXP_H
#define CPTX_KIT_EXP_H

#include <cptx/module.h>

/* e^x, .f32, of any x, by 9 instructions. */
cptx_val kit_exp(cptx_kernel *k, cptx_site at, cptx_val x);

#endif
