/* SPDX-License-Identifier: MIT */
/* Programs and launches against the fake driver: logs, versions, arguments, shapes, clusters. */
#include "fake_cuda.h"
#include "harness.h"

#include <cptx/cptx.h>
#include <cptx/device.h>

#include <dlfcn.h>
#include <stdlib.h>

static fake_state *fake;
static cptx_device *dev;
static cptx_error err;

static void start(const char *variable)
{
	const char *path = getenv(variable);
	void *lib = path ? dlopen(path, RTLD_NOW) : NULL;

	ck_assert_msg(lib != NULL, "%s names no fake driver", variable);
	setenv("CPTX_CUDA_LIBRARY", path, 1);
	memset(&err, 0, sizeof err);
	fake = dlsym(lib, "fake_cuda");
	*fake = (fake_state){ .version = 13000, .devices = 1, .major = 9, .max_threads = 1024, .regs = 32, .ctas = 2 };
	dev = cptx_device_open("cuda", &err);
	OK(err);
}

static void before(void) { start("CPTX_TEST_FAKE_CUDA"); }

static void after(void)
{
	cptx_device_close(dev);
	ck_assert_uint_eq(fake->modules, 0);
}

static void start_again(const char *variable)
{
	cptx_device_close(dev);
	start(variable);
}

enum { MUL_LINE = __LINE__ + 8 };
/* x[tid] = x[tid] * f, and parameters of all kinds. */
static cptx_module *build(cptx_kernel_opt bounds)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin_(m, CPTX_HERE, "scale", &bounds);
	cptx_val x = cptx_param(k, CPTX_PTR, "x"), f = cptx_param(k, CPTX_F32, "f");
	cptx_val p = cptx_add(k, x, cptx_mul_wide(k, cptx_tid_x(k), 4));
	cptx_st(k, p, cptx_mul(k, cptx_ld(k, p, .space = CPTX_GLOBAL, .type = CPTX_F32), f), .space = CPTX_GLOBAL);
	cptx_param(k, CPTX_U32, "n");
	cptx_param_bytes(k, 128, 64, "map");
	k = cptx_kernel_begin(m, "empty");
	cptx_ret(k);
	OK(*(cptx_module_error(m) ? cptx_module_error(m) : &(cptx_error){ 0 }));
	return m;
}

static cptx_program *load(cptx_kernel_opt bounds)
{
	cptx_module *m = build(bounds);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);

	OK(err);
	cptx_module_destroy(m); /* the program must not need it */
	return p;
}

static const char map[128] = { 42 };
#define ARGS CPTX_ARGS((uint64_t)0x1000, 2.0f, 7u, CPTX_ARG_BYTES(map, sizeof map))
#define LAUNCH(p, ...) cptx_launch_new((p), "scale", &(cptx_launch_opt){ __VA_ARGS__ }, &err)
#define REFUSED(p, code, part, ...)                                                                                         \
	do {                                                                                                                    \
		ck_assert_ptr_null(LAUNCH(p, __VA_ARGS__));                                                                         \
		FAILS(err, code, part);                                                                                             \
	} while (0)

/* ---- loading ---- */

START_TEST(loads)
{
	fake->jit_info = "ptxas info    : Used 8 registers";
	cptx_program *p = load((cptx_kernel_opt){ 0 });

	ck_assert_str_eq(cptx_program_log(p), "ptxas info    : Used 8 registers");
	ck_assert_str_eq(cptx_program_target(p), "sm_90a");
	ck_assert_uint_ge(cptx_program_version(p), 80);
	ck_assert_str_eq(cptx_program_kernel_at(p, 0), "scale");
	ck_assert_str_eq(cptx_program_kernel_at(p, 1), "empty");
	ck_assert_ptr_null(cptx_program_kernel_at(p, 2));
	ck_assert_ptr_nonnull(cptx_program_handle(p));
	cptx_program_destroy(p);
	cptx_program_destroy(NULL);
}
END_TEST

/* A launch keeps its program, and that its device. */
START_TEST(closed_first)
{
	cptx_program *p = load((cptx_kernel_opt){ 0 });
	cptx_launch *l = LAUNCH(p, .grid = { 1 }, .block = { 32 }, ARGS);

	OK(err);
	cptx_device_close(dev);
	dev = NULL;
	cptx_program_destroy(p);
	ck_assert_uint_eq(fake->modules, 1);
	ck_assert(cptx_launch_run(l, NULL, &err));
	OK(err);
	ck_assert_uint_eq(fake->retained, 1);
	cptx_launch_destroy(l);
	ck_assert_uint_eq(fake->modules + fake->retained, 0);
	ck_assert_uint_eq(fake->pushes, fake->pops);
}
END_TEST

START_TEST(load_options)
{
	cptx_module *m = build((cptx_kernel_opt){ 0 });
	cptx_load_opt opt = { .target = "sm_80", .max_regs = 64, .verbose = true, .line_info = true, .debug = true };
	cptx_program *p = cptx_device_load(dev, m, &opt, &err);

	OK(err);
	ck_assert_str_eq(cptx_program_target(p), "sm_80");
	const unsigned want[] = { 3, 4, 5, 6, 12, 0, 13, 11 };
	ck_assert_uint_eq(fake->noptions, ARRAY_LEN(want));
	ck_assert_mem_eq(fake->options, want, sizeof want);
	ck_assert_uint_eq(fake->values[5], 64);
	cptx_program_destroy(p);

	opt.target = "sm_100a";
	ck_assert_ptr_null(cptx_device_load(dev, m, &opt, &err));
	FAILS(err, CPTX_E_TARGET, "Fake 0 (compute capability 9.0) cannot run code for sm_100a; its best target is sm_90a");
	opt.target = "sm_1";
	ck_assert_ptr_null(cptx_device_load(dev, m, &opt, &err));
	FAILS(err, CPTX_E_TARGET, "no target \"sm_1\"");
	ck_assert_ptr_null(cptx_device_load(NULL, m, NULL, &err));
	FAILS(err, CPTX_E_ARG, "device is NULL");
	cptx_module_destroy(m);
}
END_TEST

START_TEST(no_load_in_a_capture)
{
	cptx_module *m = build((cptx_kernel_opt){ 0 });
	cptx_program *p = load((cptx_kernel_opt){ 0 });
	unsigned modules = fake->modules;

	strcpy(fake->fail_call, "cuStreamIsCapturing");
	fake->fail_code = CU_CAPTURE_IMPLICIT;
	ck_assert_ptr_null(cptx_device_load(dev, m, NULL, &err));
	FAILS(err, CPTX_E_STATE, "a stream is being captured into a graph; programs are loaded before or behind that");
	ck_assert_uint_eq(fake->modules, modules);
	strcpy(fake->fail_call, "cuModuleLoadDataEx"); /* a stream that the driver does not tell of */
	fake->fail_code = CU_CAPTURE_UNSUPPORTED;
	ck_assert_ptr_null(cptx_device_load(dev, m, NULL, &err));
	FAILS(err, CPTX_E_DRIVER,
	      "a stream is being captured into a graph, where only its work may be: load and allocate outside");
	cptx_program_destroy(p);
	cptx_module_destroy(m);
}
END_TEST

START_TEST(module_errors_pass_through)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "bad");

	cptx_add(k, cptx_reg(k, CPTX_F32), cptx_reg(k, CPTX_U64));
	ck_assert_ptr_null(cptx_device_load(dev, m, NULL, &err));
	FAILS(err, CPTX_E_FORM, "kernel bad");
	cptx_module_destroy(m);
	ck_assert_ptr_null(cptx_device_load(dev, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "NULL");
}
END_TEST

START_TEST(version_too_new)
{
	static const char text[] =
		"// .version 1.0\n.version 8.8\n.target sm_90a, texmode_independent\n.visible .entry k() { ret; }\n";

	fake->version = 12000;
	cptx_load_opt alone = { .compiler = CPTX_COMPILER_DRIVER, .emit = &(cptx_emit_opt){ .min_version = 90 } };
	cptx_device *old = cptx_device_open("cuda", &err);
	cptx_module *m = build((cptx_kernel_opt){ 0 });
	ck_assert_ptr_null(cptx_device_load(old, m, &alone, &err));
	FAILS(err, CPTX_E_NO_COMPILER, "PTX 9.0, but the driver (CUDA 12.0) takes no PTX newer than 8.0");
	ck_assert_ptr_null(cptx_device_load_text(old, text, sizeof text - 1, &alone, &err));
	FAILS(err, CPTX_E_NO_COMPILER, "PTX 8.8, but the driver (CUDA 12.0)");
	cptx_program *p = cptx_device_load_text(dev, text, sizeof text - 1, NULL, &err);
	OK(err);
	ck_assert_str_eq(cptx_program_target(p), "sm_90a");
	ck_assert_str_eq(cptx_program_kernel_at(p, 0), "k");
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	cptx_device_close(old);
}
END_TEST

/* The number of the first line of the text that has `part`. */
static unsigned line_of(const char *text, const char *part)
{
	unsigned line = 1;
	for (const char *end = strstr(text, part); text < end; text++)
		line += *text == '\n';
	return line;
}

START_TEST(jit_log_names_the_users_line)
{
	char log[256];
	cptx_module *m = build((cptx_kernel_opt){ 0 });
	cptx_ptx *ptx = cptx_emit(m, "sm_90a", NULL, &err);

	OK(err);
	snprintf(log, sizeof log,
	         "ptxas application ptx input, line %u; error   : Bad luck for instruction 'mul'\nptxas fatal   : end\n",
	         line_of(cptx_ptx_text(ptx), "mul.f32"));
	fake->jit_error = log;
	ck_assert_ptr_null(cptx_device_load(dev, m, NULL, &err));
	ck_assert_str_eq(err.file, __FILE__);
	ck_assert_uint_eq(err.line, MUL_LINE);
	ck_assert_ptr_nonnull(strstr(err.text, "Bad luck for instruction 'mul'\n        from " __FILE__));
	ck_assert_ptr_nonnull(strstr(err.text, "\tmul.f32") ? err.text : strstr(err.text, ": mul.f32"));
	FAILS(err, CPTX_E_COMPILE, "CUDA_ERROR_INVALID_PTX (218): a PTX JIT compilation failed");
	fake->jit_error = "ptxas input, line 2; error : no\nptxas input, line 77777; error : beyond";
	ck_assert_ptr_null(cptx_device_load_text(dev, ".version 8.0\n  .target sm_90\n", 29, NULL, &err));
	FAILS(err, CPTX_E_COMPILE,
	      "input, line 2; error : no\n        which is: .target sm_90\n    ptxas input, line 77777; error : beyond");
	fake->jit_error = NULL;
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}
END_TEST

START_TEST(raw_images)
{
	cptx_program *p = cptx_device_load_text(dev, "\177ELF....", 8, NULL, &err);

	OK(err);
	ck_assert_ptr_null(cptx_program_kernel_at(p, 0));
	ck_assert_uint_eq(cptx_program_version(p), 0);
	fake->kernel = "there";
	ck_assert_ptr_null(LAUNCH(p, .grid = { 1 }, .block = { 1 }));
	FAILS(err, CPTX_E_ARG, "no kernel \"scale\"");
	cptx_program_destroy(p);
	ck_assert_ptr_null(cptx_device_load_text(dev, "", 0, NULL, &err));
	FAILS(err, CPTX_E_ARG, "no bytes");
}
END_TEST

START_TEST(variables)
{
	size_t size = 0;
	cptx_program *p = load((cptx_kernel_opt){ 0 });

	ck_assert_uint_eq(cptx_program_global(p, "table", &size, &err), 4096);
	ck_assert_uint_eq(size, 16);
	ck_assert_uint_eq(cptx_program_global(p, "chair", NULL, &err), 0);
	FAILS(err, CPTX_E_ARG, "no visible variable \"chair\"");
	cptx_program_destroy(p);
}
END_TEST

/* ---- launching ---- */

START_TEST(runs)
{
	cptx_program *p = load((cptx_kernel_opt){ 0 });
	cptx_stream *s = cptx_stream_new(dev, &err);
	cptx_launch *l = LAUNCH(p, .grid = { 3, 2 }, .block = { 64 }, .dyn_smem = 100, ARGS);

	OK(err);
	fake->nparams = 4;
	memcpy(fake->param_size, (size_t[]){ 8, 4, 4, 128 }, 4 * sizeof(size_t));
	cptx_launch_run(l, s, &err);
	OK(err);
	ck_assert_uint_eq(fake->launches, 1);
	ck_assert_mem_eq(fake->grid, ((unsigned[]){ 3, 2, 1 }), 12);
	ck_assert_mem_eq(fake->block, ((unsigned[]){ 64, 1, 1 }), 12);
	ck_assert_uint_eq(fake->smem, 100);
	ck_assert_ptr_eq(fake->stream, cptx_stream_handle(s));
	ck_assert_uint_eq(fake->params[0], 0x1000);
	ck_assert_uint_eq(fake->params[1], 0x40000000);
	ck_assert_uint_eq(fake->params[2], 7);
	ck_assert_uint_eq(fake->params[3], 42);

	cptx_launch_set(l, 0, (uint64_t)0x2000, &err);
	cptx_launch_set(l, 2, 9, &err);
	cptx_launch_grid(l, 5, 1, 1, &err);
	cptx_launch_run(l, NULL, &err);
	OK(err);
	ck_assert_uint_eq(fake->params[0], 0x2000);
	ck_assert_uint_eq(fake->params[2], 9);
	ck_assert_uint_eq(fake->grid[0], 5);
	ck_assert_ptr_null(fake->stream);
	ck_assert_int_eq(fake->set_count, 0);
	cptx_launch_destroy(l);
	cptx_launch_destroy(NULL);

	cptx_launch_once(p, "scale", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, ARGS }, s, &err);
	fake->nparams = 0;
	cptx_launch_once(p, "empty", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 } }, NULL, &err);
	OK(err);
	ck_assert_uint_eq(fake->launches, 4);
	cptx_stream_destroy(s);
	cptx_program_destroy(p);
}
END_TEST

START_TEST(arguments)
{
	uint64_t x = 16;
	cptx_arg m = CPTX_ARG_BYTES(map, 128);
	cptx_program *p = load((cptx_kernel_opt){ 0 });

#define BAD(part, ...) REFUSED(p, CPTX_E_ARG, part, .grid = { 1 }, .block = { 1 }, CPTX_ARGS(__VA_ARGS__))
	BAD("it takes 4 arguments (.ptr x, .f32 f, .u32 n, .b8 map), but 3 were given", x, 1.0f, 7u);
	BAD("argument 0 is an integer of 4 bytes, but parameter \"x\" is a pointer: give a device address", 16, 1.0f, 7u, m);
	BAD("argument 1 is a double, but parameter \"f\" is .f32: give a float", x, 1.0, 7u, m);
	BAD("argument 1 is an integer of 4 bytes, but parameter \"f\" is .f32", x, 1, 7u, m);
	BAD("argument 2 is an integer of 8 bytes, but parameter \"n\" is .u32: give a uint32_t", x, 1.0f, sizeof x, m);
	BAD("argument 2 is a float, but", x, 1.0f, 7.0f, m);
	BAD("argument 3 is an object of 64 bytes, but parameter \"map\" is 128 bytes: give CPTX_ARG_BYTES", x, 1.0f, 7u,
	    CPTX_ARG_BYTES(map, 64));
	BAD("argument 3 is an object at address NULL", x, 1.0f, 7u, CPTX_ARG_BYTES(NULL, 128));
	BAD("argument 3 is an integer of 8 bytes, but", x, 1.0f, 7u, x);
	REFUSED(p, CPTX_E_ARG, "but 0 were given", .grid = { 1 }, .block = { 1 });
	REFUSED(p, CPTX_E_ARG, ".args is NULL", .grid = { 1 }, .block = { 1 }, .nargs = 4);

	cptx_launch *l = LAUNCH(p, .grid = { 1 }, .block = { 1 }, ARGS);
	OK(err);
	ck_assert(!cptx_launch_set(l, 1, 2.0, &err));
	FAILS(err, CPTX_E_ARG, "argument 1 is a double");
	ck_assert(!cptx_launch_set(l, 4, 2.0, &err));
	FAILS(err, CPTX_E_ARG, "no argument 4; it has 4");
	cptx_launch_destroy(l);
	ck_assert_ptr_null(cptx_launch_new(p, "scale2", &(cptx_launch_opt){ .grid = { 1 } }, &err));
	ck_assert_uint_eq(err.line, __LINE__ - 1);
	FAILS(err, CPTX_E_ARG, "no kernel \"scale2\"; it has the kernels \"scale\", \"empty\"");
	ck_assert_ptr_null(cptx_launch_new(p, NULL, &(cptx_launch_opt){ .grid = { 1 } }, &err));
	FAILS(err, CPTX_E_ARG, "NULL, which stands for the only one");
	ck_assert(!cptx_launch_run(NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "launch is NULL");
	cptx_program_destroy(p);
}
END_TEST

START_TEST(shapes)
{
	cptx_program *p = load((cptx_kernel_opt){ 0 }), *fixed = load((cptx_kernel_opt){ .block = { 32, 4 } });
	cptx_program *most = load((cptx_kernel_opt){ .max_block = { 128 } });

	REFUSED(p, CPTX_E_ARG, "the grid is 0 x 1 x 1", .grid = { 0, 1, 1 }, .block = { 1 }, ARGS);
	REFUSED(p, CPTX_E_ARG, "the grid is 1 x 0 x 2", .grid = { 1, 0, 2 }, .block = { 1 }, ARGS);
	REFUSED(p, CPTX_E_LIMIT, "the limit is 2147483647 x 65535 x 65535", .grid = { 1, 65536 }, .block = { 1 }, ARGS);
	REFUSED(p, CPTX_E_ARG, "no block is given", .grid = { 1 }, ARGS);
	REFUSED(p, CPTX_E_ARG, "the block is 0 x 4 x 0", .grid = { 1 }, .block = { 0, 4 }, ARGS);
	REFUSED(p, CPTX_E_LIMIT, "the limit is 1024 threads", .grid = { 1 }, .block = { 1025 }, ARGS);
	REFUSED(p, CPTX_E_LIMIT, "64 of them in z", .grid = { 1 }, .block = { 1, 1, 65 }, ARGS);
	REFUSED(fixed, CPTX_E_ARG, "the block is 128 x 1 x 1, but its .reqntid is 32 x 4 x 1", .grid = { 1 }, .block = { 128 },
	        ARGS);
	REFUSED(most, CPTX_E_LIMIT, "a block of 160 threads, but its .maxntid allows 128", .grid = { 1 }, .block = { 160 },
	        ARGS);
	fake->max_threads = 256;
	fake->regs = 255;
	REFUSED(p, CPTX_E_LIMIT, "512 threads, but its 255 registers per thread allow 256", .grid = { 1 }, .block = { 512 },
	        ARGS);
	cptx_launch *l = LAUNCH(fixed, .grid = { 1 }, ARGS);
	OK(err);
	cptx_launch_run(l, NULL, &err);
	ck_assert_mem_eq(fake->block, ((unsigned[]){ 32, 4, 1 }), 12);
	ck_assert(!cptx_launch_grid(l, 0, 1, 1, &err));
	FAILS(err, CPTX_E_ARG, "grid");
	cptx_launch_destroy(l);
	cptx_program_destroy(p);
	cptx_program_destroy(fixed);
	cptx_program_destroy(most);
}
END_TEST

START_TEST(shared_memory)
{
	cptx_program *p = load((cptx_kernel_opt){ 0 });

	cptx_launch_destroy(LAUNCH(p, .grid = { 1 }, .block = { 1 }, .dyn_smem = 49152, ARGS));
	ck_assert_int_eq(fake->set_count, 0);
	fake->static_smem = 16;
	cptx_launch_destroy(LAUNCH(p, .grid = { 1 }, .block = { 1 }, .dyn_smem = 49152, ARGS));
	OK(err);
	ck_assert_int_eq(fake->set_count, 1);
	ck_assert_uint_eq(fake->set_attr, 8);
	ck_assert_int_eq(fake->set_value, 232448 - 16);
	REFUSED(p, CPTX_E_LIMIT,
	        "232448 bytes of dynamic and 16 of static shared memory, but a CTA of Fake 0 can have 232448 in all",
	        .grid = { 1 }, .block = { 1 }, .dyn_smem = 232448, ARGS);
	strcpy(fake->fail_call, "cuFuncSetAttribute");
	fake->fail_code = CU_INVALID_VALUE;
	REFUSED(p, CPTX_E_DRIVER, "kernel scale: allowing dynamic shared memory: CUDA_ERROR_INVALID_VALUE (1): invalid argument",
	        .grid = { 1 }, .block = { 1 }, .dyn_smem = 60000, ARGS);
	cptx_program_destroy(p);
}
END_TEST

START_TEST(laid_out_shared_memory)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 32 });

	cptx_shared_dyn(k, 100000, 1024, "tile");
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	OK(err);
	cptx_module_destroy(m);
	ck_assert(cptx_launch_once(p, NULL, &(cptx_launch_opt){ .grid = { 1 } }, NULL, &err));
	ck_assert_uint_ge(fake->smem, 100000);
	ck_assert_int_eq(fake->set_value, 232448);
	ck_assert(!cptx_launch_once(p, NULL, &(cptx_launch_opt){ .grid = { 1 }, .dyn_smem = 4 }, NULL, &err));
	FAILS(err, CPTX_E_ARG, "4 bytes of dynamic shared memory, but it laid out 1");
	cptx_program_destroy(p);
}
END_TEST

START_TEST(clusters)
{
	cptx_program *p = load((cptx_kernel_opt){ 0 }), *fixed = load((cptx_kernel_opt){ .cluster = { 2 } });
	cptx_program *few = load((cptx_kernel_opt){ .max_cluster_rank = 4 });

	REFUSED(p, CPTX_E_ARG, "the grid is 5 x 1 x 1, no multiple of the cluster, 2 x 1 x 1", .grid = { 5 }, .block = { 1 },
	        .cluster = { 2 }, ARGS);
	REFUSED(p, CPTX_E_LIMIT, "a cluster of 32 CTAs; the limit is 16", .grid = { 32 }, .block = { 1 }, .cluster = { 32 },
	        ARGS);
	REFUSED(few, CPTX_E_LIMIT, "the limit is 4, its .maxclusterrank", .grid = { 32 }, .block = { 1 }, .cluster = { 8 },
	        ARGS);
	REFUSED(fixed, CPTX_E_ARG, "the cluster is 4 x 1 x 1, but its .reqnctapercluster is 2 x 1 x 1", .grid = { 32 },
	        .block = { 1 }, .cluster = { 4 }, ARGS);
	cptx_launch *l = LAUNCH(fixed, .grid = { 4, 3 }, .block = { 8 }, .dyn_smem = 64, ARGS);
	OK(err);
	cptx_launch_run(l, NULL, &err);
	OK(err);
	ck_assert_uint_eq(fake->cluster_launches, 1);
	ck_assert_mem_eq(fake->grid, ((unsigned[]){ 4, 3, 1 }), 12);
	ck_assert_mem_eq(fake->block, ((unsigned[]){ 8, 1, 1 }), 12);
	ck_assert_uint_eq(fake->smem, 64);
	ck_assert_uint_eq(fake->nattrs, 1);
	ck_assert_uint_eq(fake->attr.id, 4);
	ck_assert_mem_eq(&fake->attr.value.cluster, ((unsigned[]){ 2, 1, 1 }), 12);
	ck_assert_int_eq(fake->set_count, 0);
	ck_assert(!cptx_launch_grid(l, 3, 1, 1, &err));
	FAILS(err, CPTX_E_ARG, "no multiple of the cluster");
	cptx_launch_destroy(l);
	cptx_launch_destroy(LAUNCH(p, .grid = { 16 }, .block = { 1 }, .cluster = { 16 }, ARGS));
	OK(err);
	ck_assert_uint_eq(fake->set_attr, 14);
	cptx_program_destroy(p);
	cptx_program_destroy(fixed);
	cptx_program_destroy(few);
}
END_TEST

START_TEST(no_clusters)
{
	start_again("CPTX_TEST_FAKE_CUDA_OLD");
	cptx_program *p = load((cptx_kernel_opt){ 0 });
	REFUSED(p, CPTX_E_TARGET, "have no clusters", .grid = { 2 }, .block = { 1 }, .cluster = { 2 }, ARGS);
	cptx_program_destroy(p);
}
END_TEST

START_TEST(cooperative)
{
	cptx_program *p = load((cptx_kernel_opt){ 0 });
	uint32_t most;

	fake->ctas = 3;
	most = 3 * cptx_device_get_info(dev)->sms;
	cptx_launch *l = LAUNCH(p, .grid = { most }, .block = { 8 }, .cooperative = true, ARGS);
	OK(err);
	cptx_launch_run(l, NULL, &err);
	OK(err);
	ck_assert_uint_eq(fake->cluster_launches, 1);
	ck_assert_uint_eq(fake->nattrs, 1);
	ck_assert_uint_eq(fake->attr.id, 2);
	ck_assert_int_eq(fake->attr.value.cooperative, 1);
	ck_assert(!cptx_launch_grid(l, most + 1, 1, 1, &err));
	FAILS(err, CPTX_E_LIMIT, "CTAs; Fake 0 holds ");
	cptx_launch_run(l, NULL, &err); /* as it was */
	OK(err);
	ck_assert_mem_eq(fake->grid, ((unsigned[]){ most, 1, 1 }), 12);
	cptx_launch_destroy(l);
	REFUSED(p, CPTX_E_LIMIT, "make the grid smaller, and loop in the kernel", .grid = { most, 2 }, .block = { 8 },
	        .cooperative = true, ARGS);
	cptx_program_destroy(p);
	start_again("CPTX_TEST_FAKE_CUDA_OLD");
	p = load((cptx_kernel_opt){ 0 });
	REFUSED(p, CPTX_E_TARGET, "cooperative launches need a driver of CUDA 11.8", .grid = { 2 }, .block = { 1 },
	        .cooperative = true, ARGS);
	cptx_program_destroy(p);
}
END_TEST

START_TEST(launch_errors)
{
	cptx_program *p = load((cptx_kernel_opt){ 0 });
	cptx_launch *l = LAUNCH(p, .grid = { 3 }, .block = { 32 }, ARGS);

	OK(err);
	strcpy(fake->fail_call, "cuLaunchKernel");
	fake->fail_code = CU_ILLEGAL_ADDRESS;
	ck_assert(!cptx_launch_run(l, NULL, &err));
	ck_assert_str_eq(err.file, __FILE__);
	FAILS(err, CPTX_E_DRIVER,
	      "launching kernel scale, grid 3 x 1 x 1, block 32 x 1 x 1, 0 bytes of dynamic shared memory: "
	      "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
	cptx_launch_destroy(l);
	cptx_program_destroy(p);
}
END_TEST

START_TEST(raw_text_arguments)
{
	static const char text[] = ".version 8.0\n.target sm_90\n.entry k(.param .u64 a, .param .u32 b) { ret; }";
	cptx_program *p = cptx_device_load_text(dev, text, sizeof text - 1, NULL, &err);
	cptx_launch_opt opt = { .grid = { 1 }, .block = { 1 }, CPTX_ARGS((uint64_t)1, 2.5f) };

	OK(err);
	fake->nparams = 2;
	memcpy(fake->param_size, (size_t[]){ 8, 4 }, 2 * sizeof(size_t));
	ck_assert(cptx_launch_once(p, "k", &opt, NULL, &err));
	ck_assert_uint_eq(fake->params[1], 0x40200000);
	opt.nargs = 1;
	ck_assert(!cptx_launch_once(p, "k", &opt, NULL, &err));
	FAILS(err, CPTX_E_ARG, "it takes 2 arguments, but 1 was given");
	opt = (cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, CPTX_ARGS(1, 2) };
	ck_assert(!cptx_launch_once(p, "k", &opt, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument 0 is an integer of 4 bytes, but the parameter has 8 bytes");
	cptx_program_destroy(p);

	start_again("CPTX_TEST_FAKE_CUDA_OLD"); /* cannot tell: all is taken */
	p = cptx_device_load_text(dev, text, sizeof text - 1, NULL, &err);
	cptx_launch *l = cptx_launch_new(p, "k", &opt, &err);
	OK(err);
	ck_assert(!cptx_launch_set(l, 0, (uint64_t)1, &err));
	FAILS(err, CPTX_E_ARG, "argument 0 had 4 bytes and cannot have 8 now");
	cptx_launch_destroy(l);
	cptx_program_destroy(p);
}
END_TEST

START_TEST(resources)
{
	cptx_resources r;
	cptx_program *p = load((cptx_kernel_opt){ 0 });

	fake->local = 12;
	ck_assert(cptx_program_resources(p, "scale", 0, 0, &r, &err));
	ck_assert_uint_eq(r.regs, 32);
	ck_assert_uint_eq(r.local_bytes, 12);
	ck_assert_uint_eq(r.binary_version, 90);
	ck_assert_uint_eq(r.ctas_per_sm, 0);
	cptx_launch *l = LAUNCH(p, .grid = { 3 }, .block = { 32 }, ARGS);
	ck_assert(cptx_launch_resources(l, &r, &err));
	ck_assert_uint_eq(r.ctas_per_sm, 2);
	ck_assert(!cptx_program_resources(p, "other", 0, 0, &r, &err));
	FAILS(err, CPTX_E_ARG, "no kernel \"other\"");
	cptx_launch_destroy(l);
	cptx_program_destroy(p);
}
END_TEST

START_TEST(other_threads_context)
{
	cptx_program *p = load((cptx_kernel_opt){ 0 });
	cptx_launch *l = LAUNCH(p, .grid = { 3 }, .block = { 32 }, ARGS);
	cu_context theirs = (cu_context)(void *)&err;

	fake->current = theirs;
	ck_assert(cptx_launch_run(l, NULL, &err));
	ck_assert_ptr_eq(fake->current, theirs);
	ck_assert_uint_eq(fake->launches, 1);
	fake->current = NULL;
	ck_assert(cptx_launch_run(l, NULL, &err));
	ck_assert_ptr_eq(fake->current, cptx_device_context(dev));
	cptx_launch_destroy(l);
	cptx_program_destroy(p);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		loads,
		closed_first,
		load_options,
		no_load_in_a_capture,
		module_errors_pass_through,
		version_too_new,
		jit_log_names_the_users_line,
		raw_images,
		variables,
		runs,
		arguments,
		shapes,
		shared_memory,
		laid_out_shared_memory,
		clusters,
		cooperative,
		no_clusters,
		launch_errors,
		raw_text_arguments,
		resources,
		other_threads_context,
	};
	return harness_run("launch", tests, ARRAY_LEN(tests), before, after);
}
