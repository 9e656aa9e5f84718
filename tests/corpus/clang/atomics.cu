/* SPDX-License-Identifier: MIT */
// Atomics and fences through the builtins, scoped ones too, and the language's own.
// archs: 70 75
#include "device.h"

__device__ int counter = 3;

extern "C" __global__ void atomics(int *g, unsigned *u, float *f, double *d, long long *l)
{
	__shared__ int s;
	s = 0;
	__syncthreads();
	__nvvm_atom_add_gen_i(&s, 1);
	int v = __nvvm_atom_add_gen_i(g, 2) + __nvvm_atom_min_gen_i(g + 1, 3) + __nvvm_atom_cas_gen_i(g + 2, 4, 5);
	v += __nvvm_atom_xchg_gen_i(g + 3, v) + __nvvm_atom_inc_gen_ui(u, 6) + __nvvm_atom_dec_gen_ui(u + 1, 7);
	v += __nvvm_atom_cta_add_gen_i(g + 4, 8) + __nvvm_atom_sys_max_gen_i(g + 5, 9);
	__nvvm_atom_add_gen_f(f, 1.0f);
	__nvvm_atom_add_gen_d(d, 2.0);
	__nvvm_atom_or_gen_ll(l, 16);
	__nvvm_membar_gl();
	__nvvm_membar_cta();
	__nvvm_membar_sys();
	g[9] = v + s + __nvvm_atom_add_gen_i(&counter, 1);
}
