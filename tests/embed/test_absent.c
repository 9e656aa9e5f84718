/* SPDX-License-Identifier: MIT */
/*
 * What calls of a part say where it is left out: test_absent LACKING, the option of meson ("nothing", "all").  left_out.sh
 * beside links this program with a library without each part.
 */
#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/emu.h>
#include <cptx/gemm.h>

#include <stdio.h>
#include <string.h>

static int failed, passed;

static void check(const char *lacking, const char *part, const cptx_error *err, bool worked)
{
	bool all = !strcmp(lacking, "all") && strcmp(part, "printing") != 0;
	bool needs = !strcmp(lacking, "parser") && (!strcmp(part, "emulator") || !strcmp(part, "kernels"));
	bool absent = all || needs || !strcmp(lacking, part);
	bool message = err->code == CPTX_E_ABSENT && strstr(err->text, "configure it without -D") && strstr(err->text, part);

	if (absent ? message && !worked : worked && err->code == CPTX_OK) {
		passed++;
		return;
	}
	failed++;
	printf("FAIL without '%s', %s: %s, \"%s\"\n", lacking, part, worked ? "worked" : "did not work", err->text);
}

/* What cannot say that it is left out is there in every build. */
static void always(const char *what, bool right)
{
	passed += right, failed += !right;
	if (!right)
		printf("FAIL %s: not there\n", what);
}

int main(int argc, char **argv)
{
	static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";
	const char *lacking = argc > 1 ? argv[1] : "";
	cptx_error err = { 0 };

	cptx_module *m = cptx_parse(text, sizeof text - 1, NULL);
	if (cptx_module_error(m))
		err = *cptx_module_error(m);
	check(lacking, "parser", &err, !cptx_module_error(m));
	cptx_module_destroy(m);

	err = (cptx_error){ 0 };
	cptx_device *dev = cptx_device_open("emu:sm_90a", &err);
	check(lacking, "emulator", &err, dev != NULL);
	cptx_device_close(dev);
	err = (cptx_error){ 0 };
	unsigned n = cptx_device_count("emu", &err);
	check(lacking, "emulator", &err, n == 1);

	err = (cptx_error){ 0 };
	m = cptx_module_new(NULL);
	cptx_gemm_opt opt = cptx_gemm_default(CPTX_GEMM_SYNC, cptx_target_find("sm_80"));
	cptx_kernel *k = cptx_gemm_build(m, &opt, &err);
	check(lacking, "kernels", &err, k != NULL);
	cptx_module_destroy(m);
	always("a default shape", opt.bm == 128 && opt.stages);
	always("what multiplies", cptx_gemm_mma_of(cptx_target_find("sm_90a")) == CPTX_GEMM_WGMMA);
	uint8_t factor[2] = { 3, 4 }, packed[512] = { 0 };
	always("bytes of factors", cptx_gemm_scales_bytes(2, 32, 32) == sizeof packed);
	cptx_gemm_scales_pack(packed, factor, 2, 32, 32);
	always("packed factors", packed[0] == 3 && packed[16] == 4 && !packed[1]);
	always("a timeline", cptx_gemm_timeline(2, 64, 5).warps == 2);
	always("names of findings", cptx_finding_name((enum cptx_finding_code)1) != NULL && !cptx_finding_name(CPTX_FIND_COUNT));

	err = (cptx_error){ 0 };
	m = cptx_module_new(NULL);
	k = cptx_kernel_begin(m, "k", .block = { 32 }); /* building and printing is what every build has */
	cptx_add(k, cptx_tid_x(k), 1);
	cptx_ptx *c = cptx_to_c(m, NULL, &err);
	check(lacking, "to_c", &err, c != NULL);
	cptx_ptx_destroy(c);
	err = (cptx_error){ 0 };
	cptx_ptx *ptx = cptx_emit(m, "sm_75", NULL, &err);
	check(lacking, "printing", &err, ptx && strstr(cptx_ptx_text(ptx), "add.u32"));
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	printf("absent: %d passed, %d failed, 0 skipped\n", passed, failed);
	return failed != 0;
}
