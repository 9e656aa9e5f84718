/* SPDX-License-Identifier: MIT */
/* Of our own kernels ptxas has nothing to say: no spill, no wgmma that waits, no setmaxnreg ignored, no warning; and no
 * thread of a warp that multiplies waits alone. */
#include "../ask.h"
#include "../test.h"

#include "examples.h"
#include "hgemm.h"
#include "ladder.h"

#include <cptx/attention.h>
#include <cptx/compile.h>
#include <cptx/gemm.h>
#include <cptx/inspect.h>
#include <cptx/rows.h>

#include <elf.h>

static unsigned asked;

static void clean(cptx_module *m, const char *target, const char *what)
{
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, target, NULL, &err);
	cptx_cubin *c = cptx_compile_ptx(ptx, &(cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS, .verbose = true }, &err);
	const cptx_remark *r;

	ck_assert_msg(c, "%s for %s: %s", what, target, err.text);
	cptx_verdict *v = cptx_verdict_read(cptx_cubin_log(c), strlen(cptx_cubin_log(c)), &(cptx_verdict_opt){ .printed = ptx });
	ck_assert_msg(cptx_verdict_usage(v, 0) && cptx_verdict_usage(v, 0)->registers, "%s: ptxas -v says nothing", what);
	for (size_t i = 0; (r = cptx_verdict_remark(v, i)); i++)
		ck_assert_msg(r->severity < CPTX_SAID_CONCERN, "%s for %s, %s:%u: %s (%s)", what, target,
		              r->at.file ? r->at.file : "?", r->at.line, r->text, r->advice);
	cptx_verdict_destroy(v);
	cptx_cubin_destroy(c);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	asked++;
}

START_TEST(gemms)
{
	static const char *const targets[] = { "sm_80", "sm_90", "sm_120a" };
	cptx_error err = { 0 };

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	for (size_t i = 0; i < 3; i++) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, cptx_target_find(targets[i]));
		ck_assert(cptx_gemm_build(m, &o, &err));
		clean(m, targets[i], "gemm_sm80");
	}
	for (unsigned bn = 128; bn <= 256; bn += 64) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_gemm_opt o = { .mma = CPTX_GEMM_WGMMA,
			                .bm = 128,
			                .bn = bn,
			                .stages = 4,
			                .cluster_m = 2,
			                .a = CPTX_BF16,
			                .b = CPTX_BF16,
			                .out = CPTX_BF16,
			                .stream_k = bn == 192 };
		ck_assert_msg(cptx_gemm_build(m, &o, &err), "%s", err.text);
		clean(m, "sm_90a", "gemm_sm90");
	}
}
END_TEST

START_TEST(blackwell)
{
	cptx_error err = { 0 };

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	for (unsigned bm = 128; bm <= 256; bm += 128) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_gemm_opt o = { .mma = CPTX_GEMM_TCGEN05,
			                .kind = CPTX_TCGEN05_F16,
			                .bm = bm,
			                .bn = 128,
			                .stages = 4,
			                .a = CPTX_BF16,
			                .b = CPTX_BF16,
			                .out = CPTX_BF16 };
		ck_assert_msg(cptx_gemm_build(m, &o, &err), "%s", err.text);
		clean(m, bm == 128 ? "sm_100a" : "sm_103a", "gemm_sm100");
	}
}
END_TEST

START_TEST(rows)
{
	static const char *const targets[] = { "sm_75", "sm_90a", "sm_121a" };

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	for (size_t i = 0; i < 3; i++) {
		cptx_module *m = cptx_module_new(NULL);
		ck_assert(rms_norm(m, 8192, 512) && softmax(m, 8192, 512) && swiglu(m, 256, 4));
		clean(m, targets[i], "row kernels");
	}
}
END_TEST

START_TEST(hgemm_ladder)
{
	static const char *const targets[] = { "sm_80", "sm_90", "sm_120a" };
	bool whole = getenv("CPTX_WHOLE") != NULL;

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	for (int rung = 0; rung < HGEMM_RUNGS; rung++)
		for (int i = rung < HGEMM_TMA_R ? 0 : 1; i < 3; i++) {
			hgemm_opt o = hgemm_default(rung, 32, CPTX_BF16, cptx_target_find(targets[i]));
			cptx_module *m = cptx_module_new(NULL);
			if (!whole && i != 2) {
				cptx_module_destroy(m);
				continue;
			}
			ck_assert(hgemm_build(m, rung, &o));
			clean(m, targets[i], hgemm_name(rung));
		}
}
END_TEST

START_TEST(tcgen05_ladder)
{
	static const ladder_rung *const rungs[] = { &rung_v1a, &rung_v5, &rung_v7, &rung_v1b, &rung_v2a,
		                                        &rung_v2b, &rung_v3, &rung_v4, &rung_v6 };
	bool whole = getenv("CPTX_WHOLE") != NULL;

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	for (size_t i = 0; i < (whole ? 9 : 3); i++) {
		cptx_module *m = cptx_module_new(NULL);
		ladder_opt o = rungs[i]->tile;
		o.in = o.out = CPTX_BF16;
		ladder_build(m, rungs[i], &o);
		clean(m, i % 2 ? "sm_103a" : "sm_100a", "tcgen05 ladder");
	}
}
END_TEST

/* ---- waits of one thread alone ---- */

/*
 * ptxas puts YIELD into a loop in which a thread waits while others of its warp stand where they meet it.  They go on then,
 * and overwrite uniform registers that the one that waits reads behind the loop, for ptxas 13.0 takes the warp for being
 * together: seen in the core dump of a kernel that did not end on an H200.
 */
static unsigned lonely_waits(const unsigned char *code, size_t size)
{
	enum { INSTRUCTION = 16, OPERATION = 0xfff, YIELD = 0x946 };
	unsigned found = 0;

	for (size_t i = 0; i + INSTRUCTION <= size; i += INSTRUCTION)
		found += ((code[i] | code[i + 1] << 8) & OPERATION) == YIELD;
	return found;
}

/* In all kernels of a cubin. */
static unsigned lonely_waits_of(const cptx_cubin *c)
{
	const unsigned char *at = cptx_cubin_data(c);
	Elf64_Ehdr head;
	Elf64_Shdr names, section;
	unsigned found = 0, kernels = 0;

	memcpy(&head, at, sizeof head);
	memcpy(&names, at + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
	for (unsigned i = 0; i < head.e_shnum; i++) {
		memcpy(&section, at + head.e_shoff + i * sizeof section, sizeof section);
		if (strncmp((const char *)at + names.sh_offset + section.sh_name, ".text.", 6) != 0)
			continue;
		found += lonely_waits(at + section.sh_offset, section.sh_size);
		kernels++;
	}
	ck_assert_uint_gt(kernels, 0);
	return found;
}

static unsigned lonely_waits_in(cptx_module *m, const char *target)
{
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, target, NULL, &err);
	cptx_cubin *c = cptx_compile_ptx(ptx, &(cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS }, &err);

	ck_assert_msg(c, "%s", err.text);
	const unsigned found = lonely_waits_of(c);
	cptx_cubin_destroy(c);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return found;
}

/* The thread that copies by TMA in a warp that multiplies, too.  For sm_120 ptxas puts YIELD into waits of whole warps, too.
 */
START_TEST(no_lonely_waits)
{
	static const struct {
		uint32_t dim;
		const char *target;
	} kernels[] = { { 64, "sm_90" }, { 160, "sm_90a" }, { 256, "sm_90a" } };
	cptx_error err = { 0 };

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	for (size_t i = 0; i < 3; i++) {
		cptx_module *m = cptx_module_new(NULL);
		const cptx_attention_opt o = { .size = CPTX_OPT_SIZE(cptx_attention_opt),
			                           .mma = CPTX_ATTENTION_SYNC,
			                           .in = CPTX_BF16,
			                           .dim = kernels[i].dim,
			                           .causal = true,
			                           .tma = true };
		ck_assert_msg(cptx_attention_build(m, &o, &err), "%s", err.text);
		ck_assert_msg(!lonely_waits_in(m, kernels[i].target), "heads of %u: a thread waits alone", kernels[i].dim);
	}
}
END_TEST

/* The thread that copies rows in a warp that computes, too: one row after another, several at once, in chunks. */
START_TEST(no_lonely_waits_of_rows)
{
	static const struct {
		enum cptx_rows_kernel kernel;
		uint32_t n;
	} kernels[] = { { CPTX_ROWS_RMS_NORM, 4096 }, { CPTX_ROWS_RMS_NORM, 256 }, { CPTX_ROWS_SOFTMAX, 65536 } };
	cptx_error err = { 0 };

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	for (size_t i = 0; i < 3; i++) {
		cptx_module *m = cptx_module_new(NULL);
		const cptx_rows_opt o = { .size = CPTX_OPT_SIZE(cptx_rows_opt),
			                      .kernel = kernels[i].kernel,
			                      .in = CPTX_BF16,
			                      .n = kernels[i].n,
			                      .place = CPTX_ROWS_SHARED };
		cptx_rows_choice best;
		ck_assert_msg(cptx_rows_auto(&o, cptx_target_find("sm_90a"), 8192, 132, &best, 1, &err), "%s", err.text);
		ck_assert_msg(cptx_rows_build(m, &best.opt, &err), "%s", err.text);
		ck_assert_msg(!lonely_waits_in(m, "sm_90a"), "rows of %u: a thread waits alone", kernels[i].n);
	}
}
END_TEST

/* The one that is looked for is found where it is. */
START_TEST(lonely_waits_are_found)
{
	static const char body[] =
		"mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, s; @!%p1 bra N;\n"
		"L: mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0; @!%p2 bra L; st.shared.u32 [%r2+8], %r1;\n"
		"N: bar.warp.sync -1; ld.shared.u32 %r3, [%r2+8]; st.shared.u32 [%r2+12], %r3; ret; }\n";
	char text[1000];

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	snprintf(text, sizeof text,
	         ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n.reg .pred %%p<3>;\n"
	         ".reg .b32 %%r<4>;\n.shared .align 8 .b8 s[16];\n%s",
	         body);
	ck_assert_uint_eq(lonely_waits_in(cptx_parse(text, strlen(text), NULL), "sm_90a"), 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ours");
	TCase *t = tcase_create("ours");

	tcase_set_timeout(t, 300);
	tcase_add_test(t, gemms);
	tcase_add_test(t, blackwell);
	tcase_add_test(t, rows);
	tcase_add_test(t, hgemm_ladder);
	tcase_add_test(t, tcgen05_ladder);
	tcase_add_test(t, no_lonely_waits);
	tcase_add_test(t, no_lonely_waits_of_rows);
	tcase_add_test(t, lonely_waits_are_found);
	suite_add_tcase(s, t);
	return test_main("inspect_ours", s);
}
