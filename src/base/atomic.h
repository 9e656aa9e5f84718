/* Atomic flags and counters: C11's, which C++ has by the same names. */
#ifndef CPTX_BASE_ATOMIC_H
#define CPTX_BASE_ATOMIC_H

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

#endif
