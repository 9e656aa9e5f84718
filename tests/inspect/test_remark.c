/* SPDX-License-Identifier: MIT */
/* What ptxas says, as data: fixed text, and what ptxas itself says of kernels with a fault each, on the line that has it. */
#include "../ask.h"
#include "../test.h"

#include <cptx/compile.h>
#include <cptx/cptx.h>
#include <cptx/inspect.h>

static const char log_text[] = "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to "
							   "determine register count at entry.\n"
							   "ptxas info    : (C7517) warpgroup.wait is injected in around line 17 by compiler to allow "
							   "use of registers defined by GMMA in "
							   "function 'k'\n"
							   "ptxas /tmp/x.ptx, line 26; error   : Not a name of any known instruction: 'bogus'\n"
							   "ptxas /tmp/x.ptx, line 3; warning : Instruction 'shfl' without '.sync' is deprecated\r\n"
							   "ptxas fatal   : Ptx assembly aborted due to errors\n"
							   "ptxas info    : 8 bytes gmem, 40 bytes cmem[4]\n"
							   "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
							   "ptxas info    : Function properties for k\n"
							   "    40 bytes stack frame, 36 bytes spill stores, 24 bytes spill loads\n"
							   "ptxas info    : Used 34 registers, used 2 barriers, 48 bytes cumulative stack size, 1024 "
							   "bytes smem, 388 bytes cmem[0], 8 bytes "
							   "cmem[2]\n"
							   "ptxas info    : Compile time = 7.991 ms\n"
							   "ptxas info    : Function properties for helper\n"
							   "    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
							   "something else\n";

START_TEST(text)
{
	cptx_verdict *v = cptx_verdict_read(log_text, sizeof log_text - 1, NULL);
	const cptx_usage *u = cptx_verdict_usage_of(v, "k"), *h = cptx_verdict_usage_of(v, "helper");
	const cptx_remark *r[6];

	for (size_t i = 0; i < 6; i++)
		r[i] = cptx_verdict_remark(v, i);
	ck_assert(u && u->is_kernel && !strcmp(u->target, "sm_90a"));
	ck_assert(u->registers == 34 && u->barriers == 2 && u->stack == 48 && u->frame == 40 && u->spill_stores == 36);
	ck_assert(u->spill_loads == 24 && u->static_smem == 1024 && u->constant[0] == 388 && u->constant[2] == 8);
	ck_assert(h && !h->is_kernel && h->frame == 16 && !cptx_verdict_usage_of(v, "other"));
	ck_assert(r[4] && !r[5]);
	ck_assert(!strcmp(r[0]->code, "C7508") && !strcmp(r[0]->topic, "setmaxnreg-entry") &&
	          r[0]->severity == CPTX_SAID_CONCERN);
	ck_assert(r[1]->ptx_line == 17 && !strcmp(r[1]->function, "k") && !strcmp(r[1]->topic, "wgmma-wait-injected") &&
	          !r[1]->found);
	ck_assert(r[2]->severity == CPTX_SAID_ERROR && r[2]->ptx_line == 26 && !r[2]->at.file && strstr(r[2]->text, "'bogus'"));
	ck_assert(r[3]->severity == CPTX_SAID_WARNING && r[3]->ptx_line == 3 && r[3]->text[strlen(r[3]->text) - 1] == 'd');
	ck_assert(!strcmp(r[4]->topic, "spill") && strstr(r[4]->text, "36 bytes of spill stores, 24"));
	cptx_verdict_destroy(v);
}
END_TEST

START_TEST(cut_short)
{
	for (size_t n = 0; n < sizeof log_text; n++) {
		char *part = malloc(n + !n);
		memcpy(part, log_text, n);
		cptx_verdict *v = cptx_verdict_read(part, n, NULL);
		ck_assert(v);
		cptx_verdict_destroy(v);
		free(part);
	}
}
END_TEST

/* ---- planted faults ---- */

typedef struct planted {
	cptx_module *m;
	cptx_ptx *ptx;
	cptx_verdict *v;
} planted;

static planted ask(cptx_module *m, const char *target, bool by_loc)
{
	planted p = { .m = m };
	cptx_error err = { 0 };

	p.ptx = cptx_emit(m, target, &(cptx_emit_opt){ .lines = by_loc }, &err);
	ck_assert_msg(p.ptx, "%s", err.text);
	cptx_cubin *c = cptx_compile_ptx(p.ptx, &(cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS, .verbose = true }, &err);
	ck_assert_msg(c, "%s", err.text);
	const char *message = cptx_cubin_log(c);
	cptx_verdict_opt opt = { .printed = by_loc ? NULL : p.ptx,
		                     .ptx = cptx_ptx_text(p.ptx),
		                     .ptx_size = cptx_ptx_size(p.ptx) };
	p.v = cptx_verdict_read(message, strlen(message), &opt);
	cptx_cubin_destroy(c);
	return p;
}

static const cptx_remark *remark(const planted *p, const char *topic)
{
	const cptx_remark *r = NULL;

	for (size_t i = 0; (r = cptx_verdict_remark(p->v, i)); i++)
		if (!strcmp(r->topic, topic))
			return r;
	return NULL;
}

static void expect(cptx_module *m, const char *target, const char *topic, unsigned line)
{
	if (!test_ptxas())
		skip("ptxas, to see %s", topic);
	for (int by_loc = 0; test_ptxas() && by_loc < 2; by_loc++) {
		planted p = ask(m, target, by_loc);
		const cptx_remark *r = remark(&p, topic);
		ck_assert_msg(r, "no remark on %s", topic);
		ck_assert_msg(r->at.file && strstr(r->at.file, "test_remark.c") && r->at.line == line,
		              "%s at %s:%u, not %u (PTX %u)", topic, r->at.file ? r->at.file : "?", r->at.line, line, r->ptx_line);
		ck_assert(*r->advice && r->severity == CPTX_SAID_CONCERN);
		cptx_verdict_destroy(p.v);
		cptx_ptx_destroy(p.ptx);
	}
	cptx_module_destroy(m);
}

static const char mma[] = "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {}, {}, {}, 1, 1, 1, 0, 0;";

START_TEST(accumulator_read)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 128 });
	cptx_val p = cptx_param(k, CPTX_PTR, "p"), d = cptx_regs(k, CPTX_F32, 4), desc = cptx_var(k, CPTX_U64, 0);
	unsigned line;

	cptx_wgmma_fence(k);
	cptx_asm(k, mma, d, desc, desc);
	cptx_st(k, p, cptx_elem(d, 2), .space = CPTX_GLOBAL), line = __LINE__;
	cptx_asm(k, mma, d, desc, desc);
	cptx_wgmma_commit_group(k);
	cptx_wgmma_wait_group(k, 0);
	cptx_st(k, p, cptx_elem(d, 0), .space = CPTX_GLOBAL);
	expect(m, "sm_90a", "wgmma-accumulator-read", line);
}
END_TEST

START_TEST(spill)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 1024 });
	cptx_val p = cptx_param(k, CPTX_PTR, "p"), at = cptx_mad_wide(k, cptx_tid_x(k), 4, p), v[160];
	unsigned line = __LINE__ + 3;

	for (int i = 0; i < 160; i++)
		v[i] = cptx_ld(k, cptx_offset(at, 4096 * i), .space = CPTX_GLOBAL, .type = CPTX_F32, .sem = CPTX_VOLATILE);
	for (int i = 0; i < 160; i++)
		cptx_st(k, cptx_offset(at, 4096 * i), v[159 - i], .space = CPTX_GLOBAL, .sem = CPTX_VOLATILE);
	expect(m, "sm_80", "spill", line);
}
END_TEST

START_TEST(setmaxnreg)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_val p = cptx_param(k, CPTX_PTR, "p");
	unsigned line;

	cptx_setmaxnreg(k, 40, .op = CPTX_DEC), line = __LINE__;
	cptx_st(k, p, cptx_tid_x(k), .space = CPTX_GLOBAL);
	expect(m, "sm_90a", "setmaxnreg-entry", line);
}
END_TEST

/* Text that somebody else made, with lines of another file. */
static const char foreign[] =
	".version 8.4\n.target sm_90a\n.address_size 64\n.file 1 \"user.c\"\n"
	".visible .entry k(.param .u64 p)\n{\n\t.reg .f32 %f<9>;\n\t.reg .b64 %d<4>;\n"
	"\t.loc 1 10 0\n\tld.param.u64 %d3, [p];\n\tmov.b64 %d1, 0;\n\tmov.b64 %d2, 0;\n\twgmma.fence.sync.aligned;\n"
	"\t.loc 1 12 0\n"
	"\twgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %d1, %d2, 1, 1, 1, 0, 0;\n"
	"\t.loc 1 13 0\n\tadd.f32 %f0, %f0, 0f3f800000;\n\t.loc 1 14 0\n"
	"\twgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %d1, %d2, 1, 1, 1, 0, 0;\n"
	"\twgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n\t.loc 1 16 0\n"
	"\tst.global.f32 [%d3], %f0;\n\tst.global.f32 [%d3+4], %f1;\n\t.loc 1 18 0\n"
	"\tsetmaxnreg.dec.sync.aligned.u32 40;\n\tret;\n}\n";

START_TEST(lines_of_loc)
{
	static const struct row {
		const char *topic;
		unsigned line;
	} rows[] = { { "wgmma-wait-injected", 13 }, { "wgmma-fence-injected", 14 }, { "setmaxnreg-entry", 18 } };
	cptx_error err = { 0 };

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	cptx_cubin *c = cptx_compile(foreign, sizeof foreign - 1,
	                             &(cptx_compile_opt){ .compiler = CPTX_COMPILER_PTXAS, .verbose = true }, &err);
	ck_assert_msg(c, "%s", err.text);
	const char *message = cptx_cubin_log(c);
	planted p = { .v = cptx_verdict_read(message, strlen(message),
		                                 &(cptx_verdict_opt){ .ptx = foreign, .ptx_size = sizeof foreign - 1 }) };
	for (size_t i = 0; i < 3; i++) {
		const cptx_remark *r = remark(&p, rows[i].topic);
		ck_assert_msg(r && r->at.file && !strcmp(r->at.file, "user.c") && r->at.line == rows[i].line, "%s at line %u",
		              rows[i].topic, r ? r->at.line : 0);
	}
	cptx_verdict_destroy(p.v);
	cptx_cubin_destroy(c);
}
END_TEST

/* What is not there is told, not followed. */
START_TEST(nothing_given)
{
	static const char message[] = "ptxas /tmp/a, line 77; b.ptx, line 4; warning : odd\n";
	cptx_verdict *v = cptx_verdict_read(NULL, 5, NULL);
	cptx_occupancy o;

	ck_assert(v && !cptx_verdict_remark(v, 0) && !cptx_verdict_usage(v, 0) && !cptx_verdict_usage_of(v, NULL));
	cptx_verdict_destroy(v);
	cptx_verdict_destroy(NULL);
	ck_assert(!cptx_verdict_remark(NULL, 0) && !cptx_verdict_usage_of(NULL, "k") && !cptx_verdict_origin(NULL, 3).file);
	ck_assert(!cptx_occupancy_of(cptx_target_find("sm_90"), 32, 0, 32, NULL));
	ck_assert(!cptx_occupancy_of(NULL, 32, 0, 32, &o));
	/* A file may be called like a line. */
	v = cptx_verdict_read(message, sizeof message - 1, NULL);
	ck_assert(cptx_verdict_remark(v, 0));
	ck_assert_uint_eq(cptx_verdict_remark(v, 0)->ptx_line, 4);
	ck_assert_str_eq(cptx_verdict_remark(v, 0)->text, "odd");
	cptx_verdict_destroy(v);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("said");
	TCase *t = tcase_create("said");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, text);
	tcase_add_test(t, cut_short);
	tcase_add_test(t, accumulator_read);
	tcase_add_test(t, lines_of_loc);
	tcase_add_test(t, spill);
	tcase_add_test(t, setmaxnreg);
	tcase_add_test(t, nothing_given);
	suite_add_tcase(s, t);
	return test_main("inspect_said", s);
}
