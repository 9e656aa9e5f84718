/* SPDX-License-Identifier: MIT */
// Control flow: switch, nested loops with break and continue, select, short-circuit conditions, unreachable code.
// archs: 70 75
#include "device.h"

extern "C" __global__ void control(const int *in, int *out, int n)
{
	int acc = 0;
	for (int i = 0; i < n; ++i) {
		int v = in[i];
		if (v < 0 || (v > 100 && v % 7 == 3))
			continue;
		int j = 0;
		while (true) {
			switch ((v + j) & 7) {
			case 0: acc += 1; break;
			case 1: acc ^= v; break;
			case 2: acc -= j; break;
			case 3: acc *= 3; break;
			case 4: out[1] = acc; break;
			case 5: acc = acc > j ? j : acc; break;
			case 6: goto next;
			default: acc = ~acc;
			}
			if (++j > v)
				break;
		}
	next:
		if (acc == 0x7fffffff)
			__builtin_trap();
	}
	out[tid_x] = acc;
}
