/* SPDX-License-Identifier: MIT */
/*
 * A program outside cptx: generates a kernel and launches it on the device that CPTX_DEVICE names, else
 * on the first GPU.  meson/ and cmake/ beside it build it with cptx as a subproject and with an installed cptx.
 */
#include <cptx/cptx.h>
#include <cptx/device.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1000, BLOCK = 128 };

/* y[i] = i * i */
static void squares(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "squares", .block = { BLOCK });
	cptx_val y = cptx_param(k, CPTX_PTR, "y"), n = cptx_param(k, CPTX_U32, "n");
	cptx_val i = cptx_mad(k, cptx_ctaid_x(k), BLOCK, cptx_tid_x(k), .mode = CPTX_LO);

	CPTX_IF(k, cptx_setp(k, i, n, .cmp = CPTX_LT)) {
		cptx_val square = cptx_mul(k, i, i, .mode = CPTX_LO);
		cptx_st(k, cptx_add(k, y, cptx_mul_wide(k, i, 4)), square, .space = CPTX_GLOBAL);
	}
}

int main(void)
{
	uint32_t out[N] = { 0 };
	unsigned wrong = 0, n = N;
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	squares(m);

	cptx_device *dev = cptx_device_open(getenv("CPTX_DEVICE"), &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	uint64_t y = cptx_mem_alloc(dev, sizeof out, &err);
	cptx_launch_once(p, "squares", &(cptx_launch_opt){ .grid = { (N + BLOCK - 1) / BLOCK }, CPTX_ARGS(y, n) }, NULL, &err);
	cptx_mem_read(dev, out, y, sizeof out, &err);
	for (unsigned i = 0; i < N; i++)
		wrong += out[i] != i * i;
	if (err.code)
		fprintf(stderr, "%s\n", err.text);
	else
		printf("cptx %s on %s: %u of %u squares are wrong\n", cptx_version(), cptx_device_get_info(dev)->name, wrong, n);
	cptx_mem_free(dev, y);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	cptx_module_destroy(m);
	return err.code || wrong;
}
