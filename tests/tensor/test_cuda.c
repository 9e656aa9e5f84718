/* SPDX-License-Identifier: MIT */
/* Tensors of a GPU, against the fake driver: what the kernel gets, on which stream, and which devices are refused. */
#include "../runtime/fake_cuda.h"
#include "harness.h"

#include <dlfcn.h>

static fake_state *fake;
static cptx_program *program;

static void before(void)
{
	const char *path = getenv("CPTX_TEST_FAKE_CUDA");
	void *lib = path ? dlopen(path, RTLD_NOW) : NULL;

	ck_assert_msg(lib != NULL, "CPTX_TEST_FAKE_CUDA names no fake driver");
	setenv("CPTX_CUDA_LIBRARY", path, 1);
	memset(&err, 0, sizeof err);
	fake = dlsym(lib, "fake_cuda");
	*fake = (fake_state){ .version = 13000, .devices = 2, .major = 9, .max_threads = 1024, .regs = 32, .ctas = 2 };
	fake->nparams = 4;
	for (int i = 0; i < 4; i++)
		fake->param_size[i] = i < 2 ? 8 : 4;
	dev = cptx_device_open("cuda:1", &err);
	OK(err);
	program = load(saxpy_text);
}

static void after(void)
{
	cptx_program_destroy(program);
	cptx_device_close(dev);
}

/* A framework with a stream of its own. */
static DLTensor framework_tensor;
static int from_object(void *object, DLTensor *out)
{
	*out = framework_tensor;
	return object == &framework_tensor ? 0 : -1;
}

static int asked_device;
static int work_stream(DLDeviceType type, int32_t id, void **stream)
{
	asked_device = id;
	*stream = &framework_tensor;
	return type == kDLCUDA ? 0 : -1;
}

START_TEST(arguments_and_streams)
{
	static const DLPackExchangeAPI api = { .header.version = { DLPACK_MAJOR_VERSION, 3 },
		                                   .dltensor_from_py_object_no_sync = from_object,
		                                   .current_work_stream = work_stream };
	cptx_tensor_launch *l = prepare(program, "x: f32[n] const, y: f32[n], a: f32, n: u32 = n", "n / 64");
	int64_t shape[] = { 1000 };
	DLTensor y = { .data = (void *)(uintptr_t)0x20000, .byte_offset = 16, .device = { kDLCUDAManaged, 0 }, .ndim = 1 };
	int mine;

	OK(err);
	y.dtype = (DLDataType){ kDLFloat, 32, 1 }, y.shape = shape;
	framework_tensor = y;
	framework_tensor.data = (void *)(uintptr_t)0x10000, framework_tensor.device = (DLDevice){ kDLCUDA, 1 };
	cptx_tensor_arg args[] = { { .kind = CPTX_TENSOR_OBJECT, .u.object = &framework_tensor, .api = &api },
		                       tensor(&y),
		                       number(0.5) };
	ck_assert(cptx_tensor_launch_run(l, args, 3, NULL, CPTX_TENSOR_STREAM, &err));
	OK(err);
	ck_assert_uint_eq(fake->launches, 1);
	ck_assert_uint_eq(fake->grid[0], 16);
	ck_assert_uint_eq(fake->block[0], 64);
	ck_assert_uint_eq(fake->params[0], 0x10010);
	ck_assert_uint_eq(fake->params[1], 0x20010);
	ck_assert_uint_eq((uint32_t)fake->params[2], 0x3f000000);
	ck_assert_uint_eq((uint32_t)fake->params[3], 1000);
	ck_assert_ptr_eq(fake->stream, (void *)&framework_tensor);
	ck_assert_int_eq(asked_device, 1);
	cptx_tensor_launch_run(l, args, 3, (uint32_t[3]){ 3, 2 }, &mine, &err);
	OK(err);
	ck_assert_ptr_eq(fake->stream, (void *)&mine);
	ck_assert(fake->grid[0] == 3 && fake->grid[1] == 2 && fake->grid[2] == 1);
	args[0] = tensor(&y);
	cptx_tensor_launch_run(l, args, 3, NULL, CPTX_TENSOR_STREAM, &err); /* there is no framework to ask */
	OK(err);
	ck_assert_ptr_null(fake->stream);
	cptx_tensor_launch_destroy(l);
}
END_TEST

START_TEST(devices)
{
	cptx_tensor_launch *l = prepare(program, "x: f32[n], y: u64, a: f32, n: u32 = n", "n / 64");
	DLTensor x = floats((float *)(uintptr_t)0x1000, 1, (int64_t[]){ 4 });
	cptx_tensor_arg args[] = { tensor(&x), integer(0), number(1) };
	static const struct {
		DLDevice device;
		const char *part;
	} all[] = {
		{ { kDLCUDA, 1 }, NULL },
		{ { kDLCUDAHost, 0 }, NULL },
		{ { kDLCUDA, 0 }, "is f32[4] on cuda:0, but must be f32[n = 4] on cuda:1: it is on another GPU" },
		{ { kDLCPU, 0 }, "is f32[4] on the CPU, but must be f32[n = 4] on cuda:1" },
		{ { kDLMetal, 0 }, "on metal:0" },
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		x.device = all[i].device;
		cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err);
		if (all[i].part)
			FAILS(err, CPTX_E_ARG, all[i].part);
		OK(err);
	}
	ck_assert_uint_eq(fake->launches, 2);
	strcpy(fake->fail_call, "cuLaunchKernel");
	fake->fail_code = CU_ILLEGAL_ADDRESS;
	x.device = (DLDevice){ kDLCUDA, 1 };
	ck_assert(!cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err));
	FAILS(err, CPTX_E_DRIVER, "launching kernel saxpy");
	cptx_tensor_launch_destroy(l);
}
END_TEST

START_TEST(exported)
{
	cptx_tensor_opt opt = { .type = CPTX_BF16, .rank = 2, .shape = (int64_t[]){ 3, 4 }, .ptr = 0x7000 };
	DLManagedTensorVersioned *t = cptx_tensor_export(dev, &opt, &err);

	OK(err);
	ck_assert(t->dl_tensor.device.device_type == kDLCUDA && t->dl_tensor.device.device_id == 1);
	ck_assert_ptr_eq(t->dl_tensor.data, (void *)(uintptr_t)0x7000);
	t->deleter(t);
	ck_assert_uint_eq(fake->allocations, 0);
	opt.ptr = 0;
	t = cptx_tensor_export(dev, &opt, &err);
	OK(err);
	ck_assert_uint_eq(fake->allocations, 1);
	t->deleter(t);
	ck_assert_uint_eq(fake->allocations, 0);
	ck_assert(!cptx_emu_map(dev, &opt, 4, &err));
	FAILS(err, CPTX_E_ARG, "is no emulator");
	ck_assert_ptr_null(cptx_emu_host(dev, 0x7000, 4, &err));
	FAILS(err, CPTX_E_ARG, "is no emulator");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { arguments_and_streams, devices, exported };
	return harness_run("cuda", tests, sizeof tests / sizeof *tests, before, after);
}
