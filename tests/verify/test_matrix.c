/* SPDX-License-Identifier: MIT */
/* Matrix instructions: what the calls print, and the rules that a row cannot say. */
#include "verify.h"

/* ---- warps ---- */

START_TEST(block_scale)
{
	fresh();
	cptx_val a = cptx_regs(s.k, CPTX_B32, 4), b = cptx_regs(s.k, CPTX_B32, 2), c = cptx_regs(s.k, CPTX_F32, 4);
	cptx_val scale = cptx_reg(s.k, CPTX_B32), id = cptx_reg(s.k, CPTX_U16);
	cptx_val zero = cptx_pack(s.k, 2, ((cptx_val[]){ cptx_imm(0), cptx_imm(0) }));
	cptx_val two = cptx_pack(s.k, 2, ((cptx_val[]){ cptx_imm(2), id }));

	cptx_mma_block_scale(s.k, a, b, c, scale, two, scale, zero, .shape = CPTX_M16N8K64, .kind = CPTX_KIND_MXF4);
	cptx_mma_block_scale(s.k, a, b, c, scale, zero, scale, two, .shape = CPTX_M16N8K32, .kind = CPTX_KIND_MXF8F6F4,
	                     .atype = CPTX_E4M3, .btype = CPTX_E2M1, .scale_vec = CPTX_SCALE_VEC_1X);
	shows("sm_120a", ".version 8.7\n",
	      "\tmma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0 {%f6, %f7, %f8, %f9}, "
	      "{%r7, %r8, %r9, %r10}, {%r11, %r12}, {%f2, %f3, %f4, %f5}, %r13, {2, %h1}, %r13, {0, 0};",
	      "\tmma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0 ", NULL);
}
END_TEST

static cptx_val pair(int64_t byte, int64_t thread)
{
	return cptx_pack(s.k, 2, ((cptx_val[]){ cptx_imm(byte), cptx_imm(thread) }));
}

/* The bytes and threads that hold the scales of A and B, with .scale_vec. */
#define SCALES(vec, m, of, ia, ib)                                                                                          \
	cptx_mma_block_scale(s.k, s.w, cptx_regs(s.k, CPTX_B32, 2), cptx_regs(s.k, CPTX_F32, 4), cptx_reg(s.k, CPTX_B32), ia,   \
	                     cptx_reg(s.k, CPTX_B32), ib, .shape = m, .kind = of, .scale_vec = vec, .atype = CPTX_E2M1,         \
	                     .btype = CPTX_E2M1)
#define SCALES_1X(ia, ib) SCALES(CPTX_SCALE_VEC_1X, CPTX_M16N8K32, CPTX_KIND_MXF8F6F4, ia, ib)
#define SCALES_2X(ia, ib) SCALES(CPTX_SCALE_VEC_2X, CPTX_M16N8K64, CPTX_KIND_MXF4NVF4, ia, ib)
#define SCALES_4X(ia, ib) SCALES(CPTX_SCALE_VEC_4X, CPTX_M16N8K64, CPTX_KIND_MXF4NVF4, ia, ib)

START_TEST(scale_ids_in_range)
{
	fresh();
	SCALES_1X(pair(3, 1), pair(3, 3));
	SCALES_2X(pair(2, 0), pair(0, 3));
	SCALES_4X(pair(0, 1), pair(0, 0));
	shows("sm_120a", "{3, 1}, ", "{3, 3};", "{2, 0}, ", "ue4m3 ", NULL);
	REFUSES(CPTX_E_FORM, "the byte is 0 to 3", SCALES_1X(pair(4, 0), pair(0, 0)));
	REFUSES(CPTX_E_FORM, "the thread that holds scales of A is 0 or 1", SCALES_1X(pair(0, 2), pair(0, 0)));
	REFUSES(CPTX_E_FORM, "the thread that holds scales of B is 0 to 3", SCALES_1X(pair(0, 0), pair(0, 4)));
	REFUSES(CPTX_E_FORM, "with two scales the byte is 0 or 2", SCALES_2X(pair(0, 0), pair(1, 0)));
	REFUSES(CPTX_E_FORM, "with four scales the byte is 0", SCALES_4X(pair(2, 0), pair(0, 0)));
}
END_TEST

/* ---- warpgroups ---- */

#define UNSCALED .scale_a = cptx_imm(1), .scale_b = cptx_imm(1)

START_TEST(warpgroup)
{
	fresh();
	cptx_val d = cptx_regs(s.k, CPTX_F32, 64), a = cptx_reg(s.k, CPTX_U64), b = cptx_reg(s.k, CPTX_U64);
	cptx_val fragment = cptx_regs(s.k, CPTX_B32, 4), p = cptx_reg(s.k, CPTX_PRED);

	cptx_wgmma_fence(s.k);
	cptx_wgmma_mma_async(s.k, a, b, p, UNSCALED, .atype = CPTX_BF16, .trans_a = cptx_imm(0), .trans_b = cptx_imm(1),
	                     .shape = CPTX_M64N128K16, .into = d);
	cptx_wgmma_mma_async(s.k, fragment, b, cptx_negated(p), .scale_a = cptx_imm(-1), .scale_b = cptx_imm(1),
	                     .atype = CPTX_F16, .trans_b = cptx_imm(0), .into = d, .shape = CPTX_M64N128K16);
	cptx_wgmma_commit_group(s.k);
	cptx_wgmma_wait_group(s.k, 0);
	shows("sm_90a", ".version 8.0\n", "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%f2, %f3, ",
	      "%f65}, %rd2, %rd3, %p2, 1, 1, 0, 1;", "%f65}, {%r7, %r8, %r9, %r10}, %rd3, !%p2, -1, 1, 0;", NULL);
}
END_TEST

START_TEST(warpgroup_refusals)
{
	fresh();
	cptx_val d = cptx_regs(s.k, CPTX_F32, 32), a = cptx_reg(s.k, CPTX_U64), p = cptx_reg(s.k, CPTX_PRED);
	REFUSED(CPTX_E_FORM, "d has 32 registers, 64 needed",
	        cptx_wgmma_mma_async(s.k, a, a, p, UNSCALED, .shape = CPTX_M64N128K8, .into = d));
	fresh();
	a = cptx_reg(s.k, CPTX_U64), p = cptx_reg(s.k, CPTX_PRED);
	REFUSED(CPTX_E_FORM, "d is read too: give it as .into",
	        cptx_wgmma_mma_async(s.k, a, a, p, UNSCALED, .shape = CPTX_M64N64K8));
	fresh();
	d = cptx_regs(s.k, CPTX_F32, 32), a = cptx_reg(s.k, CPTX_U64), p = cptx_reg(s.k, CPTX_PRED);
	REFUSED(CPTX_E_FORM, "scale_a and scale_b are 1 or -1",
	        cptx_wgmma_mma_async(s.k, a, a, p, .scale_a = cptx_imm(0), .scale_b = cptx_imm(1), .shape = CPTX_M64N64K8,
	                             .into = d));
}
END_TEST

/* ---- tensor memory ---- */

START_TEST(tensor_memory)
{
	fresh();
	cptx_val at = cptx_shared(s.k, CPTX_B32, 1), desc = cptx_reg(s.k, CPTX_U64), idesc = cptx_reg(s.k, CPTX_U32);
	cptx_val p = cptx_reg(s.k, CPTX_PRED), mask = cptx_regs(s.k, CPTX_B32, 4), bar = cptx_shared(s.k, CPTX_B64, 1);

	cptx_tcgen05_alloc(s.k, at, 64, .cta_group = CPTX_CTA_GROUP_1);
	cptx_val acc = cptx_ld(s.k, at, .type = CPTX_U32);
	cptx_tcgen05_mma(s.k, acc, desc, desc, idesc, p, .kind = CPTX_KIND_F16, .mask = mask);
	cptx_tcgen05_mma(s.k, acc, acc, desc, idesc, p, .kind = CPTX_KIND_TF32, .cta_group = CPTX_CTA_GROUP_1, .ashift = 1,
	                 .scale = cptx_imm(3), .collector = CPTX_COLLECTOR_A_LASTUSE);
	cptx_tcgen05_commit(s.k, bar, .cta_group = CPTX_CTA_GROUP_1);
	cptx_val d = cptx_tcgen05_ld(s.k, acc, .shape = CPTX_SHAPE_16X256B, .num = CPTX_X4);
	cptx_tcgen05_wait(s.k, .op = CPTX_WAIT_LD);
	ck_assert_uint_eq(d.count, 16);
	shows("sm_100a", ".version 8.6\n", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [shared_0], 64;",
	      "tcgen05.mma.cta_group::1.kind::f16 [%r12], %rd2, %rd2, %r7, {%r8, %r9, %r10, %r11}, %p2;",
	      "tcgen05.mma.cta_group::1.kind::tf32.ashift.collector::a::lastuse [%r12], [%r12], %rd2, %r7, %p2, 3;",
	      "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [shared_1];",
	      "tcgen05.ld.sync.aligned.16x256b.x4.b32 {", NULL);
}
END_TEST

START_TEST(tensor_memory_refusals)
{
	fresh();
	cptx_val at = cptx_reg(s.k, CPTX_U64);
	REFUSED(CPTX_E_FORM, "a power of two from 32 to 512", cptx_tcgen05_alloc(s.k, at, 48, .cta_group = CPTX_CTA_GROUP_1));
	fresh();
	REFUSED(CPTX_E_FORM, "a power of two from 32 to 512",
	        cptx_tcgen05_dealloc(s.k, cptx_reg(s.k, CPTX_U32), 1024, .cta_group = CPTX_CTA_GROUP_2));
	fresh();
	cptx_val acc = cptx_reg(s.k, CPTX_U32), desc = cptx_reg(s.k, CPTX_U64), p = cptx_reg(s.k, CPTX_PRED);
	REFUSED(CPTX_E_FORM, ".ashift goes with .collector::a::lastuse and ::discard only",
	        cptx_tcgen05_mma(s.k, acc, acc, desc, acc, p, .kind = CPTX_KIND_F16, .cta_group = CPTX_CTA_GROUP_1, .ashift = 1,
	                         .collector = CPTX_COLLECTOR_A_USE));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		block_scale, scale_ids_in_range, warpgroup, warpgroup_refusals, tensor_memory, tensor_memory_refusals,
	};
	return verify_run("matrix", tests, ARRAY_LEN(tests), true);
}
