/* SPDX-License-Identifier: MIT */
/* Several texts as one program: what they share, what each keeps to itself, what is defined twice or nowhere. */
#include "trial.h"

#define HEAD(version, target) ".version " version "\n.target " target "\n.address_size 64\n"

/* Adds what function and variables of the other text say to a word of its own. */
#define CALLER                                                                                                              \
	HEAD("7.0", "sm_75")                                                                                                    \
	".extern .func (.param .b32 r) twice (.param .b32 x);\n"                                                                \
	".extern .global .align 4 .b32 shared_word;\n"                                                                          \
	".extern .const .align 4 .b32 table[];\n"                                                                               \
	".global .align 4 .b32 own = 100;\n"                                                                                    \
	".weak .global .align 4 .b32 either = 1000;\n"                                                                          \
	".common .global .align 4 .b32 counted;\n"                                                                              \
	".func (.param .b32 r) helper () { .reg .b32 %r<2>; mov.u32 %r1, 10000; st.param.b32 [r], %r1; ret; }\n"                \
	".weak .func (.param .b32 r) inline () { .reg .b32 %r<2>; mov.u32 %r1, 1000000; st.param.b32 [r], %r1; ret; }\n"        \
	".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<3>;\n"                                             \
	"ld.param.u64 %rd1, [p]; mov.u32 %r1, 1;\n"                                                                             \
	"{ .param .b32 x; .param .b32 r; st.param.b32 [x], %r1; call (r), twice, (x); ld.param.b32 %r1, [r]; }\n"               \
	"{ .param .b32 r; call (r), helper; ld.param.b32 %r2, [r]; }\n"                                                         \
	"{ .param .b32 r; call (r), inline; ld.param.b32 %r6, [r]; }\n"                                                         \
	"ld.global.u32 %r3, [shared_word]; ld.global.u32 %r4, [own]; ld.global.u32 %r5, [either]; ld.const.u32 %r7, "           \
	"[table+4];\n"                                                                                                          \
	"add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r5;\n"                         \
	"add.u32 %r1, %r1, %r6; add.u32 %r1, %r1, %r7; ld.global.u32 %r8, [counted]; add.u32 %r1, %r1, %r8;\n"                  \
	"st.global.u32 [%rd1], %r1; ret;\n}\n"
#define CALLEE                                                                                                              \
	HEAD("7.8", "sm_80")                                                                                                    \
	".visible .global .align 4 .b32 shared_word = 10;\n"                                                                    \
	".visible .const .align 4 .b32 table[2] = {7, 100000};\n"                                                               \
	".global .align 4 .b32 own = 4;\n"                                                                                      \
	".weak .global .align 4 .b32 either = 1000;\n"                                                                          \
	".common .global .align 4 .b32 counted;\n"                                                                              \
	".func (.param .b32 r) helper (.param .b32 a, .param .b32 b)\n"                                                         \
	"{ .reg .b32 %r<3>; ld.param.b32 %r1, [a]; ld.param.b32 %r2, [b]; add.u32 %r1, %r1, %r2; st.param.b32 [r], %r1; ret; "  \
	"}\n"                                                                                                                   \
	".weak .func (.param .b32 r) inline () { .reg .b32 %r<2>; mov.u32 %r1, 1000000; st.param.b32 [r], %r1; ret; }\n"        \
	".visible .func (.param .b32 r) twice (.param .b32 x)\n{\n.reg .b32 %r<4>; ld.param.b32 %r1, [x]; ld.global.u32 %r2, "  \
	"[own];\n"                                                                                                              \
	"st.global.u32 [counted], 20000000;\n"                                                                                  \
	"{ .param .b32 a; .param .b32 b; .param .b32 r1; st.param.b32 [a], %r1; st.param.b32 [b], %r2;\n"                       \
	"call (r1), helper, (a, b); ld.param.b32 %r3, [r1]; }\nst.param.b32 [r], %r3; ret;\n}\n"

static cptx_program *joined(cptx_device *dev, const char *const *text, size_t n, cptx_error *err)
{
	static const char *const names[] = { "a.ptx", "b.ptx", "c.ptx" };
	cptx_link_input in[3] = { 0 };

	memset(err, 0, sizeof *err);
	for (size_t i = 0; i < n; i++)
		in[i] = (cptx_link_input){ .data = text[i], .size = strlen(text[i]), .name = names[i] };
	return cptx_device_link(dev, in, n, NULL, err);
}

static cptx_device *open_it(void)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open("sm_80", NULL, &err);

	ck_assert_msg(dev != NULL, "%s", err.text);
	return dev;
}

static uint32_t result_of(cptx_device *dev, cptx_program *p)
{
	cptx_error err = { 0 };
	uint64_t at = cptx_mem_alloc(dev, 4, &err);
	uint32_t x = 0;

	cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, CPTX_ARGS(at) }, NULL, &err);
	cptx_mem_read(dev, &x, at, sizeof x, &err);
	ck_assert_msg(err.code == CPTX_OK, "%s", err.text);
	cptx_mem_free(dev, at);
	return x;
}

/* In every order: what is called may stand in front of who calls it. */
START_TEST(texts_share_what_they_export)
{
	static const char *const texts[][2] = { { CALLER, CALLEE }, { CALLEE, CALLER } };

	for (size_t i = 0; i < 2; i++) {
		cptx_device *dev = open_it();
		cptx_error err;
		cptx_program *p = joined(dev, texts[i], 2, &err);
		uint32_t word = 0;
		size_t size = 0;
		ck_assert_msg(p != NULL, "%s", err.text);
		ck_assert_uint_eq(result_of(dev, p), 5 + 10 + 100 + 1000 + 10000 + 100000 + 1000000 + 20000000);
		uint64_t at = cptx_program_global(p, "shared_word", &size, &err);
		ck_assert(at && size == 4 && cptx_mem_read(dev, &word, at, 4, &err) && word == 10);
		ck_assert_uint_eq(cptx_program_version(p), 78);
		ck_assert_str_eq(cptx_program_target(p), "sm_80");
		cptx_program_destroy(p);
		cptx_device_close(dev);
	}
}
END_TEST

/* A variable that one and the same text declares first is the one that it defines then. */
START_TEST(declared_then_defined)
{
	static const char *const text[] = { HEAD(
		"7.0", "sm_80") ".extern .global .align 4 .b32 x;\n.visible .global .align 4 .b32 x = 5;\n"
		                ".visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
		                "ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [x]; st.global.u32 [%rd1], %r1; ret;\n}\n" };
	cptx_device *dev = open_it();
	cptx_error err;
	cptx_program *p = joined(dev, text, 1, &err);

	ck_assert_msg(p != NULL, "%s", err.text);
	ck_assert_uint_eq(result_of(dev, p), 5);
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

/* A finding names the text and its line. */
START_TEST(findings_name_the_text)
{
	static const char *const texts[] = {
		HEAD("7.0", "sm_75") ".extern .func f();\n.visible .entry k(.param .u64 p)\n{\ncall f;\nret;\n}\n",
		HEAD("7.0", "sm_80") "\n.visible .func f()\n{\ntrap;\nret;\n}\n",
	};
	cptx_device *dev = open_it();
	cptx_error err;
	cptx_program *p = joined(dev, texts, 2, &err);

	ck_assert_msg(p != NULL, "%s", err.text);
	ck_assert(
		!cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, CPTX_ARGS((uint64_t)0) }, NULL, &err));
	const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);
	ck_assert(f && f->code == CPTX_FIND_TRAP);
	ck_assert_str_eq(f->at.file, "b.ptx");
	ck_assert_uint_eq(f->at.line, 7);
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

/* Texts that do not fit together are refused, and the error says why. */
START_TEST(refused)
{
	static const struct {
		const char *texts[2], *why;
		enum cptx_code code;
	} all[] = {
		{ { HEAD("7.0", "sm_80") ".visible .func f() { ret; }\n", HEAD("7.0", "sm_80") "\n.visible .func f() { ret; }\n" },
		  "b.ptx:5:16: error: 'f' is defined by another text too",
		  CPTX_E_COMPILE },
		{ { HEAD("7.0", "sm_80") ".visible .global .b32 v;\n", HEAD("7.0", "sm_80") ".visible .global .b32 v;\n" },
		  "b.ptx:4:23: error: 'v' is defined by another text too",
		  CPTX_E_COMPILE },
		{ { HEAD("7.0", "sm_80") ".extern .global .b32 v;\n", HEAD("7.0", "sm_80") ".visible .global .b64 v[2];\n" },
		  "b.ptx:4:23: error: 'v' has 16 bytes here, and 4 in a text that this one is linked to",
		  CPTX_E_COMPILE },
		{ { HEAD("7.0", "sm_80") ".visible .func f() { ret; }\n", HEAD("7.0", "sm_80") ".extern .func f(.param .b32 x);\n" },
		  "b.ptx:4:15: error: 'f' was declared above with other parameters",
		  CPTX_E_PARSE },
		{ { HEAD("7.0", "sm_80") ".visible .func f() { ret; }\n", HEAD("7.8", "sm_90") ".extern .func f();\n" },
		  "an emulated sm_80 cannot run code for sm_90",
		  CPTX_E_TARGET },
	};
	cptx_device *dev = open_it();
	cptx_error err;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		ck_assert_ptr_null(joined(dev, all[i].texts, 2, &err));
		ck_assert_msg(strstr(err.text, all[i].why) != NULL, "%zu: %s", i, err.text);
		ck_assert_uint_eq(err.code, all[i].code);
	}
	cptx_device_close(dev);
}
END_TEST

/* What nobody defines is told when a kernel that wants it is looked for. */
START_TEST(defined_nowhere)
{
	static const struct {
		const char *text, *why;
	} all[] = {
		{ HEAD("7.0",
		       "sm_80") ".extern .global .b32 v;\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r;\nld.global.b32 %r, "
		                "[v];\nret;\n}\n",
		  "variable 'v' is .extern, and nothing that was loaded defines it" },
		{ HEAD("7.0", "sm_80") ".extern .func f();\n.visible .entry k(.param .u64 p)\n{\ncall f;\nret;\n}\n",
		  "function f is only declared; link what defines it" },
	};
	cptx_device *dev = open_it();
	cptx_error err;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		cptx_program *p = joined(dev, &all[i].text, 1, &err);
		ck_assert_msg(p != NULL, "%s", err.text);
		ck_assert(!cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, CPTX_ARGS((uint64_t)0) },
		                            NULL, &err));
		ck_assert_msg(strstr(err.text, all[i].why) != NULL, "%s", err.text);
		cptx_program_destroy(p);
	}
	cptx_device_close(dev);
}
END_TEST

/* An initialiser gives an address to memory as soon as the program is there. */
START_TEST(initialised_by_nobody)
{
	static const char *const texts[] = { HEAD("7.0",
		                                      "sm_80") ".extern .global .b32 v;\n.visible .global .u64 table[2] = {0, v};\n"
		                                               ".visible .entry k(.param .u64 p) { ret; }\n",
		                                 HEAD("7.0", "sm_80") ".visible .global .b32 v = 3;\n" };
	cptx_device *dev = open_it();
	cptx_error err;

	ck_assert_ptr_null(joined(dev, texts, 1, &err));
	ck_assert_msg(strstr(err.text, "variable table: variable 'v' is .extern, and nothing that was loaded defines it") !=
	                  NULL,
	              "%s", err.text);
	cptx_program *p = joined(dev, texts, 2, &err);
	ck_assert_msg(p != NULL, "%s", err.text);
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

#define ENTRY(linkage, params, value)                                                                                       \
	HEAD("7.0", "sm_80")                                                                                                    \
	linkage ".entry k(" params ".param .u64 p)\n{\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [p]; st.global.u32 [%rd1], " value \
			"; ret;\n}\n"

/* Kernels of one name that texts keep to themselves: the one that is exported is the one to launch. */
START_TEST(kernels_of_one_name)
{
	static const char *const own[] = { ENTRY("", "", "1"), ENTRY("", "", "2") };
	static const char *const one[][2] = { { ENTRY("", ".param .u64 other, ", "1"), ENTRY(".visible ", "", "2") },
		                                  { ENTRY(".visible ", "", "2"), ENTRY("", ".param .u64 other, ", "1") } };
	cptx_device *dev = open_it();
	cptx_error err;
	cptx_program *p = joined(dev, own, 2, &err);

	ck_assert_msg(p != NULL, "%s", err.text);
	ck_assert(
		!cptx_launch_once(p, "k", &(cptx_launch_opt){ .grid = { 1 }, .block = { 1 }, CPTX_ARGS((uint64_t)0) }, NULL, &err));
	ck_assert_msg(strstr(err.text, "2 texts have a kernel \"k\" of their own") != NULL, "%s", err.text);
	cptx_program_destroy(p);
	for (size_t i = 0; i < 2; i++) {
		p = joined(dev, one[i], 2, &err);
		ck_assert_msg(p != NULL, "%s", err.text);
		ck_assert_uint_eq(result_of(dev, p), 2);
		ck_assert_ptr_null(cptx_program_kernel_at(p, 1));
		cptx_program_destroy(p);
	}
	cptx_device_close(dev);
}
END_TEST

TRIAL_MAIN("emu_link", initialised_by_nobody, kernels_of_one_name, texts_share_what_they_export, declared_then_defined,
           findings_name_the_text, refused, defined_nowhere)
