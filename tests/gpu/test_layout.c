/* SPDX-License-Identifier: MIT */
/*
 * Layouts against hardware: what <cptx/layout.h> says of fragments, descriptors and tensor maps is what a GPU does. Operands
 * of small integers are laid out by it on the host, an instruction multiplies them, and every element of the product is
 * compared. What the emulator can run, it runs too.
 */
#include "../runtime/harness.h"

#include <cptx/cptx.h>
#include <cptx/device.h>

#include <stdlib.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static cptx_error err;

/* ---- numbers ---- */

enum number { F16, BF16, TF32, F32, F64, S8, S4, E4M3, B1, S32 };
static const uint8_t bits_of[] = { 16, 16, 32, 32, 64, 8, 4, 8, 1, 32 };

static uint64_t seed;
static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

/* Bits of a floating point format with that many of exponent and mantissa, of a small integer. */
static uint64_t float_bits(int v, unsigned exponent, unsigned mantissa)
{
	unsigned size = v < 0 ? (unsigned)-v : (unsigned)v, top = 0;

	if (!v)
		return 0;
	while (size >> (top + 1))
		top++;
	uint64_t fraction = ((uint64_t)size << mantissa >> top) & (((uint64_t)1 << mantissa) - 1);
	return (uint64_t)(v < 0) << (exponent + mantissa) | (uint64_t)(top + (1u << (exponent - 1)) - 1) << mantissa | fraction;
}

static uint64_t encode(enum number n, int v)
{
	switch (n) {
	case F16: return float_bits(v, 5, 10);
	case BF16: return float_bits(v, 8, 7);
	case TF32:
	case F32: return float_bits(v, 8, 23);
	case F64: return float_bits(v, 11, 52);
	case E4M3: return float_bits(v, 4, 3);
	default: return (uint64_t)(int64_t)v & (((uint64_t)1 << bits_of[n]) - 1);
	}
}

static int small(enum number n) { return n == B1 ? (int)random_below(2) : (int)random_below(5) - 2; }

/* Sets `bits` bits of an array of bytes, or reads them. */
static void put_bits(uint8_t *p, size_t at, unsigned bits, uint64_t v)
{
	for (unsigned i = 0; i < bits; i++, at++)
		p[at / 8] = (uint8_t)((p[at / 8] & ~(1u << at % 8)) | (unsigned)(v >> i & 1) << at % 8);
}
static uint64_t get_bits(const uint8_t *p, size_t at, unsigned bits)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < bits; i++, at++)
		v |= (uint64_t)(p[at / 8] >> at % 8 & 1) << i;
	return v;
}

/* ---- operands in registers: word r of lane l is number r * lanes + l ---- */

enum { MOST_BYTES = 128 * 64 * 8 };

typedef struct words {
	cptx_frag_map map;
	uint8_t bytes[MOST_BYTES];
} words;

static void lay_out(words *w, cptx_frag f)
{
	memset(w, 0, sizeof *w);
	ck_assert_msg(cptx_frag_resolve(&f, &w->map, &err), "%s", err.text);
}

static size_t bit_at(const words *w, cptx_place p)
{
	return (size_t)(p.reg * w->map.lanes + p.lane) * w->map.reg_bits + (size_t)(w->map.first + p.slot) * w->map.bits;
}

static void set(words *w, uint32_t row, uint32_t col, uint64_t v)
{
	cptx_place p;
	ck_assert(cptx_frag_place(&w->map, (cptx_cell){ (uint16_t)row, (uint16_t)col }, &p));
	put_bits(w->bytes, bit_at(w, p), w->map.bits, v);
}
static uint64_t get(const words *w, uint32_t row, uint32_t col)
{
	cptx_place p;
	ck_assert(cptx_frag_place(&w->map, (cptx_cell){ (uint16_t)row, (uint16_t)col }, &p));
	return get_bits(w->bytes, bit_at(w, p), w->map.bits);
}
static size_t size_of(const words *w) { return (size_t)w->map.lanes * w->map.regs * w->map.reg_bits / 8; }

/* Registers of a lane, loaded from such words, or stored there. */
static cptx_val at_lane(cptx_kernel *k, cptx_val words_at, cptx_val lane, const cptx_frag_map *m)
{
	return cptx_add(k, words_at, cptx_mul_wide(k, lane, m->reg_bits / 8));
}
static cptx_val load_words(cptx_kernel *k, const char *name, cptx_val lane, const cptx_frag_map *m)
{
	cptx_val at = at_lane(k, cptx_param(k, CPTX_PTR, name), lane, m);
	enum cptx_type type = m->reg_bits == 64 ? CPTX_F64 : CPTX_B32;
	cptx_val regs = cptx_regs(k, type, m->regs);

	for (uint32_t r = 0; r < m->regs; r++)
		cptx_ld(k, cptx_offset(at, (int64_t)r * m->lanes * m->reg_bits / 8), .space = CPTX_GLOBAL, .type = type,
		        .into = cptx_elem(regs, r));
	return regs;
}
static void store_words(cptx_kernel *k, const char *name, cptx_val lane, const cptx_frag_map *m, cptx_val regs)
{
	cptx_val at = at_lane(k, cptx_param(k, CPTX_PTR, name), lane, m);

	for (uint32_t r = 0; r < m->regs; r++)
		cptx_st(k, cptx_offset(at, (int64_t)r * m->lanes * m->reg_bits / 8), cptx_elem(regs, r), .space = CPTX_GLOBAL);
}

/* Runs the module's kernel with buffers as arguments; the last is read back.  False: the device lacks an instruction. */
static bool run(cptx_device *dev, cptx_module *m, uint32_t threads, void *const *buffer, const size_t *size, size_t n,
                const cptx_arg *more)
{
	uint64_t at[6];
	cptx_arg args[8];
	bool lacks = false;

	ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	if (!p) { /* older targets, and what is not emulated yet */
		lacks = err.code == CPTX_E_TARGET;
		ck_assert_msg(lacks, "%s", err.text);
		memset(&err, 0, sizeof err);
	} else {
		for (size_t i = 0; i < n; i++) {
			at[i] = cptx_mem_alloc(dev, size[i], &err);
			cptx_mem_write(dev, at[i], buffer[i], size[i], &err);
			args[i] = CPTX_ARG(at[i]);
		}
		if (more)
			args[n] = more[0];
		cptx_launch_once(
			p, NULL, &(cptx_launch_opt){ .grid = { 1 }, .block = { threads }, .args = args, .nargs = n + (more != NULL) },
			NULL, &err);
		cptx_mem_read(dev, buffer[n - 1], at[n - 1], size[n - 1], &err);
		lacks = strstr(err.text, "the emulator does not execute") != NULL;
		ck_assert_msg(err.code == CPTX_OK || lacks, "%s", err.text);
		for (size_t i = 0; i < n; i++)
			cptx_mem_free(dev, at[i]);
		if (lacks)
			memset(&err, 0, sizeof err);
	}
	cptx_program_destroy(p);
	cptx_module_destroy(m);
	return !lacks;
}

/* ---- mma ---- */

typedef struct mma_case {
	const char *text; /* without operands */
	uint16_t m, n, k;
	enum number ab, cd;
	bool sparse, trans_a, trans_b;
} mma_case;

static int host_a[128 * 256], host_b[256 * 64];

/* A with half of its elements zero, and the metadata that says which: chunks of 4 with 2 (32 bits: 2 with 1; 4 bits: pairs).
 */
static void sparse_a(const mma_case *c, words *a, words *meta)
{
	uint32_t unit = c->ab == S4 ? 2 : 1, chunk = c->ab == TF32 ? 2 : 4, kept = chunk / 2;

	for (uint32_t row = 0; row < c->m; row++)
		for (uint32_t q = 0; q < c->k / (chunk * unit); q++) {
			uint32_t first = random_below(chunk - (kept - 1)),
					 second = first + 1 + (kept > 1 ? random_below(chunk - 1 - first) : 0);
			for (uint32_t j = 0; j < kept; j++) {
				uint32_t index = j ? second : first, packed = q * kept + j;
				for (uint32_t u = 0; u < unit; u++) {
					int v = small(c->ab);
					host_a[row * c->k + (q * chunk + index) * unit + u] = v;
					set(a, row, packed * unit + u, encode(c->ab, v));
				}
				set(meta, row, packed, c->ab == TF32 ? (index ? 0xe : 0x4) : index);
			}
		}
}

static bool run_mma(cptx_device *dev, const mma_case *c, uint8_t selector)
{
	static words a, b, d, meta;
	cptx_frag f = { .m = c->m, .n = c->n, .k = c->k, .bits = bits_of[c->ab], .sparse = c->sparse, .select = selector };
	cptx_frag fb = f, fd = { .kind = CPTX_FRAG_MMA_C, .m = c->m, .n = c->n, .k = c->k, .bits = bits_of[c->cd] };
	bool quads = c->m == 8 && c->k == 4 && c->ab == F16; /* four products */
	uint32_t copies = quads ? 4 : 1;

	f.kind = CPTX_FRAG_MMA_A, f.trans = c->trans_a, fb.kind = CPTX_FRAG_MMA_B, fb.trans = c->trans_b;
	memset(host_a, 0, sizeof host_a);
	lay_out(&a, f), lay_out(&b, fb), lay_out(&d, fd);
	f.kind = CPTX_FRAG_MMA_META;
	if (c->sparse)
		lay_out(&meta, f), sparse_a(c, &a, &meta);
	for (uint32_t row = 0; row < a.map.rows && !c->sparse; row++)
		for (uint32_t k = 0; k < c->k; k++)
			set(&a, row, k, encode(c->ab, host_a[row * c->k + k] = small(c->ab)));
	for (uint32_t k = 0; k < c->k; k++)
		for (uint32_t col = 0; col < b.map.cols; col++)
			set(&b, k, col, encode(c->ab, host_b[k * b.map.cols + col] = small(c->ab)));

	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_val lane = cptx_tid_x(k), ra = load_words(k, "a", lane, &a.map), rb = load_words(k, "b", lane, &b.map);
	enum cptx_type type = c->cd == F32 ? CPTX_F32 : c->cd == F64 ? CPTX_F64 : c->cd == S32 ? CPTX_S32 : CPTX_B32;
	cptx_val rm = c->sparse ? load_words(k, "meta", lane, &meta.map) : cptx_imm(0), rd = cptx_regs(k, type, d.map.regs);
	char text[200];
	for (uint16_t r = 0; r < d.map.regs; r++)
		cptx_mov(k, c->cd == F32 || c->cd == F64 ? cptx_immf(0) : cptx_imm(0), .into = cptx_elem(rd, r));
	snprintf(text, sizeof text, c->sparse ? "%s {}, {}, {}, {}, {}, %u;" : "%s {}, {}, {}, {};", c->text, selector);
	if (c->sparse)
		cptx_asm(k, text, rd, ra, rb, rd, cptx_elem(rm, 0));
	else
		cptx_asm(k, text, rd, ra, rb, rd);
	store_words(k, "d", lane, &d.map, rd);
	void *const buffers[] = { a.bytes, b.bytes, c->sparse ? meta.bytes : d.bytes, d.bytes };
	const size_t sizes[] = { size_of(&a), size_of(&b), c->sparse ? size_of(&meta) : size_of(&d), size_of(&d) };
	if (!run(dev, m, 32, buffers, sizes, c->sparse ? 4 : 3, NULL))
		return false;
	for (uint32_t row = 0; row < d.map.rows; row++)
		for (uint32_t col = 0; col < d.map.cols; col++) {
			int sum = 0;
			uint32_t bcol = copies > 1 ? row / 8 * 8 + col : col;
			for (uint32_t i = 0; i < c->k; i++)
				sum += host_a[row * c->k + i] * host_b[i * b.map.cols + bcol];
			uint64_t want = c->cd == S32 ? (uint32_t)sum : encode(c->cd, sum), got = get(&d, row, col);
			if (c->cd != S32 && !sum)
				got &= ((uint64_t)1 << (bits_of[c->cd] - 1)) - 1; /* -0 */
			ck_assert_msg(got == want, "%s selector %u: row %u column %u is 0x%llx, not 0x%llx (%d)", c->text, selector, row,
			              col, (unsigned long long)got, (unsigned long long)want, sum);
		}
	return true;
}

#define MMA(shape, d, a, c) "mma.sync.aligned." shape ".row.col." d "." a "." a "." c
#define SP(shape, d, a, c) "mma.sp::ordered_metadata.sync.aligned." shape ".row.col." d "." a "." a "." c

static const mma_case mma_cases[] = {
	{ MMA("m16n8k8", "f32", "f16", "f32"), 16, 8, 8, F16, F32, false, false, false },
	{ MMA("m16n8k16", "f32", "f16", "f32"), 16, 8, 16, F16, F32, false, false, false },
	{ MMA("m16n8k16", "f16", "f16", "f16"), 16, 8, 16, F16, F16, false, false, false },
	{ MMA("m16n8k8", "f32", "bf16", "f32"), 16, 8, 8, BF16, F32, false, false, false },
	{ MMA("m16n8k16", "f32", "bf16", "f32"), 16, 8, 16, BF16, F32, false, false, false },
	{ MMA("m16n8k4", "f32", "tf32", "f32"), 16, 8, 4, TF32, F32, false, false, false },
	{ MMA("m16n8k8", "f32", "tf32", "f32"), 16, 8, 8, TF32, F32, false, false, false },
	{ MMA("m8n8k16", "s32", "s8", "s32"), 8, 8, 16, S8, S32, false, false, false },
	{ MMA("m16n8k16", "s32", "s8", "s32"), 16, 8, 16, S8, S32, false, false, false },
	{ MMA("m16n8k32", "s32", "s8", "s32"), 16, 8, 32, S8, S32, false, false, false },
	{ MMA("m8n8k32", "s32", "s4", "s32"), 8, 8, 32, S4, S32, false, false, false },
	{ MMA("m16n8k32", "s32", "s4", "s32"), 16, 8, 32, S4, S32, false, false, false },
	{ MMA("m16n8k64", "s32", "s4", "s32"), 16, 8, 64, S4, S32, false, false, false },
	{ MMA("m16n8k32", "f32", "e4m3", "f32"), 16, 8, 32, E4M3, F32, false, false, false },
	{ MMA("m8n8k128", "s32", "b1", "s32") ".and.popc", 8, 8, 128, B1, S32, false, false, false },
	{ MMA("m16n8k128", "s32", "b1", "s32") ".and.popc", 16, 8, 128, B1, S32, false, false, false },
	{ MMA("m16n8k256", "s32", "b1", "s32") ".and.popc", 16, 8, 256, B1, S32, false, false, false },
	{ MMA("m8n8k4", "f64", "f64", "f64"), 8, 8, 4, F64, F64, false, false, false },
	{ MMA("m16n8k4", "f64", "f64", "f64"), 16, 8, 4, F64, F64, false, false, false },
	{ MMA("m16n8k8", "f64", "f64", "f64"), 16, 8, 8, F64, F64, false, false, false },
	{ MMA("m16n8k16", "f64", "f64", "f64"), 16, 8, 16, F64, F64, false, false, false },
	{ "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 8, 8, 4, F16, F32, false, false, false },
	{ "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32", 8, 8, 4, F16, F32, false, true, true },
	{ "mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16", 8, 8, 4, F16, F16, false, false, true },
	{ "mma.sync.aligned.m8n8k4.col.col.f16.f16.f16.f16", 8, 8, 4, F16, F16, false, true, false },
	{ SP("m16n8k16", "f32", "f16", "f32"), 16, 8, 16, F16, F32, true, false, false },
	{ SP("m16n8k32", "f32", "f16", "f32"), 16, 8, 32, F16, F32, true, false, false },
	{ SP("m16n8k8", "f32", "tf32", "f32"), 16, 8, 8, TF32, F32, true, false, false },
	{ SP("m16n8k16", "f32", "tf32", "f32"), 16, 8, 16, TF32, F32, true, false, false },
	{ SP("m16n8k32", "s32", "s8", "s32"), 16, 8, 32, S8, S32, true, false, false },
	{ SP("m16n8k64", "s32", "s8", "s32"), 16, 8, 64, S8, S32, true, false, false },
	{ SP("m16n8k64", "s32", "s4", "s32"), 16, 8, 64, S4, S32, true, false, false },
	{ SP("m16n8k128", "s32", "s4", "s32"), 16, 8, 128, S4, S32, true, false, false },
	{ SP("m16n8k64", "f32", "e4m3", "f32"), 16, 8, 64, E4M3, F32, true, false, false },
};

static uint32_t selectors_of(const mma_case *c)
{
	cptx_frag f = { .kind = CPTX_FRAG_MMA_META, .m = c->m, .n = c->n, .k = c->k, .bits = bits_of[c->ab] };
	cptx_frag_map map;
	uint32_t n = 0;

	for (; n < 4 && (f.select = (uint8_t)n, cptx_frag_resolve(&f, &map, NULL)); n++)
		continue;
	return c->sparse ? n : 1;
}

static void all_mma(cptx_device *dev)
{
	size_t ran = 0;

	for (size_t i = 0; i < ARRAY_LEN(mma_cases); i++)
		for (uint32_t s = 0; s < selectors_of(&mma_cases[i]); s++)
			ran += run_mma(dev, &mma_cases[i], (uint8_t)s);
	printf("mma on %s: %zu forms\n", cptx_device_get_info(dev)->name, ran);
	ck_assert_uint_gt(ran, 0);
}

static const char *const devices[] = { "cuda", "emu:sm_90a" };
static const char *name;
static char why_not[CPTX_ERROR_TEXT];
static cptx_device *dev;

static bool open_device(void)
{
	memset(&err, 0, sizeof err);
	seed = 1;
	dev = cptx_device_open(name, &err);
	if (dev)
		return true;
	ck_assert_msg(err.code == CPTX_E_NO_DRIVER || err.code == CPTX_E_NO_DEVICE, "%s", err.text);
	memcpy(why_not, err.text, sizeof why_not);
	return false;
}

START_TEST(mma_fragments)
{
	name = devices[_i];
	if (!open_device())
		SKIP("%s: %s", name, why_not);
	all_mma(dev);
	cptx_device_close(dev);
}
END_TEST

#include "layout_async.h"

int main(void)
{
	Suite *s = suite_create("layout");
	TCase *t = tcase_create("layout");

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, mma_fragments, 0, (int)ARRAY_LEN(devices));
	tcase_add_loop_test(t, wgmma_descriptors, 0, (int)ARRAY_LEN(devices));
	tcase_add_loop_test(t, wgmma_sparse, 0, (int)ARRAY_LEN(devices));
	tcase_add_loop_test(t, tensor_maps, 0, (int)ARRAY_LEN(devices));
	suite_add_tcase(s, t);
	return test_main("gpu_layout", s);
}
