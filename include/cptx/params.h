/* SPDX-License-Identifier: MIT */
/* The parameters of a kernel: one list declares them, and a launch fills them from a struct of the host. */
#ifndef CPTX_PARAMS_H
#define CPTX_PARAMS_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
