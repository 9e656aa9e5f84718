/* SPDX-License-Identifier: MIT */
// A grid-wide cooperative group.
// archs: 75 80 90a 100a 120a
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void two_phases(float *data, float *total, int n)
{
	cg::grid_group grid = cg::this_grid();
	for (unsigned long long i = grid.thread_rank(); i < n; i += grid.size())
		data[i] = data[i] * 0.5f + 1.0f;
	grid.sync();
	if (grid.thread_rank() == 0) {
		float sum = 0.0f;
		for (int i = 0; i < n; ++i)
			sum += data[i];
		*total = sum;
	}
}
