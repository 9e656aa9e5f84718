/* SPDX-License-Identifier: MIT */
/* Numbers of the types of buffers, and random ones. */
#ifndef CPTX_TOOL_REFERENCE_NUMBER_H
#define CPTX_TOOL_REFERENCE_NUMBER_H

#include <cptx/module.h>

/* The bits of a number in a type (a float of 4 to 64 bits, a scale factor, or an integer of 8 to 64 bits), rounded to
 * nearest even; .tf32 as .f32. */
uint64_t number_bits(enum cptx_type type, double v);
/* The number that bits of a float mean (of 4 to 8 bits: finite ones); those of an integer too, if they are below 2^53. */
double number_value(enum cptx_type type, uint64_t bits);
/* Bits of an element in packed matrices, where 4 and 6 bits lie behind one another. */
uint32_t number_packed_bits(enum cptx_type type);
bool number_is_float(enum cptx_type type);
/* Whether buffers may have elements of the type. */
bool number_has(enum cptx_type type);
/* The next of a sequence; the state must not be 0. */
uint64_t number_random(uint64_t *state);

/* Numbers joined by x, "128x256x64": true if there are exactly n, each from 1 to most. */
bool number_dims(const char *text, uint64_t *dims, size_t n, uint64_t most);

#endif
