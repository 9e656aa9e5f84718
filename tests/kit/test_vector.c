/* SPDX-License-Identifier: MIT */
/* cptx/vector.h: rows of every type, length and alignment, in registers and shared memory: each element, and none besides.
 */
#include "on_emu.h"
#include "reference/number.h"

#include <cptx/cptx.h>
#include <cptx/vector.h>

#include <math.h>

enum { ROWS = 3, MOST_BYTES = 1 << 16, GUARD = 0xa5 };

typedef struct row_case {
	enum cptx_type type, weights, out; /* weights and out 0: type */
	uint32_t n, threads, bytes, align;
	uint32_t off; /* elements that all rows begin behind an aligned address */
	bool counted, whole, any;
	enum cptx_row_place place;
} row_case;

static uint8_t x[MOST_BYTES], w[MOST_BYTES], y[MOST_BYTES];
static uint32_t wrong_fills[1];

static uint32_t size_of(enum cptx_type t) { return cptx_type_bits(t) / 8; }

static void put(uint8_t *to, enum cptx_type type, uint64_t i, int v)
{
	const uint32_t b = (uint32_t)number_bits(type, v), n = size_of(type);

	memcpy(to + i * n, &b, n);
}

static int x_of(uint64_t i) { return (int)(i * 7 % 9) - 4; }
static int w_of(uint64_t i) { return (int)(i * 5 % 5) - 2; }
static float fill_of(enum cptx_type t) { return t == CPTX_E4M3 ? 0.0f : t == CPTX_F32 ? -INFINITY : 1.0f; }

/* y = 2 x + w of a row in each CTA, and how many registers outside of the row do not have the fill. */
static cptx_module *build(const row_case *c)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { c->threads });
	cptx_val from = cptx_param(k, CPTX_PTR, "x"), weights = cptx_param(k, CPTX_PTR, "w"), to = cptx_param(k, CPTX_PTR, "y");
	cptx_val wrong = cptx_param(k, CPTX_PTR, "wrong"), n = cptx_param(k, CPTX_U32, "n"), cta = cptx_ctaid_x(k);
	const enum cptx_type of_w = c->weights ? c->weights : c->type, of_y = c->out ? c->out : c->type;
	cptx_row r, other;
	cptx_row_at it;

	from = cptx_add(k, from, cptx_mul_wide(k, cptx_mul(k, cta, n, .mode = CPTX_LO), size_of(c->type)));
	to = cptx_add(k, to, cptx_mul_wide(k, cptx_mul(k, cta, n, .mode = CPTX_LO), size_of(of_y)));
	cptx_row_new(k, &r, .type = c->type, .n = c->counted ? 0 : c->n, .count = c->counted ? n : CPTX_NONE_,
	             .most = c->counted ? c->n + 5 : 0, .whole = c->whole, .threads = c->threads, .bytes = c->bytes,
	             .align = c->align, .any = c->any, .place = c->place);
	if (c->any)
		cptx_row_begin(k, &r, from);
	cptx_row_like(k, &r, &other);
	cptx_row_load(k, &r, from, .fill = fill_of(c->type), .cop = CPTX_CS);
	CPTX_ROW_EACH(k, &r, &it)
	{
		cptx_val column = cptx_as(cptx_row_column(k, &r, &it), CPTX_U32), outside = cptx_setp(k, column, n, .cmp = CPTX_GE);
		cptx_val inside = cptx_row_inside(k, &r, &it), told = cptx_reg(k, CPTX_PRED);
		cptx_setp(k, n, n, .cmp = CPTX_NE, .into = told); /* outside of the row, as cptx_row_inside says it */
		if (inside.kind != CPTX_VAL_NONE)
			cptx_not(k, inside, .into = told);
		CPTX_IF(k, cptx_xor(k, told, outside))
			cptx_atom(k, wrong, 1, .op = CPTX_ADD, .space = CPTX_GLOBAL, .type = CPTX_U32, .into = cptx_reg(k, CPTX_U32));
		CPTX_IF(k, outside)
			cptx_atom(k, wrong, 1, .op = CPTX_ADD, .space = CPTX_GLOBAL, .type = CPTX_U32, .into = cptx_reg(k, CPTX_U32),
			          .when = cptx_setp(k, it.v,
			                            fill_of(c->type) == 0  ? cptx_immf(0)
			                            : fill_of(c->type) > 0 ? cptx_immf(1)
			                                                   : cptx_f32_bits(0xff800000),
			                            .cmp = CPTX_NE));
	}
	cptx_row_load(k, &other, weights, .type = of_w, .align = c->any || c->off % 4 ? 1 : 0, .nc = true);
	if (c->place == CPTX_ROW_REGISTERS) {
		CPTX_ROW_EACH(k, &r, &it)
		cptx_fma(k, it.v, 2.0f, cptx_elem(other.v, it.i), .rnd = CPTX_RN, .into = it.v);
	} else { /* in both rows at once */
		cptx_row_at too;
		bool more = cptx_row_each_(k, CPTX_HERE, &other, &too, false);
		CPTX_ROW_EACH(k, &r, &it)
		{
			cptx_fma(k, it.v, 2.0f, too.v, .rnd = CPTX_RN, .into = it.v);
			more = cptx_row_each_(k, CPTX_HERE, &other, &too, true);
		}
		ck_assert(!more);
	}
	cptx_row_store(k, &r, to, .type = of_y, .align = c->any && of_y != c->type ? 1 : 0);
	ck_assert_msg(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	return m;
}

static void try_case(const row_case *c, const char *target)
{
	const enum cptx_type of_w = c->weights ? c->weights : c->type, of_y = c->out ? c->out : c->type;
	const uint64_t first = (uint64_t)c->off * size_of(of_y), bytes = (uint64_t)ROWS * c->n * size_of(of_y);
	static uint8_t want[MOST_BYTES];
	cptx_module *m = build(c);
	emu_run r = { .target = target,
		          .seed = c->n,
		          .grid = ROWS,
		          .buffer = { { .host = x, .bytes = sizeof x },
		                      { .host = w, .bytes = sizeof w },
		                      { .host = y, .bytes = sizeof y },
		                      { .host = wrong_fills, .bytes = sizeof wrong_fills } },
		          .offset = { c->off * size_of(c->type), c->off * size_of(of_w), first } };

	memset(x, 0x11, sizeof x), memset(w, 0x11, sizeof w);
	memset(y, GUARD, sizeof y), memset(want, GUARD, sizeof want);
	wrong_fills[0] = 0;
	for (uint64_t i = 0; i < (uint64_t)ROWS * c->n; i++) {
		put(x, c->type, c->off + i, x_of(i));
		put(want, of_y, c->off + i, 2 * x_of(i) + w_of(i % c->n));
	}
	for (uint32_t i = 0; i < c->n; i++)
		put(w, of_w, c->off + i, w_of(i));
	SURE(first + bytes < sizeof y - 64, "too much");
	emu_launch(m, &r, c->n);
	for (uint64_t i = 0; i < sizeof y; i++)
		SURE(y[i] == want[i], "%s: .%s, n %u, %u threads, off %u, align %u: byte %lld of the rows is 0x%x, not 0x%x", target,
		     cptx_type_name(c->type), c->n, c->threads, c->off, c->align, (long long)(i - first), y[i], want[i]);
	SURE(!wrong_fills[0], "%s: .%s, n %u: %u registers outside of the row do not have the fill", target,
	     cptx_type_name(c->type), c->n, wrong_fills[0]);
	cptx_module_destroy(m);
}

static const char *const targets[] = { "sm_80", "sm_90a", "sm_100a", "sm_120a" };
static const enum cptx_type types[] = { CPTX_F32, CPTX_BF16, CPTX_F16, CPTX_E4M3 };
static const uint32_t lengths[] = { 1, 7, 64, 129, 256, 516, 1000, 1023 };

/* A target that has the type, another one each time. */
static const char *target_of(enum cptx_type type, unsigned i) { return targets[type == CPTX_E4M3 ? 1 + i % 3 : i % 4]; }

/* Aligned as n says; the same where the kernel knows n only when it runs; in shared memory. */
static void try_lengths(row_case c, uint32_t step)
{
	for (unsigned t = 0; t < 4; t++)
		for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i += step) {
			c.type = types[t], c.n = lengths[i];
			if (c.counted)
				c.align = c.n & (~c.n + 1);
			try_case(&c, target_of(c.type, i));
		}
}

START_TEST(constant_length)
{
	try_lengths((row_case){ .threads = 32 }, 1);
	try_lengths((row_case){ .threads = 96 }, 1);
}
END_TEST

START_TEST(length_of_a_launch)
{
	try_lengths((row_case){ .threads = 64, .counted = true }, 1);
	/* whole vectors */
	for (unsigned t = 0; t < 4; t++)
		try_case(&(row_case){ .type = types[t], .n = 320, .threads = 64, .counted = true, .whole = true },
		         target_of(types[t], t));
}
END_TEST

START_TEST(any_alignment)
{
	for (uint32_t off = 0; off < 17; off += 1 + off / 5) {
		try_lengths((row_case){ .threads = 32, .any = true, .off = off }, 3);
		try_case(&(row_case){ .type = CPTX_BF16, .n = 301, .threads = 64, .any = true, .counted = true, .off = off },
		         "sm_90a");
		try_case(&(row_case){ .type = CPTX_BF16, .n = 301, .threads = 32, .align = 1, .off = off }, "sm_80");
	}
}
END_TEST

START_TEST(in_shared_memory)
{
	try_lengths((row_case){ .threads = 64, .place = CPTX_ROW_SHARED }, 1);
	try_lengths((row_case){ .threads = 32, .place = CPTX_ROW_SHARED, .any = true, .off = 3 }, 2);
}
END_TEST

START_TEST(other_types)
{
	for (unsigned a = 0; a < 4; a++)
		for (unsigned b = 0; b < 4; b++) {
			try_case(&(row_case){ .type = types[a], .weights = types[b], .out = types[b], .n = 516, .threads = 64 },
			         targets[1 + b % 3]);
			try_case(
				&(row_case){
					.type = types[a], .weights = types[b], .out = types[b], .n = 77, .threads = 32, .any = true, .off = 1 },
				targets[1 + b % 3]);
		}
	/* 32 bytes at once */
	for (unsigned t = 0; t < 4; t++)
		for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
			try_case(&(row_case){ .type = types[t], .n = lengths[i], .threads = 32, .bytes = 32 }, targets[2]);
}
END_TEST

START_TEST(errors)
{
	cptx_module *m;
	cptx_kernel *k;
	cptx_row r;

	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F64, .n = 8, .threads = 32);
	EMU_FAILS(m, "a row of .f64; rows are of .f32, .bf16, .f16 or .e4m3");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .threads = 32);
	EMU_FAILS(m, "either .n elements, a number, or .count");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .count = cptx_tid_x(k), .threads = 32);
	EMU_FAILS(m, "say .most");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 8);
	EMU_FAILS(m, "a row of 0 threads");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 8, .threads = 32, .bytes = 8);
	EMU_FAILS(m, "vectors of 8 bytes; they have 16 or 32");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 8, .threads = 32, .align = 3);
	EMU_FAILS(m, "rows at multiples of 3 elements");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 1u << 30, .threads = 32);
	EMU_FAILS(m, "33554432 elements of a row for each of 32 threads; there may be 4096");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 64, .threads = 32, .any = true);
	cptx_row_load(k, &r, cptx_reg(k, CPTX_U64));
	EMU_FAILS(m, "accessed before cptx_row_begin");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 64, .threads = 32);
	cptx_row_begin(k, &r, cptx_reg(k, CPTX_U64));
	EMU_FAILS(m, "say .any of cptx_row_new");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_E4M3, .n = 64, .threads = 32);
	cptx_row_load(k, &r, cptx_reg(k, CPTX_U64), .fill = -INFINITY);
	EMU_FAILS(m, "a fill of -inf, which .e4m3 does not have");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 64, .most = 64, .threads = 32);
	EMU_FAILS(m, "a row of .n elements with .most");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 64, .whole = true, .threads = 32);
	EMU_FAILS(m, "a row of .n elements with .whole");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_BF16, .n = 64, .threads = 32);
	cptx_row_load(k, &r, cptx_reg(k, CPTX_U64), .unset = true);
	EMU_FAILS(m, "a load of .bf16 with .unset");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 64, .threads = 32);
	cptx_row_store(k, &r, cptx_reg(k, CPTX_U64), .nc = true);
	EMU_FAILS(m, "a store of a row with .nc, which is for loads");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 64, .threads = 32);
	cptx_row_store(k, &r, cptx_reg(k, CPTX_U64), .unset = true);
	EMU_FAILS(m, "a store of a row with .unset, which is for loads");
	k = emu_begin(&m, 0);
	cptx_row_new(k, &r, .type = CPTX_F32, .n = 64, .threads = 32);
	cptx_row_store(k, &r, cptx_reg(k, CPTX_U64), .fill = 1);
	EMU_FAILS(m, "a store of a row with .fill, which is for loads");
	k = emu_begin(&m, 0);
	memset(&r, 0, sizeof r);
	cptx_row_store(k, &r, cptx_reg(k, CPTX_U64));
	EMU_FAILS(m, "a row that cptx_row_new did not make");
	/* what a target lacks is told with the user's line */
	cptx_error err = { 0 };
	row_case c = { .type = CPTX_F32, .n = 64, .threads = 32, .bytes = 32 };
	m = build(&c);
	ck_assert_ptr_null(cptx_emit(m, "sm_90a", NULL, &err));
	ck_assert_msg(strstr(err.text, "not available on sm_90a") && strstr(err.text, "test_vector.c:"), "%s", err.text);
	cptx_module_destroy(m);
}
END_TEST

START_TEST(assembles)
{
	if (!test_ptxas()) {
		skip("ptxas, to judge rows");
		return;
	}
	for (unsigned t = 0; t < 4; t++)
		for (unsigned kind = 0; kind < 4; kind++) {
			row_case c = { .type = types[t],
				           .n = 1000 + kind % 2,
				           .threads = 64,
				           .any = kind == 1,
				           .counted = kind == 2,
				           .place = kind == 3 ? CPTX_ROW_SHARED : CPTX_ROW_REGISTERS };
			cptx_module *m = build(&c);
			free(emu_assembles(m, target_of(c.type, t + kind)));
			cptx_module_destroy(m);
		}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "vector");

	tcase_add_test(c, constant_length);
	tcase_add_test(c, length_of_a_launch);
	tcase_add_test(c, any_alignment);
	tcase_add_test(c, in_shared_memory);
	tcase_add_test(c, other_types);
	tcase_add_test(c, errors);
	tcase_add_test(c, assembles);
	return test_main("kit vector", s);
}
