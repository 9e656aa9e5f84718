/* SPDX-License-Identifier: MIT */
/*
 * The emulator: a device on the CPU, which executes PTX and reports what is wrong with a kernel.
 *
 * cptx_device_open("emu:sm_100a") opens one with the defaults, cptx_emu_open() with options.  It serves all calls of
 * <cptx/device.h>: memory, programs, launches, streams (work is done when the call returns).  It runs code of any target
 * that runs on the named one.
 *
 * A finding is something wrong, of one of two ranks.  An error that would end the launch on a GPU too (an illegal address, a
 * trap), or behind which nothing can go on (a deadlock), ends the launch: cptx_launch_run fails with CPTX_E_FINDING, and
 * later launches are refused, as after a sticky error of CUDA, until cptx_emu_continue().  Other errors (a race, an
 * undefined value) let the launch go on to its end; it then fails with the same code and the first error's text.  A warning
 * is about something that the PTX manual forbids, but that GPUs accept and published kernels do (<cptx/findings.def> lists
 * each, and why): data are as a GPU gives them, and the launch succeeds.  With cptx_emu_opt.pedantic warnings are errors,
 * too.
 *
 * Freed addresses are used again only when all of the address space has been: so the use of freed memory is found
 * (CPTX_FIND_USE_AFTER_FREE), and so is freeing twice, or freeing what was never allocated, in kernels and by cptx_mem_free.
 *
 * Threads: the calls below may be made while other threads launch; they wait until those launches are done.
 */
#ifndef CPTX_EMU_PUBLIC_H
#define CPTX_EMU_PUBLIC_H

#include <cptx/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/** When asynchronous work (copies, wgmma, tcgen05, remote arrivals) completes. */
enum cptx_emu_schedule {
	CPTX_EMU_RANDOM, /**< some at once, some late, out of order where the memory model allows it; the seed decides */
	CPTX_EMU_EAGER,  /**< at once */
	CPTX_EMU_LATE,   /**< only when nothing else can go on */
	CPTX_EMU_ALL,    /**< in every order that can matter, of warps too: see cptx_emu_orders */
	CPTX_EMU_PARTED, /**< as RANDOM; now and then lanes of a warp part in front of a strong or atomic access or an operation
	                    of an mbarrier, and some go on far behind the others, as a GPU may let them.  Results that rest on
	                    lanes going together change; what is found of other lanes' races may be less than by RANDOM */
	CPTX_EMU_HELD    /**< as RANDOM; in each cluster one warp goes on only when no other can, or none of the others has
	                    changed anything for long: warp (seed + number of the cluster) modulo the warps of a cluster */
};

/** The kinds of spans in the timeline. */
enum cptx_emu_span_kind {
	CPTX_EMU_SPAN_RUN,  /**< a warp could go on, alone or in turns with others */
	CPTX_EMU_SPAN_WAIT, /**< all warps that had not ended waited, at `instruction`: a barrier, a poll of an mbarrier ... */
	CPTX_EMU_SPAN_ASYNC /**< an asynchronous operation was under way: a copy, an mma of tensor cores, an arrival ... */
};

/**
 * A span of the timeline.  Time is counted in steps; a step is one instruction of one warp of the block's cluster, whose
 * warps take turns.  It begins at 0 in each launch, and is no measure of time on a GPU.  The strings live until the callback
 * returns.  Each cluster counts its own steps; a cluster that begins after others have ended begins at a later step.
 */
typedef struct cptx_emu_span {
	enum cptx_emu_span_kind kind;     /**< kind of the span */
	const char *kernel, *instruction; /**< instruction as PTX prints it, without operands; empty for RUN */
	cptx_site at;                     /**< source line of the instruction */
	uint32_t block[3];                /**< index of the block in the grid */
	uint64_t number;                  /**< linear number of the block in the grid, x innermost */
	uint32_t warp;                    /**< number of the warp in the block; for an operation, the warp that started it */
	uint64_t begin, end;              /**< first step, and the step behind the last */
	uint64_t bytes, flops; /**< for an operation: bytes copied by TMA and bulk copies, operations of tensor cores */
} cptx_emu_span;

/** How the emulator runs.  All zero: seed 0, random order, all checks. */
typedef struct cptx_emu_opt {
	uint32_t size; /**< CPTX_OPT fills it in */
	uint64_t seed; /**< seed of the schedule of warps, CTAs and asynchronous work; the same seed gives the same run */
	enum cptx_emu_schedule schedule; /**< when asynchronous work completes */
	uint32_t threads; /**< host threads; 0: one for each processor.  They change nothing but the time.  No more are started
	                     than there are processors (or 16, if that is more) and CTAs that exist at once */
	/** Most instructions of all warps in a launch; one more ends it; 0: 10^11.  Each 1024 bytes of text that printf reads or
	 * prints count as one, and so do each 1024 bytes that a bulk copy moves. */
	uint64_t step_limit;
	uint32_t most_findings; /**< most findings kept of each rank; 0: 100 */
	uint32_t sms; /**< multiprocessors, with a CTA each: further CTAs begin later; 0: as many as suit the launch, and kernels
	                 read 132 or 148 */
	bool no_races, no_undefined; /**< turn off the checks for races, for undefined values */
	bool pedantic;               /**< warnings are errors */
	/** Most bytes that a launch may print by printf, like the buffer of a GPU; later output is lost, and the last line says
	 * so. 0: 1 MiB, CUDA's default.  A call prints 65536 at most. */
	uint64_t print_limit;
	/** Called with the output of printf, in parts while a launch runs, in the thread that launched; NULL: output is lost. */
	void (*print)(void *user, const char *text);
	/** Called with each span of the timeline, also while the launch runs, in the thread that launched; spans of a block come
	 * in no order. NULL: no timeline is made. */
	void (*trace)(void *user, const cptx_emu_span *span);
	/** Called now and then, in the thread that launched, with the number of CTAs that have ended. */
	void (*progress)(void *user, uint64_t ctas, uint64_t of);
	void *user;      /**< first argument of print, trace and progress */
	uint64_t orders; /**< schedule ALL: most orders of a launch that are tried; 0: 10000 */
	uint64_t order;  /**< schedule ALL: the number of the order that a launch is executed in, from 1; 0: all are tried */
	bool no_traffic; /**< do not count bytes, sectors and turns of banks: those counters stay 0 */
	char z_;
} cptx_emu_opt;

/** Opens an emulator for a target "sm_90a", "sm_120a" ...; opt may be NULL.  Errors: ARG, MEMORY. */
CPTX_API cptx_device *cptx_emu_open(const char *target, const cptx_emu_opt *opt, cptx_error *err);
/** Sets the seed and schedule of later launches; false for a device that is no emulator. */
CPTX_API bool cptx_emu_reseed(cptx_device *dev, uint64_t seed, enum cptx_emu_schedule schedule);

/**
 * Makes memory of the host program memory of the device, without a copy, until cptx_mem_free; returns the address that
 * kernels use, 0 on error.  All of it counts as written.  Its alignment is that of `host`, up to 512 bytes.
 * Errors: ARG (no emulator, NULL, no bytes, more than the host has addresses behind it), MEMORY.
 */
CPTX_API uint64_t cptx_emu_map(cptx_device *dev, void *host, size_t size, cptx_error *err);
/**
 * Allocates memory that kernels and the host program use by one address, like CUDA's managed memory; returns it, 0 on error.
 * It is zero, counts as written, and is freed by cptx_mem_free.  Pages that nobody touches cost nothing.  Size: 1 byte and
 * more.  Errors: ARG (no emulator, no bytes), MEMORY (also where the host has the address in use).
 */
CPTX_API uint64_t cptx_emu_unified(cptx_device *dev, size_t size, cptx_error *err);
/**
 * The host address of `size` bytes of the device's memory; all of them count as written from now on.  NULL on error: ARG (no
 * emulator, or nothing of that size is allocated there).
 */
CPTX_API void *cptx_emu_host(cptx_device *dev, uint64_t ptr, size_t size, cptx_error *err);

/* ---- addresses that the caller chooses, for who keeps a launch and runs it again ---- */

/**
 * Allocates `size` bytes at the address `at`, which are zero; freed by cptx_mem_free.  `written`: they count as written, so
 * that reading them is no finding.  Errors: ARG (no emulator; the address, or one of those behind it, is in use or is one
 * where the emulator has shared memory, local memory or functions), MEMORY.
 */
CPTX_API bool cptx_emu_alloc_at(cptx_device *dev, uint64_t at, size_t size, bool written, cptx_error *err);
/**
 * The next program that is loaded has its variable of that name at the address; of several with one name the first that no
 * other call has placed.  Loading fails with ARG where the address is in use; what is refused uses the call up, too.
 * Errors: ARG (no emulator, no name, address 0), MEMORY.
 */
CPTX_API bool cptx_emu_place(cptx_device *dev, const char *variable, uint64_t at, cptx_error *err);
/**
 * Gives an allocation of cptx_mem_alloc memory of the host program for its bytes, which are copied there and count as
 * written; it must have as many and live until cptx_mem_free.  So processes can share it.  Errors: ARG.
 */
CPTX_API bool cptx_emu_back(cptx_device *dev, uint64_t at, void *host, cptx_error *err);
/** Whether the byte at `at` was written; *run: how many of `size` bytes from there on are alike, 0 where nothing is
 * allocated.  False if run is NULL. */
CPTX_API bool cptx_emu_written(const cptx_device *dev, uint64_t at, size_t size, size_t *run);

/** A variable of a program in global or constant memory. */
typedef struct cptx_emu_variable_info {
	const char *name; /**< its name, which others of other texts and functions may have too; lives as long as the program */
	uint64_t at;      /**< address */
	uint64_t bytes;   /**< size */
} cptx_emu_variable_info;
CPTX_API bool cptx_emu_variable_(const cptx_program *program, size_t i, cptx_emu_variable_info *out, size_t size);
/** Variable i of a program, from 0 on, of all that it has; false behind the last, and for a device that is no emulator. */
static inline bool cptx_emu_variable(const cptx_program *program, size_t i, cptx_emu_variable_info *out)
{
	return cptx_emu_variable_(program, i, out, sizeof *out);
}

/* ---- several devices in one address space ---- */

enum { CPTX_EMU_DEVICES = 64 /**< one emulator can stand for so many devices */ };
/**
 * From now on the emulator is device `number`, from 0 on: what is allocated and loaded is that device's, and the kernels
 * that are launched reach it, memory shared with the host, and what cptx_emu_reach gives them; to use other memory is a
 * finding. Launches of all devices run one after another.  Errors: ARG.
 */
CPTX_API bool cptx_emu_act_as(cptx_device *dev, unsigned number, cptx_error *err);
/** The allocation that holds the address is reached by the devices whose bits are set (bit 0: device 0), and no others.
 * Errors: ARG. */
CPTX_API bool cptx_emu_reach(cptx_device *dev, uint64_t at, uint64_t devices, cptx_error *err);
/**
 * `size` bytes at the address `of` are at the address `at`, too, until cptx_mem_free of that; `of` cannot be freed before.
 * Races are found between accesses by either address; that fence.proxy.alias is missing is not.  Errors: ARG (no emulator;
 * `at` as for cptx_emu_alloc_at; `of` is no multiple of 64 bytes behind the start of an allocation with so many bytes; `at`
 * and `of` are not a multiple of 64 bytes apart), MEMORY.
 */
CPTX_API bool cptx_emu_alias(cptx_device *dev, uint64_t at, uint64_t of, size_t size, cptx_error *err);
/**
 * Makes the allocation at `at` a multicast object: a multimem instruction at an address in it does its work at as far an
 * address in each of the members, which have at least its size and must live as long; other instructions may not use it.
 * Errors: ARG, MEMORY.
 */
CPTX_API bool cptx_emu_multicast(cptx_device *dev, uint64_t at, const uint64_t *members, size_t n, cptx_error *err);

/**
 * What came of the last launch with the schedule ALL.  Such a launch is executed again and again from the same memory.  Two
 * orders are one if they differ only in the order of events that do not depend on one another: events are what mbarriers,
 * barriers that name a number of threads, atomic operations, strong and volatile accesses and asynchronous operations do;
 * other accesses are none, because a race is found in any order.  Reductions (red) of integers commute if operation and type
 * are the same, but for inc and dec; sums of floating point do not.  A loop of one warp that reads and comes back to the
 * same registers goes on when somebody has written; one that counts how often it looks is tried as often as it looks.
 *
 * Not varied is: a wait by mbarrier.try_wait that fails, which is taken to be tried again until it succeeds, however often
 * the kernel would do so; the order of the lanes of a warp, parted or not; the order in which setmaxnreg gives registers;
 * clocks, %smid, and addresses that malloc gives; memory that is seen in another order than it was written.  Not all orders
 * are tried, and `why` says so, where the launch has more than 16 CTAs or more than 256 MiB are allocated, where the kernel
 * cancels clusters or asks for mbarrier.pending_count (it is executed once then, in random order); where one order has more
 * than 4096 events, or all of them together take too long (some seconds); where it launches kernels, or bulk copies combine
 * what they bring with memory in a way that depends on the order.
 *
 * Global memory that was there in front of the launch is compared behind each order. That orders leave it otherwise is no
 * finding, because sums of floating point, or a queue whose places threads take, do so and are right; but where it is the
 * result that differs, an update was lost, or a race is hidden behind relaxed accesses.  Memory of `malloc` in the kernel,
 * and what an order with an error leaves, is not compared.
 *
 * The launch leaves the memory of the first order, or of the order in which an error was found first, made as short as can
 * be; its output and findings are those of that order.  Of kernels that a kernel launches only an order with an error is
 * told.
 */
typedef struct cptx_emu_order_info {
	const char *kernel; /**< the kernel; lives until the device is cleared or closed */
	uint64_t orders;    /**< orders that were executed */
	bool all;           /**< there are no others */
	uint64_t left;      /**< not all: at least so many others are known */
	uint64_t found;     /**< number of the order with an error, for cptx_emu_opt.order; 0: none has one */
	uint32_t switches;  /**< how often that order, made shorter, leaves the usual one, */
	const char *how;    /**< and who goes on there; lives until the device is cleared or closed */
	const char *text;   /**< all of this as a sentence; lives until the device is cleared or closed */
	const char *why;    /**< why not all orders were tried, for another reason than `orders`; NULL: there is none */
	uint64_t differs;   /**< number of the first order that leaves other memory than order 1; 0: there is none */
	/** `differs`: how many bytes, and which is the first; `switches` and `how` tell of that order if none has an error;
	 * lives until the device is cleared or closed; NULL: there is none. */
	const char *difference;
	uint64_t differ_bytes; /**< `difference`: how many bytes; 0 where it is NULL */
	uint64_t differ_at;    /**< `difference`: address of the first of them, of the kernel; 0 where it is NULL */
} cptx_emu_order_info;
CPTX_API bool cptx_emu_orders_(const cptx_device *dev, cptx_emu_order_info *out, size_t size);
/** The orders of the last launch; false for a device that is no emulator, or has launched nothing with that schedule. */
static inline bool cptx_emu_orders(const cptx_device *dev, cptx_emu_order_info *out)
{
	return cptx_emu_orders_(dev, out, sizeof *out);
}

/* ---- textures and surfaces ---- */

/** Kinds of channels of a texel. */
enum cptx_emu_channel {
	CPTX_EMU_U8,      /**< unsigned integer of 8 bits; read as a fraction of 255 where `as_fraction` says so */
	CPTX_EMU_S8,      /**< signed integer of 8 bits; of 127 */
	CPTX_EMU_U16,     /**< unsigned integer of 16 bits; of 65535 */
	CPTX_EMU_S16,     /**< signed integer of 16 bits; of 32767 */
	CPTX_EMU_U32,     /**< unsigned integer of 32 bits */
	CPTX_EMU_S32,     /**< signed integer of 32 bits */
	CPTX_EMU_F16,     /**< half precision, read as single precision */
	CPTX_EMU_F32,     /**< single precision */
	CPTX_EMU_CHANNELS /**< number of kinds */
};

/** Reads beside the texels; the numbers are those of CUDA's CUaddress_mode. */
enum cptx_emu_outside {
	CPTX_EMU_WRAP,   /**< the texels again; as CLAMP where coordinates count texels */
	CPTX_EMU_CLAMP,  /**< the nearest texel */
	CPTX_EMU_MIRROR, /**< the texels turned around; as CLAMP where coordinates count texels */
	CPTX_EMU_BORDER  /**< `border` */
};

/**
 * A texture or a surface: texels in memory of the device, and how they are read.  Rows, slices (of depth, or faces of
 * layers) and mipmap levels follow one another; a level is half as wide, high and deep as the one in front, at least 1.
 */
typedef struct cptx_emu_texture_opt {
	uint32_t size;                 /**< CPTX_OPT fills it in */
	bool surface;                  /**< read by suld and written by sust; else read by tex and tld4 */
	uint64_t at;                   /**< address of the first texel, a multiple of a texel's size */
	enum cptx_emu_channel channel; /**< kind of the channels */
	uint32_t channels;             /**< of a texel: 1, 2 or 4 */
	uint32_t width, height, depth; /**< texels, from 1 on; height or depth 0: it has no such dimension */
	uint32_t layers;               /**< of a layered one; 0: it has none, and no depth otherwise */
	bool cube;                     /**< six square faces, of each layer if there are layers: +x -x +y -y +z -z */
	uint32_t levels;               /**< mipmap levels; 0 and 1: one */
	uint64_t pitch; /**< bytes from a row to the next, of the first level; 0: the rows follow one another without gaps */
	enum cptx_emu_outside outside[3]; /**< for each coordinate */
	bool linear; /**< nearest texels are weighted, as CUDA's guide describes it: with 8 bits of fraction; else the nearest */
	bool mip_linear;  /**< the same of mipmap levels */
	bool normalized;  /**< coordinates go from 0 to 1; else they count texels */
	bool as_fraction; /**< integers of 8 and 16 bits are read as numbers from 0 or -1 to 1 */
	bool srgb;        /**< the first three channels of U8 are read as_fraction and made linear from sRGB */
	float border[4];  /**< what BORDER reads */
	float mip_bias, mip_least, mip_most; /**< added to a level that is asked for; its range, most 0: all that there are */
	char z_;
} cptx_emu_texture_opt;

/**
 * Makes a texture or surface of memory of the device; returns the handle that kernels use, 0 on error.  The memory stays the
 * caller's, who must not free it before.  Errors: ARG (no emulator, or the options are no texture, with the rule), MEMORY.
 */
CPTX_API uint64_t cptx_emu_texture(cptx_device *dev, const cptx_emu_texture_opt *opt, cptx_error *err);
/** Ends a handle; false: it is none of the device. */
CPTX_API bool cptx_emu_texture_free(cptx_device *dev, uint64_t handle);

/** Codes of findings. */
enum cptx_finding_code {
	CPTX_FIND_NONE, /**< no finding */
#define CPTX_FINDING_(name, text, ends) CPTX_FIND_##name,
#include <cptx/findings.def>
#undef CPTX_FINDING_
	CPTX_FIND_COUNT /**< number of codes */
};
/** The word for a code, for tools: "out-of-bounds"; NULL if there is none. */
CPTX_API const char *cptx_finding_name(enum cptx_finding_code code);

/** The ranks of findings. */
enum cptx_finding_rank {
	CPTX_FIND_ERROR,  /**< the launch fails */
	CPTX_FIND_WARNING /**< the launch goes on as on a GPU, which accepts what the manual does not promise */
};

/** One finding, a copy that does not change any more.  It and its strings live until the device is cleared or closed. */
typedef struct cptx_emu_finding {
	enum cptx_finding_code code;      /**< kind of finding */
	enum cptx_finding_rank rank;      /**< an error, or a warning */
	const char *kernel, *instruction; /**< instruction as PTX prints it, without operands; empty: the host program */
	cptx_site at;                     /**< line of C, or of the PTX text */
	uint32_t block[3], thread[3];     /**< first block and thread where it was found */
	bool has_thread;                  /**< `thread` is set; else the finding is about a warp, block or the launch */
	const char *text;                 /**< what was wrong, and what was expected; the middle of a long name is left out */
	uint64_t count;                   /**< how often it was found at this instruction */
} cptx_emu_finding;

/**
 * Finding i of all launches since the device was opened or cleared, in the order they were made, as it is now: a later call
 * may return it with a higher count.  NULL behind the last.
 */
CPTX_API const cptx_emu_finding *cptx_emu_finding_at(const cptx_device *dev, size_t i);
/** Forgets findings, counters and profiles; the results of cptx_emu_finding_at and cptx_emu_get_profile become invalid. */
CPTX_API void cptx_emu_clear(cptx_device *dev);
/**
 * Lets the device launch again after a finding that ended a launch.  Memory is as that launch left it; findings stay, until
 * cptx_emu_clear().  False for a device that is no emulator.
 */
CPTX_API bool cptx_emu_continue(cptx_device *dev);

/** Counters of all launches since the device was opened or cleared. */
typedef struct cptx_emu_counters {
	uint64_t launches, ctas;                         /**< launches and CTAs */
	uint64_t warp_instructions, thread_instructions; /**< instructions of warps, and of their active threads */
	uint64_t global_read, global_written, shared_read, shared_written; /**< bytes, by instructions of threads */
	uint64_t global_sectors;                    /**< sectors of 32 bytes that instructions of threads touch */
	uint64_t shared_wavefronts, bank_conflicts; /**< wavefronts of shared memory; those beyond the fewest possible */
	uint64_t tensor_flops;                      /**< additions and multiplications of tensor cores */
	uint64_t async_bytes;                       /**< bytes moved by bulk and tensor copies */
} cptx_emu_counters;
CPTX_API bool cptx_emu_get_counters_(const cptx_device *dev, cptx_emu_counters *out, size_t size);
/** The counters; false for a device that is no emulator. */
static inline bool cptx_emu_get_counters(const cptx_device *dev, cptx_emu_counters *out)
{
	return cptx_emu_get_counters_(dev, out, sizeof *out);
}

/** Counters of one instruction in all launches since the device was opened or cleared.  The strings live until it is cleared
 * or closed. */
typedef struct cptx_emu_profile {
	const char *kernel, *instruction; /**< kernel; instruction as PTX prints it, without operands */
	cptx_site at;                     /**< line of C, or of the PTX text */
	uint64_t executed;                /**< number of thread executions */
	uint64_t shared_wavefronts, bank_conflicts, global_sectors; /**< as in cptx_emu_counters */
} cptx_emu_profile;
CPTX_API bool cptx_emu_get_profile_(const cptx_device *dev, size_t i, cptx_emu_profile *out, size_t size);
/** Counters of instruction i, from 0 on, of all kernels that were launched, in the order of their code; false behind the
 * last. */
static inline bool cptx_emu_get_profile(const cptx_device *dev, size_t i, cptx_emu_profile *out)
{
	return cptx_emu_get_profile_(dev, i, out, sizeof *out);
}

#ifdef __cplusplus
}
#endif

#endif
