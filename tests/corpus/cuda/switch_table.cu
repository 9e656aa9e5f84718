/* SPDX-License-Identifier: MIT */
// A dense switch with tables allowed at any density, so that the compiler makes a branch table (brx.idx).
// archs: 75 80 90a 100a 120a
// flags: -Xcicc -jump-table-density=1

extern "C" __global__ void dense(const int *op, float *v)
{
	float x = v[threadIdx.x];
	switch (op[threadIdx.x]) {
	case 0: x += 1.0f; break;
	case 1: x *= x; v[1] = x; break;
	case 2: x = sqrtf(x); break;
	case 3: x = __sinf(x); v[3] = 1.0f; break;
	case 4: x = x / 3.0f; break;
	case 5: x = fabsf(x) - 2.0f; __threadfence(); break;
	case 6: v[6] = x; x = 0.0f; break;
	case 7: x = fminf(x, 7.0f); v[7] += x; break;
	case 8: x = x > 0 ? v[8] : v[9]; break;
	case 9: return;
	default: x = -x;
	}
	v[threadIdx.x] = x;
}
