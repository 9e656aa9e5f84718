/* SPDX-License-Identifier: MIT */
/*
 * What a program of nvcc does, in C: it registers a fat binary of PTX, and calls the runtime that libcptx_sanitize stands in
 * for.  The first argument chooses what is tried; the last line says how it went.
 */
#include "abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The calls under test, as CUDA declares them. */
typedef struct stream stream;
typedef struct event event;
typedef struct graph graph;
typedef struct module module;
typedef struct kernel kernel;
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid,
                            rt_dim3 *block, rt_dim3 *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int ext, size_t size, int constant,
                       int global);
void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name, int ext, size_t size, int constant,
                              int global);
char __cudaInitModule(void **handle);
unsigned __cudaPushCallConfiguration(rt_dim3 grid, rt_dim3 block, size_t smem, stream *s);
int __cudaPopCallConfiguration(rt_dim3 *grid, rt_dim3 *block, size_t *smem, stream **s);
int cudaLaunchKernel(const void *f, rt_dim3 grid, rt_dim3 block, void **args, size_t smem, stream *s);
int cudaMalloc(void **p, size_t size);
int cudaMallocManaged(void **p, size_t size, unsigned flags);
int cudaMallocHost(void **p, size_t size);
int cudaFree(void *p);
int cudaFreeHost(void *p);
int cudaHostUnregister(void *p);
int cuModuleLoadData(module **m, const void *image);
int cuModuleUnload(module *m);
int cuModuleGetFunction(kernel **k, module *m, const char *name);
int cuGetErrorName(int e, const char **name);
int cuLaunchKernel(kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
                   stream *s, void **args, void **extra);
int cudaMemcpy(void *dst, const void *src, size_t size, int kind);
int cudaMemcpyAsync(void *dst, const void *src, size_t size, int kind, stream *s);
int cudaMemset(void *p, int value, size_t size);
int cudaMemcpyToSymbol(const void *symbol, const void *src, size_t size, size_t offset, int kind);
int cudaMemcpyFromSymbol(void *dst, const void *symbol, size_t size, size_t offset, int kind);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);
const char *cudaGetErrorName(int e);
int cudaStreamCreate(stream **s);
int cudaStreamDestroy(stream *s);
int cudaStreamBeginCapture(stream *s, int mode);
int cudaStreamEndCapture(stream *s, graph **g);
int cudaStreamWaitEvent(stream *s, event *e, unsigned flags);
int cudaEventCreate(event **e);
int cudaEventRecord(event *e, stream *s);
int cudaEventDestroy(event *e);
int cudaGraphInstantiate(graph **exec, graph *g, unsigned long long flags);
int cudaGraphLaunch(graph *exec, stream *s);
int cudaGraphDestroy(graph *g);
int cudaGraphExecDestroy(graph *g);
int cudaPointerGetAttributes(rt_pointer_attributes *a, const void *p);
int cuTensorMapEncodeTiled(void *map, unsigned type, unsigned rank, void *address, const uint64_t *dim,
                           const uint64_t *stride, const uint32_t *box, const uint32_t *step, unsigned interleave,
                           unsigned swizzle, unsigned l2, unsigned fill);
int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *f, int threads, size_t smem);
int cudaOccupancyMaxActiveClusters(int *clusters, const void *f, const rt_launch_config *c);
int cudaFuncGetAttributes(rt_func_attributes *a, const void *f);
int cudaGetDeviceProperties(rt_device_prop *p, int device);
int cudaMallocArray(void **array, const rt_format *format, size_t width, size_t height, unsigned flags);
int cudaMalloc3DArray(void **array, const rt_format *format, rt_extent extent, unsigned flags);
int cudaFreeArray(void *array);
int cudaMemcpy2DToArray(void *array, size_t x, size_t y, const void *src, size_t pitch, size_t width, size_t height,
                        int kind);
int cudaMemcpy2DFromArray(void *dst, size_t pitch, const void *array, size_t x, size_t y, size_t width, size_t height,
                          int kind);
int cudaMemcpy3D(const rt_copy3d *c);
int cudaCreateTextureObject(uint64_t *out, const rt_resource *r, const rt_sampler *s, const void *view);
int cudaDestroyTextureObject(uint64_t t);
int cudaDestroySurfaceObject(uint64_t t);
int cudaCreateSurfaceObject(uint64_t *out, const rt_resource *r);
int cuTexObjectCreate(uint64_t *out, const dr_resource *r, const dr_sampler *s, const void *view);
int cuMemcpy2D_v2(const dr_copy2d *c);
int cudaDeviceEnablePeerAccess(int peer, unsigned flags);
int cudaExternalMemoryGetMappedBuffer(void);
int cudaMallocAsync(void **p, size_t size, stream *s);
int cudaFreeAsync(void *p, stream *s);
int cuMemAddressReserve(uint64_t *at, size_t size, size_t align, uint64_t wish, unsigned long long flags);
int cuMemAddressFree(uint64_t at, size_t size);
int cuMemCreate(void **out, size_t size, const void *properties, unsigned long long flags);
int cuMemRelease(void *allocation);
int cuMemMap(uint64_t at, size_t size, size_t offset, void *allocation, unsigned long long flags);
int cuMemUnmap(uint64_t at, size_t size);
int cuMemGetAccess(unsigned long long *flags, const void *location, uint64_t at);
int cuMemSetAccess(uint64_t at, size_t size, const void *access, size_t n);
int cuLinkCreate_v2(unsigned n, int *options, void **values, void **linker);
int cuLinkAddFile_v2(void *l, int type, const char *path, unsigned n, int *options, void **values);
int cuLinkAddData_v2(void *linker, int type, const void *data, size_t size, const char *name, unsigned n, int *options,
                     void **values);
int cuLinkComplete(void *linker, void **image, size_t *size);
int cuLinkDestroy(void *linker);

static const char ptx[] =
	".version 7.0\n.target sm_80\n.address_size 64\n"
	".global .align 4 .u32 counter;\n"
	".global .attribute(.managed) .align 4 .u32 shared_with_host;\n"
	/* p[i] += n, and the counter counts threads */
	".visible .entry add(.param .u64 p, .param .u32 n) {\n"
	".reg .b64 %p<4>; .reg .b32 %r<8>;\n"
	"ld.param.u64 %p1, [p]; ld.param.u32 %r1, [n]; cvta.to.global.u64 %p1, %p1;\n"
	"mov.u32 %r2, %tid.x; mul.wide.u32 %p2, %r2, 4; add.u64 %p1, %p1, %p2;\n"
	"ld.global.u32 %r3, [%p1]; add.u32 %r3, %r3, %r1; st.global.u32 [%p1], %r3;\n"
	"mov.u64 %p3, counter; atom.global.add.u32 %r4, [%p3], 1;\n"
	"st.global.u32 [shared_with_host], %r1;\n"
	"ret; }\n"
	/* a race: each thread reads what its neighbour wrote, without a barrier */
	".visible .entry race(.param .u64 p) {\n"
	".reg .b64 %p<3>; .reg .b32 %r<8>; .shared .align 4 .b32 kept[64];\n"
	"ld.param.u64 %p1, [p]; cvta.to.global.u64 %p1, %p1;\n"
	"mov.u32 %r1, %tid.x; mov.u32 %r2, kept; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;\n"
	"st.shared.u32 [%r4], %r1; xor.b32 %r5, %r3, 128; add.u32 %r5, %r2, %r5; ld.shared.u32 %r6, [%r5];\n"
	"mul.wide.u32 %p2, %r1, 4; add.u64 %p1, %p1, %p2; st.global.u32 [%p1], %r6;\n"
	"ret; }\n"
	/* *p = the number of the warp */
	".visible .entry own(.param .u64 p) {\n"
	".reg .b64 %p<2>; .reg .b32 %r<2>;\n"
	"ld.param.u64 %p1, [p]; mov.u32 %r1, %tid.x; shr.u32 %r1, %r1, 5; st.relaxed.gpu.global.u32 [%p1], %r1; ret; }\n"
	/* p[i] = the texel (i % 8, i / 8), and then what is there counts one more in the surface */
	".visible .entry fetch(.param .u64 p, .param .u64 t, .param .u64 s) {\n"
	".reg .b64 %p<8>; .reg .b32 %r<8>; .reg .f32 %f<8>; .reg .pred %q;\n"
	"ld.param.u64 %p1, [p]; ld.param.u64 %p2, [t]; ld.param.u64 %p3, [s]; cvta.to.global.u64 %p1, %p1;\n"
	"mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 7; shr.u32 %r3, %r1, 3; cvt.rn.f32.u32 %f1, %r2; cvt.rn.f32.u32 %f2, %r3;\n"
	"tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [%p2, {%f1, %f2}];\n"
	"mul.wide.u32 %p4, %r1, 4; add.u64 %p1, %p1, %p4; st.global.f32 [%p1], %f3;\n"
	"setp.eq.u64 %q, %p3, 0; @%q ret; shl.b32 %r2, %r2, 2; add.f32 %f3, %f3, 0f3f800000;\n"
	"sust.b.2d.b32.trap [%p3, {%r2, %r3}], %f3; ret; }\n";

/* ---- a fat binary around it, as nvcc --compress-mode=none makes one ---- */

typedef struct fatbin {
	uint32_t magic;
	uint16_t version, head_size;
	uint64_t size;
	struct {
		uint16_t kind, version;
		uint32_t head_size;
		uint64_t size;
		uint32_t packed, options, version_of_ptx, arch;
		uint64_t name, flags, zero, unpacked;
	} entry;
	char text[sizeof ptx + 8];
} fatbin;
static fatbin image = { .magic = 0xba55ed50,
	                    .version = 1,
	                    .head_size = 16,
	                    .size = sizeof image - 16,
	                    .entry = { .kind = 1, .version = 0x101, .head_size = 64, .size = sizeof image.text, .arch = 80 } };
static struct {
	int magic, version;
	const void *image;
	void *more;
} wrapper = { 0x466243b1, 1, &image, NULL };

/* Their addresses stand for kernels and variables. */
static char add, race, own, fetch, counter;
static unsigned *shared_with_host;
static void **handle;

static void begin(void)
{
	memcpy(image.text, ptx, sizeof ptx);
	handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(handle, &add, &add, "add", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, &race, &race, "race", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, &own, &own, "own", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, &fetch, &fetch, "fetch", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, &counter, &counter, "counter", 0, 4, 0, 0);
	__cudaRegisterManagedVar(handle, (void **)(void *)&shared_with_host, NULL, "shared_with_host", 0, 4, 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
}

static unsigned failed, passed;
#define EXPECT(condition)                                                                                                   \
	((condition) ? (void)passed++ : (void)(failed++, printf("line %d: not so: %s\n", __LINE__, #condition)))

static int launch(const void *f, void *p, unsigned n, unsigned threads, stream *s)
{
	void *args[] = { &p, &n };
	const rt_dim3 one = { 1, 1, 1 }, block = { threads, 1, 1 };

	return cudaLaunchKernel(f, one, block, args, 0, s);
}

enum { N = 64 };

static void work(void)
{
	unsigned host[N], back[N], count = 0;
	void *p = NULL;

	for (unsigned i = 0; i < N; i++)
		host[i] = i;
	EXPECT(cudaMalloc(&p, sizeof host) == 0 && p);
	EXPECT(cudaMemcpy(p, host, sizeof host, RT_HOST_TO_DEVICE) == 0);
	EXPECT(launch(&add, p, 5, N, NULL) == 0);
	EXPECT(cudaDeviceSynchronize() == 0);
	EXPECT(cudaMemcpy(back, p, sizeof back, RT_DEVICE_TO_HOST) == 0);
	for (unsigned i = 0; i < N; i++)
		EXPECT(back[i] == i + 5);
	EXPECT(cudaMemcpyFromSymbol(&count, &counter, 4, 0, RT_DEVICE_TO_HOST) == 0 && count == N);
	count = 7;
	EXPECT(cudaMemcpyToSymbol(&counter, &count, 4, 0, RT_HOST_TO_DEVICE) == 0);
	EXPECT(cudaMemcpyFromSymbol(&count, &counter, 8, 0, RT_DEVICE_TO_HOST) == 1); /* it has 4 bytes */
	EXPECT(__cudaInitModule(handle) && shared_with_host && *shared_with_host == 5);
	EXPECT(cudaMemcpy(back, p, sizeof back, RT_HOST_TO_DEVICE) == 1); /* the wrong direction */
	EXPECT(cudaGetLastError() == 1 && cudaGetLastError() == 0);
	EXPECT(launch(&failed, p, 5, N, NULL) == 98); /* no kernel */
	EXPECT(launch(&add, p, 5, 2048, NULL) == 9);  /* too many threads */
	EXPECT(cudaFree(p) == 0);
	EXPECT(!strcmp(cudaGetErrorName(700), "cudaErrorIllegalAddress"));
}

static void memory(void)
{
	rt_pointer_attributes a;
	rt_func_attributes f;
	rt_device_prop d;
	unsigned *managed = NULL, *pinned = NULL;

	EXPECT(cudaMallocManaged((void **)&managed, N * 4, 1) == 0);
	EXPECT(cudaMallocHost((void **)&pinned, N * 4) == 0);
	for (unsigned i = 0; i < N; i++)
		managed[i] = i, pinned[i] = 2 * i;
	EXPECT(launch(&add, managed, 1, N, NULL) == 0 && launch(&add, pinned, 1, N, NULL) == 0);
	for (unsigned i = 0; i < N; i++)
		EXPECT(managed[i] == i + 1 && pinned[i] == 2 * i + 1);
	EXPECT(cudaPointerGetAttributes(&a, managed + 1) == 0 && a.type == RT_MANAGED && a.host_pointer == managed + 1);
	EXPECT(cudaPointerGetAttributes(&a, pinned) == 0 && a.type == RT_HOST && a.device_pointer == pinned);
	EXPECT(cudaPointerGetAttributes(&a, &a) == 0 && a.type == RT_UNREGISTERED && !a.device_pointer);
	EXPECT(cudaMemset(managed, 255, 8) == 0 && managed[1] == UINT32_MAX && managed[2] == 3);
	EXPECT(cudaFuncGetAttributes(&f, &race) == 0 && f.shared_bytes == 256 && f.max_threads == 1024);
	EXPECT(cudaGetDeviceProperties(&d, 0) == 0 && d.major == 9 && d.warp == 32 && d.managed == 1 && d.smem_optin == 232448);
	EXPECT(cudaGetDeviceProperties(&d, 1) == 101);
	EXPECT(cudaExternalMemoryGetMappedBuffer() == 801); /* not there */
	EXPECT(cudaDeviceEnablePeerAccess(1, 0) == 101);    /* there is one device */
	/* bytes behind the end of memory that the host has, too; the wrong way to free it */
	EXPECT(cudaMemset(managed, 0, N * 4 + 1) == 1 && cudaMemset(managed + 1, 0, N * 4) == 1);
	EXPECT(cudaMemcpy(pinned, managed, N * 4 + 4, RT_DEFAULT) == 1);
	EXPECT(cudaFree(pinned) == 1 && pinned[1] == 3 && cudaHostUnregister(NULL) == 1);
	EXPECT(cudaFree(managed) == 0 && cudaFreeHost(pinned) == 0);
}

static int launch_fetch(void *p, uint64_t texture, uint64_t surface)
{
	void *args[] = { &p, &texture, &surface };
	const rt_dim3 one = { 1, 1, 1 }, block = { N, 1, 1 };

	return cudaLaunchKernel(&fetch, one, block, args, 0, NULL);
}

/* An array by way of a texture and a surface, and copies of rows in and out. */
static void arrays(void)
{
	const rt_format f32 = { 32, 0, 0, 0, RT_FLOAT }, odd = { 8, 8, 8, 0, RT_UNSIGNED };
	float host[8][8], back[8][8], some[2][4];
	void *array = NULL, *p = NULL, *cube = NULL;
	uint64_t t = 0, s = 0;

	for (int i = 0; i < N; i++)
		(&host[0][0])[i] = (float)(i * i);
	EXPECT(cudaMallocArray(&array, &odd, 8, 8, 0) == 1 && cudaMallocArray(&array, &f32, 8, 8, 2) == 0);
	EXPECT(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, 8, RT_HOST_TO_DEVICE) == 0);
	EXPECT(cudaMemcpy2DToArray(array, 4, 0, host, 32, 32, 8, RT_HOST_TO_DEVICE) == 1); /* behind the end of the rows */
	EXPECT(cudaMalloc(&p, sizeof host) == 0);
	const rt_resource r = { .type = RT_OF_ARRAY, .res = { .array = (struct san_array *)array } };
	rt_sampler sampler = { .outside = { 1, 1, 1 } };
	EXPECT(cudaCreateTextureObject(&t, &r, &sampler, NULL) == 0 && cudaCreateSurfaceObject(&s, &r) == 0);
	EXPECT(launch_fetch(p, t, s) == 0 && cudaMemcpy(back, p, sizeof back, RT_DEVICE_TO_HOST) == 0);
	EXPECT(!memcmp(back, host, sizeof host));
	EXPECT(cudaMemcpy2DFromArray(some, 16, array, 8, 3, 16, 2, RT_DEVICE_TO_HOST) == 0);
	EXPECT(some[0][0] == host[3][2] + 1 && some[1][3] == host[4][5] + 1);
	EXPECT(cudaDestroySurfaceObject(t) == 1 && cudaDestroyTextureObject(s) == 1); /* each is one of the other kind */
	EXPECT(cudaDestroyTextureObject(t) == 0 && cudaDestroyTextureObject(t) == 1 && cudaDestroySurfaceObject(s) == 0);
	/* channels that differ, and a gap */
	static const rt_format none[] = { { 8, 8, -24, 8, RT_UNSIGNED }, { 8, 0, 8, 8, RT_UNSIGNED },
		                              { 8, 8, 0, 8, RT_UNSIGNED },   { 8, 8, 16, 8, RT_UNSIGNED },
		                              { 8, 16, 0, 0, RT_UNSIGNED },  { -8, 0, 0, 0, RT_UNSIGNED } };
	for (int i = 0; i < 6; i++)
		EXPECT(cudaMallocArray(&cube, &none[i], 8, 8, 0) == 1);
	/* halves of neighbours: x and y are 0.5 less than the middles of the texels */
	sampler.linear = 1;
	const rt_resource rows = { .type = RT_OF_ROWS,
		                       .res = { .rows = { .at = p, .format = f32, .width = 8, .height = 8, .pitch = 32 } } };
	EXPECT(cudaCreateTextureObject(&t, &rows, &sampler, NULL) == 0);
	EXPECT(cudaMalloc((void **)&array, sizeof host) == 0 && launch_fetch(array, t, 0) == 0);
	EXPECT(cudaMemcpy(back, array, sizeof back, RT_DEVICE_TO_HOST) == 0);
	EXPECT(back[2][3] == (host[1][2] + host[1][3] + host[2][2] + host[2][3]) / 4 && back[0][0] == host[0][0]);
	const dr_resource linear = { .type = RT_OF_LINEAR,
		                         .res = { .linear = { .at = (uintptr_t)p, .format = 0x20, .channels = 1, .size = 64 } } };
	const dr_sampler plain = { .flags = DR_AS_INTEGER };
	EXPECT(cuTexObjectCreate(&t, &linear, &plain, NULL) == 0);
	/* faces of a cube, as slices */
	const rt_extent six = { 2, 2, 6 };
	rt_copy3d c = { .src = { .ptr = host, .pitch = 8, .xsize = 2, .ysize = 2 },
		            .extent = { 2, 2, 6 },
		            .kind = RT_HOST_TO_DEVICE };
	EXPECT(cudaMalloc3DArray(&cube, &f32, (rt_extent){ 2, 3, 6 }, RT_ARRAY_CUBE) == 1);
	EXPECT(cudaMalloc3DArray(&cube, &f32, six, RT_ARRAY_CUBE) == 0);
	c.dst_array = cube;
	EXPECT(cudaMemcpy3D(&c) == 0);
	c.extent.width += (size_t)1 << 62; /* whose bytes are those of 2 texels, counted by 64 bits */
	EXPECT(cudaMemcpy3D(&c) == 1);
	c.extent.width = 2, c.src_pos.z = c.src.ysize = (size_t)1 << 62;
	EXPECT(cudaMemcpy3D(&c) == 1);
	float face[2][2];
	dr_copy2d d = { .src = { .type = DR_ARRAY, .array = (struct san_array *)cube },
		            .dst = { .type = DR_HOST, .host = face, .pitch = 8 },
		            .width = 8,
		            .height = 2 };
	EXPECT(cuMemcpy2D_v2(&d) == 0 && face[1][1] == host[0][3]);
	d.dst.y = SIZE_MAX / 4;
	EXPECT(cuMemcpy2D_v2(&d) == 1);
	d.dst.y = 0;
	EXPECT(cudaFreeArray(cube) == 0 && cudaFreeArray(cube) == 1 && cuMemcpy2D_v2(&d) == 1);
}

/* Texts that call one another, from memory and from a file; one that is defined twice is told when the image is loaded. */
static void linked(void)
{
	static const char head[] = ".version 7.8\n.target sm_80\n.address_size 64\n";
	char caller[400], callee[400], name[] = "/tmp/cptx-linked-XXXXXX";
	void *l = NULL, *built = NULL;
	module *m = NULL;
	kernel *k = NULL;
	unsigned *x = NULL, back = 0;
	size_t size = 0;
	int fd = mkstemp(name);

	snprintf(caller, sizeof caller,
	         "%s.extern .func f(.param .b64 p);\n.visible .entry k(.param .u64 q)\n{\n.reg .b64 %%rd<2>;\n"
	         "ld.param.u64 %%rd1, [q];\n{ .param .b64 p; st.param.b64 [p], %%rd1; call f, (p); }\nret;\n}\n",
	         head);
	snprintf(callee, sizeof callee,
	         "%s.visible .func f(.param .b64 p)\n{\n.reg .b64 %%rd<2>;\nld.param.u64 %%rd1, [p];\n"
	         "st.global.u32 [%%rd1], 77;\nret;\n}\n",
	         head);
	EXPECT(fd >= 0 && write(fd, callee, strlen(callee)) == (ssize_t)strlen(callee) && !close(fd));
	EXPECT(cuLinkCreate_v2(0, NULL, NULL, &l) == 0 &&
	       cuLinkAddData_v2(l, 1, caller, strlen(caller), "a", 0, NULL, NULL) == 0);
	EXPECT(cuLinkAddFile_v2(l, 1, "/nothing/is/here", 0, NULL, NULL) == 301 &&
	       cuLinkAddFile_v2(l, 1, name, 0, NULL, NULL) == 0);
	EXPECT(cuLinkComplete(l, &built, &size) == 0 && size > strlen(caller) + strlen(callee));
	EXPECT(cuModuleLoadData(&m, built) == 0 && cuModuleGetFunction(&k, m, "k") == 0 && cudaMalloc((void **)&x, 4) == 0);
	void *args[] = { &x };
	EXPECT(cuLaunchKernel(k, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL) == 0);
	EXPECT(cudaMemcpy(&back, x, 4, RT_DEVICE_TO_HOST) == 0 && back == 77 && cuModuleUnload(m) == 0);
	EXPECT(cuLinkAddFile_v2(l, 1, name, 0, NULL, NULL) == 0 && cuLinkComplete(l, &built, &size) == 0);
	EXPECT(cuModuleLoadData(&m, built) != 0 && cuLinkDestroy(l) == 0 && cudaFree(x) == 0);
	unlink(name);
}

/* Short texts at the end of what can be read are no images, and nothing behind them is looked at. */
static void short_images(void)
{
	static const char *const all[] = { "", "bad", "cptxlin", "\177EL" };
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *p = (char *)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	module *m = NULL;

	EXPECT(p != MAP_FAILED && !munmap(p + page, page));
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const size_t n = strlen(all[i]) + 1;
		memcpy(p + page - n, all[i], n);
		EXPECT(cuModuleLoadData(&m, p + page - n) != 0 && !m);
	}
	EXPECT(!munmap(p, page));
}

/* Memory that is reserved, made and mapped apart; the linker; memory of a graph. */
static void parts(void)
{
	const size_t size = 2 << 20;
	char text[sizeof ptx];
	uint64_t at = 0;
	void *a = NULL, *l = NULL, *built = NULL, *p = NULL, *q = NULL;
	unsigned back[N];
	stream *s = NULL;
	graph *g = NULL, *exec = NULL;
	module *m = NULL;

	EXPECT(cuMemAddressReserve(&at, 2 * size, 0, 0, 0) == 0 && at % size == 0 && cuMemAddressReserve(&at, 5, 0, 0, 0) == 1);
	EXPECT(cuMemCreate(&a, size, NULL, 0) == 0 && cuMemSetAccess(at, size, NULL, 0) == 1);
	EXPECT(cuMemMap(at, size, 0, a, 0) == 0 && cuMemMap(at, size, 0, a, 0) == 1 && cuMemSetAccess(at, size, NULL, 0) == 0);
	unsigned long long flags = 0;
	EXPECT(cuMemGetAccess(&flags, NULL, at + 100) == 0 && flags == 3 && cuMemGetAccess(&flags, NULL, at + size) == 0 &&
	       !flags);
	EXPECT(cuMemSetAccess(at + size / 2, size, NULL, 0) == 1); /* half of it */
	EXPECT(cuMemRelease(a) == 0 && cuMemRelease(a) == 1 && cuMemMap(at + size, size, 0, a, 0) == 1 && cuMemRelease(&a) == 1);
	EXPECT(cudaMemset((void *)(uintptr_t)at, 0, size) == 0);
	EXPECT(launch(&add, (void *)(uintptr_t)at, 3, N, NULL) == 0);
	EXPECT(cudaMemcpy(back, (void *)(uintptr_t)at, sizeof back, RT_DEVICE_TO_HOST) == 0 && back[9] == 3);
	EXPECT(cuMemAddressFree(at, 2 * size) == 1 && cuMemUnmap(at, size) == 0 && cuMemAddressFree(at, 2 * size) == 0);

	memcpy(text, ptx, sizeof ptx);
	EXPECT(cuLinkCreate_v2(0, NULL, NULL, &l) == 0 && cuLinkAddData_v2(l, 1, text, sizeof ptx, "a", 0, NULL, NULL) == 0);
	EXPECT(cuLinkAddData_v2(l, 0, text, sizeof ptx, "b", 0, NULL, NULL) == 801 && cuLinkComplete(NULL, &built, NULL) == 1);
	EXPECT(cuLinkComplete(l, &built, NULL) == 0 && cuModuleLoadData(&m, built) == 0 && cuLinkDestroy(l) == 0);
	linked();
	short_images();

	EXPECT(cudaStreamCreate(&s) == 0 && cudaStreamBeginCapture(s, 0) == 0 && cudaMallocAsync(&p, N * 4, s) == 0);
	EXPECT(cudaMalloc(&q, N * 4) == 900 && cudaFreeAsync(p, s) == 0 && cudaStreamEndCapture(s, &g) == 0);
	EXPECT(cudaGraphInstantiate(&exec, g, 0) == 0 && cudaGraphLaunch(exec, s) == 0 && cudaGraphLaunch(exec, s) == 0);
	EXPECT(cudaMemset(p, 0, N * 4) == 0 && cudaGraphExecDestroy(exec) == 0 && cudaGraphDestroy(g) == 0);
	EXPECT(cudaMemset(p, 0, N * 4) != 0); /* it went with the last graph */

	/* memory that a graph leaves allocated */
	EXPECT(cudaStreamBeginCapture(s, 0) == 0 && cudaMallocAsync(&p, N * 4, s) == 0 && cudaStreamEndCapture(s, &g) == 0);
	EXPECT(cudaGraphInstantiate(&exec, g, 0) == 0 && cudaFree(p) == 1);
	EXPECT(cudaGraphLaunch(exec, s) == 0 && cudaFreeHost(p) == 1 && cudaFree(p) == 0 && cudaFree(p) == 1);
	EXPECT(cudaGraphLaunch(exec, s) == 0 && cudaGraphExecDestroy(exec) == 0 && cudaGraphDestroy(g) == 0);
	EXPECT(cudaMemset(p, 0, N * 4) == 0 && cudaFree(p) == 0);
}

/* The shapes of <<<...>>> are a stack: arguments of a kernel may launch another one. */
static void shapes(void)
{
	const rt_dim3 one = { 1, 1, 1 }, two = { 2, 2, 2 };
	rt_dim3 grid, block;
	size_t smem;
	stream *s;

	EXPECT(__cudaPushCallConfiguration(one, one, 1, NULL) == 0 && __cudaPushCallConfiguration(two, two, 2, NULL) == 0);
	EXPECT(__cudaPopCallConfiguration(&grid, &block, &smem, &s) == 0 && grid.x == 2 && smem == 2);
	EXPECT(__cudaPopCallConfiguration(&grid, &block, &smem, &s) == 0 && grid.x == 1 && smem == 1);
	EXPECT(__cudaPopCallConfiguration(&grid, &block, &smem, &s) == 9);

	/* Clusters of 4 on a device whose multiprocessors, of which the command line names 8, hold so many blocks each. */
	rt_launch_attr of_4 = { .id = RT_ATTR_CLUSTER };
	of_4.value.cluster = (rt_dim3){ 2, 2, 1 };
	const rt_launch_config c = { .grid = { 8, 2, 1 }, .block = { 64, 1, 1 }, .attrs = &of_4, .nattrs = 1 };
	rt_device_prop p;
	int blocks = 0, clusters = 0;
	EXPECT(cudaGetDeviceProperties(&p, 0) == 0 && (p.sms == 8 || p.sms == 132));
	EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &add, 64, 0) == 0 && blocks > 0);
	EXPECT(cudaOccupancyMaxActiveClusters(&clusters, &add, &c) == 0 && clusters == blocks * p.sms / 4);
	printf("%d multiprocessors\n", p.sms);
}

/* A stride of 0 is taken, also where that of packed rows would be none. */
static void maps(void)
{
	const uint32_t box[] = { 64, 1 }, step[] = { 1, 1 };
	const uint64_t one[] = { 3, 1 }, two[] = { 3, 2 }, none = 0, some = 32;
	_Alignas(64) uint8_t map[128];
	void *p = NULL;

	EXPECT(cudaMalloc(&p, 4096) == 0);
	EXPECT(cuTensorMapEncodeTiled(map, 0, 2, p, one, &none, box, step, 0, 0, 0, 0) == 0);
	EXPECT(cuTensorMapEncodeTiled(map, 0, 2, p, two, &some, box, step, 0, 0, 0, 0) == 0);
	EXPECT(cuTensorMapEncodeTiled(map, 0, 2, p, two, &none, box, step, 0, 0, 0, 0) == 0);
	EXPECT(cudaFree(p) == 0);
}

/* Handles that are none any more, and arguments that are not given. */
static void handles(void)
{
	char text[sizeof ptx];
	kernel *k = NULL;
	module *m = NULL;
	graph *exec = NULL;
	const char *name = NULL;
	void *p = NULL;

	memcpy(text, ptx, sizeof ptx);
	EXPECT(cuModuleLoadData(&m, text) == 0 && cuModuleGetFunction(&k, m, "race") == 0);
	EXPECT(cuLaunchKernel(k, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) == 1);       /* it has a parameter */
	EXPECT(cuModuleGetFunction(&k, m, "none") == 500 && cudaGetLastError() == 0); /* which the runtime does not hear of */
	EXPECT(cuModuleGetFunction(&k, m, "race") == 0 && cuModuleUnload(m) == 0);
	EXPECT(cuLaunchKernel(k, 1, 1, 1, 32, 1, 1, 0, NULL, &p, NULL) == 400);
	EXPECT(cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, NULL, &p, NULL) == 400);
	EXPECT(cuGetErrorName(700, &name) == 0 && !strcmp(name, "CUDA_ERROR_ILLEGAL_ADDRESS"));
	EXPECT(cuModuleLoadData(&m, NULL) == 1 && cuModuleLoadData(NULL, text) == 1);
	EXPECT(cudaGraphInstantiate(&exec, NULL, 0) == 1 && cudaGraphLaunch(NULL, NULL) == 1);
	EXPECT(cudaGraphDestroy(NULL) == 1 && cudaGraphExecDestroy(NULL) == 1);
}

static void graphs(void)
{
	unsigned ones[N], back[N];
	stream *s = NULL, *other = NULL;
	graph *g = NULL, *exec = NULL;
	event *e = NULL;
	void *p = NULL, *more;

	for (unsigned i = 0; i < N; i++)
		ones[i] = 1;
	EXPECT(cudaMalloc(&p, sizeof ones) == 0 && cudaStreamCreate(&s) == 0 && cudaStreamCreate(&other) == 0);
	EXPECT(cudaEventCreate(&e) == 0);
	EXPECT(cudaStreamBeginCapture(s, 0) == 0);
	EXPECT(cudaMemcpyAsync(p, ones, sizeof ones, RT_HOST_TO_DEVICE, s) == 0);
	EXPECT(launch(&add, p, 10, N, s) == 0);
	EXPECT(cudaMalloc(&more, 4) == 900); /* not while a stream is captured in global mode */
	EXPECT(cudaEventRecord(e, s) == 0 && cudaStreamWaitEvent(other, e, 0) == 0);
	EXPECT(launch(&add, p, 100, N, other) == 0); /* joins the graph */
	EXPECT(cudaStreamEndCapture(s, &g) == 0 && g);
	EXPECT(cudaGraphInstantiate(&exec, g, 0) == 0 && cudaGraphDestroy(g) == 0);
	ones[3] = 4; /* the graph copies what is there when it runs */
	for (int turn = 0; turn < 2; turn++) {
		EXPECT(cudaGraphLaunch(exec, s) == 0);
		EXPECT(cudaMemcpy(back, p, sizeof back, RT_DEVICE_TO_HOST) == 0 && back[2] == 111 && back[3] == 114);
	}
	EXPECT(cudaGraphExecDestroy(exec) == 0 && cudaEventDestroy(e) == 0);
	EXPECT(cudaGraphExecDestroy(exec) == 1 && cudaGraphLaunch(exec, s) == 1 && cudaGraphDestroy(g) == 1);
	EXPECT(cudaStreamDestroy(s) == 0 && cudaStreamDestroy(other) == 0 && cudaStreamDestroy(other) == 400);
	EXPECT(cudaFree(p) == 0);
}

/* A finding that does not end a launch: the program goes on. */
static void races(void)
{
	void *p = NULL;

	EXPECT(cudaMalloc(&p, N * 4) == 0 && launch(&race, p, 0, N, NULL) == 0 && cudaDeviceSynchronize() == 0);
	EXPECT(cudaFree(p) == 0);
}

/* An address that ends the launch, and every later call. */
static void ends(void)
{
	void *p = NULL;

	const char *name = NULL;

	EXPECT(cudaMalloc(&p, 16) == 0 && launch(&add, p, 1, N, NULL) == 0);
	EXPECT(cudaDeviceSynchronize() == 700 && cudaGetLastError() == 700 && cudaFree(p) == 700 && cudaMalloc(&p, 4) == 700);
	EXPECT(cuGetErrorName(700, &name) == 0 && name);
}

/* Warnings of one line of the source, which is unrolled: all lanes start the same copies. */
static void warns(void)
{
	static const char text[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
							   ".visible .entry k(.param .u64 p) {\n"
							   ".reg .b64 %p<2>; .reg .b32 %r<4>; .shared .align 16 .b32 s[32];\n"
							   "ld.param.u64 %p1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2;\n"
							   "st.shared.u32 [%r3], %r1; fence.proxy.async; bar.sync 0;\n"
							   ".loc 1 7 1\n"
							   "cp.async.bulk.global.shared::cta.bulk_group [%p1], [%r2], 32;\n"
							   "cp.async.bulk.global.shared::cta.bulk_group [%p1+32], [%r2+32], 32;\n"
							   "cp.async.bulk.global.shared::cta.bulk_group [%p1+64], [%r2+64], 32;\n"
							   ".loc 1 8 1\n"
							   "cp.async.bulk.global.shared::cta.bulk_group [%p1+96], [%r2+96], 32;\n"
							   "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret; }\n"
							   ".file 1 \"unrolled.cu\"\n";
	module *m = NULL;
	kernel *k = NULL;
	void *p = NULL, *args[] = { &p };

	EXPECT(cudaMalloc(&p, 128) == 0 && cuModuleLoadData(&m, text) == 0 && cuModuleGetFunction(&k, m, "k") == 0);
	EXPECT(cuLaunchKernel(k, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL) == 0 && cudaDeviceSynchronize() == 0);
	EXPECT(cuModuleUnload(m) == 0 && cudaFree(p) == 0);
}

static void frees(void)
{
	void *p = NULL;

	EXPECT(cudaMalloc(&p, 16) == 0 && cudaFree(p) == 0 && cudaFree(p) == 1);
}

/* Two warps store their numbers in one place: which of them stays depends on the order. */
static void order(void)
{
	void *p = NULL;
	unsigned stays = 7;

	EXPECT(cudaMalloc(&p, 16) == 0 && cudaMemset(p, 0, 16) == 0);
	EXPECT(launch(&own, p, 0, 64, NULL) == 0 && cudaDeviceSynchronize() == 0);
	EXPECT(cudaMemcpy(&stays, p, 4, RT_DEVICE_TO_HOST) == 0 && stays < 2);
	printf("stored at %p\n", p);
	EXPECT(cudaFree(p) == 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = { { "work", work },     { "memory", memory }, { "graphs", graphs },   { "shapes", shapes }, { "maps", maps },
		        { "arrays", arrays }, { "parts", parts },   { "handles", handles }, { "races", races },   { "ends", ends },
		        { "frees", frees },   { "warns", warns },   { "order", order } };

	begin();
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (argc > 1 && !strcmp(argv[1], all[i].name))
			all[i].run();
	__cudaUnregisterFatBinary(handle);
	printf("%u passed, %u failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
