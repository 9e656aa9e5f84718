/* SPDX-License-Identifier: MIT */
/*
 * A program of the driver API whose kernels are launched by graphs: built node by node, captured, cloned, updated.  The last
 * line says how it went.
 */
#include "abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static unsigned passed, failed;
#define EXPECT(x) ((x) ? (void)passed++ : (void)(failed++, fprintf(stderr, "%s:%d: %s is not so\n", __FILE__, __LINE__, #x)))

#define ADD void **node, void *g, void *const *after, size_t n
#define CALLS                                                                                                               \
	FROM(cuInit, (unsigned flags))                                                                                          \
	FROM(cuDevicePrimaryCtxRetain, (void **ctx, int device))                                                                \
	FROM(cuCtxSetCurrent, (void *ctx))                                                                                      \
	FROM(cuMemAlloc, (uint64_t * at, size_t size))                                                                          \
	FROM(cuMemcpyDtoH, (void *to, uint64_t at, size_t size))                                                                \
	FROM(cuModuleLoadData, (void **m, const void *image))                                                                   \
	FROM(cuModuleGetFunction, (void **f, void *m, const char *name))                                                        \
	FROM(cuCtxSynchronize, (void))                                                                                          \
	FROM(cuStreamCreate, (void **s, unsigned flags))                                                                        \
	FROM(cuStreamSynchronize, (void *s))                                                                                    \
	FROM(cuStreamBeginCapture, (void *s, int mode))                                                                         \
	FROM(cuStreamEndCapture, (void *s, void **g))                                                                           \
	FROM(cuMemsetD32Async, (uint64_t at, unsigned value, size_t n, void *s))                                                \
	FROM(cuLaunchKernel, (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,            \
	                      unsigned smem, void *s, void **args, void **extra))                                               \
	FROM(cuPointerGetAttribute, (void *out, int attribute, uint64_t p))                                                     \
	FROM(cuPointerGetAttributes, (unsigned n, const int *attribute, void **out, uint64_t p))                                \
	FROM(cuMemsetD2D16, (uint64_t at, size_t pitch, unsigned short v, size_t width, size_t height))                         \
	FROM(cuFuncGetModule, (void **m, void *f))                                                                              \
	FROM(cuFuncSetAttribute, (void *f, int attribute, int value))                                                           \
	FROM(cuStreamGetCaptureInfo,                                                                                            \
	     (void *s, int *status, unsigned long long *id, void **g, void *const **on, const void **edges, size_t *n))         \
	FROM(cuGraphCreate, (void **g, unsigned flags))                                                                         \
	FROM(cuGraphDestroy, (void *g))                                                                                         \
	FROM(cuGraphClone, (void **to, void *from))                                                                             \
	FROM(cuGraphAddKernelNode, (ADD, const dr_kernel_node *p))                                                              \
	FROM(cuGraphAddMemsetNode, (ADD, const rt_set_node *p, void *ctx))                                                      \
	FROM(cuGraphAddMemcpyNode, (ADD, const dr_copy3d *p, void *ctx))                                                        \
	FROM(cuGraphAddHostNode, (ADD, const rt_host_node *p))                                                                  \
	FROM(cuGraphAddEmptyNode, (ADD))                                                                                        \
	FROM(cuGraphAddChildGraphNode, (ADD, void *child))                                                                      \
	FROM(cuGraphDestroyNode, (void *node))                                                                                  \
	FROM(cuGraphAddDependencies, (void *g, void *const *from, void *const *to, const void *edges, size_t n))                \
	FROM(cuGraphRemoveDependencies, (void *g, void *const *from, void *const *to, const void *edges, size_t n))             \
	FROM(cuGraphGetNodes, (void *g, void **nodes, size_t *n))                                                               \
	FROM(cuGraphGetRootNodes, (void *g, void **nodes, size_t *n))                                                           \
	FROM(cuGraphGetEdges, (void *g, void **from, void **to, void *edges, size_t *n))                                        \
	FROM(cuGraphNodeGetDependencies, (void *node, void **on, void *edges, size_t *n))                                       \
	FROM(cuGraphNodeGetDependentNodes, (void *node, void **of, void *edges, size_t *n))                                     \
	FROM(cuGraphNodeGetType, (void *node, int *type))                                                                       \
	FROM(cuGraphNodeFindInClone, (void **found, void *node, void *clone))                                                   \
	FROM(cuGraphKernelNodeGetParams, (void *node, dr_kernel_node *p))                                                       \
	FROM(cuGraphKernelNodeSetParams, (void *node, const dr_kernel_node *p))                                                 \
	FROM(cuGraphMemsetNodeGetParams, (void *node, rt_set_node *p))                                                          \
	FROM(cuGraphMemcpyNodeGetParams, (void *node, dr_copy3d *p))                                                            \
	FROM(cuGraphInstantiate, (void **exec, void *g, unsigned long long flags))                                              \
	FROM(cuGraphLaunch, (void *exec, void *s))                                                                              \
	FROM(cuGraphExecDestroy, (void *exec))                                                                                  \
	FROM(cuGraphExecUpdate, (void *exec, void *g, void *info))                                                              \
	FROM(cuGraphExecKernelNodeSetParams, (void *exec, void *node, const dr_kernel_node *p))                                 \
	FROM(cuGraphExecMemsetNodeSetParams, (void *exec, void *node, const rt_set_node *p, void *ctx))                         \
	FROM(cuGraphNodeSetEnabled, (void *exec, void *node, unsigned on))                                                      \
	FROM(cuGraphNodeGetEnabled, (void *exec, void *node, unsigned *on))
#define FROM(name, parameters) static int(*name) parameters;
CALLS
#undef FROM

static const char ptx[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	/* p[i] += n */
	".visible .entry add(.param .u64 p, .param .u32 n) {\n"
	".reg .b64 %p<4>; .reg .b32 %r<8>;\n"
	"ld.param.u64 %p1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mul.wide.u32 %p2, %r2, 4; add.u64 %p2, %p1, %p2;\n"
	"ld.global.u32 %r3, [%p2]; add.u32 %r3, %r3, %r1; st.global.u32 [%p2], %r3; ret; }\n"
	/* p[i] *= n */
	".visible .entry scale(.param .u64 p, .param .u32 n) {\n"
	".reg .b64 %p<4>; .reg .b32 %r<8>;\n"
	"ld.param.u64 %p1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mul.wide.u32 %p2, %r2, 4; add.u64 %p2, %p1, %p2;\n"
	"ld.global.u32 %r3, [%p2]; mul.lo.u32 %r3, %r3, %r1; st.global.u32 [%p2], %r3; ret; }\n";

enum { N = 64 };
static int (*get)(const char *, void **, int, uint64_t, int *);
static uint64_t p, q;
static void *context, *add, *scale, *stream;
static unsigned calls;

static void count(void *user) { calls += *(unsigned *)user; }

static bool begin(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *f = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
	void *m = NULL;
	int status;

	memcpy(&get, &f, sizeof get);
	if (!get)
		return false;
#define FROM(name, parameters)                                                                                              \
	if (get(#name, &f, 12030, 0, &status) || status)                                                                        \
		return false;                                                                                                       \
	memcpy(&name, &f, sizeof name);
	CALLS
#undef FROM
	return !cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0) && !cuCtxSetCurrent(context) && !cuModuleLoadData(&m, ptx) &&
	       !cuModuleGetFunction(&add, m, "add") && !cuModuleGetFunction(&scale, m, "scale") && !cuMemAlloc(&p, 4 * N) &&
	       !cuMemAlloc(&q, 4 * N) && !cuStreamCreate(&stream, 1);
}

static dr_kernel_node kernel(void *f, void **args)
{
	return (dr_kernel_node){ .as = { .func = f, .grid = { 1, 1, 1 }, .block = { N, 1, 1 }, .params = args } };
}

/* All of the second buffer is the number. */
static bool all_are(unsigned number)
{
	unsigned host[N], i = 0;

	if (cuStreamSynchronize(stream) || cuMemcpyDtoH(host, q, sizeof host))
		return false;
	while (i < N && host[i] == number)
		i++;
	return i == N;
}

/* p = 3; p += 4; p *= 5; q = p; and a call of the host: the product is added first, and depends on the sum later. */
typedef struct chain {
	void *graph, *set, *sum, *product, *copy, *host;
} chain;

static chain build(void)
{
	static unsigned four = 4, five = 5, one = 1;
	void *to_sum[] = { &p, &four }, *to_product[] = { &p, &five };
	const dr_kernel_node sum = kernel(add, to_sum), product = kernel(scale, to_product);
	const rt_set_node set = {
		.dst = (void *)(uintptr_t)p, .value = 3, .element = 4, .width = N / 2, .height = 2, .pitch = 2 * N
	};
	const dr_copy3d copy = { .src = { .type = DR_DEVICE, .device = p },
		                     .dst = { .type = DR_DEVICE, .device = q },
		                     .width = 4 * N,
		                     .height = 1,
		                     .depth = 1 };
	const rt_host_node host = { count, &one };
	chain c = { .graph = NULL };

	EXPECT(!cuGraphCreate(&c.graph, 0) && !cuGraphAddKernelNode(&c.product, c.graph, NULL, 0, &product));
	EXPECT(!cuGraphAddMemcpyNode(&c.copy, c.graph, &c.product, 1, &copy, context));
	EXPECT(!cuGraphAddMemsetNode(&c.set, c.graph, NULL, 0, &set, context));
	EXPECT(!cuGraphAddKernelNode(&c.sum, c.graph, &c.set, 1, &sum));
	EXPECT(!cuGraphAddHostNode(&c.host, c.graph, &c.copy, 1, &host));
	EXPECT(!cuGraphAddDependencies(c.graph, &c.sum, &c.product, NULL, 1));
	return c;
}

static void asks(const chain *c)
{
	void *nodes[8], *from[8], *to[8], *clone = NULL, *other = NULL, *exec = NULL;
	size_t n = 8;
	int type = -1;
	dr_kernel_node k;
	rt_set_node set;
	dr_copy3d copy;

	EXPECT(!cuGraphGetNodes(c->graph, NULL, &n) && n == 5);
	EXPECT(!cuGraphGetNodes(c->graph, nodes, &n) && n == 5);
	n = 8;
	EXPECT(!cuGraphGetRootNodes(c->graph, nodes, &n) && n == 1 && nodes[0] == c->set);
	EXPECT(!cuGraphGetEdges(c->graph, NULL, NULL, NULL, &n) && n == 4);
	EXPECT(!cuGraphGetEdges(c->graph, from, to, NULL, &n) && n == 4);
	n = 8;
	EXPECT(!cuGraphNodeGetDependencies(c->product, nodes, NULL, &n) && n == 1 && nodes[0] == c->sum);
	n = 8;
	EXPECT(!cuGraphNodeGetDependentNodes(c->product, nodes, NULL, &n) && n == 1 && nodes[0] == c->copy);
	EXPECT(!cuGraphNodeGetType(c->set, &type) && type == RT_NODE_SET);
	EXPECT(!cuGraphNodeGetType(c->host, &type) && type == RT_NODE_HOST);
	EXPECT(!cuGraphKernelNodeGetParams(c->sum, &k) && k.as.func == add && k.as.block.x == N &&
	       *(unsigned *)k.as.params[1] == 4);
	EXPECT(cuGraphKernelNodeGetParams(c->set, &k) != 0);
	EXPECT(!cuGraphMemsetNodeGetParams(c->set, &set) && set.value == 3 && set.height == 2);
	EXPECT(!cuGraphMemcpyNodeGetParams(c->copy, &copy) && copy.width == 4 * N && copy.depth == 1);
	/* a clone without its product */
	EXPECT(!cuGraphClone(&clone, c->graph) && !cuGraphNodeFindInClone(&other, c->product, clone) && other != c->product);
	EXPECT(!cuGraphDestroyNode(other) && !cuGraphNodeFindInClone(&from[0], c->sum, clone) &&
	       !cuGraphNodeFindInClone(&to[0], c->copy, clone) && !cuGraphAddDependencies(clone, from, to, NULL, 1));
	EXPECT(!cuGraphInstantiate(&exec, clone, 0) && !cuGraphLaunch(exec, stream) && all_are(7)); /* 1 kernel */
	EXPECT(!cuGraphExecDestroy(exec) && !cuGraphDestroy(clone));
}

/* Functions of CUDA 12.2, some of which have one parameter less. */
#define EARLIER                                                                                                             \
	FROM(cuGraphAddDependencies, (void *g, void *const *from, void *const *to, size_t n))                                   \
	FROM(cuGraphRemoveDependencies, (void *g, void *const *from, void *const *to, size_t n))                                \
	FROM(cuGraphGetEdges, (void *g, void **from, void **to, size_t *n))                                                     \
	FROM(cuGraphNodeGetDependencies, (void *node, void **on, size_t *n))                                                    \
	FROM(cuGraphNodeGetDependentNodes, (void *node, void **of, size_t *n))                                                  \
	FROM(cuStreamGetCaptureInfo, (void *s, int *status, unsigned long long *id, void **g, void *const **on, size_t *n))     \
	FROM(cuGraphExecUpdate, (void *exec, void *g, void *info))

static void asks_as_earlier(const chain *c)
{
	int status = 7;
	void *f, *from[8], *to[8];
	unsigned char behind[64];
	void *const *on = (void *const *)behind;
	size_t n = 0;

#define FROM(name, parameters)                                                                                              \
	int(*earlier_##name) parameters = NULL;                                                                                 \
	EXPECT(!get(#name, &f, 12020, 0, &status) && !status);                                                                  \
	memcpy(&earlier_##name, &f, sizeof f);
	EARLIER
#undef FROM
	EXPECT(!earlier_cuGraphGetEdges(c->graph, NULL, NULL, &n) && n == 4);
	EXPECT(!earlier_cuGraphGetEdges(c->graph, from, to, &n) && n == 4);
	EXPECT(!earlier_cuGraphRemoveDependencies(c->graph, &c->sum, &c->product, 1));
	EXPECT(!earlier_cuGraphNodeGetDependencies(c->product, NULL, &n) && n == 0);
	EXPECT(!earlier_cuGraphAddDependencies(c->graph, &c->sum, &c->product, 1));
	n = 8;
	EXPECT(!earlier_cuGraphNodeGetDependencies(c->product, from, &n) && n == 1 && from[0] == c->sum);
	n = 8;
	EXPECT(!earlier_cuGraphNodeGetDependentNodes(c->product, from, &n) && n == 1 && from[0] == c->copy);
	EXPECT(!earlier_cuStreamGetCaptureInfo(stream, &status, NULL, NULL, &on, &n) && !status);
	EXPECT(earlier_cuGraphExecUpdate == cuGraphExecUpdate); /* of which no form is later */
	/* and no function is of a version in front of the first */
	EXPECT(!get("cuGraphInstantiate", &f, 11080, 0, &status) && !status && f);
	void *newer = NULL;
	EXPECT(!get("cuGraphInstantiate", &newer, 13000, 0, &status) && newer != f);
}

/* Handles that are none, and places for answers that are none. */
static void asks_for_nothing(const chain *c)
{
	size_t n = 0;
	void *node = NULL;

	EXPECT(cuGraphNodeGetDependencies(NULL, NULL, NULL, &n) == 1 && cuGraphNodeGetDependentNodes(NULL, NULL, NULL, &n) == 1);
	EXPECT(cuGraphNodeGetDependencies(c->sum, NULL, NULL, NULL) == 1);
	EXPECT(cuGraphNodeGetDependentNodes(c->sum, NULL, NULL, NULL) == 1);
	EXPECT(cuGraphGetEdges(c->graph, NULL, NULL, NULL, NULL) == 1 && cuGraphGetNodes(c->graph, NULL, NULL) == 1);
	EXPECT(cuGraphGetRootNodes(c->graph, NULL, NULL) == 1 && cuGraphGetEdges(NULL, NULL, NULL, NULL, &n) == 1);
	EXPECT(cuGraphNodeGetType(NULL, NULL) == 1 && cuGraphNodeGetType(c->sum, NULL) == 1);
	EXPECT(cuGraphNodeFindInClone(&node, NULL, c->graph) == 1 && cuGraphDestroyNode(NULL) == 1);
	EXPECT(cuGraphAddDependencies(c->graph, NULL, NULL, NULL, 1) == 1);
	EXPECT(cuGraphAddKernelNode(&node, c->graph, NULL, 0, NULL) == 1 &&
	       cuGraphAddHostNode(&node, c->graph, NULL, 0, NULL) == 1);
	EXPECT(cuGraphAddMemsetNode(&node, c->graph, NULL, 0, NULL, context) == 1);
	EXPECT(cuGraphKernelNodeGetParams(c->sum, NULL) == 1 && cuGraphKernelNodeSetParams(c->sum, NULL) == 1);
	EXPECT(cuGraphMemsetNodeGetParams(c->set, NULL) == 1 && cuGraphMemcpyNodeGetParams(c->copy, NULL) == 1);
}

/* A node that is disabled stays so when its graph is given other work. */
static void updates(const chain *c, void *exec)
{
	struct {
		int result;
		void *node, *from;
	} info = { 7, NULL, NULL };
	unsigned on = 7;
	void *clone = NULL;

	EXPECT(!cuGraphNodeSetEnabled(exec, c->product, 0) && !cuGraphExecUpdate(exec, c->graph, &info));
	EXPECT(!cuGraphNodeGetEnabled(exec, c->product, &on) && !on && !cuGraphLaunch(exec, stream) && all_are(12)); /* 1 */
	/* of another graph, where the recorder does not know which node it is */
	EXPECT(!cuGraphClone(&clone, c->graph) && !cuGraphExecUpdate(exec, clone, &info) && !cuGraphLaunch(exec, stream));
	EXPECT(all_are(12) && !cuGraphNodeGetEnabled(exec, c->product, &on) && !on && !cuGraphDestroy(clone));
	EXPECT(!cuGraphNodeSetEnabled(exec, c->product, 1) && !cuGraphExecUpdate(exec, c->graph, &info));
	EXPECT(!cuGraphLaunch(exec, stream) && all_are(60)); /* 2 */
}

/* A graph that is launched while another stream is captured, which waiting would end; and one that becomes a node. */
static void beside_capture(void *exec)
{
	void *other = NULL, *g = NULL, *node = NULL;
	size_t n = 1;
	int type = -1;

	EXPECT(!cuStreamCreate(&other, 1) && !cuStreamBeginCapture(other, 2) && !cuGraphLaunch(exec, stream));
	EXPECT(!cuGraphLaunch(exec, other) && !cuStreamEndCapture(other, &g) && all_are(60));
	EXPECT(!cuGraphGetNodes(g, &node, &n) && n == 1 && !cuGraphNodeGetType(node, &type) && type == RT_NODE_GRAPH);
	EXPECT(!cuGraphDestroy(g));
}

/* A graph that another thread destroys while it is launched: its host function waits until that thread is about to. */
static pthread_barrier_t launched;

static void wait_for_end(void *user)
{
	const struct timespec a_while = { .tv_nsec = 20000000 };

	(void)user;
	pthread_barrier_wait(&launched);
	nanosleep(&a_while, NULL);
}

static void *end(void *exec)
{
	pthread_barrier_wait(&launched);
	return cuGraphExecDestroy(exec) ? exec : NULL;
}

static void ends_meanwhile(void)
{
	enum { SETS = 40 };
	const rt_host_node host = { wait_for_end, NULL };
	rt_set_node set = { .dst = (void *)(uintptr_t)q, .value = 7, .element = 4, .width = N, .height = 1, .pitch = 4 * N };
	unsigned five = 5;
	void *g = NULL, *exec = NULL, *node = NULL, *args[] = { &q, &five }, *bad = &set;
	const dr_kernel_node last = kernel(add, args);
	pthread_t thread;

	pthread_barrier_init(&launched, NULL, 2);
	EXPECT(!cuGraphCreate(&g, 0) && !cuGraphAddHostNode(&node, g, NULL, 0, &host));
	for (unsigned i = 0; i < SETS; i++) {
		void *before = node;
		set.value = i;
		EXPECT(!cuGraphAddMemsetNode(&node, g, &before, 1, &set, context));
	}
	void *before = node;
	EXPECT(!cuGraphAddKernelNode(&node, g, &before, 1, &last) && !cuGraphInstantiate(&exec, g, 0) && !cuGraphDestroy(g));
	EXPECT(!pthread_create(&thread, NULL, end, exec) && !cuGraphLaunch(exec, stream));
	EXPECT(!pthread_join(thread, &bad) && !bad && all_are(SETS - 1 + 5)); /* 1 */
	pthread_barrier_destroy(&launched);
}

static void runs(chain *c)
{
	struct {
		int result;
		void *node, *from;
	} info = { 7, NULL, NULL };
	unsigned on = 7, nine = 9;
	void *exec = NULL, *args[] = { &p, &nine }, *child = NULL, *outer = NULL;
	const dr_kernel_node changed = kernel(add, args);
	rt_set_node set;

	EXPECT(!cuGraphInstantiate(&exec, c->graph, 0) && !cuGraphLaunch(exec, stream) && all_are(35));                 /* 2 */
	EXPECT(!cuGraphExecKernelNodeSetParams(exec, c->sum, &changed) && !cuGraphLaunch(exec, stream) && all_are(60)); /* 2 */
	EXPECT(!cuGraphNodeSetEnabled(exec, c->product, 0) && !cuGraphNodeGetEnabled(exec, c->product, &on) && !on);
	EXPECT(!cuGraphLaunch(exec, stream) && all_are(12)); /* 1 */
	EXPECT(!cuGraphNodeSetEnabled(exec, c->product, 1) && !cuGraphMemsetNodeGetParams(c->set, &set));
	set.value = 1;
	EXPECT(!cuGraphExecMemsetNodeSetParams(exec, c->set, &set, context) && !cuGraphLaunch(exec, stream) &&
	       all_are(50)); /* 2 */
	EXPECT(!cuGraphKernelNodeSetParams(c->sum, &changed));
	EXPECT(!cuGraphExecUpdate(exec, c->graph, &info) && !info.result && !cuGraphLaunch(exec, stream) && all_are(60)); /* 2 */
	updates(c, exec);
	beside_capture(exec);
	/* a graph in a graph */
	EXPECT(!cuGraphCreate(&outer, 0) && !cuGraphAddChildGraphNode(&child, outer, NULL, 0, c->graph));
	EXPECT(!cuGraphAddKernelNode(&c->host, outer, &child, 1, &changed) && !cuGraphExecDestroy(exec));
	EXPECT(!cuGraphInstantiate(&exec, outer, 0) && !cuGraphLaunch(exec, stream) && all_are(60)); /* 3 */
	EXPECT(!cuGraphExecDestroy(exec) && !cuGraphDestroy(outer));
}

/* What else programs ask that launch as Triton's do. */
static void asks_more(void)
{
	enum { TYPE = 2, ADDRESS, HOST, MANAGED = 8, ORDINAL, START = 11, SIZE };
	const int which[] = { TYPE, ORDINAL, ADDRESS };
	unsigned type = 0, managed = 7, here[4];
	uint64_t at = 0, start = 0;
	size_t size = 0;
	int ordinal = 7;
	void *m = NULL, *of_host = NULL, *out[] = { &type, &ordinal, &at };

	EXPECT(!cuPointerGetAttribute(&at, ADDRESS, p + 8) && at == p + 8);
	EXPECT(!cuPointerGetAttribute(&type, TYPE, p) && type == DR_DEVICE);
	EXPECT(!cuPointerGetAttribute(&managed, MANAGED, p) && !managed && !cuPointerGetAttribute(&ordinal, ORDINAL, p) &&
	       !ordinal);
	EXPECT(!cuPointerGetAttribute(&start, START, p + 4) && start == p && !cuPointerGetAttribute(&size, SIZE, p) &&
	       size >= 4 * N);
	EXPECT(cuPointerGetAttribute(&of_host, HOST, p) && cuPointerGetAttribute(&at, ADDRESS, (uintptr_t)here));
	EXPECT(!cuPointerGetAttributes(3, which, out, (uintptr_t)here) && !type && !at);
	EXPECT(!cuPointerGetAttributes(3, which, out, p + 4) && type == DR_DEVICE && !ordinal && at == p + 4);
	EXPECT(!cuMemsetD2D16(p, 8, 0x1234, 2, 2) && !cuMemcpyDtoH(here, p, 16) && here[0] == 0x12341234 &&
	       here[2] == 0x12341234);
	EXPECT(!cuFuncGetModule(&m, add) && m && !cuFuncSetAttribute(add, RT_FUNC_MAX_DYN_SMEM, 65536));
	EXPECT(cuFuncSetAttribute(add, RT_FUNC_MAX_DYN_SMEM, 1 << 30));
}

static void captures(void)
{
	unsigned two = 2;
	void *g = NULL, *exec = NULL, *args[] = { &q, &two };

	int status = 7;
	unsigned long long id = 0;
	void *const *on = NULL;
	const void *edges = NULL;
	size_t n = 7;

	EXPECT(!cuStreamGetCaptureInfo(stream, &status, NULL, NULL, NULL, NULL, NULL) && !status);
	EXPECT(!cuStreamBeginCapture(stream, 0) && !cuMemsetD32Async(q, 20, N, stream));
	EXPECT(!cuStreamGetCaptureInfo(stream, &status, &id, &g, &on, &edges, &n) && status == 1 && id && g && n == 1 && *on);
	EXPECT(!cuLaunchKernel(add, 1, 1, 1, N, 1, 1, 0, stream, args, NULL) && !cuStreamEndCapture(stream, &g));
	EXPECT(!cuGraphInstantiate(&exec, g, 0) && !cuGraphDestroy(g) && !cuGraphLaunch(exec, stream) && all_are(22)); /* 1 */
	EXPECT(!cuGraphExecDestroy(exec));
}

int main(void)
{
	if (begin()) {
		chain c = build();
		asks(&c);
		asks_as_earlier(&c);
		asks_for_nothing(&c);
		runs(&c);
		captures();
		ends_meanwhile();
		asks_more();
		EXPECT(calls == 11 && !cuGraphDestroy(c.graph) && !cuCtxSynchronize());
	} else {
		fprintf(stderr, "libcuda.so.1 cannot be opened, or lacks a call\n");
	}
	printf("%u passed, %u failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
