/* SPDX-License-Identifier: MIT */
/* What the device says of itself: attributes, which the runtime and the driver number alike. */
#include "device.h"

#include <string.h>

/* Facts of the H100 and H200 stand for what the target does not decide. */
enum { L2_BYTES = 50 << 20, CLOCK_KHZ = 1980000, MEMORY_CLOCK_KHZ = 2619000, BUS_BITS = 5120, CTAS_PER_SM = 32 };

int san_attribute(int attribute, int *value)
{
	const cptx_device_info *i = san.info;

	switch (attribute) {
#define ATTRIBUTE(number, expression)                                                                                       \
	case number:                                                                                                            \
		*value = (int)(expression);                                                                                         \
		return SAN_OK;
#include "attribute.def"
#undef ATTRIBUTE
	default: *value = 0; return SAN_OK; /* features that the device does not have */
	}
}

static int get(int attribute)
{
	int v = 0;

	san_attribute(attribute, &v);
	return v;
}

void san_properties(rt_device_prop *p, int number)
{
	const cptx_device_info *i = san.info;

	memset(p, 0, sizeof *p);
	memcpy(p->name, i->name, strlen(i->name) + 1);
	memcpy(p->uuid, "cptx emulator", 14);
	p->uuid[15] = (char)number;
	p->pci[0] = number + 1; /* its bus */
	p->global_memory = (size_t)i->global_memory;
	p->smem_per_block = (size_t)get(8);
	p->regs_per_block = get(12), p->warp = get(10), p->pitch = (size_t)get(11), p->max_threads = get(1);
	for (int d = 0; d < 3; d++)
		p->max_block[d] = get(2 + d), p->max_grid[d] = get(5 + d);
	p->const_memory = (size_t)get(9);
	p->major = get(75), p->minor = get(76);
	p->texture_alignment = (size_t)get(14), p->texture_pitch_alignment = (size_t)get(51);
	p->sms = get(16), p->can_map_host = get(19), p->surface_alignment = (size_t)get(30);
	p->concurrent_kernels = get(31), p->copy_engines = get(40), p->unified_addressing = get(41), p->bus_width = get(37);
	p->l2 = get(38), p->threads_per_sm = get(39), p->stream_priorities = get(78);
	p->smem_per_sm = (size_t)get(81);
	p->regs_per_sm = get(82), p->managed = get(83), p->concurrent_managed = get(89), p->cooperative = get(95);
	p->smem_optin = (size_t)get(97), p->persisting_l2 = get(108), p->access_window = get(109);
	p->blocks_per_sm = get(106), p->reserved_smem = (size_t)get(111), p->host_register = get(99);
	p->memory_pools = get(115), p->clusters = get(120), p->global_l1 = get(79), p->local_l1 = get(80);
	p->host_numa_id = -1;
}
