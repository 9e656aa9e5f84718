/* SPDX-License-Identifier: MIT */
/*
 * What a cubin says of itself, read without a disassembler: what each kernel takes, and which line of the PTX each
 * instruction comes from.  A library of its own (libcptx_cubin), because it stands on libelf; cptx itself does not need it.
 *
 * Cubins of ptxas 13.0 for sm_75 to sm_121a are what it is tested with.  Attributes it does not know are passed over.
 */
#ifndef CPTX_CUBIN_H
#define CPTX_CUBIN_H

#include <cptx/cptx.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A cubin that was read. */
typedef struct cptx_cubin_view cptx_cubin_view;

/** What one kernel takes.  Sizes in bytes; names live as long as the cubin. */
typedef struct cptx_cubin_kernel {
	const char *name;       /**< of its symbol */
	uint32_t registers;     /**< per thread, where it starts */
	uint32_t frame;         /**< its own stack frame */
	uint32_t stack;         /**< with those of the functions that it calls, where that is known */
	uint32_t static_smem;   /**< declared by the kernel; without what the hardware keeps for itself */
	uint32_t reserved_smem; /**< that, as far as the cubin counts it */
	uint32_t barriers;      /**< numbered ones, at most 16 */
	uint32_t param_bytes;   /**< parameters */
	uint32_t constant[8];   /**< constant banks; bank 0 has the parameters */
	uint32_t code;          /**< machine code */
	uint32_t max_block[3];  /**< of .maxntid, 0 where there is none */
	uint32_t block[3];      /**< of .reqntid, the same */
	uint32_t cluster[3];    /**< of .reqnctapercluster, the same */
	uint32_t max_registers; /**< that the code may have, by bounds or by option */
	bool reallocates;       /**< setmaxnreg moves registers between warps */
} cptx_cubin_kernel;

/** Instructions from byte `address` of a kernel on come from this line (from 1) of the PTX. */
typedef struct cptx_cubin_line {
	uint32_t address, line; /**< byte from the start of the kernel; line of the PTX, from 1 */
} cptx_cubin_line;

/**
 * Reads a cubin, which is copied.  `name`: for messages; NULL: "cubin".  NULL on error, with *err set (may be NULL): what is
 * no cubin, is truncated or contradicts itself.
 */
CPTX_API cptx_cubin_view *cptx_cubin_view_of(const void *bytes, size_t size, const char *name, cptx_error *err);
/** Frees it.  NULL is allowed. */
CPTX_API void cptx_cubin_view_destroy(cptx_cubin_view *c);
/** The target that it is for; NULL if cptx does not know it. */
CPTX_API const cptx_target *cptx_cubin_view_target(const cptx_cubin_view *c);
CPTX_API bool cptx_cubin_view_kernel_(const cptx_cubin_view *c, size_t i, cptx_cubin_kernel *out, size_t size);
/** Kernel number i, in the order of their symbols; false behind the last. */
static inline bool cptx_cubin_view_kernel(const cptx_cubin_view *c, size_t i, cptx_cubin_kernel *out)
{
	return cptx_cubin_view_kernel_(c, i, out, sizeof *out);
}
/**
 * What an instruction says to the scheduler, in the upper bits of its 128 (sm_70 and later).  Six scoreboards, 0 to 5, wait
 * for what takes a time that the compiler does not know.  As others found it out: NVIDIA documents none of it.
 */
typedef struct cptx_cubin_control {
	uint8_t stall;       /**< cycles, 0 to 15, until the warp may issue the next instruction */
	uint8_t write_board; /**< scoreboard that is released when its results are written; 7: none */
	uint8_t read_board;  /**< the same, when its operands are read */
	uint8_t waits;       /**< a bit for each scoreboard that must be released before it is issued */
} cptx_cubin_control;
CPTX_API bool cptx_cubin_view_control_(const cptx_cubin_view *c, size_t i, uint32_t address, cptx_cubin_control *out,
                                       size_t size);
/** Of the instruction at byte `address` (a multiple of 16) of kernel i; false if there is none. */
static inline bool cptx_cubin_view_control(const cptx_cubin_view *c, size_t i, uint32_t address, cptx_cubin_control *out)
{
	return cptx_cubin_view_control_(c, i, address, out, sizeof *out);
}
/**
 * Registers R0 to R254 that the instruction at byte `address` of kernel i reads or writes, all of a pair or more: bit n of
 * `registers`, from the lowest of registers[0] on.  False, and all are 0, where there is none, or one whose registers this
 * version of cptx does not know.
 */
CPTX_API bool cptx_cubin_view_registers(const cptx_cubin_view *c, size_t i, uint32_t address, uint64_t registers[4]);
/**
 * Registers of 32 bits alive at each instruction of kernel i: those in use in front of it, and those that it writes.
 * live[n], n of `nlive` at most: of the instruction at byte 16 n, 0 where none gets to.  Returns the most of the kernel and
 * of the functions that it calls; 0, with *err set (may be NULL), if they are not known: an operation or a form that this
 * version of cptx does not know, a call of a function in another section, a branch to no listed target.
 *
 * In a function that is called from several places this is what is alive for any of them.
 */
CPTX_API uint32_t cptx_cubin_view_live(const cptx_cubin_view *c, size_t i, uint16_t *live, size_t nlive, cptx_error *err);
/** Bytes of global variables of the module. */
CPTX_API uint64_t cptx_cubin_view_globals(const cptx_cubin_view *c);
/** Where the instructions of kernel i come from, by address; *n of them.  None without line information (ptxas -lineinfo).
 */
CPTX_API const cptx_cubin_line *cptx_cubin_view_lines(const cptx_cubin_view *c, size_t i, size_t *n);
/** The PTX that it was made of, blanks at the ends of lines apart; NULL without line information.  Ends in a NUL. */
CPTX_API const char *cptx_cubin_view_ptx(const cptx_cubin_view *c, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
