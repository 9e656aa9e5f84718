/* SPDX-License-Identifier: MIT */
/* Code for addresses of lanes: what it computes, for every lane, and how many instructions that takes. */
#include "../test.h"

#include <cptx/cptx.h>
#include <cptx/layout.h>

static cptx_module *m;
static cptx_kernel *k;
static cptx_val lane, start;

static void begin(void)
{
	cptx_module_destroy(m);
	m = cptx_module_new(NULL);
	k = cptx_kernel_begin(m, "k");
	lane = cptx_param(k, CPTX_U32, "lane");
	start = cptx_param(k, CPTX_U32, "start");
}

/* ---- runs the few instructions that may appear, on %r registers ---- */

typedef struct run {
	uint32_t r[64], lane, start;
	uint32_t stored[64]; /* addresses of st.shared and ldmatrix, in order */
	uint32_t nstored, count /* of what computes */;
} run;

static uint32_t operand(const run *x, const char **p)
{
	while (**p == ' ' || **p == ',' || **p == '[')
		++*p;
	bool is_reg = !strncmp(*p, "%r", 2);
	char *end;
	uint32_t v = (uint32_t)strtoul(*p + (is_reg ? 2 : 0), &end, 0);
	*p = end;
	return is_reg ? x->r[v] : v;
}

static void step(run *x, const char *line)
{
	char op[32];
	int n = 0;

	line += strspn(line, "\t ");
	if (sscanf(line, "%31[a-z0-9_.]%n", op, &n) != 1)
		return;
	const char *p = line + n;
	if (!strncmp(op, "st.shared", 9) || !strncmp(op, "ldmatrix", 8)) {
		p = strchr(line, '[');
		uint32_t at = operand(x, &p);
		if (*p == '+')
			at += (uint32_t)strtol(p + 1, NULL, 0);
		x->stored[x->nstored++] = at;
		return;
	}
	if (!strncmp(op, "ld.param", 8)) {
		x->r[strtoul(strchr(p, '%') + 2, NULL, 10)] = strstr(p, "lane") ? x->lane : x->start;
		return;
	}
	if (*line == '.' || !strncmp(op, "ret", 3))
		return;
	p = strchr(p, '%');
	ck_assert_msg(p != NULL, "%s", line);
	uint32_t d = (uint32_t)strtoul(p + 2, (char **)&p, 10), a = operand(x, &p), b = 0, c = 0;
	if (strncmp(op, "mov", 3) != 0)
		b = operand(x, &p);
	if (!strncmp(op, "mad.lo", 6))
		c = operand(x, &p);
	x->count++;
	if (!strncmp(op, "and.", 4))
		x->r[d] = a & b;
	else if (!strncmp(op, "xor.", 4))
		x->r[d] = a ^ b;
	else if (!strncmp(op, "shr.", 4))
		x->r[d] = a >> b;
	else if (!strncmp(op, "add.", 4))
		x->r[d] = a + b;
	else if (!strncmp(op, "mul.lo", 6) || !strncmp(op, "mad.lo", 6))
		x->r[d] = a * b + c;
	else if (!strncmp(op, "mov", 3))
		x->r[d] = a;
	else
		ck_abort_msg("what is %s", line);
}

static run run_for(uint32_t of_lane, uint32_t of_start)
{
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, "sm_90", NULL, &err);
	run x = { .lane = of_lane, .start = of_start };

	ck_assert_msg(ptx != NULL, "%s", err.text);
	char *text = strdup(cptx_ptx_text(ptx)), *save = NULL;
	for (char *line = strtok_r(strstr(text, "{"), "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		step(&x, line);
	free(text);
	cptx_ptx_destroy(ptx);
	return x;
}

static void store(cptx_val at) { cptx_st(k, at, 0, .space = CPTX_SHARED, .type = CPTX_U32); }

/* ---- sums of bits ---- */

START_TEST(bits)
{
	static const struct {
		uint32_t value[5], add, count; /* instructions */
	} t[] = {
		{ { 1, 2, 4, 8, 16 }, 1, 1 },            /* add */
		{ { 128, 256, 512, 1024, 2048 }, 1, 1 }, /* mad */
		{ { 144, 288, 576, 0, 0 }, 1, 2 },       /* and, mad */
		{ { 0, 0, 1, 2, 4 }, 1, 2 },             /* shr, add */
		{ { 0, 0, 2, 4, 0 }, 1, 3 },             /* and, shr, add: both shifted by one */
		{ { 2, 4, 128, 256, 512 }, 1, 4 },       /* and, mad, and, mad */
		{ { 0x90, 0x120, 0x240, 0x400, 0x10 }, 0, 6 },
		{ { 0x90, 0x120, 0x240, 0x10, 0x20 }, 0, 5 },
		{ { 0, 0, 0, 0, 0 }, 0, 0 },
		{ { 0, 0, 0, 0, 3 }, 1, 2 }, /* shr, mad */
	};
	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		begin();
		store(cptx_lane_bits(k, lane, 5, t[i].value, t[i].add, start));
		for (uint32_t l = 0; l < 32; l++) {
			run x = run_for(l, 4096);
			uint32_t want = 0;
			for (uint32_t b = 0; b < 5; b++)
				if (l >> b & 1)
					want = t[i].add ? want + t[i].value[b] : want ^ t[i].value[b];
			ck_assert_msg(x.stored[0] == 4096 + want, "case %zu, lane %u: %u, not %u", i, l, x.stored[0], 4096 + want);
			ck_assert_msg(x.count == t[i].count, "case %zu: %u instructions, not %u", i, x.count, t[i].count);
		}
	}
	begin();
	static const uint32_t eleven[11] = { 1 };
	cptx_lane_bits(k, lane, 11, eleven, true, start);
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "11 bits of a lane number"));
}
END_TEST

START_TEST(rows_and_columns)
{
	cptx_frag f = { .kind = CPTX_FRAG_MMA_C, .m = 16, .n = 8, .k = 16, .bits = 32 };
	cptx_frag_map map;

	ck_assert(cptx_frag_resolve(&f, &map, NULL));
	begin();
	store(cptx_frag_lane_row(k, &map, lane));
	store(cptx_frag_lane_col(k, &map, lane));
	for (uint32_t l = 0; l < 32; l++) {
		run x = run_for(l, 0);
		ck_assert_uint_eq(x.stored[0], l / 4);
		ck_assert_uint_eq(x.stored[1], l % 4 * 2);
		ck_assert_uint_eq(x.count, 3); /* shr; and, mul */
	}
	f = (cptx_frag){ .kind = CPTX_FRAG_MMA_SCALE_B }; /* no rows: a zero */
	ck_assert(cptx_frag_resolve(&f, &map, NULL));
	begin();
	store(cptx_frag_lane_row(k, &map, lane));
	ck_assert_uint_eq(run_for(7, 0).stored[0], 0);
}
END_TEST

/* ---- lines ---- */

/* All instructions of all steps along k of a fragment: the right addresses, and so many instructions for them. */
static void addresses(cptx_tile t, cptx_frag f, uint32_t rows, uint32_t cols, uint32_t row_step, uint32_t col_step,
                      uint32_t count)
{
	cptx_lines l, here;
	cptx_lane_lines a;
	cptx_error err = { 0 };
	uint32_t n = 0, base = 8 * cptx_tile_align(&t);

	ck_assert_msg(cptx_tile_lines(&t, &f, rows, cols, &l, &err), "%s", err.text);
	begin();
	ck_assert(cptx_lane_lines_begin(k, &a, &l, lane, start));
	for (uint32_t row = 0; row < 2 * row_step; row += row_step)
		for (uint32_t col = 0; col < 4 * col_step; col += col_step)
			for (uint32_t i = 0; i < l.count; i++)
				store(cptx_lane_lines_at(k, &a, i, row, col));
	for (uint32_t of_lane = 0; of_lane < l.map.lanes; of_lane++) {
		run x = run_for(of_lane, base);
		n = 0;
		for (uint32_t row = 0; row < 2 * row_step; row += row_step)
			for (uint32_t col = 0; col < 4 * col_step; col += col_step)
				for (uint32_t i = 0; i < l.count; i++, n++) {
					here = l, here.row += row, here.col += col;
					uint32_t want = base + cptx_lines_offset(&here, i, of_lane);
					ck_assert_msg(x.stored[n] == want, "lane %u row %u column %u line %u: %u, not %u", of_lane, row, col, i,
					              x.stored[n], want);
				}
		ck_assert_msg(x.count == count, "%u instructions, not %u", x.count, count);
	}
}

START_TEST(line_addresses)
{
	cptx_frag a = { .kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 16, .bits = 16 }, b = a, d = a;
	b.kind = CPTX_FRAG_MMA_B, d.kind = CPTX_FRAG_WGMMA_D, d.m = 64, d.n = 16;
#define TILE(...) ((cptx_tile){ .rows = 128, .cols = 64, .elem.bits = 16, __VA_ARGS__ })

	addresses(TILE(.swizzle = CPTX_SWIZZLE_128B), a, 0, 0, 16, 16, 6 + 3);
	addresses(TILE(.swizzle = CPTX_SWIZZLE_128B), a, 16, 0, 16, 16, 6 + 3);
	addresses(TILE(.swizzle = CPTX_SWIZZLE_128B), b, 8, 0, 8, 16, 5 + 3);
	addresses(TILE(.swizzle = CPTX_SWIZZLE_128B, .elem.mn_major = true), a, 0, 0, 16, 16, 7 + 1);
	addresses(TILE(.swizzle = CPTX_SWIZZLE_64B), a, 32, 0, 16, 16, 6 + 1);
	addresses(TILE(.pitch = 144), a, 16, 0, 16, 16, 4);
	addresses(TILE(.pitch = 144), b, 16, 0, 8, 16, 4);
	addresses(TILE(.swizzle = CPTX_SWIZZLE_128B), d, 0, 0, 64, 16, 8 + 3);
}
END_TEST

/* The lines of a tile in another place, and two fragments of B in one ldmatrix.x4.trans. */
START_TEST(lines_moved)
{
	enum { BY = 3 * 128 * 128 };
	cptx_tile t = TILE(.swizzle = CPTX_SWIZZLE_128B, .elem.mn_major = true);
	cptx_frag f = { .kind = CPTX_FRAG_MMA_B, .m = 16, .n = 8, .k = 16, .bits = 16, .beside = 2 };
	cptx_lines l, here;
	cptx_lane_lines a;
	cptx_error err = { 0 };

	ck_assert_msg(cptx_tile_lines(&t, &f, 16, 16, &l, &err), "%s", err.text);
	ck_assert(l.num == 4 && l.count == 1 && l.trans && cptx_lines_banks(&l, 0).conflicts == 0);
	begin();
	ck_assert(cptx_lane_lines_begin(k, &a, &l, lane, start));
	store(cptx_lane_lines_at(k, &a, 0, 32, 0));
	cptx_lane_lines b = cptx_lane_lines_moved(k, &a, BY);
	for (uint32_t i = 0; i < 3; i++)
		store(cptx_lane_lines_at(k, &b, 0, i * 16, i * 16));
	for (uint32_t of_lane = 0; of_lane < 32; of_lane++) {
		run x = run_for(of_lane, 1024);
		for (uint32_t i = 0; i < 4; i++) {
			here = l, here.row += i ? (i - 1) * 16 : 32, here.col += i ? (i - 1) * 16 : 0;
			uint32_t want = 1024 + (i ? BY : 0) + cptx_lines_offset(&here, 0, of_lane);
			ck_assert_msg(x.stored[i] == want, "lane %u, %u: %u, not %u", of_lane, i, x.stored[i], want);
		}
	}
	cptx_lane_lines none = { 0 };
	none = cptx_lane_lines_moved(k, &none, BY);
	ck_assert_uint_eq(none.count, 0);
}
END_TEST

START_TEST(line_moves)
{
	cptx_tile t = TILE(.swizzle = CPTX_SWIZZLE_128B);
	cptx_frag f = { .kind = CPTX_FRAG_MMA_A, .m = 16, .n = 8, .k = 16, .bits = 16 };
	cptx_lines l;
	cptx_lane_lines a;

	ck_assert(cptx_tile_lines(&t, &f, 0, 0, &l, NULL));
	begin();
	cptx_val regs = cptx_regs(k, CPTX_B32, l.map.regs);
	ck_assert(cptx_lane_lines_begin(k, &a, &l, lane, start));
	cptx_lines_load(k, &l, 0, cptx_lane_lines_at(k, &a, 0, 0, 32), regs);
	cptx_lines_store(k, &l, 0, cptx_lane_lines_at(k, &a, 0, 16, 32), regs);
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, "sm_90", NULL, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	ck_assert_ptr_nonnull(strstr(cptx_ptx_text(ptx), "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r3, %r4, %r5, %r6}, ["));
	ck_assert_ptr_nonnull(strstr(cptx_ptx_text(ptx), "+2048], {%r3, %r4, %r5, %r6};"));
	cptx_ptx_destroy(ptx);

	begin();
	ck_assert(cptx_lane_lines_begin(k, &a, &l, lane, cptx_shared(k, CPTX_B16, 64)));
	ck_assert_int_eq(cptx_lane_lines_at(k, &a, 0, 128, 0).kind, CPTX_VAL_NONE);
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "test_lanes.c:"));
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "outside of the tile of 128x64"));
	begin();
	l.count = 0;
	ck_assert(!cptx_lane_lines_begin(k, &a, &l, lane, start));
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "that cptx_tile_lines did not make"));
	ck_assert_int_eq(cptx_lane_lines_at(k, &a, 0, 0, 0).kind, CPTX_VAL_NONE);
	begin();
	t.pitch = 144; /* sums and swizzled bits mixed */
	ck_assert(cptx_tile_lines(&t, &f, 0, 0, &l, NULL));
	ck_assert(!cptx_lane_lines_begin(k, &a, &l, lane, start));
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "pitch 144 and swizzle 128B have no short form"));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lanes");
	TCase *t = tcase_create("lanes");

	tcase_add_test(t, bits);
	tcase_add_test(t, rows_and_columns);
	tcase_add_test(t, line_addresses);
	tcase_add_test(t, lines_moved);
	tcase_add_test(t, line_moves);
	suite_add_tcase(s, t);
	int failed = test_main("layout_lanes", s);
	cptx_module_destroy(m);
	return failed;
}
