/* SPDX-License-Identifier: MIT */
/*
 * What each warp of a kernel does when: stamps of %globaltimer in a buffer, and a picture of them for chrome://tracing or
 * Perfetto.
 *
 *   static const char *const phases[] = { "wait", "load" };
 *   cptx_timeline t;
 *   cptx_timeline_begin(k, &t, .buffer = param, .warps = 6, .events = 512);     all threads
 *   CPTX_IF (k, is_the_thread_that_loads) {                                     one thread of a warp stamps
 *       cptx_timeline_stamp(k, &t, 0);                                          from here on it waits
 *       ...
 *       cptx_timeline_stamp(k, &t, 1);                                          from here on it loads
 *       ...
 *       cptx_timeline_stamp(k, &t, CPTX_TIMELINE_END);
 *   }
 *
 * A timeline whose buffer is NONE is off: its calls add nothing, so the PTX is that of a kernel without them.  A stamp reads
 * the timer and stores 16 bytes; it is dropped when the warp's part of the buffer is full.  The timer of a GPU may step by
 * up to a microsecond, as the driver has set it; on the emulator it counts steps.
 */
#ifndef CPTX_TIMELINE_H
#define CPTX_TIMELINE_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
	CPTX_TIMELINE_EVENT = 16, /**< bytes of a stamp: the timer (u64), the phase + 1 (u64) */
	CPTX_TIMELINE_END = -1    /**< a phase that ends the one before and begins none */
};

/** The buffer of a timeline. */
typedef struct cptx_timeline_opt {
	uint32_t size; /**< CPTX_OPT fills it in */
	/** .u64, a global address, a multiple of 16, of cptx_timeline_bytes() bytes that are 0 at first; NONE: off */
	cptx_val buffer;
	uint32_t warps;  /**< warps of a CTA that stamp, from thread 0 on, counted by %tid.x; later warps stamp nothing */
	uint32_t events; /**< most stamps of a warp */
	char z_;
} cptx_timeline_opt;

/** A timeline of a kernel.  Plain data. */
typedef struct cptx_timeline {
	cptx_made made;        /**< by which call, in which kernel */
	cptx_val at, end;      /**< addresses of this warp's next stamp, and of the end of its room; NONE: off */
	uint64_t reserved_[2]; /**< for fields of later versions */
} cptx_timeline;

CPTX_API void cptx_timeline_begin_(cptx_kernel *k, cptx_site at, cptx_timeline *t, const cptx_timeline_opt *opt);
/** Computes the addresses of this warp's stamps, in 14 instructions; all threads run it, also of a timeline that is off:
 * cptx_timeline_begin(k, &t, .buffer = param, ...). */
#define cptx_timeline_begin(...) cptx_timeline_begin_x_(__VA_ARGS__, .z_ = 0)
#define cptx_timeline_begin_x_(k, t, ...) cptx_timeline_begin_((k), CPTX_HERE, (t), CPTX_OPT(cptx_timeline_opt, __VA_ARGS__))
CPTX_API void cptx_timeline_stamp_(cptx_kernel *k, cptx_site at, const cptx_timeline *t, int phase, cptx_val when);
/** Emits a stamp: from here on this warp is in that phase (0 on, or END). */
#define cptx_timeline_stamp(k, t, phase) cptx_timeline_stamp_((k), CPTX_HERE, (t), (phase), CPTX_NONE_)
/** Emits a stamp in the threads where a predicate holds, of which there should be one in a warp. */
#define cptx_timeline_stamp_when(k, t, phase, when) cptx_timeline_stamp_((k), CPTX_HERE, (t), (phase), (when))

/** The layout of a buffer, for the host: warp w of CTA c has its stamps from event (c * warps + w) * events on.  CTAs are
 * counted along x, then y, then z. */
typedef struct cptx_timeline_layout {
	uint32_t ctas, warps, events; /**< CTAs of the grid; warps of a CTA; stamps of a warp */
	const char *const *phases;    /**< names of the phases */
	uint32_t phase_count;         /**< number of phases */
	const char *const *roles;     /**< names of the warps; NULL: their numbers */
} cptx_timeline_layout;
/** Bytes of the buffer; UINT64_MAX: more than 64 bits can count.  A NULL layout has 0. */
CPTX_API uint64_t cptx_timeline_bytes(const cptx_timeline_layout *layout);
/**
 * Writes the stamps as JSON of Chrome's trace format: a process for each CTA, a thread for each warp, a span for each phase
 * with its name ("phase 7" if it has none); microseconds from the very first stamp on.  As snprintf: writes at most `size`
 * bytes with the 0 at the end, and returns the length of the whole.  data: the buffer, as read from the device.
 */
CPTX_API size_t cptx_timeline_json(const cptx_timeline_layout *layout, const void *data, char *to, size_t size);

#ifdef __cplusplus
}
#endif
#endif
