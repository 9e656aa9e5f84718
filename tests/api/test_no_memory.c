/* SPDX-License-Identifier: MIT */
/*
 * Each allocation fails once, and each with all that follow: what a user does with a small kernel ends well or says MEMORY,
 * and leaves nothing allocated.  (Building and printing: tests/verify; parsing: tests/parse; compiling: tests/compile.)
 */
#define _GNU_SOURCE
#include "../own_malloc.h"
#include "../test.h"

#include <cptx/cache.h>
#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/dlpack.h>
#include <cptx/emu.h>
#include <cptx/gemm.h>
#include <cptx/inspect.h>
#include <cptx/layout.h>
#include <cptx/pipeline.h>
#include <dlpack/dlpack.h>

#include <unistd.h>

static struct {
	bool counts, forever;
	unsigned long n, fail_at; /* allocations so far; the number of the one that fails, 0: none */
	long live;
} heap;

#if COUNTED
extern void __libc_free(void *p);

static bool fails_now(void)
{
	return heap.counts && (++heap.n == heap.fail_at || (heap.forever && heap.fail_at && heap.n > heap.fail_at));
}
static void *counted(void *p)
{
	heap.live += heap.counts && p;
	return p;
}

void *malloc(size_t size) { return fails_now() ? NULL : counted(__libc_malloc(size)); }
void *calloc(size_t n, size_t size) { return fails_now() ? NULL : counted(__libc_calloc(n, size)); }
void *realloc(void *old, size_t size)
{
	if (fails_now())
		return NULL;
	return old ? __libc_realloc(old, size) : counted(__libc_malloc(size));
}
void free(void *p)
{
	heap.live -= heap.counts && p;
	__libc_free(p);
}
#endif

/* ---- scenes: true if all was done.  False: err says why, or what has no place for an error said so with `lacks` ---- */

static const char text[] =
	".version 8.0\n.target sm_90a\n.address_size 64\n"
	".visible .entry add(.param .u64 x)\n.reqntid 64\n{\n\t.reg .pred %p<2>;\n\t.reg .b32 %r<4>;\n\t.reg .b64 %rd<4>;\n"
	"\t.shared .align 16 .b8 kept[256];\n\tld.param.u64 %rd1, [x];\n\tmov.u32 %r1, %tid.x;\n\tmul.wide.u32 %rd2, %r1, 4;\n"
	"\tadd.u64 %rd1, %rd1, %rd2;\n\tld.global.u32 %r2, [%rd1];\n\tmov.u32 %r3, 0;\nLOOP:\n\tadd.u32 %r2, %r2, 1;\n"
	"\tadd.u32 %r3, %r3, 1;\n\tsetp.lt.u32 %p1, %r3, 3;\n\t@%p1 bra LOOP;\n\tst.global.u32 [%rd1], %r2;\n\tret;\n}\n";
static char folder[] = "/tmp/cptx-test-XXXXXX";
static cptx_error err;

static bool lacks(void)
{
	err.code = err.code ? err.code : CPTX_E_MEMORY;
	return false;
}

/* Of a module; NULL counts as one without memory. */
static bool whole(const cptx_module *m)
{
	const cptx_error *e = cptx_module_error(m);

	if (!m)
		return lacks();
	if (e && !err.code)
		err = *e;
	return !e;
}

static cptx_module *parsed(void) { return cptx_parse(text, sizeof text - 1, &(cptx_parse_opt){ .keep = true }); }

static bool edited(void)
{
	cptx_module *m = parsed();
	cptx_kernel *k = cptx_module_body(m, "add");
	cptx_item *add = cptx_item_find(k, NULL, "add.u32");
	cptx_val r = cptx_body_value(k, "%r2");

	cptx_edit_operand(k, add, 2, 5);
	cptx_edit_after(k, cptx_item_find(k, NULL, "setp"));
	cptx_val t = cptx_add(k, r, 1, .type = CPTX_U32);
	cptx_mov(k, t, .into = r);
	cptx_edit_end(k);
	cptx_edit_rename(k, cptx_body_value(k, "LOOP"), "AGAIN");
	cptx_edit_rename_global(m, "add", "sum");
	cptx_edit_bounds(k, .max_block = { 128 });
	cptx_ptx *ptx = whole(m) ? cptx_emit(m, "sm_90a", &(cptx_emit_opt){ .keep = true }, &err) : NULL;
	bool ok = ptx && strstr(cptx_ptx_text(ptx), "@%p1 bra AGAIN;") && strstr(cptx_ptx_text(ptx), "sum(");
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return ok;
}

static bool as_c(void)
{
	cptx_module *m = parsed();
	cptx_ptx *c = cptx_to_c(m, &(cptx_to_c_opt){ .main = true }, &err);
	bool ok = c && strstr(cptx_ptx_text(c), "cptx_kernel_begin") != NULL;

	cptx_ptx_destroy(c);
	cptx_module_destroy(m);
	return ok;
}

static bool inspected(void)
{
	static const char message[] = "ptxas info    : Compiling entry function 'add' for 'sm_90a'\n"
								  "ptxas info    : Function properties for add\n"
								  "    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
								  "ptxas info    : Used 12 registers, 256 bytes smem\n";
	cptx_module *m = parsed();
	bool ok = whole(m);
	cptx_flow *f = ok ? cptx_flow_of(cptx_module_body(m, "add"), &err) : NULL;
	cptx_verdict *v = cptx_verdict_read(message, sizeof message - 1, &(cptx_verdict_opt){ .ptx = text });
	size_t n;

	if (ok && !v)
		lacks();
	ok = f && v && cptx_flow_loops(f, &n) && n == 1 && cptx_verdict_usage_of(v, "add");
	cptx_verdict_destroy(v);
	cptx_flow_destroy(f);
	cptx_module_destroy(m);
	return ok;
}

static bool emulated(void)
{
	uint32_t x[64] = { 7 };
	cptx_device *dev = cptx_emu_open("sm_90a", &(cptx_emu_opt){ .threads = 1 }, &err);
	cptx_program *p = cptx_device_load_text(dev, text, sizeof text - 1, NULL, &err);
	uint64_t at = cptx_mem_alloc(dev, sizeof x, &err);
	cptx_mem_write(dev, at, x, sizeof x, &err);
	cptx_launch_once(p, "add", CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(at)), NULL, &err);
	bool ok = cptx_mem_read(dev, x, at, sizeof x, &err) && x[0] == 10 && x[63] == 3;
	cptx_mem_free(dev, at);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	return ok;
}

static bool tensors(void)
{
	uint32_t x[64] = { 7 };
	int64_t shape[] = { 64 };
	DLTensor t = { .data = x, .device = { kDLCPU, 0 }, .ndim = 1, .dtype = { kDLUInt, 32, 1 }, .shape = shape };
	cptx_device *dev = cptx_emu_open("sm_90a", &(cptx_emu_opt){ .threads = 1 }, &err);
	cptx_program *p = cptx_device_load_text(dev, text, sizeof text - 1, NULL, &err);
	cptx_tensor_launch *l =
		cptx_tensor_launch_new(p, NULL, &(cptx_tensor_launch_opt){ .signature = "x: u32[n]", .grid = "n / 64" }, &err);
	bool ok = cptx_tensor_launch_run(l, &(cptx_tensor_arg){ .kind = CPTX_TENSOR_DL, .u.tensor = &t }, 1, NULL, NULL, &err) &&
	          x[0] == 10 && x[63] == 3;
	uint64_t at = cptx_mem_alloc(dev, sizeof x, &err);
	DLManagedTensorVersioned *out =
		cptx_tensor_export(dev, &(cptx_tensor_opt){ .type = CPTX_U32, .rank = 1, .shape = shape, .ptr = at }, &err);

	if (out)
		out->deleter(out);
	cptx_mem_free(dev, at);
	cptx_tensor_launch_destroy(l);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	return ok && out;
}

static bool cached(void)
{
	cptx_cache *c = cptx_cache_open(&(cptx_cache_opt){ .path = folder }, &err);
	cptx_cache_key key = cptx_cache_key_of(&(cptx_cache_part){ text, sizeof text }, 1);
	cptx_cache_entry e = { .data = (char[]){ "code" }, .size = 5, .log = "said", .about = "a kernel" },
					 got = { .data = NULL };
	bool ok = c && cptx_cache_put(c, &key, &e) && cptx_cache_get(c, &key, &got) && !memcmp(got.data, "code", 5) &&
	          cptx_cache_count(c).entries == 1;

	if (c && !ok)
		lacks();
	free(got.data);
	ok &= !c || cptx_cache_clear(c) <= 1;
	cptx_cache_close(c);
	return ok;
}

/* Of every kind of matrix instruction. */
static bool gemms(void)
{
	static const cptx_gemm_opt opts[] = {
		{ .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32, .name = "wgmma" },
		{ .mma = CPTX_GEMM_TCGEN05,
		  .a = CPTX_BF16,
		  .b = CPTX_BF16,
		  .out = CPTX_F32,
		  .kind = CPTX_TCGEN05_F16,
		  .name = "tcgen05" },
		{ .mma = CPTX_GEMM_SYNC, .a = CPTX_E4M3, .b = CPTX_E4M3, .out = CPTX_F32, .scale = CPTX_UE8M0, .name = "scaled" },
	};
	cptx_gemm_problem p = { .m = 256, .n = 256, .k = 256 };
	cptx_gemm_opt sync = cptx_gemm_default(CPTX_GEMM_SYNC, cptx_target_find("sm_80"));
	cptx_module *m = cptx_module_new(NULL);
	bool ok = cptx_gemm_build(m, &sync, &err);

	for (size_t i = 0; ok && i < sizeof opts / sizeof *opts; i++) {
		cptx_gemm_choice choice;
		ok = cptx_gemm_auto(&opts[i], &p, 132, &choice, 1, &err) && cptx_gemm_build(m, &choice.opt, &err);
	}
	ok = ok && cptx_module_freeze(m);
	whole(m);
	cptx_module_destroy(m);
	return ok;
}

static bool laid_out(void)
{
	cptx_tile t = { .rows = 64, .cols = 64, .elem = { .bits = 16 }, .swizzle = CPTX_SWIZZLE_128B };
	cptx_lines l;
	cptx_lane_lines a;
	cptx_pipe p;
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_val start =
		cptx_mov(k, cptx_shared_named(k, CPTX_B8, cptx_tile_bytes(&t), cptx_tile_align(&t), "tile"), .type = CPTX_U32);

	cptx_tile_lines(&t, &(cptx_frag){ .kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 16, .bits = 16 }, 0, 0, &l, &err);
	cptx_lane_lines_begin(k, &a, &l, cptx_laneid(k), start);
	cptx_val lines = cptx_lane_lines_at(k, &a, 0, 0, 16);
	cptx_lines_load(k, &l, 0, lines, cptx_regs(k, CPTX_B32, 4));
	cptx_tile_word(k, &t, CPTX_DESC_WGMMA, start);
	cptx_pipe_new(k, &p, .stages = 3);
	cptx_pipe_at here = cptx_pipe_producer(k, &p);
	cptx_pipe_wait_empty(k, &p, &here);
	cptx_pipe_next(k, &p, &here);
	bool ok = cptx_module_freeze(m);
	whole(m);
	cptx_module_destroy(m);
	return ok;
}

/* ---- each of them, over and over ---- */

static const struct {
	const char *name;
	bool (*fn)(void);
} scenes[] = {
	{ "edited", edited },   { "as C", as_c },     { "inspected", inspected }, { "emulated", emulated },
	{ "tensors", tensors }, { "cached", cached }, { "GEMMs", gemms },         { "laid out", laid_out },
};

static bool attempt(size_t i, unsigned long n)
{
	memset(&err, 0, sizeof err);
	heap.n = 0, heap.fail_at = n, heap.live = 0;
	heap.counts = true;
	bool ok = scenes[i].fn();
	heap.counts = false;
	ck_assert_msg(ok != (err.code != CPTX_OK), "%s, allocation %lu: %s, and %s: %s", scenes[i].name, n,
	              ok ? "done" : "not done", cptx_code_name(err.code), err.text);
	ck_assert_msg(ok || (n && (err.code == CPTX_E_MEMORY || strstr(err.text, "out-of-host-memory") ||
	                           strstr(err.text, "the module is NULL"))),
	              "%s, allocation %lu: %s: %s", scenes[i].name, n, cptx_code_name(err.code), err.text);
	ck_assert_msg(heap.live == 0, "%s, allocation %lu: %ld blocks are left", scenes[i].name, n, heap.live);
	return heap.n < n;
}

START_TEST(fails)
{
	unsigned long n;

	if (!COUNTED) {
		skip("an allocator that can be made to fail (glibc, no sanitizer)");
		return;
	}
	heap.counts = false;
	scenes[_i].fn(); /* what the C library keeps, it has now */
	attempt((size_t)_i, 0);
	for (int forever = 0; forever < 2; forever++) {
		heap.forever = forever;
		for (n = 1; !attempt((size_t)_i, n);)
			n++;
	}
	printf("%s: %lu allocations failed, one at a time\n", scenes[_i].name, n - 1);
	ck_assert_uint_gt(n, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("no memory");
	TCase *c = tcase_create("no memory");

	if (!mkdtemp(folder))
		return 1;
	tcase_add_loop_test(c, fails, 0, sizeof scenes / sizeof *scenes);
	suite_add_tcase(s, c);
	int rc = test_main("no_memory", s);
	rmdir(folder);
	return rc;
}
