/* SPDX-License-Identifier: MIT */
/*
 * What the sources stand on where cptx.c of the amalgamation is compiled as C++17, by g++ or clang++: they are written in
 * what C11 and C++17 with the extensions of both have in common.
 */
#ifndef CPTX_BASE_CPLUSPLUS_H
#define CPTX_BASE_CPLUSPLUS_H

#ifdef __cplusplus
#define _Static_assert static_assert
/* What braces mean in C: a number is converted, what is not named is zero, { 0 } is all zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#ifdef __clang__
#pragma clang diagnostic ignored "-Wc++11-narrowing"
#pragma clang diagnostic ignored "-Wc99-designator"
#pragma clang diagnostic ignored "-Wmissing-braces"
#else
#pragma GCC diagnostic ignored "-Wnarrowing"
/* by ?: a type or a modifier, or a number; of -Wextra this turns off only what has no name of its own */
#pragma GCC diagnostic ignored "-Wenum-compare"
#pragma GCC diagnostic ignored "-Wextra"
#endif
#endif

#endif
