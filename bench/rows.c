/* SPDX-License-Identifier: MIT */
/* Bandwidth of the row kernels, for several thread counts.  With arguments: ROWS N. */
#include "row_run.h"

#include <stdio.h>
#include <stdlib.h>

static int bench(cptx_device *dev, row_case c)
{
	row_report r;
	cptx_error err = { .code = CPTX_OK };

	if (!row_check(dev, &c, &r, &err)) {
		fprintf(stderr, "%s: %s\n", row_name(c.kernel), err.text);
		return 1;
	}
	printf("%-9s f32 %u x %u  %4u threads, unroll %u: %s %8.2f us %6.0f GB/s  (%u registers, %u local bytes)\n",
	       row_name(c.kernel), c.rows, c.n, c.threads, c.unroll, r.wrong ? "WRONG" : "right", r.ms * 1e3, r.gbps,
	       r.resources.regs, r.resources.local_bytes);
	return r.wrong != 0;
}

int main(int argc, char **argv)
{
	uint32_t rows = argc > 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2048,
			 n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 8192;
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open("cuda", &err);
	int failed = 0;

	if (!dev) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (uint32_t threads = 128; threads <= 1024; threads *= 2) {
		for (int kernel = ROW_RMS_NORM; kernel <= ROW_SOFTMAX; kernel++)
			failed |= bench(dev, (row_case){ (enum row_kernel)kernel, rows, n, threads, 1, 15 });
		for (uint32_t unroll = 1; unroll <= 8; unroll *= 2)
			failed |= bench(dev, (row_case){ ROW_SWIGLU, rows, n, threads, unroll, 15 });
	}
	cptx_device_close(dev);
	return failed;
}
