/* SPDX-License-Identifier: MIT */
/* cptx/mma.h: what is refused, with the line of the call. */
#include "on_emu.h"

#include <cptx/cptx.h>
#include <cptx/epilogue.h>
#include <cptx/mma.h>

/* A kernel with products of each kind and an accumulator of each. */
typedef struct fixture {
	cptx_module *m;
	cptx_kernel *k;
	cptx_val u32, u64, pred, none;
	cptx_tiled_mma_opt o; /* by wgmma, all right: a test spoils a field */
	cptx_tiled_mma mma, sync, wgmma, from_regs, tcgen05, ints;
	cptx_acc acc, of_sync, of_wgmma, of_tcgen05, of_ints, of_doubles, part;
	cptx_acc_matrix to;
} fixture;

#define NEW cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.mma, &x.o)

static cptx_tile tile(uint32_t rows, uint32_t cols, uint8_t bits, bool mn_major)
{
	return (cptx_tile){ rows, cols, .elem = { bits, .mn_major = mn_major }, .swizzle = CPTX_SWIZZLE_128B };
}

static fixture begin(void)
{
	fixture x = { .m = cptx_module_new(NULL) };

	x.k = cptx_kernel_begin(x.m, "k", .block = { 256 });
	x.u64 = cptx_param(x.k, CPTX_PTR, "p");
	x.u32 = cptx_var(x.k, CPTX_U32, 0);
	x.pred = cptx_setp(x.k, x.u32, 1, .cmp = CPTX_EQ);
	x.o = (cptx_tiled_mma_opt){ .by = CPTX_BY_WGMMA,
		                        .a = CPTX_BF16,
		                        .b = CPTX_BF16,
		                        .m = 64,
		                        .n = 64,
		                        .a_tile = tile(64, 64, 16, false),
		                        .b_tile = tile(64, 64, 16, false) };
	cptx_tiled_mma_opt o = x.o;
	cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.wgmma, &o);
	o.a_from = CPTX_A_REGS;
	cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.from_regs, &o);
	o = x.o, o.by = CPTX_BY_MMA_SYNC;
	cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.sync, &o);
	o.a = o.b = CPTX_S8, o.a_tile = o.b_tile = tile(64, 64, 8, false);
	o.a_tile.swizzle = o.b_tile.swizzle = CPTX_SWIZZLE_64B;
	cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.ints, &o);
	cptx_tiled_mma doubles;
	o = x.o, o.by = CPTX_BY_MMA_SYNC, o.a = o.b = CPTX_F64, o.a_tile = o.b_tile = tile(64, 16, 64, false);
	o.a_tile.swizzle = o.b_tile.swizzle = CPTX_SWIZZLE_64B;
	cptx_tiled_mma_new_(x.k, CPTX_HERE, &doubles, &o);
	cptx_acc_new(x.k, &doubles, &x.of_doubles);
	o = x.o, o.by = CPTX_BY_TCGEN05, o.m = 128, o.a_tile = tile(128, 64, 16, false);
	cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.tcgen05, &o);
	cptx_acc_new(x.k, &x.sync, &x.of_sync);
	cptx_acc_new(x.k, &x.wgmma, &x.of_wgmma);
	cptx_acc_new(x.k, &x.ints, &x.of_ints);
	cptx_acc_in_tmem(x.k, &x.tcgen05, &x.of_tcgen05, x.u32);
	cptx_acc_load(x.k, &x.of_tcgen05, 0, 32, &x.part);
	x.to = (cptx_acc_matrix){ .address = x.u64, .type = CPTX_F32, .pitch = cptx_imm(64) };
	SURE(!cptx_module_error(x.m), "%s", cptx_module_error(x.m) ? cptx_module_error(x.m)->text : "");
	return x;
}

static void told(fixture *x, int line, const char *says)
{
	const cptx_error *e = cptx_module_error(x->m);
	char where[64];

	snprintf(where, sizeof where, "test_mma_errors.c:%d: ", line);
	SURE(e != NULL, "line %d: no error: %s", line, says);
	SURE(strstr(e->text, says) != NULL, "line %d: %s\nlacks: %s", line, e->text, says);
	SURE(strstr(e->text, where) != NULL, "%s\nis not of %s", e->text, where);
	cptx_module_destroy(x->m);
}

/* What is done with a fixture x has an error that says so, and is of this line. */
#define FAILS(says, ...)                                                                                                    \
	do {                                                                                                                    \
		fixture x = begin();                                                                                                \
		__VA_ARGS__;                                                                                                        \
		told(&x, __LINE__, says);                                                                                           \
	} while (0)

START_TEST(types_and_shapes)
{
	FAILS("cptx_tiled_mma_new: the tiled mma is NULL", cptx_tiled_mma_new_(x.k, CPTX_HERE, NULL, &x.o));
	FAILS("cptx_tiled_mma_new: the description is NULL", cptx_tiled_mma_new_(x.k, CPTX_HERE, &x.mma, NULL));
	FAILS("of .f32 and .bf16; .a and .b are CPTX_BF16, F16, TF32, F64, E4M3, E5M2, E2M3, E3M2, E2M1, S8 or U8",
	      x.o.a = CPTX_F32;
	      NEW);
	FAILS("of .bf16 and .u4; .a and .b are", x.o.b = CPTX_U4; NEW);
	FAILS("of .bf16 and .f16; A and B have the same type, or two of 8 bits", x.o.b = CPTX_F16; NEW);
	FAILS("of .e4m3 and .s8; A and B have the same type", x.o.a = CPTX_E4M3, x.o.b = CPTX_S8; NEW);
	FAILS("of .s8 by wgmma with n = 40; of integers it is 8, 16, 24, 32 or a multiple of 16", x.o.a = CPTX_S8,
	      x.o.b = CPTX_U8, x.o.n = 40;
	      NEW);
	FAILS("of .tf32 with A from registers; that has 16 bits", x.o.a = x.o.b = CPTX_TF32; x.o.a_from = CPTX_A_REGS; NEW);
	FAILS("with .by = 7; it is CPTX_BY_MMA_SYNC, CPTX_BY_WGMMA or CPTX_BY_TCGEN05", x.o.by = (enum cptx_mma_by)7; NEW);
	FAILS("with m = 0; it is a multiple of 64", x.o.m = 0; NEW);
	FAILS("with m = 32; it is a multiple of 64", x.o.m = 32; NEW);
	FAILS("with m = 24; it is a multiple of 16", x.o.by = CPTX_BY_MMA_SYNC, x.o.m = 24; NEW);
	FAILS("with m = 64; it is always 128", x.o.by = CPTX_BY_TCGEN05; NEW);
	FAILS("with n = 12; it is a multiple of 8, at most 256", x.o.n = 12; NEW);
	FAILS("with n = 264; it is a multiple of 8, at most 256", x.o.n = 264; NEW);
	FAILS("with n = 1032; it is a multiple of 8, at most 1024", x.o.by = CPTX_BY_MMA_SYNC, x.o.n = 1032; NEW);
	FAILS("with n = 24; it is a multiple of 16, at most 256", x.o.by = CPTX_BY_TCGEN05, x.o.m = 128, x.o.n = 24; NEW);
	FAILS("by tcgen05 with 2 x 1 units; it has one", x.o.by = CPTX_BY_TCGEN05, x.o.m = 128, x.o.units_m = 2; NEW);
	FAILS("with 33 x 1 units; at most 32 x 32", x.o.units_m = 33; NEW);
	FAILS("with 1024 x 64 elements in a unit; at most 65535", x.o.m = 1024; NEW);
	FAILS("whose A cannot be there: mma.sync and wgmma take it from", x.o.a_from = CPTX_A_TMEM; NEW);
	FAILS("whose A cannot be there", x.o.by = CPTX_BY_TCGEN05, x.o.m = 128, x.o.a_from = CPTX_A_REGS; NEW);
	FAILS("whose A cannot be there", x.o.a_from = (enum cptx_mma_from)9; NEW);
}
END_TEST

START_TEST(tiles_and_units)
{
	FAILS("whose tile of B is wrong: ", x.o.b_tile.rows = 0; NEW);
	FAILS("whose tile of A is wrong: ", x.o.a_tile.cols = 3; NEW);
	FAILS("whose tile of B has elements of 8 bits; the type has 16", x.o.b_tile = tile(64, 128, 8, false); NEW);
	FAILS("whose tile of B has 128 rows; the units of a CTA have 64", x.o.b_tile.rows = 128; NEW);
	FAILS("whose tile of A has 64 rows; the units of a CTA have 128", x.o.units_m = 2, x.o.unit = x.u32; NEW);
	FAILS("whose tile of B has 8 elements along K; an instruction takes 16", x.o.b_tile = tile(64, 8, 16, false);
	      x.o.b_tile.swizzle = CPTX_SWIZZLE_NONE; NEW);
	FAILS("whose tiles have 128 and 64 elements along K; they have the same", x.o.a_tile.cols = 128; NEW);
	FAILS("with 2 x 1 units that does not know the thread's: give .unit, a .u32 register", x.o.units_m = 2;
	      x.o.a_tile.rows = 128; NEW);
	FAILS("with .a_ring and .b_ring; these are for wgmma with A in shared memory", x.o = x.sync.opt;
	      x.o.a_ring = x.o.b_ring = x.u32, x.o.apart = 8192; NEW);
	FAILS("whose rings have no addresses: .a_ring and .b_ring are .u32 registers", x.o.a_ring = x.u32, x.o.apart = 8192;
	      NEW);
	FAILS("whose rings have no addresses", x.o.a_ring = x.u32, x.o.b_ring = cptx_offset(x.u32, 8), x.o.apart = 8192; NEW);
	FAILS("with .desc32 by mma.sync or tcgen05; that is for wgmma with .a_ring and .b_ring", x.o = x.sync.opt;
	      x.o.desc32 = true; NEW);
	FAILS("with .desc32 and without rings; that is for wgmma with .a_ring and .b_ring",
	      x.o.size = CPTX_OPT_SIZE(cptx_tiled_mma_opt), x.o.desc32 = true;
	      NEW);
	FAILS("with stages 512 bytes apart; .apart is a multiple of the 1024 that swizzled tiles begin at",
	      x.o.a_ring = x.o.b_ring = x.u32, x.o.apart = 512;
	      NEW);
	FAILS("cannot read its A by ldmatrix: ", x.o = x.ints.opt; x.o.a_tile.elem.mn_major = true; NEW);
	FAILS("cannot read its B by ldmatrix: ", x.o = x.ints.opt; x.o.b_tile.elem.mn_major = true; NEW);
	FAILS("by wgmma whose units share a swizzle span; a unit has a multiple of 64 rows of A and of B", x.o.unit = x.u32;
	      x.o.n = 32, x.o.units_n = 2; x.o.b_tile.elem.mn_major = true; NEW);
	FAILS("whose units have 24 rows of the tile of B each; they should begin at multiples of 256 bytes, one swizzle pattern",
	      x.o = x.sync.opt;
	      x.o.unit = x.u32; x.o.n = 24, x.o.units_n = 2; x.o.b_tile = tile(48, 64, 16, true);
	      x.o.b_tile.swizzle = CPTX_SWIZZLE_32B; NEW);
}
END_TEST

START_TEST(calls)
{
	FAILS("a tiled mma that cptx_tiled_mma_new did not make", cptx_mma_tile(x.k, &x.mma, &x.of_wgmma, x.u32, x.u32));
	FAILS("a tiled mma that cptx_tiled_mma_new did not make", cptx_mma_wait(x.k, NULL, 0));
	FAILS("a tiled mma that cptx_tiled_mma_new did not make", cptx_mma_commit(x.k, &x.mma, x.u32));
	FAILS("cptx_mma_tile: the description is NULL",
	      cptx_mma_tile_(x.k, CPTX_HERE, &x.wgmma, &x.of_wgmma, x.u32, x.u32, NULL));
	FAILS("an accumulator that cptx_acc_new, cptx_acc_in_tmem or cptx_acc_load did not make",
	      cptx_mma_tile(x.k, &x.wgmma, &x.acc, x.u32, x.u32));
	FAILS("an accumulator that cptx_acc_new, cptx_acc_in_tmem or cptx_acc_load did not make",
	      cptx_mma_tile(x.k, &x.wgmma, NULL, x.u32, x.u32));
	FAILS("with an accumulator that was made for another", cptx_mma_tile(x.k, &x.wgmma, &x.of_sync, x.u32, x.u32));
	FAILS("a stage of a tiled mma that has no rings: say .a_ring, .b_ring and .apart in cptx_tiled_mma_new",
	      cptx_mma_stage(x.k, &x.wgmma, &x.of_wgmma, x.u32));
	FAILS("a tiled mma that cptx_tiled_mma_new did not make", cptx_mma_stage(x.k, &x.mma, &x.of_wgmma, x.u32));
	FAILS("a stage that is no number: .u32, or a constant from 0 to 63", x.o.a_ring = x.o.b_ring = x.u32; x.o.apart = 8192;
	      NEW; cptx_mma_stage(x.k, &x.mma, &x.of_wgmma, 64));
	FAILS("with an accumulator that was made for another", cptx_mma_tile(x.k, &x.sync, &x.of_wgmma, x.u32, x.u32));
	FAILS("with an accumulator that was made for another", cptx_mma_tile(x.k, &x.sync, &x.of_ints, x.u32, x.u32));
	FAILS("with an accumulator that was made for another", cptx_mma_tile(x.k, &x.wgmma, &x.of_tcgen05, x.u32, x.u32));
	FAILS("with an accumulator that was made for another", cptx_mma_tile(x.k, &x.tcgen05, &x.part, x.u32, x.u32));
	FAILS("has 4 steps along K; 0 from 4 on are too many",
	      cptx_mma_tile(x.k, &x.wgmma, &x.of_wgmma, x.u32, x.u32, .first = 4));
	FAILS("has 4 steps along K; 3 from 2 on are too many",
	      cptx_mma_tile(x.k, &x.wgmma, &x.of_wgmma, x.u32, x.u32, .first = 2, .steps = 3));
	FAILS("by mma.sync adds to what it finds: .fresh_when is for wgmma and tcgen05",
	      cptx_mma_tile(x.k, &x.sync, &x.of_sync, x.u32, x.u32, .fresh_when = x.pred));
	FAILS("whose .fresh_when is no predicate; where it is known now, say .fresh",
	      cptx_mma_tile(x.k, &x.wgmma, &x.of_wgmma, x.u32, x.u32, .fresh_when = cptx_imm(1)));
	FAILS("whose .fresh_when is no predicate", cptx_mma_tile(x.k, &x.wgmma, &x.of_wgmma, x.u32, x.u32, .fresh_when = x.u32));
	FAILS("with .fresh and .fresh_when; give one of them",
	      cptx_mma_tile(x.k, &x.wgmma, &x.of_wgmma, x.u32, x.u32, .fresh = true, .fresh_when = x.pred));
	FAILS("whose A is 1 registers; it takes 16: those of cptx_acc_as_a",
	      cptx_mma_tile(x.k, &x.from_regs, &x.of_wgmma, x.u32, x.u32));
	FAILS("whose A is 0 registers; it takes 16", cptx_mma_tile(x.k, &x.from_regs, &x.of_wgmma, x.none, x.u32));
	FAILS("no matrix descriptor has this tile: ", x.o.b_tile.swizzle = CPTX_SWIZZLE_NONE; x.o.b_tile.pitch = 144; NEW;
	      cptx_mma_tile(x.k, &x.mma, &x.of_wgmma, x.u32, x.u32));
	FAILS("cptx_mma_wait is of wgmma; products of tcgen05 are waited for at the mbarrier of cptx_mma_commit",
	      cptx_mma_wait(x.k, &x.tcgen05, 0));
	FAILS("cptx_mma_commit is of tcgen05; products of wgmma are waited for by cptx_mma_wait",
	      cptx_mma_commit(x.k, &x.wgmma, x.u32));
	FAILS("whose A has no address: a .u32 register, of shared memory",
	      cptx_mma_tile(x.k, &x.wgmma, &x.of_wgmma, x.none, x.u32));
	FAILS("whose B has no address: a .u32 register, of shared memory",
	      cptx_mma_tile(x.k, &x.sync, &x.of_sync, x.u32, x.none));
	FAILS("whose B has no address", cptx_mma_tile(x.k, &x.tcgen05, &x.of_tcgen05, x.u32, x.pred));
	FAILS("whose A has no address: a .u32 register, of tensor memory", x.o = x.tcgen05.opt; x.o.a_from = CPTX_A_TMEM; NEW;
	      cptx_mma_tile(x.k, &x.mma, &x.of_tcgen05, cptx_imm(0), x.u32));
}
END_TEST

/* x.o with a sparse A. */
static void make_sparse(fixture *x)
{
	x->o.sparse = true, x->o.a_tile = tile(64, 32, 16, false), x->o.a_tile.swizzle = CPTX_SWIZZLE_64B;
}

START_TEST(sparse_and_f64)
{
	FAILS("with a sparse A by tcgen05; it goes by mma.sync and wgmma", make_sparse(&x); x.o.by = CPTX_BY_TCGEN05;
	      x.o.m = 128; x.o.a_tile.rows = 128; NEW);
	FAILS("with a sparse A that is not in shared memory", make_sparse(&x); x.o.a_from = CPTX_A_REGS; NEW);
	FAILS("with a sparse A of .tf32; its elements have 8 or 16 bits", make_sparse(&x); x.o.a = x.o.b = CPTX_TF32; NEW);
	FAILS("whose tiles have 64 and 64 elements along K; a sparse A has half of them", x.o.sparse = true; NEW);
	FAILS("with a sparse A and a tile of B of 32 elements along K; it has a multiple of 64", make_sparse(&x);
	      x.o.b_tile = tile(64, 32, 16, false); NEW);
	FAILS("with a sparse A and 0 registers as .meta; it takes 1 of 32 bits", make_sparse(&x); NEW;
	      cptx_mma_tile(x.k, &x.mma, &x.of_wgmma, x.u32, x.u32));
	FAILS("with a sparse A and 2 registers as .meta; it takes 4 of 32 bits", make_sparse(&x); x.o.by = CPTX_BY_MMA_SYNC; NEW;
	      cptx_mma_tile(x.k, &x.mma, &x.of_sync, x.u32, x.u32, .meta = cptx_regs(x.k, CPTX_B32, 2)));
	FAILS("of .f64 by wgmma or tcgen05; it goes by mma.sync", x.o.a = x.o.b = CPTX_F64; NEW);
	FAILS("of .bf16 with .tall; that is for .f64", x.o.by = CPTX_BY_MMA_SYNC; x.o.tall = true; NEW);
	FAILS("whose tile of B of .f64 is not K-major with the 64-byte swizzle", x.o.by = CPTX_BY_MMA_SYNC;
	      x.o.a = x.o.b = CPTX_F64; x.o.a_tile = x.o.b_tile = tile(64, 16, 64, false); NEW);
	FAILS("without .sparse takes no .meta", cptx_mma_tile(x.k, &x.wgmma, &x.of_wgmma, x.u32, x.u32, .meta = x.u32));
}
END_TEST

START_TEST(accumulators)
{
	FAILS("cptx_acc_new: the accumulator is NULL", cptx_acc_new(x.k, &x.wgmma, NULL));
	FAILS("a tiled mma that cptx_tiled_mma_new did not make", cptx_acc_new(x.k, NULL, &x.acc));
	FAILS("accumulators of tcgen05 lie in tensor memory: cptx_acc_in_tmem", cptx_acc_new(x.k, &x.tcgen05, &x.acc));
	FAILS("only accumulators of tcgen05 lie in tensor memory: cptx_acc_new", cptx_acc_in_tmem(x.k, &x.wgmma, &x.acc, x.u32));
	FAILS("an accumulator in tensor memory; cptx_acc_load brings a part of it to registers",
	      cptx_acc_clear(x.k, &x.of_tcgen05));
	FAILS("an accumulator that cptx_acc_new, cptx_acc_in_tmem or cptx_acc_load did not make", cptx_acc_clear(x.k, &x.acc));
	FAILS("a row vector of 4 registers; one of this accumulator has 8: cptx_acc_row_vector",
	      cptx_acc_scale_rows(x.k, &x.of_sync, cptx_slice(cptx_acc_row_vector(x.k, &x.of_sync, 1.0f), 0, 4)));
	FAILS("a row vector of 1 registers; one of this accumulator has 2",
	      cptx_acc_row_reduce(x.k, &x.of_wgmma, CPTX_REDUCE_MAX, x.u32));
	FAILS("a row vector of 0 registers; one of this accumulator has 2",
	      cptx_acc_row_combine(x.k, &x.of_wgmma, CPTX_REDUCE_MAX, x.none));
	FAILS("a row vector of .s32; one of this accumulator is of .f64: cptx_acc_row_vector",
	      cptx_acc_scale_rows(x.k, &x.of_doubles, cptx_regs(x.k, CPTX_S32, x.of_doubles.rows)));
	FAILS("cptx_acc_row_vector: the value is .u32; it is .f64 or a constant",
	      cptx_acc_row_vector(x.k, &x.of_doubles, x.u32));
	FAILS("rows of an accumulator of .f64; those of .f32 and .s32 are reduced",
	      cptx_acc_row_combine(x.k, &x.of_doubles, CPTX_REDUCE_SUM, cptx_acc_row_vector(x.k, &x.of_doubles, 0.0)));
	FAILS("rows of an accumulator reduced by operation 9; it is CPTX_REDUCE_SUM, MAX or MIN",
	      cptx_acc_row_reduce(x.k, &x.of_wgmma, (enum cptx_reduce_op)9, cptx_acc_row_vector(x.k, &x.of_wgmma, 0.0f)));
	FAILS("rows of an accumulator reduced by operation 9",
	      cptx_acc_row_combine(x.k, &x.of_wgmma, (enum cptx_reduce_op)9, cptx_acc_row_vector(x.k, &x.of_wgmma, 0.0f)));
	FAILS("an accumulator in tensor memory", cptx_acc_row_vector(x.k, &x.of_tcgen05, 0.0f));
}
END_TEST

START_TEST(tensor_memory)
{
	FAILS("cptx_acc_load: the accumulator is NULL", cptx_acc_load(x.k, &x.of_tcgen05, 0, 32, NULL));
	FAILS("an accumulator in registers; cptx_acc_in_tmem makes one", cptx_acc_load(x.k, &x.of_wgmma, 0, 32, &x.acc));
	FAILS("24 columns from 0 on of an accumulator with 64; a load takes 2, 4, 8, 16, 32, 64 or 128 of them",
	      cptx_acc_load(x.k, &x.of_tcgen05, 0, 24, &x.acc));
	FAILS("1 columns from 0 on", cptx_acc_load(x.k, &x.of_tcgen05, 0, 1, &x.acc));
	FAILS("32 columns from 48 on", cptx_acc_load(x.k, &x.of_tcgen05, 48, 32, &x.acc));
	FAILS("2 columns from 4294967295 on", cptx_acc_load(x.k, &x.of_tcgen05, UINT32_MAX, 2, &x.acc));
	FAILS("32 columns from 48 on of an accumulator with 64, from a part that cptx_acc_load should have made",
	      cptx_acc_save(x.k, &x.of_tcgen05, 48, &x.part));
	FAILS("32 columns from 4294967280 on", cptx_acc_save(x.k, &x.of_tcgen05, UINT32_MAX - 15, &x.part));
	FAILS("from a part that cptx_acc_load should have made", cptx_acc_save(x.k, &x.of_tcgen05, 0, &x.of_wgmma));
	FAILS("an accumulator in registers", cptx_acc_save(x.k, &x.of_wgmma, 0, &x.part));
	FAILS("an accumulator in tensor memory", cptx_acc_save(x.k, &x.of_tcgen05, 0, &x.of_tcgen05));
	FAILS("a part that cptx_acc_load should have made, put from element 3 on; that, and the number of elements, are "
	      "multiples of 2",
	      cptx_acc_put_a(x.k, &x.part, CPTX_BF16, x.u32, 3));
	FAILS("a part that cptx_acc_load should have made", cptx_acc_put_a(x.k, &x.of_wgmma, CPTX_BF16, x.u32, 0));
	FAILS("put from element 6 on; that, and the number of elements, are multiples of 4",
	      cptx_acc_put_a(x.k, &x.part, CPTX_E4M3, x.u32, 6));
	FAILS("an accumulator as .e2m3; it can be rounded to CPTX_BF16 or CPTX_F16",
	      cptx_acc_put_a(x.k, &x.part, CPTX_E2M3, x.u32, 0));
	FAILS("an accumulator in tensor memory", cptx_acc_put_a(x.k, &x.of_tcgen05, CPTX_BF16, x.u32, 0));
}
END_TEST

START_TEST(rounding_and_stores)
{
	FAILS("an accumulator as .f32; it can be rounded to CPTX_BF16 or CPTX_F16", cptx_acc_narrow(x.k, &x.of_wgmma, CPTX_F32));
	FAILS("an accumulator of .s32 as .f16; convert the elements first", cptx_acc_narrow(x.k, &x.of_ints, CPTX_F16));
	FAILS(
		"an accumulator of 64 x 64 as the A of a product that takes 64 x 64; both are of the same kind, and the product is "
		"made with .a_from = CPTX_A_REGS",
		cptx_acc_as_a(x.k, &x.of_wgmma, &x.wgmma));
	FAILS("both are of the same kind", cptx_acc_as_a(x.k, &x.of_sync, &x.from_regs));
	FAILS("both are of the same kind", cptx_acc_as_a(x.k, &x.part, &x.from_regs));
	FAILS("an accumulator of 64 x 64 as the A of a product that takes 64 x 128", x.o.a_from = CPTX_A_REGS;
	      x.o.b_tile.cols = 128; NEW; cptx_acc_as_a(x.k, &x.of_wgmma, &x.mma));
	FAILS("a tiled mma that cptx_tiled_mma_new did not make", cptx_acc_as_a(x.k, &x.of_wgmma, NULL));
	FAILS("cptx_acc_store: the matrix is NULL", cptx_acc_store(x.k, &x.of_wgmma, NULL));
	FAILS("an accumulator in tensor memory", cptx_acc_store(x.k, &x.of_tcgen05, &x.to));
	FAILS("an accumulator of .f32 stored as .s32; it can be stored as it is, and .f32 as CPTX_BF16 and CPTX_F16",
	      x.to.type = CPTX_S32;
	      cptx_acc_store(x.k, &x.of_wgmma, &x.to));
	FAILS("an accumulator of .s32 stored as .bf16", x.to.type = CPTX_BF16; cptx_acc_store(x.k, &x.of_ints, &x.to));
	FAILS("an accumulator of .f64 stored as .f32", cptx_acc_store(x.k, &x.of_doubles, &x.to));
	FAILS("an accumulator of .f64; epilogues compute in .f32: cptx_acc_store stores it as it is", cptx_epilogue e;
	      cptx_epilogue_new(x.k, &e, .rows = x.u32); cptx_epilogue_run(x.k, &e, &x.of_doubles, .row = x.u32));
	FAILS("a matrix without an address: say .address, a .u64 register", x.to.address = x.none;
	      cptx_acc_store(x.k, &x.of_wgmma, &x.to));
	FAILS("a matrix with rows 63 elements apart: say .pitch, an even number of them", x.to.pitch = cptx_imm(63);
	      cptx_acc_store(x.k, &x.of_wgmma, &x.to));
	FAILS("a matrix with rows 0 elements apart", x.to.pitch = x.none; cptx_acc_store(x.k, &x.of_wgmma, &x.to));
	/* the description may be written in the call */
	fixture x = begin();
	cptx_acc_store(x.k, &x.of_wgmma, &(cptx_acc_matrix){ .address = x.u64, .type = CPTX_F32, .pitch = cptx_imm(64) });
	ck_assert_ptr_null(cptx_module_error(x.m));
	cptx_module_destroy(x.m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *t = test_case(s, "mma_errors");

	tcase_add_test(t, types_and_shapes);
	tcase_add_test(t, tiles_and_units);
	tcase_add_test(t, calls);
	tcase_add_test(t, sparse_and_f64);
	tcase_add_test(t, accumulators);
	tcase_add_test(t, tensor_memory);
	tcase_add_test(t, rounding_and_stores);
	return test_main("kit mma_errors", s);
}
