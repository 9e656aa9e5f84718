/* SPDX-License-Identifier: MIT */
/* C of modules and bodies with many parts, in a time that grows with their number and not with its square. */
#include "../test.h"

#include <cptx/cptx.h>

#include <time.h>

#ifndef FEW
#define FEW 3000
#endif
enum { TIMES = 8, MOST = 24 /* times as long, for TIMES as many; its square would be 64 */, TURNS = 10 };

static const struct {
	const char *name, *head, *part, *tail;
} cases[] = {
	{ "kernels", ".global .u32 g;\n", ".entry k%u() { .reg .u32 r; ld.global.u32 r, [g]; }\n", "" },
	{ "variables", "", ".global .u32 g%u;\n.entry k%u() { .reg .u32 r; ld.global.u32 r, [g%u]; }\n", "" },
	{ "functions", "", ".func f%u(.reg .u32 a);\n.func g%u() { call f%u, (1); ret; }\n.func f%u(.reg .u32 a) { ret; }\n",
	  "" },
	{ "declared", "", ".extern .func f%u();\n.extern .func f%u();\n.extern .global .u32 v%u;\n.extern .global .u32 v%u;\n",
	  "" },
	{ "labels", ".entry k() {\n", "$L%u: bar.sync 0;\n", "}\n.section .debug_loc\n{\n.b32 $L7\n.b32 $L80\n}\n" },
	{ "ifs", ".entry k() { .reg .pred p;\n", "@p bra L%u; bar.sync 0; bra.uni M%u; L%u: bar.sync 1; M%u:\n", "}\n" },
	{ "behind", ".entry k() { .reg .pred p;\n", "@p bra E; bar.sync 0; A%u:\n", "E: }\n" },
	{ "loops", ".entry k() { .reg .b32 i;\n", "{ .reg .pred q; L%u: setp.lt.u32 q, i, 9; add.u32 i, i, 1; @q bra L%u; }\n",
	  "}\n" },
};

static char *text_of(int number, unsigned n)
{
	size_t room = (size_t)(n + 4) * 160, at = 0;
	char *s = malloc(room);

	ck_assert(s != NULL);
	at += (size_t)snprintf(s, room, ".version 8.7\n.target sm_90a\n.address_size 64\n%s", cases[number].head);
	for (unsigned i = 0; i < n; i++)
		for (const char *p = cases[number].part; *p; p++)
			if (p[0] == '%' && p[1] == 'u')
				at += (size_t)snprintf(s + at, room - at, "%u", i), p++;
			else
				s[at++] = *p;
	snprintf(s + at, room - at, "%s", cases[number].tail);
	return s;
}

/* Processor time of one translation. */
static double seconds(int number, unsigned n)
{
	char *text = text_of(number, n);
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_parse(text, strlen(text), NULL);

	ck_assert_msg(m && !cptx_module_error(m), "%s: %s", cases[number].name, m ? cptx_module_error(m)->text : "no memory");
	clock_t begin = clock();
	cptx_ptx *c = cptx_to_c(m, NULL, &err);
	double took = (double)(clock() - begin) / CLOCKS_PER_SEC;
	ck_assert_msg(c != NULL, "%s: %s", cases[number].name, err.text);
	ck_assert_uint_gt(cptx_ptx_size(c), n * 8);
	cptx_ptx_destroy(c);
	cptx_module_destroy(m);
	free(text);
	return took;
}

static double shorter(double a, double b) { return a < b ? a : b; }

/* The shortest times of several turns: what runs beside the test makes single ones longer, but no square linear. */
START_TEST(grows_with_the_number)
{
	double few = 1e9, many = 1e9;

	for (int turn = 0; turn < TURNS && (turn < 2 || many >= MOST * few + 0.02); turn++) {
		few = shorter(few, seconds(_i, FEW));
		many = shorter(many, seconds(_i, FEW * TIMES));
	}
	ck_assert_msg(many < MOST * few + 0.02, "%s: %.3f s for %d, %.3f s for %d", cases[_i].name, few, FEW, many, FEW * TIMES);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("many");
	TCase *c = tcase_create("many");

	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, grows_with_the_number, 0, (int)(sizeof cases / sizeof *cases));
	suite_add_tcase(s, c);
	return test_main("to_c_many", s);
}
