/* SPDX-License-Identifier: MIT */
/* Runs on the emulator, with memory of the host: results, and the message for each argument that does not fit. */
#include "harness.h"

#include <pthread.h>

static cptx_program *saxpy, *idle;

static void before(void)
{
	memset(&err, 0, sizeof err);
	dev = cptx_device_open("emu:sm_90a", &err);
	saxpy = load(saxpy_text);
	idle = load(idle_text);
}

static void after(void)
{
	cptx_program_destroy(saxpy);
	cptx_program_destroy(idle);
	cptx_device_close(dev);
}

enum { N = 100 };
static const char signature[] = "x: f32[n] const, y: f32[n], a: f32, n: u32 = n";

static void fill(float *x, float *y)
{
	for (int i = 0; i < N; i++)
		x[i] = (float)i, y[i] = 1;
}

static void holds(const float *y, float a)
{
	for (int i = 0; i < N; i++)
		ck_assert_msg(y[i] == a * (float)i + 1, "y[%d] is %g", i, (double)y[i]);
}

START_TEST(every_kind_of_tensor)
{
	static float x[N], behind[3 + N], *y = behind + 3;
	int64_t shape[] = { N };
	DLManagedTensor mx = { .dl_tensor = floats(x, 1, shape) };
	DLManagedTensorVersioned my = { .version = { DLPACK_MAJOR_VERSION, 99 }, .dl_tensor = floats(y, 1, shape) };
	DLTensor dx = floats(x, 1, shape), dy = floats(behind, 1, shape);
	cptx_tensor_launch *l = prepare(saxpy, signature, "n / 64");

	dy.byte_offset = 12;
	OK(err);
	fill(x, y);
	cptx_tensor_arg args[] = { { .kind = CPTX_TENSOR_MANAGED, .u.managed = &mx },
		                       { .kind = CPTX_TENSOR_VERSIONED, .u.versioned = &my },
		                       number(2) };
	ck_assert(cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	OK(err);
	holds(y, 2);
	fill(x, y);
	cptx_tensor_arg plain[] = { tensor(&dx), tensor(&dy), integer(3) };
	ck_assert(cptx_tensor_launch_run(l, plain, 3, NULL, NULL, &err));
	OK(err);
	holds(y, 3);
	cptx_tensor_launch_destroy(l);
}
END_TEST

/* A framework that knows one object. */
static DLTensor framework_tensor;
static int from_object(void *object, DLTensor *out)
{
	*out = framework_tensor;
	return object == &framework_tensor ? 0 : -1;
}

START_TEST(objects_of_a_framework)
{
	static float x[N], y[N];
	int64_t shape[] = { N };
	DLTensor dy = floats(y, 1, shape);
	DLPackExchangeAPI api = { .header.version = { DLPACK_MAJOR_VERSION, 3 },
		                      .dltensor_from_py_object_no_sync = from_object };
	cptx_tensor_launch *l = prepare(saxpy, signature, "n / 64");

	fill(x, y);
	framework_tensor = floats(x, 1, shape);
	cptx_tensor_arg args[] = { { .kind = CPTX_TENSOR_OBJECT, .u.object = &framework_tensor, .api = &api },
		                       tensor(&dy),
		                       number(2) };
	ck_assert(cptx_tensor_launch_run(l, args, 3, NULL, CPTX_TENSOR_STREAM, &err));
	OK(err);
	holds(y, 2);
	args[0].u.object = &api;
	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument \"x\" is a Python object that its framework does not give as a DLTensor");
	args[0].api = NULL;
	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "no exchange API");
	cptx_tensor_launch_destroy(l);
}
END_TEST

START_TEST(the_same_memory_twice)
{
	static float x[2 * N];
	int64_t shape[] = { N };
	DLTensor dx = floats(x, 1, shape), dy = floats(x, 1, shape), behind = floats(x + N, 1, shape);
	cptx_tensor_launch *l = prepare(saxpy, signature, "n / 64");

	for (int i = 0; i < 2 * N; i++)
		x[i] = (float)i;
	cptx_tensor_arg args[] = { tensor(&dx), tensor(&dy), number(2) };
	ck_assert(cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err)); /* x += 2 * x */
	OK(err);
	args[1] = tensor(&behind);
	ck_assert(cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	OK(err);
	for (int i = 0; i < N; i++) {
		ck_assert(x[i] == 3 * (float)i);
		ck_assert(x[i + N] == 2 * 3 * (float)i + (float)(i + N));
	}
	cptx_tensor_launch_destroy(l);
}
END_TEST

START_TEST(grids)
{
	static float x[N], y[N];
	int64_t shape[] = { N };
	DLTensor dx = floats(x, 1, shape), dy = floats(y, 1, shape);
	cptx_tensor_launch *l = prepare(saxpy, signature, NULL);
	cptx_tensor_arg args[] = { tensor(&dx), tensor(&dy), number(2) };
	cptx_emu_counters before_it, after_it;

	fill(x, y);
	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "prepared without a grid, and this run gives none");
	ck_assert(cptx_tensor_launch_run(l, args, 3, (uint32_t[3]){ 2 }, NULL, &err));
	OK(err);
	holds(y, 2);
	cptx_tensor_launch_destroy(l);

	l = prepare(saxpy, signature, "n / 64, n * 3 / 150, 2");
	cptx_emu_get_counters(dev, &before_it);
	dy.data = dx.data = x; /* all blocks write the same */
	args[2] = number(0);
	cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err); /* a race, perhaps: it counts blocks */
	memset(&err, 0, sizeof err);
	cptx_emu_get_counters(dev, &after_it);
	ck_assert_uint_eq(after_it.ctas - before_it.ctas, 2 * 2 * 2);

	shape[0] = 0; /* empty tensors launch nothing */
	dx.data = dy.data = NULL;
	ck_assert(cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	OK(err);
	cptx_emu_get_counters(dev, &before_it);
	ck_assert_uint_eq(before_it.launches, after_it.launches);
	cptx_tensor_launch_destroy(l);

	l = prepare(idle, "x: f32[n], y: f32[m]", "n * m");
	int64_t most[] = { INT64_C(1) << 40 };
	dx = floats(x, 1, most), dy = floats(y, 1, shape);
	dy.shape = (int64_t[]){ 1 };
	ck_assert(!cptx_tensor_launch_run(l, args, 2, NULL, NULL, &err));
	FAILS(err, CPTX_E_LIMIT, "dimension 0 of the grid is 1099511627776");
	cptx_tensor_launch_destroy(l);
}
END_TEST

START_TEST(optional_and_integers)
{
	static float x[N];
	DLTensor dx = floats(x, 1, (int64_t[]){ N });
	cptx_tensor_launch *l = prepare(idle, "x: f32[n] optional, y: s64", "y");
	cptx_tensor_arg args[] = { { .kind = CPTX_TENSOR_NONE }, integer(1) };

	ck_assert(cptx_tensor_launch_run(l, args, 2, NULL, NULL, &err));
	OK(err);
	args[0] = tensor(&dx);
	args[1] = number(1);
	ck_assert(!cptx_tensor_launch_run(l, args, 2, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument \"y\" is a floating point number, but must be a number of .s64");
	args[1] = (cptx_tensor_arg){ .kind = CPTX_TENSOR_UINT, .u.u = UINT64_MAX };
	ck_assert(!cptx_tensor_launch_run(l, args, 2, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "is 18446744073709551615, but must be a .s64");
	args[1] = integer(-5);
	ck_assert(!cptx_tensor_launch_run(l, args, 2, NULL, NULL, &err));
	FAILS(err, CPTX_E_LIMIT, "dimension 0 of the grid is -5");
	cptx_tensor_launch_destroy(l);

	l = prepare(idle, "x: f32[n] optional, y: u64 = n", "1");
	args[0] = (cptx_tensor_arg){ .kind = CPTX_TENSOR_NONE };
	ck_assert(!cptx_tensor_launch_run(l, args, 1, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "n is not known: the optional argument that has it is missing");
	cptx_tensor_launch_destroy(l);

	l = prepare(saxpy, "x: f32[n], y: f32[n], a: f32, n: u32", "n / 64");
	cptx_tensor_arg four[] = { tensor(&dx), tensor(&dx), number(0), integer(N - 1) };
	ck_assert(!cptx_tensor_launch_run(l, four, 4, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument \"n\" is 99, but n is 100 by argument \"x\"");
	four[3] = integer(-1);
	ck_assert(!cptx_tensor_launch_run(l, four, 4, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument \"n\" is -1, but must be a .u32");
	four[2] = number(3.5e38), four[3] = integer(N);
	ck_assert(!cptx_tensor_launch_run(l, four, 4, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument \"a\" is 3.5e+38, which .f32 does not hold");
	four[2] = (cptx_tensor_arg){ .kind = CPTX_TENSOR_UINT, .u.u = 0 };
	ck_assert(cptx_tensor_launch_run(l, four, 4, NULL, NULL, &err));
	OK(err);
	four[3] = integer(N);
	ck_assert(cptx_tensor_launch_run(l, four, 4, NULL, NULL, &err));
	OK(err);
	cptx_tensor_launch_destroy(l);
}
END_TEST

/* One tensor against one entry: the part of the message, or NULL where it fits. */
static void judge(const char *entry, const DLTensor *t, uint64_t flags, const char *part)
{
	char text[200];
	DLManagedTensorVersioned m = { .version = { DLPACK_MAJOR_VERSION, 0 }, .flags = flags };
	cptx_tensor_arg arg = { .kind = CPTX_TENSOR_VERSIONED, .u.versioned = &m };

	if (t)
		m.dl_tensor = *t;
	snprintf(text, sizeof text, "%s, y: u64 = 1", entry);
	cptx_tensor_launch *l = prepare(idle, text, "1");
	OK(err);
	bool ok = cptx_tensor_launch_run(l, &arg, 1, NULL, NULL, &err);
	if (part) {
		ck_assert_msg(!ok, "%s should have been refused: %s", entry, part);
		FAILS(err, CPTX_E_ARG, part);
	} else {
		OK(err);
		ck_assert(ok);
	}
	cptx_tensor_launch_destroy(l);
}

START_TEST(types)
{
	static _Alignas(64) unsigned char bytes[4096];
	int64_t shape[] = { 4 };
	DLTensor t = floats((float *)bytes, 1, shape);
	static const struct {
		const char *entry;
		DLDataType type;
		const char *part;
	} all[] = {
		{ "x: f32[n]",
		  { kDLFloat, 64, 1 },
		  "argument \"x\" is f64[4] on the CPU, but must be f32[n] on the CPU: the types differ" },
		{ "x: f32[n]", { kDLInt, 32, 1 }, "is s32[4]" },
		{ "x: f32[n]", { kDLFloat, 32, 2 }, "is DLPack type 2 of 32 bits x 2[4]" },
		{ "x: bf16[n]", { kDLFloat, 16, 1 }, "is f16[4]" },
		{ "x: u8[n]", { kDLBool, 8, 1 }, "is pred[4]" },
		{ "x: b32[n]", { kDLComplex, 64, 1 }, "is complex64[4]" },
		{ "x: bf16[n]", { kDLBfloat, 16, 1 }, NULL },
		{ "x: f16[n]", { kDLFloat, 16, 1 }, NULL },
		{ "x: s8[n]", { kDLInt, 8, 1 }, NULL },
		{ "x: pred[n]", { kDLBool, 8, 1 }, NULL },
		{ "x: b64[n]", { kDLComplex, 64, 1 }, NULL },
		{ "x: b8[n]", { kDLBool, 8, 1 }, NULL },
		{ "x: e4m3[n]", { kDLFloat8_e4m3fn, 8, 1 }, NULL },
		{ "x: e5m2[n]", { kDLFloat8_e5m2, 8, 1 }, NULL },
		{ "x: ue8m0[n]", { kDLFloat8_e8m0fnu, 8, 1 }, NULL },
		{ "x: e2m1x2[n]", { kDLFloat4_e2m1fn, 4, 2 }, NULL },
		{ "x: b128[n]", { kDLComplex, 128, 1 }, NULL },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		t.dtype = all[i].type;
		judge(all[i].entry, &t, 0, all[i].part);
	}
}
END_TEST

START_TEST(shapes_and_strides)
{
	static _Alignas(64) float x[64];
	static const struct {
		const char *entry;
		int rank;
		int64_t shape[3], strides[3]; /* [0] 99: none */
		const char *part;
	} all[] = {
		{ "x: f32[n]",
		  2,
		  { 2, 3 },
		  { 99 },
		  "is f32[2, 3] on the CPU, but must be f32[n] on the CPU: it has 2 dimensions, not 1" },
		{ "x: f32[]", 1, { 1 }, { 99 }, "it has 1 dimension, not 0" },
		{ "x: f32[]", 0, { 0 }, { 99 }, NULL },
		{ "x: f32[n, 4]", 2, { 2, 3 }, { 99 }, "must be f32[n = 2, 4], row-major, on the CPU: dimension 1 is 3, not 4" },
		{ "x: f32[n, n]", 2, { 2, 3 }, { 99 }, "dimension 1 is 3, but n is 2 by argument \"x\"" },
		{ "x: f32[n, n]", 2, { 3, 3 }, { 99 }, NULL },
		{ "x: f32[_, _]", 2, { 2, 3 }, { 3, 1 }, NULL },
		{ "x: f32[_, _]", 2, { 2, 3 }, { 1, 2 }, "is f32[2, 3] with strides [1, 2] on the CPU" },
		{ "x: f32[_, _]", 2, { 2, 3 }, { 1, 2 }, "stride 1 is 2, not 1; make it contiguous, or say strides[...]" },
		{ "x: f32[_, _]", 2, { 2, 3 }, { 4, 1 }, "stride 0 is 4, not 3" },
		{ "x: f32[_, _]", 2, { 1, 3 }, { 77, 1 }, NULL }, /* of one row */
		{ "x: f32[_, _]", 2, { 0, 3 }, { 77, 5 }, NULL },
		{ "x: f32[n, m] strides[ld, 1]", 2, { 2, 3 }, { 8, 1 }, NULL },
		{ "x: f32[n, m] strides[ld, 1]", 2, { 2, 3 }, { 8, 2 }, "with strides [ld, 1] on the CPU: stride 1 is 2, not 1" },
		{ "x: f32[n, m] strides[m, 1]", 2, { 2, 3 }, { 8, 1 }, "stride 0 is 8, but m is 3 by argument \"x\"" },
		{ "x: f32[n, m] strides[m, 1]", 2, { 2, 3 }, { 99 }, NULL },
		{ "x: f32[n, m] strides[_, _]", 2, { 2, 3 }, { 0, 7 }, NULL },
		{ "x: f32[n, m] strides[_, _]", 2, { 2, 3 }, { INT64_MAX, 7 }, "no tensor: its size is beyond all memory" },
		{ "x: f32[1, m] strides[8, 1]", 2, { 1, 3 }, { INT64_MAX, 1 }, NULL }, /* what reaches nothing says nothing */
		{ "x: f32[n, m] strides[m, 1]", 2, { 1, 3 }, { 77, 1 }, NULL },
		{ "x: f32[_, _, _] strides[ld, ld, 1]", 3, { 2, 1, 3 }, { 8, 5, 1 }, NULL },
		{ "x: f32[_, _, _] strides[ld, ld, 1]", 3, { 2, 2, 3 }, { 8, 5, 1 }, "stride 0 is 8, but ld is 5" },
		{ "x: f32[0, _] strides[8, 1]", 2, { 0, 3 }, { 7, 7 }, NULL },
		{ "x: f32[_, _, _] strides[_, _, _]", 3, { 0, INT64_MAX / 2, 4 }, { 99 }, "its size is beyond all memory" },
		{ "x: f32[n]", 1, { -1 }, { 99 }, "no tensor: it has a negative dimension" },
		{ "x: f32[n, _]", 2, { INT64_MAX, 2 }, { 99 }, "no tensor: its size is beyond all memory" },
		{ "x: f32[n]", 9, { 1 }, { 99 }, "no tensor: it has too many dimensions" },
		{ "x: f32[n]", -1, { 1 }, { 99 }, "no tensor: it has too many dimensions" },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		int64_t shape[3], strides[3];
		memcpy(shape, all[i].shape, sizeof shape), memcpy(strides, all[i].strides, sizeof strides);
		DLTensor t = floats(x, all[i].rank, shape);
		t.strides = strides[0] == 99 ? NULL : strides;
		judge(all[i].entry, &t, 0, all[i].part);
	}
}
END_TEST

START_TEST(places)
{
	static _Alignas(64) float x[64];
	DLTensor t = floats(x, 1, (int64_t[]){ 4 });

	judge("x: f32[n]", &t, DLPACK_FLAG_BITMASK_READ_ONLY, "on the CPU, read-only, but must be");
	judge("x: f32[n]", &t, DLPACK_FLAG_BITMASK_READ_ONLY, "the kernel writes it: only an argument that is const");
	judge("x: f32[n] const", &t, DLPACK_FLAG_BITMASK_READ_ONLY, NULL);
	t.device = (DLDevice){ kDLCUDA, 3 };
	judge("x: f32[n]", &t, 0,
	      "is f32[4] on cuda:3, but must be f32[n = 4] on the CPU: the emulator reads memory of the host");
	t.device = (DLDevice){ kDLROCM, 0 };
	judge("x: f32[n]", &t, 0, "on rocm:0");
	t.device = (DLDevice){ kDLWebGPU, 1 };
	judge("x: f32[n]", &t, 0, "on device 1 of DLPack's kind 15");
	t.device = (DLDevice){ kDLCPU, 0 };
	t.byte_offset = 2;
	judge("x: f32[n]", &t, 0, "no multiple of 4");
	t.byte_offset = 4;
	judge("x: f32[n]", &t, 0, NULL);
	judge("x: f32[n] align 16", &t, 0, "no multiple of 16");
	t.byte_offset = 16;
	judge("x: f32[n] align 16", &t, 0, NULL);
	t.data = NULL;
	judge("x: f32[n]", &t, 0, "its address is NULL");
	t.shape = NULL;
	judge("x: f32[n]", &t, 0, "its shape is NULL");
}
END_TEST

START_TEST(misuse)
{
	cptx_tensor_launch *l = prepare(saxpy, signature, "n / 64");
	float x[4] = { 0 };
	DLTensor dx = floats(x, 1, (int64_t[]){ 4 });
	DLManagedTensorVersioned later = { .version = { 9, 0 }, .dl_tensor = dx };
	cptx_tensor_arg args[3] = { tensor(&dx), tensor(&dx), number(1) };

	ck_assert(!cptx_tensor_launch_run(NULL, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "the launch is NULL");
	ck_assert(!cptx_tensor_launch_run(l, NULL, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "the arguments are NULL");
	ck_assert(!cptx_tensor_launch_run(l, args, 2, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "its signature takes 3 arguments, but 2 were given");
	args[0] = integer(1);
	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument \"x\" is an integer, but must be a tensor of .f32");
	args[0] = (cptx_tensor_arg){ .kind = CPTX_TENSOR_NONE };
	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument \"x\" is nothing");
	args[0] = (cptx_tensor_arg){ .kind = CPTX_TENSOR_MANAGED };
	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument \"x\" is NULL");
	args[0] = (cptx_tensor_arg){ .kind = 1000 };
	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "of no kind of argument");
	args[0] = (cptx_tensor_arg){ .kind = CPTX_TENSOR_VERSIONED, .u.versioned = &later };
	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument \"x\" is of version 9 of DLPack");
	args[0] = tensor(&dx);
	args[2] = tensor(&dx);
	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_ARG, "argument \"a\" is a tensor, but must be a number of .f32");
	cptx_tensor_launch_destroy(l);
	cptx_tensor_launch_destroy(NULL);
}
END_TEST

/* Wherever the tensor begins and ends, what lies beside it stays as it is. */
START_TEST(neighbours)
{
	static _Alignas(64) float x[200], y[200];
	cptx_tensor_launch *l = prepare(saxpy, signature, "n / 64");

	for (int at = 0; at < 34; at++) {
		int64_t shape[] = { 1 + at * 5 % 97 };
		DLTensor dx = floats(x + at / 2, 1, shape), dy = floats(y + at, 1, shape);
		cptx_tensor_arg args[] = { tensor(&dx), tensor(&dy), number(2) };
		for (int i = 0; i < 200; i++)
			x[i] = (float)i, y[i] = 1;
		ck_assert(cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
		OK(err);
		for (int i = 0; i < 200; i++) {
			bool inside = i >= at && i < at + shape[0];
			ck_assert(x[i] == (float)i);
			ck_assert_msg(y[i] == (inside ? 2 * (float)(i - at + at / 2) + 1 : 1), "from %d: y[%d] is %g", at, i,
			              (double)y[i]);
		}
	}
	cptx_tensor_launch_destroy(l);
}
END_TEST

/* What is mapped is as long as the tensor: a kernel that reaches beyond is found. */
START_TEST(beyond_the_end)
{
	static float x[N], y[N];
	DLTensor dx = floats(x, 1, (int64_t[]){ N }), dy = floats(y, 1, (int64_t[]){ N - 1 });
	cptx_tensor_launch *l = prepare(saxpy, "x: f32[n] const, y: f32[_], a: f32, n: u32 = n", "n / 64");
	cptx_tensor_arg args[] = { tensor(&dx), tensor(&dy), number(2) };

	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_FINDING, "out-of-bounds");
	cptx_tensor_launch_destroy(l);
}
END_TEST

enum { THREADS = 8, RUNS = 40 };
static cptx_tensor_launch *shared;

static void *run_many(void *wrong)
{
	float x[N], y[N];
	int64_t shape[] = { N };
	DLTensor dx = floats(x, 1, shape), dy = floats(y, 1, shape);
	cptx_error e = { 0 };

	for (int r = 0; r < RUNS; r++) {
		cptx_tensor_arg args[] = { tensor(&dx), tensor(&dy), number(r) };
		fill(x, y);
		cptx_tensor_launch_run(shared, args, 3, NULL, NULL, &e);
		for (int i = 0; i < N; i++)
			*(int *)wrong += y[i] != (float)r * (float)i + 1;
	}
	*(int *)wrong += e.code != CPTX_OK;
	return NULL;
}

START_TEST(threads)
{
	pthread_t t[THREADS];
	int wrong[THREADS] = { 0 };

	shared = prepare(saxpy, signature, "n / 64");
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, run_many, &wrong[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		ck_assert_int_eq(wrong[i], 0);
	}
	cptx_tensor_launch_destroy(shared);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { every_kind_of_tensor,
		                           objects_of_a_framework,
		                           the_same_memory_twice,
		                           grids,
		                           optional_and_integers,
		                           types,
		                           shapes_and_strides,
		                           places,
		                           misuse,
		                           neighbours,
		                           beyond_the_end,
		                           threads };
	return harness_run("launch", tests, sizeof tests / sizeof *tests, before, after);
}
