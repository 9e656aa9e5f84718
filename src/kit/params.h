/* SPDX-License-Identifier: MIT */
/* Parameters that kernels of a family have or lack by their options. */
#ifndef KIT_PARAMS_H
#define KIT_PARAMS_H

#include <cptx/params.h>

#include "base/base.h"

/* A parameter that a kernel may have, and where the generator keeps its value. */
typedef struct kit_param {
	cptx_param_row row;
	bool there;
	cptx_val *val;
} kit_param;

/* Those that it has, in order: the table for cptx_params_declare and for launches. */
typedef struct kit_params {
	size_t n;
	cptx_param_row row[CPTX_PARAMS_MOST];
	cptx_val *val[CPTX_PARAMS_MOST];
	const char *left_out; /* the first for which there is no room; NULL: none */
} kit_params;

/* The parameters of a list of n that are there. */
kit_params kit_params_of(const kit_param *all, size_t n);
/* Declares them in a kernel, and sets the values; an error where there was no room for one. */
void kit_params_declare(cptx_kernel *k, cptx_params *p, const kit_params *list);

#endif
