/* SPDX-License-Identifier: MIT */
/*
 * Settings under which cptx.c of the amalgamation compiles as C++17, by g++ or clang++.  The sources are written in the
 * common subset of C11 and C++17 with the extensions of both compilers.
 */
#ifndef CPTX_BASE_CPLUSPLUS_H
#define CPTX_BASE_CPLUSPLUS_H

#ifdef __cplusplus
#define _Static_assert static_assert
/* Braces mean the same as in C: a number is converted, a field that is not named is zero, { 0 } is all zero. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#ifdef __clang__
#pragma clang diagnostic ignored "-Wc++11-narrowing"
#pragma clang diagnostic ignored "-Wc99-designator"
#pragma clang diagnostic ignored "-Wmissing-braces"
#else
#pragma GCC diagnostic ignored "-Wnarrowing"
/* ?: mixes types, modifiers and numbers; this turns off only the part of -Wextra that has no name of its own */
#pragma GCC diagnostic ignored "-Wenum-compare"
#pragma GCC diagnostic ignored "-Wextra"
#endif
#endif

#endif
