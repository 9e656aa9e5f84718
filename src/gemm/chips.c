/* SPDX-License-Identifier: MIT */
/*
 * The GPUs that the models count with, by the numbers of their targets.
 *
 * Only the H200's times are measured (bench/RESULTS.md).  All others are rooflines by published figures: multiprocessors,
 * clocks, bytes of memory, and dense products of 16-bit types with f32 sums and of f64, from data sheets.
 */
#include "gemm/auto.h"

#define ROOFLINE ", a roofline by its data sheet"

/* mma.sync, and the kernel for few rows: data sheets have 312, 71, 43, 165 and 210 TFLOP/s of the A100, RTX 3090, Orin, RTX
 * 4090 and RTX 5090; nothing is published of mma.sync on sm_100 to sm_110: there a multiprocessor counts as that of the
 * H200.  GB10's multiprocessors count as those of the RTX 5090, whose data sheet has 419 TFLOP/s of fp8 with scale factors,
 * and four times as many of fp4.  The models of wgmma and tcgen05 count clocks of their own; these are 2048 and 4096. */
#define HOPPER (4096 / 3.0)
const gemm_chip gemm_chips[GEMM_CHIPS] = {
	/* from, name, multiprocessors, GHz, GB/s; products of f64, by mma.sync, with scale factors, by wgmma, by tcgen05 */
	{ 80, "A100" ROOFLINE, 108, 1.41, 1555, 64, { 1024, 0, 0, 0 } },
	{ 86, "GeForce RTX 3090" ROOFLINE, 82, 1.695, 936, 2, { 256, 0, 0, 0 } },
	{ 87, "Jetson AGX Orin" ROOFLINE, 16, 1.3, 205, 2, { 1024, 0, 0, 0 } },
	{ 89, "GeForce RTX 4090" ROOFLINE, 128, 2.52, 1008, 2, { 256, 0, 0, 0 } },
	{ 90, "H200, fitted to measured times", 132, 1.80, 4264, 128, { HOPPER, 0, 2048, 0 } },
	{ 100, "B200" ROOFLINE, 148, 1.856, 8000, 73, { HOPPER, 0, 0, 4096 } },
	{ 103, "B300" ROOFLINE, 148, 1.92, 8000, 2, { HOPPER, 0, 0, 4096 } },
	{ 110, "Jetson AGX Thor" ROOFLINE, 20, 1.57, 273, 2, { HOPPER, 0, 0, 4096 } },
	{ 120, "GeForce RTX 5090" ROOFLINE, 170, 2.407, 1792, 2, { 256, 512, 0, 0 } },
	{ 121, "GB10" ROOFLINE, 48, 2.42, 273, 2, { 256, 512, 0, 0 } },
};
