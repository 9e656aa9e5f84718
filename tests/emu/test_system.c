/* SPDX-License-Identifier: MIT */
/* What the system gives to kernels: printf, assertions, a heap; clusters to cancel, registers to move. */
#include "trial.h"

/* ---- printf ---- */

typedef struct output {
	char text[8192];
	size_t n;
} output;

static void keep(void *user, const char *text)
{
	output *o = user;

	o->n += (size_t)snprintf(o->text + o->n, sizeof o->text - o->n, "%s", text);
	ck_assert_uint_lt(o->n, sizeof o->text);
}

#define VPRINTF ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
#define CALL_VPRINTF                                                                                                        \
	"{ .param .b64 p0; .param .b64 p1; .param .b32 back; st.param.b64 [p0], %rd10; st.param.b64 [p1], %rd11;"               \
	"call.uni (back), vprintf, (p0, p1); ld.param.b32 %r20, [back]; }"

/* A format and its arguments, which the body stores at [%rd12+...], printed by one thread. */
static void printed(const char *format, const char *stores, const char *right, unsigned count)
{
	char decls[600], body[1500], bytes[400] = "";
	uint32_t x[1] = { 77 };
	output o = { .n = 0 };
	size_t n = 0;

	for (const char *s = format;; s++) {
		n += (size_t)snprintf(bytes + n, sizeof bytes - n, "%s%d", s == format ? "" : ", ", *s);
		if (!*s)
			break;
	}
	snprintf(decls, sizeof decls,
	         "%s.global .align 1 .b8 fmt[] = {%s};\n.global .align 1 .b8 word[] = {100, 111, 103, 0};\n", VPRINTF, bytes);
	snprintf(body, sizeof body,
	         ".local .align 8 .b8 args[64]; mov.u64 %%rd12, args; cvta.local.u64 %%rd11, %%rd12; mov.u64 %%rd10, fmt; "
	         "cvta.global.u64 %%rd10, %%rd10;"
	         "mov.u64 %%rd13, word; cvta.global.u64 %%rd13, %%rd13; %s %s st.global.u32 [%%rd0], %%r20;",
	         stores, CALL_VPRINTF);
	trial t = { .target = "sm_80",
		        .block = { 1 },
		        .decls = decls,
		        .body = body,
		        .data = x,
		        .size = sizeof x,
		        .opt = { .print = keep, .user = &o } };
	trial_run(&t);
	ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
	ck_assert_str_eq(o.text, right);
	ck_assert_uint_eq(x[0], count);
}

START_TEST(formats)
{
	printed("plain, 100%%\n", "", "plain, 100%\n", 0);
	printed("%d %u %x|", "st.local.u32 [%rd12], -5; st.local.u32 [%rd12+4], -5; st.local.u32 [%rd12+8], 255;",
	        "-5 4294967291 ff|", 3);
	printed("%d %lld %hhd", "st.local.u32 [%rd12], 1; st.local.u64 [%rd12+8], -7000000000; st.local.u32 [%rd12+16], 511;",
	        "1 -7000000000 -1", 3);
	printed("%5.2f|%-8s|%c|%08lx",
	        "st.local.f64 [%rd12], 0d400921FB54442D18; st.local.u64 [%rd12+8], %rd13; st.local.u32 [%rd12+16], 65; "
	        "st.local.u64 [%rd12+24], 48879;",
	        " 3.14|dog     |A|0000beef", 4);
	printed("%*d|%.*f|",
	        "st.local.u32 [%rd12], 6; st.local.u32 [%rd12+4], 42; st.local.u32 [%rd12+8], 1; st.local.f64 [%rd12+16], "
	        "0d3FF8000000000000;",
	        "    42|1.5|", 4);
	printed("%s|%y|", "st.local.u64 [%rd12], 0;", "(null)|%y|", 1);
	printed("%e %g", "st.local.f64 [%rd12], 0d40F86A0000000000; st.local.f64 [%rd12+8], 0d3F50624DD2F1A9FC;",
	        "1.000000e+05 0.001", 2);
}
END_TEST

START_TEST(widths)
{
	printed("%-7d|%07d|%+.3d|", "st.local.u32 [%rd12], 42; st.local.u32 [%rd12+4], 42; st.local.u32 [%rd12+8], 42;",
	        "42     |0000042|+042|", 3);
	printed("%00000000000000000000000000005d|%.s|%.2s|",
	        "st.local.u32 [%rd12], 42; st.local.u64 [%rd12+8], %rd13; st.local.u64 [%rd12+16], %rd13;", "00042||do|", 3);
	printed("%*d|%.*s|",
	        "st.local.u32 [%rd12], -4; st.local.u32 [%rd12+4], 42; st.local.u32 [%rd12+8], -1; st.local.u64 "
	        "[%rd12+16], %rd13;",
	        "42  |dog|", 4);
	printed("%hhhd", "st.local.u32 [%rd12], 511;", "-1", 1);
}
END_TEST

/* ---- how much ---- */

typedef struct amount {
	uint64_t n;
	char last[256];
} amount;

static void weigh(void *user, const char *text)
{
	amount *a = user;
	size_t n = strlen(text), from = n < sizeof a->last ? 0 : n - sizeof a->last + 1;

	a->n += n;
	memcpy(a->last, text + from, n - from + 1);
}

/* format: as bytes of PTX. */
static trial print_much(amount *a, const char *format, uint32_t grid, uint32_t block, cptx_emu_opt opt)
{
	char decls[600];
	uint32_t x[1] = { 0 };

	*a = (amount){ .n = 0 };
	opt.print = weigh;
	opt.user = a;
	snprintf(decls, sizeof decls, "%s.global .align 1 .b8 fmt[] = {%s, 0};\n", VPRINTF, format);
	trial t = { .target = "sm_80",
		        .grid = { grid },
		        .block = { block },
		        .decls = decls,
		        .data = x,
		        .size = sizeof x,
		        .body =
		            ".local .align 8 .b8 args[16]; mov.u64 %rd12, args; cvta.local.u64 %rd11, %rd12; mov.u64 %rd10, fmt; "
		            "cvta.global.u64 %rd10, %rd10; st.local.u32 [%rd12], 5; st.local.u32 [%rd12+4], 6;" CALL_VPRINTF
		            "st.global.u32 [%rd0], %r20;",
		        .opt = opt };
	trial_run(&t);
	t.data = NULL;
	if (t.ok)
		ck_assert_uint_eq(x[0], 2);
	return t;
}

#define WIDE "37, 57, 57, 57, 57, 57, 57, 57, 57, 57, 100, 37, 100" /* %999999999d%d */

START_TEST(a_call_is_bounded)
{
	amount a;
	trial t = print_much(&a, WIDE, 1, 1, (cptx_emu_opt){ .seed = 0 });

	ck_assert_msg(t.ok && strstr(a.last, "56\n(printf: of this call only") == NULL, "%s", t.err.text);
	ck_assert_msg(strstr(a.last, "(printf: of this call only 65536 bytes are printed)") && a.n < 65536 + 100, "%s", a.last);
}
END_TEST

START_TEST(a_launch_is_bounded)
{
	amount a, b;
	trial t = print_much(&a, WIDE, 200, 32, (cptx_emu_opt){ .threads = 1 });

	ck_assert_msg(t.ok && a.n > 1 << 20 && a.n < (1 << 20) + 200, "%s: %llu", t.err.text, (unsigned long long)a.n);
	ck_assert_msg(strstr(a.last, "prints more than 1048576 bytes; the rest is lost") != NULL, "%s", a.last);
	t = print_much(&b, WIDE, 200, 32, (cptx_emu_opt){ .threads = 3 });
	ck_assert(t.ok && a.n == b.n);
	t = print_much(&a, "37, 100, 37, 100, 10", 200, 1, (cptx_emu_opt){ .print_limit = 601 });
	ck_assert(t.ok && strstr(a.last, "prints more than") == NULL && a.n == 600);
	t = print_much(&a, "37, 100, 37, 100, 10", 200, 1, (cptx_emu_opt){ .print_limit = 599 });
	ck_assert(t.ok && strstr(a.last, "prints more than 599 bytes") != NULL && a.n < 800);
	t = print_much(&a, WIDE, 200, 32, (cptx_emu_opt){ .print_limit = 100 << 20 }); /* who wants more gets it */
	ck_assert(t.ok && a.n > 99 << 20);
}
END_TEST

START_TEST(text_counts_as_steps)
{
	amount a;
	trial t = print_much(&a, WIDE, 100, 32, (cptx_emu_opt){ .step_limit = 2500 });

	ck_assert_msg(!t.ok && t.found[0] == CPTX_FIND_STEP_LIMIT, "%s", t.err.text);
	t = print_much(&a, "37, 100, 37, 100, 10", 100, 32, (cptx_emu_opt){ .step_limit = 2500 });
	ck_assert_msg(t.ok && t.counters.warp_instructions < 2500, "%s", t.err.text);
}
END_TEST

START_TEST(in_order)
{
	/* The same text from the same seed, whatever the number of threads of the host; nothing is lost. */
	output first = { .n = 0 };

	for (uint32_t threads = 1; threads <= 3; threads++) {
		output o = { .n = 0 };
		trial t = { .target = "sm_80",
			        .grid = { 6 },
			        .block = { 3 },
			        .opt = { .seed = 4, .threads = threads, .print = keep, .user = &o },
			        .decls = VPRINTF ".global .align 1 .b8 fmt[] = {37, 117, 46, 37, 117, 10, 0};\n",
			        .body = ".local .align 8 .b8 args[8]; mov.u64 %rd12, args; cvta.local.u64 %rd11, %rd12; mov.u64 %rd10, "
			                "fmt; cvta.global.u64 %rd10, %rd10;"
			                "mov.u32 %r1, %ctaid.x; st.local.v2.u32 [%rd12], {%r1, %r0};" CALL_VPRINTF };
		trial_run(&t);
		ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
		for (unsigned i = 0; i < 18; i++) {
			char line[20];
			snprintf(line, sizeof line, "%u.%u\n", i / 3, i % 3);
			ck_assert_msg(strstr(o.text, line) != NULL, "%s lacks %s", o.text, line);
		}
		if (threads == 1)
			first = o;
		ck_assert_str_eq(o.text, first.text);
	}
}
END_TEST

START_TEST(nobody_listens)
{
	trial t = { .target = "sm_80",
		        .block = { 1 },
		        .decls = VPRINTF ".global .align 1 .b8 fmt[] = {65, 0};\n",
		        .body = "mov.u64 %rd11, 0; mov.u64 %rd10, fmt; cvta.global.u64 %rd10, %rd10;" CALL_VPRINTF };

	trial_run(&t);
	ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
	t.body = "mov.u64 %rd11, 0; mov.u64 %rd10, 64;" CALL_VPRINTF;
	trial_run(&t);
	ck_assert(!t.ok && trial_found(&t, CPTX_FIND_BOUNDS));
}
END_TEST

START_TEST(assertions)
{
	trial t = {
		.target = "sm_80",
		.block = { 4 },
		.decls =
			".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);\n"
			".global .align 1 .b8 msg[] = {105, 62, 48, 10, 120, 0};\n.global .align 1 .b8 file[] = {97, 46, 99, 117, 0};\n"
			".global .align 1 .b8 fn[] = {102, 40, 41, 0};\n",
		.body = "setp.ne.u32 %p1, %r0, 2; @%p1 exit; mov.u64 %rd1, msg; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, file; "
				"cvta.global.u64 %rd2, %rd2;"
				"mov.u64 %rd3, fn; cvta.global.u64 %rd3, %rd3; { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 "
				"d; .param .b64 e;"
				"st.param.b64 [a], %rd1; st.param.b64 [b], %rd2; st.param.b32 [c], 12; st.param.b64 [d], %rd3; st.param.b64 "
				"[e], 1;"
				"call.uni __assertfail, (a, b, c, d, e); }"
	};

	trial_run(&t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_ASSERT);
	ck_assert_msg(strstr(t.message, "thread (2, 0, 0)") && strstr(t.message, "a.cu:12: f(): assertion failed: i>0 x"), "%s",
	              t.message);
}
END_TEST

/* ---- malloc, free ---- */

#define HEAP ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n"
#define MALLOC(size, to)                                                                                                    \
	"{ .param .b64 n; .param .b64 back; st.param.b64 [n], " size "; call.uni (back), malloc, (n); ld.param.b64 " to         \
	", [back]; }"
#define FREE(p) "{ .param .b64 q; st.param.b64 [q], " p "; call.uni free, (q); }"

static void heap(const char *body, uint32_t grid, enum cptx_finding_code code, uint32_t right)
{
	for (uint64_t seed = 0; seed < 5; seed++) {
		uint32_t x[2] = { 0 };
		trial t = { .target = "sm_80",
			        .grid = { grid },
			        .block = { 32 },
			        .decls = HEAP,
			        .body = body,
			        .data = x,
			        .size = sizeof x,
			        .opt.seed = seed };
		trial_run(&t);
		if (code) {
			ck_assert_msg(!t.ok && trial_found(&t, code), "%s", t.message);
			continue;
		}
		ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
		ck_assert_uint_eq(x[0], right);
	}
}

START_TEST(device_heap)
{
	/* Each thread has memory of its own, which holds what it has written. */
	heap(MALLOC("8", "%rd1") "st.u32 [%rd1], 1; st.u32 [%rd1+4], %r0; ld.u32 %r1, [%rd1]; red.global.add.u32 [%rd0], "
	                         "%r1;" FREE("%rd1"),
	     5, 0, 160);
	heap(MALLOC("16000000", "%rd1") "setp.eq.u64 %p1, %rd1, 0; @%p1 red.global.add.u32 [%rd0], 1;", 1, 0, 32);
	heap(FREE("0"), 2, 0, 0);
	heap(MALLOC("8", "%rd1") "st.u32 [%rd1+8], 1;", 1, CPTX_FIND_BOUNDS, 0);
	heap(MALLOC("8", "%rd1") FREE("%rd1") "st.u32 [%rd1], 1;", 3, CPTX_FIND_USE_AFTER_FREE, 0);
	heap(MALLOC("8", "%rd1") FREE("%rd1") FREE("%rd1"), 3, CPTX_FIND_DOUBLE_FREE, 0);
	heap(FREE("64"), 3, CPTX_FIND_BAD_FREE, 0);
	heap(FREE("%rd0"), 3, CPTX_FIND_BAD_FREE, 0); /* of the host program */
	heap(MALLOC("8", "%rd1") "ld.u32 %r1, [%rd1]; st.global.u32 [%rd0], %r1;", 1, CPTX_FIND_UNDEFINED, 0);
}
END_TEST

/* ---- clusterlaunchcontrol ---- */

/* Each CTA adds up the numbers of the CTAs whose work it does, its own first; each number once. */
#define CANCEL_LOOP                                                                                                         \
	".shared .align 16 .b8 is[16]; .shared .align 8 .b64 bar; mov.u32 %r1, is; mov.u32 %r2, bar; mov.u32 %r3, %ctaid.x; "   \
	"mov.u32 %r5, 0;"                                                                                                       \
	"mbarrier.init.shared.b64 [%r2], 1; fence.proxy.async;"                                                                 \
	"again: mul.wide.u32 %rd1, %r3, 4; add.u64 %rd1, %rd1, %rd0; atom.global.add.u32 %r4, [%rd1], 1;"                       \
	"mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 16;"                                                                    \
	"clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];"                     \
	"w: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], %r5; @!%p1 bra w; xor.b32 %r5, %r5, 1;"                             \
	"ld.shared.b128 %q1, [%r1]; fence.proxy.async; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q1;"       \
	"@!%p2 bra out; clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r3, %q1; bra.uni again; out:"

START_TEST(clusters_cancelled)
{
	for (uint64_t seed = 0; seed < 10; seed++)
		for (uint32_t threads = 1; threads <= 2; threads++) {
			uint32_t x[100] = { 0 };
			trial t = { .target = "sm_100a",
				        .grid = { 100 },
				        .block = { 1 },
				        .data = x,
				        .size = sizeof x,
				        .body = CANCEL_LOOP,
				        .opt = { .seed = seed, .threads = threads, .schedule = seed % 3, .sms = seed % 2 } };
			trial_run(&t);
			ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
			for (unsigned i = 0; i < 100; i++)
				ck_assert_uint_eq(x[i], 1);
			ck_assert_uint_lt(t.counters.ctas, seed % 2 ? 2 : 100); /* with one multiprocessor the first does all */
		}
}
END_TEST

START_TEST(asked_once_too_often)
{
	uint32_t x[4] = { 0 };
	trial t = { .target = "sm_100a",
		        .grid = { 4 },
		        .block = { 1 },
		        .data = x,
		        .size = sizeof x,
		        .body = CANCEL_LOOP
		        "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 16;"
		        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];" };

	trial_run(&t);
	ck_assert(!t.ok && trial_found(&t, CPTX_FIND_OPERAND));
	ck_assert_ptr_nonnull(strstr(t.message, "has seen a request fail"));
}
END_TEST

/* ---- setmaxnreg ---- */

static void registers(const char *body, uint32_t block, enum cptx_finding_code code, const char *text)
{
	char all[1500];
	uint32_t x[1] = { 0 };

	snprintf(all, sizeof all,
	         ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n.maxntid %u, 1, 1\n{\n.reg "
	         ".b32 %%r<9>; .reg .pred %%p<9>;"
	         "mov.u32 %%r0, %%tid.x; setp.lt.u32 %%p1, %%r0, 128; %s ret;\n}\n",
	         block, body);
	for (uint64_t seed = 0; seed < 5; seed++) {
		trial t = { .target = "sm_90a", .block = { block }, .text = all, .data = x, .size = sizeof x, .opt.seed = seed };
		trial_run(&t);
		if (!code)
			ck_assert_msg(t.ok, "%s%s", t.err.text, t.message);
		else
			ck_assert_msg(!t.ok && trial_found(&t, code) && strstr(t.message, text), "%s\n%s", body, t.message);
	}
}

START_TEST(registers_moved)
{
	/* 384 threads of 168: the first 128 give up 128 * 128, which is what 256 * 64 need. */
	registers(
		"@%p1 bra few; setmaxnreg.inc.sync.aligned.u32 232; bra.uni out; few: setmaxnreg.dec.sync.aligned.u32 40; out:", 384,
		0, "");
	registers(
		"@%p1 bra few; setmaxnreg.inc.sync.aligned.u32 240; bra.uni out; few: setmaxnreg.dec.sync.aligned.u32 40; out:", 384,
		CPTX_FIND_DEADLOCK, "registers that other warps give up");
	registers("setmaxnreg.inc.sync.aligned.u32 40; setmaxnreg.inc.sync.aligned.u32 200;", 384, CPTX_FIND_OPERAND,
	          "40 registers, but the warp has 168");
	registers("setmaxnreg.dec.sync.aligned.u32 200;", 384, CPTX_FIND_OPERAND, ".dec may not make them more");
	/* No more than is asked for: 232, though there are 256 for each of 256 threads.  Warps count in fours. */
	registers(
		"@%p1 bra few; setmaxnreg.inc.sync.aligned.u32 232; bra.uni out; few: setmaxnreg.dec.sync.aligned.u32 40; out:", 256,
		0, "");
	registers("setmaxnreg.dec.sync.aligned.u32 176;", 288, CPTX_FIND_OPERAND, "176 registers, but the warp has 168");
	registers("setp.lt.u32 %p2, %r0, 5; @%p2 setmaxnreg.dec.sync.aligned.u32 40; bar.sync 0;", 128, CPTX_FIND_DIVERGENT,
	          "setmaxnreg");
}
END_TEST

TRIAL_MAIN("emu_system", formats, widths, a_call_is_bounded, a_launch_is_bounded, text_counts_as_steps, in_order,
           nobody_listens, assertions, device_heap, clusters_cancelled, asked_once_too_often, registers_moved)
