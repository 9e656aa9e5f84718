/* SPDX-License-Identifier: MIT */
/* The loader's table of the PTX versions that drivers take is that of cptx; the two share no code, so this holds them
 * together. */
#include "../../src/bundle/loader/cptx_load.c"

#include <cptx/retarget.h>

int main(void)
{
	int wrong = 0, n = 0;

	for (int version = 11000; version <= 14090; version += 10, n++)
		if (ptx_of(version) != cptx_driver_ptx((uint32_t)version)) {
			fprintf(stderr, "driver %d: the loader says PTX %u, cptx %u\n", version, ptx_of(version),
			        cptx_driver_ptx((uint32_t)version));
			wrong++;
		}
	printf("bundle_versions: %d passed, %d failed, 0 skipped\n", n - wrong, wrong);
	return wrong != 0;
}
