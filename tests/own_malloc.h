/* SPDX-License-Identifier: MIT */
/* COUNTED: whether a test may have a malloc of its own, on top of that of glibc; a sanitizer has one already. */
#ifndef OWN_MALLOC_H
#define OWN_MALLOC_H

#include <stdlib.h> /* tells glibc, too */

#if defined(__SANITIZE_ADDRESS__)
#define COUNTED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTED 0
#endif
#endif
#if !defined(COUNTED)
#ifdef __GLIBC__
#define COUNTED 1
#else
#define COUNTED 0
#endif
#endif

#if COUNTED
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
#endif

#endif
