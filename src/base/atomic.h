/* SPDX-License-Identifier: MIT */
/* Atomic flags and counters: C11's <stdatomic.h>, which C++ has under the same names in <atomic>. */
#ifndef CPTX_BASE_ATOMIC_H
#define CPTX_BASE_ATOMIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Loads a pointer to a complete object that many threads may read. */
static inline void *atomic_pointer(void *const *place) { return __atomic_load_n(place, __ATOMIC_ACQUIRE); }
/* Stores p in an empty place.  If another thread was first, its pointer stays, and is returned. */
static inline void *atomic_put_pointer(void **place, void *p)
{
	void *had = NULL;

	return __atomic_compare_exchange_n(place, &had, p, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ? NULL : had;
}

/* Puts p in the place of what was there. */
static inline void atomic_set_pointer(void **place, void *p) { __atomic_store_n(place, p, __ATOMIC_RELEASE); }

/* The state of something that threads fill once: the first takes it, fills it, and publishes it for all. */
static inline uint32_t atomic_state(const uint32_t *state) { return __atomic_load_n(state, __ATOMIC_ACQUIRE); }
static inline bool atomic_take(uint32_t *state, uint32_t empty, uint32_t taken)
{
	return __atomic_compare_exchange_n(state, &empty, taken, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
static inline void atomic_publish(uint32_t *state, uint32_t ready) { __atomic_store_n(state, ready, __ATOMIC_RELEASE); }

#endif
