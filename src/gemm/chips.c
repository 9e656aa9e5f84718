/* SPDX-License-Identifier: MIT */
/*
 * The GPUs that the models count with, by the numbers of their targets.
 *
 * Only the H200's times are measured (bench/RESULTS.md).  All others are rooflines by published figures: multiprocessors,
 * clocks, bytes of memory, and dense products of 16-bit types with f32 sums and of f64, from data sheets.
 */
#include "gemm/auto.h"

#define ROOFLINE ", a roofline by its data sheet"

/* mma.sync and the kernel for few rows.  Data sheets have 312, 71, 43, 165 and 210 TFLOP/s of the A100, RTX 3090, Orin, RTX
 * 4090 and RTX 5090; nothing is published of mma.sync on sm_100 to sm_110: there a multiprocessor counts as that of the
 * H200. GB10's multiprocessors count as those of the RTX 5090. */
const gemm_chip gemm_sync_chips[GEMM_SYNC_CHIPS] = {
	{ 80, "A100" ROOFLINE, 108, 1.41, 1555, 1024, 64 },
	{ 86, "GeForce RTX 3090" ROOFLINE, 82, 1.695, 936, 256, 2 },
	{ 87, "Jetson AGX Orin" ROOFLINE, 16, 1.3, 205, 1024, 2 },
	{ 89, "GeForce RTX 4090" ROOFLINE, 128, 2.52, 1008, 256, 2 },
	{ 90, "H200, by measured rates", 132, 1.80, 4264, 4096 / 3.0, 128 },
	{ 100, "B200" ROOFLINE, 148, 1.856, 8000, 4096 / 3.0, 73 },
	{ 103, "B300" ROOFLINE, 148, 1.92, 8000, 4096 / 3.0, 2 },
	{ 110, "Jetson AGX Thor" ROOFLINE, 20, 1.57, 273, 4096 / 3.0, 2 },
	{ 120, "GeForce RTX 5090" ROOFLINE, 170, 2.407, 1792, 256, 2 },
	{ 121, "GB10" ROOFLINE, 48, 2.42, 273, 256, 2 },
};

/* tcgen05: products are those of the model, 4096 a clock of all of these. */
const gemm_chip gemm_tcgen05_chips[GEMM_TCGEN05_CHIPS] = {
	{ 100, "B200" ROOFLINE, 148, 1.856, 8000, 0, 0 },
	{ 103, "B300" ROOFLINE, 148, 1.92, 8000, 0, 0 },
	{ 110, "Jetson AGX Thor" ROOFLINE, 20, 1.57, 273, 0, 0 },
};

/* mma.sync with scale factors.  The RTX 5090's data sheet has dense 419 TFLOP/s of fp8 with f32 sums, and four times as many
 * of fp4. */
const gemm_chip gemm_scaled_chips[GEMM_SCALED_CHIPS] = {
	{ 120, "GeForce RTX 5090" ROOFLINE, 170, 2.407, 1792, 512, 0 },
	{ 121, "GB10" ROOFLINE, 48, 2.42, 273, 512, 0 },
};
