/* SPDX-License-Identifier: MIT */
/*
 * A program of the driver API alone, which finds the driver's library as CUDA's runtime does: by its name, and its calls by
 * cuGetProcAddress.  It is recorded in front of whatever library that is.  The last line says how it went.
 */
#include "abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static unsigned passed, failed;
#define EXPECT(x) ((x) ? (void)passed++ : (void)(failed++, fprintf(stderr, "%s:%d: %s is not so\n", __FILE__, __LINE__, #x)))

/* FROM(name, its version in the library, parameters): the calls. */
#define CALLS                                                                                                               \
	FROM(cuInit, "", (unsigned flags))                                                                                      \
	FROM(cuDeviceGet, "", (int *device, int number))                                                                        \
	FROM(cuDevicePrimaryCtxRetain, "", (void **ctx, int device))                                                            \
	FROM(cuCtxSetCurrent, "", (void *ctx))                                                                                  \
	FROM(cuMemAlloc, "_v2", (uint64_t * at, size_t size))                                                                   \
	FROM(cuMemFree, "_v2", (uint64_t at))                                                                                   \
	FROM(cuMemAllocHost, "_v2", (void **p, size_t size))                                                                    \
	FROM(cuMemAllocManaged, "", (uint64_t * at, size_t size, unsigned flags))                                               \
	FROM(cuMemcpyHtoD, "_v2", (uint64_t at, const void *from, size_t size))                                                 \
	FROM(cuMemcpyDtoH, "_v2", (void *to, uint64_t at, size_t size))                                                         \
	FROM(cuModuleLoadData, "", (void **m, const void *image))                                                               \
	FROM(cuModuleGetFunction, "", (void **f, void *m, const char *name))                                                    \
	FROM(cuModuleGetGlobal, "_v2", (uint64_t * at, size_t * size, void *m, const char *name))                               \
	FROM(cuModuleUnload, "", (void *m))                                                                                     \
	FROM(cuCtxSynchronize, "", (void))                                                                                      \
	FROM(cuTensorMapEncodeTiled, "",                                                                                        \
	     (void *map, unsigned type, unsigned rank, uint64_t at, const uint64_t *dim, const uint64_t *stride,                \
	      const uint32_t *box, const uint32_t *step, unsigned interleave, unsigned swizzle, unsigned l2, unsigned fill))    \
	FROM(cuLaunchKernel, "",                                                                                                \
	     (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem, void *s,    \
	      void **args, void **extra))                                                                                       \
	FROM(cuLaunchKernelEx, "", (const dr_launch_config *c, void *f, void **args, void **extra))
#define FROM(name, version, parameters) static int(*name) parameters;
CALLS
#undef FROM

static const char ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".visible .global .align 8 .u64 where = 0;\n"
	".visible .global .align 4 .u32 count = 40;\n"
	/* p[i] += n, and the last address is kept in a variable, behind which the next kernel finds it */
	".visible .entry add(.param .u64 p, .param .u32 n) {\n"
	".reg .b64 %p<4>; .reg .b32 %r<8>;\n"
	"ld.param.u64 %p1, [p]; ld.param.u32 %r1, [n]; cvta.to.global.u64 %p1, %p1;\n"
	"mov.u32 %r2, %tid.x; mul.wide.u32 %p2, %r2, 4; add.u64 %p2, %p1, %p2;\n"
	"ld.global.u32 %r3, [%p2]; add.u32 %r3, %r3, %r1; st.global.u32 [%p2], %r3;\n"
	"atom.global.add.u32 %r4, [count], 1; st.global.u64 [where], %p1; ret; }\n"
	/* what the variable points to is doubled; out = count */
	".visible .entry follow(.param .u8 c, .param .u64 out) {\n"
	".reg .b64 %p<4>; .reg .b32 %r<8>;\n"
	"ld.param.u64 %p3, [out]; ld.global.u32 %r1, [count]; ld.param.u8 %r5, [c]; add.u32 %r1, %r1, %r5;\n"
	"st.global.u32 [%p3], %r1; ld.global.u64 %p1, [where];\n"
	"mov.u32 %r2, %tid.x; mul.wide.u32 %p2, %r2, 4; add.u64 %p2, %p1, %p2;\n"
	"ld.global.u32 %r3, [%p2]; add.u32 %r3, %r3, %r3; st.global.u32 [%p2], %r3; ret; }\n"
	/* a tile of 8 x 8 words by a tensor map, to p */
	".visible .entry tile(.param .align 64 .b8 map[128], .param .u64 p) {\n"
	".reg .b64 %p<8>; .reg .b32 %r<8>; .reg .pred %q; .shared .align 128 .b8 box[256]; .shared .align 8 .b64 bar;\n"
	"mov.b64 %p1, map; cvta.param.u64 %p2, %p1; mov.u32 %r1, box; mov.u32 %r2, bar; mov.u32 %r3, %tid.x;\n"
	"ld.param.u64 %p3, [p]; setp.ne.u32 %q, %r3, 0; @%q bra WAIT;\n"
	"mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;\n"
	"mbarrier.arrive.expect_tx.shared.b64 %p4, [%r2], 256;\n"
	"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%p2, {0, 0}], [%r2];\n"
	"WAIT: bar.sync 0;\nAGAIN: mbarrier.try_wait.parity.shared.b64 %q, [%r2], 0; @!%q bra AGAIN;\n"
	"shl.b32 %r4, %r3, 2; add.u32 %r1, %r1, %r4; ld.shared.u32 %r5, [%r1];\n"
	"mul.wide.u32 %p4, %r3, 4; add.u64 %p3, %p3, %p4; st.global.u32 [%p3], %r5; ret; }\n";

static bool begin(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *p = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
	int (*get)(const char *, void **, int, uint64_t, int *);
	int status;

	memcpy(&get, &p, sizeof get);
	if (!get)
		return false;
#define FROM(name, version, parameters)                                                                                     \
	if (get(#name, &p, 12030, 0, &status) || status)                                                                        \
		return false;                                                                                                       \
	memcpy(&name, &p, sizeof name);
	CALLS
#undef FROM
	/* a program that was linked with the library has it so; the same is to be seen there */
	p = dlsym(RTLD_DEFAULT, "cuMemFree_v2");
	if (p)
		memcpy(&cuMemFree, &p, sizeof cuMemFree);
	return true;
}

enum { N = 64 };

static void work(void)
{
	enum { BUFFER = 1, SIZE = 2 };
	void *ctx = NULL, *m = NULL, *add = NULL, *follow = NULL, *tile = NULL, *pinned = NULL;
	uint64_t a = 0, b = 0, c = 0, managed = 0, out, count = 0;
	unsigned host[N], n = 7;
	int device = -1;
	size_t size = 0;

	EXPECT(!cuInit(0) && !cuDeviceGet(&device, 0) && !cuDevicePrimaryCtxRetain(&ctx, device) && !cuCtxSetCurrent(ctx));
	EXPECT(!cuModuleLoadData(&m, ptx) && !cuModuleGetFunction(&add, m, "add") && !cuModuleGetFunction(&follow, m, "follow"));
	EXPECT(!cuMemAlloc(&a, 70000) && !cuMemAlloc(&b, sizeof host) && !cuMemAllocManaged(&managed, 4096, 1));
	EXPECT(!cuMemAllocHost(&pinned, 4096));
	for (unsigned i = 0; i < N; i++)
		host[i] = i * i;
	EXPECT(!cuMemcpyHtoD(a + 69000, host, sizeof host));
	uint64_t from = a + 69000;
	void *args[] = { &from, &n };
	EXPECT(!cuLaunchKernel(add, 1, 1, 1, N, 1, 1, 0, NULL, args, NULL));
	struct {
		unsigned char c;
		uint64_t out;
	} packed = { 2, managed };
	size_t bytes = sizeof packed;
	void *extra[] = { (void *)BUFFER, &packed, (void *)SIZE, &bytes, NULL };
	EXPECT(!cuLaunchKernel(follow, 1, 1, 1, N, 1, 1, 0, NULL, NULL, extra));
	EXPECT(!cuCtxSynchronize() && !cuMemcpyDtoH(host, from, sizeof host));
	for (unsigned i = 0; i < N; i++)
		EXPECT(host[i] == 2 * (i * i + 7));
	EXPECT(!cuMemcpyDtoH(host, managed, 4) && host[0] == 40 + N + 2);
	EXPECT(!cuModuleGetGlobal(&count, &size, m, "count") && size == 4 && !cuMemcpyHtoD(count, &n, 4));
	/* memory that is gone, and other memory */
	EXPECT(!cuMemFree(b) && !cuMemAlloc(&c, 512));
	out = (uintptr_t)pinned;
	unsigned char two = 2;
	void *again[] = { &two, &out };
	dr_launch_config config = { .grid = { 1, 1, 1 }, .block = { N, 1, 1 } };
	EXPECT(!cuLaunchKernelEx(&config, follow, again, NULL) && !cuCtxSynchronize() && *(unsigned *)pinned == 9);
	/* a variable whose address is an argument */
	void *onto[] = { &count, &n };
	EXPECT(!cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, NULL, onto, NULL) && !cuMemcpyDtoH(host, count, 4) && host[0] == 15);
	/* a tensor map among the parameters */
	const uint64_t dim[] = { 8, 8 }, stride[] = { 32 };
	const uint32_t box[] = { 8, 8 }, step[] = { 1, 1 };
	_Alignas(64) unsigned char map[128];
	for (unsigned i = 0; i < N; i++)
		host[i] = 3 * i;
	EXPECT(!cuMemcpyHtoD(a, host, sizeof host) && !cuModuleGetFunction(&tile, m, "tile"));
	EXPECT(!cuTensorMapEncodeTiled(map, 2, 2, a, dim, stride, box, step, 0, 0, 0, 0));
	void *with_map[] = { map, &c };
	EXPECT(!cuLaunchKernel(tile, 1, 1, 1, N, 1, 1, 0, NULL, with_map, NULL) && !cuCtxSynchronize());
	EXPECT(!cuMemcpyDtoH(host, c, sizeof host) && host[5] == 15 && host[63] == 189);
	EXPECT(!cuModuleUnload(m) && !cuMemFree(a) && !cuMemFree(c) && !cuMemFree(managed));
}

int main(void)
{
	if (begin())
		work();
	else
		fprintf(stderr, "libcuda.so.1 cannot be opened, or lacks a call\n");
	printf("%u passed, %u failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
