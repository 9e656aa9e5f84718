/* SPDX-License-Identifier: MIT */
/* Messages word for word, with their places; all of a text, and none that only follow from others; and normal forms. */
#include "parse.h"

typedef struct row {
	const char *text, *want;
} row;

static void compare(const row *rows, size_t n, bool messages)
{
	unsigned bad = 0;

	for (size_t i = 0; i < n; i++) {
		char *text = with_head(rows[i].text);
		outcome o = outcome_of(text, strlen(text), NULL);
		const char *got = messages || !o.printed ? o.message : strstr(o.printed, "_size 64\n") + 9;
		if (strcmp(got, rows[i].want)) {
			printf("%s\n-- gives\n%s-- and not\n%s\n", rows[i].text, got, rows[i].want);
			bad++;
		}
		outcome_free(&o);
		free(text);
	}
	ck_assert_uint_eq(bad, 0);
}

typedef struct lines {
	char at[16][120];
	size_t n;
} lines;

static void keep_line(void *user, const cptx_error *e)
{
	lines *l = user;

	ck_assert_uint_lt(l->n, ARRAY_LEN(l->at));
	snprintf(l->at[l->n++], sizeof l->at[0], "%.*s", (int)sizeof l->at[0] - 1, e->text);
}

/* What people write who know other languages: the value that begins as the word does comes first. */
START_TEST(likely_values)
{
	static const char *const pairs[][2] = { { "setp.leq.u32", "setp.le.u32" }, { "setp.geq.u32", "setp.ge.u32" },
		                                    { "setp.neq.u32", "setp.ne.u32" }, { "setp.neq.s32", "setp.ne.s32" },
		                                    { "setp.eqq.u32", "setp.eq.u32" }, { "setp.ltt.s32", "setp.lt.s32" } };

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		char text[200], want[80];
		snprintf(text, sizeof text, ".entry k() {\n.reg .pred p; .reg .b32 a;\n%s p, a, a;\nret; }\n", pairs[i][0]);
		snprintf(want, sizeof want, "; write %s (also ", pairs[i][1]);
		char *whole = with_head(text);
		outcome o = outcome_of(whole, strlen(whole), NULL);
		ck_assert_msg(strstr(o.message, want) != NULL, "%s: %s", pairs[i][0], o.message);
		outcome_free(&o);
		free(whole);
	}
}
END_TEST

START_TEST(places)
{
	static const row rows[] = {
		{ ".entry k()\n{\n\t.reg .b32 r<3>;\n\tadd.u32 r1, r2, x;\n}\n", "t:7:18: error: 'x' is not declared\n" },
		{ ".entry k()\n{\n.reg .b32 r<3>;\n\tadd.u32 r1,\n\t\tr2,\n\t\tx;\n}\n", "t:9:3: error: 'x' is not declared\n" },
		{ ".entry k() {\n/* over\nlines */ bra L; }\n", "t:6:14: error: 'L' is neither declared nor a label of 'k'\n" },
		{ ".entry k() {\r\n\tbra L;\r\n}\r\n", "t:5:6: error: 'L' is neither declared nor a label of 'k'\n" },
		{ ".entry k()\n{\n.reg .b32 r<3>;\n\tret\n\tmov.b32 r1, 1;\n}\n",
		  "t:7:5: error: expected ';' behind the instruction\n" },
		{ ".entry k()\n{\n.reg .b32 r<3>;\n\tmembar.gl // all\n\tst.global.b32 [r1], 1;\n}\n",
		  "t:7:11: error: expected ';' behind the instruction\n" },
		{ ".entry k()\n{\n.reg .b32 r<3>;\n\tadd.u32\n\t\trx, r1, r2;\n}\n", "t:8:3: error: 'rx' is not declared\n" },
		{ ".entry k()\n{\n.reg .b32 r<3>;\n\tadd.u32\n\t\tmax, r1, r2;\n}\n", "t:8:3: error: 'max' is not declared\n" },
		{ ".entry k()\n{\n.reg .b32 r<3>;\n\tret\nL:\tmov.b32 r1, 1;\n}\n",
		  "t:7:5: error: expected ';' behind the instruction\n" },
		{ ".file 1 \"a\tb\033[31m.cu\"\n", "t:4:13: error: a control byte (0x1b) in a string\n" },
		{ ".entry k() {\n@q ret; }", "t:5:2: error: 'q' is no predicate register; it is not declared\n" },
		{ ".global .b32 a1;\n\t.global .b32 a<3>;\n",
		  "t:5:15: error: 'a1' is declared twice in this scope; give it another name\n" },
		{ ".entry k() {\n.reg .b32 v2;\n  .reg .v2 .b32 q, v<4>;\n}\n",
		  "t:6:20: error: 'v2' is declared twice in this scope; give it another name\n" },
		{ ".global .b32 a = 1.5, b = c;\n",
		  "t:4:27: error: 'c' is no variable or function of the module that is declared above; its address is no initial "
		  "value\n" },
		{ ".entry k() { .frob\033[31m\177 ; }", "t:4:14: error: '.frob\\x1b[31m\\x7f' is no directive of a body\n" },
		{ ".entry k() { ret; } frob", "t:4:21: error: expected a directive, such as .visible .entry, found 'f'\n" },
		{ ".entry k() { ret;", "t:4:18: error: the body of 'k' is never closed; a } is missing\n" },
		{ ".entry k() {\n/* ret; }", "t:5:1: error: this comment never ends; close it with */\n"
		                             "t:5:10: error: the body of 'k' is never closed; a } is missing\n" },
		{ ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n\t.reg .b64 d;\n\tbarrier.cluster.arrive;\n}\n",
		  "t:7:2: error: barrier.cluster.arrive is not available on sm_80; targets that have it: sm_90 and later. "
		  "Instead: bar.sync, for the threads of one CTA\n" },
		/* what only a newer ptxas than that of the tests reads */
		{ ".version 9.5\n.target sm_107a\n.address_size 64\n.entry k() .minperctamemory 64\n{\n.reg .b32 r<5>;\n"
		  "mov.b32 r4, %locality_domain_id;\n"
		  "tcgen05.ld.spcompress.sync.aligned.32x32b.x4.max.sp::2:4.f32.b2 {r1}, {r2, r3}, [r4];\nbra L;\n}\n",
		  "t:9:5: error: 'L' is neither declared nor a label of 'k'\n" },
		{ ".version 9.3\n.target sm_103a\n.address_size 64\n.entry k() .minperctamemory 64\n{\n}\n",
		  "t:4:12: error: .minperctamemory needs .version 9.4; the text says 9.3\n" },
	};
	compare(rows, ARRAY_LEN(rows), true);
}
END_TEST

/* Once per use, and what follows is still judged. */
START_TEST(recovery)
{
	static const row rows[] = {
		{ ".entry k() {\n.reg .b32 r;\nadd.u32 r, r, x;\nadd.u32 x, r, r;\nmov.b32 r, y;\n}\n",
		  "t:6:15: error: 'x' is not declared\nt:7:9: error: 'x' is not declared\nt:8:12: error: 'y' is not declared\n" },
		{ ".entry k() {\n.reg .frob r;\n.reg .b32 q;\nmov.b32 q, 1;\nmov.b32 q, z;\n}\n.entry l() { bra M; }\n",
		  "t:5:6: error: expected the type of the registers, such as .b32, .f32, .b64, .pred\nt:8:12: error: 'z' is not "
		  "declared\nt:10:18: error: 'M' is neither declared nor a label of 'l'\n" },
		{ ".global .frob a;\n.global .b32 b;\n.entry k() { .reg .b64 d; mov.b64 d, b; mov.b64 d, c; }\n",
		  "t:4:9: error: '.frob' is no type or specifier of a declaration\nt:6:52: error: 'c' is not declared\n" },
		{ ".entry k() {\n.reg .b32 r;\nmov.b32 r, 1\nmov.b32 r, 2;\nmov.b32 r, x;\n}\n",
		  "t:6:13: error: expected ';' behind the instruction\nt:8:12: error: 'x' is not declared\n" },
		{ ".entry k() {\n.reg .b32 r;\nmov.b64 {r, x}, 1;\nmov.b32 r, y;\n}\n",
		  "t:6:13: error: 'x' is not declared\nt:7:12: error: 'y' is not declared\n" },
		{ ".entry k() {\n.reg .b32 r;\n{ mov.b32 r, x; }\nmov.b32 r, y; }\n.entry l() { ret; }\n",
		  "t:6:14: error: 'x' is not declared\nt:7:12: error: 'y' is not declared\n" },
	};
	compare(rows, ARRAY_LEN(rows), true);
}
END_TEST

START_TEST(normal_forms)
{
	static const row rows[] = {
		{ ".entry k(){ret;}", "\n.entry k()\n{\n\tret;\n}\n" },
		{ ".visible.entry k(.param.u64 a,.param .align 8 .b8 b[16])\r\n.maxntid 8,4\r\n{\r\nret;\r\n}",
		  "\n.visible .entry k(\n\t.param .u64 a,\n\t.param .align 8 .b8 b[16]\n)\n.maxntid 8, 4, 1\n{\n\tret;\n}\n" },
		{ ".entry k() { // a\n .reg .b32 /* b */ r; /* c\n d */ mov.b32 r, 1; } // e",
		  "\n.entry k()\n{\n\t// a\n\t// b\n\t.reg .b32 r;\n\t// c\n\t// d\n\tmov.b32 r, 1;\n}\n// e\n" },
		{ ".entry k() { .reg .u32 r; mov.u32 r, 7/2+7 % 4*2-1; mov.u32 r, (1<<4|3)^2&6; mov.u32 r, ~0>>28&15; mov.u32 r, "
		  "!0+(3>2)+(2>=3)+(1<2)+(2<=2)+(1==1)+(1!=1); mov.u32 r, 1&&0||1; mov.u32 r, 0?2:3; mov.u32 r, WARP_SZ*2; mov.u32 "
		  "r, "
		  "0x10+010+0b10; mov.s32 r, -7/2; mov.s32 r, -7 % 4; }",
		  "\n.entry k()\n{\n\t.reg .u32 r;\n\tmov.u32 r, 8;\n\tmov.u32 r, 17;\n\tmov.u32 r, 15;\n\tmov.u32 r, 5;\n\tmov.u32 "
		  "r, 1;\n\tmov.u32 r, 3;\n\tmov.u32 r, 64;\n\tmov.u32 r, 26;\n\tmov.s32 r, -3;\n\tmov.s32 r, 1;\n}\n" },
	};
	compare(rows, ARRAY_LEN(rows), false);
}
END_TEST

/* Of a text with errors the rest is judged too: what the instructions that could be read lack, each in its place. */
START_TEST(what_is_lacking_too)
{
	static const char text[] = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {\n.reg .b32 %r<4>;\n"
							   "griddepcontrol.wait;\nmov.u32 %q, 1;\n  mov.u32 %r1, %clusterid.x;\nadd.u32 %r1;\n"
							   "griddepcontrol.wait;\n}\n.entry l() {\ngriddepcontrol.wait;\nret\n}\n";
	static const char *const want[] = { "t:7:", "t:6:1: error: griddepcontrol.wait is not available",
		                                "t:8:3: error: %clusterid.x is not available",
		                                "t:10:1: error: griddepcontrol.wait is not available",
		                                "t:13:1: error: griddepcontrol.wait is not available" };

	for (int keep = 0; keep < 2; keep++) {
		lines message = { .n = 0 };
		cptx_module *m = cptx_parse(text, sizeof text - 1, &(cptx_parse_opt){ .name = "t", .keep = keep });
		ck_assert_ptr_nonnull(cptx_module_error(m));
		ck_assert_uint_eq(cptx_check(m, NULL, keep_line, &message), ARRAY_LEN(want));
		for (size_t i = 0; i < ARRAY_LEN(want); i++)
			ck_assert_msg(!strncmp(message.at[i], want[i], strlen(want[i])), "%zu: %s", i, message.at[i]);
		message.n = 0;
		ck_assert_uint_eq(cptx_check(m, "sm_90", keep_line, &message),
		                  1 + 4); /* they are judged for the text's own target */
		cptx_module_destroy(m);
	}
	/* Where the head is wrong, nothing else would be true. */
	static const char head[] = ".version 7.0\n.target sm_90\n.address_size 64\n.entry k() { griddepcontrol.wait; ret; }\n";
	lines message = { .n = 0 };
	cptx_module *m = cptx_parse(head, sizeof head - 1, &(cptx_parse_opt){ .name = "t" });
	ck_assert_uint_eq(cptx_check(m, NULL, keep_line, &message), 1);
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { places, likely_values, recovery, normal_forms, what_is_lacking_too };
	return parse_test_run("messages", tests, ARRAY_LEN(tests));
}
