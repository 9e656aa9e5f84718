/* SPDX-License-Identifier: MIT */
/*
 * A first kernel, y = a * x + y: built, printed, and run on the device that CPTX_DEVICE names (emu:sm_90a is an emulated
 * one), else on a GPU if there is one.
 */
#include "examples.h"

#include <cptx/device.h>
#include <stdio.h>
#include <stdlib.h>

cptx_kernel *saxpy(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "saxpy", .block = { 256 });
	cptx_val x = cptx_param(k, CPTX_PTR, "x"), y = cptx_param(k, CPTX_PTR, "y");
	cptx_val a = cptx_param(k, CPTX_F32, "a"), n = cptx_param(k, CPTX_U32, "n");
	cptx_val i = cptx_mad(k, cptx_ctaid_x(k), 256, cptx_tid_x(k), .mode = CPTX_LO);

	CPTX_IF(k, cptx_setp(k, i, n, .cmp = CPTX_LT)) {
		cptx_val at = cptx_mul_wide(k, i, 4), px = cptx_add(k, x, at), py = cptx_add(k, y, at);
		cptx_val vx = cptx_ld(k, px, .space = CPTX_GLOBAL, .type = CPTX_F32);
		cptx_val vy = cptx_ld(k, py, .space = CPTX_GLOBAL, .type = CPTX_F32);
		cptx_st(k, py, cptx_fma(k, a, vx, vy, .rnd = CPTX_RN), .space = CPTX_GLOBAL);
	}
	return k;
}

#ifndef EXAMPLES_NO_MAIN
int main(void)
{
	cptx_module *m = cptx_module_new(NULL);
	saxpy(m);

	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, "sm_75", NULL, &err);
	if (!ptx)
		return fprintf(stderr, "%s\n", err.text), 1;
	fputs(cptx_ptx_text(ptx), stdout);
	cptx_ptx_destroy(ptx);

	float hx[1000], hy[1000];
	for (int j = 0; j < 1000; j++)
		hx[j] = (float)j, hy[j] = 1;
	cptx_device *dev = cptx_device_open(getenv("CPTX_DEVICE"), &err);
	if (!dev) {
		fprintf(stderr, "not run: %s\n", err.text);
		cptx_module_destroy(m);
		return err.code != CPTX_E_NO_DRIVER && err.code != CPTX_E_NO_DEVICE;
	}
	uint64_t dx = cptx_mem_alloc(dev, sizeof hx, &err), dy = cptx_mem_alloc(dev, sizeof hy, &err);
	cptx_mem_write(dev, dx, hx, sizeof hx, &err);
	cptx_mem_write(dev, dy, hy, sizeof hy, &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	cptx_launch_once(p, "saxpy", &(cptx_launch_opt){ .grid = { 4 }, CPTX_ARGS(dx, dy, 2.0f, 1000u) }, NULL, &err);
	cptx_mem_read(dev, hy, dy, sizeof hy, &err);
	int wrong = 0;
	for (int j = 0; j < 1000; j++)
		wrong += hy[j] != 2 * hx[j] + 1;
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	else
		fprintf(stderr, "y[999] = %g; %d of 1000 elements are wrong\n", (double)hy[999], wrong);
	cptx_program_destroy(p);
	cptx_mem_free(dev, dx);
	cptx_mem_free(dev, dy);
	cptx_device_close(dev);
	cptx_module_destroy(m);
	return err.code || wrong;
}
#endif
