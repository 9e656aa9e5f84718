/* SPDX-License-Identifier: MIT */
/*
 * Graphs in graphs, copies of graphs, and calls for graphs that CUDA refuses.  The argument chooses what is tried; the last
 * line says how it went.
 */
#include "abi.h"

#include <stdio.h>
#include <string.h>

/* The calls under test, as CUDA declares them; one kind of handle is taken for another here. */
int cuModuleLoadData(void **m, const void *image);
int cuModuleGetFunction(void **k, void *m, const char *name);
int cudaMalloc(void **p, size_t size);
int cudaMemcpy(void *dst, const void *src, size_t size, int kind);
int cudaMemset(void *p, int value, size_t size);
int cudaDeviceSynchronize(void);
int cudaStreamCreate(void **s);
int cudaStreamBeginCapture(void *s, int mode);
int cudaStreamEndCapture(void *s, void **g);
int cudaStreamGetCaptureInfo(void *s, int *status, unsigned long long *id, void **g, void *const **on, const void **edges,
                             size_t *n);
int cudaMemcpy3DAsync(const rt_copy3d *c, void *s);
int cudaGraphCreate(void **g, unsigned flags);
int cudaGraphDestroy(void *g);
int cudaGraphClone(void **to, void *from);
int cudaGraphDestroyNode(void *node);
#define ADD void **node, void *g, void *const *after, size_t n
int cudaGraphAddKernelNode(ADD, const rt_kernel_node *p);
int cudaGraphAddMemsetNode(ADD, const rt_set_node *p);
int cudaGraphAddMemcpyNode(ADD, const rt_copy3d *p);
int cudaGraphAddHostNode(ADD, const rt_host_node *p);
int cudaGraphAddEmptyNode(ADD);
int cudaGraphAddChildGraphNode(ADD, void *child);
int cudaGraphAddMemAllocNode(ADD, rt_alloc_node *p);
int cudaGraphAddNode(void **node, void *g, void *const *after, const void *edges, size_t n, const rt_any_node *p);
#define EDGES void *g, void *const *from, void *const *to, const void *edges, size_t n
int cudaGraphAddDependencies(EDGES);
int cudaGraphRemoveDependencies(EDGES);
int cudaGraphGetNodes(void *g, void **nodes, size_t *n);
int cudaGraphGetRootNodes(void *g, void **nodes, size_t *n);
int cudaGraphGetEdges(void *g, void **from, void **to, void *edges, size_t *n);
int cudaGraphNodeGetDependencies(void *node, void **on, void *edges, size_t *n);
int cudaGraphNodeGetDependentNodes(void *node, void **of, void *edges, size_t *n);
int cudaGraphNodeGetType(void *node, int *type);
int cudaGraphNodeFindInClone(void **found, void *node, void *clone);
int cudaGraphChildGraphNodeGetGraph(void *node, void **g);
int cudaGraphKernelNodeGetParams(void *node, rt_kernel_node *p);
int cudaGraphKernelNodeSetParams(void *node, const rt_kernel_node *p);
int cudaGraphKernelNodeGetAttribute(void *node, unsigned id, void *value);
int cudaGraphMemcpyNodeGetParams(void *node, rt_copy3d *p);
int cuGraphMemcpyNodeGetParams(void *node, dr_copy3d *p);
int cudaGraphMemsetNodeGetParams(void *node, rt_set_node *p);
int cudaGraphInstantiate(void **exec, void *g, unsigned long long flags);
int cudaGraphInstantiateWithParams(void **exec, void *g, rt_instantiate *p);
int cudaGraphLaunch(void *exec, void *s);
int cudaGraphExecDestroy(void *exec);
int cudaGraphUpload(void *exec, void *s);
typedef struct update {
	int result;
	void *node, *from;
} update;
int cudaGraphExecUpdate(void *exec, void *g, update *info);
int cudaGraphNodeGetEnabled(void *exec, void *node, unsigned *on);
int cudaGraphExecKernelNodeSetParams(void *exec, void *node, const rt_kernel_node *p);
int cudaGraphExecChildGraphNodeSetParams(void *exec, void *node, void *g);
int cudaGraphExecMemcpyNodeSetParams(void *exec, void *node, const rt_copy3d *p);

static unsigned passed, failed;
#define EXPECT(x) ((x) ? (void)passed++ : (void)(failed++, fprintf(stderr, "%s:%d: %s is not so\n", __FILE__, __LINE__, #x)))
#define OK(x) EXPECT((x) == 0)
enum { INVALID_VALUE = 1, UPDATE_FAILURE = 910 };
#define REFUSED(x) EXPECT((x) == INVALID_VALUE)

static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
						  /* *p = *p * by + more */
						  ".visible .entry step(.param .u64 p, .param .u32 by, .param .u32 more) {\n"
						  ".reg .b64 %p<2>; .reg .b32 %r<5>;\n"
						  "ld.param.u64 %p1, [p]; ld.param.u32 %r1, [by]; ld.param.u32 %r2, [more];\n"
						  "ld.global.u32 %r3, [%p1]; mad.lo.u32 %r3, %r3, %r1, %r2; st.global.u32 [%p1], %r3; ret; }\n";

static void *step, *data; /* the kernel; its number */

static void set_up(void)
{
	void *m = NULL;

	OK(cuModuleLoadData(&m, ptx));
	OK(cuModuleGetFunction(&step, m, "step"));
	OK(cudaMalloc(&data, 256));
}

typedef struct arguments {
	unsigned by, more;
	void *all[3];
} arguments;

static rt_kernel_node kernel(arguments *a, unsigned by, unsigned more)
{
	*a = (arguments){ by, more, { &data, &a->by, &a->more } };
	return (rt_kernel_node){ .func = step, .grid = { 1, 1, 1 }, .block = { 1, 1, 1 }, .params = a->all };
}

static void *add(void *g, unsigned by, unsigned more, void *const *after)
{
	arguments a;
	const rt_kernel_node p = kernel(&a, by, more);
	void *node = NULL;

	OK(cudaGraphAddKernelNode(&node, g, after, after != NULL, &p));
	return node;
}

static void *new_graph(void)
{
	void *g = NULL;

	OK(cudaGraphCreate(&g, 0));
	return g;
}

static size_t count(void *g)
{
	size_t n = 99;

	OK(cudaGraphGetNodes(g, NULL, &n));
	return n;
}

/* What a launch makes of 1. */
static unsigned launched(void *exec)
{
	unsigned number = 1;

	OK(cudaMemcpy(data, &number, sizeof number, RT_HOST_TO_DEVICE));
	OK(cudaGraphLaunch(exec, NULL));
	OK(cudaDeviceSynchronize());
	OK(cudaMemcpy(&number, data, sizeof number, RT_DEVICE_TO_HOST));
	return number;
}

/* What a launch of the graph makes of 1. */
static unsigned makes(void *g)
{
	void *exec = NULL;

	OK(cudaGraphInstantiate(&exec, g, 0));
	const unsigned number = launched(exec);
	OK(cudaGraphExecDestroy(exec));
	return number;
}

/* + 1, and then a graph in it: * by, and then + 1. */
typedef struct nest {
	void *g, *first, *child, *in, *product;
} nest;

static nest make_nest(unsigned by)
{
	nest n = { .g = new_graph() };
	void *inner = new_graph(), *product = add(inner, by, 0, NULL);
	size_t two = 2;
	void *nodes[2] = { NULL };

	add(inner, 1, 1, &product);
	n.first = add(n.g, 1, 1, NULL);
	OK(cudaGraphAddChildGraphNode(&n.child, n.g, &n.first, 1, inner));
	OK(cudaGraphDestroy(inner));
	OK(cudaGraphChildGraphNodeGetGraph(n.child, &n.in));
	OK(cudaGraphGetNodes(n.in, nodes, &two));
	EXPECT(two == 2);
	n.product = nodes[0];
	return n;
}

static void clones(void)
{
	nest n = make_nest(10);
	void *clone = NULL, *first = NULL, *child = NULL, *more = NULL, *in = NULL, *out = new_graph(), *node = NULL;
	size_t edges = 9;
	int type = -1;

	/* a node that the first one of the clone is to depend on, too: (1 + 2 + 1) * 10 + 1 */
	void *two = add(n.g, 1, 2, NULL);
	OK(cudaGraphClone(&clone, n.g));
	EXPECT(count(n.g) == 3 && count(clone) == 3);
	OK(cudaGraphNodeFindInClone(&first, n.first, clone));
	OK(cudaGraphNodeFindInClone(&child, n.child, clone));
	OK(cudaGraphNodeFindInClone(&more, two, clone));
	OK(cudaGraphNodeGetType(child, &type));
	EXPECT(type == RT_NODE_GRAPH && child != n.child);
	OK(cudaGraphGetEdges(clone, NULL, NULL, NULL, &edges));
	EXPECT(edges == 1);
	OK(cudaGraphAddDependencies(clone, &more, &first, NULL, 1));
	EXPECT(makes(clone) == 41);
	REFUSED(cudaGraphAddDependencies(clone, &child, &first, NULL, 1)); /* a circle */
	/* what the graph of a child node gets, the node does */
	OK(cudaGraphChildGraphNodeGetGraph(child, &in));
	EXPECT(in != n.in && count(in) == 2);
	add(in, 1, 100, NULL);
	EXPECT(makes(clone) == 141 && makes(n.g) == 23);
	/* a node of a graph that is gone has no copy, whatever has its address */
	OK(cudaGraphDestroyNode(two));
	two = add(n.g, 1, 2, NULL);
	REFUSED(cudaGraphNodeFindInClone(&node, two, clone));
	/* a graph in a graph in a graph, between two nodes */
	void *before = add(out, 1, 4, NULL);
	OK(cudaGraphDestroyNode(two));
	OK(cudaGraphAddChildGraphNode(&node, out, &before, 1, n.g));
	OK(cudaGraphChildGraphNodeGetGraph(node, &in));
	EXPECT(count(in) == 2);
	add(out, 2, 0, &node);
	EXPECT(makes(out) == 122); /* ((1 + 4 + 1) * 10 + 1) * 2 */
	/* a graph in itself: a copy of what it was */
	OK(cudaGraphAddChildGraphNode(&node, n.g, &n.child, 1, n.g));
	OK(cudaGraphChildGraphNodeGetGraph(node, &in));
	EXPECT(count(n.g) == 3 && count(in) == 2 && makes(n.g) == 221); /* ((1 + 1) * 10 + 1 + 1) * 10 + 1 */
	OK(cudaGraphDestroy(out));
	OK(cudaGraphDestroy(clone));
	OK(cudaGraphDestroy(n.g));
}

static void updates(void)
{
	nest a = make_nest(10), b = make_nest(100);
	void *exec = NULL, *other = NULL;
	arguments args;
	const rt_kernel_node changed = kernel(&args, 7, 0);
	update u = { 9, NULL, NULL };

	OK(cudaGraphInstantiate(&exec, a.g, 0));
	OK(cudaGraphExecUpdate(exec, b.g, &u));
	EXPECT(u.result == 0 && launched(exec) == 201);
	/* nodes are those of the graph that it was made of, also those of the graph in it */
	OK(cudaGraphExecKernelNodeSetParams(exec, a.product, &changed));
	EXPECT(launched(exec) == 15);
	REFUSED(cudaGraphExecKernelNodeSetParams(exec, b.product, &changed));
	/* the graph in it alone, which gets the numbers of another one of its shape */
	OK(cudaGraphExecChildGraphNodeSetParams(exec, a.child, b.in));
	EXPECT(launched(exec) == 201);
	OK(cudaGraphExecKernelNodeSetParams(exec, a.product, &changed));
	EXPECT(launched(exec) == 15);
	REFUSED(cudaGraphExecChildGraphNodeSetParams(exec, a.first, b.in));
	REFUSED(cudaGraphExecChildGraphNodeSetParams(exec, a.child, exec));
	void *alone = new_graph();
	add(alone, 1, 1, NULL);
	REFUSED(cudaGraphExecChildGraphNodeSetParams(exec, a.child, alone));
	OK(cudaGraphDestroy(alone));
	/* more nodes; a node that depends on nothing; another kind of node; another graph within */
	void *extra = NULL;
	OK(cudaGraphAddEmptyNode(&extra, b.g, NULL, 0));
	EXPECT(cudaGraphExecUpdate(exec, b.g, &u) == UPDATE_FAILURE && u.result == RT_UPDATE_TOPOLOGY && !u.node && !u.from);
	OK(cudaGraphDestroyNode(extra));
	OK(cudaGraphRemoveDependencies(b.g, &b.first, &b.child, NULL, 1));
	EXPECT(cudaGraphExecUpdate(exec, b.g, &u) == UPDATE_FAILURE && u.result == RT_UPDATE_TOPOLOGY && u.node == b.child);
	OK(cudaGraphDestroyNode(b.child));
	OK(cudaGraphAddEmptyNode(&extra, b.g, &b.first, 1));
	EXPECT(cudaGraphExecUpdate(exec, b.g, &u) == UPDATE_FAILURE && u.result == RT_UPDATE_TYPE && u.node == extra);
	void *leaf = add(a.in, 1, 0, NULL);
	EXPECT(cudaGraphExecUpdate(exec, a.g, &u) == UPDATE_FAILURE && u.result == RT_UPDATE_TOPOLOGY);
	EXPECT(launched(exec) == 15); /* as it was */
	OK(cudaGraphDestroyNode(leaf));
	OK(cudaGraphExecUpdate(exec, a.g, NULL));
	EXPECT(launched(exec) == 21);
	/* three nodes in a row, and two behind the first */
	void *row = new_graph(), *fork = new_graph(), *x = add(row, 1, 1, NULL), *y = add(row, 1, 1, &x);
	add(row, 1, 1, &y);
	x = add(fork, 1, 1, NULL), add(fork, 1, 1, &x), y = add(fork, 1, 1, &x);
	OK(cudaGraphInstantiate(&other, row, 0));
	EXPECT(cudaGraphExecUpdate(other, fork, &u) == UPDATE_FAILURE && u.result == RT_UPDATE_TOPOLOGY && u.node == y &&
	       u.from == x);
	REFUSED(cudaGraphExecUpdate(row, fork, &u));
	REFUSED(cudaGraphExecUpdate(other, exec, &u));
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphExecDestroy(other));
	OK(cudaGraphDestroy(row));
	OK(cudaGraphDestroy(fork));
	OK(cudaGraphDestroy(a.g));
	OK(cudaGraphDestroy(b.g));
}

/* Where nothing is given. */
static void nothing(void)
{
	void *g = new_graph(), *node = add(g, 1, 1, NULL), *out = NULL, *none[1] = { NULL };
	size_t n = 1;

	REFUSED(cudaGraphCreate(NULL, 0));
	REFUSED(cudaGraphClone(NULL, g));
	REFUSED(cudaGraphAddNode(NULL, g, NULL, NULL, 0, NULL));
	REFUSED(cudaGraphAddNode(&out, g, NULL, NULL, 0, NULL));
	REFUSED(cudaGraphAddKernelNode(&out, g, NULL, 0, NULL));
	REFUSED(cudaGraphAddHostNode(&out, g, NULL, 0, NULL));
	REFUSED(cudaGraphAddHostNode(&out, g, NULL, 0, &(rt_host_node){ NULL, NULL }));
	REFUSED(cudaGraphAddMemsetNode(&out, g, NULL, 0, NULL));
	REFUSED(cudaGraphAddMemcpyNode(&out, g, NULL, 0, NULL));
	REFUSED(cudaGraphAddMemAllocNode(&out, g, NULL, 0, NULL));
	REFUSED(cudaGraphAddChildGraphNode(&out, g, NULL, 0, NULL));
	REFUSED(cudaGraphAddEmptyNode(NULL, g, NULL, 0));
	REFUSED(cudaGraphAddEmptyNode(&out, g, NULL, 1));
	REFUSED(cudaGraphAddEmptyNode(&out, g, none, 1));
	REFUSED(cudaGraphAddDependencies(g, NULL, NULL, NULL, 1));
	REFUSED(cudaGraphGetNodes(g, NULL, NULL));
	REFUSED(cudaGraphGetRootNodes(g, NULL, NULL));
	REFUSED(cudaGraphGetEdges(g, NULL, NULL, NULL, NULL));
	REFUSED(cudaGraphNodeGetDependencies(NULL, NULL, NULL, &n));
	REFUSED(cudaGraphNodeGetDependencies(node, NULL, NULL, NULL));
	REFUSED(cudaGraphNodeGetDependentNodes(NULL, NULL, NULL, &n));
	REFUSED(cudaGraphNodeGetType(node, NULL));
	REFUSED(cudaGraphNodeFindInClone(NULL, node, g));
	REFUSED(cudaGraphKernelNodeGetParams(node, NULL));
	REFUSED(cudaGraphKernelNodeSetParams(node, NULL));
	REFUSED(cudaGraphKernelNodeGetAttribute(node, RT_ATTR_CLUSTER, NULL));
	REFUSED(cudaGraphMemcpyNodeGetParams(node, NULL));
	REFUSED(cudaGraphMemsetNodeGetParams(NULL, NULL));
	REFUSED(cudaGraphInstantiate(NULL, g, 0));
	REFUSED(cudaGraphInstantiateWithParams(&out, g, NULL));
	REFUSED(cudaGraphDestroyNode(NULL));
	EXPECT(!out && count(g) == 1 && makes(g) == 2);
	OK(cudaGraphDestroy(g));
}

/* Handles of what is gone, or of another kind. */
static void strangers(void)
{
	nest n = make_nest(10);
	void *other = new_graph(), *its = add(other, 1, 1, NULL), *exec = NULL, *out = NULL, *s = NULL, *g = NULL;
	arguments args;
	const rt_kernel_node p = kernel(&args, 1, 1);
	unsigned on = 1;
	int type = -1;

	/* edges */
	REFUSED(cudaGraphAddDependencies(n.g, &n.first, &n.child, NULL, 1));
	REFUSED(cudaGraphRemoveDependencies(n.g, &n.child, &n.first, NULL, 1));
	REFUSED(cudaGraphAddDependencies(n.g, &n.child, &n.first, NULL, 1));
	REFUSED(cudaGraphAddDependencies(other, &n.first, &n.child, NULL, 1));
	REFUSED(cudaGraphRemoveDependencies(other, &n.first, &n.child, NULL, 1));
	REFUSED(cudaGraphAddDependencies(n.g, &its, &n.child, NULL, 1));
	REFUSED(cudaGraphAddKernelNode(&out, n.g, &its, 1, &p));
	REFUSED(cudaGraphAddKernelNode(&out, n.g, (void *[]){ n.first, n.first }, 2, &p));
	EXPECT(count(n.g) == 2);
	/* the graph of a child node, and of a capture */
	REFUSED(cudaGraphDestroy(n.in));
	EXPECT(makes(n.g) == 21);
	OK(cudaStreamCreate(&s));
	OK(cudaStreamBeginCapture(s, 2));
	OK(cudaStreamGetCaptureInfo(s, &type, NULL, &g, NULL, NULL, NULL));
	REFUSED(cudaGraphDestroy(g));
	OK(cudaStreamEndCapture(s, &g));
	OK(cudaGraphDestroy(g));
	/* graphs that can run, and graphs */
	OK(cudaGraphInstantiate(&exec, n.g, 0));
	REFUSED(cudaGraphDestroy(exec));
	REFUSED(cudaGraphExecDestroy(n.g));
	REFUSED(cudaGraphLaunch(n.g, NULL));
	REFUSED(cudaGraphUpload(n.g, NULL));
	REFUSED(cudaGraphClone(&g, exec));
	REFUSED(cudaGraphInstantiate(&g, exec, 0));
	REFUSED(cudaGraphAddEmptyNode(&out, exec, NULL, 0));
	REFUSED(cudaGraphAddEmptyNode(&out, n.first, NULL, 0));
	REFUSED(cudaGraphNodeGetType(n.g, &type));
	EXPECT(launched(exec) == 21);
	/* what is gone */
	OK(cudaGraphDestroyNode(its));
	REFUSED(cudaGraphDestroyNode(its));
	REFUSED(cudaGraphAddEmptyNode(&out, other, &its, 1));
	OK(cudaGraphDestroy(n.g));
	REFUSED(cudaGraphNodeGetType(n.first, &type));
	REFUSED(cudaGraphNodeGetType(n.product, &type));
	REFUSED(cudaGraphNodeGetEnabled(exec, n.first, &on));
	REFUSED(cudaGraphExecKernelNodeSetParams(exec, n.first, &p));
	REFUSED(cudaGraphGetNodes(n.in, NULL, &(size_t){ 0 }));
	REFUSED(cudaGraphDestroy(n.g));
	EXPECT(launched(exec) == 21);
	OK(cudaGraphExecDestroy(exec));
	REFUSED(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(other));
}

/* Two slices of two rows of four bytes, from memory where rows have 8 and slices 4 of them to such of 4 and 3. */
static void slices(void)
{
	void *g = new_graph(), *node = NULL, *from = NULL, *to = NULL, *s = NULL, *exec = NULL, *nodes[2];
	unsigned char bytes[64], got[32];
	rt_copy3d back, c = { .extent = { 4, 2, 2 }, .kind = RT_DEVICE_TO_DEVICE };
	dr_copy3d of_driver;
	size_t n = 2;
	int type = -1;

	OK(cudaMalloc(&from, 96));
	OK(cudaMalloc(&to, 32));
	for (unsigned i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)(i + 1);
	OK(cudaMemcpy(from, bytes, sizeof bytes, RT_HOST_TO_DEVICE));
	OK(cudaMemset(to, 0, 32));
	c.src = (rt_pitched){ from, 8, 4, 4 }, c.dst = (rt_pitched){ to, 4, 4, 3 };
	OK(cudaGraphAddMemcpyNode(&node, g, NULL, 0, &c));
	OK(cudaGraphNodeGetType(node, &type));
	OK(cudaGraphMemcpyNodeGetParams(node, &back));
	EXPECT(type == RT_NODE_COPY && back.extent.depth == 2 && back.extent.height == 2 && back.extent.width == 4 &&
	       back.src.ptr == from && back.src.pitch == 8 && back.src.ysize == 4 && back.dst.ptr == to && back.dst.ysize == 3);
	OK(cuGraphMemcpyNodeGetParams(node, &of_driver));
	EXPECT(of_driver.depth == 2 && of_driver.src.height == 4 && of_driver.dst.height == 3 && of_driver.dst.pitch == 4);
	OK(cudaGraphInstantiate(&exec, g, 0));
	OK(cudaGraphLaunch(exec, NULL));
	OK(cudaMemcpy(got, to, 32, RT_DEVICE_TO_HOST));
	EXPECT(got[0] == 1 && got[4] == 9 && got[7] == 12 && !got[8] && got[12] == 33 && got[16] == 41 && !got[20]);
	/* its row 1 first; and then one slice */
	back.src.ptr = (char *)from + 8;
	OK(cudaGraphExecMemcpyNodeSetParams(exec, node, &back));
	OK(cudaGraphLaunch(exec, NULL));
	OK(cudaMemcpy(got, to, 32, RT_DEVICE_TO_HOST));
	EXPECT(got[0] == 9 && got[12] == 41);
	back.src.ptr = from, back.extent.depth = 1;
	OK(cudaGraphExecMemcpyNodeSetParams(exec, node, &back));
	OK(cudaGraphLaunch(exec, NULL));
	OK(cudaMemcpy(got, to, 32, RT_DEVICE_TO_HOST));
	EXPECT(got[0] == 1 && got[12] == 41);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphDestroy(g));
	/* captured, it is one node */
	OK(cudaStreamCreate(&s));
	OK(cudaStreamBeginCapture(s, 2));
	OK(cudaMemcpy3DAsync(&c, s));
	OK(cudaStreamEndCapture(s, &g));
	OK(cudaGraphGetNodes(g, nodes, &n));
	EXPECT(n == 1 && !cudaGraphNodeGetType(nodes[0], &type) && type == RT_NODE_COPY);
	OK(cudaGraphDestroy(g));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = { { "clones", clones },
		        { "updates", updates },
		        { "nothing", nothing },
		        { "strangers", strangers },
		        { "slices", slices } };

	for (size_t i = 0; argc > 1 && i < sizeof all / sizeof *all; i++)
		if (!strcmp(argv[1], all[i].name)) {
			set_up();
			all[i].run();
		}
	printf("%u passed, %u failed, 0 skipped\n", passed, failed);
	return failed || !passed;
}
