// What the kernels of data-centre Blackwell share: descriptors, and the way from tensor memory to global memory.
#pragma once
#include "ptx.cuh"

// K-major rows of 128 bytes in the 128B swizzle.
static __device__ __forceinline__ unsigned long long tile_descriptor(const void *tile)
{
	return (address(tile) & 0x3ffff) >> 4 | static_cast<unsigned long long>(1024 >> 4) << 32 | 1ull << 46 | 2ull << 61;
}

static __device__ __forceinline__ void fence_before()
{
	asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

static __device__ __forceinline__ void fence_after()
{
	asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// The warp's 32 rows, 16 columns at a time.
static __device__ __forceinline__ void store_rows(float *to, unsigned from, int columns)
{
	for (int at = 0; at < columns; at += 16) {
		float v[16];
		asm volatile("tcgen05.ld.sync.aligned.32x32b.x16.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, [%16];"
			: "=f"(v[0]), "=f"(v[1]), "=f"(v[2]), "=f"(v[3]), "=f"(v[4]), "=f"(v[5]), "=f"(v[6]), "=f"(v[7]), "=f"(v[8]), "=f"(v[9]),
			"=f"(v[10]), "=f"(v[11]), "=f"(v[12]), "=f"(v[13]), "=f"(v[14]), "=f"(v[15]) : "r"(from + at));
		asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
		for (int i = 0; i < 16; i += 4)
			*reinterpret_cast<float4 *>(to + at + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
	}
}
