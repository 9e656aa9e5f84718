/* SPDX-License-Identifier: MIT */
/* The schedule ALL: how many orders small kernels have, counted by hand; faults that only one order shows; replaying it. */
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
		".version 8.7\n.target sm_90\n.address_size 64\n%s\n.visible .entry k(.param .u64 p)\n{\n"
		".reg .b32 %%r<32>; .reg .b64 %%rd<16>; .reg .pred %%p<16>;\n"
		"ld.param.u64 %%rd0, [p]; mov.u32 %%r0, %%tid.x; shr.u32 %%r1, %%r0, 5; mov.u32 %%r2, %%ctaid.x;\n%s\nret;\n}\n",
		k->decls ? k->decls : "", k->body);
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

TRIAL_MAIN("emu_orders", counted, phases, aliased_phase, found_and_replayed, waiting_for_words, asynchronous, as_one_launch)
