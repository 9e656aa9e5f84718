/* SPDX-License-Identifier: MIT */
/*
 * All that looks at instructions while they run, at once: the watchers of wgmma and of tcgen05, printf, timeline, profile,
 * the step limit, the searches for races and for undefined values.  Each sees what it sees alone, in whatever order the
 * kernel has the instructions that switch them on.  No target has both wgmma and tcgen05, so each has a kernel of its own.
 */
#include "trial.h"

enum { THREADS = 128, CONFLICTS = 31 * THREADS / 32, MOST_PROFILE = 160, MOST_TEXT = 8192 };
enum { PRINT = 1, TRACE = 2, LIMIT = 4, NO_RACES = 8, NO_UNDEFINED = 16, SWITCHES = 32 };

/* ---- the kernels ---- */

/* Runs while the matrix operation is under way: thread 0 prints, or each warp stores with 31 bank conflicts. */
static const char print_section[] =
	"setp.ne.u32 %p9, %r0, 0; @%p9 bra NP; mov.u64 %rd10, fmt; cvta.global.u64 %rd10, %rd10; mov.u64 %rd11, 0;"
	"{ .param .b64 p0; .param .b64 p1; .param .b32 back; st.param.b64 [p0], %rd10; st.param.b64 [p1], %rd11;"
	"call.uni (back), vprintf, (p0, p1); ld.param.b32 %r20, [back]; } NP: bar.sync 0;\n";
static const char store_section[] =
	"mov.u32 %r30, bank; shl.b32 %r31, %r0, 7; add.u32 %r30, %r30, %r31; st.shared.b32 [%r30], %r0;\n";

typedef struct kernel {
	const char *target, *begin, *wait, *out, *end;
	const char *async;            /* the operation that is waited for, as the timeline names it */
	enum cptx_finding_code early; /* what is found where the result is stored before it is waited for */
} kernel;

static const kernel kernels[] = {
	{ "sm_90a",
	  ".shared .align 128 .b8 tile[8192]; mov.u32 %r1, tile; shl.b32 %r2, %r0, 6; add.u32 %r3, %r1, %r2; mov.u32 %r4, 0;"
	  "mov.u32 %r5, 0x3f803f80; F: st.shared.u32 [%r3], %r5; add.u32 %r3, %r3, 4; add.u32 %r4, %r4, 1;"
	  "setp.lt.u32 %p1, %r4, 16; @%p1 bra F; fence.proxy.async; bar.sync 0; setp.eq.u32 %p0, %r0, %r0;"
	  "shr.u32 %r1, %r1, 4; cvt.u64.u32 %rd1, %r1; or.b64 %rd1, %rd1, 0x0000000800400000;"
	  "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;"
	  "mov.f32 %f4, %f0; mov.f32 %f5, %f0; mov.f32 %f6, %f0; mov.f32 %f7, %f0; wgmma.fence.sync.aligned;"
	  "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, %rd1, %rd1, %p0, 1, 1, 0, 0;"
	  "wgmma.commit_group.sync.aligned;\n",
	  "wgmma.wait_group.sync.aligned 0;\n", "cvt.rni.u32.f32 %r6, %f7; st.global.u32 [%rd5], %r6;\n", "", "wgmma.mma_async",
	  CPTX_FIND_ASYNC_WAIT },
	{ "sm_100a",
	  ".shared .b32 slot; setp.lt.u32 %p1, %r0, 32; @!%p1 bra A;"
	  "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 64;"
	  "A: bar.sync 0; ld.shared.u32 %r1, [slot]; and.b32 %r2, %r0, 0x60; shl.b32 %r2, %r2, 16; add.u32 %r2, %r2, %r1;"
	  "mov.u32 %r3, 16; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r3}; tcgen05.wait::st.sync.aligned;"
	  "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r6}, [%r2];\n",
	  "tcgen05.wait::ld.sync.aligned;\n", "st.global.u32 [%rd5], %r6;\n",
	  "bar.sync 0; @!%p1 bra D; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64; D:\n", "tcgen05.ld",
	  CPTX_FIND_EARLY_READ },
};
enum { SIXTEEN = 16 /* what each thread stores */ };

/* The order of the three sections, by number; `early`: the result is stored before it is waited for. */
static void body_of(const kernel *k, unsigned order, bool early, char *body, size_t size)
{
	static const uint8_t orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 }, { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	size_t n = (size_t)snprintf(body, size, ".shared .align 128 .b8 bank[%u];\n%s", THREADS * 128, k->begin);

	for (unsigned i = 0; i < 3; i++)
		switch (orders[order][i]) {
		case 0: n += (size_t)snprintf(body + n, size - n, "%s", print_section); break;
		case 1: n += (size_t)snprintf(body + n, size - n, "%s", store_section); break;
		case 2:
			n += (size_t)snprintf(body + n, size - n,
			                      "shl.b32 %%r7, %%r0, 2; cvt.u64.u32 %%rd5, %%r7; add.u64 %%rd5, %%rd0, %%rd5;\n%s%s",
			                      early ? k->out : k->wait, early ? k->wait : k->out);
			break;
		}
	n += (size_t)snprintf(body + n, size - n, "%s", k->end);
	ck_assert_uint_lt(n, size);
}

/* ---- runs ---- */

typedef struct seen {
	bool ok;
	char text[64], why[CPTX_ERROR_TEXT];
	size_t printed, spans, async;
	const char *async_name;
	enum cptx_finding_code found[4];
	cptx_emu_counters counters;
	cptx_emu_profile profile[MOST_PROFILE];
	char instruction[MOST_PROFILE][96];
	size_t nprofile;
	uint32_t out[THREADS];
} seen;

static void take_text(void *user, const char *text)
{
	seen *s = user;

	s->printed += (size_t)snprintf(s->text + s->printed, sizeof s->text - s->printed, "%s", text);
	ck_assert_uint_lt(s->printed, sizeof s->text);
}

static void take_span(void *user, const cptx_emu_span *span)
{
	seen *s = user;

	s->spans++;
	s->async += span->kind == CPTX_EMU_SPAN_ASYNC && !strncmp(span->instruction, s->async_name, strlen(s->async_name));
}

static void take_results(seen *s, cptx_device *dev)
{
	const cptx_emu_finding *f;

	memset(s->found, 0, sizeof s->found);
	for (size_t i = 0; i < 4 && (f = cptx_emu_finding_at(dev, i)); i++)
		s->found[i] = f->code;
	ck_assert(cptx_emu_get_counters(dev, &s->counters));
	for (s->nprofile = 0; cptx_emu_get_profile(dev, s->nprofile, &s->profile[s->nprofile]); s->nprofile++) {
		ck_assert_uint_lt(s->nprofile, MOST_PROFILE - 1);
		snprintf(s->instruction[s->nprofile], sizeof s->instruction[0], "%s", s->profile[s->nprofile].instruction);
	}
}

/* Launches the kernel, and once more after everything is forgotten: what is counted then is the same. */
static void run(const kernel *k, const char *body, unsigned switches, uint64_t limit, unsigned seed, seen *s)
{
	static const char head[] =
		".version 9.0\n.target %s\n.address_size 64\n.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
		".global .align 1 .b8 fmt[] = {104, 105, 10, 0};\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %%r<64>;\n"
		".reg .b64 %%rd<64>;\n.reg .f32 %%f<64>;\n.reg .pred %%p<16>;\nld.param.u64 %%rd0, [p];\nmov.u32 %%r0, %%tid.x;\n"
		"%s\nret;\n}\n";
	static char text[MOST_TEXT];
	cptx_emu_opt opt = { .seed = seed, .schedule = (enum cptx_emu_schedule)(seed % 3), .step_limit = limit, .user = s };
	cptx_error err = { 0 }, reading = { 0 };

	memset(s, 0, sizeof *s);
	s->async_name = k->async;
	opt.print = switches & PRINT ? take_text : NULL;
	opt.trace = switches & TRACE ? take_span : NULL;
	opt.no_races = switches & NO_RACES;
	opt.no_undefined = switches & NO_UNDEFINED;
	opt.pedantic = true; /* tcgen05.ld that is read early is an error, as wgmma's registers are */
	ck_assert_uint_lt((size_t)snprintf(text, sizeof text, head, k->target, body), sizeof text);
	cptx_device *dev = cptx_emu_open(k->target, &opt, &err);
	ck_assert_msg(dev, "%s", err.text);
	cptx_program *p = cptx_device_load_text(dev, text, strlen(text), NULL, &err);
	ck_assert_msg(p, "%s", err.text);
	uint64_t at = cptx_mem_alloc(dev, sizeof s->out, &err);
	cptx_launch_opt launch = { .grid = { 1 }, .block = { THREADS }, CPTX_ARGS(at) };
	s->ok = cptx_launch_once(p, NULL, &launch, NULL, &err);
	if (s->ok) {
		cptx_emu_clear(dev);
		s->spans = s->async = 0;
		ck_assert(cptx_emu_reseed(dev, opt.seed, opt.schedule));
		ck_assert(cptx_launch_once(p, NULL, &launch, NULL, &err));
	}
	snprintf(s->why, sizeof s->why, "%s", s->ok ? "" : err.text);
	take_results(s, dev);
	ck_assert(cptx_emu_continue(dev)); /* behind the step limit */
	ck_assert_msg(cptx_mem_read(dev, s->out, at, sizeof s->out, &reading), "%s", reading.text);
	cptx_program_destroy(p);
	cptx_device_close(dev);
}

/* ---- what must hold ---- */

/* By how many threads the instruction was executed, and with how many bank conflicts. */
static uint64_t executed(const seen *s, const char *begin, uint64_t *conflicts)
{
	uint64_t n = 0;

	*conflicts = 0;
	for (size_t i = 0; i < s->nprofile; i++)
		if (!strncmp(s->instruction[i], begin, strlen(begin))) {
			*conflicts += s->profile[i].bank_conflicts;
			n += s->profile[i].executed;
		}
	return n;
}

static void profiles_equal(const seen *a, const seen *b, const char *what)
{
	ck_assert_msg(a->nprofile == b->nprofile, "%s", what);
	for (size_t i = 0; i < a->nprofile; i++) {
		const cptx_emu_profile *p = &a->profile[i], *q = &b->profile[i];
		ck_assert_msg(!strcmp(a->instruction[i], b->instruction[i]) && p->executed == q->executed &&
		                  p->shared_wavefronts == q->shared_wavefronts && p->bank_conflicts == q->bank_conflicts &&
		                  p->global_sectors == q->global_sectors,
		              "%s: %s", what, a->instruction[i]);
	}
}

static void check_one(const kernel *k, unsigned order, bool early, unsigned switches)
{
	static char body[MOST_TEXT];
	static seen alone, all, short_of;
	char what[128];
	unsigned seed = order + 6 * (switches & 3);
	uint64_t conflicts, limit = 0;

	snprintf(what, sizeof what, "%s, order %u, %s, switches %u", k->target, order, early ? "early" : "right", switches);
	body_of(k, order, early, body, sizeof body);
	run(k, body, 0, 0, seed, &alone); /* nothing is switched on: what the others must leave as it is */
	if (switches & LIMIT)
		limit = alone.counters.warp_instructions;
	run(k, body, switches, limit, seed, &all);
	ck_assert_msg(all.ok == !early && alone.ok == all.ok, "%s: %s%s", what, all.why, alone.why);
	ck_assert_msg(all.found[0] == (early ? k->early : CPTX_FIND_NONE), "%s: %s", what, all.why);
	/* if tcgen05.ld is late, the register has no value yet */
	ck_assert_msg(all.found[1] == (switches & NO_UNDEFINED ? CPTX_FIND_NONE : alone.found[1]) && !all.found[2],
	              "%s: finding number %u beside it", what, all.found[1]);
	ck_assert_msg(!memcmp(&all.counters, &alone.counters, sizeof all.counters), "%s: counters", what);
	profiles_equal(&all, &alone, what);
	ck_assert_msg(executed(&all, k->async, &conflicts) == THREADS, "%s: profile of %s", what, k->async);
	ck_assert_msg(executed(&all, "st.shared.b32", &conflicts) == THREADS && conflicts == CONFLICTS, "%s: %u conflicts", what,
	              (unsigned)conflicts);
	ck_assert_msg(!strcmp(all.text, switches & PRINT ? all.ok ? "hi\nhi\n" : "hi\n" : ""), "%s: '%s' is printed", what,
	              all.text);
	ck_assert_msg(!(switches & TRACE) == !all.spans && !(switches & TRACE) == !all.async, "%s: timeline", what);
	for (unsigned i = 0; !early && i < THREADS; i++)
		ck_assert_msg(all.out[i] == SIXTEEN && alone.out[i] == SIXTEEN, "%s: thread %u stores %u", what, i, all.out[i]);
	if (!limit || early)
		return;
	run(k, body, switches, limit - 1, seed, &short_of);
	ck_assert_msg(!short_of.ok && short_of.found[0] == CPTX_FIND_STEP_LIMIT && !short_of.found[1], "%s: one step less",
	              what);
	ck_assert_msg(short_of.counters.warp_instructions == limit - 1, "%s: the limit is exact", what);
}

static void check_all(const kernel *k)
{
	for (unsigned order = 0; order < 6; order++)
		for (unsigned switches = 0; switches < SWITCHES; switches++) {
			check_one(k, order, false, switches);
			check_one(k, order, true, switches);
		}
}

START_TEST(with_wgmma) { check_all(&kernels[0]); }
END_TEST

START_TEST(with_tcgen05) { check_all(&kernels[1]); }
END_TEST

TRIAL_MAIN("emu watchers", with_wgmma, with_tcgen05)
