/* SPDX-License-Identifier: MIT */
/* Loops, units, registers alive, bank conflicts and occupancy, against figures worked out by hand. */
#include "../test.h"

#include <cptx/emu.h>
#include <cptx/inspect.h>

typedef struct looked {
	cptx_module *m;
	cptx_flow *f;
	const cptx_point *p;
	size_t n;
} looked;

static looked look_for(const char *target, const char *body)
{
	char text[4096];
	looked l;
	cptx_error err = { 0 };

	snprintf(text, sizeof text,
	         ".version 8.0\n.target %s\n.address_size 64\n.const .align 4 .b32 t[64];\n"
	         ".extern .shared .align 128 .b8 ring[];\n.visible .entry k(.param .u64 p)\n{\n"
	         ".reg .pred %%p<9>;\n.reg .b32 %%r<99>;\n.reg .b64 %%d<9>;\n.shared .align 16 .b8 s[4096];\n%s\nret;\n}\n",
	         target, body);
	l.m = cptx_parse(text, strlen(text), NULL);
	ck_assert_msg(!cptx_module_error(l.m), "%s", cptx_module_error(l.m) ? cptx_module_error(l.m)->text : "");
	l.f = cptx_flow_of(cptx_module_body(l.m, NULL), &err);
	ck_assert_msg(l.f, "%s", err.text);
	l.p = cptx_flow_points(l.f, &l.n);
	return l;
}

static looked look(const char *body) { return look_for("sm_80", body); }

static void done(looked *l)
{
	cptx_flow_destroy(l->f);
	cptx_module_destroy(l->m);
}

START_TEST(alive)
{
	looked l = look("ld.param.u64 %d1, [p];\n"      /* 0: d1: 2 */
	                "ld.global.u32 %r1, [%d1];\n"   /* 1: d1 r1: 3 */
	                "ld.global.u32 %r2, [%d1+4];\n" /* 2: 4 */
	                "add.u32 %r3, %r1, %r2;\n"      /* 3: in d1 r1 r2: 4 */
	                "setp.eq.u32 %p1, %r3, 0;\n"    /* 4: d1 r3: 3, and p1 */
	                "@%p1 mov.u32 %r3, 7;\n"        /* 5: the old r3 may stay: 3 */
	                "st.global.u32 [%d1], %r3;");   /* 6: 3 */
	static const unsigned live[] = { 2, 3, 4, 4, 3, 3, 3, 0 }, predicates[] = { 0, 0, 0, 0, 1, 1, 0, 0 };
	uint32_t at;

	ck_assert_uint_eq(l.n, 8);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_msg(l.p[i].live == live[i] && l.p[i].predicates == predicates[i], "point %u: %u registers, %u predicates",
		              i, l.p[i].live, l.p[i].predicates);
	ck_assert_uint_eq(cptx_flow_peak(l.f, &at), 4);
	ck_assert_uint_eq(at, 2);
	done(&l);
}
END_TEST

START_TEST(loops)
{
	looked l = look("mov.u32 %r1, 0;\nmov.u32 %r9, 1;\nOUTER:\nmov.u32 %r2, 0;\nINNER:\n"
	                "add.u32 %r2, %r2, %r9;\nsetp.lt.u32 %p1, %r2, 8;\n@%p1 bra INNER;\n"
	                "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p2, %r1, 8;\n@%p2 bra OUTER;\n"
	                "bra SKIP;\nmov.u32 %r3, %r4;\nSKIP:");
	static const unsigned depth[] = { 0, 0, 1, 2, 2, 2, 1, 1, 1, 0, 0, 0 };
	size_t n;
	const cptx_loop *loop = cptx_flow_loops(l.f, &n);

	ck_assert_uint_eq(n, 2);
	for (size_t i = 0; i < l.n; i++)
		ck_assert_msg(l.p[i].depth == depth[i], "point %zu: depth %u", i, l.p[i].depth);
	ck_assert(loop[0].first == 2 && loop[0].last == 8 && loop[0].outer == UINT32_MAX && loop[0].depth == 1);
	ck_assert(loop[1].first == 3 && loop[1].last == 5 && loop[1].outer == 0 && loop[1].depth == 2);
	ck_assert_uint_eq(cptx_flow_hottest(l.f), 1);
	ck_assert_uint_eq(l.p[4].live, 3); /* r1 and r9 live around the inner loop, and r2 */
	done(&l);
}
END_TEST

START_TEST(units)
{
	looked l = look(
		"ld.param.u64 %d1, [p];\nld.shared.u32 %r1, [s];\nld.local.u32 %r2, [%d1];\nsin.approx.f32 %r3, %r2;\n"
		"fma.rn.f32 %r4, %r3, %r3, %r3;\nadd.f64 %d2, %d1, %d1;\nbar.sync 0;\ncp.async.ca.shared.global [s], [%d1], 16;\n"
		"cp.async.wait_all;\natom.global.add.u32 %r5, [%d1], 1;\natom.shared.add.u32 %r5, [s], 1;\n"
		"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r1,%r2,%r3,%r4}, {%r5,%r6,%r7,%r8}, {%r9,%r10}, "
		"{%r1,%r2,%r3,%r4};");
	static const enum cptx_unit unit[] = { CPTX_UNIT_CONSTANT, CPTX_UNIT_SHARED, CPTX_UNIT_LOCAL,  CPTX_UNIT_SPECIAL,
		                                   CPTX_UNIT_FLOAT,    CPTX_UNIT_DOUBLE, CPTX_UNIT_SYNC,   CPTX_UNIT_COPY,
		                                   CPTX_UNIT_SYNC,     CPTX_UNIT_GLOBAL, CPTX_UNIT_SHARED, CPTX_UNIT_TENSOR,
		                                   CPTX_UNIT_CONTROL };

	ck_assert_uint_eq(l.n, 13);
	for (size_t i = 0; i < l.n; i++)
		ck_assert_msg(l.p[i].unit == unit[i], "point %zu: %s", i, cptx_unit_name(l.p[i].unit));
	done(&l);
}
END_TEST

/* Conflicts of one load at s + tid.x * stride. */
static unsigned conflicts(unsigned stride, const char *type, bool *known)
{
	char body[512];
	uint32_t nknown, accesses;

	snprintf(body, sizeof body,
	         "mov.u32 %%r1, %%tid.x;\nmov.u32 %%r2, s;\nmad.lo.u32 %%r3, %%r1, %u, %%r2;\nld.shared.%s [%%r3+64];\n", stride,
	         type);
	looked l = look(body);
	unsigned n = cptx_flow_conflicts(l.f, &nknown, &accesses);
	ck_assert_uint_eq(accesses, 1);
	*known = nknown == 1;
	done(&l);
	return n;
}

START_TEST(banks)
{
	bool known;

	ck_assert(conflicts(4, "u32 %r4,", &known) == 0 && known);
	ck_assert(conflicts(8, "u32 %r4,", &known) == 1 && known);
	ck_assert(conflicts(128, "u32 %r4,", &known) == 31 && known);
	ck_assert(conflicts(132, "u32 %r4,", &known) == 0 && known);
	ck_assert(conflicts(16, "v4.u32 {%r4,%r5,%r6,%r7},", &known) == 0 && known);
	ck_assert(conflicts(0, "u32 %r4,", &known) == 0 && known);
	uint32_t n, accesses;
	looked w =
		look("mov.u32 %r1, %tid.x;\nshr.u32 %r2, %r1, 5;\nshfl.sync.idx.b32 %r3, %r2, 0, 31, -1;\nand.b32 %r4, %r1, 31;\n"
	         "mad.lo.u32 %r5, %r3, 1024, %r4;\nshl.b32 %r6, %r4, 6;\nst.shared.v2.u32 [%r6], {%r1, %r2};\nst.shared.u32 "
	         "[%r5], %r1;");
	ck_assert(cptx_flow_conflicts(w.f, &n, &accesses) == 2 * 7 && n == 2 &&
	          accesses == 2); /* 64 bytes apart: two banks of 16 lanes */
	done(&w);
	looked l = look("ld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 4;\nadd.u64 %d2, %d1, %d2;\n"
	                "ld.global.u32 %r2, [%d2];\nld.shared.u32 %r3, [%r2];");
	ck_assert(cptx_flow_conflicts(l.f, &n, &accesses) == 0 && n == 0 && accesses == 1);
	done(&l);
}
END_TEST

/* The offset of lane i, in %r2, may be what the text does not tell, though all that it is made of is the same. */
START_TEST(banks_unknown)
{
	static const struct row {
		const char *offset;
		unsigned known, conflicts;
	} rows[] = {
		{ "mov.u32 %r1, %tid.x;\nshl.b32 %r1, %r1, 2;\nmov.u32 %r4, t;\nadd.u32 %r1, %r1, %r4;\nld.const.u32 %r2, [%r1];", 0,
		  0 },
		{ "ld.const.u32 %r2, [t+8];", 1, 0 },
		{ "ld.param.u32 %r2, [p];", 1, 0 },
		{ "mov.u32 %r1, s;\natom.shared.add.u32 %r2, [%r1], 4;", 0, 0 },
		{ "mov.u32 %r1, s;\nld.shared.u32 %r2, [%r1];", 1, 0 },
		{ "mov.u32 %r1, %lanemask_lt;\npopc.b32 %r2, %r1;", 0, 0 },
		{ "mov.u32 %r1, %lanemask_lt;\nand.b32 %r2, %r1, 0;", 1, 0 },
		{ "mov.u32 %r1, %lanemask_lt;\nand.b32 %r2, %r1, 128;", 1, 1 }, /* lanes 0 to 7, and the others */
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char body[512];
		uint32_t known, accesses;
		snprintf(body, sizeof body, "%s\nmov.u32 %%r8, s;\nadd.u32 %%r9, %%r8, %%r2;\nst.shared.u32 [%%r9], 1;",
		         rows[i].offset);
		looked l = look(body);
		uint32_t conflicts = cptx_flow_conflicts(l.f, &known, &accesses);
		const cptx_point *store = &l.p[l.n - 2];
		known -= accesses - 1; /* the loads above are known */
		ck_assert_msg(known == rows[i].known && conflicts == rows[i].conflicts && store->conflicts == conflicts,
		              "row %zu: %u known, %u conflicts", i, known, conflicts);
		done(&l);
	}
}
END_TEST

/* A ring of 3 stages with full barriers in front of empty ones, walked by a pointer that wraps, by two roles. */
static const char ring[] =
	"mbarrier.init.shared.b64 [s+64], 1;\nmbarrier.init.shared.b64 [s+72], 1;\nmbarrier.init.shared.b64 [s+80], 1;\n"
	"mbarrier.init.shared.b64 [s+88], 256;\nmbarrier.init.shared.b64 [s+96], 256;\nmbarrier.init.shared.b64 [s+104], 256;\n"
	"mov.u32 %r10, s;\nmov.u32 %r2, 0;\nmov.u32 %r9, ring;\nadd.u32 %r1, %r10, 64;\nld.param.u64 %d1, [p];\n"
	"L:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r1+24], %r3;\n@!%p1 bra L;\n"
	"mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 8192;\nmad.lo.u32 %r4, %r2, 8192, %r9;\nadd.u32 %r5, %r4, 4096;\n"
	"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%d1], 4096, [%r1];\n"
	"add.u32 %r2, %r2, 1;\nadd.u32 %r1, %r1, 8;\nsetp.eq.u32 %p2, %r2, 3;\nselp.u32 %r2, 0, %r2, %p2;\n"
	"@%p2 sub.u32 %r1, %r1, 24;\n@%p3 bra L;\n"
	"mov.u32 %r7, s+64;\nmapa.shared::cluster.u32 %r6, %r7, 1;\nmbarrier.arrive.shared::cluster.b64 _, [%r6+24];\n"
	"ld.param.u32 %r8, [p];\nmbarrier.arrive.shared.b64 _, [%r8];\n";

START_TEST(stages)
{
	static const enum cptx_stage_role roles[] = { CPTX_STAGE_INIT, CPTX_STAGE_INIT,   CPTX_STAGE_INIT,  CPTX_STAGE_INIT,
		                                          CPTX_STAGE_INIT, CPTX_STAGE_INIT,   CPTX_STAGE_WAIT,  CPTX_STAGE_EXPECT,
		                                          CPTX_STAGE_COPY, CPTX_STAGE_ARRIVE, CPTX_STAGE_ARRIVE };
	static const uint32_t sets[] = { 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, UINT32_MAX };
	looked l = look_for("sm_90", ring);
	size_t n;
	const cptx_shared_var *v = cptx_flow_shared(l.f, &n);
	ck_assert(n == 2 && !strcmp(v[0].name, "s") && v[0].size == 4096 && v[0].align == 16 && v[0].line && !v[0].of_module);
	ck_assert(!strcmp(v[1].name, "ring") && !v[1].size && v[1].align == 128 && v[1].of_module);
	const cptx_barrier_set *b = cptx_flow_barriers(l.f, &n);
	ck_assert_uint_eq(n, 2);
	ck_assert(b[0].variable == 0 && b[0].offset == 64 && b[0].n == 3 && b[0].arrivals == 1);
	ck_assert(b[1].variable == 0 && b[1].offset == 88 && b[1].n == 3 && b[1].arrivals == 256);
	const cptx_stage_use *u = cptx_flow_stages(l.f, &n);
	ck_assert_uint_eq(n, sizeof sets / sizeof *sets);
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(u[i].role == roles[i] && u[i].set == sets[i], "use %zu: %s of set %d", i,
		              cptx_stage_role_name(u[i].role), (int)u[i].set);
	ck_assert(u[7].count == 8192 && u[8].count == 4096);
	ck_assert(u[8].buffer == 1 && u[8].offset == 4096 && u[8].stride == 8192 && u[7].buffer == UINT32_MAX);
	done(&l);
	l = look(
		"mov.u32 %r1, %tid.x;\nshl.b32 %r1, %r1, 3;\nmov.u32 %r2, s;\nadd.u32 %r3, %r1, %r2;\n"
		"mbarrier.init.shared.b64 [%r3], 32;\nmbarrier.arrive.shared.b64 _, [s+16];\nmbarrier.arrive.shared.b64 _, [s+24];");
	b = cptx_flow_barriers(l.f, &n);
	ck_assert(n == 3 && b[0].n == 0 && b[0].arrivals == 32 && b[1].offset == 16 && b[2].offset == 24);
	done(&l);
	l = look("mbarrier.init.shared.b64 [s], 1;\nmbarrier.init.shared.b64 [s+8], 1;\nmbarrier.arrive.shared.b64 _, [s];\n"
	         "mbarrier.arrive.shared.b64 _, [s+8];"); /* unrolled */
	b = cptx_flow_barriers(l.f, &n);
	ck_assert(n == 1 && b[0].offset == 0 && b[0].n == 2 && b[0].arrivals == 1);
	done(&l);
	l = look("mov.s64 %d1, 0x8000000000000000;\nadd.s64 %d2, %d1, -1;\nsub.s64 %d3, %d2, %d1;\nmul.lo.s64 %d4, %d3, %d1;\n"
	         "add.s64 %d4, %d4, %d1;\nmov.u32 %r1, s;\ncvt.u64.u32 %d5, %r1;\nsub.s64 %d5, %d5, %d1;\n"
	         "mbarrier.arrive.shared.b64 _, [%d5];\nmbarrier.arrive.shared.b64 _, [%d4];"); /* beyond 64 bits */
	b = cptx_flow_barriers(l.f, &n);
	ck_assert(n == 1 && b[0].variable == 0 && b[0].n == 0);
	done(&l);
}
END_TEST

START_TEST(occupancy)
{
	static const struct row {
		const char *target;
		unsigned registers, smem, threads, ctas;
		enum cptx_limit limit;
	} rows[] = {
		{ "sm_80", 32, 0, 256, 8, CPTX_LIMIT_REGISTERS },    { "sm_80", 16, 0, 256, 8, CPTX_LIMIT_THREADS },
		{ "sm_80", 33, 0, 256, 6, CPTX_LIMIT_REGISTERS },    { "sm_90a", 168, 0, 384, 1, CPTX_LIMIT_REGISTERS },
		{ "sm_80", 16, 49152, 128, 3, CPTX_LIMIT_SMEM },     { "sm_75", 16, 32768, 128, 2, CPTX_LIMIT_SMEM },
		{ "sm_80", 16, 0, 32, 32, CPTX_LIMIT_CTAS },         { "sm_86", 16, 101376, 128, 1, CPTX_LIMIT_SMEM },
		{ "sm_120a", 255, 0, 256, 1, CPTX_LIMIT_REGISTERS }, { "sm_80", 255, 0, 512, 0, CPTX_LIMIT_REGISTERS },
		{ "sm_75", 16, 0, 32, 16, CPTX_LIMIT_CTAS },         { "sm_90a", 64, 230000, 128, 1, CPTX_LIMIT_SMEM },
		{ "sm_90a", 64, 233000, 128, 0, CPTX_LIMIT_SMEM },
	};
	cptx_occupancy o;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		ck_assert(cptx_occupancy_of(cptx_target_find(r->target), r->registers, r->smem, r->threads, &o));
		ck_assert_msg(o.ctas == r->ctas && o.limit == r->limit, "row %zu: %u CTAs, limited by %s", i, o.ctas,
		              cptx_limit_name(o.limit));
		ck_assert_uint_eq(o.warps, o.ctas * ((r->threads + 31) / 32));
		ck_assert_uint_lt(o.by_smem, 1024); /* a number of CTAs where none is used, too */
	}
	ck_assert(!cptx_occupancy_of(cptx_target_find("sm_80"), 32, 0, 0, &o) &&
	          !cptx_occupancy_of(cptx_target_find("sm_80"), 32, 0, 1025, &o));
	ck_assert(!cptx_occupancy_of(NULL, 32, 0, 32, &o));
}
END_TEST

/* One warp on the emulator: conflicts by the text are those that it counts. */
START_TEST(banks_as_emulated)
{
	static const char *const index[] = {
		"mul.lo.u32 %r2, %r1, 16;",
		"mul.lo.u32 %r2, %r1, 48;",
		"mul.lo.u32 %r2, %r1, 64;",
		"and.b32 %r7, %r1, 7;\nshl.b32 %r8, %r7, 7;\nshr.u32 %r3, %r1, 3;\nmad.lo.u32 %r2, %r3, 16, %r8;",
		"and.b32 %r7, %r1, 15;\nshl.b32 %r8, %r7, 7;\nand.b32 %r3, %r1, 7;\nshl.b32 %r9, %r3, 4;\nxor.b32 %r2, %r8, %r9;",
		"rem.u32 %r7, %r1, 5;\nshl.b32 %r2, %r7, 4;"
	};
	static const char *const access[] = { "st.shared.u32 [%r4], %r1;", "ld.shared.u32 %r5, [%r4];",
		                                  "st.shared.v2.u32 [%r4], {%r1, %r1};",
		                                  "st.shared.v4.u32 [%r4+16], {%r1, %r1, %r1, %r1};" };
	cptx_emu_counters counted;
	uint32_t known, accesses;

	for (size_t i = 0; i < sizeof index / sizeof *index * 4; i++) {
		char body[512];
		snprintf(body, sizeof body, "mov.u32 %%r1, %%tid.x;\n%s\nmov.u32 %%r6, s;\nadd.u32 %%r4, %%r6, %%r2;\n%s\n",
		         index[i / 4], access[i % 4]);
		looked l = look(body);
		cptx_error err = { 0 };
		cptx_device *dev = cptx_device_open("emu:sm_80", &err);
		cptx_program *p = cptx_device_load(dev, l.m, NULL, &err);
		cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, .block = { 32 }, CPTX_ARGS((uint64_t)0) }, NULL, &err);
		ck_assert_msg(!err.code || err.code == CPTX_E_FINDING, "%s", err.text);
		ck_assert(cptx_emu_get_counters(dev, &counted));
		uint32_t conflicts = cptx_flow_conflicts(l.f, &known, &accesses);
		ck_assert_uint_eq(accesses, 1);
		ck_assert_msg(known && conflicts == counted.bank_conflicts, "%s %s: %u conflicts, emulated %u", index[i / 4],
		              access[i % 4], conflicts, (unsigned)counted.bank_conflicts);
		cptx_program_destroy(p);
		cptx_device_close(dev);
		done(&l);
	}
}
END_TEST

/* What is too large ends soon, with an error. */
START_TEST(too_large)
{
	enum { MOST = 30000, LINE = 64 };
	char *text = malloc(MOST * LINE + 256);
	size_t n = (size_t)sprintf(
		text, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %%p;\n.reg .b32 %%r<%d>;\n",
		_i ? 2 : MOST + 2);
	cptx_error err = { 0 };

	for (int i = 0; i < MOST; i++)
		n += (size_t)sprintf(text + n, "L%d: add.u32 %%r%d, %%r%d, 1; @%%p bra L%d;\n", i, _i ? 1 : i + 1, _i ? 1 : i, i);
	n += (size_t)sprintf(text + n, "ret;\n}\n");
	cptx_module *m = cptx_parse(text, n, NULL);
	ck_assert(!cptx_module_error(m));
	cptx_flow *f = cptx_flow_of(cptx_module_body(m, NULL), &err);
	ck_assert(!f && err.code == CPTX_E_LIMIT);
	ck_assert_msg(strstr(err.text, "too many to follow") != NULL, "%s", err.text);
	cptx_module_destroy(m);
	free(text);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("flow");
	TCase *t = tcase_create("flow");

	tcase_add_test(t, alive);
	tcase_add_test(t, loops);
	tcase_add_test(t, units);
	tcase_add_test(t, banks);
	tcase_add_test(t, banks_unknown);
	tcase_add_test(t, banks_as_emulated);
	tcase_add_test(t, stages);
	tcase_add_test(t, occupancy);
	tcase_add_loop_test(t, too_large, 0, 2);
	suite_add_tcase(s, t);
	return test_main("inspect_flow", s);
}
