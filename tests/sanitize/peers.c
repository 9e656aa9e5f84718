/* SPDX-License-Identifier: MIT */
/*
 * Several devices, by the driver API: what each reaches, copies between them, memory that several map, multicast objects,
 * and memory of another process.  The first argument chooses what is tried; the last line says how it went.
 */
#include "abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct ipc_handle {
	char bytes[64];
} ipc_handle;
typedef struct properties {
	int type, handles;
	rt_location where;
	void *windows;
	unsigned char flags[8];
} properties;
typedef struct whose_access {
	rt_location where;
	int flags;
} whose_access;
typedef struct multicast {
	unsigned devices;
	size_t size;
	unsigned long long handles, flags;
} multicast;

int cuInit(unsigned flags);
int cuDeviceGetCount(int *n);
int cuDeviceGet(int *device, int number);
int cuDeviceGetAttribute(int *v, int attribute, int device);
int cuDeviceCanAccessPeer(int *can, int device, int peer);
int cuDeviceGetP2PAttribute(int *v, int which, int device, int peer);
int cuDeviceGetPCIBusId(char *name, int size, int device);
int cuDeviceGetByPCIBusId(int *device, const char *name);
int cuCtxCreate_v2(void **ctx, unsigned flags, int device);
int cuCtxDestroy_v2(void *ctx);
int cuCtxSetCurrent(void *ctx);
int cuCtxPushCurrent_v2(void *ctx);
int cuCtxPopCurrent_v2(void **ctx);
int cuCtxGetDevice(int *device);
int cuCtxGetCurrent(void **ctx);
int cuCtxSynchronize(void);
int cuCtxEnablePeerAccess(void *ctx, unsigned flags);
int cuCtxDisablePeerAccess(void *ctx);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuMemAlloc_v2(uint64_t *at, size_t size);
int cuMemAllocManaged(uint64_t *at, size_t size, unsigned flags);
int cuMemFree_v2(uint64_t at);
int cuMemcpyHtoD_v2(uint64_t at, const void *from, size_t size);
int cuMemcpyDtoH_v2(void *to, uint64_t at, size_t size);
int cuMemcpyPeer(uint64_t to, void *to_ctx, uint64_t from, void *from_ctx, size_t size);
int cuMemsetD32_v2(uint64_t at, unsigned v, size_t n);
int cuModuleLoadData(void **m, const void *image);
int cuModuleGetFunction(void **f, void *m, const char *name);
int cuModuleGetGlobal_v2(uint64_t *at, size_t *size, void *m, const char *name);
int cuStreamCreate(void **s, unsigned flags);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned smem,
                   void *s, void **args, void **extra);
int cuMemAddressReserve(uint64_t *at, size_t size, size_t align, uint64_t wish, unsigned long long flags);
int cuMemAddressFree(uint64_t at, size_t size);
int cuMemCreate(void **out, size_t size, const properties *p, unsigned long long flags);
int cuMemRelease(void *of);
int cuMemMap(uint64_t at, size_t size, size_t offset, void *of, unsigned long long flags);
int cuMemUnmap(uint64_t at, size_t size);
int cuMemSetAccess(uint64_t at, size_t size, const whose_access *list, size_t n);
int cuMemGetAccess(unsigned long long *flags, const rt_location *where, uint64_t at);
int cuMemExportToShareableHandle(int *fd, void *of, int type, unsigned long long flags);
int cuMemImportFromShareableHandle(void **out, void *handle, int type);
int cuDeviceGetDefaultMemPool(void **pool, int device);
int cuMemAllocFromPoolAsync(uint64_t *at, size_t size, void *pool, void *s);
int cuMemFreeAsync(uint64_t at, void *s);
int cuMemPoolSetAccess(void *pool, const whose_access *list, size_t n);
int cuMemPoolGetAttribute(void *pool, int attribute, void *value);
int cuMemPoolGetAccess(int *flags, void *pool, const rt_location *where);
int cuMulticastCreate(void **out, const multicast *p);
int cuMulticastAddDevice(void *m, int device);
int cuMulticastBindMem(void *m, size_t offset, void *of, size_t from, size_t size, unsigned long long flags);
int cuMulticastBindAddr(void *m, size_t offset, uint64_t at, size_t size, unsigned long long flags);
int cuMulticastUnbind(void *m, int device, size_t offset, size_t size);
int cuIpcGetMemHandle(ipc_handle *out, uint64_t at);
int cuIpcOpenMemHandle_v2(uint64_t *at, ipc_handle handle, unsigned flags);
int cuIpcCloseMemHandle(uint64_t at);
int cuIpcGetEventHandle(ipc_handle *out, void *event);
int cuIpcOpenEventHandle(void **event, ipc_handle handle);
int cuEventCreate(void **event, unsigned flags);
int cuEventRecord(void *event, void *s);
int cuEventQuery(void *event);
int cuEventDestroy_v2(void *event);

static unsigned passed, failed;
#define EXPECT(x) ((x) ? (void)passed++ : (void)(failed++, fprintf(stderr, "%s:%d: %s is not so\n", __FILE__, __LINE__, #x)))

static const char ptx[] =
	".version 8.2\n.target sm_90\n.address_size 64\n"
	".visible .global .align 4 .u32 own = 5;\n"
	/* p[i] += n, by atomics of the whole system; own counts the launches of its device */
	".visible .entry add(.param .u64 p, .param .u32 n) {\n"
	".reg .b64 %p<4>; .reg .b32 %r<8>;\n"
	"ld.param.u64 %p1, [p]; ld.param.u32 %r1, [n];\n"
	"mov.u32 %r2, %tid.x; mul.wide.u32 %p2, %r2, 4; add.u64 %p2, %p1, %p2;\n"
	"atom.global.sys.add.u32 %r3, [%p2], %r1; red.global.add.u32 [own], 1; ret; }\n"
	/* sums over a multicast object: of u32, of f32 and of two halves, to out; then its u32 are n on all devices, one more */
	".visible .entry all(.param .u64 p, .param .u64 out, .param .u32 n) {\n"
	".reg .b64 %p<4>; .reg .b32 %r<12>; .reg .f32 %f<8>;\n"
	"ld.param.u64 %p1, [p]; ld.param.u64 %p2, [out]; ld.param.u32 %r1, [n];\n"
	"multimem.ld_reduce.relaxed.sys.global.add.u32 %r2, [%p1];\n"
	"multimem.ld_reduce.weak.global.add.v4.f32 {%f1, %f2, %f3, %f4}, [%p1+16];\n"
	"multimem.ld_reduce.weak.global.add.acc::f32.v2.f16x2 {%r3, %r4}, [%p1+32];\n"
	"multimem.ld_reduce.weak.global.max.s32 %r5, [%p1+4];\n"
	"st.global.v4.u32 [%p2], {%r2, %r3, %r4, %r5}; st.global.v4.f32 [%p2+16], {%f1, %f2, %f3, %f4};\n"
	"multimem.st.weak.global.u32 [%p1+8], %r1; multimem.red.relaxed.sys.global.add.u32 [%p1+8], 1; ret; }\n";

enum { N = 32, PART = 2 << 20, ON_DEVICE = 1 };
static void *ctx[2], *add[2], *all[2], *module[2];

static int launch(void *f, uint64_t p, unsigned n, void *s)
{
	void *args[] = { &p, &n };
	int e = cuLaunchKernel(f, 1, 1, 1, N, 1, 1, 0, s, args, NULL);

	return e ? e : cuCtxSynchronize();
}

static void begin(void)
{
	int n = 0, can = 0;
	char name[32];

	EXPECT(!cuInit(0) && !cuDeviceGetCount(&n) && n == 2 && cuDeviceGet(&n, 2) == 101);
	EXPECT(!cuDeviceCanAccessPeer(&can, 0, 1) && can == 1 && !cuDeviceCanAccessPeer(&can, 1, 1) && can == 0);
	EXPECT(!cuDeviceGetP2PAttribute(&n, 2, 0, 1) && n == 1 && cuDeviceGetP2PAttribute(&n, 2, 0, 0) == 101);
	EXPECT(!cuDeviceGetPCIBusId(name, sizeof name, 1) && !cuDeviceGetByPCIBusId(&n, name) && n == 1);
	for (int d = 0; d < 2; d++) {
		EXPECT(!cuCtxCreate_v2(&ctx[d], 0, d) && !cuModuleLoadData(&module[d], ptx));
		EXPECT(!cuModuleGetFunction(&add[d], module[d], "add") && !cuModuleGetFunction(&all[d], module[d], "all"));
	}
	EXPECT(!cuCtxGetDevice(&n) && n == 1);
}

/* Access that is given, and taken away again. */
static void peers(void)
{
	uint64_t a = 0, b = 0, managed = 0, own = 0;
	unsigned host[N], ones[N], v = 0;
	void *s = NULL, *c = NULL;
	int device = -1;
	size_t size = 0;

	begin();
	for (unsigned i = 0; i < N; i++)
		ones[i] = 1;
	EXPECT(!cuCtxSetCurrent(ctx[0]) && !cuMemAlloc_v2(&a, sizeof host) && !cuMemcpyHtoD_v2(a, ones, sizeof ones));
	EXPECT(!cuMemAllocManaged(&managed, sizeof host, 1) && !cuStreamCreate(&s, 0));
	EXPECT(!cuCtxPushCurrent_v2(ctx[1]) && !cuMemAlloc_v2(&b, sizeof host) && !cuCtxGetDevice(&device) && device == 1);
	/* each runs its own code on its own memory and on memory that the host has, too */
	EXPECT(!launch(add[1], managed, 3, NULL) && !cuCtxPopCurrent_v2(&c) && c == ctx[1] && !launch(add[0], managed, 4, NULL));
	EXPECT(((unsigned *)(uintptr_t)managed)[7] == 7);
	/* a stream of one device does nothing for the other */
	EXPECT(!cuCtxSetCurrent(ctx[1]) && launch(add[1], b, 1, s) == 400 && !cuCtxSetCurrent(ctx[0]));
	EXPECT(!cuMemcpyPeer(b, ctx[1], a, ctx[0], sizeof host) && !cuMemcpyDtoH_v2(host, b, sizeof host) && host[31] == 1);
	EXPECT(!cuCtxEnablePeerAccess(ctx[1], 0) && cuCtxEnablePeerAccess(ctx[1], 0) == 704 && cuCtxEnablePeerAccess(ctx[0], 0));
	EXPECT(!launch(add[0], b, 5, NULL) && !cuMemcpyDtoH_v2(host, b, sizeof host) && host[9] == 6);
	/* variables are of a device, and its peers reach them too */
	EXPECT(!cuModuleGetGlobal_v2(&own, &size, module[0], "own") && !cuMemcpyDtoH_v2(&v, own, 4) && v == 5 + 2 * N);
	EXPECT(!cuCtxSetCurrent(ctx[1]) && !cuModuleGetGlobal_v2(&own, &size, module[1], "own"));
	EXPECT(!cuMemcpyDtoH_v2(&v, own, 4) && v == 5 + N);
	EXPECT(!cuCtxSetCurrent(ctx[0]) && !cuCtxDisablePeerAccess(ctx[1]) && cuCtxDisablePeerAccess(ctx[1]) == 705);
	EXPECT(!cuMemFree_v2(managed) && !cuMemFree_v2(b) && cuCtxSetCurrent(&v) == 201);
	EXPECT(!cuCtxDestroy_v2(ctx[0]) && cuCtxSetCurrent(ctx[0]) == 201);
}

/* What no access was given to. */
static void strangers(void)
{
	uint64_t b = 0;

	begin();
	EXPECT(!cuMemAlloc_v2(&b, N * 4) && !cuMemsetD32_v2(b, 0, N) && !cuCtxSetCurrent(ctx[0]));
	EXPECT(launch(add[0], b, 5, NULL) == 700);
}

/* Memory of one device that is mapped twice, each time for another. */
static void *make(int device, size_t size)
{
	const properties p = { .type = 1, .where = { ON_DEVICE, device } };
	void *of = NULL;

	EXPECT(!cuMemCreate(&of, size, &p, 0));
	return of;
}

static uint64_t mapped(void *of, int device)
{
	const whose_access a = { { ON_DEVICE, device }, 3 };
	uint64_t at = 0;

	EXPECT(!cuMemAddressReserve(&at, PART, 0, 0, 0) && !cuMemMap(at, PART, 0, of, 0) && !cuMemSetAccess(at, PART, &a, 1));
	return at;
}

static void maps(void)
{
	void *of;
	unsigned host[N];
	unsigned long long flags = 9;
	const whose_access none = { { ON_DEVICE, 0 }, 0 };

	begin();
	of = make(1, PART);
	const uint64_t a = mapped(of, 0), b = mapped(of, 1);
	EXPECT(!cuMemGetAccess(&flags, &(rt_location){ ON_DEVICE, 1 }, a) && flags == 0);
	EXPECT(!cuMemGetAccess(&flags, &(rt_location){ ON_DEVICE, 0 }, a) && flags == 3);
	EXPECT(!cuMemsetD32_v2(a, 1, N) && !launch(add[1], b, 10, NULL));
	EXPECT(!cuCtxSetCurrent(ctx[0]) && !launch(add[0], a, 100, NULL));
	EXPECT(!cuMemcpyDtoH_v2(host, b, sizeof host) && host[3] == 111 && host[31] == 111);
	EXPECT(!cuMemUnmap(b, PART) && !cuMemRelease(of) && !cuMemcpyDtoH_v2(host, a, sizeof host) && host[0] == 111);
	EXPECT(cuMemcpyDtoH_v2(host, b, sizeof host) != 0 && !cuMemSetAccess(a, PART, &none, 1));
	EXPECT(!cuMemUnmap(a, PART) && !cuMemAddressFree(a, PART) && !cuMemAddressFree(b, PART));
}

/* What comes of a pool is reached by whom the pool says, and not by peers. */
static void pools(void)
{
	const whose_access a = { { ON_DEVICE, 0 }, 3 };
	void *pool = NULL;
	uint64_t at = 0;
	int flags = 9;

	begin();
	EXPECT(!cuDeviceGetDefaultMemPool(&pool, 1) && cuDeviceGetDefaultMemPool(&pool, 2) == 101);
	EXPECT(!cuDeviceGetDefaultMemPool(&pool, 1) && !cuCtxSetCurrent(ctx[0]) && !cuCtxEnablePeerAccess(ctx[1], 0));
	EXPECT(!cuMemAllocFromPoolAsync(&at, N * 4, pool, NULL) && !cuMemsetD32_v2(at, 0, N));
	EXPECT(!cuMemPoolGetAccess(&flags, pool, &a.where) && flags == 0);
	for (int attribute = 1; attribute <= 4; attribute++) { /* ints up to the third */
		int pair[2] = { 5, 5 };
		EXPECT(!cuMemPoolGetAttribute(pool, attribute, pair) && !pair[0] && pair[1] == (attribute < 4 ? 5 : 0));
	}
	EXPECT(!cuMemPoolSetAccess(pool, &a, 1) && !launch(add[0], at, 1, NULL) && !cuMemFreeAsync(at, NULL));
	EXPECT(!cuMemPoolSetAccess(pool, &(whose_access){ { ON_DEVICE, 0 }, 0 }, 1));
	EXPECT(!cuMemAllocFromPoolAsync(&at, N * 4, pool, NULL) && !cuMemsetD32_v2(at, 0, N));
	EXPECT(cuMemPoolSetAccess(&at, &a, 1) == 1 && launch(add[0], at, 1, NULL) == 700);
}

static void unmapped(void)
{
	uint64_t at = 0;

	begin();
	EXPECT(!cuMemAddressReserve(&at, PART, 0, 0, 0) && launch(add[1], at, 1, NULL) == 700);
}

static void multicasts(void)
{
	const multicast p = { .devices = 2, .size = PART };
	const unsigned halves[4] = { 0x3c003c00, 0x40004000, 0x3c00bc00, 0 }; /* 1 1, 2 2, -1 1 */
	struct {
		unsigned u[4];
		float f[4];
	} out, in;
	void *m = NULL, *of[2];
	uint64_t at[2], result[2], where;
	unsigned both[2];
	int v = 0;

	begin();
	EXPECT(!cuDeviceGetAttribute(&v, 132, 0) && v == 1 && !cuMulticastCreate(&m, &p) && !cuMulticastAddDevice(m, 0));
	of[0] = make(0, PART), of[1] = make(1, PART);
	EXPECT(cuMulticastBindMem(m, 0, of[0], 0, PART, 0) == 1); /* not all devices are there */
	EXPECT(!cuMulticastAddDevice(m, 1) && cuMulticastAddDevice(m, 1) == 1);
	EXPECT(!cuMulticastBindMem(m, 0, of[0], 0, PART, 0) && cuMulticastBindMem(m, 0, of[0], 0, PART, 0) == 1);
	at[0] = mapped(of[0], 0), at[1] = mapped(of[1], 1);
	const uint64_t group = mapped(m, 0);
	EXPECT(!cuMulticastBindAddr(m, 0, at[1], PART, 0)); /* behind the mapping */
	for (int d = 0; d < 2; d++) {
		in.u[0] = 10u + (unsigned)d, in.u[1] = d ? (unsigned)-7 : (unsigned)-9, in.u[2] = in.u[3] = 0;
		for (int i = 0; i < 4; i++)
			in.f[i] = (float)(i + d) * 0.5f;
		EXPECT(!cuMemcpyHtoD_v2(at[d], &in, sizeof in) && !cuMemcpyHtoD_v2(at[d] + 32, halves, sizeof halves));
		EXPECT(!cuCtxSetCurrent(ctx[d]) && !cuMemAlloc_v2(&result[d], sizeof out));
	}
	EXPECT(!cuCtxSetCurrent(ctx[0]));
	unsigned n = 40;
	void *args[] = { &(uint64_t){ group }, &result[0], &n };
	EXPECT(!cuLaunchKernel(all[0], 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL) && !cuCtxSynchronize());
	EXPECT(!cuMemcpyDtoH_v2(&out, result[0], sizeof out) && out.u[0] == 21 && out.u[1] == 0x40004000);
	EXPECT(out.u[2] == 0x44004400 && out.u[3] == (unsigned)-7 && out.f[0] == 0.5f && out.f[3] == 3.5f);
	for (int d = 0; d < 2; d++)
		EXPECT(!cuMemcpyDtoH_v2(both, at[d] + 8, sizeof both) && both[0] == 41 && both[1] == 0);
	/* its addresses are for multimem alone */
	where = group;
	EXPECT(!cuMulticastUnbind(m, 1, 0, PART) && cuMulticastUnbind(m, 1, 0, PART) == 1 &&
	       launch(add[0], where, 1, NULL) == 700);
}

/* Nobody reaches the addresses of a multicast object that has no member left. */
static void unbound(void)
{
	const whose_access both[] = { { { ON_DEVICE, 0 }, 3 }, { { ON_DEVICE, 1 }, 3 } };
	uint64_t at = 0, group = 0, out = 0;
	unsigned n = 40, kept = 0;
	void *of = NULL, *m = NULL;

	begin();
	EXPECT(!cuCtxSetCurrent(ctx[0]) && !cuMulticastCreate(&m, &(multicast){ .devices = 2, .size = PART }));
	EXPECT(!cuMulticastAddDevice(m, 0) && !cuMulticastAddDevice(m, 1));
	EXPECT(!cuMemAddressReserve(&at, PART, 0, 0, 0) && !cuMemAddressReserve(&group, PART, 0, 0, 0));
	EXPECT(!cuMemCreate(&of, PART, &(properties){ .type = 1, .where = { ON_DEVICE, 0 } }, 0) &&
	       !cuMemMap(at, PART, 0, of, 0));
	EXPECT(!cuMemSetAccess(at, PART, both, 2) && !cuMemsetD32_v2(at, 7, 64) && !cuMulticastBindMem(m, 0, of, 0, PART, 0));
	EXPECT(!cuMemMap(group, PART, 0, m, 0) && !cuMemSetAccess(group, PART, both, 2) && !cuMemAlloc_v2(&out, 64));
	EXPECT(!cuMulticastUnbind(m, 0, 0, PART) && !cuMemcpyDtoH_v2(&kept, at + 8, sizeof kept) && kept == 7);
	void *args[] = { &group, &out, &n };
	EXPECT(!cuLaunchKernel(all[0], 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL) && cuCtxSynchronize() == 700);
}

/* ---- processes ---- */

/* A message from one process to the other, with a descriptor if it is not -1. */
static bool tell(int to, const void *bytes, size_t n, int fd)
{
	char room[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec io = { (void *)(uintptr_t)bytes, n };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };

	if (fd >= 0) {
		m.msg_control = room, m.msg_controllen = sizeof room;
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
		memcpy(CMSG_DATA(c), &fd, sizeof fd);
	}
	return sendmsg(to, &m, 0) == (ssize_t)n;
}

static bool hear(int from, void *bytes, size_t n, int *fd)
{
	char room[CMSG_SPACE(sizeof *fd)];
	struct iovec io = { bytes, n };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };

	if (recvmsg(from, &m, MSG_WAITALL) != (ssize_t)n)
		return false;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (fd && c)
		memcpy(fd, CMSG_DATA(c), sizeof *fd);
	return !fd || c;
}

typedef struct letter {
	ipc_handle memory, event;
} letter;

/* Opens what the other process has, and adds 20 to the one and 30 to the other memory. */
static void child(int socket)
{
	uint64_t at = 0;
	void *of = NULL, *event = NULL;
	letter l;
	int fd = -1;

	begin();
	EXPECT(hear(socket, &l, sizeof l, &fd) && fd >= 0 && !cuIpcOpenMemHandle_v2(&at, l.memory, 1));
	EXPECT(!cuIpcOpenEventHandle(&event, l.event) && !cuEventQuery(event) && !cuEventDestroy_v2(event));
	EXPECT(cuIpcOpenEventHandle(&event, l.memory) == 1);
	EXPECT(!launch(add[1], at, 20, NULL) && !cuIpcCloseMemHandle(at) && cuIpcCloseMemHandle(at) == 1);
	EXPECT(!cuMemImportFromShareableHandle(&of, (void *)(uintptr_t)fd, 1) && !close(fd));
	EXPECT(cuMemImportFromShareableHandle(&of, (void *)(uintptr_t)socket, 1) == 1);
	at = mapped(of, 1);
	EXPECT(!launch(add[1], at, 30, NULL) && tell(socket, &l, 1, -1));
	memset(l.memory.bytes, 0, sizeof l.memory.bytes);
	EXPECT(cuIpcOpenMemHandle_v2(&at, l.memory, 1) == 1);
}

static void processes(void)
{
	const properties p = { .type = 1, .handles = 1, .where = { ON_DEVICE, 1 } };
	uint64_t a = 0, b;
	unsigned host[N];
	void *of = NULL, *event = NULL;
	int pair[2], fd = -1, status = 1;
	letter l;

	EXPECT(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	fflush(NULL);
	const pid_t pid = fork(); /* before anything of CUDA was called */
	if (!pid) {
		child(pair[1]);
		fflush(NULL);
		_exit(failed || !passed);
	}
	begin();
	EXPECT(!cuMemAlloc_v2(&a, sizeof host) && !cuMemsetD32_v2(a, 1, N) && !cuIpcGetMemHandle(&l.memory, a));
	EXPECT(cuIpcOpenMemHandle_v2(&b, l.memory, 1) == 201); /* the process has it already */
	EXPECT(!cuEventCreate(&event, 6) && !cuEventRecord(event, NULL) && !cuIpcGetEventHandle(&l.event, event));
	EXPECT(!cuMemCreate(&of, PART, &p, 0) && cuMemExportToShareableHandle(&fd, of, 8, 0) == 801);
	b = mapped(of, 1);
	EXPECT(!cuMemsetD32_v2(b, 2, N) && cuIpcGetMemHandle(&l.memory, b) == 1 && !cuMemExportToShareableHandle(&fd, of, 1, 0));
	EXPECT(pid > 0 && tell(pair[0], &l, sizeof l, fd) && !close(fd) && hear(pair[0], &l, 1, NULL));
	EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
	EXPECT(!cuMemcpyDtoH_v2(host, a, sizeof host) && host[0] == 21 && host[31] == 21);
	EXPECT(!cuMemcpyDtoH_v2(host, b, sizeof host) && host[0] == 32 && !launch(add[1], a, 1, NULL));
	EXPECT(!cuEventDestroy_v2(event) && !cuMemFree_v2(a) && !cuMemUnmap(b, PART) && !cuMemRelease(of) &&
	       cuMemExportToShareableHandle(&fd, of, 1, 0) == 1);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{ "peers", peers },       { "strangers", strangers },   { "maps", maps },       { "pools", pools },
		{ "unmapped", unmapped }, { "multicasts", multicasts }, { "unbound", unbound }, { "processes", processes }
	};

	setenv("CPTX_SANITIZE_DEVICES", "2", 0);
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (argc > 1 && !strcmp(argv[1], tests[i].name))
			tests[i].run();
	printf("%u passed, %u failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
