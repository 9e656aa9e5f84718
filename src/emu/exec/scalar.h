/* SPDX-License-Identifier: MIT */
/*
 * Instructions that calculate something of each lane alone: add, fma, setp, cvt ...
 *
 * Any of them can be executed lane by lane through a function that calls num.h, made by SCALAR.  Those that kernels are full
 * of also have a row that says for which types a loop over the lanes does it, in the host's own arithmetic: see struct fast.
 */
#ifndef CPTX_EMU_EXEC_SCALAR_H
#define CPTX_EMU_EXEC_SCALAR_H

#include "emu/core/registers.h"
#include "emu/exec/exec.h"
#include "emu/num/num.h"

/* The result for one lane: v are the operands that are read, in the order of the text; elements of a vector one by one. */
typedef uint64_t (*scalar_calc)(const emu_op *op, const struct num_mode *m, const uint64_t *v);

enum { SCALAR_INPUTS = 8 };
struct scalar {
	scalar_calc calc;
	struct num_mode mode;
	unsigned n;
	emu_arg in[SCALAR_INPUTS];
};

/* Modifiers as num.h takes them. */
struct num_mode scalar_mode(const emu_op *op);
/* The operands read; NULL: out of memory. */
struct scalar *scalar_inputs(emu_decoder *d, emu_op *op);
void scalar_gather(const emu_warp *w, const struct scalar *s, unsigned lane, uint64_t *v);
/* Decodes an instruction with one result, a register or predicate. */
bool scalar_decode(emu_decoder *d, emu_op *op, scalar_calc calc);

/* What types stand for in a row, with no other modifier than .ftz of FAST_F32Z, .rn and .lo. */
enum fast_kind {
	FAST_U16 = 1, /* b16 too */
	FAST_S16 = 2,
	FAST_U32 = 4,
	FAST_S32 = 8,
	FAST_U64 = 16,
	FAST_S64 = 32,
	FAST_F32 = 64,
	FAST_F32Z = 128,
	FAST_F64 = 256,
	FAST_F16 = 512,   /* f16x2 too */
	FAST_BF16 = 1024, /* bf16x2 too */
	FAST_I32 = FAST_U32 | FAST_S32,
	FAST_I64 = FAST_U64 | FAST_S64,
	FAST_W32 = FAST_I32 | FAST_F32, /* words that are moved only */
	FAST_W64 = FAST_I64 | FAST_F64,
	FAST_I16 = FAST_U16 | FAST_S16
};
struct fast {
	unsigned kinds;
	emu_fn fn;
};
unsigned fast_kind_of(const emu_op *op, unsigned type); /* 0: none */
emu_fn half_loop(const emu_op *op);                     /* exec/half.c: for f16 and bf16; NULL: there is none */
/* True if a row, the last of which is zero, has the type. */
bool fast_decode(emu_op *op, const struct fast *row);

#define SCALAR_CALC(name, expr)                                                                                             \
	static uint64_t calc_##name(const emu_op *op, const struct num_mode *m, const uint64_t *v)                              \
	{                                                                                                                       \
		(void)op, (void)m;                                                                                                  \
		return expr;                                                                                                        \
	}
/* decode_NAME of an instruction whose result is expr, of op->m, m and v. */
#define SCALAR(name, expr)                                                                                                  \
	SCALAR_CALC(name, expr)                                                                                                 \
	bool decode_##name(emu_decoder *d, emu_op *op) { return scalar_decode(d, op, calc_##name); }
/* The same, with rows of struct fast. */
#define SCALAR_FAST(name, expr, ...)                                                                                        \
	SCALAR_CALC(name, expr)                                                                                                 \
	bool decode_##name(emu_decoder *d, emu_op *op)                                                                          \
	{                                                                                                                       \
		static const struct fast rows[] = { __VA_ARGS__, { 0 } };                                                           \
		return fast_decode(op, rows) || scalar_decode(d, op, calc_##name);                                                  \
	}

/* Most x86 have instructions (fma, vectors of 8 words) that the compiler may not take for granted. */
#if defined __x86_64__ && defined __GNUC__ && !defined FP_FAST_FMAF
#define EMU_MACHINE __attribute__((target("avx2,fma")))
#define HAS_MACHINE (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#endif

/* ---- loops over lanes: d of type `to` from a, b, c of type `from`, registers of 64 bits where those are ---- */
#define LANE_REG(type, w, op, n)                                                                                            \
	((type *)(void *)(sizeof(type) == 8 ? (void *)emu_reg64(w, op, n) : (void *)emu_reg32(w, op, n)))

#define ALU1(name, to, from, expr)                                                                                          \
	static enum emu_step name(emu_warp *w, const emu_op *op, uint32_t mask)                                                 \
	{                                                                                                                       \
		to *d = LANE_REG(to, w, op, 0);                                                                                     \
		const from *pa = LANE_REG(from, w, op, 1);                                                                          \
		LANES(l, mask, from a = pa[l]; d[l] = (to)(expr));                                                                  \
		return STEP_NEXT;                                                                                                   \
	}
#define ALU2(name, to, from, expr) ALU2_ON(, name, to, from, expr)
#define ALU2_ON(machine, name, to, from, expr)                                                                              \
	machine static enum emu_step name(emu_warp *w, const emu_op *op, uint32_t mask)                                         \
	{                                                                                                                       \
		to *d = LANE_REG(to, w, op, 0);                                                                                     \
		const from *pa = LANE_REG(from, w, op, 1), *pb = LANE_REG(from, w, op, 2);                                          \
		LANES(l, mask, from a = pa[l]; from b = pb[l]; d[l] = (to)(expr));                                                  \
		return STEP_NEXT;                                                                                                   \
	}
#define ALU3(name, to, from, expr) ALU3_ON(, name, to, from, expr)
#define ALU3_ON(machine, name, to, from, expr)                                                                              \
	machine static enum emu_step name(emu_warp *w, const emu_op *op, uint32_t mask)                                         \
	{                                                                                                                       \
		to *d = LANE_REG(to, w, op, 0);                                                                                     \
		const from *pa = LANE_REG(from, w, op, 1), *pb = LANE_REG(from, w, op, 2);                                          \
		const to *pc = LANE_REG(to, w, op, 3);                                                                              \
		LANES(l, mask, from a = pa[l]; from b = pb[l]; to c = pc[l]; d[l] = (to)(expr));                                    \
		return STEP_NEXT;                                                                                                   \
	}

#endif
