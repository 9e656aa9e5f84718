/* SPDX-License-Identifier: MIT */
/*
 * Random kernels on the emulator: whole protocols of wgmma, tcgen05, tensor and bulk copies, printf and memory, mixed in one
 * kernel with instructions of all rows of the table, on right and wrong operands.  Whatever they do, the emulator must
 * neither crash nor hang, and a seed must give the same on any number of threads.  For builds with sanitizers.
 *
 *     fuzz_emu [--seed N] [--kernels N] [--seconds N] [--jobs N] [--show 1]      as ../fuzz/farm.h says
 *
 * At its end it says how many kernels came to at least one instruction of each family.
 */
#include "fuzz_run.h"

#include "../fuzz/farm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOADED = 60, ENDED, FOUND, MIXED };

static uint64_t bit_of(const char *name)
{
	for (unsigned i = 0; i < fuzz_nfamily; i++)
		if (!strcmp(fuzz_families[i].name, name))
			return UINT64_C(1) << i;
	abort();
}

/* Tensor cores, a tensor copy, printf and memory in one kernel. */
static bool is_mixed(uint64_t reached)
{
	return reached & (bit_of("wgmma") | bit_of("tcgen05.mma") | bit_of("tcgen05.cp") | bit_of("tcgen05.ld")) &&
	       reached & (bit_of("tensor load") | bit_of("tensor store") | bit_of("tensor reduce")) &&
	       reached & bit_of("printf") && reached & bit_of("malloc");
}

static const char *one(uint64_t seed, bool show, farm_sum *sum)
{
	static fuzz_kernel k;
	static char fault[100];

	fuzz_make(&k, seed);
	if (show) {
		char *text = fuzz_text(&k);
		printf("seed %llu, blocks of %u threads, clusters of %u, %u bytes of dynamic shared memory:\n%s",
		       (unsigned long long)seed, k.threads, k.cluster, k.dyn_smem, text);
		fflush(stdout);
		free(text);
	}
	dice before = k.d;
	fuzz_outcome first = fuzz_run(&k, 2, show), again = first;
	if (seed % 8 == 0) {
		k.d = before;
		again = fuzz_run(&k, seed % 16 ? 1 : 5, show);
	}
	fuzz_free(&k);
	sum->digest += first.hash * (seed * 2 + 1);
	for (unsigned i = 0; i < fuzz_nfamily; i++)
		sum->count[i] += first.reached >> i & 1;
	sum->count[LOADED] += first.loaded, sum->count[ENDED] += first.ended, sum->count[FOUND] += first.found;
	sum->count[MIXED] += is_mixed(first.reached);
	if (again.hash == first.hash)
		return NULL;
	snprintf(fault, sizeof fault, "2 threads give %016llx, %u give %016llx", (unsigned long long)first.hash,
	         seed % 16 ? 1 : 5, (unsigned long long)again.hash);
	return fault;
}

static bool report(const farm_sum *sum, uint64_t cases)
{
	bool all = true;

	for (unsigned i = 0; i < fuzz_nfamily; i++) {
		printf("%s%s %llu", i ? ", " : "kernels that came to: ", fuzz_families[i].name, (unsigned long long)sum->count[i]);
		all &= sum->count[i] != 0;
	}
	printf("\n%llu kernels were loaded, %llu came to their end, %llu with findings; %llu mixed tensor cores, tensor copies, "
	       "printf and memory\n",
	       (unsigned long long)sum->count[LOADED], (unsigned long long)sum->count[ENDED],
	       (unsigned long long)sum->count[FOUND], (unsigned long long)sum->count[MIXED]);
	if (cases >= 5000 && !all)
		printf("a family was never reached\n");
	return cases < 5000 || (all && sum->count[MIXED] > cases / 1000);
}

int main(int argc, char **argv)
{
	return farm_main(&(farm){ .name = "fuzz_emu", .noun = "kernels", .begin = pool_init, .one = one, .report = report },
	                 argc, argv);
}
