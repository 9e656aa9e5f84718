/* SPDX-License-Identifier: MIT */
/*
 * Lines that are copied from finished pieces: text in the normal form is printed as it stands, whatever operands its lines
 * have, however often a line comes, and wherever the printer's memory ends.
 */
#include "../test.h"

#include <cptx/cptx.h>

static const char head[] = ".version 8.7\n.target sm_90a\n.address_size 64\n";

/* One line of each kind of operands.  S, R, P and C stand for names of any length: of a variable, a register, a predicate,
 * and for the text of a comment. */
static const char *const lines[] = {
	"\tret;\n",
	"\tmov.u32 %r1, %tid.x;\n",
	"\tmov.u32 %r1, %dynamic_smem_size;\n",
	"\tmov.u64 %rd1, %clock64;\n",
	"\tadd.s32 %r1, %r2, %r3;\n",
	"\tadd.s32 %r1, %r2, 0;\n",
	"\tadd.s32 %r1, %r2, 1023;\n",
	"\tadd.s32 %r1, %r2, 1024;\n",
	"\tadd.s32 %r1, %r2, -1;\n",
	"\tadd.s32 %r1, %r2, -2147483648;\n",
	"\tmov.u64 %rd1, 9223372036854775807;\n",
	"\tmov.f32 %f1, 0f3F800000;\n",
	"\tmov.f64 %fd1, 0d3FF0000000000000;\n",
	"\t@%p1 add.s32 %r1, %r2, -7;\n",
	"\t@!%p1 bra $L_end;\n",
	"\tbra.uni $L_end;\n",
	"\tld.global.u32 %r1, [%rd1];\n",
	"\tld.global.u32 %r1, [%rd1+4];\n",
	"\tld.global.u32 %r1, [%rd1+-4];\n",
	"\tld.global.u32 %r1, [%rd1+2147483647];\n",
	"\tld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];\n",
	"\tst.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};\n",
	"\tmov.b64 {%r1, %r2}, %rd1;\n",
	"\tmov.b64 %rd1, {%r1, %r2};\n",
	"\tmov.b64 {_, %r2}, %rd1;\n",
	"\tst.global.v2.u32 [%rd1], {%r1, 7};\n",
	"\tsetp.lt.and.s32 %p1|%p2, %r1, %r2, %p3;\n",
	"\tsetp.lt.and.s32 %p1, %r1, 5, !%p3;\n",
	"\tshfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;\n",
	"\tbfi.b32 %r1, %r2, %r3, 8, 255;\n",
	"\tmad.lo.s32 %r1, %r2, 70000, %r3;\n",
	"\tfma.rn.f32 %f1, %f2, 0f40000000, %f3;\n",
	"\tvadd.s32.s32.s32 %r1, %r2.b0, %r3.h1;\n",
	"\tcp.async.cg.shared.global [%r1], [%rd1], 16;\n",
	"\tmma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, "
	"%f2, %f3, "
	"%f4};\n",
	"\tld.shared.u32 %r1, [S];\n",
	"\tld.shared.u32 %r1, [S+64];\n",
	"\tmov.u32 %r1, S;\n",
	"\tst.shared.u32 [S+4], R;\n",
	"\t@P add.s32 R, R, R;\n",
	"\tmov.b64 {R, %r1}, %rd1;\n",
	"\tld.shared.u32 R, [R+12];\n",
	"\t// C\n",
	"\t//\n",
	"\t{\n\t}\n",
};

/* Appends a line, with names of n characters for S, R, P and C. */
static char *put(char *to, const char *line, const char *name, size_t n)
{
	for (const char *p = line; *p; p++) {
		bool alone = strchr("SRPC", *p) && strchr(" [@,{", p[-1]) && strchr(" ][;,+}\n", p[1]);
		if (!alone) {
			*to++ = *p;
			continue;
		}
		if (*p == 'R' || *p == 'P')
			*to++ = '%';
		*to++ = *p;
		memcpy(to, name, n - 1);
		to += n - 1;
	}
	return to;
}

static void check(const char *text)
{
	cptx_error err = { 0 };
	cptx_module *m = cptx_parse(text, strlen(text), NULL);

	ck_assert_msg(!cptx_module_error(m), "%.300s", cptx_module_error(m)->text);
	for (int again = 0; again < 2; again++) {
		cptx_ptx *p = cptx_emit(m, NULL, NULL, &err);
		ck_assert_msg(p != NULL, "%.300s", err.text);
		const char *got = cptx_ptx_text(p), *want = text;
		for (; *got && *got == *want; got++)
			want++;
		ck_assert_msg(*got == *want, "printed otherwise from here on: %.80s; wanted: %.80s", got, want);
		cptx_ptx_destroy(p);
	}
	cptx_module_destroy(m);
}

/* The lines, each `times` times or all of them so often, with names of n characters. */
static char *text_of(size_t n, unsigned times, bool turns)
{
	const size_t count = sizeof lines / sizeof *lines;
	char *name = malloc(n), *text = malloc(2000 + 4 * n + count * times * (200 + 4 * n)), *p = text;

	ck_assert(name && text);
	memset(name, 'x', n);
	p += sprintf(p, "%s\n.visible .entry k()\n{\n", head);
	p += sprintf(
		p, "\t.reg .pred %%p<4>;\n\t.reg .b32 %%r<8>;\n\t.reg .b64 %%rd<2>;\n\t.reg .f32 %%f<5>;\n\t.reg .f64 %%fd<2>;\n");
	p = put(p, "\t.reg .b32 R;\n\t.reg .pred P;\n", name, n);
	p = put(p, "\t.shared .align 4 .b8 S[128];\n", name, n);
	for (unsigned i = 0; i < times * count; i++)
		p = put(p, lines[turns ? i % count : i / times], name, n);
	p += sprintf(p, "$L_end:\n\tret;\n}\n");
	free(name);
	return text;
}

START_TEST(as_it_stands)
{
	static const size_t lengths[] = { 2, 13, 14, 15, 40, 2000 };
	size_t n = lengths[_i];

	for (unsigned times = 1; times <= 40; times += 13)
		for (int turns = 0; turns < 2; turns++) {
			char *text = text_of(n, n > 1000 ? times / 4 + 1 : times, turns);
			check(text);
			free(text);
		}
}
END_TEST

/* The printer's memory ends at other places of lines with each count. */
START_TEST(at_the_end_of_memory)
{
	char *text = malloc(1 << 20);

	for (int n = 200 * _i; n < 200 * (_i + 1); n += 7) {
		char *p = text + sprintf(text, "%s\n.visible .entry k()\n{\n\t.reg .f32 %%f<65>;\n\t.reg .b64 %%rd<2>;\n", head);
		for (int i = 0; i < n; i++)
			p += sprintf(p, "\tadd.f32 %%f1, %%f2, %%f3;\n");
		for (int i = 0; i < 60; i++)
			p += sprintf(p, "\t// %0*d\n\tst.global.v4.f32 [%%rd1+1000000], {%%f61, %%f62, %%f63, %%f64};\n", i * 9 + 1, i);
		sprintf(p, "\tret;\n}\n");
		check(text);
	}
	free(text);
}
END_TEST

/* A special register that a target lacks is refused behind lines with others that it has, too. */
START_TEST(special_registers)
{
	cptx_error err = { 0 };
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");

	for (int i = 0; i < 3; i++)
		cptx_mov(k, cptx_sreg_val(CPTX_SREG_TID_X), .type = CPTX_U32);
	cptx_ptx *p = cptx_emit(m, "sm_80", NULL, &err);
	ck_assert_msg(p && cptx_ptx_version(p) < 78, "%s", err.text);
	cptx_ptx_destroy(p);
	cptx_module_destroy(m);
	m = cptx_module_new(NULL), k = cptx_kernel_begin(m, "k");
	for (int i = 0; i < 3; i++)
		cptx_mov(k, cptx_sreg_val(CPTX_SREG_TID_X), .type = CPTX_U32);
	cptx_mov(k, cptx_sreg_val(CPTX_SREG_CLUSTER_CTARANK), .type = CPTX_U32);
	p = cptx_emit(m, "sm_90", NULL, &err);
	ck_assert_msg(p && cptx_ptx_version(p) == 78, "%s", err.text);
	cptx_ptx_destroy(p);
	p = cptx_emit(m, "sm_80", NULL, &err);
	ck_assert(!p);
	ck_assert_msg(strstr(err.text, "%cluster_ctarank"), "%s", err.text);
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lines");
	TCase *c = test_case(s, "lines");

	tcase_add_loop_test(c, as_it_stands, 0, 6);
	tcase_add_loop_test(c, at_the_end_of_memory, 0, 2);
	tcase_add_test(c, special_registers);
	return test_main("verify_lines", s);
}
