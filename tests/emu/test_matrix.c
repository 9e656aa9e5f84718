/* SPDX-License-Identifier: MIT */
/* wmma, ldmatrix, stmatrix and movmatrix of all kinds. */
#include "move_forms.h"
#include "trial.h"

#include <math.h>

static void run_wmma(const char *opcode, const char *target, uint64_t *seed)
{
	form_case *c = calloc(1, sizeof *c);
	cptx_error err = { 0 };
	wm_form w;

	ck_assert_ptr_nonnull(c);
	for (unsigned i = 0; i < 4; i++) {
		cptx_device *dev = cptx_emu_open(target, NULL, &err);
		ck_assert_msg(wm_parse(&w, opcode, seed), "%s", opcode);
		form_fill(&w.f, c, FILL_SMALL, seed);
		ck_assert_msg(dev && wm_run(&w, dev, target, c, 1, &err), "%s: %s", opcode, err.text);
		for (unsigned j = 0; j < w.f.m * w.f.n; j++) {
			double magnitude, want = form_expected(&w.f, c, j / w.f.n, j % w.f.n, &magnitude),
							  got = form_value(w.f.d, c->d[j]);
			ck_assert_msg(got == want, "%s, C %s, D %s: row %u, column %u: %g, expected %g", opcode,
			              w.c_col ? "by columns" : "by rows", w.d_col ? "by columns" : "by rows", j / w.f.n, j % w.f.n, got,
			              want);
		}
		cptx_device_close(dev);
	}
	free(c);
}

START_TEST(wmma)
{
	uint64_t seed = 0;

	for (size_t i = 0; i < form_nwmma; i++)
		run_wmma(form_wmma[i], "sm_90a", &seed);
	run_wmma(form_wmma[0], "sm_75", &seed);
}
END_TEST

/* C and D of different types, as an H200 has them: f16 is f32 rounded once more, f32 has all its bits. */
START_TEST(mixed_wmma)
{
	static const struct {
		const char *opcode;
		uint64_t c, d, a[16], b[16];
	} cases[] = {
		{ "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32",
		  0xbf7f70ca,
		  0x3f46,
		  { 0x3733, 0xba04, 0x3c03, 0xb1dd, 0x32d8, 0x3f68, 0xbac4, 0x3dd4, 0x3984, 0xb019, 0x3ebc, 0x34cc, 0x34ce, 0xbf3c,
		    0x37e8, 0x3e7d },
		  { 0xb4ec, 0xb37a, 0xb53b, 0x37c3, 0xbd2e, 0xb055, 0xbc72, 0x33d4, 0x3054, 0xb720, 0x3f06, 0xbd3c, 0xb5bf, 0x37d2,
		    0xbbce, 0x39db } },
		{ "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32", 0xb139a69c, 0x8000, { 0 }, { 0 } },
		{ "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16",
		  0xb610,
		  0x3fa2cfe2,
		  { 0x39f1, 0x3827, 0x3aa0, 0x374c, 0x3bd9, 0x39b9, 0xb688, 0xb88a, 0x33fd, 0xb8d4, 0x3ca2, 0x311a, 0xb228, 0xbf6d,
		    0xb486, 0x3c9e },
		  { 0x3fe8, 0x399b, 0x37ba, 0x3a5e, 0xb066, 0xb3e6, 0xbf4a, 0xba9f, 0x3119, 0x3816, 0xb9f9, 0x3fb8, 0x33c0, 0x386a,
		    0x3f22, 0x37b1 } },
	};
	uint64_t seed = 0;

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		form_case *c = calloc(1, sizeof *c);
		cptx_error err = { 0 };
		cptx_device *dev = cptx_emu_open("sm_90a", NULL, &err);
		wm_form w;
		ck_assert(c && dev && wm_parse(&w, cases[i].opcode, &seed));
		for (unsigned k = 0; k < 16; k++)
			c->a[k] = cases[i].a[k], c->b[k * w.f.n] = cases[i].b[k];
		c->c[0] = cases[i].c;
		ck_assert_msg(wm_run(&w, dev, "sm_90a", c, 1, &err), "%s", err.text);
		ck_assert_msg(c->d[0] == cases[i].d, "case %zu: 0x%llx, an H200 gives 0x%llx", i, (unsigned long long)c->d[0],
		              (unsigned long long)cases[i].d);
		cptx_device_close(dev);
		free(c);
	}
}
END_TEST

static void run_move(const char *opcode, const char *target, uint64_t *seed)
{
	uint32_t want[MOVE_WORDS];
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open(target, NULL, &err);
	move_form f;
	move_case c;

	ck_assert_msg(move_parse(&f, opcode), "%s", opcode);
	move_fill(&c, seed);
	move_expected(&f, &c, want);
	ck_assert_msg(dev && move_run(&f, dev, target, &c, 1, &err), "%s: %s", opcode, err.text);
	for (unsigned i = 0; i < MOVE_WORDS; i++)
		ck_assert_msg(c.out[i] == want[i], "%s: word %u: 0x%x, expected 0x%x", opcode, i, c.out[i], want[i]);
	cptx_device_close(dev);
}

START_TEST(moves)
{
	uint64_t seed = 1;

	for (size_t i = 0; i < form_nmove; i++)
		run_move(form_move[i], "sm_90a", &seed);
	for (size_t i = 0; i < form_nmove_bytes; i++)
		run_move(form_move_bytes[i], "sm_100a", &seed);
}
END_TEST

/* ldmatrix by hand: lane l holds row l / 4, columns 2 (l % 4) and the next; transposed, column l / 4. */
START_TEST(known_places)
{
	static const char body[] =
		".shared .align 16 .b8 buf[128]; mov.u32 %r1, buf; shl.b32 %r2, %r0, 2; add.u32 %r3, %r1, %r2; shl.b32 %r4, %r0, 1;"
		"add.u32 %r5, %r4, 1; shl.b32 %r5, %r5, 16; or.b32 %r5, %r5, %r4; st.shared.b32 [%r3], %r5; bar.warp.sync "
		"0xffffffff;"
		"and.b32 %r6, %r0, 7; shl.b32 %r6, %r6, 4; add.u32 %r6, %r6, %r1;"
		"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r7}, [%r6]; ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r8}, [%r6];"
		"shl.b32 %r9, %r0, 3; mov.b64 %rd1, {%r9, 0}; add.u64 %rd1, %rd0, %rd1; st.global.v2.b32 [%rd1], {%r7, %r8};";
	uint32_t x[64];

	RUN_OK("sm_90a", 32, x, sizeof x, body);
	for (unsigned l = 0; l < 32; l++) {
		unsigned g = l / 4, t = l % 4, first = g * 8 + 2 * t;
		ck_assert_uint_eq(x[2 * l], first | (first + 1) << 16);
		ck_assert_uint_eq(x[2 * l + 1], (2 * t * 8 + g) | ((2 * t + 1) * 8 + g) << 16);
	}
}
END_TEST

/* Undefined shared memory is found where it decides what leaves, not where it is loaded. */
START_TEST(undefined)
{
	static const char head[] = ".shared .align 16 .b8 buf[256]; mov.u32 %r1, buf; and.b32 %r2, %r0, 7; shl.b32 %r2, %r2, 4;"
							   "add.u32 %r2, %r2, %r1; setp.lt.u32 %p0, %r0, 8; @%p0 st.shared.v4.b32 [%r2], {%r0, %r0, "
							   "%r0, %r0}; bar.warp.sync 0xffffffff;"
							   "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r3, %r4}, [";
	static const char tail[] = "]; shl.b32 %r9, %r0, 2; mov.b64 %rd1, {%r9, 0}; add.u64 %rd1, %rd0, %rd1;";
	static const struct {
		const char *at, *rest;
		enum cptx_finding_code code;
	} cases[] = {
		{ "%r2", "st.global.b32 [%rd1], %r3;", CPTX_FIND_NONE },
		{ "%r2+128", "mov.b32 %r5, %r4;", CPTX_FIND_NONE },
		{ "%r2+128", "st.global.b32 [%rd1], %r3;", CPTX_FIND_UNDEFINED },
		{ "%r2+136", "", CPTX_FIND_MISALIGNED },
		{ "%r2+256", "", CPTX_FIND_BOUNDS },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		uint32_t x[32];
		char body[1024];
		trial t = { .target = "sm_90a", .data = x, .size = sizeof x, .body = body };
		snprintf(body, sizeof body, "%s%s%s%s", head, cases[i].at, tail, cases[i].rest);
		trial_run(&t);
		ck_assert_msg(t.found[0] == cases[i].code, "case %zu: %s\n%s", i, t.err.text, t.message);
	}
}
END_TEST

TRIAL_MAIN("emu_matrix", wmma, mixed_wmma, moves, known_places, undefined)
