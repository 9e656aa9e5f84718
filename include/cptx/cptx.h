/* SPDX-License-Identifier: MIT */
/*
 * cptx: build, check and print PTX kernels from C.
 *
 * A module holds kernels, device functions and variables.  A kernel is built by calling one function per PTX instruction
 * (the calls are in <cptx/insn.h>, which this header includes).  Printing a module for a target gives PTX text;
 * <cptx/device.h> loads and launches it.
 *
 * Errors: the first error of a module sticks, with the file and line of the user's call; every later call on the module, its
 * kernels and values is harmless.  Ask cptx_module_error() once, at the end.  A failed call appends nothing.  A call that
 * belongs to no module takes a cptx_error * as its last argument, which may be NULL: it either succeeds, or returns zero
 * (false, NULL) and sets the error.  The error must start zeroed, cptx_error err = { 0 }, and the first error stays: a call
 * that finds one there does nothing and returns zero.  So a chain of calls needs one test, at its end; to go on behind a
 * failure, zero the error.
 *
 * Misuse: NULL where an object, a struct or a place for a result is needed, a struct of zeros, or an enumerator that does
 * not exist is an error like all others, as a rule CPTX_E_ARG.  A call that has no place for an error returns the "nothing"
 * that its comment names: false, 0, NULL, a BAD value, UINT32_MAX for bytes.  Where NULL is allowed, the comment says so;
 * every call that frees accepts NULL.  A NULL kernel or item is the result of a call that failed, and calls on it do
 * nothing.  The library cannot detect pointers to freed memory, nor arrays and texts that are shorter than their length
 * argument says.
 *
 * Options: a struct that begins with size and ends in z_ may get more fields, in front of z_, without breaking programs that
 * are compiled already.  Its first field, size, says how much of the struct the program knows.  CPTX_OPT, and macros that
 * take options as arguments (cptx_kernel_begin), fill it in.  A size of 0, as in (cptx_gemm_opt){ .a = CPTX_BF16 }, stands
 * for version 0.1: the library does not read fields that later versions add, so set size where you set one of those.  The
 * library takes fields that the program does not know as 0; a field that the library does not know, and that is not 0, is an
 * error, CPTX_E_ARG.
 *
 * Results: a struct that a call fills in, or gives by value, may get more fields behind its last.  The call is told how much
 * of it the program knows (cptx_module_kernel gives cptx_module_kernel_ the size), and writes that and no more; what the
 * library does not know is 0.  So may a struct that is given by const pointer.  Structs that calls of the kit make
 * (cptx_made) keep their size: what they get later comes out of .reserved_opt_ and .reserved_, which are not to be used. The
 * rest, such as cptx_error, cptx_val, elements of arrays that are given whole, and shapes of <cptx/layout.h>, stays as it
 * is.
 *
 * Memory: one arena per module, freed by cptx_module_destroy().  Everything passed in is copied.  Strings that the library
 * returns live as long as the object they came from.  The library never exits, aborts or prints, and has no global state.
 *
 * Threads: a module is built by one thread at a time; a frozen module may be read (printed, loaded) by any number of
 * threads.
 */
#ifndef CPTX_H
#define CPTX_H

#include <cptx/module.h>

/* Behind the fields of a builder call: what a value without a name of its field would initialize is an error there. */
#ifdef __cplusplus
#define CPTX_NOTHING_BEHIND_ struct cptx_name_the_field_ *x_;
#else
#define CPTX_NOTHING_BEHIND_ struct cptx_name_the_field_ *x_[];
#endif
/* Expands a builder call of insn.h. */
#define CPTX_INSN_(name, kernel, ...) CPTX_INSN_AT_(name, kernel, CPTX_HERE, __VA_ARGS__)
#ifndef __cplusplus /* cplusplus.h has the C++ version */
#define CPTX_INSN_AT_(name, kernel, at, ...) name##_s_((kernel), (at), &(struct name##_){ __VA_ARGS__ })
#endif

#include <cptx/insn.h>

#endif
