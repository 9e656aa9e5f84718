/* SPDX-License-Identifier: MIT */
/* wgmma of all kinds against sums in double, at any time the seed chooses; and what is found wrong with it. */
#include "trial.h"
#include "wgmma_forms.h"

#include "../sanitized.h"

#include <math.h>

static void check_case(const wg_form *w, const wg_case *c, bool exact)
{
	const form *f = &w->f;
	char what[256];

	for (unsigned row = 0; row < WG_ROWS; row++)
		for (unsigned col = 0; col < f->n; col++) {
			double magnitude, want = wg_expected(w, c, row, col, &magnitude), got = form_value(f->d, c->d[row * f->n + col]);
			double most = exact ? 0 : form_bound(f, f->abits == 8 ? 12 : 22, want, magnitude);
			if (!form_is_float(f->d) && !f->saturate)
				want = (double)(int32_t)(uint32_t)(int64_t)want;
			if (fabs(got - want) <= most)
				continue;
			wg_describe(w, what, sizeof what);
			ck_abort_msg("%s: row %u, column %u: %.17g, expected %.17g within %g", what, row, col, got, want, most);
		}
}

START_TEST(every_form)
{
	wg_case *c = calloc(1, sizeof *c);
	uint64_t seed = 7;

	ck_assert_ptr_nonnull(c);
	for (unsigned i = 0; i < form_nwgmma * SAMPLE_OF(8, 2); i++) {
		cptx_emu_opt opt = { .seed = i };
		cptx_error err = { 0 };
		cptx_device *dev = cptx_emu_open("sm_90a", &opt, &err);
		char what[256];
		wg_form w;
		while (!wg_parse(&w, form_wgmma[i % form_nwgmma], &seed))
			;
		wg_fill(&w, c, i & 1 ? FILL_NORMAL : FILL_SMALL, &seed);
		wg_describe(&w, what, sizeof what);
		ck_assert_msg(dev && wg_run(&w, dev, "sm_90a", c, 1, &err), "%s: %s", what, err.text);
		check_case(&w, c, !(i & 1));
		cptx_device_close(dev);
	}
	free(c);
}
END_TEST

/* ---- findings ---- */

/* A and B of ones in shared memory, `proxy` behind the stores; %rd1: a descriptor that fits both, without swizzle; 8
 * accumulators %f0 ... */
#define SETUP SETUP_WITH("fence.proxy.async;")
#define SETUP_WITH(proxy)                                                                                                   \
	".shared .align 1024 .b8 buf[8192]; mov.u32 %r1, buf; shl.b32 %r2, %r0, 6; add.u32 %r2, %r1, %r2;"                      \
	"mov.b32 %r3, 0x3f803f80; mov.u32 %r4, 0;"                                                                              \
	"F: st.shared.b32 [%r2], %r3; add.u32 %r2, %r2, 4; add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, 16; @%p1 bra F;" proxy    \
	"bar.sync 0; setp.lt.u32 %p0, %r0, 1000;"                                                                               \
	"shr.u32 %r1, %r1, 4; cvt.u64.u32 %rd1, %r1; or.b64 %rd1, %rd1, 0x0000000800400000;"                                    \
	"mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;"                                        \
	"mov.f32 %f4, %f0; mov.f32 %f5, %f0; mov.f32 %f6, %f0; mov.f32 %f7, %f0;"
#define MMA                                                                                                                 \
	"wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, %rd1, %rd1, %p0, 1, 1, 0, 0;"
#define MMA_A                                                                                                               \
	"wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3,%f4,%f5,%f6,%f7}, {%r8,%r9,%r10,%r11}, %rd1, "   \
	"%p0, 1, 1, 0;"
#define FENCE "wgmma.fence.sync.aligned;"
#define COMMIT "wgmma.commit_group.sync.aligned;"
#define WAIT "wgmma.wait_group.sync.aligned 0;"
#define STORE "shl.b32 %r2, %r0, 2; mov.b64 %rd2, {%r2, 0}; add.u64 %rd2, %rd0, %rd2; st.global.f32 [%rd2], %f7;"

/* Runs it on many seeds and schedules: `code` is found in all, or nothing; all threads store `value`, if nothing is. */
static void on_all_seeds(const char *body, enum cptx_finding_code code, float value)
{
	for (unsigned i = 0; i < SAMPLE_OF(24, 6); i++) {
		float x[128] = { 0 };
		trial t = { .target = "sm_90a", .block = { 128 }, .data = x, .size = sizeof x, .body = body };
		t.opt.seed = i / 3;
		t.opt.schedule = (enum cptx_emu_schedule)(i % 3);
		trial_run(&t);
		ck_assert_msg(code ? trial_found(&t, code) && !t.found[1] : t.ok, "seed %u, schedule %u: %s\n%s", i / 3, i % 3,
		              t.err.text, t.message);
		for (unsigned j = 0; !code && j < 128; j++)
			ck_assert_msg(x[j] == value, "seed %u, schedule %u: thread %u has %g, expected %g", i / 3, i % 3, j, x[j],
			              value);
	}
}

START_TEST(waiting)
{
	on_all_seeds(SETUP FENCE MMA COMMIT WAIT STORE, CPTX_FIND_NONE, 16);
	on_all_seeds(SETUP FENCE MMA MMA COMMIT WAIT STORE, CPTX_FIND_NONE, 32);
	on_all_seeds(SETUP FENCE MMA COMMIT MMA COMMIT "wgmma.wait_group.sync.aligned 1;" MMA COMMIT WAIT STORE, CPTX_FIND_NONE,
	             48);
	on_all_seeds(SETUP FENCE MMA COMMIT STORE WAIT, CPTX_FIND_ASYNC_WAIT, 0);
	on_all_seeds(SETUP FENCE MMA WAIT STORE COMMIT WAIT, CPTX_FIND_ASYNC_WAIT, 0);
	on_all_seeds(SETUP FENCE MMA COMMIT MMA COMMIT "wgmma.wait_group.sync.aligned 1;" STORE WAIT, CPTX_FIND_ASYNC_WAIT, 0);
	on_all_seeds(SETUP FENCE MMA COMMIT "mov.f32 %f5, 0f00000000;" WAIT STORE, CPTX_FIND_ASYNC_WAIT, 0);
}
END_TEST

START_TEST(fences)
{
	on_all_seeds(SETUP MMA COMMIT WAIT STORE, CPTX_FIND_WGMMA_FENCE, 0);
	on_all_seeds(SETUP FENCE MMA COMMIT WAIT "add.f32 %f7, %f7, %f7;" MMA COMMIT WAIT STORE, CPTX_FIND_WGMMA_FENCE, 0);
	on_all_seeds(SETUP FENCE MMA COMMIT WAIT "add.f32 %f7, %f7, %f7;" FENCE MMA COMMIT WAIT STORE, CPTX_FIND_NONE, 48);
}
END_TEST

#define ONES "mov.b32 %r8, 0x3f803f80; mov.b32 %r9, %r8; mov.b32 %r10, %r8; mov.b32 %r11, %r8;"

START_TEST(a_in_registers)
{
	on_all_seeds(SETUP ONES FENCE MMA_A COMMIT WAIT STORE, CPTX_FIND_NONE, 16);
	on_all_seeds(SETUP ONES FENCE MMA_A COMMIT "mov.b32 %r9, 0;" WAIT STORE, CPTX_FIND_ASYNC_WAIT, 0);
	on_all_seeds(SETUP ONES FENCE MMA_A COMMIT "mov.b32 %r12, %r9;" WAIT STORE, CPTX_FIND_NONE, 16);
	on_all_seeds(SETUP FENCE ONES MMA_A COMMIT WAIT STORE, CPTX_FIND_WGMMA_FENCE, 0);
}
END_TEST

START_TEST(descriptors)
{
	on_all_seeds(SETUP "or.b64 %rd1, %rd1, 0x8000;" FENCE MMA COMMIT WAIT STORE, CPTX_FIND_DESCRIPTOR, 0);
	on_all_seeds(SETUP "or.b64 %rd1, %rd1, 0x4000000000000007;" FENCE MMA COMMIT WAIT STORE, CPTX_FIND_DESCRIPTOR, 0);
	on_all_seeds(SETUP "add.u64 %rd1, %rd1, 0x200;" FENCE MMA COMMIT WAIT STORE, CPTX_FIND_DESCRIPTOR, 0);
	on_all_seeds(SETUP "cvt.u64.u32 %rd3, %r0; add.u64 %rd1, %rd1, %rd3;" FENCE MMA COMMIT WAIT STORE, CPTX_FIND_OPERAND, 0);
}
END_TEST

/* 64 rows, as long as a span, end where shared memory does: each chunk counts where the swizzle puts it. */
START_TEST(tiles_at_the_end_of_shared_memory)
{
	char body[4096];
	float x[128] = { 0 };
	unsigned missed = 0;

	for (unsigned swizzle = CPTX_SWIZZLE_32B; swizzle <= CPTX_SWIZZLE_128B; swizzle++)
		for (unsigned step = 0; step < cptx_swizzle_get((enum cptx_swizzle)swizzle)->span / 32; step++)
			for (unsigned pad = 0; pad < 4096; pad += 1024)
				for (unsigned less = 0; less < 2; less++) {
					unsigned span = cptx_swizzle_get((enum cptx_swizzle)swizzle)->span, start = 1024 + pad + step * 32;
					cptx_smem_desc d = {
						.arch = CPTX_DESC_WGMMA, .start = start, .sbo = 8 * span, .swizzle = (enum cptx_swizzle)swizzle
					};
					uint64_t word;
					ck_assert(cptx_smem_desc_encode(&d, &word, NULL));
					snprintf(body, sizeof body,
					         "mov.b64 %%rd1, 0x%llx; setp.ge.u32 %%p0, %%r0, 1000;" FENCE "%s" COMMIT WAIT,
					         (unsigned long long)word, MMA);
					trial t = { .target = "sm_90a",
						        .decls = ".extern .shared .align 1024 .b8 dyn[];",
						        .body = body,
						        .block = { 128 },
						        .dyn_smem = pad + 64 * span - less,
						        .data = x,
						        .size = sizeof x,
						        .opt = { .no_undefined = true } };
					trial_run(&t);
					/* With a byte less, the step is wrong whose chunks the swizzle puts last; others are not. */
					ck_assert_msg(less ? t.ok || trial_found(&t, CPTX_FIND_DESCRIPTOR) : t.ok, "%u, %u, %u: %s", swizzle,
					              step, pad, t.err.text);
					missed += less && !t.ok;
				}
	ck_assert_uint_ge(missed, 12);
}
END_TEST

/* B is overwritten while it may still be read. */
START_TEST(shared_memory)
{
	on_all_seeds(SETUP FENCE MMA COMMIT "setp.eq.u32 %p2, %r0, 0; @%p2 st.shared.b32 [buf+64], %r0;" WAIT STORE,
	             CPTX_FIND_ASYNC_WAIT, 0);
	on_all_seeds(SETUP FENCE MMA COMMIT WAIT "setp.eq.u32 %p2, %r0, 0; @%p2 st.shared.b32 [buf+64], %r0;" STORE,
	             CPTX_FIND_NONE, 16);
	on_all_seeds(SETUP_WITH("") FENCE MMA COMMIT WAIT STORE, CPTX_FIND_PROXY, 0);
}
END_TEST

TRIAL_MAIN("emu_wgmma", every_form, waiting, fences, a_in_registers, descriptors, tiles_at_the_end_of_shared_memory,
           shared_memory)
