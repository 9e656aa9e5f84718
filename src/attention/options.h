/* SPDX-License-Identifier: MIT */
/* What the attention generators take from the list options.def: sets of kernels, whether an option is asked for. */
#ifndef CPTX_ATTENTION_OPTIONS_H
#define CPTX_ATTENTION_OPTIONS_H

#include <cptx/attention.h>

/* ATTENTION_ALL and so on: bit i is cptx_attention_mma i. */
enum {
#define ATTENTION_SET(set, kernels, bits) ATTENTION_##set = (bits),
#include "attention/options.def"
};

/* attention_kernels_ALL and so on: the kernels' names, for messages. */
#define ATTENTION_SET(set, kernels, bits) static const char attention_kernels_##set[] = kernels;
#include "attention/options.def"

/* Whether a field asks for something. */
#define ATTENTION_IS_GIVEN_NUMBER(value) ((value) != 0)
#define ATTENTION_IS_GIVEN_BOOL(value) (value)
#define ATTENTION_IS_GIVEN_TYPE(value) ((value) != CPTX_TYPE_NONE)
#define ATTENTION_IS_GIVEN_MMA(value) false
#define ATTENTION_IS_GIVEN_POINTER(value) ((value) != NULL)

/* The value of a field that has a range; 0: there is none to be checked. */
#define ATTENTION_NUMBER_NUMBER(value) (value)
#define ATTENTION_NUMBER_BOOL(value) 0
#define ATTENTION_NUMBER_TYPE(value) 0
#define ATTENTION_NUMBER_MMA(value) 0
#define ATTENTION_NUMBER_POINTER(value) 0

#endif
