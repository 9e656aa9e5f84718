/* SPDX-License-Identifier: MIT */
/*
 * The emulator: a device on the CPU, which executes PTX and tells what is wrong with a kernel.
 *
 * cptx_device_open("emu:sm_100a") opens one with the defaults, cptx_emu_open() with options.  It answers all calls of
 * <cptx/device.h>: memory, programs, launches, streams (work is done when the call returns).  It runs the code of any target
 * that the named one runs.
 *
 * What it finds wrong is a finding, of one of two ranks.  An error that a GPU would end the launch for too (an illegal
 * address, a trap), or behind which nothing can go on (a deadlock), ends the launch: cptx_launch_run fails with
 * CPTX_E_FINDING, and later launches are refused, as after a sticky error of CUDA, until cptx_emu_continue().  Others (a
 * race, an undefined value) let the launch go on to its end, which then fails with the same code and the first error's text.
 * A warning is about what the PTX manual forbids, but GPUs take and published kernels do (<cptx/findings.def> has each, and
 * why): data are as a GPU gives them, and the launch succeeds.  With cptx_emu_opt.pedantic these are errors, too.
 *
 * Addresses that are freed are given again only when all of the address space has been: so what uses freed memory is found
 * (CPTX_FIND_USE_AFTER_FREE), and so is freeing twice, or what was never allocated, in kernels and by cptx_mem_free.
 *
 * Threads: the calls below may stand beside launches of other threads; they wait until those are done.
 */
#ifndef CPTX_EMU_PUBLIC_H
#define CPTX_EMU_PUBLIC_H

#include <cptx/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** When asynchronous work (copies, wgmma, tcgen05, remote arrivals) is done. */
enum cptx_emu_schedule {
	CPTX_EMU_RANDOM, /**< some at once, some late, out of order where the memory model allows: as the seed says */
	CPTX_EMU_EAGER,  /**< at once */
	CPTX_EMU_LATE    /**< only when nothing else can go on */
};

/** What a piece of the timeline is. */
enum cptx_emu_span_kind {
	CPTX_EMU_SPAN_RUN,  /**< a warp could go on, alone or in turns with others */
	CPTX_EMU_SPAN_WAIT, /**< all that is left of a warp waited, at `instruction`: a barrier, a poll of an mbarrier ... */
	CPTX_EMU_SPAN_ASYNC /**< an asynchronous operation was under way: a copy, an mma of tensor cores, an arrival ... */
};

/**
 * A piece of the timeline.  Time is counted in steps, one instruction of one warp of the block's cluster: warps of a cluster
 * take turns.  It begins at 0 in each launch, and is no measure of time on a GPU.  The strings live as long as the call that
 * gets them.  Clusters know nothing of one another's steps; those that begin when others are over have a later begin.
 */
typedef struct cptx_emu_span {
	enum cptx_emu_span_kind kind;     /**< what it is */
	const char *kernel, *instruction; /**< the latter as PTX prints it, without operands; empty where a warp runs */
	cptx_site at;                     /**< the instruction's line */
	uint32_t block[3];                /**< of the grid */
	uint64_t number;                  /**< of the block in the grid, x innermost */
	uint32_t warp;                    /**< in the block; who started the operation */
	uint64_t begin, end;              /**< steps */
	uint64_t bytes, flops;            /**< of an operation: copied by TMA and bulk copies, done by tensor cores */
} cptx_emu_span;

/** How the emulator runs.  All zero: seed 0, in random order, looking for everything. */
typedef struct cptx_emu_opt {
	uint32_t size; /**< CPTX_OPT fills it in */
	uint64_t seed; /**< of the schedule of warps, CTAs and asynchronous work; the same seed gives the same run */
	enum cptx_emu_schedule schedule; /**< when asynchronous work is done */
	uint32_t threads;                /**< of the host; 0: as many as it has processors.  Changes nothing but the time.  More
	                                    than processors, beyond 16, or than CTAs that are there at once are not started */
	/** Instructions of all warps in a launch, exactly; one more ends it; 0: 10^11.  Each 1024 bytes of text that printf
	 * reads or prints count as one. */
	uint64_t step_limit;
	uint32_t most_findings; /**< kept, of each rank; 0: 100 */
	uint32_t sms; /**< multiprocessors, with a CTA each: of more, the rest begins later; 0: as many as suit, and tells of 132
	                   or 148 */
	bool no_races, no_undefined; /**< do not look for these */
	bool pedantic;               /**< what is a warning is an error */
	/** Bytes that a launch may print by printf, as the buffer of a GPU bounds it; what comes later is lost, and the last
	 * line says so.  0: 1 MiB, CUDA's default.  A call prints 65536 at most. */
	uint64_t print_limit;
	/** Gets what kernels print by printf, piece by piece while a launch runs, in the thread that launched; NULL: it is lost.
	 */
	void (*print)(void *user, const char *text);
	/** Gets the timeline, also while the launch runs and in that thread; spans of a block come in no order. NULL: none is
	 * made.
	 */
	void (*trace)(void *user, const cptx_emu_span *span);
	/** Is told now and then, in that thread, how many CTAs are over. */
	void (*progress)(void *user, uint64_t ctas, uint64_t of);
	void *user; /**< for these three */
	char z_;
} cptx_emu_opt;

/** A device of the emulator: target "sm_90a", "sm_120a" ...; opt may be NULL.  Errors: ARG, MEMORY. */
CPTX_API cptx_device *cptx_emu_open(const char *target, const cptx_emu_opt *opt, cptx_error *err);
/** Sets the seed and schedule of later launches; false for a device that is no emulator. */
CPTX_API bool cptx_emu_reseed(cptx_device *dev, uint64_t seed, enum cptx_emu_schedule schedule);

/**
 * Makes memory of the host program memory of the device, without a copy, until cptx_mem_free: the address that kernels see,
 * 0 on error.  All of it counts as written.  Its alignment is that of `host`, up to 512 bytes.
 * Errors: ARG (no emulator, NULL, no bytes, more than the host has addresses behind it), MEMORY.
 */
CPTX_API uint64_t cptx_emu_map(cptx_device *dev, void *host, size_t size, cptx_error *err);
/**
 * Where the host finds `size` bytes of the device's memory; all of them count as written from now on.  NULL on error: ARG
 * (no emulator, or nothing of that size is allocated there).
 */
CPTX_API void *cptx_emu_host(cptx_device *dev, uint64_t ptr, size_t size, cptx_error *err);

/** What a finding is about. */
enum cptx_finding_code {
	CPTX_FIND_NONE, /**< none */
#define CPTX_FINDING_(name, text, ends) CPTX_FIND_##name,
#include <cptx/findings.def>
#undef CPTX_FINDING_
	CPTX_FIND_COUNT /**< how many there are */
};
/** "out-of-bounds": a word for tools; NULL if there is none. */
CPTX_API const char *cptx_finding_name(enum cptx_finding_code code);

/** How bad it is. */
enum cptx_finding_rank {
	CPTX_FIND_ERROR,  /**< the launch fails */
	CPTX_FIND_WARNING /**< it goes on as on a GPU, which takes what the manual does not promise */
};

/** One finding, which nothing changes any more.  It and its strings live until the device is cleared or closed. */
typedef struct cptx_emu_finding {
	enum cptx_finding_code code;      /**< what it is about */
	enum cptx_finding_rank rank;      /**< an error, or a warning */
	const char *kernel, *instruction; /**< the latter as PTX prints it, without operands; empty: the host program did it */
	cptx_site at;                     /**< the line of C, or of the PTX text */
	uint32_t block[3], thread[3];     /**< the first that it was found in */
	bool has_thread;                  /**< else it is about a warp, block or the launch */
	const char *text;                 /**< what was wrong, and what was expected; a long name without its middle */
	uint64_t count;                   /**< how often at this instruction */
} cptx_emu_finding;

/**
 * Findings of all launches since the device was opened or cleared, in the order they were made, as they are now: a later
 * call may give one with a higher count.  NULL behind the last.
 */
CPTX_API const cptx_emu_finding *cptx_emu_finding_at(const cptx_device *dev, size_t i);
/** Forgets findings, counters and profiles: what cptx_emu_finding_at and cptx_emu_get_profile gave is no more. */
CPTX_API void cptx_emu_clear(cptx_device *dev);
/**
 * Lets the device launch again behind a finding that ended a launch.  Memory is as that launch left it; findings stay, and
 * cptx_emu_clear() forgets them.  False for a device that is no emulator.
 */
CPTX_API bool cptx_emu_continue(cptx_device *dev);

/** What launches did since the device was opened or cleared. */
typedef struct cptx_emu_counters {
	uint64_t launches, ctas;                                           /**< how many */
	uint64_t warp_instructions, thread_instructions;                   /**< by warps, and by their active threads */
	uint64_t global_read, global_written, shared_read, shared_written; /**< bytes */
	uint64_t global_sectors;                                           /**< of 32 bytes, by instructions of threads */
	uint64_t shared_wavefronts, bank_conflicts; /**< the latter: wavefronts beyond the fewest possible */
	uint64_t tensor_flops;                      /**< additions and multiplications of tensor cores */
	uint64_t async_bytes;                       /**< by bulk and tensor copies */
} cptx_emu_counters;
CPTX_API bool cptx_emu_get_counters_(const cptx_device *dev, cptx_emu_counters *out, size_t size);
/** The counters; false for a device that is no emulator. */
static inline bool cptx_emu_get_counters(const cptx_device *dev, cptx_emu_counters *out)
{
	return cptx_emu_get_counters_(dev, out, sizeof *out);
}

/** What an instruction did in all launches since then.  The strings live until the device is cleared or closed. */
typedef struct cptx_emu_profile {
	const char *kernel, *instruction;                           /**< the latter as PTX prints it, without operands */
	cptx_site at;                                               /**< the line of C, or of the PTX text */
	uint64_t executed;                                          /**< by threads */
	uint64_t shared_wavefronts, bank_conflicts, global_sectors; /**< as of cptx_emu_counters */
} cptx_emu_profile;
CPTX_API bool cptx_emu_get_profile_(const cptx_device *dev, size_t i, cptx_emu_profile *out, size_t size);
/** Instruction i, from 0 on, of all kernels that were launched, in the order of their code; false behind the last. */
static inline bool cptx_emu_get_profile(const cptx_device *dev, size_t i, cptx_emu_profile *out)
{
	return cptx_emu_get_profile_(dev, i, out, sizeof *out);
}

#ifdef __cplusplus
}
#endif

#endif
