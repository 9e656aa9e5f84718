/* The sizes that the sm_90a GEMM is measured and its model fitted with: cubes, and products of language models. */
#ifndef BENCH_GEMM_SIZES_H
#define BENCH_GEMM_SIZES_H

static const char *const gemm_sizes[] = {
	"2048x2048x2048", "4096x4096x4096",   "6144x6144x6144",  "8192x8192x8192",  "16384x16384x16384", "1x4096x4096",
	"16x6144x4096",   "32x28672x4096",    "64x4096x14336",   "128x8192x8192",   "128x10240x8192",    "256x57344x8192",
	"256x4096x7168",  "512x24576x1536",   "512x7168x16384",  "512x4096x7168",   "1024x6144x4096",    "1024x4096x14336",
	"1024x7168x2048", "1024x16384x53248", "2048x28672x4096", "2048x10240x8192", "4096x4096x7168",    "4096x14336x4096",
	"4096x8200x4096", "8192x8192x1024",   "8192x7168x2048",  "1000x5000x7168",  "777x3336x14336",    "3000x3000x3000",
};

#endif
