/* SPDX-License-Identifier: MIT */
/* Warp roles: which warps of a CTA do what. */
#ifndef CPTX_ROLES_H
#define CPTX_ROLES_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
