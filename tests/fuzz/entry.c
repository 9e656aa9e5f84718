/* SPDX-License-Identifier: MIT */
/* The libFuzzer target.  Every other turn is left to libFuzzer's own mutations. */
#include "fuzz_ptx.h"
#include "mutate.h"

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

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
	unsigned turn = (seed ^ seed >> 16) % 16;

	if (turn == 0)
		return fuzz_mutate_memory(data, size, most, seed);
	if (!size || turn > 8)
		return LLVMFuzzerMutate(data, size, most);
	return turn < 4 ? fuzz_mutate_statement(data, size, most, seed) : fuzz_mutate_word(data, size, most, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out, size_t most,
                                 unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t na, const uint8_t *b, size_t nb, uint8_t *out, size_t most,
                                 unsigned seed)
{
	return fuzz_cross(a, na, b, nb, out, most, seed);
}
