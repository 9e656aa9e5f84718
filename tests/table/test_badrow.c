/* SPDX-License-Identifier: MIT */
/*
 * A bad row of insn.def stops the build with file, line and column: the generator is compiled with a table of one bad row in
 * front of the true one and run.
 */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *name, *rows, *message; /* message: what the generator must say */
} bad[] = {
	{ "unknown_value", "OP(add, \"x\", \"y\")\nINSN(add, \"add{.rnd=rn|zr}.type=f32 d, a, b\", \"PTX 1.0, sm_10\", NONE)\n",
	  "src/arch/insn.def:2:13: error: 'zr' is neither in mods.def nor in types.def" },
	{ "unlabelled_choice", "OP(add, \"x\", \"y\")\nINSN(add, \"add.rn|rz.type=f32 d, a, b\", \"PTX 1.0, sm_10\", NONE)\n",
	  "src/arch/insn.def:2:10: error: a choice needs a label" },
	{ "unknown_constraint", "OP(add, \"x\", \"y\")\n\nINSN(add, \"add.type=f32 d, a, b\", \"PTX 1.0, sm_10\", NOSUCH)\n",
	  "src/arch/insn.def:3: error: no constraint NOSUCH in constraint.def" },
	{ "wrong_op",
	  "OP(add, \"x\", \"y\")\nINSN(add, \"add.type=f32 d, a, b\", \"PTX 1.0, sm_10\", NONE)\n"
	  "INSN(sub, \"sub.type=f32 d, a, b\", \"PTX 1.0, sm_10\", NONE)\n",
	  "src/arch/insn.def:3: error: INSN(sub) does not stand under OP(sub)" },
	{ "open_brace", "OP(add, \"x\", \"y\")\nINSN(add, \"add{.ftz.type=f32 d, a, b\", \"PTX 1.0, sm_10\", NONE)\n",
	  "src/arch/insn.def:2:9: error: expected }" },
	{ "unknown_operand_type", "OP(add, \"x\", \"y\")\nINSN(add, \"add.type=f32 d, a:tpye, b\", \"PTX 1.0, sm_10\", NONE)\n",
	  "src/arch/insn.def:2: error: operand a: 'tpye' is neither a type nor the label of a modifier" },
	{ "unknown_declaration",
	  "OP(add, \"Floating Point Instructions: add\", \"y\")\nINSN(add, \"add.type=f32 d, a:b32=bit, b\", \"PTX 1.0, "
	  "sm_10\", NONE)\n",
	  "src/arch/insn.def:2: error: operand a: =bit is none of =int, =half, =bits, =number and =type" },
	{ "unknown_section", "OP(add, \"x\", \"y\")\nINSN(add, \"add.type=f32 d, a, b\", \"PTX 1.0, sm_10\", NONE)\n",
	  "src/arch/insn.def:1: error: OP(add): 'x' is no section of manual.def" },
	{ "bad_availability",
	  "OP(add, \"Floating Point Instructions: add\", \"y\")\nINSN(add, \"add.type=f32 d, a, b\", \"PTX one\", NONE)\n",
	  "error: availability 'PTX one': expected 'PTX major.minor'" },
	{ "twice", "OP(add, \"x\", \"y\")\nINSN(add, \"add.type=f32|f32 d, a, b\", \"PTX 1.0, sm_10\", NONE)\n",
	  "src/arch/insn.def:2:14: error: value 'f32' twice" },
	{ "two_presets", "OP(add, \"x\", \"y\")\nINSN(add, \"add.rnd=rn*|rz*.type=f32 d, a, b\", \"PTX 1.0, sm_10\", NONE)\n",
	  "src/arch/insn.def:2:15: error: one value of a modifier that must be there can be the preset" },
	{ "optional_preset",
	  "OP(add, \"x\", \"y\")\nINSN(add, \"add{.rnd=rn*|rz}.type=f32 d, a, b\", \"PTX 1.0, sm_10\", NONE)\n",
	  "src/arch/insn.def:2:12: error: one value of a modifier that must be there can be the preset" },
	{ "behind_an_address", "OP(add, \"x\", \"y\")\nINSN(add, \"add.type=f32 d, [a]{.ftz\", \"PTX 1.0, sm_10\", NONE)\n",
	  "src/arch/insn.def:2:25: error: expected }" },
	{ "no_insn", "OP(add, \"x\", \"y\")\n", "src/arch/insn.def:1: error: OP(add) has no INSN" },
};

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

START_TEST(a_bad_row_stops_the_build)
{
	const char *cc = getenv("CPTX_CC"), *source = getenv("CPTX_SOURCE"), *generator = getenv("CPTX_GENERATOR");
	char dir[] = "/tmp/cptx_badrow_XXXXXX", path[256], command[2048], answer[4096];

	if (!cc || !source || !generator) {
		skip("CPTX_CC, CPTX_SOURCE and CPTX_GENERATOR are not set");
		return;
	}
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/arch", dir);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/arch/insn.def", dir);
	write_file(path, bad[_i].rows);
	snprintf(command, sizeof command,
	         "cd '%s' && %s -D_DEFAULT_SOURCE -I. -I'%s/src' -o gen '%s/tools/gen_insn/rows.c' '%s' 2>&1 && "
	         "./gen table out 2>&1",
	         dir, cc, source, source, generator);
	FILE *p = popen(command, "r");
	ck_assert_ptr_nonnull(p);
	answer[fread(answer, 1, sizeof answer - 1, p)] = 0;
	int status = pclose(p);
	snprintf(command, sizeof command, "rm -r '%s'", dir);
	ck_assert_int_eq(system(command), 0);
	ck_assert_msg(status != 0, "%s: the generator took it", bad[_i].name);
	ck_assert_msg(strstr(answer, bad[_i].message) != NULL, "%s: expected '%s', it said: %s", bad[_i].name, bad[_i].message,
	              answer);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("table");
	TCase *t = tcase_create("bad rows");
	tcase_set_timeout(t, 0);
	tcase_add_loop_test(t, a_bad_row_stops_the_build, 0, (int)(sizeof bad / sizeof *bad));
	suite_add_tcase(s, t);
	return test_main("table bad rows", s);
}
