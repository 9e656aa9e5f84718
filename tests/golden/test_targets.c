/* SPDX-License-Identifier: MIT */
/* Every ready kernel on every target (every other one without CPTX_WHOLE): ptxas takes it without a warning and without
 * spilling, or we say first why not. */
#include "kernels.h"
#include "../reparse.h"

#include "../../examples/examples.h"
#include "../test.h"
#include "../verify/assemble.h"
#include "../ask.h"
#include "../whole.h"

static const char *const names[] = { "sm_75",   "sm_80",   "sm_86",   "sm_87",   "sm_89",   "sm_90",  "sm_90a",  "sm_100",
	                                 "sm_100a", "sm_100f", "sm_101a", "sm_103a", "sm_110a", "sm_120", "sm_120a", "sm_121a" };
enum { NTARGET = sizeof names / sizeof names[0] };

static void gemm(cptx_module *m, const char *name, const cptx_target *t, enum cptx_type in, enum cptx_type out)
{
	cptx_gemm_opt o = cptx_gemm_default(CPTX_GEMM_SYNC, t);
	cptx_gemm_plan plan;
	cptx_error err = { .code = CPTX_OK };

	o.a = o.b = in;
	o.out = out;
	o.name = name;
	ck_assert_msg(cptx_gemm_check(&o, t, &plan, &err), "%s: %s", t->name, err.text);
	ck_assert_msg(cptx_gemm_build(m, &o, &err) != NULL, "%s: %s", t->name, err.text);
}

static cptx_module *all_kernels(const cptx_target *t)
{
	cptx_module *m = cptx_module_new(NULL);

	if (t->number >= 80) {
		gemm(m, "gemm_bf16_f32", t, CPTX_BF16, CPTX_F32);
		gemm(m, "gemm_bf16_bf16", t, CPTX_BF16, CPTX_BF16);
		gemm(m, "gemm_f16_f16", t, CPTX_F16, CPTX_F16);
	}
	rms_norm(m, 8192, 512);
	softmax(m, 8192, 512);
	swiglu(m, 256, 4);
	build_flow(m);
	return m;
}

START_TEST(ptxas_takes_all)
{
	assembly jobs[NTARGET] = { { 0 } };
	cptx_ptx *ptx[NTARGET];
	cptx_error err = { .code = CPTX_OK };
	const unsigned step = whole() ? 1 : 2, n = (NTARGET + step - 1) / step;

	for (unsigned i = 0; i < n; i++) {
		const char *name = names[i * step];
		cptx_module *m = all_kernels(cptx_target_find(name));
		ptx[i] = cptx_emit(m, name, NULL, &err);
		ck_assert_msg(ptx[i] != NULL, "%s: %s", name, err.text);
		ck_assert(test_reparses(cptx_ptx_text(ptx[i])));
		jobs[i] = (assembly){ .target = name, .ptx = cptx_ptx_text(ptx[i]) };
		cptx_module_destroy(m);
	}
	if (test_ptxas())
		assemble(jobs, n);
	else
		skip("ptxas, to judge the kernels on %u targets", n);
	for (unsigned i = 0; i < n && test_ptxas(); i++) {
		unsigned kernels = 0, spills = assembly_spills(jobs[i].said, &kernels);
		ck_assert_msg(!jobs[i].status, "%s: %s", jobs[i].target, jobs[i].said);
		ck_assert_msg(!strstr(jobs[i].said, "warning"), "%s: %s", jobs[i].target, jobs[i].said);
		ck_assert_msg(spills == 0, "%s: %s", jobs[i].target, jobs[i].said);
		ck_assert_uint_ge(kernels, i == 0 ? 4 : 7);
	}
	assemble_free(jobs, n);
	for (unsigned i = 0; i < n; i++)
		cptx_ptx_destroy(ptx[i]);
}
END_TEST

/* sm_75 has neither cp.async nor this mma: the shape's check says so, and printing names the first one met, and what to do.
 */
START_TEST(gemm_before_sm_80)
{
	cptx_module *m = cptx_module_new(NULL);
	const cptx_target *t = cptx_target_find("sm_75");
	cptx_gemm_opt o = {
		.bm = 64, .bn = 64, .bk = 32, .warps_m = 2, .warps_n = 2, .stages = 2, .a = CPTX_F16, .b = CPTX_F16, .out = CPTX_F32
	};
	cptx_error err = { .code = CPTX_OK };

	ck_assert(!cptx_gemm_check(&o, t, NULL, FRESH(&err)));
	ck_assert_str_eq(
		err.text,
		"gemm for sm_80: cp.async and mma.sync.m16n8k16 are not available on sm_75; targets from sm_80 on have them");
	ck_assert(cptx_gemm_build(m, &o, FRESH(&err)) != NULL);
	ck_assert_ptr_null(cptx_emit(m, "sm_75", NULL, FRESH(&err)));
	ck_assert_int_eq(err.code, CPTX_E_TARGET);
	ck_assert_msg(strstr(err.text, "kernel gemm: cp.async.cg.shared.global") &&
	                  strstr(err.text, "is not available on sm_75") && strstr(err.text, "targets that have it: sm_80") &&
	                  strstr(err.text, "Instead: load with ld.global"),
	              "%s", err.text);
	ck_assert_ptr_nonnull(strstr(err.file, "src/gemm/"));
	ck_assert_uint_gt(err.line, 0);
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("targets");
	TCase *c = tcase_create("targets");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(c, 0);
	tcase_add_test(c, ptxas_takes_all);
	tcase_add_test(c, gemm_before_sm_80);
	suite_add_tcase(s, c);
	return test_main("targets", s);
}
