/* SPDX-License-Identifier: MIT */
/* Epilogues: what is computed of an accumulator on its way to global memory. */
#ifndef CPTX_EPILOGUE_H
#define CPTX_EPILOGUE_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __cplusplus
}
#endif
#endif
