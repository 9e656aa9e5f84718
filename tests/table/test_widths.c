/* SPDX-License-Identifier: MIT */
/*
 * Registers of other types than the instruction's ("Operand Size Exceeding Instruction-Type Size" of the manual): each type
 * of ld, ldu, st, mov and cvt, alone and in vectors, with registers of each type, is taken where ptxas takes it and nowhere
 * else.  Other instructions too, for a register of .f16x2 is like one of integers to ptxas, but not everywhere.
 */
#include "judge.h"

#include "../ask.h"
#include "../test.h"
#include "arch/arch.h"
#include "cases.h"

#include <stdarg.h>

enum { QUESTION = 512, SAMPLE = 7 /* one of so many; CPTX_TABLE_WHOLE: all */ };

static const char *const types[] = { "b8",  "u8",  "s8",  "b16", "u16",  "s16", "b32",   "u32",  "s32", "f32",
	                                 "b64", "u64", "s64", "f64", "b128", "f16", "f16x2", "bf16", "pred" };
static const char *const registers[] = { "pred", "b8",  "u8",  "s8",  "b16", "u16", "s16", "f16", "f16x2",
	                                     "b32",  "u32", "s32", "f32", "b64", "u64", "s64", "f64", "b128" };
static const char *const numbers[] = { "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64", "f16", "bf16" };

/* The registers of the operands that may be of other types, by number, stand as $0, $1 ... */
static const struct {
	const char *insn, *usual[5];
} others[] = {
	{ "add.u32 $0, $1, $2", { "u32", "u32", "u32" } },
	{ "add.s32 $0, $1, $2", { "s32", "s32", "s32" } },
	{ "add.f32 $0, $1, $2", { "f32", "f32", "f32" } },
	{ "and.b32 $0, $1, $2", { "b32", "b32", "b32" } },
	{ "shl.b32 $0, $1, $2", { "b32", "b32", "u32" } },
	{ "mad.lo.u32 $0, $1, $2, $3", { "u32", "u32", "u32", "u32" } },
	{ "mul.wide.u16 $0, $1, $2", { "u32", "u16", "u16" } },
	{ "setp.eq.u32 $0, $1, $2", { "pred", "u32", "u32" } },
	{ "setp.eq.f32 $0, $1, $2", { "pred", "f32", "f32" } },
	{ "selp.u32 $0, $1, $2, $3", { "u32", "u32", "u32", "pred" } },
	{ "set.eq.f32.u32 $0, $1, $2", { "f32", "u32", "u32" } },
	{ "slct.u32.s32 $0, $1, $2, $3", { "u32", "u32", "u32", "s32" } },
	{ "prmt.b32 $0, $1, $2, $3", { "b32", "b32", "b32", "b32" } },
	{ "bfe.u32 $0, $1, $2, $3", { "u32", "u32", "u32", "u32" } },
	{ "bfind.u32 $0, $1", { "u32", "u32" } },
	{ "popc.b32 $0, $1", { "u32", "b32" } },
	{ "neg.s32 $0, $1", { "s32", "s32" } },
	{ "dp4a.u32.u32 $0, $1, $2, $3", { "u32", "u32", "u32", "u32" } },
	{ "vadd.u32.u32.u32 $0, $1, $2", { "u32", "u32", "u32" } },
	{ "vadd4.u32.u32.u32.add $0, $1, $2, $3", { "u32", "u32", "u32", "u32" } },
	{ "redux.sync.add.u32 $0, $1, -1", { "u32", "u32" } },
	{ "atom.add.u32 $0, [%rd1], $1", { "u32", "u32" } },
	{ "red.add.f32 [%rd1], $0", { "f32" } },
	{ "mapa.u32 $0, $1, $2", { "u32", "u32", "u32" } },
	{ "fma.rn.f32 $0, $1, $2, $3", { "f32", "f32", "f32", "f32" } },
};

/* What ptxas takes, and no manual has: left_out.def and the notes of cvt say so. */
static bool is_left_out(const char *line)
{
	static const char *const narrow[] = { ".v8.b8 ", ".v8.u8 ", ".v8.s8 ", ".v8.b16 ", ".v8.u16 ", ".v8.s16 " };
	static const char *const rounded[] = { "cvt.rn.f32.bf16 ", "cvt.rn.f64.bf16 ", "cvt.bf16.f16 ", "cvt.f16.bf16 " };
	bool found = strstr(line, "mov.pred ") && strstr(line, ".f16x2 ");

	for (unsigned i = 0; i < ARRAY_LEN(narrow); i++)
		found |= strstr(line, narrow[i]) != NULL;
	for (unsigned i = 0; i < ARRAY_LEN(rounded); i++)
		found |= strstr(line, rounded[i]) != NULL;
	return found;
}

typedef struct question {
	char line[QUESTION];
	unsigned number;
	bool ours;
} question;
typedef struct asked {
	judge *j;
	question *q;
	unsigned n, cap, seen;
	const cptx_target *target;
} asked;

static void ignore(void *user, const cptx_error *e) { (void)user, (void)e; }

static bool we_take(const asked *a, const char *line)
{
	char *text = judge_text(a->target, judge_newest(), line);
	cptx_module *m = cptx_parse(text, strlen(text), &(cptx_parse_opt){ .report = ignore });
	bool taken = m && !cptx_module_error(m) && !cptx_check(m, NULL, ignore, NULL);

	cptx_module_destroy(m);
	free(text);
	return taken;
}

/* The instruction, in a scope with registers x0 to x8 of one type, and y0 to y8 of another. */
static void ask(asked *a, const char *x, const char *y, const char *format, ...) CPTX_PRINTF_(4, 5);
static void ask(asked *a, const char *x, const char *y, const char *format, ...)
{
	va_list ap;

	if (!spell_whole() && a->seen++ % SAMPLE)
		return;
	if (a->n == a->cap) {
		a->cap = 2 * a->cap + 1000;
		a->q = realloc(a->q, a->cap * sizeof *a->q);
		ck_assert_ptr_nonnull(a->q);
	}
	question *q = &a->q[a->n++];
	int n = snprintf(q->line, QUESTION, "{ .reg .%s x<9>; .reg .%s y<9>; ", x, y);
	va_start(ap, format);
	n += vsnprintf(q->line + n, QUESTION - (size_t)n, format, ap);
	va_end(ap);
	ck_assert_int_lt(n, QUESTION - 4);
	memcpy(q->line + n, "; }", 4);
	q->ours = we_take(a, q->line);
	q->number = judge_ask(a->j, a->target, judge_newest(), q->line);
}

static asked begin(void)
{
	pool_init();
	return (asked){ .j = judge_new(), .target = cptx_target_find("sm_100a") };
}

static void answer(asked *a, const char *about)
{
	unsigned wrong = 0, taken = 0;

	judge_run(a->j);
	for (unsigned i = 0; i < a->n; i++) {
		const verdict *v = judge_said(a->j, a->q[i].number);
		taken += v->ok;
		if (strstr(v->why, "crashed")) /* ptxas 13.0, on eight elements of more than 32 bits */
			continue;
		if (v->ok == a->q[i].ours || (v->ok && is_left_out(a->q[i].line)))
			continue;
		if (wrong++ < 20)
			printf("%s: ptxas %s: %s\n    %s\n", about, v->ok ? "takes it" : "refuses it", v->why, a->q[i].line);
	}
	printf("%s: %u instructions, %u of which ptxas takes\n", about, a->n, taken);
	ck_assert_uint_gt(taken, 10);
	ck_assert_uint_lt(taken, a->n);
	ck_assert_uint_eq(wrong, 0);
	free(a->q);
	judge_free(a->j);
}

static const char *const vectors[] = { "x1", "{x0, x1}", "{x0, x1, x2, x3}", "{x0, x1, x2, x3, x4, x5, x6, x7}" };
static const char *const lengths[] = { "", ".v2", ".v4", ".v8" };

START_TEST(memory)
{
	static const char *const loads[] = { "ld.global", "ldu.global", "ld.shared", "ld", "ld.relaxed.gpu.global" };
	static const char *const stores[] = { "st.global", "st.shared", "st.volatile", "st.release.sys.global" };
	asked a = begin();

	if (!test_ptxas()) {
		judge_free(a.j);
		skip("ptxas not found");
		return;
	}
	for (unsigned t = 0; t < ARRAY_LEN(types); t++)
		for (unsigned r = 0; r < ARRAY_LEN(registers); r++)
			for (unsigned v = 0; v < ARRAY_LEN(vectors); v++) {
				for (unsigned i = 0; i < ARRAY_LEN(loads); i++)
					ask(&a, registers[r], "b32", "%s%s.%s %s, [%%rd1]", loads[i], lengths[v], types[t], vectors[v]);
				for (unsigned i = 0; i < ARRAY_LEN(stores); i++)
					ask(&a, registers[r], "b32", "%s%s.%s [%%rd1], %s", stores[i], lengths[v], types[t], vectors[v]);
			}
	answer(&a, "memory");
}
END_TEST

START_TEST(moves)
{
	asked a = begin();

	if (!test_ptxas()) {
		judge_free(a.j);
		skip("ptxas not found");
		return;
	}
	for (unsigned t = 0; t < ARRAY_LEN(types); t++)
		for (unsigned r = 0; r < ARRAY_LEN(registers); r++)
			for (unsigned s = 0; s < ARRAY_LEN(registers); s++)
				ask(&a, registers[r], registers[s], "mov.%s x1, y1", types[t]);
	answer(&a, "mov");
}
END_TEST

static bool is_real(const char *type) { return *type == 'f' || *type == 'b'; }

/* Plain bits that hold a number. */
static const char *bits_of(const char *type) { return strstr(type, "64") ? "b64" : strstr(type, "32") ? "b32" : "b16"; }

START_TEST(conversions)
{
	asked a = begin();

	if (!test_ptxas()) {
		judge_free(a.j);
		skip("ptxas not found");
		return;
	}
	for (unsigned d = 0; d < ARRAY_LEN(numbers); d++)
		for (unsigned s = 0; s < ARRAY_LEN(numbers); s++)
			for (unsigned way = 0; way < 3; way++)
				for (unsigned r = 0; r < ARRAY_LEN(registers); r++) {
					static const char *const ways[] = { "", ".rn", ".rzi" };
					if ((way == 1 && !is_real(numbers[d])) || (way == 2 && !is_real(numbers[s])))
						continue;
					ask(&a, registers[r], bits_of(numbers[s]), "cvt%s.%s.%s x1, y1", ways[way], numbers[d], numbers[s]);
					ask(&a, bits_of(numbers[d]), registers[r], "cvt%s.%s.%s x1, y1", ways[way], numbers[d], numbers[s]);
				}
	answer(&a, "cvt");
}
END_TEST

/* Each operand in turn has a register of another type. */
static void ask_with(asked *a, unsigned which, unsigned operand, const char *type)
{
	char insn[QUESTION], *p = insn;

	for (const char *s = others[which].insn; *s; s++) {
		if (*s != '$') {
			*p++ = *s;
			continue;
		}
		unsigned i = (unsigned)(*++s - '0');
		p += i == operand ? sprintf(p, "x%u", i) : sprintf(p, "r%u_%s", i, others[which].usual[i]);
	}
	*p = 0;
	char declared[160] = "";
	for (unsigned i = 0, n = 0; i < 5 && others[which].usual[i]; i++)
		if (i != operand)
			n += (unsigned)snprintf(declared + n, sizeof declared - n, ".reg .%s r%u_%s; ", others[which].usual[i], i,
			                        others[which].usual[i]);
	ask(a, type, "b32", "%s%s", declared, insn);
}

START_TEST(other_instructions)
{
	asked a = begin();

	if (!test_ptxas()) {
		judge_free(a.j);
		skip("ptxas not found");
		return;
	}
	for (unsigned i = 0; i < ARRAY_LEN(others); i++)
		for (unsigned o = 0; o < 5 && others[i].usual[o]; o++)
			for (unsigned r = 0; r < ARRAY_LEN(registers); r++)
				ask_with(&a, i, o, registers[r]);
	answer(&a, "other instructions");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("widths");
	TCase *c = test_case(s, "widths");

	tcase_add_test(c, memory);
	tcase_add_test(c, moves);
	tcase_add_test(c, conversions);
	tcase_add_test(c, other_instructions);
	return test_main("table_widths", s);
}
