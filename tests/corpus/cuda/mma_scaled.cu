/* SPDX-License-Identifier: MIT */
// Block scaled and narrow floating point mma of consumer Blackwell through inline PTX.
// archs: 120a

extern "C" __global__ void mma_fp8(const unsigned *a, const unsigned *b, float *out)
{
	int t = threadIdx.x;
	float c[4] = {0, 0, 0, 0};
	asm volatile("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[t]), "r"(a[t + 1]), "r"(a[t + 2]), "r"(a[t + 3]), "r"(b[t]), "r"(b[t + 1]));
	asm volatile("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e3m2.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[t]), "r"(a[t + 1]), "r"(a[t + 2]), "r"(a[t + 3]), "r"(b[t]), "r"(b[t + 1]));
	out[t] = c[0] + c[1] + c[2] + c[3];
}

extern "C" __global__ void mma_mxf4(const unsigned *a, const unsigned *b, const unsigned *scale, float *out)
{
	int t = threadIdx.x;
	float c[4] = {0, 0, 0, 0};
	asm volatile("mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 "
		"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {%12, %13}, {%11}, {%14, %15};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[t]), "r"(a[t + 1]), "r"(a[t + 2]), "r"(a[t + 3]), "r"(b[t]), "r"(b[t + 1]), "r"(scale[t]), "r"(scale[t + 32]),
		"h"(static_cast<short>(0)), "h"(static_cast<short>(0)), "h"(static_cast<short>(0)), "h"(static_cast<short>(1)));
	asm volatile("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 "
		"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {0, 0}, {%11}, {0, 0};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[t]), "r"(a[t + 1]), "r"(a[t + 2]), "r"(a[t + 3]), "r"(b[t]), "r"(b[t + 1]), "r"(scale[t]), "r"(scale[t + 32]));
	out[t] = c[0] + c[1] + c[2] + c[3];
}
