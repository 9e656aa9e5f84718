/* SPDX-License-Identifier: MIT */
/* The runtime on a GPU.  Without one every test is skipped, and says so. */
#include "../runtime/harness.h"

#include <cptx/cptx.h>
#include <cptx/device.h>

#include <stdlib.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static cptx_device *dev;
static cptx_error err;
static char why_not[CPTX_ERROR_TEXT];

static void before(void)
{
	memset(&err, 0, sizeof err);
	dev = cptx_device_open("cuda", &err);
	if (dev)
		return;
	ck_assert_msg(err.code == CPTX_E_NO_DRIVER || err.code == CPTX_E_NO_DEVICE, "%s", err.text);
	strcpy(why_not, err.text);
	memset(&err, 0, sizeof err);
}

static void after(void)
{
	cptx_device_close(dev);
	dev = NULL;
}

#define NEED_GPU                                                                                                            \
	do {                                                                                                                    \
		if (!dev)                                                                                                           \
			SKIP("needs a GPU: %s", why_not);                                                                               \
	} while (0)
#define NEED_CLUSTERS                                                                                                       \
	do {                                                                                                                    \
		NEED_GPU;                                                                                                           \
		if (!cptx_device_get_info(dev)->clusters)                                                                           \
			SKIP("needs a GPU with clusters (compute capability 9.0)");                                                     \
	} while (0)

#define HEAD ".version 7.8\n.target sm_75\n.address_size 64\n"

static cptx_program *load_text(const char *text)
{
	cptx_program *p = cptx_device_load_text(dev, text, strlen(text), &(cptx_load_opt){ .verbose = true }, &err);
	OK(err);
	return p;
}

/* y[i] = x[i] * f for i < n, one thread each. */
static const char scale_ptx[] =
	HEAD ".visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 f, .param .u32 n)\n"
		 "{\n"
		 "	.reg .pred %p; .reg .b32 %i, %c, %t; .reg .b64 %x, %y, %o; .reg .f32 %v, %f; .reg .b32 %n;\n"
		 "	mov.u32 %i, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %t, %ntid.x;\n"
		 "	mad.lo.u32 %i, %c, %t, %i;\n"
		 "	ld.param.u32 %n, [n];\n"
		 "	setp.ge.u32 %p, %i, %n;\n"
		 "	@%p ret;\n"
		 "	ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.f32 %f, [f];\n"
		 "	mul.wide.u32 %o, %i, 4;\n"
		 "	add.u64 %x, %x, %o; add.u64 %y, %y, %o;\n"
		 "	ld.global.f32 %v, [%x];\n"
		 "	mul.f32 %v, %v, %f;\n"
		 "	st.global.f32 [%y], %v;\n"
		 "	ret;\n"
		 "}\n";

START_TEST(info)
{
	NEED_GPU;
	const cptx_device_info *i = cptx_device_get_info(dev);

	printf("%s: compute capability %u, %u SMs, driver %u, PTX %u, target %s, %u KB shared, %u MB L2, %llu MB, %u kHz\n",
	       i->name, i->compute_capability, i->sms, i->driver, i->ptx, i->target, i->smem_per_cta / 1024, i->l2 >> 20,
	       (unsigned long long)(i->global_memory >> 20), i->clock_khz);
	ck_assert_uint_ge(cptx_device_count("cuda", &err), 1);
	ck_assert_uint_ge(i->compute_capability, 75);
	ck_assert_ptr_nonnull(i->target);
	const cptx_target *t = cptx_target_find(i->target);
	if (t->compute_capability == i->compute_capability) { /* the table of targets against the device */
		ck_assert_uint_eq(i->smem_per_cta, t->smem_per_cta);
		ck_assert_uint_eq(i->smem_per_sm, t->smem_per_sm);
		ck_assert_uint_eq(i->threads_per_sm, t->threads_per_sm);
		ck_assert_uint_eq(i->regs_per_sm, CPTX_REGS_PER_SM);
	}
	OK(err);
}
END_TEST

START_TEST(index_out_of_range)
{
	NEED_GPU;
	char name[32];

	snprintf(name, sizeof name, "cuda:%u", cptx_device_count("cuda", &err));
	ck_assert_ptr_null(cptx_device_open(name, &err));
	FAILS(err, CPTX_E_NO_DEVICE, name);
}
END_TEST

START_TEST(memory)
{
	NEED_GPU;
	enum { N = 1 << 20 };
	uint32_t *a = malloc(N * 4), *b = malloc(N * 4);
	uint64_t p = cptx_mem_alloc(dev, N * 4, &err), q = cptx_mem_alloc(dev, N * 4, &err);
	cptx_stream *s = cptx_stream_new(dev, &err);

	for (uint32_t i = 0; i < N; i++)
		a[i] = i * 2654435761u;
	cptx_mem_write(dev, p, a, N * 4, &err);
	cptx_mem_copy(dev, q, p, N * 4, &err);
	cptx_mem_fill32(dev, q + 400, 0xdeadbeef, 50, &err);
	cptx_mem_fill8(dev, q + 1000, 7, 8, &err);
	cptx_mem_read(dev, b, q, N * 4, &err);
	OK(err);
	for (uint32_t i = 0; i < N; i++)
		ck_assert_uint_eq(b[i], i >= 100 && i < 150 ? 0xdeadbeef : i == 250 || i == 251 ? 0x07070707 : a[i]);
	cptx_mem_fill32_async(dev, p, 5, N, s, &err);
	cptx_mem_write_async(dev, p, a, 64, s, &err);
	cptx_mem_copy_async(dev, q, p, N * 4, s, &err);
	cptx_mem_fill8_async(dev, q + 64, 1, 4, s, &err);
	cptx_mem_read_async(dev, b, q, N * 4, s, &err);
	cptx_stream_synchronize(dev, s, &err);
	OK(err);
	ck_assert_uint_eq(b[15], a[15]);
	ck_assert_uint_eq(b[16], 0x01010101);
	ck_assert_uint_eq(b[N - 1], 5);
	ck_assert_uint_eq(cptx_mem_alloc(dev, (size_t)1 << 46, &err), 0);
	FAILS(err, CPTX_E_DRIVER, "CUDA_ERROR_OUT_OF_MEMORY");
	cptx_stream_destroy(s);
	cptx_mem_free(dev, p);
	cptx_mem_free(dev, q);
	free(a);
	free(b);
}
END_TEST

static void check_scaled(uint64_t y, const float *x, float f, uint32_t n)
{
	float *got = malloc(n * 4);

	cptx_mem_read(dev, got, y, n * 4, &err);
	OK(err);
	for (uint32_t i = 0; i < n; i++)
		ck_assert_float_eq(got[i], x[i] * f);
	free(got);
}

START_TEST(launch)
{
	NEED_GPU;
	enum { N = 100000 };
	float *host = malloc(N * 4), ms = -1;
	uint64_t x = cptx_mem_alloc(dev, N * 4, &err), y = cptx_mem_alloc(dev, N * 4, &err);
	cptx_stream *s = cptx_stream_new(dev, &err);
	cptx_event *from = cptx_event_new(dev, &err), *to = cptx_event_new(dev, &err);
	cptx_program *p = load_text(scale_ptx);
	cptx_launch_opt opt = { .grid = { (N + 255) / 256 }, .block = { 256 }, CPTX_ARGS(x, y, 3.0f, (uint32_t)N) };

	for (int i = 0; i < N; i++)
		host[i] = (float)i;
	cptx_mem_write(dev, x, host, N * 4, &err);
	cptx_launch *l = cptx_launch_new(p, "scale", &opt, &err);
	cptx_event_record(from, s, &err);
	cptx_launch_run(l, s, &err);
	cptx_event_record(to, s, &err);
	cptx_stream_wait(NULL, to, &err);
	cptx_event_synchronize(to, &err);
	cptx_event_elapsed(from, to, &ms, &err);
	OK(err);
	ck_assert_float_gt(ms, 0);
	check_scaled(y, host, 3.0f, N);
	cptx_launch_set(l, 2, 0.5f, &err);
	cptx_launch_run(l, NULL, &err);
	check_scaled(y, host, 0.5f, N);
	cptx_launch_destroy(l);
	cptx_launch_once(p, NULL, &opt, NULL, &err);
	check_scaled(y, host, 3.0f, N);

	cptx_program_destroy(p);
	cptx_event_destroy(from);
	cptx_event_destroy(to);
	cptx_stream_destroy(s);
	cptx_mem_free(dev, x);
	cptx_mem_free(dev, y);
	free(host);
}
END_TEST

/* A kernel of the builder is launched; its arguments are known by kind. */
START_TEST(launch_built)
{
	NEED_GPU;
	float host[64], f = 2;
	uint64_t x = cptx_mem_alloc(dev, sizeof host, &err);
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "scale", .block = { 64 });
	cptx_val px = cptx_param(k, CPTX_PTR, "x"), vf = cptx_param(k, CPTX_F32, "f");
	cptx_val at = cptx_add(k, px, cptx_mul_wide(k, cptx_tid_x(k), 4));

	cptx_st(k, at, cptx_mul(k, cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_F32), vf), .space = CPTX_GLOBAL);
	cptx_program *p = cptx_device_load(dev, m, &(cptx_load_opt){ .verbose = true }, &err);
	OK(err);
	cptx_module_destroy(m);
	printf("target %s, PTX %u, log: %s\n", cptx_program_target(p), cptx_program_version(p), cptx_program_log(p));
	for (int i = 0; i < 64; i++)
		host[i] = (float)i;
	cptx_mem_write(dev, x, host, sizeof host, &err);
	ck_assert(!cptx_launch_once(p, "scale", &(cptx_launch_opt){ .grid = { 1 }, CPTX_ARGS(x, 2) }, NULL, &err));
	FAILS(err, CPTX_E_ARG, "parameter \"f\" is .f32");
	cptx_launch_once(p, "scale", &(cptx_launch_opt){ .grid = { 1 }, CPTX_ARGS(x, f) }, NULL, &err);
	check_scaled(x, host, f, 64);
	cptx_program_destroy(p);
	cptx_mem_free(dev, x);
}
END_TEST

START_TEST(raw_arguments)
{
	NEED_GPU;
	if (!cptx_device_symbol(dev, "cuFuncGetParamInfo"))
		SKIP("needs a driver of CUDA 12.4");
	cptx_program *p = load_text(scale_ptx);
	cptx_launch_opt opt = { .grid = { 1 }, .block = { 1 }, CPTX_ARGS(1ull, 2ull, 3.0f) };

	ck_assert_ptr_null(cptx_launch_new(p, "scale", &opt, &err));
	FAILS(err, CPTX_E_ARG, "it takes 4 arguments, but 3 were given");
	opt = (cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, CPTX_ARGS(1ull, 2, 3.0f, 4u) };
	ck_assert_ptr_null(cptx_launch_new(p, "scale", &opt, &err));
	FAILS(err, CPTX_E_ARG, "argument 1 is an integer of 4 bytes, but the parameter has 8 bytes");
	ck_assert_ptr_null(cptx_launch_new(p, "scala", &opt, &err));
	FAILS(err, CPTX_E_ARG, "it has the kernel \"scale\"");
	cptx_program_destroy(p);
}
END_TEST

START_TEST(jit_errors)
{
	NEED_GPU;
	static const char bad[] = HEAD ".entry k()\n{\n	.reg .b32 %a;\n	add.f99 %a, %a, %a;\n	ret;\n}\n";

	ck_assert_ptr_null(cptx_device_load_text(dev, bad, sizeof bad - 1, NULL, &err));
	printf("%s\n", err.text);
	FAILS(err, CPTX_E_COMPILE, "which is: add.f99 %a, %a, %a;");
	static const char next[] = ".version 99.0\n.target sm_90\n.entry k() { ret; }\n";
	ck_assert_ptr_null(cptx_device_load_text(dev, next, sizeof next - 1, NULL, &err));
	FAILS(err, CPTX_E_NO_COMPILER, "PTX 99.0, but the driver");
}
END_TEST

/* Thread 0 writes the last word of its dynamic shared memory and copies it to out. */
static const char smem_ptx[] = HEAD ".extern .shared .align 16 .b8 dyn[];\n"
									".visible .entry last(.param .u64 out)\n"
									"{\n"
									"	.reg .b32 %s, %v; .reg .b32 %a; .reg .b64 %o;\n"
									"	mov.u32 %s, %dynamic_smem_size;\n"
									"	mov.u32 %a, dyn;\n"
									"	add.u32 %a, %a, %s;\n"
									"	st.shared.u32 [%a+-4], %s;\n"
									"	ld.shared.u32 %v, [%a+-4];\n"
									"	ld.param.u64 %o, [out];\n"
									"	st.global.u32 [%o], %v;\n"
									"	ret;\n"
									"}\n";

START_TEST(dynamic_shared_memory)
{
	NEED_GPU;
	const cptx_device_info *i = cptx_device_get_info(dev);
	const uint32_t sizes[] = { 4, 48 * 1024, 48 * 1024 + 16, i->smem_per_cta };
	uint64_t out = cptx_mem_alloc(dev, 4, &err);
	cptx_program *p = load_text(smem_ptx);
	cptx_resources r;
	uint32_t got;

	for (size_t n = 0; n < ARRAY_LEN(sizes); n++) {
		cptx_launch_opt opt = { .grid = { 1 }, .block = { 32 }, .dyn_smem = sizes[n], CPTX_ARGS(out) };
		cptx_launch *l = cptx_launch_new(p, "last", &opt, &err);
		cptx_launch_run(l, NULL, &err);
		cptx_mem_read(dev, &got, out, 4, &err);
		cptx_launch_resources(l, &r, &err);
		OK(err);
		ck_assert_uint_eq(got, sizes[n]);
		ck_assert_uint_ge(r.ctas_per_sm, 1);
		ck_assert_uint_eq(r.binary_version, i->compute_capability);
		cptx_launch_destroy(l);
	}
	ck_assert_uint_eq(r.ctas_per_sm, 1);
	cptx_launch_opt opt = { .grid = { 1 }, .block = { 32 }, .dyn_smem = i->smem_per_cta + 4, CPTX_ARGS(out) };
	ck_assert_ptr_null(cptx_launch_new(p, "last", &opt, &err));
	FAILS(err, CPTX_E_LIMIT, "can have");
	ck_assert(cptx_program_resources(p, "last", 1024, 0, &r, &err));
	ck_assert_uint_eq(r.ctas_per_sm, i->threads_per_sm / 1024);
	cptx_program_destroy(p);
	cptx_mem_free(dev, out);
}
END_TEST

START_TEST(adopted_context)
{
	NEED_GPU;
	cptx_device *same = cptx_device_adopt(NULL, &err), *named = cptx_device_adopt(cptx_device_context(dev), &err);

	OK(err);
	ck_assert_ptr_eq(cptx_device_context(same), cptx_device_context(dev));
	ck_assert_str_eq(cptx_device_get_info(named)->name, cptx_device_get_info(dev)->name);
	uint64_t p = cptx_mem_alloc(same, 4, &err);
	uint32_t v = 0;
	cptx_mem_fill32(same, p, 77, 1, &err);
	cptx_mem_read(dev, &v, p, 4, &err);
	cptx_mem_free(same, p);
	cptx_stream *s = cptx_stream_new(dev, &err), *adopted = cptx_stream_adopt(same, cptx_stream_handle(s), &err);
	cptx_stream_synchronize(same, adopted, &err);
	OK(err);
	ck_assert_uint_eq(v, 77);
	cptx_stream_destroy(adopted);
	cptx_stream_destroy(s);
	cptx_device_close(same);
	cptx_device_close(named);
	ck_assert(cptx_device_synchronize(dev, &err)); /* still alive */
}
END_TEST

/* A context that is not the primary one: ours stays out of its way, and the other way round. */
START_TEST(foreign_context)
{
	NEED_GPU;
	typedef unsigned create_fn(void **ctx, unsigned flags, int device);
	typedef unsigned destroy_fn(void *ctx);
	typedef unsigned current_fn(void **ctx);
	union {
		void *p;
		create_fn *create;
		destroy_fn *destroy;
		current_fn *current;
	} create = { cptx_device_symbol(dev, "cuCtxCreate_v2") }, destroy = { cptx_device_symbol(dev, "cuCtxDestroy_v2") },
	  current = { cptx_device_symbol(dev, "cuCtxGetCurrent") };
	void *theirs = NULL, *now = NULL;
	uint32_t v = 0;

	if (!create.p)
		SKIP("needs a driver with cuCtxCreate_v2");
	ck_assert_uint_eq(create.create(&theirs, 0, 0), 0); /* and it is current now */
	uint64_t p = cptx_mem_alloc(dev, 4, &err);
	cptx_program *prog = load_text(smem_ptx);
	cptx_launch_once(prog, "last", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, .dyn_smem = 64, CPTX_ARGS(p) }, NULL,
	                 &err);
	cptx_mem_read(dev, &v, p, 4, &err);
	OK(err);
	ck_assert_uint_eq(v, 64);
	current.current(&now);
	ck_assert_ptr_eq(now, theirs);
	cptx_device *own = cptx_device_adopt(NULL, &err);
	OK(err);
	ck_assert_ptr_eq(cptx_device_context(own), theirs);
	cptx_stream *s = cptx_stream_new(own, &err);
	ck_assert_ptr_null(cptx_stream_adopt(dev, cptx_stream_handle(s), &err));
	FAILS(err, CPTX_E_ARG, "another context");
	cptx_stream_destroy(s);
	cptx_device_close(own);
	cptx_program_destroy(prog);
	cptx_mem_free(dev, p);
	ck_assert_uint_eq(destroy.destroy(theirs), 0);
	OK(err);
}
END_TEST

/* out[ctaid] = cluster rank | cluster size << 16 */
#define RANK_BODY                                                                                                           \
	"{\n"                                                                                                                   \
	".reg .b32 %r, %n, %c; .reg .b64 %o, %w;\n"                                                                             \
	"mov.u32 %r, %cluster_ctarank; mov.u32 %n, %cluster_nctarank; mov.u32 %c, %ctaid.x;\n"                                  \
	"shl.b32 %n, %n, 16; or.b32 %r, %r, %n;\n"                                                                              \
	"barrier.cluster.arrive; barrier.cluster.wait;\n"                                                                       \
	"ld.param.u64 %o, [out]; mul.wide.u32 %w, %c, 4; add.u64 %o, %o, %w;\n"                                                 \
	"st.global.u32 [%o], %r;\n"                                                                                             \
	"ret;\n"                                                                                                                \
	"}\n"

static const char cluster_ptx[] = ".version 7.8\n.target sm_90\n.address_size 64\n"
								  ".visible .entry any(.param .u64 out)\n" RANK_BODY
								  ".visible .entry four(.param .u64 out) .explicitcluster .reqnctapercluster 4\n" RANK_BODY;

static void run_clusters(cptx_program *p, const char *kernel, uint32_t size, uint32_t want)
{
	enum { GRID = 32 };
	uint32_t got[GRID];
	uint64_t out = cptx_mem_alloc(dev, sizeof got, &err);
	cptx_launch_opt opt = { .grid = { GRID }, .block = { 32 }, .cluster = { size, 1, 1 }, CPTX_ARGS(out) };

	if (!size)
		opt.cluster[1] = opt.cluster[2] = 0;
	cptx_launch_once(p, kernel, &opt, NULL, &err);
	cptx_mem_read(dev, got, out, sizeof got, &err);
	OK(err);
	for (uint32_t i = 0; i < GRID; i++)
		ck_assert_uint_eq(got[i], i % want | want << 16);
	cptx_mem_free(dev, out);
}

START_TEST(cluster_launch)
{
	NEED_CLUSTERS;
	cptx_program *p = load_text(cluster_ptx);

	run_clusters(p, "any", 2, 2);
	run_clusters(p, "any", 8, 8);
	run_clusters(p, "any", 16, 16);
	run_clusters(p, "any", 0, 1);
	run_clusters(p, "four", 4, 4);
	run_clusters(p, "four", 0, 4); /* the driver takes it from the kernel */
	cptx_program_destroy(p);
}
END_TEST

START_TEST(cluster_of_a_built_kernel)
{
	NEED_CLUSTERS;
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "ranks", .cluster = { 2 });
	cptx_val out = cptx_param(k, CPTX_PTR, "out");
	cptx_val v = cptx_add(k, cptx_cluster_ctarank(k), cptx_mul(k, cptx_cluster_nctarank(k), 65536u, .mode = CPTX_LO));

	cptx_st(k, cptx_add(k, out, cptx_mul_wide(k, cptx_ctaid_x(k), 4)), v, .space = CPTX_GLOBAL);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	OK(err);
	cptx_module_destroy(m);
	run_clusters(p, "ranks", 0, 2);
	run_clusters(p, NULL, 2, 2);
	cptx_program_destroy(p);
}
END_TEST

/* Last: the fault takes the context with it. */
START_TEST(kernel_fault)
{
	NEED_GPU;
	cptx_program *p = load_text(scale_ptx);

	cptx_launch_once(p, "scale", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, CPTX_ARGS(16ull, 16ull, 1.0f, 1u) },
	                 NULL, &err);
	cptx_device_synchronize(dev, &err);
	printf("%s\n", err.text);
	FAILS(err, CPTX_E_DRIVER, "a kernel that ran before caused it");
	cptx_program_destroy(p);
}
END_TEST

/* A launch is captured into a graph like any other work; loading would break the capture, and is refused. */
START_TEST(capture)
{
	int (*begin)(void *, unsigned), (*end)(void *, void **), (*make)(void **, void *, unsigned long long);
	int (*run)(void *, void *), (*destroy)(void *), (*destroy_exec)(void *);
	struct {
		const char *name;
		void *at;
	} calls[] = { { "cuStreamBeginCapture_v2", &begin },    { "cuStreamEndCapture", &end },
		          { "cuGraphInstantiateWithFlags", &make }, { "cuGraphLaunch", &run },
		          { "cuGraphDestroy", &destroy },           { "cuGraphExecDestroy", &destroy_exec } };
	enum { THREADS = 32, RUNS = 3 };
	void *graph = NULL, *exec = NULL;
	cptx_error refused = { 0 };
	uint32_t n = 0;

	NEED_GPU;
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		void *f = cptx_device_symbol(dev, calls[i].name);
		if (!f)
			SKIP("the driver has no %s", calls[i].name);
		memcpy(calls[i].at, &f, sizeof f);
	}
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "inc", .block = { THREADS });
	cptx_red(k, cptx_param(k, CPTX_PTR, "p"), 1u, .space = CPTX_GLOBAL, .op = CPTX_ADD, .type = CPTX_U32);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	uint64_t at = cptx_mem_alloc(dev, sizeof n, &err);
	cptx_mem_fill32(dev, at, 0, 1, &err);
	cptx_stream *s = cptx_stream_new(dev, &err);
	cptx_launch *l = cptx_launch_new(p, "inc", CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(at)), &err);
	OK(err);
	void *stream = cptx_stream_handle(s);
	ck_assert_int_eq(begin(stream, 0), 0);
	cptx_launch_run(l, s, &err);
	OK(err);
	ck_assert_ptr_null(cptx_device_load(dev, m, NULL, &refused));
	FAILS(refused, CPTX_E_STATE, "captured into a graph");
	ck_assert_int_eq(end(stream, &graph), 0);
	ck_assert_int_eq(make(&exec, graph, 0), 0);
	for (int i = 0; i < RUNS; i++)
		ck_assert_int_eq(run(exec, stream), 0);
	cptx_stream_synchronize(dev, s, &err);
	cptx_mem_read(dev, &n, at, sizeof n, &err);
	OK(err);
	ck_assert_uint_eq(n, THREADS * RUNS);
	destroy_exec(exec), destroy(graph);
	cptx_launch_destroy(l);
	cptx_stream_destroy(s);
	cptx_mem_free(dev, at);
	cptx_program_destroy(p);
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		info,       index_out_of_range,    memory,          launch,          launch_built,   raw_arguments,
		jit_errors, dynamic_shared_memory, adopted_context, foreign_context, cluster_launch, cluster_of_a_built_kernel,
		capture,    kernel_fault,
	};
	return harness_run("gpu_runtime", tests, ARRAY_LEN(tests), before, after);
}
