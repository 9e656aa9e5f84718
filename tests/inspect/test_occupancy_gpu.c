/* SPDX-License-Identifier: MIT */
/* Occupancy beside what the driver says of the GPU that is there: registers, threads and shared memory in many combinations.
 */
#include "../test.h"

#include <cptx/cptx.h>
#include <cptx/inspect.h>

#include <dlfcn.h>

/* The few calls that are used, as the CUDA driver API declares them. */
static struct driver {
	int (*init)(unsigned), (*device)(int *, int), (*retain)(void **, int), (*current)(void *),
		(*load)(void **, const void *);
	int (*function)(void **, void *, const char *), (*attribute)(int *, int, void *), (*device_attribute)(int *, int, int);
	int (*set)(void *, int, int), (*blocks)(int *, void *, int, size_t), (*unload)(void *);
} cu;
enum { NUM_REGS = 4, STATIC_SMEM = 1, MOST_DYNAMIC_SMEM = 8, CAPABILITY_MAJOR = 75, CAPABILITY_MINOR = 76 };

static bool open_driver(void)
{
	static const char *const names[] = { "cuInit",
		                                 "cuDeviceGet",
		                                 "cuDevicePrimaryCtxRetain",
		                                 "cuCtxSetCurrent",
		                                 "cuModuleLoadData",
		                                 "cuModuleGetFunction",
		                                 "cuFuncGetAttribute",
		                                 "cuDeviceGetAttribute",
		                                 "cuFuncSetAttribute",
		                                 "cuOccupancyMaxActiveBlocksPerMultiprocessor",
		                                 "cuModuleUnload" };
	const char *given = getenv("CPTX_CUDA_LIBRARY");
	void *library = dlopen(given && *given ? given : "libcuda.so.1", RTLD_NOW), *context, **at = (void **)(void *)&cu;
	int device;

	_Static_assert(sizeof cu == sizeof names, "a name for each");
	for (size_t i = 0; library && i < sizeof names / sizeof *names; i++)
		if (!(at[i] = dlsym(library, names[i])))
			return false;
	return library && !cu.init(0) && !cu.device(&device, 0) && !cu.retain(&context, device) && !cu.current(context);
}

/* A kernel that takes about so many registers and so much static shared memory. */
static cptx_ptx *kernel(const cptx_target *t, unsigned values, unsigned smem, unsigned threads)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .max_block = { threads });
	cptx_val p = cptx_param(k, CPTX_PTR, "p"), at = cptx_mad_wide(k, cptx_tid_x(k), 4, p), v[240];
	cptx_error err = { 0 };

	if (smem)
		cptx_st(k, cptx_shared(k, CPTX_B8, smem), 1, .space = CPTX_SHARED, .type = CPTX_U32);
	for (unsigned i = 0; i < values; i++)
		v[i] = cptx_ld(k, cptx_offset(at, 4096 * i), .space = CPTX_GLOBAL, .type = CPTX_F32, .sem = CPTX_VOLATILE);
	for (unsigned i = 0; i < values; i++)
		cptx_st(k, cptx_offset(at, 4096 * i), v[values - 1 - i], .space = CPTX_GLOBAL, .sem = CPTX_VOLATILE);
	cptx_ptx *ptx = cptx_emit(m, t->name, NULL, &err);
	ck_assert_msg(ptx, "%s", err.text);
	cptx_module_destroy(m);
	return ptx;
}

static unsigned compared;

static void compare(const cptx_target *t, void *function, unsigned dynamic, int most)
{
	int registers, smem, ctas;
	cptx_occupancy o;

	ck_assert(!cu.attribute(&registers, NUM_REGS, function) && !cu.attribute(&smem, STATIC_SMEM, function));
	if (dynamic && cu.set(function, MOST_DYNAMIC_SMEM, (int)dynamic))
		return; /* more than there is, with the static part */
	for (int threads = 32; threads <= most; threads += most / 16) {
		ck_assert_int_eq(cu.blocks(&ctas, function, threads, dynamic), 0);
		ck_assert(cptx_occupancy_of(t, (uint32_t)registers, (uint32_t)smem + dynamic, (uint32_t)threads, &o));
		ck_assert_msg((int)o.ctas == ctas, "%s, %d registers, %d + %u bytes shared, %d threads: %u CTAs, the driver says %d",
		              t->name, registers, smem, dynamic, threads, o.ctas, ctas);
		compared++;
	}
}

START_TEST(as_the_driver)
{
	static const unsigned values[] = { 1, 20, 27, 40, 56, 72, 100, 150, 200, 230 }, smem[] = { 0, 100, 5000, 40000 },
						  dynamic[] = { 0, 1000, 30000, 70000, 110000, 200000 };
	int major, minor;

	if (!open_driver()) {
		skip("a GPU");
		return;
	}
	ck_assert(!cu.device_attribute(&major, CAPABILITY_MAJOR, 0) && !cu.device_attribute(&minor, CAPABILITY_MINOR, 0));
	const cptx_target *t = cptx_target_for_device((unsigned)(major * 10 + minor));
	for (unsigned i = 0; i < 10; i++)
		for (unsigned j = 0; j < 4; j++) {
			void *module, *function;
			int most = values[i] < 40 ? 1024 : 256; /* threads: so that any number of registers is allowed */
			cptx_ptx *ptx = kernel(t, values[i], smem[j], (unsigned)most);
			ck_assert_int_eq(cu.load(&module, cptx_ptx_text(ptx)), 0);
			ck_assert_int_eq(cu.function(&function, module, "k"), 0);
			for (unsigned d = 0; d < 6; d++)
				compare(t, function, dynamic[d], most);
			cu.unload(module);
			cptx_ptx_destroy(ptx);
		}
	printf("%u launches of %s compared\n", compared, t->name);
	ck_assert_uint_gt(compared, 1000);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("occupancy");
	TCase *t = tcase_create("occupancy");

	tcase_set_timeout(t, 120);
	tcase_add_test(t, as_the_driver);
	suite_add_tcase(s, t);
	return test_main("inspect_occupancy_gpu", s);
}
