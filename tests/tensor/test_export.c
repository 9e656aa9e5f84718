/* SPDX-License-Identifier: MIT */
/* Memory of the emulator as tensors, and memory of the host mapped by hand. */
#include "harness.h"

static void before(void)
{
	memset(&err, 0, sizeof err);
	dev = cptx_device_open("emu:sm_90a", &err);
}

static void after(void) { cptx_device_close(dev); }

static int released;
static void note(void *user) { released += *(int *)user; }

START_TEST(owned)
{
	int one = 1;
	int64_t shape[] = { 2, 3 };
	cptx_tensor_opt opt = { .type = CPTX_F32, .rank = 2, .shape = shape, .release = note, .user = &one };

	released = 0;
	DLManagedTensorVersioned *t = cptx_tensor_export(dev, &opt, &err);
	OK(err);
	ck_assert_uint_eq(t->version.major, DLPACK_MAJOR_VERSION);
	ck_assert_uint_eq(t->flags, 0);
	ck_assert_int_eq(t->dl_tensor.device.device_type, kDLCPU);
	ck_assert_int_eq(t->dl_tensor.ndim, 2);
	ck_assert(t->dl_tensor.shape[0] == 2 && t->dl_tensor.shape[1] == 3);
	ck_assert(t->dl_tensor.strides[0] == 3 && t->dl_tensor.strides[1] == 1);
	ck_assert(t->dl_tensor.dtype.code == kDLFloat && t->dl_tensor.dtype.bits == 32 && t->dl_tensor.dtype.lanes == 1);
	memset(t->dl_tensor.data, 1, 24);
	t->deleter(t);
	ck_assert_int_eq(released, 1);

	DLManagedTensor *old = cptx_tensor_export_old(dev, &opt, &err);
	OK(err);
	ck_assert_int_eq(old->dl_tensor.ndim, 2);
	old->deleter(old);
	ck_assert_int_eq(released, 2);
}
END_TEST

/* A kernel reads what the host wrote into an exported buffer, and the host what the kernel wrote. */
START_TEST(both_ways)
{
	enum { N = 70 };
	cptx_program *p = load(saxpy_text);
	cptx_tensor_launch *l = prepare(p, "x: f32[n] const, y: f32[n], a: f32, n: u32 = n", "n / 64");
	uint64_t buffer = cptx_mem_alloc(dev, 2 * N * sizeof(float), &err), x = buffer, y = buffer + N * sizeof(float);
	cptx_tensor_opt opt = { .type = CPTX_F32, .rank = 1, .shape = (int64_t[]){ N }, .ptr = x, .read_only = true };
	DLManagedTensorVersioned *tx = cptx_tensor_export(dev, &opt, &err), *ty;

	opt.ptr = y, opt.read_only = false;
	ty = cptx_tensor_export(dev, &opt, &err);
	OK(err);
	ck_assert_uint_eq(tx->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
	float *hx = tx->dl_tensor.data, *hy = ty->dl_tensor.data, back[N];
	for (int i = 0; i < N; i++)
		hx[i] = (float)i, hy[i] = 5;
	cptx_launch_once(p, "saxpy", &(cptx_launch_opt){ .grid = { 2 }, .block = { 64 }, CPTX_ARGS(x, y, 2.0f, 70u) }, NULL,
	                 &err);
	OK(err);
	cptx_tensor_arg args[] = { { .kind = CPTX_TENSOR_VERSIONED, .u.versioned = tx },
		                       { .kind = CPTX_TENSOR_VERSIONED, .u.versioned = ty },
		                       number(1) };
	cptx_tensor_launch_run(l, args, 3, NULL, NULL, &err);
	cptx_mem_read(dev, back, y, sizeof back, &err);
	OK(err);
	for (int i = 0; i < N; i++)
		ck_assert(hy[i] == 3 * (float)i + 5 && back[i] == hy[i]);
	tx->deleter(tx);
	ty->deleter(ty);
	cptx_mem_free(dev, buffer);
	cptx_tensor_launch_destroy(l);
	cptx_program_destroy(p);
}
END_TEST

START_TEST(refusals)
{
	int64_t shape[] = { 4, -1 }, huge[] = { INT64_MAX, INT64_MAX }, strides[] = { -1 };
	cptx_tensor_opt opt = { .type = CPTX_F32, .rank = 2, .shape = shape };

	ck_assert_ptr_null(cptx_tensor_export(dev, &opt, &err));
	FAILS(err, CPTX_E_ARG, "it has a negative dimension");
	opt.shape = huge;
	ck_assert_ptr_null(cptx_tensor_export(dev, &opt, &err));
	FAILS(err, CPTX_E_ARG, "beyond all memory");
	opt.rank = 9;
	ck_assert_ptr_null(cptx_tensor_export(dev, &opt, &err));
	FAILS(err, CPTX_E_ARG, "a tensor of 9 dimensions; the most are 8");
	opt.shape = NULL;
	ck_assert_ptr_null(cptx_tensor_export(dev, &opt, &err));
	FAILS(err, CPTX_E_ARG, "the shape is NULL");
	opt = (cptx_tensor_opt){ .type = CPTX_F16X2, .rank = 1, .shape = shape };
	ck_assert_ptr_null(cptx_tensor_export(dev, &opt, &err));
	FAILS(err, CPTX_E_ARG, "DLPack has no tensors of .f16x2");
	opt.type = CPTX_F32, opt.strides = strides;
	ck_assert_ptr_null(cptx_tensor_export(dev, &opt, &err));
	FAILS(err, CPTX_E_ARG, "cannot have negative strides");
	opt.strides = NULL, opt.ptr = 4096;
	ck_assert_ptr_null(cptx_tensor_export(dev, &opt, &err));
	FAILS(err, CPTX_E_ARG, "nothing is allocated there");
	opt.ptr = cptx_mem_alloc(dev, 8, &err);
	ck_assert_ptr_null(cptx_tensor_export(dev, &opt, &err));
	FAILS(err, CPTX_E_ARG, "reach beyond their allocation of 8 bytes");
	cptx_mem_free(dev, opt.ptr);
	opt.ptr = 0, opt.read_only = true;
	ck_assert_ptr_null(cptx_tensor_export_old(dev, &opt, &err));
	FAILS(err, CPTX_E_ARG, "cannot say that a tensor is read-only");
	ck_assert_ptr_null(cptx_tensor_export(NULL, &opt, &err));
	FAILS(err, CPTX_E_ARG, "the device is NULL");
	ck_assert_ptr_null(cptx_tensor_export(dev, NULL, &err));
	FAILS(err, CPTX_E_ARG, "the options are NULL");
}
END_TEST

START_TEST(strided_and_empty)
{
	uint64_t ptr = cptx_mem_alloc(dev, 10 * sizeof(int16_t), &err);
	int64_t shape[] = { 3 }, strides[] = { -4 }, none[] = { 0, 5 };
	cptx_tensor_opt opt = { .type = CPTX_S16, .rank = 1, .shape = shape, .strides = strides, .ptr = ptr + 16 };
	DLManagedTensorVersioned *t = cptx_tensor_export(dev, &opt, &err);

	OK(err);
	ck_assert_ptr_eq((char *)t->dl_tensor.data - 16, cptx_emu_host(dev, ptr, 20, &err));
	t->deleter(t);
	opt.ptr = ptr + 14; /* its last element lies in front of the memory */
	ck_assert_ptr_null(cptx_tensor_export(dev, &opt, &err));
	FAILS(err, CPTX_E_ARG, "");
	opt = (cptx_tensor_opt){ .type = CPTX_F64, .rank = 2, .shape = none };
	t = cptx_tensor_export(dev, &opt, &err);
	OK(err);
	ck_assert_ptr_null(t->dl_tensor.data);
	t->deleter(t);
	opt.rank = 0;
	t = cptx_tensor_export(dev, &opt, &err);
	OK(err);
	ck_assert_ptr_nonnull(t->dl_tensor.data);
	t->deleter(t);
	cptx_mem_free(dev, ptr);
}
END_TEST

START_TEST(mapping)
{
	static float x[8];
	float back[8] = { 0 };

	x[3] = 7;
	uint64_t at = cptx_emu_map(dev, x + 1, 7 * sizeof *x, &err);
	OK(err);
	ck_assert_uint_eq(at % 512, (uintptr_t)(x + 1) % 512);
	ck_assert_ptr_eq(cptx_emu_host(dev, at + 4, 24, &err), x + 2);
	cptx_mem_read(dev, back, at, 28, &err);
	OK(err);
	ck_assert(back[2] == 7);
	ck_assert(!cptx_mem_read(dev, back, at, 32, &err));
	FAILS(err, CPTX_E_ARG, "reach beyond");
	cptx_mem_free(dev, at);
	ck_assert(!cptx_mem_read(dev, back, at, 4, &err));
	FAILS(err, CPTX_E_ARG, "the allocation of 28 bytes there was freed");
	ck_assert(x[3] == 7);
	ck_assert(!cptx_emu_map(dev, NULL, 4, &err));
	FAILS(err, CPTX_E_ARG, "the memory to map is NULL");
	ck_assert(!cptx_emu_map(dev, x, 0, &err));
	FAILS(err, CPTX_E_ARG, "a mapping of 0 bytes");
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { owned, both_ways, refusals, strided_and_empty, mapping };
	return harness_run("export", tests, sizeof tests / sizeof *tests, before, after);
}
