/* SPDX-License-Identifier: MIT */
/* The schedule ALL: how many orders small kernels have, counted by hand; faults that only one order shows; replaying it. */
#include "../whole.h"
#include "trial.h"

typedef struct kernel {
	const char *body, *decls, *target;
	uint32_t threads, ctas;
	uint64_t most, order;
} kernel;

/* Runs it on words of zeros; *out gets the first ones. */
static cptx_emu_order_info explored(const kernel *k, uint32_t out[4], trial *t)
{
	cptx_emu_order_info info;
	uint32_t x[64] = { 0 };
	char text[6000];
	cptx_error err = { 0 };
	const cptx_emu_opt opt = { .schedule = CPTX_EMU_ALL, .orders = k->most, .order = k->order };
	cptx_device *dev = cptx_emu_open(k->target ? k->target : "sm_90", &opt, &err);
	uint64_t at = cptx_mem_alloc(dev, sizeof x, &err);

	snprintf(
		text, sizeof text,
		".version 8.8\n.target %s\n.address_size 64\n%s\n.visible .entry k(.param .u64 p)\n{\n"
		".reg .b32 %%r<32>; .reg .b64 %%rd<16>; .reg .pred %%p<16>;\n"
		"ld.param.u64 %%rd0, [p]; mov.u32 %%r0, %%tid.x; shr.u32 %%r1, %%r0, 5; mov.u32 %%r2, %%ctaid.x;\n%s\nret;\n}\n",
		k->target ? k->target : "sm_90", k->decls ? k->decls : "", k->body);
	ck_assert_msg(cptx_mem_write(dev, at, x, sizeof x, &err), "%s", err.text);
	cptx_program *p = cptx_device_load_text(dev, text, strlen(text), &(cptx_load_opt){ .name = "k.ptx" }, &err);
	ck_assert_msg(p != NULL, "%s", err.text);
	memset(t, 0, sizeof *t);
	t->ok = cptx_launch_once(
		p, "k", &(cptx_launch_opt){ .grid = { k->ctas ? k->ctas : 1 }, .block = { k->threads }, CPTX_ARGS(at) }, NULL, &err);
	t->err = err;
	const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);
	t->found[0] = f ? f->code : CPTX_FIND_NONE;
	memset(&err, 0, sizeof err);
	ck_assert_msg(cptx_mem_read(dev, x, at, sizeof x, &err), "%s", err.text);
	memcpy(out, x, 4 * sizeof *x);
	ck_assert(cptx_emu_orders(dev, &info));
	ck_assert_str_eq(info.kernel, "k");
	snprintf(t->message, sizeof t->message, "%s", info.how);
	info.how = t->message;
	info.kernel = NULL;
	cptx_program_destroy(p);
	cptx_device_close(dev);
	return info;
}

/* All orders of a kernel without a fault; the number is known. */
static void has_orders(const kernel *k, uint64_t orders)
{
	uint32_t x[4];
	trial t;
	cptx_emu_order_info i = explored(k, x, &t);

	ck_assert_msg(t.ok, "%s", t.err.text);
	ck_assert_msg(i.all && i.orders == orders && !i.left && !i.found && !i.why, "%llu orders, %d, %llu left: %s",
	              (unsigned long long)i.orders, i.all, (unsigned long long)i.left, k->body);
}

/* Sums commute, exchanges do not: three warps, 3! orders; different words are apart. */
START_TEST(counted)
{
	has_orders(&(kernel){ .body = "red.global.add.u32 [%rd0], 1;", .threads = 96 }, 1);
	has_orders(&(kernel){ .body = "atom.global.exch.b32 %r3, [%rd0], %r1;", .threads = 64 }, 2);
	has_orders(&(kernel){ .body = "atom.global.exch.b32 %r3, [%rd0], %r1;", .threads = 96 }, 6);
	has_orders(&(kernel){ .body = "atom.global.exch.b32 %r3, [%rd0], %r1;", .threads = 32, .ctas = 3 }, 6);
	has_orders(
		&(kernel){ .body = "mad.wide.u32 %rd1, %r1, 64, %rd0; atom.global.exch.b32 %r3, [%rd1], %r1;", .threads = 128 }, 1);
	/* two each: of 4 events in 2 threads there are 6 orders */
	has_orders(
		&(kernel){ .body = "atom.global.exch.b32 %r3, [%rd0], %r1; atom.global.exch.b32 %r3, [%rd0], %r1;", .threads = 64 },
		6);
	/* a barrier between them leaves 2 * 2 */
	has_orders(
		&(kernel){ .body = "atom.global.exch.b32 %r3, [%rd0], %r1; bar.sync 0; atom.global.exch.b32 %r3, [%rd0], %r1;",
	               .threads = 64 },
		4);
	/* weak accesses and barriers have one order */
	has_orders(&(kernel){ .body = "mad.wide.u32 %rd1, %r0, 4, %rd0; bar.sync 0; bar.sync 0; ld.global.u32 %r3, [%rd0];",
	                      .threads = 64 },
	           1);
}
END_TEST

#define BARRIER(count)                                                                                                      \
	"mov.u32 %r10, bar; setp.eq.u32 %p1, %r0, 0; @%p1 mbarrier.init.shared::cta.b64 [%r10], " count "; bar.sync 0;\n"
#define WAIT(name, parity) name ": mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r10], " parity "; @!%p2 bra " name ";\n"
#define ARRIVE "mbarrier.arrive.shared::cta.b64 %rd3, [%r10];\n"

/* Arrivals of one phase commute, and who waits for it comes behind all of them. */
START_TEST(phases)
{
	static const char bar[] = ".shared .align 8 .b64 bar;";

	has_orders(&(kernel){ .decls = bar, .body = BARRIER("96") ARRIVE WAIT("A", "0"), .threads = 96 }, 1);
	has_orders(&(kernel){ .decls = bar, .body = BARRIER("64") ARRIVE WAIT("A", "0") ARRIVE WAIT("B", "1"), .threads = 64 },
	           1);
}
END_TEST

/*
 * A phase that one warp can end alone, by arriving twice: in the usual order both come once, and the wait behind is right.
 * Warp 1 arrives with a lane of its own; if warp 0 has ended the phase already, its own arrival counts for the next one.
 */
START_TEST(aliased_phase)
{
	static const char body[] = BARRIER(
		"2") "and.b32 %r4, %r0, 31; setp.ne.u32 %p3, %r4, 0; @%p3 bra D;\n"
			 "setp.ne.u32 %p4, %r1, 0; @%p4 bra B;\n"
		/* warp 0 */
		ARRIVE ARRIVE "bra D;\n"
			 /* warp 1: what it writes is to be seen by nobody before it arrives */
			 "B: " WAIT(
				 "W",
				 "0") "mov.u32 %r5, 1; mbarrier.test_wait.parity.shared::cta.b64 %p5, [%r10], 1; selp.u32 %r5, 7, 1, %p5;\n"
					  "st.global.u32 [%rd0], %r5;\nD:\n";
	uint32_t x[4];
	trial t;
	const kernel k = { .decls = ".shared .align 8 .b64 bar;", .body = body, .threads = 64 };
	cptx_emu_order_info i = explored(&k, x, &t);

	ck_assert_msg(t.ok && i.all, "%s", t.err.text);
	ck_assert_uint_eq(x[0], 1);
}
END_TEST

/* A lock that is not one: both read that it is free, and then take it; found in one order of several. */
static const char lock[] = "and.b32 %r4, %r0, 31; setp.ne.u32 %p3, %r4, 0; @%p3 bra D;\n"
						   "ld.relaxed.gpu.global.u32 %r5, [%rd0]; setp.ne.u32 %p4, %r5, 0; @%p4 bra D;\n"
						   "st.relaxed.gpu.global.u32 [%rd0], 1;\n"
						   "atom.relaxed.gpu.global.add.u32 %r6, [%rd0+16], 1; setp.ne.u32 %p5, %r6, 0; @%p5 trap;\nD:\n";

START_TEST(found_and_replayed)
{
	uint32_t x[4];
	trial t;
	const kernel k = { .body = lock, .threads = 64 };
	cptx_emu_order_info i = explored(&k, x, &t);

	ck_assert_msg(!t.ok && t.found[0] == CPTX_FIND_TRAP && i.found > 1 && i.found == i.orders && !i.all, "%s, %llu of %llu",
	              t.err.text, (unsigned long long)i.found, (unsigned long long)i.orders);
	/* one switch is enough: warp 1 reads in front of warp 0's store */
	ck_assert_uint_ge(i.switches, 1);
	ck_assert_uint_le(i.switches, 2);
	ck_assert_msg(strstr(t.message, "of warp 1 before st.relaxed.gpu.global.u32 (k.ptx:11) of warp 0") != NULL, "%s",
	              t.message);

	const kernel again = { .body = lock, .threads = 64, .order = i.found };
	cptx_emu_order_info j = explored(&again, x, &t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_TRAP && j.found == i.found);
	const kernel first = { .body = lock, .threads = 64, .order = 1 };
	j = explored(&first, x, &t);
	ck_assert_msg(t.ok && !j.found && j.orders == 1 && !j.all, "%s", t.err.text);
	ck_assert_uint_eq(x[0], 1);
}
END_TEST

/* Who waits for a word that another writes is in the end let go, in every order; who waits for ever is a deadlock. */
START_TEST(waiting_for_words)
{
	static const char waits[] =
		"setp.ne.u32 %p4, %r1, 0; @%p4 bra W;\nst.release.gpu.global.u32 [%rd0], 5; bra D;\n"
		"W: ld.acquire.gpu.global.u32 %r5, [%rd0]; setp.ne.u32 %p5, %r5, 5; @%p5 bra W;\nst.global.u32 [%rd0+8], %r5;\nD:\n";
	static const char never[] = "W: ld.acquire.gpu.global.u32 %r5, [%rd0]; setp.ne.u32 %p5, %r5, 5; @%p5 bra W;\n";
	uint32_t x[4];
	trial t;
	cptx_emu_order_info i = explored(&(kernel){ .body = waits, .threads = 64 }, x, &t);

	ck_assert_msg(t.ok && i.all && i.orders == 2, "%s: %llu orders", t.err.text, (unsigned long long)i.orders);
	ck_assert(x[0] == 5 && x[2] == 5);
	explored(&(kernel){ .body = never, .threads = 64 }, x, &t);
	ck_assert(!t.ok && t.found[0] == CPTX_FIND_DEADLOCK);
}
END_TEST

/* Bytes that arrive late, and a copy whose source is written over too early in no order. */
START_TEST(asynchronous)
{
	static const char body[] =
		"mov.u32 %r11, buf; mov.u32 %r10, bar; setp.eq.u32 %p1, %r0, 0;\n"
		"@%p1 mbarrier.init.shared::cta.b64 [%r10], 1; @%p1 fence.mbarrier_init.release.cluster; bar.sync 0;\n"
		"@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [%r10], 64;\n"
		"@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%rd0], 64, [%r10];\n" WAIT(
			"A", "0") "ld.shared.u32 %r5, [buf]; add.u32 %r5, %r5, 3; mad.wide.u32 %rd1, %r0, 4, %rd0;\n"
					  "@%p1 st.global.u32 [%rd0+128], %r5;\n";
	uint32_t x[4];
	trial t;
	const kernel k = { .decls = ".shared .align 8 .b64 bar; .shared .align 16 .b8 buf[64];", .body = body, .threads = 64 };
	cptx_emu_order_info i = explored(&k, x, &t);

	ck_assert_msg(t.ok && i.all && i.orders == 1, "%s: %llu orders", t.err.text, (unsigned long long)i.orders);
}
END_TEST

/* Memory, output and counters are those of one launch; too large ones run as before, and say so. */
START_TEST(as_one_launch)
{
	uint32_t x[4];
	trial t;
	const kernel large = { .body = "red.global.add.u32 [%rd0], 1;", .threads = 32, .ctas = 17 };
	cptx_emu_order_info i = explored(&large, x, &t);

	ck_assert_msg(t.ok && !i.all && !i.orders && strstr(i.why, "more than 16 CTAs"), "%s", t.err.text);
	ck_assert_uint_eq(x[0], 17 * 32);
	const kernel cut = { .body = "atom.global.add.u32 %r3, [%rd0], 1;", .threads = 128, .most = 5 };
	i = explored(&cut, x, &t);
	ck_assert_msg(t.ok && !i.all && i.orders == 5 && i.left > 0 && !i.why, "%s", t.err.text);
	ck_assert_uint_eq(x[0], 128);
	i = explored(&(kernel){ .body = cut.body, .threads = 128 }, x, &t);
	ck_assert(i.all && i.orders == 24 && x[0] == 128);
}
END_TEST

/* In some orders, but not in all, this is found. */
static void fails(const kernel *k, enum cptx_finding_code code)
{
	uint32_t x[4];
	trial t;
	cptx_emu_order_info i = explored(k, x, &t);

	ck_assert_msg(!t.ok && i.found > 1 && t.found[0] == code && !i.all, "%s, order %llu of %llu: %s", t.err.text,
	              (unsigned long long)i.found, (unsigned long long)i.orders, k->body);
}

/* Nothing is found, but not everything was tried. */
static void stops(const kernel *k, const char *why)
{
	uint32_t x[4];
	trial t;
	cptx_emu_order_info i = explored(k, x, &t);

	ck_assert_msg(t.ok && !i.all && i.why && strstr(i.why, why), "%s, all %d, why %s: %s", t.err.text, i.all,
	              i.why ? i.why : "nothing", k->body);
}

#define TWO "setp.eq.u32 %p1, %r0, 0; setp.eq.u32 %p2, %r0, 32;\n"
#define FIRST_LANES "and.b32 %r4, %r0, 31; setp.ne.u32 %p3, %r4, 0; @%p3 bra D;\n"

/* Reductions commute with those of the same kind alone, if they are exact.  (5 + 0) & 4 is not (0 & 4) + 5. */
START_TEST(reductions)
{
	fails(&(kernel){ .body = TWO "@%p1 red.relaxed.gpu.global.add.u32 [%rd0], 5;\n"
	                             "@%p2 red.relaxed.gpu.global.and.b32 [%rd0], 4;\n"
	                             "bar.sync 0; ld.relaxed.gpu.global.u32 %r5, [%rd0]; @!%p1 bra D;\n"
	                             "setp.ne.u32 %p4, %r5, 4; @%p4 trap; D:\n",
	                 .threads = 64 },
	      CPTX_FIND_TRAP);
	has_orders(&(kernel){ .body = "red.relaxed.gpu.global.add.noftz.f16x2 [%rd0], %r1;", .threads = 64 }, 2);
	has_orders(&(kernel){ .body = "red.relaxed.gpu.global.inc.u32 [%rd0], %r1;", .threads = 64 }, 2);
	has_orders(&(kernel){ .body = "red.relaxed.gpu.global.max.s32 [%rd0], %r1;", .threads = 64 }, 1);
	has_orders(&(kernel){ .body = TWO "@%p1 red.relaxed.gpu.global.max.s32 [%rd0], %r1;\n"
	                                  "@%p2 red.relaxed.gpu.global.max.u32 [%rd0], %r1;",
	                      .threads = 64 },
	           2);
}
END_TEST

/* A barrier that names a number: any two of four warps make up its phase; where all four do, nothing differs. */
START_TEST(counted_barriers)
{
	fails(&(kernel){ .body = TWO "@%p1 st.global.u32 [%rd0], 5; bar.sync 1, 64;\n"
	                             "@%p2 ld.global.u32 %r5, [%rd0]; @%p2 st.global.u32 [%rd0+4], %r5;",
	                 .threads = 128 },
	      CPTX_FIND_RACE);
	has_orders(&(kernel){ .body = "bar.sync 1, 128; bar.sync 1, 128; bar.sync 1, 128;", .threads = 128 }, 1);
	/* what a warp did before it came as the last one is in no order to what others did before they came */
	fails(&(kernel){ .body =
	                     TWO "@%p1 st.relaxed.gpu.global.u32 [%rd0], 5; @!%p1 ld.relaxed.gpu.global.u32 %r6, [%rd0+64];\n"
	                         "@%p2 st.relaxed.gpu.global.u32 [%rd0], 6; bar.sync 0; @!%p1 bra D;\n"
	                         "ld.relaxed.gpu.global.u32 %r5, [%rd0]; setp.ne.u32 %p4, %r5, 6; @%p4 trap; D:\n",
	                 .threads = 64 },
	      CPTX_FIND_TRAP);
}
END_TEST

/* The phase may be over before another thread says that it must wait for bytes, or for copies. */
START_TEST(waits_for_more)
{
	static const char decls[] = ".shared .align 8 .b64 bar; .shared .align 16 .b8 buf[64];";
#define WITH_BAR                                                                                                            \
	TWO "@%p1 mbarrier.init.shared::cta.b64 [bar], 1; @%p1 fence.mbarrier_init.release.cluster; bar.sync 0;\n"              \
		"mov.u32 %r10, bar; mov.u32 %r11, buf;\n"
#define READ                                                                                                                \
	"@%p1 mbarrier.arrive.shared::cta.b64 %rd3, [%r10];\n" WAIT("A", "0") "@!%p1 bra D; ld.shared.u32 %r5, [buf+4]; D:\n"

	fails(&(kernel){ .decls = decls,
	                 .body =
	                     WITH_BAR "@%p2 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r10], 64;\n"
	                              "@%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%rd0], "
	                              "64, [%r10];\n" READ,
	                 .threads = 64 },
	      CPTX_FIND_ASYNC_WAIT);
	fails(&(kernel){ .decls = decls,
	                 .body = WITH_BAR "@%p2 cp.async.ca.shared.global [%r11+4], [%rd0], 4;\n"
	                                  "@%p2 cp.async.mbarrier.arrive.shared::cta.b64 [%r10];\n" READ,
	                 .threads = 64 },
	      CPTX_FIND_ASYNC_WAIT);
	stops(&(kernel){ .decls = decls,
	                 .body = BARRIER("64") ARRIVE "mbarrier.pending_count.b64 %r5, %rd3;\n" WAIT("A", "0"),
	                 .threads = 64 },
	      "how many arrivals were pending");
}
END_TEST

/* Loops that read: other words each time, twice and then no more, and until somebody writes. */
START_TEST(loops)
{
	static const char others[] = FIRST_LANES
		"mov.u32 %r5, 0; mov.u32 %r6, 0; setp.ne.u32 %p4, %r1, 0; @%p4 bra W;\n"
		"L: ld.relaxed.gpu.global.u32 %r7, [%rd0]; add.u32 %r6, %r6, %r7; add.u64 %rd0, %rd0, 16; add.u32 %r5, %r5, 1;\n"
		"setp.lt.u32 %p5, %r5, 3; @%p5 bra L; setp.eq.u32 %p6, %r6, 1; @%p6 trap; bra D;\n"
		"W: st.relaxed.gpu.global.u32 [%rd0+16], 1; st.relaxed.gpu.global.u32 [%rd0+32], 1; D:\n";
	static const char twice[] =
		FIRST_LANES "mov.u32 %r5, 0; setp.ne.u32 %p4, %r1, 1; @%p4 bra W;\n"
					"L: ld.relaxed.gpu.global.u32 %r7, [%rd0]; setp.ne.u32 %p5, %r7, 0; @%p5 bra D; add.u32 %r5, %r5, 1;\n"
					"setp.lt.u32 %p5, %r5, 2; @%p5 bra L; trap;\nW: st.relaxed.gpu.global.u32 [%rd0], 1; D:\n";
	static const char seen[] = FIRST_LANES /* 1, and only then 2, in two words; between the two it may look */
		"setp.ne.u32 %p4, %r1, 1; @%p4 bra W; ld.relaxed.gpu.global.u32 %r8, [%rd0];\n"
		"L: ld.relaxed.gpu.global.u32 %r7, [%rd0]; setp.eq.u32 %p5, %r7, 0; @%p5 bra L;\n"
		"ld.relaxed.gpu.global.u32 %r6, [%rd0+32]; or.b32 %r6, %r6, %r8; setp.eq.u32 %p5, %r6, 0; @%p5 trap; bra D;\n"
		"W: st.relaxed.gpu.global.u32 [%rd0], 1; st.relaxed.gpu.global.u32 [%rd0+32], 2; D:\n";
	static const char locked[] =
		FIRST_LANES "L: atom.acquire.gpu.global.cas.b32 %r5, [%rd0], 0, 1; setp.ne.u32 %p5, %r5, 0; @%p5 bra L;\n"
					"ld.global.u32 %r6, [%rd0+32]; add.u32 %r6, %r6, 1; st.global.u32 [%rd0+32], %r6;\n"
					"atom.release.gpu.global.exch.b32 %r7, [%rd0], 0; D:\n";
	static const char late[] = FIRST_LANES
		"setp.ne.u32 %p4, %r1, 0; @%p4 bra W; ld.relaxed.gpu.global.u32 %r7, [%rd0]; setp.ne.u32 %p5, %r7, 0; @%p5 trap;\n"
		"bra D;\nW: nanosleep.u32 100; st.relaxed.gpu.global.u32 [%rd0], 1; D:\n";
	uint32_t x[4];
	trial t;

	fails(&(kernel){ .body = others, .threads = 64 }, CPTX_FIND_TRAP);
	fails(&(kernel){ .body = twice, .threads = 64 }, CPTX_FIND_TRAP);
	fails(&(kernel){ .body = seen, .threads = 64 }, CPTX_FIND_TRAP);
	fails(&(kernel){ .body = late, .threads = 64 }, CPTX_FIND_TRAP);
	cptx_emu_order_info i = explored(&(kernel){ .body = locked, .threads = 64 }, x, &t);
	ck_assert_msg(t.ok && i.all && i.orders > 1, "%s, %llu: %s", t.err.text, (unsigned long long)i.orders, i.why);
}
END_TEST

/* Events are told by what is accessed, not by names, and in all its bytes. */
START_TEST(accesses)
{
	fails(&(kernel){ .body = FIRST_LANES
	                 "setp.eq.u32 %p4, %r1, 0; @%p4 bra R;\n"
	                 "multimem.st.relaxed.gpu.global.u32 [%rd0], 1;\n"
	                 "multimem.st.relaxed.gpu.global.u32 [%rd0+64], 1; bra D;\n"
	                 "R: ld.relaxed.gpu.global.u32 %r5, [%rd0]; ld.relaxed.gpu.global.u32 %r6, [%rd0+64];\n"
	                 "setp.eq.u32 %p5, %r5, %r6; @%p5 bra D; setp.eq.u32 %p5, %r5, 0; @%p5 bra D; trap; D:\n",
	                 .threads = 64 },
	      CPTX_FIND_TRAP);
	fails(&(kernel){ .body = "setp.eq.u32 %p1, %r0, 32; setp.ne.u32 %p2, %r1, 0; @%p2 bra W;\n"
	                         "ld.relaxed.gpu.global.v4.b64 {%rd4, %rd5, %rd6, %rd7}, [%rd0]; setp.ne.u64 %p3, %rd7, 0;\n"
	                         "@%p3 trap; bra D;\nW: @%p1 st.relaxed.gpu.global.u32 [%rd0+24], 1; D:\n",
	                 .target = "sm_100",
	                 .threads = 64 },
	      CPTX_FIND_TRAP);
}
END_TEST

/* Kernels whose orders cannot all be tried, and one that has too many of too many events. */
START_TEST(not_all)
{
	static const char runtime[] =
		".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2 (.param .b64 a, .param .align 4 .b8 b[12], "
		".param .align 4 .b8 c[12], .param .b32 d);\n"
		".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2 (.param .b64 a, .param .b64 b);\n"
		".visible .entry child() { ret; }";

	stops(&(kernel){ .decls = ".shared .align 8 .b64 bar; .shared .align 16 .b8 ans[16];",
	                 .body =
	                     BARRIER("1") "mov.u32 %r11, ans; @!%p1 bra D; fence.mbarrier_init.release.cluster;\n"
	                                  "mbarrier.arrive.expect_tx.shared::cta.b64 %rd3, [%r10], 16;\n"
	                                  "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 "
	                                  "[%r11], [%r10];\n" WAIT("A", "0") "D:\n",
	                 .target = "sm_100",
	                 .threads = 32,
	                 .ctas = 2 },
	      "cancels clusters");
	stops(
		&(kernel){
			.decls = runtime,
			.body = "mov.u64 %rd1, child; mov.u32 %r5, 1; mov.u32 %r6, 0; mov.u64 %rd4, 0; setp.gt.u32 %p1, %r0, 1; @%p1 "
					"bra D;\n"
					"{ .param .b64 a; .param .align 4 .b8 b[12]; .param .align 4 .b8 c[12]; .param .b32 d; .param .b64 r;\n"
					"st.param.b64 [a], %rd1; st.param.b32 [b], %r5; st.param.b32 [b+4], %r5; st.param.b32 [b+8], %r5;\n"
					"st.param.b32 [c], %r5; st.param.b32 [c+4], %r5; st.param.b32 [c+8], %r5; st.param.b32 [d], %r6;\n"
					"call.uni (r), __cudaCDP2GetParameterBufferV2, (a, b, c, d); ld.param.b64 %rd2, [r]; }\n"
					"{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd2; st.param.b64 [b], %rd4;\n"
					"call.uni (r), __cudaCDP2LaunchDeviceV2, (a, b); ld.param.b32 %r7, [r]; }\nD:\n",
			.threads = 32 },
		"launches kernels");
	stops(&(kernel){ .decls = ".shared .align 16 .b8 buf[16];",
	                 .body = "setp.ne.u32 %p1, %r0, 0; @%p1 bra D; mov.u32 %r11, buf; mov.u64 %rd4, 0;\n"
	                         "st.shared.v2.b64 [%r11], {%rd4, %rd4}; fence.proxy.async.shared::cta;\n"
	                         "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%rd0], [%r11], 16;\n"
	                         "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; D:\n",
	                 .threads = 32 },
	      "what bulk copies combine");
	if (whole())
		stops(&(kernel){ .body = FIRST_LANES
		                 "mov.u32 %r5, 0; L: atom.relaxed.gpu.global.exch.b32 %r6, [%rd0], %r1; add.u32 %r5, %r5, 1;\n"
		                 "setp.lt.u32 %p5, %r5, 450; @%p5 bra L; D:\n",
		                 .threads = 96 },
		      "too long");
}
END_TEST

/* An update that is lost between two relaxed accesses is no finding: what the orders leave tells it. */
START_TEST(what_is_left)
{
	static const char lost[] = FIRST_LANES "ld.relaxed.gpu.global.u32 %r5, [%rd0+8]; add.u32 %r5, %r5, 1; "
										   "st.relaxed.gpu.global.u32 [%rd0+8], %r5;\nD:\n";
	kernel k = { .body = lost, .threads = 64 };
	uint32_t x[4];
	trial t;
	cptx_emu_order_info i = explored(&k, x, &t);

	ck_assert_msg(t.ok && i.all && !i.found && i.orders == 4 && x[2] == 2, "%s, %llu orders", t.err.text,
	              (unsigned long long)i.orders);
	ck_assert(i.differs > 1 && i.differs <= 4 && i.switches >= 1);
	ck_assert_msg(strstr(t.message, "before st.relaxed.gpu.global.u32"), "%s", t.message);
	ck_assert(i.differ_bytes == 1 && i.differ_at);
	k.order = i.differs; /* which is left in memory then */
	i = explored(&k, x, &t);
	ck_assert(t.ok && i.differs == k.order && x[2] == 1);
	/* sums commute: all orders leave the same; so do exchanges of one value, which do not */
	i = explored(&(kernel){ .body = "atom.global.add.u32 %r3, [%rd0], 1;", .threads = 64 }, x, &t);
	ck_assert(t.ok && i.all && i.orders == 2 && !i.differs && !i.difference && !i.differ_bytes && !i.differ_at);
	i = explored(&(kernel){ .body = "mov.u32 %r4, 7; atom.global.exch.b32 %r3, [%rd0], %r4;", .threads = 64 }, x, &t);
	ck_assert(t.ok && i.all && i.orders == 2 && !i.differs && x[0] == 7);
}
END_TEST

/* What the difference is, in words. */
START_TEST(difference_in_words)
{
	static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 last = 5;\n"
							   ".visible .entry k()\n{\n.reg .b32 %r<4>;\nmov.u32 %r1, %ctaid.x;\n"
							   "st.relaxed.gpu.global.u32 [last], %r1;\nret;\n}\n";
	const cptx_emu_opt opt = { .schedule = CPTX_EMU_ALL };
	cptx_emu_order_info info;
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_90", &opt, &err);
	cptx_program *p = cptx_device_load_text(dev, text, strlen(text), &(cptx_load_opt){ .name = "k.ptx" }, &err);

	ck_assert(p && cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 2 }, .block = { 1 } }, NULL, &err));
	ck_assert(cptx_emu_orders(dev, &info));
	char words[80];
	snprintf(words, sizeof words, "1 byte of memory differs, the first at 0x%llx, ", (unsigned long long)info.differ_at);
	ck_assert_msg(info.differ_bytes == 1 && strstr(info.difference, words), "%s", info.text);
	ck_assert_msg(info.orders == 2 && info.differs == 2 &&
	                  strstr(info.difference, "1 byte of memory differs, the first at 0x") &&
	                  strstr(info.difference, ", 0 bytes behind the start of variable last: 0x00 in place of 0x01"),
	              "%s", info.text);
	ck_assert_msg(strstr(info.text, "all 2 orders are right; but order 2 leaves other memory than the first: 1 byte") &&
	                  strstr(info.text, "it leaves the usual order 1 time: "),
	              "%s", info.text);
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

TRIAL_MAIN("emu_orders", what_is_left, difference_in_words, reductions, counted_barriers, waits_for_more, loops, accesses,
           not_all, counted, phases, aliased_phase, found_and_replayed, waiting_for_words, asynchronous, as_one_launch)
