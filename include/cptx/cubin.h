/* SPDX-License-Identifier: MIT */
/*
 * Reading cubins without a disassembler: what resources each kernel takes, and which line of the PTX each instruction comes
 * from.  This is a library of its own (libcptx_cubin), because it needs libelf; cptx itself does not.
 *
 * It is tested with cubins of ptxas 13.0 for sm_75 to sm_121a.  Attributes that it does not know are ignored.
 */
#ifndef CPTX_CUBIN_H
#define CPTX_CUBIN_H

#include <cptx/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A cubin that was read. */
typedef struct cptx_cubin_view cptx_cubin_view;

/** Resources of one kernel.  Sizes are in bytes; names live as long as the cptx_cubin_view. */
typedef struct cptx_cubin_kernel {
	const char *name;       /**< name of the kernel's symbol */
	uint32_t registers;     /**< registers per thread when the kernel starts */
	uint32_t frame;         /**< the kernel's own stack frame */
	uint32_t stack;         /**< stack frame with those of the functions that the kernel calls, where that is known */
	uint32_t static_smem;   /**< static shared memory that the kernel declares, without reserved_smem */
	uint32_t reserved_smem; /**< shared memory that the hardware keeps for itself, as far as the cubin counts it */
	uint32_t barriers;      /**< numbered barriers in use, at most 16 */
	uint32_t param_bytes;   /**< parameters */
	uint32_t constant[8];   /**< constant banks; bank 0 has the parameters */
	uint32_t code;          /**< machine code */
	uint32_t max_block[3];  /**< .maxntid, 0 where there is none */
	uint32_t block[3];      /**< .reqntid, 0 where there is none */
	uint32_t cluster[3];    /**< .reqnctapercluster, 0 where there is none */
	uint32_t max_registers; /**< most registers that the code may have, by launch bounds or by option */
	bool reallocates;       /**< setmaxnreg moves registers between warps */
} cptx_cubin_kernel;

/** A place where the line changes: instructions from byte `address` of a kernel on come from line `line` of the PTX. */
typedef struct cptx_cubin_line {
	uint32_t address, line; /**< byte offset from the start of the kernel; line of the PTX, from 1 */
} cptx_cubin_line;

/**
 * Reads a cubin, which is copied.  `name` is for messages; NULL: "cubin".  Returns NULL on error, with *err set (err may be
 * NULL): the bytes are no cubin, are truncated, or contradict themselves.
 */
CPTX_API cptx_cubin_view *cptx_cubin_view_of(const void *bytes, size_t size, const char *name, cptx_error *err);
/** Frees a cptx_cubin_view.  NULL is allowed. */
CPTX_API void cptx_cubin_view_destroy(cptx_cubin_view *c);
/** The target of a cubin; NULL if cptx does not know it. */
CPTX_API const cptx_target *cptx_cubin_view_target(const cptx_cubin_view *c);
CPTX_API bool cptx_cubin_view_kernel_(const cptx_cubin_view *c, size_t i, cptx_cubin_kernel *out, size_t size);
/** Kernel number i, in the order of their symbols; false behind the last. */
static inline bool cptx_cubin_view_kernel(const cptx_cubin_view *c, size_t i, cptx_cubin_kernel *out)
{
	return cptx_cubin_view_kernel_(c, i, out, sizeof *out);
}
/**
 * The scheduling fields of an instruction, in the upper bits of its 128 (sm_70 and later).  Six scoreboards, 0 to 5, wait
 * for operations whose time the compiler does not know.  NVIDIA documents none of it; the meanings were found by others'
 * experiments.
 */
typedef struct cptx_cubin_control {
	uint8_t stall;       /**< cycles, 0 to 15, until the warp may issue the next instruction */
	uint8_t write_board; /**< scoreboard that is released when the results are written; 7: none */
	uint8_t read_board;  /**< scoreboard that is released when the operands are read; 7: none */
	uint8_t waits;       /**< bit n: scoreboard n must be released before the instruction is issued */
} cptx_cubin_control;
CPTX_API bool cptx_cubin_view_control_(const cptx_cubin_view *c, size_t i, uint32_t address, cptx_cubin_control *out,
                                       size_t size);
/** The scheduling fields of the instruction at byte `address` (a multiple of 16) of kernel i; false if there is none. */
static inline bool cptx_cubin_view_control(const cptx_cubin_view *c, size_t i, uint32_t address, cptx_cubin_control *out)
{
	return cptx_cubin_view_control_(c, i, address, out, sizeof *out);
}
/**
 * The registers R0 to R254 that the instruction at byte `address` of kernel i reads or writes, all of a pair or more: bit n
 * % 64 of registers[n / 64] stands for Rn.  Returns false, with all bits 0, if there is no such instruction, or if this
 * version of cptx does not know its registers.
 */
CPTX_API bool cptx_cubin_view_registers(const cptx_cubin_view *c, size_t i, uint32_t address, uint64_t registers[4]);
/**
 * Counts the 32-bit registers that are alive at each instruction of kernel i: those in use in front of it, and those that it
 * writes.  live[n], for n below `nlive`, gets the count of the instruction at byte 16 n, 0 where no path reaches it.
 * Returns the highest count in the kernel and the functions that it calls; 0, with *err set (err may be NULL), if the counts
 * are not known: an operation or a form that this version of cptx does not know, a call of a function in another section, a
 * branch to no listed target.
 *
 * In a function that is called from several places a register counts if it is alive for any of them.
 */
CPTX_API uint32_t cptx_cubin_view_live(const cptx_cubin_view *c, size_t i, uint16_t *live, size_t nlive, cptx_error *err);
/** Bytes of global variables of the module. */
CPTX_API uint64_t cptx_cubin_view_globals(const cptx_cubin_view *c);
/** The lines that the instructions of kernel i come from, by address; *n gets their number.  None without line information
 * (ptxas -lineinfo). */
CPTX_API const cptx_cubin_line *cptx_cubin_view_lines(const cptx_cubin_view *c, size_t i, size_t *n);
/** The PTX that a cubin was made of, without blanks at the ends of lines; NULL without line information.  It ends in a NUL.
 */
CPTX_API const char *cptx_cubin_view_ptx(const cptx_cubin_view *c, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
