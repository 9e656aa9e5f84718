/* SPDX-License-Identifier: MIT */
/* Kernels made of the kit: right and without a finding in many orders on emulated devices, and what ptxas makes of them. */
#include "../whole.h"
#include "../ask.h"
#include "../test.h"
#include "../verify/assemble.h"

#include "gemm_swiglu_fp8.h"

#include <cptx/emu.h>

/* M, N, K: tails in all of them, K tiles fewer and more than stages, several tiles for a CTA. */
static const uint32_t sizes[][3] = { { 200, 272, 136 }, { 1, 16, 8 }, { 128, 128, 64 }, { 300, 144, 584 } };
enum { SIZES = sizeof sizes / sizeof *sizes, ORDERS = 100, SOME = 6 };

/* An order of warps, copies and CTAs; races and waits that never end are findings, which fail the launch. */
static void run(uint32_t order)
{
	const uint32_t *s = sizes[order % SIZES];
	const cptx_emu_opt how = {
		.seed = order, .schedule = (enum cptx_emu_schedule)(order % 3), .sms = 1 + order % 3, .pedantic = true
	};
	cptx_error err = { .code = CPTX_OK };
	cptx_device *dev = cptx_emu_open("sm_90a", &how, &err);
	const int64_t wrong = dev ? gemm_swiglu_fp8_run(dev, s[0], s[1], s[2], &err) : -1;

	cptx_emu_counters count = { 0 };
	SURE(wrong == 0, "%u x %u x %u, order %u: %d are wrong; %s", s[0], s[1], s[2], order, (int)wrong, err.text);
	SURE(cptx_emu_get_counters(dev, &count) && count.shared_wavefronts && !count.bank_conflicts, "%u bank conflicts",
	     (unsigned)count.bank_conflicts);
	cptx_device_close(dev);
}

/* CPTX_WHOLE: all of them. */
START_TEST(swiglu_in_many_orders)
{
	for (uint32_t i = 0; i < (whole() ? ORDERS : SOME); i++)
		if (is_my_part(i))
			run(i);
}
END_TEST

START_TEST(swiglu_has_registers)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);

	gemm_swiglu_fp8(m);
	cptx_ptx *ptx = cptx_emit(m, "sm_90a", NULL, &err);
	SURE(ptx != NULL, "%s", err.text);
	if (!test_ptxas()) {
		skip("ptxas, to count registers");
	} else {
		assembly job = { .target = "sm_90a", .ptx = cptx_ptx_text(ptx) };
		assemble(&job, 1);
		SURE(job.status == 0, "%s", job.said);
		SURE(strstr(job.said, " 0 bytes spill stores, 0 bytes spill loads"), "%s", job.said);
		SURE(strstr(job.said, "Used 168 registers"), "%s", job.said); /* 65536 / 384, in steps of 8 */
		free(job.said);
	}
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("examples");
	TCase *t = test_case(s, "kit");

	tcase_add_test(t, swiglu_in_many_orders);
	tcase_add_test(t, swiglu_has_registers);
	return test_main("kit examples", s);
}
