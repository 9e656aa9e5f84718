/* SPDX-License-Identifier: MIT */
/* Bits that an H200 gave where the manual leaves a choice: h200_scalar.def and h200_video.def by kernels, h200_dot.def by
 * dot.c. */
#include "emu/tensor/dot.h"
#include "emu/num/real.h"
#include "trial.h"

#include <inttypes.h>

/* ---- instructions ---- */

typedef struct fact {
	const char *text;     /* of %i0, %i1 ..., gives %o0 */
	const char *in, *out; /* hexadecimal numbers of as many digits as their registers have */
} fact;

static const fact facts[] = {
#define FACT(text, in, out) { text, in, out },
#include "h200_scalar.def"
#include "h200_video.def"
#undef FACT
};
enum { FACTS = sizeof facts / sizeof *facts, SLOT = 16, TEXT = 700 };

static unsigned bits_of(const char *hex) { return 4 * (unsigned)strspn(hex, "0123456789abcdef"); }

static int put_input(char *to, unsigned i, const char *hex)
{
	unsigned bits = bits_of(hex);

	if (bits == 128)
		return sprintf(to, ".reg .b128 %%i%u; mov.b128 %%i%u, {0x%.16s, 0x%.16s};\n", i, i, hex + 16, hex);
	return sprintf(to, ".reg .b%u %%i%u; mov.b%u %%i%u, 0x%.*s;\n", bits, i, bits, i, (int)bits / 4, hex);
}

static int put_fact(char *to, const fact *f, unsigned slot)
{
	unsigned bits = bits_of(f->out), i = 0;
	char *at = to;

	at += sprintf(at, "{\n.reg .b%u %%o0;\n", bits);
	for (const char *in = f->in; *in; in += bits_of(in) / 4, in += *in == ' ')
		at += put_input(at, i++, in);
	at += sprintf(at, "%s; st.global.b%u [%%rd0+%u], %%o0;\n}\n", f->text, bits, slot * SLOT);
	return (int)(at - to);
}

START_TEST(instructions)
{
	unsigned char *got = calloc(FACTS, SLOT);
	char *body = malloc(FACTS * TEXT), *at = body, hex[2 * SLOT + 1];

	ck_assert(got && body);
	for (unsigned i = 0; i < FACTS; i++)
		at += put_fact(at, &facts[i], i);
	trial t = { .target = "sm_90a", .block = { 1 }, .data = got, .size = FACTS * SLOT, .body = body };
	trial_run(&t);
	ck_assert_msg(t.ok, "%s\n%s", t.err.text, t.message);
	for (unsigned i = 0; i < FACTS; i++) {
		unsigned bytes = bits_of(facts[i].out) / 8;
		for (unsigned j = 0; j < bytes; j++)
			sprintf(hex + 2 * j, "%02x", got[i * SLOT + bytes - 1 - j]);
		ck_assert_msg(!strcmp(hex, facts[i].out), "%s of %s: %s, an H200 gives %s", facts[i].text, facts[i].in, hex,
		              facts[i].out);
	}
	free(body);
	free(got);
}
END_TEST

/* Forms of which a GPU makes something else than the manual's formula are refused, with those that are not. */
START_TEST(refused_video)
{
	static const char *const forms[] = {
		"vadd.u32.u32.u32 %r1.h1, %r2, %r3, %r4;",      "vset.s32.u32.lt.max %r1, %r2, %r3, %r4;",
		"vsub.s32.s32.s32.sat.add %r1, %r2, %r3, %r4;", "vadd.u32.s32.u32.sat %r1, %r2, %r3;",
		"vshl.u32.u32.u32.sat.clamp %r1, %r2, %r3;",    "vmin.s32.s32.s32.sat %r1.b0, %r2, %r3, %r4;",
		"vmad.u32.u32.u32.shr7 %r1, %r2, %r3, %r4;",    "vmad.s32.s32.u32.sat %r1, %r2, %r3, %r4;"
	};

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		uint32_t x = 0;
		trial t = { .target = "sm_90", .block = { 1 }, .data = &x, .size = sizeof x, .body = forms[i] };
		trial_run(&t);
		ck_assert_msg(!t.ok && strstr(t.err.text, "GPUs give other results than the manual's formula"), "%s: %s", forms[i],
		              t.err.text);
	}
}
END_TEST

/* ---- sums of products ---- */

typedef struct sum {
	enum dot_unit unit;
	unsigned atype, btype;
	unsigned dtype;
	uint32_t c, d;
	const char *terms; /* a*b ... */
} sum;

static const sum sums[] = {
#define SUM(unit, atype, btype, c, d, terms) { DOT_##unit, CPTX_##atype, CPTX_##btype, CPTX_F32, c, d, terms },
#define SUM_F16(unit, atype, btype, c, d, terms) { DOT_##unit, CPTX_##atype, CPTX_##btype, CPTX_F16, c, d, terms },
#include "h200_dot.def"
#undef SUM
#undef SUM_F16
};

/* In the first of eight columns; a large number in the second makes that all are summed the way that has no limits. */
static uint32_t sum_of(const sum *s, float second)
{
	enum { MOST = 32 };
	struct dot_rule r = dot_rule(cptx_target_find("sm_90a"), s->unit, s->atype, s->dtype);
	uint32_t a[MOST] = { 0 }, b[MOST * DOT_PANEL] = { 0 }, n = 0;
	float av[MOST], bv[MOST * DOT_PANEL], d[DOT_PANEL] = { 0 };
	int16_t ae[MOST], be[MOST * DOT_PANEL];
	int used;

	for (const char *p = s->terms; sscanf(p, "%" SCNx32 "*%" SCNx32 " %n", &a[n], &b[n * DOT_PANEL], &used) == 2; p += used)
		n++;
	memcpy(d, &s->c, sizeof s->c);
	if (s->dtype == CPTX_F16)
		d[0] = num_from_f16(s->c);
	d[1] = second;
	dot_open_as(s->atype, r.pairs ? CPTX_F16 : s->atype, a, n, (dot_operand){ av, ae });
	dot_open_as(s->btype, r.pairs ? CPTX_F16 : s->btype, b, n * DOT_PANEL, (dot_operand){ bv, be });
	dot_float(&r, &(dot_shape){ 1, DOT_PANEL, n, n, NULL }, (dot_operand){ av, ae }, (dot_operand){ bv, be }, NULL, NULL, d);
	for (unsigned q = 2; q < DOT_PANEL; q++)
		ck_assert_msg(num_bits32(d[q]) == 0, "%s: %g beside it", s->terms, d[q]);
	memcpy(&n, d, sizeof n);
	return s->dtype == CPTX_F16 ? (uint32_t)num_to_f16(d[0]) : n;
}

START_TEST(sums_of_products)
{
	for (size_t i = 0; i < 2 * (sizeof sums / sizeof *sums); i++) {
		const sum *s = &sums[i / 2];
		uint32_t got = sum_of(s, i % 2 ? 0x1p120f : 0);
		ck_assert_msg(got == s->d, "%s: %08" PRIx32 ", an H200 gives %08" PRIx32, s->terms, got, s->d);
	}
}
END_TEST

TRIAL_MAIN("emu_facts", instructions, refused_video, sums_of_products)
