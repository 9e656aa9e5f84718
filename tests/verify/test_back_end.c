/* SPDX-License-Identifier: MIT */
/*
 * What compilers for other languages need beside instructions: functions that are elsewhere (OptiX's among them), call
 * tables and indirect calls, linkage, aliases, pragmas, textures and surfaces by handle, jump tables, debug information. All
 * of it is built by calls, for the oldest target and a newer one, and read by ptxas; and the lowest .version has it.
 */
#include "../ask.h"
#include "../test.h"
#include "assemble.h"
#include <cptx/cptx.h>

typedef struct scene {
	const char *name;
	void (*build)(cptx_module *m);
	unsigned version;        /* the .version that must be printed for sm_75, times ten */
	const char *expected[6]; /* all of these stand in the text */
} scene;

/* ---- calls ---- */

/* OptiX's device functions are declared in full, with registers or with memory, and called by name. */
static void optix(cptx_module *m)
{
	cptx_kernel *get = cptx_func_declare(m, "_optix_get_payload");
	cptx_set_linkage(get, CPTX_LINK_EXTERN);
	cptx_result_reg(get, CPTX_U32, "value");
	cptx_param_reg(get, CPTX_U32, "number");
	cptx_kernel *hit = cptx_func_declare(m, "_optix_report_intersection_0");
	cptx_set_linkage(hit, CPTX_LINK_EXTERN);
	cptx_result_var(hit, CPTX_B32, "taken");
	cptx_param_var(hit, CPTX_F32, "t");
	cptx_kernel *k = cptx_kernel_begin(m, "__intersection__sphere");
	cptx_val payload = cptx_reg(k, CPTX_U32), number = cptx_var(k, CPTX_U32, 3);
	cptx_call_func(k, cptx_func_val(get), .r = cptx_args(k, payload), .a = cptx_args(k, number));
	CPTX_SCOPE(k)
	{
		cptx_val t = cptx_local(k, CPTX_F32, "t0", .space = CPTX_PARAM);
		cptx_val taken = cptx_local(k, CPTX_B32, "taken0", .space = CPTX_PARAM);
		cptx_st(k, t, cptx_cvt(k, payload, .dtype = CPTX_F32, .rnd = CPTX_RN), .space = CPTX_PARAM);
		cptx_call_func(k, cptx_func_val(hit), .r = cptx_args(k, taken), .a = cptx_args(k, t));
		cptx_ld(k, taken, .space = CPTX_PARAM, .type = CPTX_B32);
	}
}

static cptx_kernel *add_number(cptx_module *m, const char *name, int number)
{
	cptx_kernel *f = cptx_func_begin(m, name, CPTX_U32);

	cptx_func_return(f, cptx_add(f, cptx_param(f, CPTX_U32, "x"), number));
	return f;
}

/* A table of functions, one of which is called by its address and a prototype; its list of targets is known, too. */
static void call_table(cptx_module *m)
{
	cptx_val f[2] = { cptx_func_val(add_number(m, "one", 1)), cptx_func_val(add_number(m, "two", 2)) };
	cptx_address to[] = { { .index = 0, .to = f[0] }, { .index = 1, .to = f[1] } };
	cptx_val table = cptx_variable(m, CPTX_U64, "table", .dim = { 2 }, .address = to, .naddress = 2);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_val i = cptx_param(k, CPTX_U32, "i"), out = cptx_param(k, CPTX_PTR, "out"), r[2];
	cptx_val at = cptx_add(k, cptx_mov(k, table, .type = CPTX_U64), cptx_mul_wide(k, i, 8));
	cptx_val callee = cptx_ld(k, at, .space = CPTX_GLOBAL, .type = CPTX_U64);
	enum cptx_type parameters[] = { CPTX_U32 };
	cptx_val prototype = cptx_prototype(k, CPTX_U32, 1, parameters);
	for (int j = 0; j < 2; j++)
		r[j] = cptx_reg(k, CPTX_U32);
	cptx_call_ptr(k, callee, prototype, .r = cptx_args(k, r[0]), .a = cptx_args(k, i));
	cptx_call_ptr(k, callee, cptx_targets(k, 2, f), .r = cptx_args(k, r[1]), .a = cptx_args(k, r[0]));
	cptx_st(k, out, r[1], .space = CPTX_GLOBAL);
}

static void jump_table(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_val out = cptx_param(k, CPTX_PTR, "out"), which = cptx_param(k, CPTX_U32, "which"), label[3];

	for (int i = 0; i < 3; i++)
		label[i] = cptx_label(k);
	cptx_brx_idx(k, which, cptx_targets(k, 3, label));
	for (int i = 0; i < 3; i++) {
		cptx_place(k, label[i]);
		cptx_st(k, out, cptx_var(k, CPTX_U32, 10 + i), .space = CPTX_GLOBAL);
		cptx_exit(k);
	}
}

/* ---- linking ---- */

static void linkage(cptx_module *m)
{
	cptx_variable(m, CPTX_U32, "shared_by_all", .linkage = CPTX_LINK_COMMON);
	cptx_variable(m, CPTX_U32, "default_value", .linkage = CPTX_LINK_WEAK, .init = &(uint32_t){ 7 }, .ninit = 1);
	cptx_val far = cptx_variable(m, CPTX_U32, "elsewhere", .linkage = CPTX_LINK_EXTERN);
	cptx_kernel *f = add_number(m, "replaceable", 1);
	cptx_set_linkage(f, CPTX_LINK_WEAK);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_set_linkage(k, CPTX_LINK_WEAK);
	cptx_val x = cptx_ld(k, far, .space = CPTX_GLOBAL, .type = CPTX_U32);
	cptx_st(k, cptx_find(m, "shared_by_all"), cptx_call(k, cptx_func_val(f), 1, &x), .space = CPTX_GLOBAL);
}

static void alias(cptx_module *m)
{
	cptx_kernel *f = cptx_func_begin(m, "worker", CPTX_TYPE_NONE);
	cptx_set_linkage(f, CPTX_LINK_VISIBLE);
	cptx_kernel *other = cptx_func_declare(m, "helper");
	cptx_set_linkage(other, CPTX_LINK_VISIBLE);
	cptx_module_text(m, ".alias helper, worker;");
	cptx_call(cptx_kernel_begin(m, "k"), cptx_func_val(other), 0, NULL);
}

/* ---- directives ---- */

static void heads(cptx_module *m)
{
	cptx_kernel *f = cptx_func_begin(m, "stops", CPTX_TYPE_NONE);
	cptx_directive(f, ".noreturn");
	cptx_trap(f);
	cptx_exit(f);
	cptx_call(cptx_kernel_begin(m, "k", .block = { 64 }), cptx_func_val(f), 0, NULL);
}

static void pragmas(cptx_module *m)
{
	cptx_module_text(m, ".pragma \"nounroll\";");
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_val i = cptx_var(k, CPTX_U32, 0), n = cptx_param(k, CPTX_U32, "n");
	CPTX_FOR(k, i, n, 1) {
		cptx_pragma(k, "nounroll");
	}
}

static void frequency(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "k");

	cptx_pragma(k, "frequency 8");
	cptx_ret(k);
}

static void bytes_of_address(cptx_module *m)
{
	cptx_val g = cptx_variable(m, CPTX_U32, "g");
	cptx_address to[] = { { .index = 0, .to = g, .mask = 0xff }, { .index = 1, .to = g, .mask = 0xff00 } };

	cptx_variable(m, CPTX_U8, "bytes", .dim = { 2 }, .address = to, .naddress = 2);
	cptx_kernel_begin(m, "k");
}

/* ---- textures ---- */

static void textures(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_val tex = cptx_param(k, CPTX_U64, "tex"), surf = cptx_param(k, CPTX_U64, "surf");
	cptx_val x = cptx_cvt(k, cptx_tid_x(k), .dtype = CPTX_F32, .rnd = CPTX_RN), i = cptx_as(cptx_tid_x(k), CPTX_S32);
	cptx_val texel =
		cptx_tex(k, tex, cptx_vec(k, x, x), .geom = CPTX_DIM_2D, .vec = CPTX_V4, .dtype = CPTX_F32, .ctype = CPTX_F32);
	cptx_val old = cptx_suld(k, surf, i, .geom = CPTX_DIM_1D, .type = CPTX_B32, .oob = CPTX_TRAP);
	cptx_val sum = cptx_add(k, cptx_elem(texel, 0), cptx_as(old, CPTX_F32));
	cptx_sust(k, surf, i, cptx_as(sum, CPTX_B32), .geom = CPTX_DIM_1D, .type = CPTX_B32, .oob = CPTX_CLAMP);
	cptx_txq(k, tex, .query = CPTX_WIDTH);
}

/* ---- debug information ---- */

static void lines(cptx_module *m)
{
	cptx_module_text(m, ".file 1 \"program.lang\"");
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_text(k, ".loc 1 20 3");
	cptx_val x = cptx_mov(k, cptx_sreg_val(CPTX_SREG_TID_X), .type = CPTX_U32);
	cptx_text(k, ".loc 1 7 5, function_name inner, inlined_at 1 20 3");
	cptx_st(k, cptx_param(k, CPTX_PTR, "out"), x, .space = CPTX_GLOBAL);
	cptx_module_text(m, ".section .debug_str {\ninner:\n.b8 105, 110, 0\n}");
}

static void sections(cptx_module *m)
{
	cptx_kernel_begin(m, "k");
	cptx_module_text(m, ".section .debug_abbrev {\n.b8 1, 17, 0\n}");
	cptx_module_text(m, ".section .debug_info {\nfrom:\n.b32 12\n.b8 -1\nto:\n.b32 to-from\n.b64 .debug_abbrev\n}");
}

static const scene scenes[] = {
	{ "optix",
	  optix,
	  63,
	  { ".extern .func (.reg .u32 value) _optix_get_payload(", "call (%r", "_optix_report_intersection_0, (t0)" } },
	{ "call table", call_table, 63, { "table[2]={one, two}", ".callprototype", ".calltargets one, two" } },
	{ "jump table", jump_table, 63, { "brx.idx", ".branchtargets" } },
	{ "linkage", linkage, 63, { ".common .global", ".weak .global", ".extern .global", ".weak .func", ".weak .entry" } },
	{ "alias", alias, 63, { ".alias helper, worker;", "call helper" } },
	{ "heads", heads, 64, { ".noreturn" } },
	{ "pragmas", pragmas, 63, { "\n.pragma \"nounroll\";", "\t.pragma \"nounroll\";" } },
	{ "frequency", frequency, 90, { "frequency 8" } },
	{ "bytes of an address", bytes_of_address, 71, { "0xFF00(g)" } },
	{ "textures", textures, 63, { "tex.2d.v4.f32.f32", "suld.b.1d.b32.trap", "sust.b.1d.b32.clamp", "txq.width" } },
	{ "lines", lines, 70, { "inlined_at 1 20 3", ".file 1", ".section .debug_str" } },
	{ "sections", sections, 75, { "to-from", ".b8 -1" } },
};
enum { SCENES = sizeof scenes / sizeof *scenes };

/* The text for a target; NULL, told, where it is refused. */
static char *print(const scene *s, const char *target, unsigned *version)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_module_new(NULL);

	s->build(m);
	cptx_ptx *ptx = cptx_emit(m, target, NULL, &err);
	if (!ptx)
		printf("%s: %s\n", s->name, err.text);
	char *text = ptx ? strdup(cptx_ptx_text(ptx)) : NULL;
	*version = cptx_ptx_version(ptx);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return text;
}

START_TEST(all_is_built)
{
	static const char *const targets[] = { "sm_75", "sm_90" };
	assembly jobs[2 * SCENES] = { { .target = NULL } };
	unsigned version, bad = 0;
	size_t n = 0;

	for (unsigned i = 0; i < 2 * SCENES; i++) {
		const scene *s = &scenes[i / 2];
		char *text = print(s, targets[i % 2], &version);
		ck_assert_ptr_nonnull(text);
		for (unsigned j = 0; j < 6 && s->expected[j]; j++)
			ck_assert_msg(strstr(text, s->expected[j]) != NULL, "%s: no %s in\n%s", s->name, s->expected[j], text);
		if (i % 2 == 0)
			ck_assert_msg(version == s->version, "%s: .version %u", s->name, version);
		jobs[n++] = (assembly){ .target = targets[i % 2], .ptx = text, .separate = true };
	}
	if (test_ptxas()) {
		assemble(jobs, n);
		for (size_t i = 0; i < n; i++) {
			bad += jobs[i].status != 0;
			if (jobs[i].status)
				printf("%s, %s:\n%s\n%s\n", scenes[i / 2].name, jobs[i].target, jobs[i].said, jobs[i].ptx);
		}
		assemble_free(jobs, n);
	} else {
		skip("ptxas");
	}
	for (size_t i = 0; i < n; i++)
		free((void *)(uintptr_t)jobs[i].ptx);
	ck_assert_uint_eq(bad, 0);
}
END_TEST

/* ---- what is wrong ---- */

static void alias_of_nothing(cptx_module *m) { cptx_module_text(m, ".alias helper, worker;"); }

static void alias_of_itself(cptx_module *m)
{
	cptx_func_declare(m, "helper");
	cptx_module_text(m, ".alias helper, helper;");
}

static void alias_with_a_body(cptx_module *m)
{
	add_number(m, "one", 1), add_number(m, "two", 2);
	cptx_module_text(m, ".alias one, two;");
}

static void alias_of_another_signature(cptx_module *m)
{
	add_number(m, "one", 1);
	cptx_func_declare(m, "helper");
	cptx_module_text(m, ".alias helper, one;");
}

static void addresses_of_nothing(cptx_module *m) { cptx_variable(m, CPTX_U64, "table", .dim = { 2 }, .naddress = 2); }

static void address_in_b8(cptx_module *m)
{
	cptx_address to = { .index = 0, .to = cptx_variable(m, CPTX_U32, "g"), .mask = 0xff };

	cptx_variable(m, CPTX_B8, "bytes", .address = &to, .naddress = 1);
}

static void too_many_addresses(cptx_module *m)
{
	cptx_val g = cptx_variable(m, CPTX_U32, "g");
	cptx_address to[] = { { .index = 0, .to = g }, { .index = 2, .to = g } };

	cptx_variable(m, CPTX_U64, "table", .dim = { 2 }, .address = to, .naddress = 2);
}

START_TEST(what_is_wrong_is_refused)
{
	static void (*const wrong[])(
		cptx_module *) = { alias_of_nothing,     alias_of_itself,    alias_with_a_body, alias_of_another_signature,
		                   addresses_of_nothing, too_many_addresses, address_in_b8 };
	static const char *const says[] = { "names two functions", "names two functions", "without a body", "same parameters",
		                                ".address is NULL",    "3 were given",        "is .u8" };

	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		cptx_module *m = cptx_module_new(NULL);
		wrong[i](m);
		const cptx_error *err = cptx_module_error(m);
		ck_assert_msg(err && strstr(err->text, says[i]), "%s", err ? err->text : says[i]);
		ck_assert_ptr_nonnull(strstr(err->text, "test_back_end.c:"));
		cptx_module_destroy(m);
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("back_end");
	TCase *c = test_case(s, "back_end");

	tcase_add_test(c, all_is_built);
	tcase_add_test(c, what_is_wrong_is_refused);
	return test_main("verify_back_end", s);
}
