/* SPDX-License-Identifier: MIT */
/* Tensor maps of devices: what the driver is given (the fake one keeps it), and the emulator's own bytes. */
#include "fake_cuda.h"
#include "harness.h"

#include <cptx/device.h>

#include <dlfcn.h>
#include <stdlib.h>

static fake_state *fake;
static cptx_device *dev;
static cptx_error err;

static void start(const char *variable, int major)
{
	const char *path = getenv(variable);
	void *lib = dlopen(path ? path : "./fake_cuda.so", RTLD_NOW);

	ck_assert_msg(lib != NULL, "%s: %s", variable, lib ? "" : dlerror());
	setenv("CPTX_CUDA_LIBRARY", path ? path : "./fake_cuda.so", 1);
	cptx_device_close(dev);
	fake = dlsym(lib, "fake_cuda");
	*fake = (fake_state){ .version = 13000, .devices = 1, .major = major, .max_threads = 1024 };
	dev = cptx_device_open("cuda", &err);
	OK(err);
}

static void before(void)
{
	memset(&err, 0, sizeof err);
	start("CPTX_TEST_FAKE_CUDA", 10);
}

static void after(void)
{
	cptx_device_close(dev);
	dev = NULL;
	ck_assert_uint_eq(fake->pushes, fake->pops);
}

static const cptx_tensor_map_opt tiled = { .type = CPTX_TENSOR_F32_FTZ,
	                                       .rank = 3,
	                                       .address = 0x2000,
	                                       .dim = { 64, 20, 30 },
	                                       .stride = { 0, 512, 0 },
	                                       .box = { 16, 8, 4 },
	                                       .element_stride = { 0, 2, 0 },
	                                       .swizzle = CPTX_SWIZZLE_64B,
	                                       .l2 = 256,
	                                       .nan_fill = true };
static const cptx_tensor_map_opt columns = { .mode = CPTX_TENSOR_IM2COL,
	                                         .type = CPTX_TENSOR_BF16,
	                                         .rank = 4,
	                                         .dim = { 64, 32, 16, 8 },
	                                         .channels = 32,
	                                         .pixels = 256,
	                                         .swizzle = CPTX_SWIZZLE_NONE,
	                                         .lower = { -1, -2 },
	                                         .upper = { 3, 4 },
	                                         .l2 = 64 };

START_TEST(to_the_driver)
{
	cptx_tensor_map map;

	ck_assert(cptx_tensor_map_make(dev, &tiled, &map, &err));
	OK(err);
	ck_assert_uint_eq((uintptr_t)&map % CPTX_TENSOR_MAP_ALIGN, 0);
	ck_assert_uint_eq(sizeof map, CPTX_TENSOR_MAP_BYTES);
	ck_assert_uint_eq(map.bytes[0], 0xa5);
	ck_assert_str_eq(fake->tensor_call, "tiled");
	ck_assert(fake->tensor_type == 10 && fake->tensor_rank == 3 && fake->tensor_address == 0x2000);
	ck_assert(fake->tensor_dim[0] == 64 && fake->tensor_dim[1] == 20 && fake->tensor_dim[2] == 30);
	ck_assert(fake->tensor_stride[0] == 512 && fake->tensor_stride[1] == 512 * 20);
	ck_assert(fake->tensor_box[0] == 16 && fake->tensor_box[1] == 8 && fake->tensor_box[2] == 4);
	ck_assert(fake->tensor_step[0] == 1 && fake->tensor_step[1] == 2 && fake->tensor_step[2] == 1);
	ck_assert(!memcmp(fake->tensor_choices, (unsigned[5]){ 0, 2, 3, 1, 0 }, sizeof fake->tensor_choices));

	ck_assert(cptx_tensor_map_make(dev, &columns, &map, &err));
	ck_assert_str_eq(fake->tensor_call, "im2col");
	ck_assert(fake->tensor_box[0] == 32 && fake->tensor_box[1] == 256 && fake->tensor_type == 9);
	ck_assert(fake->tensor_corners[0] == -1 && fake->tensor_corners[1] == -2 && fake->tensor_corners[3] == 3 &&
	          fake->tensor_corners[4] == 4);
	ck_assert(!memcmp(fake->tensor_choices, (unsigned[5]){ 0, 0, 1, 0, 0 }, sizeof fake->tensor_choices));

	cptx_tensor_map_opt wide = columns;
	wide.mode = CPTX_TENSOR_IM2COL_W_128, wide.swizzle = CPTX_SWIZZLE_64B;
	ck_assert(cptx_tensor_map_make(dev, &wide, &map, &err));
	ck_assert_str_eq(fake->tensor_call, "wide");
	ck_assert(fake->tensor_corners[0] == -1 && fake->tensor_corners[3] == 3 && fake->tensor_choices[4] == 1);
	wide.mode = CPTX_TENSOR_IM2COL_W;
	ck_assert(cptx_tensor_map_make(dev, &wide, &map, &err));
	ck_assert_uint_eq(fake->tensor_choices[4], 0);
	OK(err);
}
END_TEST

START_TEST(refused)
{
	cptx_tensor_map map;
	cptx_tensor_map_opt o = tiled;

	o.address = 8;
	ck_assert(!cptx_tensor_map_make(dev, &o, &map, &err));
	FAILS(err, CPTX_E_ARG, "address 0x8; it is a multiple of 16");
	strcpy(fake->fail_call, "cuTensorMapEncodeTiled");
	fake->fail_code = CU_INVALID_VALUE;
	ck_assert(!cptx_tensor_map_make(dev, &tiled, &map, &err));
	FAILS(err, CPTX_E_DRIVER, "encoding a tensor map: ");
	start("CPTX_TEST_FAKE_CUDA", 8);
	ck_assert(!cptx_tensor_map_make(dev, &tiled, &map, &err));
	FAILS(err, CPTX_E_TARGET, "tensor maps exist from 9.0 on");
	start("CPTX_TEST_FAKE_CUDA", 9);
	o = columns, o.mode = CPTX_TENSOR_IM2COL_W, o.swizzle = CPTX_SWIZZLE_64B;
	ck_assert(!cptx_tensor_map_make(dev, &o, &map, &err));
	FAILS(err, CPTX_E_TARGET, "im2col along W exists from 10.0 on");
	start("CPTX_TEST_FAKE_CUDA_OLD", 9);
	ck_assert(!cptx_tensor_map_make(dev, &tiled, &map, &err));
	FAILS(err, CPTX_E_NO_DRIVER, "has no cuTensorMapEncodeTiled; one of CUDA 12.0 or later has");
	err.code = CPTX_E_ARG; /* an earlier error: nothing is done */
	ck_assert(!cptx_tensor_map_make(dev, &tiled, &map, &err));
	memset(&err, 0, sizeof err);
}
END_TEST

START_TEST(of_the_emulator)
{
	cptx_tensor_map map;
	cptx_tensor_map_opt back;
	cptx_device *emu = cptx_device_open("emu:sm_90a", &err);

	if (!emu) {
		FAILS(err, CPTX_E_NO_DEVICE, "no emulator");
		SKIP("this build has no emulator");
	}
	ck_assert_msg(cptx_tensor_map_make(emu, &tiled, &map, &err), "%s", err.text);
	ck_assert_msg(cptx_tensor_map_unpack(map.bytes, &back, &err), "%s", err.text);
	ck_assert(back.type == CPTX_TENSOR_F32_FTZ && back.stride[2] == 512 * 20);
	cptx_device_close(emu);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { to_the_driver, refused, of_the_emulator };
	return harness_run("runtime_tensor_map", tests, sizeof tests / sizeof tests[0], before, after);
}
