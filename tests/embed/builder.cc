/* SPDX-License-Identifier: MIT */
// What test_builder.c does, in C++17.  Every public header is compiled here.
#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/dlpack.h>
#include <cptx/emu.h>
#include <cptx/gemm.h>
#include <cptx/layout.h>
#include <cptx/operand.h>
#include <cptx/params.h>
#include <cptx/pipeline.h>
#include <cptx/roles.h>
#include <cptx/tensor_map.h>
#include <cptx/tmem.h>

#include <cstring>

#include "builder.inc"

extern "C" void build_row_cpp(cptx_module *m);
extern "C" void build_kit_cpp(cptx_module *m);
extern "C" int launch_cpp(cptx_error *err);

void build_row_cpp(cptx_module *m) { build_row(m); }
void build_kit_cpp(cptx_module *m) { build_kit(m); }

int launch_cpp(cptx_error *err)
{
	constexpr unsigned n = 100;
	float y[n] = {};
	cptx_module *m = cptx_module_new(nullptr);
	cptx_kernel *k = cptx_kernel_begin(m, "scale", .block = { n });
	cptx_val p = cptx_param(k, CPTX_PTR, "y"), a = cptx_param(k, CPTX_F32, "a"), i = cptx_tid_x(k);
	cptx_val f = cptx_cvt(k, i, .dtype = CPTX_F32, .rnd = CPTX_RN);
	cptx_st(k, cptx_add(k, p, cptx_mul_wide(k, i, 4)), cptx_mul(k, f, a), .space = CPTX_GLOBAL);

	cptx_device *dev = cptx_device_open("emu:sm_90a", err);
	cptx_program *program = cptx_device_load(dev, m, nullptr, err);
	uint64_t out = cptx_mem_alloc(dev, sizeof y, err);
	cptx_launch_once(program, nullptr, CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(out, 0.0f)), nullptr, err);
	cptx_launch *l = cptx_launch_new(program, "scale", CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(out, 1.0f)), err);
	cptx_launch_set(l, 1, 0.5f, err);
	cptx_launch_run(l, nullptr, err);
	cptx_mem_read(dev, y, out, sizeof y, err);
	int wrong = 0;
	for (unsigned j = 0; j < n; j++)
		wrong += y[j] != 0.5f * static_cast<float>(j);
	cptx_launch_destroy(l);
	cptx_program_destroy(program);
	cptx_mem_free(dev, out);
	cptx_device_close(dev);
	cptx_module_destroy(m);
	return err->code == CPTX_OK ? wrong : -1;
}
