/* SPDX-License-Identifier: MIT */
/* Atomic flags and counters: C11's, which C++ has by the same names. */
#ifndef CPTX_BASE_ATOMIC_H
#define CPTX_BASE_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
#include <atomic>
using std::atomic_bool;
using std::atomic_exchange;
using std::atomic_fetch_add;
using std::atomic_fetch_sub;
using std::atomic_uint;
using std::atomic_uint_fast64_t;
#else
#include <stdatomic.h>
#endif

/* A pointer to something complete that many threads may read. */
static inline void *atomic_pointer(void *const *place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }
/* Puts p in the place that is empty; if another thread was first, what that one has put there stays and is returned. */
static inline void *atomic_put_pointer(void **place, void *p)
{
	void *had = NULL;

	return __atomic_compare_exchange_n(place, &had, p, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? NULL : had;
}

#endif
