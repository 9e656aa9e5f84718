/* SPDX-License-Identifier: MIT */
/* COUNTED: whether a test may have a malloc of its own, on top of that of glibc; a sanitizer has one already. */
#ifndef OWN_MALLOC_H
#define OWN_MALLOC_H

#include "sanitized.h"

#include <stdlib.h> /* tells glibc, too */

#if defined(__GLIBC__) && !SANITIZED
#define COUNTED 1
#else
#define COUNTED 0
#endif

#if COUNTED
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
#endif

#endif
