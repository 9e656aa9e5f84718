/* SPDX-License-Identifier: MIT */
/* Launches (grid.c). */
#ifndef CPTX_EMU_CORE_GRID_H
#define CPTX_EMU_CORE_GRID_H

#include "emu/core/types.h"
#include "ir/launch.h"

struct emu_grid {
	emu_machine *machine;
	emu_image *image;
	emu_function *entry;
	uint32_t grid[3], block[3], cluster[3], ctas_per_cluster;
	bool explicit_cluster, cooperative;
	uint64_t workspace; /* of a cooperative launch: its address, in %envreg1 (upper half) and %envreg2 */
	uint32_t dyn_smem, shared_bytes /* of a CTA, as there */;
	const unsigned char *params;
	uint32_t param_bytes;
	uint64_t nclusters, next; /* those not started yet */
	uint64_t begin;           /* of clusters that start now, in the timeline */
	uint64_t steps, limit;
	uint64_t *hits;
	struct emu_traffic *traffic;
	struct emu_tensormaps *maps;   /* those that threads of all clusters have changed */
	struct emu_wide *wide;         /* what clusters know of one another's accesses */
	uint64_t printed;              /* bytes that the user has got of vprintf */
	bool print_lost;               /* there were more */
	bool failed;                   /* ends as soon as possible */
	struct emu_explorer *explorer; /* chooses the order of all that happens; NULL: the seed does */
	size_t wrong; /* the first error: number of the machine's finding + 1, SIZE_MAX if it was not kept; 0: none */
	cptx_error *err;
};

bool emu_run(emu_image *image, const launch_shape *shape, const void *params, uint32_t size, cptx_site at, cptx_error *err);

#endif
