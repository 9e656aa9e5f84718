/* SPDX-License-Identifier: MIT */
/* SANITIZED: whether a sanitizer of the compiler watches this program, and makes it ten times as slow.  SAMPLE_OF(n, few):
 * how many of n to try then: the build without one compares all of them, and a few show what touches memory wrongly. */
#ifndef SANITIZED_H
#define SANITIZED_H

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(SANITIZED)
#define SANITIZED 0
#endif

#define SAMPLE_OF(n, few) (SANITIZED && !getenv("CPTX_WHOLE") ? (few) : (n))

#endif
