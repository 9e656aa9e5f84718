/* SPDX-License-Identifier: MIT */
/*
 * Devices: memory, streams, events, programs and launches.
 *
 * A device is opened by name.  "cuda" and "cuda:N" are GPUs, through the CUDA driver library, which is opened at run time:
 * nothing of CUDA is needed to build.  Names that begin with "emu" open the emulator on the CPU (<cptx/emu.h>).
 *
 * Environment: CPTX_CUDA_LIBRARY is the path of the driver library to open in place of libcuda.so.1.
 *
 * Errors: as <cptx/cptx.h> says.  A failing call of the driver is CPTX_E_DRIVER, with CUDA's name and meaning of the error;
 * as with all of CUDA, it may come from work that was started earlier.
 *
 * Contexts: a device works in the primary context of its GPU, or in the context that it adopted.  A calling thread that has
 * no current context gets the device's; a thread that has another one finds it unchanged after each call.
 *
 * Threads: devices, programs and streams may be used by many threads; a cptx_launch by one at a time.
 *
 * Ownership: launches, programs, streams, events and the device may be destroyed in any order.  An object lives on until all
 * that need it are gone: a device's context stays retained (an adopted one must exist) until its last program, stream and
 * event is destroyed, and a program stays loaded until its last launch is.  Every destroy and close accepts NULL.
 */
#ifndef CPTX_DEVICE_H
#define CPTX_DEVICE_H

#include <cptx/compile.h>
#include <cptx/tensor_map.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A GPU or an emulator. */
typedef struct cptx_device cptx_device;
/** A stream: work that a device does in order. */
typedef struct cptx_stream cptx_stream;
/** An event: a moment in a stream. */
typedef struct cptx_event cptx_event;
/** A module that is loaded on a device. */
typedef struct cptx_program cptx_program;
/** A launch that is prepared. */
typedef struct cptx_launch cptx_launch;

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

/** Number of devices of a kind ("cuda"); 0 with an error where the driver cannot be opened. */
CPTX_API unsigned cptx_device_count(const char *kind, cptx_error *err);

/**
 * Opens "cuda" (device 0) or "cuda:N"; NULL: "cuda".  The GPU's primary context is retained until close.
 * Errors: NO_DRIVER (no driver library, or too old), NO_DEVICE (no such device), ARG (not a device name), DRIVER, MEMORY.
 */
CPTX_API cptx_device *cptx_device_open(const char *name, cptx_error *err);
/** Opens a device in an existing context (a CUcontext), which stays the caller's; NULL: the calling thread's current
 * context. */
CPTX_API cptx_device *cptx_device_adopt(void *context, cptx_error *err);
/** Closes a device.  Its context is released, or an emulator's memory freed, once no object of it is left (see "Ownership");
 * an adopted context stays.  NULL is allowed. */
CPTX_API void cptx_device_close(cptx_device *dev);

/** Facts about a device.  Sizes are in bytes. */
typedef struct cptx_device_info {
	char name[128];              /**< the driver's name of the device */
	uint16_t compute_capability; /**< major * 10 + minor: 90 */
	uint16_t ptx;                /**< highest PTX ISA version that the driver takes, times ten: 90 */
	uint32_t driver;             /**< CUDA version of the driver, major * 1000 + minor * 10: 13000 */
	const char *target;          /**< best target for device and driver, "sm_90a"; NULL: this library knows none that fits */
	uint32_t sms;                /**< multiprocessors */
	uint32_t smem_per_sm;        /**< shared memory of a multiprocessor */
	uint32_t smem_per_cta;       /**< most shared memory of a CTA, static and dynamic together, by opting in */
	uint32_t smem_default;       /**< most shared memory of a CTA without opting in */
	uint32_t regs_per_sm;        /**< registers of 32 bits in a multiprocessor */
	uint32_t threads_per_sm;     /**< most threads resident on a multiprocessor */
	uint32_t l2;                 /**< size of the L2 cache */
	uint32_t clock_khz;          /**< highest clock of the multiprocessors */
	uint32_t memory_clock_khz;   /**< highest clock of the memory */
	uint32_t memory_bus_bits;    /**< width of the memory bus */
	bool clusters;               /**< the device can launch thread block clusters */
	uint64_t global_memory;      /**< bytes of global memory in all */
} cptx_device_info;
/** The facts about a device, which live as long as it; NULL only for a NULL device. */
CPTX_API const cptx_device_info *cptx_device_get_info(const cptx_device *dev);

/** The device's context, a CUcontext. */
CPTX_API void *cptx_device_context(const cptx_device *dev);
/** A function of the driver by its exported name, "cuMemGetInfo_v2", for calls that this header does not wrap; NULL if the
 * driver lacks it. */
CPTX_API void *cptx_device_symbol(const cptx_device *dev, const char *name);
/** Makes the device's context current in the calling thread, to stay. */
CPTX_API bool cptx_device_make_current(cptx_device *dev, cptx_error *err);
/** Waits for all work of the device's context; errors of earlier launches appear here at the latest. */
CPTX_API bool cptx_device_synchronize(cptx_device *dev, cptx_error *err);

/* ---- Streams and events.  A NULL stream is the context's default stream ------------------------------------------- */

/** A new stream; it is ordered with the default stream (not CU_STREAM_NON_BLOCKING). */
CPTX_API cptx_stream *cptx_stream_new(cptx_device *dev, cptx_error *err);
/** A CUstream of the device's context as a cptx_stream; it stays the caller's. */
CPTX_API cptx_stream *cptx_stream_adopt(cptx_device *dev, void *stream, cptx_error *err);
/** Destroys a stream once its work is done; forgets an adopted one. */
CPTX_API void cptx_stream_destroy(cptx_stream *stream);
/** The CUstream of a stream; NULL for NULL. */
CPTX_API void *cptx_stream_handle(const cptx_stream *stream);
/** Waits for all work of a stream. */
CPTX_API bool cptx_stream_synchronize(cptx_device *dev, cptx_stream *stream, cptx_error *err);
/** Later work of the stream waits for the event. */
CPTX_API bool cptx_stream_wait(cptx_stream *stream, cptx_event *event, cptx_error *err);

/** A new event, which measures time.  NULL on error. */
CPTX_API cptx_event *cptx_event_new(cptx_device *dev, cptx_error *err);
/** NULL is allowed. */
CPTX_API void cptx_event_destroy(cptx_event *event);
/** Records an event: it is reached when all work so far in the stream is done. */
CPTX_API bool cptx_event_record(cptx_event *event, cptx_stream *stream, cptx_error *err);
/** Waits until an event is reached. */
CPTX_API bool cptx_event_synchronize(cptx_event *event, cptx_error *err);
/** Milliseconds between two recorded and completed events. */
CPTX_API bool cptx_event_elapsed(cptx_event *start, cptx_event *end, float *ms, cptx_error *err);

/* ---- Memory.  Device pointers are uint64_t, sizes bytes ----------------------------------------------------------- */

/** Allocates global memory, aligned to at least 256 bytes; returns its address, 0 on failure. */
CPTX_API uint64_t cptx_mem_alloc(cptx_device *dev, size_t size, cptx_error *err);
/** Waits for the work that uses the memory, then frees it.  0 is allowed.  On the emulator an address that cannot be freed
 * is a finding. */
CPTX_API void cptx_mem_free(cptx_device *dev, uint64_t ptr);

/** Copies from host to device.  The copy is complete on return, and ordered behind the default stream. */
CPTX_API bool cptx_mem_write(cptx_device *dev, uint64_t dst, const void *src, size_t size, cptx_error *err);
/** Copies from device to host, complete and ordered like cptx_mem_write. */
CPTX_API bool cptx_mem_read(cptx_device *dev, void *dst, uint64_t src, size_t size, cptx_error *err);
/** Copies from device to device, complete and ordered like cptx_mem_write. */
CPTX_API bool cptx_mem_copy(cptx_device *dev, uint64_t dst, uint64_t src, size_t size, cptx_error *err);
/** Sets `size` bytes to a value. */
CPTX_API bool cptx_mem_fill8(cptx_device *dev, uint64_t dst, uint8_t value, size_t size, cptx_error *err);
/** Sets `count` words of 32 bits to a value; dst is aligned to 4. */
CPTX_API bool cptx_mem_fill32(cptx_device *dev, uint64_t dst, uint32_t value, size_t count, cptx_error *err);

/** cptx_mem_write as work of a stream; the host memory must stay until the work is done (the driver stages it if it is
 * pageable). */
CPTX_API bool cptx_mem_write_async(cptx_device *dev, uint64_t dst, const void *src, size_t size, cptx_stream *stream,
                                   cptx_error *err);
/** cptx_mem_read as work of a stream; the host memory must stay until the work is done. */
CPTX_API bool cptx_mem_read_async(cptx_device *dev, void *dst, uint64_t src, size_t size, cptx_stream *stream,
                                  cptx_error *err);
/** cptx_mem_copy as work of a stream. */
CPTX_API bool cptx_mem_copy_async(cptx_device *dev, uint64_t dst, uint64_t src, size_t size, cptx_stream *stream,
                                  cptx_error *err);
/** cptx_mem_fill8 as work of a stream. */
CPTX_API bool cptx_mem_fill8_async(cptx_device *dev, uint64_t dst, uint8_t value, size_t size, cptx_stream *stream,
                                   cptx_error *err);
/** cptx_mem_fill32 as work of a stream. */
CPTX_API bool cptx_mem_fill32_async(cptx_device *dev, uint64_t dst, uint32_t value, size_t count, cptx_stream *stream,
                                    cptx_error *err);

/** A tensor map: the 128 bytes that a kernel takes, as CPTX_ARG_BYTES(&map, sizeof map) or copied to global memory. */
typedef struct cptx_tensor_map {
#if defined(__GNUC__)
	__attribute__((aligned(CPTX_TENSOR_MAP_ALIGN)))
#endif
	uint8_t bytes[CPTX_TENSOR_MAP_BYTES];
} cptx_tensor_map;

/**
 * Makes a tensor map for a device: checks the description (cptx_tensor_map_check), and has the driver encode it, or for the
 * emulator cptx_tensor_map_pack.
 * Errors: ARG, a broken rule; TARGET, the device has no tensor maps (they need sm_90, im2col along W sm_100); NO_DRIVER, the
 * driver is too old; DRIVER.
 */
CPTX_API bool cptx_tensor_map_make(cptx_device *dev, const cptx_tensor_map_opt *opt, cptx_tensor_map *map, cptx_error *err);

/* ---- Programs ----------------------------------------------------------------------------------------------------- */

/** How to load a program.  All zero: for the device's best target, by the driver, without a cache. */
typedef struct cptx_load_opt {
	uint32_t size;               /**< CPTX_OPT fills it in */
	const char *target;          /**< PTX target, "sm_90"; NULL: the device's best */
	const cptx_emit_opt *emit;   /**< how the module is printed; NULL: with all options zero */
	uint32_t max_regs;           /**< registers per thread; 0: the compiler's choice */
	bool verbose;                /**< put resource usage in cptx_program_log() */
	bool line_info;              /**< keep the .loc lines for profilers */
	bool debug;                  /**< compile for a debugger, not optimized */
	const char *name;            /**< name of PTX text in messages and findings; NULL: "ptx" */
	enum cptx_compiler compiler; /**< compiler of PTX; AUTO: the driver, or, where it does not know the PTX version or the
	                                target, another one (see cptx_program_note); the emulator needs none */
	cptx_cache *cache;           /**< cache of machine code, which is searched first and gets what is compiled; NULL: none */
	char z_;
} cptx_load_opt;

CPTX_API cptx_program *cptx_device_load_(cptx_site at, cptx_device *dev, cptx_module *m, const cptx_load_opt *opt,
                                         cptx_error *err);
/**
 * Prints a module for the device and compiles it: cptx_device_load(dev, m, opt, err); opt may be NULL.  The module may be
 * destroyed afterwards.  Returns NULL on error.
 * Errors: those of cptx_emit; TARGET, the device cannot run the target; COMPILE, the compiler refuses the program, with its
 * log and, for each line of PTX that it names, that line and the user's line behind it; NO_COMPILER, no compiler there knows
 * the PTX version; DRIVER.
 */
#define cptx_device_load(...) cptx_device_load_(CPTX_HERE, __VA_ARGS__)

CPTX_API cptx_program *cptx_device_load_text_(cptx_site at, cptx_device *dev, const void *image, size_t size,
                                              const cptx_load_opt *opt, cptx_error *err);
/** Loads PTX text, a cubin or a fat binary: cptx_device_load_text(dev, image, size, opt, err).  Errors are those of
 * cptx_device_load.  NULs at the end of a text are ignored; a NUL within the text is an error, ARG. */
#define cptx_device_load_text(...) cptx_device_load_text_(CPTX_HERE, __VA_ARGS__)

CPTX_API cptx_program *cptx_device_link_(cptx_site at, cptx_device *dev, const cptx_link_input *inputs, size_t n,
                                         const cptx_load_opt *opt, cptx_error *err);
/**
 * Links modules, PTX text, cubins, fat binaries, and objects and libraries of nvcc -rdc=true to one program:
 * cptx_device_link(dev, inputs, n, opt, err).  The driver links; nvJitLink does, and its result goes into the cache, if
 * .compiler names it, or if .compiler is AUTO and the driver is too old.  An emulator links PTX text and modules; findings
 * name the text and its line.  Errors are those of cptx_device_load; COMPILE also for a name that no input, or several
 * inputs, define (an emulator tells the former when a kernel that needs it is launched).
 */
#define cptx_device_link(...) cptx_device_link_(CPTX_HERE, __VA_ARGS__)
/** Unloads a program.  NULL is allowed. */
CPTX_API void cptx_program_destroy(cptx_program *program);

/** The compiler's messages; "" if there are none. */
CPTX_API const char *cptx_program_log(const cptx_program *program);
/** What was done in place of what was asked for, and why (the driver was too old, so ptxas compiled); "" if nothing was. */
CPTX_API const char *cptx_program_note(const cptx_program *program);
/** The PTX target that was loaded; NULL for a raw image that does not name it. */
CPTX_API const char *cptx_program_target(const cptx_program *program);
/** The PTX version that was loaded, times ten; 0 for a raw image that does not name it. */
CPTX_API unsigned cptx_program_version(const cptx_program *program);
/** Name of kernel i, from 0 on; NULL behind the last, and for a cubin. */
CPTX_API const char *cptx_program_kernel_at(const cptx_program *program, size_t i);
/** The CUmodule of a program. */
CPTX_API void *cptx_program_handle(const cptx_program *program);
/** Address of a variable of the program, 0 on error; its size in bytes if `size` is not NULL. */
CPTX_API uint64_t cptx_program_global(const cptx_program *program, const char *name, size_t *size, cptx_error *err);

/* ---- Arguments ---------------------------------------------------------------------------------------------------- */

/** The kinds of arguments. */
enum cptx_arg_kind {
	CPTX_ARG_NONE,  /**< nothing: an error */
	CPTX_ARG_INT,   /**< u8, u16, u32 or u64, as `size` says */
	CPTX_ARG_FLOAT, /**< f32 or f64 */
	CPTX_ARG_OBJECT /**< bytes at object */
};

/** One argument of a launch, made by CPTX_ARG or CPTX_ARG_BYTES. */
typedef struct cptx_arg {
	uint8_t kind;  /**< enum cptx_arg_kind */
	uint32_t size; /**< bytes */
	union {
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
		uint64_t u64;
		float f32;
		double f64;
		const void *object;
	} u; /**< the value; kind and size select the member */
} cptx_arg;

static inline cptx_arg cptx_arg_id_(cptx_arg a) { return a; }
static inline cptx_arg cptx_arg_u64_(uint64_t v)
{
	cptx_arg a;
	a.kind = CPTX_ARG_INT, a.size = 8, a.u.u64 = v;
	return a;
}
static inline cptx_arg cptx_arg_u32_(uint32_t v)
{
	cptx_arg a = cptx_arg_u64_(0);
	a.size = 4, a.u.u32 = v;
	return a;
}
static inline cptx_arg cptx_arg_u16_(uint16_t v)
{
	cptx_arg a = cptx_arg_u64_(0);
	a.size = 2, a.u.u16 = v;
	return a;
}
static inline cptx_arg cptx_arg_u8_(uint8_t v)
{
	cptx_arg a = cptx_arg_u64_(0);
	a.size = 1, a.u.u8 = v;
	return a;
}
static inline cptx_arg cptx_arg_long_(unsigned long v)
{
	cptx_arg a = cptx_arg_u64_(v);
	if (sizeof v == 4)
		a.size = 4, a.u.u32 = (uint32_t)v;
	return a;
}
static inline cptx_arg cptx_arg_f32_(float v)
{
	cptx_arg a = cptx_arg_u64_(0);
	a.kind = CPTX_ARG_FLOAT, a.size = 4, a.u.f32 = v;
	return a;
}
static inline cptx_arg cptx_arg_f64_(double v)
{
	cptx_arg a = cptx_arg_u64_(0);
	a.kind = CPTX_ARG_FLOAT, a.size = 8, a.u.f64 = v;
	return a;
}
/** An argument of `size` bytes at `p`, for a cptx_param_bytes parameter (a tensor map, a struct) or for a number without a C
 * type (f16). */
static inline cptx_arg CPTX_ARG_BYTES(const void *p, size_t size)
{
	cptx_arg a = cptx_arg_u64_(0);
	a.kind = CPTX_ARG_OBJECT, a.size = size > UINT32_MAX ? UINT32_MAX : (uint32_t)size, a.u.object = p;
	return a;
}

/* clang-format off */
#ifdef __cplusplus
} /* C++ selects the kind of argument by overloading */
inline cptx_arg cptx_arg_(cptx_arg v) { return v; }
inline cptx_arg cptx_arg_(float v) { return cptx_arg_f32_(v); }
inline cptx_arg cptx_arg_(double v) { return cptx_arg_f64_(v); }
inline cptx_arg cptx_arg_(bool v) { return cptx_arg_u8_(v); }
inline cptx_arg cptx_arg_(char v) { return cptx_arg_u8_((uint8_t)v); }
inline cptx_arg cptx_arg_(signed char v) { return cptx_arg_u8_((uint8_t)v); }
inline cptx_arg cptx_arg_(unsigned char v) { return cptx_arg_u8_(v); }
inline cptx_arg cptx_arg_(short v) { return cptx_arg_u16_((uint16_t)v); }
inline cptx_arg cptx_arg_(unsigned short v) { return cptx_arg_u16_(v); }
inline cptx_arg cptx_arg_(int v) { return cptx_arg_u32_((uint32_t)v); }
inline cptx_arg cptx_arg_(unsigned v) { return cptx_arg_u32_(v); }
inline cptx_arg cptx_arg_(long v) { return cptx_arg_long_((unsigned long)v); }
inline cptx_arg cptx_arg_(unsigned long v) { return cptx_arg_long_(v); }
inline cptx_arg cptx_arg_(long long v) { return cptx_arg_u64_((uint64_t)v); }
inline cptx_arg cptx_arg_(unsigned long long v) { return cptx_arg_u64_(v); }
template <size_t n> struct cptx_arg_list_ {
	cptx_arg v[n];
	operator const cptx_arg *() const { return v; }
};
extern "C" {
#define CPTX_ARG(x) cptx_arg_(x)
#define CPTX_ARG_ARRAY_(n, ...) cptx_arg_list_<n>{ { __VA_ARGS__ } }
#else
#define CPTX_ARG_ARRAY_(n, ...) (cptx_arg[]){ __VA_ARGS__ }
/** A C number as an argument.  Its type counts: a float for .f32, a uint64_t for a device pointer. */
#define CPTX_ARG(x)                                                                                                         \
	_Generic((x), cptx_arg: cptx_arg_id_, float: cptx_arg_f32_, double: cptx_arg_f64_, _Bool: cptx_arg_u8_,                 \
	         char: cptx_arg_u8_, signed char: cptx_arg_u8_, unsigned char: cptx_arg_u8_, short: cptx_arg_u16_,              \
	         unsigned short: cptx_arg_u16_, int: cptx_arg_u32_, unsigned: cptx_arg_u32_, long: cptx_arg_long_,              \
	         unsigned long: cptx_arg_long_, long long: cptx_arg_u64_, unsigned long long: cptx_arg_u64_)(x)
#endif

/** Up to 16 arguments inside a cptx_launch_opt: { .grid = { n }, CPTX_ARGS(x, y, 3u) }.  For more, set .args and .nargs. */
#define CPTX_ARGS(...)                                                                                                      \
	.nargs = CPTX_ARG_N_(__VA_ARGS__),                                                                                      \
	.args = CPTX_ARG_ARRAY_(CPTX_ARG_N_(__VA_ARGS__), CPTX_ARG_EACH_(CPTX_ARG_N_(__VA_ARGS__), __VA_ARGS__))
#define CPTX_ARG_N_(...) CPTX_ARG_N2_(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define CPTX_ARG_N2_(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, count, ...) count
#define CPTX_ARG_EACH_(n, ...)  CPTX_ARG_EACH2_(n, __VA_ARGS__)
#define CPTX_ARG_EACH2_(n, ...) CPTX_ARG_##n##_(__VA_ARGS__)
#define CPTX_ARG_1_(x)       CPTX_ARG(x)
#define CPTX_ARG_2_(x, ...)  CPTX_ARG(x), CPTX_ARG_1_(__VA_ARGS__)
#define CPTX_ARG_3_(x, ...)  CPTX_ARG(x), CPTX_ARG_2_(__VA_ARGS__)
#define CPTX_ARG_4_(x, ...)  CPTX_ARG(x), CPTX_ARG_3_(__VA_ARGS__)
#define CPTX_ARG_5_(x, ...)  CPTX_ARG(x), CPTX_ARG_4_(__VA_ARGS__)
#define CPTX_ARG_6_(x, ...)  CPTX_ARG(x), CPTX_ARG_5_(__VA_ARGS__)
#define CPTX_ARG_7_(x, ...)  CPTX_ARG(x), CPTX_ARG_6_(__VA_ARGS__)
#define CPTX_ARG_8_(x, ...)  CPTX_ARG(x), CPTX_ARG_7_(__VA_ARGS__)
#define CPTX_ARG_9_(x, ...)  CPTX_ARG(x), CPTX_ARG_8_(__VA_ARGS__)
#define CPTX_ARG_10_(x, ...) CPTX_ARG(x), CPTX_ARG_9_(__VA_ARGS__)
#define CPTX_ARG_11_(x, ...) CPTX_ARG(x), CPTX_ARG_10_(__VA_ARGS__)
#define CPTX_ARG_12_(x, ...) CPTX_ARG(x), CPTX_ARG_11_(__VA_ARGS__)
#define CPTX_ARG_13_(x, ...) CPTX_ARG(x), CPTX_ARG_12_(__VA_ARGS__)
#define CPTX_ARG_14_(x, ...) CPTX_ARG(x), CPTX_ARG_13_(__VA_ARGS__)
#define CPTX_ARG_15_(x, ...) CPTX_ARG(x), CPTX_ARG_14_(__VA_ARGS__)
#define CPTX_ARG_16_(x, ...) CPTX_ARG(x), CPTX_ARG_15_(__VA_ARGS__)
/* clang-format on */

/* ---- Launches ----------------------------------------------------------------------------------------------------- */

/** Shape and arguments of a launch.  In grid, block and cluster, missing y and z are 1. */
typedef struct cptx_launch_opt {
	uint32_t size;       /**< CPTX_OPT fills it in */
	uint32_t grid[3];    /**< number of CTAs; of clusters, if the kernel has .blocksareclusters */
	uint32_t block[3];   /**< threads of a CTA; all zero: the kernel's .reqntid */
	uint32_t cluster[3]; /**< CTAs of a cluster; all zero: the kernel's cluster, or none */
	uint32_t dyn_smem;   /**< dynamic shared memory in bytes; 0: what the kernel laid out with cptx_shared_dyn */
	bool overlap; /**< programmatic dependent launch (sm_90): the launch may begin before the launch in front of it in the
	                 stream has ended; its griddepcontrol.wait waits for that end */
	bool cooperative; /**< all CTAs are resident at once, so that they can wait for one another (grid_group::sync of CUDA's
	                     cooperative groups).  A grid that does not fit is refused, error LIMIT */
	size_t nargs;     /**< number of arguments */
	const cptx_arg *args; /**< the arguments in the order of the parameters; only read by the call */
	char z_;
} cptx_launch_opt;
/** A cptx_launch_opt for one call, in C and C++: CPTX_LAUNCH(.grid = { 4 }, CPTX_ARGS(x, y)). */
#define CPTX_LAUNCH(...) CPTX_OPT(cptx_launch_opt, __VA_ARGS__)

CPTX_API cptx_launch *cptx_launch_new_(cptx_site at, const cptx_program *program, const char *kernel,
                                       const cptx_launch_opt *opt, cptx_error *err);
/**
 * Prepares a launch: everything is checked and set here, so that running it is one call of the driver.
 *    cptx_launch_new(program, "scale", &(cptx_launch_opt){ .grid = { n / 256 }, .block = { 256 }, CPTX_ARGS(x, y, n) }, err)
 * Arguments are checked against the kernel's parameters in number, size and kind; for a raw image only number and size are
 * known, from drivers of CUDA 12.4 on.  kernel NULL: the program's only kernel.
 * Errors: ARG, LIMIT (threads, shared memory, cluster size), TARGET (no clusters on the device), DRIVER, MEMORY.
 */
#define cptx_launch_new(...) cptx_launch_new_(CPTX_HERE, __VA_ARGS__)
/** Destroys a launch; work that it started goes on.  NULL is allowed. */
CPTX_API void cptx_launch_destroy(cptx_launch *launch);

CPTX_API bool cptx_launch_set_(cptx_site at, cptx_launch *launch, size_t i, cptx_arg arg, cptx_error *err);
/** Changes argument i, from 0 on, for later runs; the new value is checked as by cptx_launch_new. */
#define cptx_launch_set(launch, i, x, err) cptx_launch_set_(CPTX_HERE, (launch), (i), CPTX_ARG(x), (err))
CPTX_API bool cptx_launch_grid_(cptx_site at, cptx_launch *launch, uint32_t x, uint32_t y, uint32_t z, cptx_error *err);
/** Changes the grid of a launch for later runs. */
#define cptx_launch_grid(launch, x, y, z, err) cptx_launch_grid_(CPTX_HERE, (launch), (x), (y), (z), (err))

/** Starts a launch as work of a stream, with the arguments as they are now.  Allocates nothing; does not wait. */
CPTX_API bool cptx_launch_run(cptx_launch *launch, cptx_stream *stream, cptx_error *err);

CPTX_API bool cptx_launch_once_(cptx_site at, const cptx_program *program, const char *kernel, const cptx_launch_opt *opt,
                                cptx_stream *stream, cptx_error *err);
/** Prepares, runs and destroys a launch: cptx_launch_once(program, "scale", &(cptx_launch_opt){ ... }, stream, err). */
#define cptx_launch_once(...) cptx_launch_once_(CPTX_HERE, __VA_ARGS__)

/** Resources of a compiled kernel.  Sizes are in bytes. */
typedef struct cptx_resources {
	uint32_t regs;           /**< registers per thread */
	uint32_t local_bytes;    /**< local memory per thread: spills and local arrays */
	uint32_t static_smem;    /**< static shared memory per CTA */
	uint32_t const_bytes;    /**< constants that the user declared */
	uint32_t max_threads;    /**< most threads of a CTA that the registers allow */
	uint32_t binary_version; /**< architecture of the machine code, times ten: 90 */
	/** CTAs resident at once on a multiprocessor, for the given threads and dynamic shared memory; 0 if they do not fit */
	uint32_t ctas_per_sm;
} cptx_resources;
CPTX_API bool cptx_program_resources_(const cptx_program *program, const char *kernel, uint32_t threads, uint32_t dyn_smem,
                                      cptx_resources *out, size_t size, cptx_error *err);
/** The resources of a kernel.  ctas_per_sm is for CTAs of `threads` threads with `dyn_smem` bytes; threads 0: it is not
 * computed. */
static inline bool cptx_program_resources(const cptx_program *program, const char *kernel, uint32_t threads,
                                          uint32_t dyn_smem, cptx_resources *out, cptx_error *err)
{
	return cptx_program_resources_(program, kernel, threads, dyn_smem, out, sizeof *out, err);
}
CPTX_API bool cptx_launch_resources_(const cptx_launch *launch, cptx_resources *out, size_t size, cptx_error *err);
/** The resources of a launch's kernel, with ctas_per_sm for the launch's block and shared memory. */
static inline bool cptx_launch_resources(const cptx_launch *launch, cptx_resources *out, cptx_error *err)
{
	return cptx_launch_resources_(launch, out, sizeof *out, err);
}

#ifdef __cplusplus
}
#endif

#endif
