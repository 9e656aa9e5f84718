/* The libFuzzer target. */
#include "fuzz_ptx.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *fault = fuzz_ptx((const char *)data, size);

	if (fault) {
		fprintf(stderr, "%s\n", fault);
		abort();
	}
	return 0;
}
