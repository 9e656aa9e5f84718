/* SPDX-License-Identifier: MIT */
/*
 * The kernels of tcgen05 and of mma.sync with scale factors with one thing missing, as test_mutants.c does with the ladder.
 * A sample of them; CPTX_WHOLE=1 tries all.
 */
#include "../kernels/gemm_trial.h"
#include "../test.h"
#include "mutant.h"

#include <cptx/emu.h>

#define INIT_FENCE "fence.mbarrier_init.release.cluster"
#define BEFORE "tcgen05.fence::before_thread_sync"
#define AFTER "tcgen05.fence::after_thread_sync"
#define ALONE "f16 tf32 f8f6f4 i8 mxf8f6f4 mxf4 mxf4nvf4 f16-a-tmem f16-multicast f16-swap mxf4-swap f16-two"
#define PAIRS                                                                                                               \
	"f16-pair tf32-pair f8f6f4-pair i8-pair mxf8f6f4-pair mxf4-pair mxf4nvf4-pair f16-a-tmem-pair f16-pair-multicast "      \
	"f16-swap-pair"
#define SHARED "f16-stream-k f16-multicast-stream-k f16-swap-stream-k"
#define ALL ALONE " " PAIRS " " SHARED " f16-pair-stream-k f16-list mxf4-pair-list"
static const spared spare[] = {
	{ ALONE " " PAIRS " f16-list mxf4-pair-list", BEFORE, 1, MUTANT_FREED },
	{ SHARED " f16-pair-stream-k", BEFORE, 2, MUTANT_FREED },
	{ ALONE " " SHARED " f16-list", AFTER, 2, MUTANT_FREED },
	{ ALL, INIT_FENCE, 0, "the second pipeline's stands behind these mbarriers too" },
	{ ALL, INIT_FENCE, 1, "threads and commits arrive there, no copies; a barrier of all stands between" },
	{ "f16-multicast f16-multicast-stream-k", "bar.sync", 1,
	  "a barrier of the cluster, which all threads pass, stands directly in front of it" },
	{ ALL " sm120-mxf8 sm120-mxf4 sm120-nvf4 sm120-turned sm120-two sm120-stream-k sm120-list sync-tma sync-tma-stream-k "
	      "sync-tma-list sm90-experts sm90-scaled-experts",
	  "griddepcontrol.wait", 0, "it orders a launch behind the one before, and a trial has one, or waits between two" },
	{ "sm90-experts", "wgmma.fence", 1, "in front of it nothing but wgmma of the same shape wrote to the accumulators" },
};

static const struct kernel {
	const char *name;
	gemm_trial t;
} kernels[] = {
#define SM100(name_, kind_, a_, b_, m_, n_, k_, bm_, bn_, stages_, ...)                                                     \
	{                                                                                                                       \
		name_,                                                                                                              \
		{                                                                                                                   \
			.m = m_, .n = n_, .k = k_, .opt = {                                                                             \
				.mma = CPTX_GEMM_TCGEN05,                                                                                   \
				.kind = CPTX_TCGEN05_##kind_,                                                                               \
				.a = CPTX_##a_,                                                                                             \
				.b = CPTX_##b_,                                                                                             \
				.bm = bm_,                                                                                                  \
				.bn = bn_,                                                                                                  \
				.stages = stages_,                                                                                          \
				.out = CPTX_F32,                                                                                            \
				__VA_ARGS__                                                                                                 \
			}                                                                                                               \
		}                                                                                                                   \
	}
#define BOTH(name_, kind_, a_, b_, k_, ...)                                                                                 \
	SM100(name_, kind_, a_, b_, 200, 72, k_, 128, 64, 2, __VA_ARGS__),                                                      \
		SM100(name_ "-pair", kind_, a_, b_, 400, 72, k_, 256, 64, 2, __VA_ARGS__)
	BOTH("f16", F16, BF16, BF16, 160, .group = 0),
	BOTH("tf32", TF32, TF32, TF32, 80, .group = 0),
	BOTH("f8f6f4", F8F6F4, E4M3, E2M1, 384, .group = 0),
	BOTH("i8", I8, S8, S8, 320, .group = 0),
	BOTH("mxf8f6f4", MXF8F6F4, E4M3, E5M2, 320, .scale = CPTX_UE8M0),
	BOTH("mxf4", MXF4, E2M1, E2M1, 640, .scale = CPTX_UE8M0),
	BOTH("mxf4nvf4", MXF4NVF4, E2M1, E2M1, 640, .scale = CPTX_UE4M3),
	BOTH("f16-a-tmem", F16, BF16, BF16, 160, .a_tmem = true),
	SM100("f16-multicast", F16, BF16, BF16, 400, 24, 320, 128, 16, 4, .cluster_m = 2),
	SM100("f16-pair-multicast", F16, BF16, BF16, 300, 200, 160, 256, 64, 2, .cluster_n = 2),
	/* three clusters share eight tiles: the one in the middle makes one, leaves a sum, makes another, and begins a last one
	 */
	SM100("f16-stream-k", F16, BF16, BF16, 100, 504, 192, 128, 64, 2, .stream_k = true),
	SM100("f16-pair-stream-k", F16, BF16, BF16, 200, 504, 192, 256, 64, 2, .stream_k = true),
	SM100("f16-multicast-stream-k", F16, BF16, BF16, 200, 120, 192, 128, 16, 4, .stream_k = true, .cluster_m = 2),
	BOTH("f16-swap", F16, BF16, BF16, 160, .swap = true),
	SM100("mxf4-swap", MXF4, E2M1, E2M1, 72, 200, 640, 128, 64, 2, .scale = CPTX_UE8M0, .swap = true),
	SM100("f16-two", F16, BF16, BF16, 200, 72, 160, 128, 64, 2, .per_sm = 2),
	SM100("f16-swap-stream-k", F16, BF16, BF16, 504, 100, 192, 128, 64, 2, .swap = true, .stream_k = true, .per_sm = 2),
	SM100("f16-list", F16, BF16, BF16, 136, 72, 160, 128, 64, 2, .grouped = true),
	SM100("mxf4-pair-list", MXF4, E2M1, E2M1, 260, 72, 640, 256, 64, 2, .scale = CPTX_UE8M0, .grouped = true),
#define SM120(name_, a_, scale_, k_, ...)                                                                                   \
	{                                                                                                                       \
		name_,                                                                                                              \
		{                                                                                                                   \
			.m = 112, .n = 112, .k = k_, .ctas = 1, .opt = {                                                                \
				.a = CPTX_##a_,                                                                                             \
				.b = CPTX_##a_,                                                                                             \
				.scale = CPTX_##scale_,                                                                                     \
				.bm = 64,                                                                                                   \
				.bn = 64,                                                                                                   \
				.warps_m = 2,                                                                                               \
				.warps_n = 1,                                                                                               \
				.stages = 2,                                                                                                \
				__VA_ARGS__                                                                                                 \
			}                                                                                                               \
		}                                                                                                                   \
	}
	SM120("sm120-mxf8", E4M3, UE8M0, 320, .out = CPTX_F32, .group = 0),
	SM120("sm120-mxf4", E2M1, UE8M0, 640, .out = CPTX_F32, .group = 0),
	SM120("sm120-nvf4", E2M1, UE4M3, 640, .out = CPTX_F32, .group = 0),
	SM120("sm120-turned", E4M3, UE8M0, 300, .out = CPTX_F32, .a_m_major = true, .b_n_major = true),
	SM120("sm120-stream-k", E5M2, UE8M0, 288, .out = CPTX_F32, .stream_k = true),
	SM120("sm120-two", E2M1, UE4M3, 640, .out = CPTX_F32, .per_sm = 2),
	SM120("sm120-list", E4M3, UE8M0, 320, .out = CPTX_F32, .grouped = true),
/* without scale factors */
#define SYNC(name_, out_, ...) SM120(name_, BF16, TYPE_NONE, 200, .bk = 32, .out = CPTX_##out_, __VA_ARGS__)
	SYNC("sync-cp", F32, .group = 0),
	SYNC("sync-cp-stream-k", F32, .stream_k = true),
	SYNC("sync-tma", BF16, .tma = true),
	SYNC("sync-tma-stream-k", F32, .tma = true, .stream_k = true),
	SYNC("sync-tma-list", BF16, .tma = true, .grouped = true),
/* of experts, one of which ends in the midst of a tile */
#define SM90(name_, type_, k_, ...)                                                                                         \
	{                                                                                                                       \
		name_,                                                                                                              \
		{                                                                                                                   \
			.m = 140, .n = 136, .k = k_, .batch = 3, .counts = { 66, 0, 70 }, .ctas = 1, .opt = {                           \
				.size = CPTX_OPT_SIZE(cptx_gemm_opt),                                                                       \
				.mma = CPTX_GEMM_WGMMA,                                                                                     \
				.a = CPTX_##type_,                                                                                          \
				.b = CPTX_##type_,                                                                                          \
				.out = CPTX_BF16,                                                                                           \
				.bm = 64,                                                                                                   \
				.bn = 64,                                                                                                   \
				.stages = 2,                                                                                                \
				.experts = CPTX_GEMM_EXPERTS_CONTIGUOUS,                                                                    \
				__VA_ARGS__                                                                                                 \
			}                                                                                                               \
		}                                                                                                                   \
	}
	SM90("sm90-experts", BF16, 200, .group = 0),
	SM90("sm90-scaled-experts", E4M3, 400, .scale = CPTX_F32),
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* One cluster makes all tiles (of stream-K three), so that stages and accumulators are used again. */
static gemm_trial trial_of(const struct kernel *x)
{
	gemm_trial t = x->t;

	if (t.opt.mma == CPTX_GEMM_TCGEN05)
		t.ctas = t.opt.bm / 128 * (t.opt.cluster_m + t.opt.cluster_n ? 2 : 1) * (t.opt.stream_k ? 3 : 1);
	else if (t.opt.stream_k)
		t.ctas = 3;
	if (t.opt.mma != CPTX_GEMM_WGMMA)
		t.batch = t.opt.grouped ? 2 : 0;
	return t;
}

static cptx_module *build(const void *user)
{
	gemm_trial t = trial_of(user);
	cptx_module *m = cptx_module_new(NULL);
	cptx_error err = { 0 };

	ck_assert_msg(gemm_trial_build(&t, m, &err), "%s", err.text);
	return m;
}

static bool edit(cptx_module *m, const void *user) { return mutant_make(m, user); }

static const char *run(const void *user, const mutant *x, unsigned seed)
{
	gemm_trial t = trial_of(user);
	cptx_error err = { 0 };
	const char *target = t.opt.mma == CPTX_GEMM_TCGEN05 ? "sm_100a"
	                     : t.opt.mma == CPTX_GEMM_WGMMA ? "sm_90a"
	                     : t.opt.scale                  ? "sm_120a"
	                     : t.opt.tma                    ? "sm_90a"
	                                                    : "sm_80";
	cptx_device *dev = cptx_emu_open(target,
	                                 &(cptx_emu_opt){ .seed = seed,
	                                                  .schedule = (enum cptx_emu_schedule)(seed % 3),
	                                                  .threads = 1,
	                                                  .sms = 8,
	                                                  .step_limit = 3000000,
	                                                  .pedantic = true },
	                                 &err);

	t.seed = seed, t.edit = edit, t.user = x;
	const char *said = gemm_trial_run(dev, &t);
	const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);
	const char *how = f ? cptx_finding_name(f->code) : said;
	cptx_device_close(dev);
	return how;
}

static unsigned of_kind[MUTANT_KINDS];

START_TEST(nothing_may_be_missing)
{
	const struct kernel *x = &kernels[_i];
	mutant_subject s = { .name = x->name,
		                 .build = build,
		                 .run = run,
		                 .user = x,
		                 .spared = spare,
		                 .spares = sizeof spare / sizeof *spare,
		                 .seeds = 20,
		                 .sample = getenv("CPTX_WHOLE") ? 0 : 1 + (unsigned)_i };

	ck_assert_uint_eq(mutants_try(&s, of_kind), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("generators");
	TCase *c = tcase_create("generators");

	setvbuf(stdout, NULL, _IOLBF, 0);
	tcase_set_timeout(c, 0);
	tcase_add_loop_test(c, nothing_may_be_missing, 0, KERNELS);
	suite_add_tcase(s, c);
	return test_main("generators", s);
}
