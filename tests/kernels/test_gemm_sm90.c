/* The sm_90a GEMM: on a GPU that has wgmma, else on the emulator. */
#include "../test.h"
#include "gemm_trial.h"

static cptx_device *dev;

static bool open_device(void)
{
	cptx_error err = { 0 };

	if (dev)
		return true;
	dev = cptx_device_open("cuda", &err);
	if (dev && strcmp(cptx_device_get_info(dev)->target, "sm_90a")) {
		cptx_device_close(dev);
		dev = NULL;
	}
	if (dev && !cptx_device_make_current(dev, &err))
		ck_abort_msg("%s", err.text);
	err = (cptx_error){ 0 };
	if (!dev)
		dev = cptx_device_open("emu:sm_90a", &err);
	ck_assert_msg(dev != NULL, "%s", err.text);
	return true;
}

static void right(const gemm_trial *t)
{
	open_device();
	const char *said = gemm_trial_run(dev, t);
	ck_assert_msg(!*said, "%s:\n%s", gemm_trial_text(t), said);
}

#define BF16 .a = CPTX_BF16, .b = CPTX_BF16

/* max(v, 0) + row % 2 + column % 4 */
static cptx_val relu_and_place(cptx_kernel *k, void *user, cptx_val v, cptx_val row, cptx_val col)
{
	(void)user;
	cptx_val place = cptx_add(k, cptx_and(k, row, 1), cptx_and(k, col, 3));
	return cptx_add(k, cptx_max(k, v, 0.0f), cptx_cvt(k, place, .rnd = CPTX_RN, .dtype = CPTX_F32));
}

static const gemm_trial trials[] = {
	{ .opt = { .bm = 128, .bn = 128, .stages = 3, BF16, .out = CPTX_F32 }, .m = 128, .n = 128, .k = 64 },
	{ .opt = { .bm = 128, .bn = 256, .stages = 4, BF16, .out = CPTX_BF16 }, .m = 256, .n = 512, .k = 320 },
	{ .opt = { .bm = 128, .bn = 256, .stages = 4, BF16, .out = CPTX_BF16, .cluster_m = 2 }, .m = 200, .n = 264, .k = 136 },
	{ .opt = { .bm = 128, .bn = 128, .stages = 4, BF16, .out = CPTX_F32, .cluster_n = 2 }, .m = 136, .n = 300, .k = 264 },
	{ .opt = { .bm = 64, .bn = 64, .stages = 4, BF16, .out = CPTX_BF16, .splits = 3 }, .m = 70, .n = 200, .k = 520 },
	{ .opt = { .bm = 128, .bn = 64, .stages = 2, BF16, .out = CPTX_F32, .splits = 2, .cluster_m = 2 }, .m = 130, .n = 72, .k = 200 },
	{ .opt = { .bm = 256, .bn = 128, .stages = 3, .a = CPTX_F16, .b = CPTX_F16, .out = CPTX_F16 }, .m = 300, .n = 136, .k = 72 },
	{ .opt = { .bm = 128, .bn = 128, .stages = 3, BF16, .out = CPTX_BF16, .a_m_major = true }, .m = 136, .n = 128, .k = 104 },
	{ .opt = { .bm = 128, .bn = 128, .stages = 3, BF16, .out = CPTX_BF16, .b_n_major = true, .cluster_m = 2 }, .m = 136, .n = 136, .k = 104 },
	{ .opt = { .bm = 64, .bn = 128, .stages = 3, BF16, .out = CPTX_F32, .a_m_major = true, .b_n_major = true }, .m = 72, .n = 136, .k = 77 },
	{ .opt = { .bm = 128, .bn = 128, .stages = 3, .a = CPTX_E4M3, .b = CPTX_E5M2, .out = CPTX_BF16 }, .m = 130, .n = 136, .k = 272 },
	{ .opt = { .bm = 64, .bn = 16, .stages = 5, .a = CPTX_E5M2, .b = CPTX_E5M2, .out = CPTX_F32 }, .m = 5, .n = 20, .k = 400 },
	{ .opt = { .bm = 64, .bn = 48, .stages = 5, BF16, .out = CPTX_F16, .batched = true }, .m = 65, .n = 56, .k = 72, .batch = 3 },
	{ .opt = { .bm = 128, .bn = 96, .stages = 2, BF16, .out = CPTX_BF16, .alpha = true, .beta = true, .bias = true }, .m = 129, .n = 200, .k = 72 },
	{ .opt = { .bm = 64, .bn = 80, .stages = 2, BF16, .out = CPTX_F32, .alpha = true, .beta = true, .bias = true, .batched = true,
	    .epilogue = relu_and_place, .splits = 2 }, .m = 100, .n = 84, .k = 136, .batch = 2 },
	{ .opt = { .bm = 256, .bn = 64, .stages = 2, BF16, .out = CPTX_BF16, .epilogue = relu_and_place, .cluster_n = 2 }, .m = 257, .n = 200, .k = 72 },
};

START_TEST(gives_the_exact_sums) { right(&trials[_i]); }
END_TEST

int main(void)
{
	Suite *s = suite_create("gemm_sm90");
	TCase *c = tcase_create("c");

	tcase_add_loop_test(c, gives_the_exact_sums, 0, sizeof trials / sizeof *trials);
	suite_add_tcase(s, c);
	int status = test_main("gemm_sm90", s);
	cptx_device_close(dev);
	return status;
}
