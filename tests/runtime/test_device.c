/* SPDX-License-Identifier: MIT */
/* Devices without a GPU: missing and odd drivers, and everything else against the fake driver. */
#include "fake_cuda.h"
#include "harness.h"

#include <cptx/device.h>

#include <dlfcn.h>
#include <stdlib.h>

static fake_state *fake;
static cptx_device *dev;
static cptx_error err;

static const char *fake_path(void)
{
	const char *path = getenv("CPTX_TEST_FAKE_CUDA");
	return path ? path : "./fake_cuda.so";
}

static void before(void)
{
	void *lib = dlopen(fake_path(), RTLD_NOW);

	ck_assert_msg(lib != NULL, "CPTX_TEST_FAKE_CUDA: %s", lib ? "" : dlerror());
	setenv("CPTX_CUDA_LIBRARY", fake_path(), 1);
	memset(&err, 0, sizeof err);
	fake = dlsym(lib, "fake_cuda");
	*fake = (fake_state){ .version = 13000, .devices = 2, .major = 9, .max_threads = 1024, .regs = 32, .ctas = 2 };
	dev = cptx_device_open("cuda", &err);
	OK(err);
}

static void after(void)
{
	cptx_device_close(dev);
	dev = NULL;
	ck_assert_uint_eq(fake->retained, 0);
	ck_assert_uint_eq(fake->pushes, fake->pops);
	ck_assert_uint_eq(fake->streams + fake->events + fake->modules + fake->allocations, 0);
}

static void open_fails(const char *name, enum cptx_code code, const char *part)
{
	ck_assert_ptr_null(cptx_device_open(name, &err));
	FAILS(err, code, part);
}

START_TEST(no_driver)
{
	setenv("CPTX_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1);
	open_fails("cuda", CPTX_E_NO_DRIVER, "/nonexistent/libcuda.so.1");
	open_fails("cuda:3", CPTX_E_NO_DRIVER, "CPTX_CUDA_LIBRARY names it");
	ck_assert_uint_eq(cptx_device_count("cuda", &err), 0);
	FAILS(err, CPTX_E_NO_DRIVER, "cannot open");
	ck_assert_ptr_null(cptx_device_adopt(NULL, &err));
	FAILS(err, CPTX_E_NO_DRIVER, "cannot open");
	ck_assert_ptr_null(cptx_device_open("cuda", NULL));
}
END_TEST

START_TEST(no_cuda_library)
{
	setenv("CPTX_CUDA_LIBRARY", "libm.so.6", 1);
	open_fails("cuda", CPTX_E_NO_DRIVER, "libm.so.6 is no CUDA driver library");
}
END_TEST

START_TEST(names)
{
	open_fails("hip:0", CPTX_E_ARG, "\"hip:0\" is no device name");
	open_fails("cuda:", CPTX_E_ARG, "a number");
	open_fails("cuda:-1", CPTX_E_ARG, "a number");
	open_fails("cuda:1x", CPTX_E_ARG, "a number");
	open_fails("cuda:99999999999999999999", CPTX_E_ARG, "a number");
	open_fails("cuda:2", CPTX_E_NO_DEVICE, "no device \"cuda:2\"; the last one is \"cuda:1\"");
	fake->devices = 1;
	open_fails("cuda:1", CPTX_E_NO_DEVICE, "the only one is \"cuda:0\"");
	cptx_device *other = cptx_device_open("cuda:0", &err);
	OK(err);
	cptx_device_close(other);
	ck_assert_uint_eq(cptx_device_count(NULL, &err), 1);
	OK(err);
}
END_TEST

START_TEST(emulators)
{
	static const struct {
		const char *name, *target;
	} good[] = { { "emu", "sm_100a" }, { "emu:sm_75", "sm_75" }, { "emu:sm_90a", "sm_90a" }, { "emu:sm_120f", "sm_120f" } };

	setenv("CPTX_CUDA_LIBRARY", "/nonexistent/libcuda.so.1", 1); /* it needs no driver */
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		cptx_device *emu = cptx_device_open(good[i].name, &err);
		OK(err);
		ck_assert_str_eq(cptx_device_get_info(emu)->target, good[i].target);
		cptx_device_close(emu);
	}
	ck_assert_uint_eq(cptx_device_count("emu", &err), 1);
	OK(err);
	open_fails("emu:sm_91", CPTX_E_ARG, "there is no target \"sm_91\" to emulate");
	open_fails("emu:", CPTX_E_ARG, "there is no target \"\" to emulate");
	open_fails("emu:0", CPTX_E_ARG, "say \"emu:sm_90a\", for example");
	open_fails("emulator", CPTX_E_ARG, "\"emulator\" is no device name");
}
END_TEST

START_TEST(driver_refuses)
{
	strcpy(fake->fail_call, "cuInit");
	fake->fail_code = CU_NO_DEVICE;
	open_fails("cuda", CPTX_E_NO_DEVICE, "finds no GPU");
	fake->fail_code = CU_STUB;
	open_fails("cuda", CPTX_E_NO_DRIVER, "stub");
	fake->fail_code = 999;
	open_fails("cuda", CPTX_E_DRIVER, "starting the CUDA driver");
	fake->fail_code = CU_OUT_OF_MEMORY;
	strcpy(fake->fail_call, "cuDevicePrimaryCtxRetain");
	open_fails("cuda:1", CPTX_E_DRIVER, "retaining the context of device 1: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
}
END_TEST

START_TEST(info)
{
	const cptx_device_info *i = cptx_device_get_info(dev);

	ck_assert_str_eq(i->name, "Fake 0");
	ck_assert_uint_eq(i->compute_capability, 90);
	ck_assert_str_eq(i->target, "sm_90a");
	ck_assert_uint_eq(i->sms, 132);
	ck_assert_uint_eq(i->smem_per_cta, 232448);
	ck_assert(i->clusters);
	ck_assert_uint_eq(i->global_memory, (uint64_t)1 << 37);
	ck_assert_ptr_nonnull(cptx_device_symbol(dev, "cuMemAlloc_v2"));
	ck_assert_ptr_null(cptx_device_symbol(dev, "cuNoSuchCall"));
	ck_assert_ptr_null(cptx_device_get_info(NULL));
}
END_TEST

START_TEST(versions)
{
	static const struct {
		int driver;
		unsigned ptx;
		const char *target;
	} want[] = {
		{ 11000, 70, "sm_80" },  { 11080, 78, "sm_90" },  { 12000, 80, "sm_90a" }, { 12050, 85, "sm_90a" },
		{ 12060, 85, "sm_90a" }, { 12070, 86, "sm_90a" }, { 12090, 88, "sm_90a" }, { 13000, 90, "sm_90a" },
		{ 13020, 92, "sm_90a" }, { 10020, 65, "sm_75" },
	};

	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		fake->version = want[i].driver;
		cptx_device *d = cptx_device_open("cuda", &err);
		OK(err);
		ck_assert_uint_eq(cptx_device_get_info(d)->ptx, want[i].ptx);
		ck_assert_str_eq(cptx_device_get_info(d)->target, want[i].target);
		cptx_device_close(d);
	}
}
END_TEST

START_TEST(memory)
{
	uint32_t a[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, b[8] = { 0 };
	uint64_t p = cptx_mem_alloc(dev, sizeof a, &err), q = cptx_mem_alloc(dev, sizeof a, &err);

	cptx_mem_write(dev, p, a, sizeof a, &err);
	cptx_mem_copy(dev, q, p, sizeof a, &err);
	cptx_mem_fill32(dev, q + 4, 0xabcdef01, 2, &err);
	cptx_mem_fill8(dev, q + 16, 0x55, 4, &err);
	cptx_mem_read(dev, b, q, sizeof b, &err);
	OK(err);
	ck_assert_mem_eq(b, ((uint32_t[]){ 1, 0xabcdef01, 0xabcdef01, 4, 0x55555555, 6, 7, 8 }), sizeof b);
	ck_assert(cptx_mem_read(dev, b, q, 0, &err));
	ck_assert(!cptx_mem_fill32(dev, q + 2, 0, 1, &err));
	FAILS(err, CPTX_E_ARG, "no multiple of 4");
	ck_assert(!cptx_mem_fill32(dev, q, 0, SIZE_MAX / 4 + 2, &err)); /* as bytes, 4 */
	FAILS(err, CPTX_E_ARG, "no allocation has");
	ck_assert(cptx_mem_write(dev, p, NULL, 0, &err));
	ck_assert(!cptx_mem_write(dev, p, NULL, 4, &err));
	FAILS(err, CPTX_E_ARG, "memory of the host to read from is NULL");
	ck_assert(!cptx_mem_read_async(dev, NULL, p, 4, NULL, &err));
	FAILS(err, CPTX_E_ARG, "memory of the host to write to is NULL");
	cptx_mem_free(dev, p);
	cptx_mem_free(dev, q);
	cptx_mem_free(dev, 0);
}
END_TEST

START_TEST(memory_errors)
{
	char c = 0;

	ck_assert_uint_eq(cptx_mem_alloc(dev, (size_t)1 << 50, &err), 0);
	FAILS(err, CPTX_E_DRIVER,
	      "1125899906842624 bytes of device memory, of which 1000 of 2000 are free: CUDA_ERROR_OUT_OF_MEMORY");
	ck_assert_uint_eq(cptx_mem_alloc(dev, 0, &err), 0);
	FAILS(err, CPTX_E_ARG, "0 bytes");
	strcpy(fake->fail_call, "cuMemcpyDtoHAsync_v2");
	fake->fail_code = CU_ILLEGAL_ADDRESS;
	ck_assert(!cptx_mem_read(dev, &c, 0x1000, 1, &err));
	FAILS(err, CPTX_E_DRIVER,
	      "reading 1 bytes of device memory 0x1000: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access "
	      "was encountered; a kernel that ran before caused it");
	fake->fail_code = 12345;
	ck_assert(!cptx_mem_read(dev, &c, 0x1000, 1, &err));
	FAILS(err, CPTX_E_DRIVER, "an error that the driver cannot name (12345)");
	ck_assert(!cptx_mem_write(NULL, 0, &c, 1, &err));
	FAILS(err, CPTX_E_ARG, "device is NULL");
}
END_TEST

START_TEST(first_error_sticks)
{
	char c = 0;

	err.code = CPTX_E_LIMIT;
	strcpy(err.text, "the first");
	ck_assert(!cptx_mem_write(dev, 0, &c, 1, &err));
	ck_assert_uint_eq(cptx_mem_alloc(dev, 8, &err), 0);
	ck_assert_ptr_null(cptx_device_open("cuda", &err));
	ck_assert_ptr_null(cptx_stream_new(dev, &err));
	ck_assert_ptr_null(cptx_event_new(dev, &err));
	ck_assert(!cptx_device_synchronize(dev, &err));
	ck_assert(!cptx_launch_run(NULL, NULL, &err));
	ck_assert_str_eq(err.text, "the first");
	ck_assert_uint_eq(fake->allocations + fake->streams + fake->events, 0);
}
END_TEST

START_TEST(contexts)
{
	cu_context ours = cptx_device_context(dev), theirs = (cu_context)(void *)&err;

	ck_assert_ptr_eq(fake->current, ours); /* the thread had none */
	fake->current = theirs;
	uint64_t p = cptx_mem_alloc(dev, 4, &err);
	cptx_mem_fill32(dev, p, 1, 1, &err);
	cptx_device_synchronize(dev, &err);
	cptx_mem_free(dev, p);
	OK(err);
	ck_assert_ptr_eq(fake->current, theirs);
	ck_assert_uint_eq(fake->pushes, 4);
	ck_assert(cptx_device_make_current(dev, &err));
	ck_assert_ptr_eq(fake->current, ours);
	cptx_device_close(dev);
	ck_assert_ptr_null(fake->current); /* the last user of the primary context is gone */
	dev = NULL;
}
END_TEST

START_TEST(adoption)
{
	cu_context theirs = (cu_context)(void *)&err;

	fake->current = NULL;
	ck_assert_ptr_null(cptx_device_adopt(NULL, &err));
	FAILS(err, CPTX_E_STATE, "no current CUDA context");
	fake->current = theirs;
	cptx_device *d = cptx_device_adopt(NULL, &err);
	OK(err);
	ck_assert_ptr_eq(cptx_device_context(d), theirs);
	ck_assert_uint_eq(fake->retained, 1);
	cptx_device_close(d);
	ck_assert_uint_eq(fake->retained, 1);
	ck_assert_ptr_eq(fake->current, theirs);
	d = cptx_device_adopt(cptx_device_context(dev), &err);
	OK(err);
	ck_assert_ptr_eq(fake->current, theirs);
	cptx_device_close(d);
}
END_TEST

START_TEST(streams_and_events)
{
	float ms = 0;
	cptx_stream *s = cptx_stream_new(dev, &err), *same = cptx_stream_adopt(dev, cptx_stream_handle(s), &err);
	cptx_event *a = cptx_event_new(dev, &err), *b = cptx_event_new(dev, &err);

	cptx_event_record(a, s, &err);
	cptx_event_record(b, same, &err);
	cptx_stream_wait(NULL, b, &err);
	cptx_event_synchronize(b, &err);
	cptx_event_elapsed(a, b, &ms, &err);
	cptx_stream_synchronize(dev, s, &err);
	cptx_stream_synchronize(dev, NULL, &err);
	OK(err);
	ck_assert_float_eq(ms, 1.5f);
	cptx_device *other = cptx_device_open("cuda:1", &err);
	ck_assert(!cptx_stream_synchronize(other, s, &err));
	FAILS(err, CPTX_E_ARG, "another device");
	cptx_device_close(other);
	cptx_stream_destroy(same);
	ck_assert_uint_eq(fake->streams, 1);
	cu_context foreign = (cu_context)(void *)&err;
	ck_assert_ptr_null(cptx_stream_adopt(dev, &foreign, &err));
	FAILS(err, CPTX_E_ARG, "belongs to another context");
	cptx_stream_destroy(s);
	cptx_event_destroy(a);
	cptx_event_destroy(b);
	cptx_stream_destroy(NULL);
	cptx_event_destroy(NULL);
	ck_assert_ptr_null(cptx_stream_handle(NULL));
}
END_TEST

/* The context is kept until the last of what needs it is gone. */
START_TEST(closed_first)
{
	cptx_stream *s = cptx_stream_new(dev, &err), *same = cptx_stream_adopt(dev, cptx_stream_handle(s), &err);
	cptx_event *e = cptx_event_new(dev, &err);

	cptx_device_close(dev);
	dev = NULL;
	ck_assert_uint_eq(fake->retained, 1);
	cptx_event_record(e, s, &err);
	cptx_event_synchronize(e, &err);
	OK(err);
	cptx_stream_destroy(same);
	cptx_event_destroy(e);
	ck_assert_uint_eq(fake->retained, 1);
	cptx_stream_destroy(s);
	ck_assert_uint_eq(fake->retained, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		no_driver,     no_cuda_library,    names,    emulators, driver_refuses,     info,         versions, memory,
		memory_errors, first_error_sticks, contexts, adoption,  streams_and_events, closed_first,
	};
	return harness_run("device", tests, ARRAY_LEN(tests), before, after);
}
