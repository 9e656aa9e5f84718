/* SPDX-License-Identifier: MIT */
/* Structured control flow, labels and device functions. */
#include "verify.h"

/* A kernel of its own with a counter in %r1 and a predicate %p1 "counter < 5". */
static cptx_kernel *k;
static cptx_val i, p;
#define HEAD "\tmov.u32 %r1, 0;\n\tsetp.lt.u32 %p1, %r1, 5;\n"

static void begin(void)
{
	blank();
	k = cptx_kernel_begin(s.m, "k");
	i = cptx_var(k, CPTX_U32, 0);
	p = cptx_setp(k, i, 5, .cmp = CPTX_LT);
}

static void mark(int n) { cptx_mov(k, n, .into = i); }

START_TEST(if_alone)
{
	begin();
	CPTX_IF(k, p)
		mark(1);
	mark(2);
	body_is("sm_80", HEAD "\t@!%p1 bra $L0;\n\tmov.u32 %r1, 1;\n$L0:\n\tmov.u32 %r1, 2;\n\tret;\n");
}
END_TEST

START_TEST(if_negated)
{
	begin();
	CPTX_IF(k, cptx_negated(p)) {
		mark(1);
	}
	body_is("sm_80", HEAD "\t@%p1 bra $L0;\n\tmov.u32 %r1, 1;\n$L0:\n\tret;\n");
}
END_TEST

START_TEST(if_else)
{
	begin();
	CPTX_IF(k, p)
		mark(1);
	CPTX_ELSE(k)
		mark(2);
	body_is("sm_80", HEAD "\t@!%p1 bra $L0;\n\tmov.u32 %r1, 1;\n\tbra $L1;\n$L0:\n\tmov.u32 %r1, 2;\n$L1:\n\tret;\n");
}
END_TEST

START_TEST(else_of_the_outer)
{
	begin();
	CPTX_IF(k, p) {
		CPTX_IF(k, p)
			mark(1);
		CPTX_ELSE(k)
			mark(2);
	}
	CPTX_ELSE(k) {
		CPTX_IF(k, p)
			mark(3);
	}
	body_is("sm_80", HEAD "\t@!%p1 bra $L0;\n\t@!%p1 bra $L1;\n\tmov.u32 %r1, 1;\n\tbra $L2;\n$L1:\n\tmov.u32 %r1, "
	                      "2;\n$L2:\n\tbra $L4;\n$L0:\n"
	                      "\t@!%p1 bra $L4;\n\tmov.u32 %r1, 3;\n$L4:\n\tret;\n");
}
END_TEST

START_TEST(for_loop)
{
	begin();
	CPTX_FOR(k, i, 10, 2) {
		cptx_continue_when(k, p);
		cptx_break_when(k, cptx_negated(p));
		mark(7);
	}
	body_is(
		"sm_80", HEAD
		"\tsetp.lt.u32 %p2, %r1, 10;\n\t@!%p2 bra $L0;\n$L1:\n\t@%p1 bra $L2;\n\t@!%p1 bra $L0;\n\tmov.u32 %r1, 7;\n$L2:\n"
		"\tadd.u32 %r1, %r1, 2;\n\tsetp.lt.u32 %p3, %r1, 10;\n\t@%p3 bra $L1;\n$L0:\n\tret;\n");
}
END_TEST

START_TEST(for_of_other_types)
{
	begin();
	cptx_val wide = cptx_var(k, CPTX_S64, -8), step = cptx_var(k, CPTX_S64, 4);
	CPTX_FOR(k, wide, INT64_C(5000000000), step)
		mark(1);
	cptx_val x = cptx_var(k, CPTX_F32, 0.0f);
	CPTX_FOR(k, x, 1.0f, 0.25f)
		mark(2);
	shows("sm_80", "setp.lt.s64 %p2, %rd1, 5000000000;", "add.s64 %rd1, %rd1, %rd2;", "setp.lt.f32 %p4, %f1, 0f3F800000;",
	      "add.f32 %f1, %f1, 0f3E800000;", NULL);
}
END_TEST

START_TEST(while_loop)
{
	begin();
	CPTX_WHILE(k, cptx_setp(k, i, 3, .cmp = CPTX_NE)) {
		CPTX_IF(k, p)
			cptx_break_when(k, p);
		cptx_continue_when(k, p);
		mark(1);
	}
	body_is("sm_80", HEAD
	        "$L1:\n\tsetp.ne.u32 %p2, %r1, 3;\n\t@!%p2 bra $L0;\n\t@!%p1 bra $L2;\n\t@%p1 bra $L0;\n$L2:\n\t@%p1 bra $L1;\n"
	        "\tmov.u32 %r1, 1;\n\tbra $L1;\n$L0:\n\tret;\n");
}
END_TEST

START_TEST(loops_within_loops)
{
	begin();
	cptx_val j = cptx_var(k, CPTX_U32, 0);
	CPTX_FOR(k, i, 4, 1) {
		CPTX_FOR(k, j, 4, 1)
			cptx_break_when(k, p);
		cptx_break_when(k, p);
	}
	shows("sm_80", "@%p1 bra $L3;", "$L3:\n\t@%p1 bra $L0;", "$L0:\n\tret;", NULL);
}
END_TEST

START_TEST(labels)
{
	begin();
	cptx_val top = cptx_label(k), unused = cptx_label(k), end = cptx_label(k);
	cptx_place(k, top);
	cptx_bra(k, end, .when = p);
	cptx_bra(k, top, .uni = 1);
	cptx_place(k, unused);
	cptx_place(k, end);
	body_is("sm_80", HEAD "$L0:\n\t@%p1 bra $L2;\n\tbra.uni $L0;\n$L2:\n\tret;\n");
}
END_TEST

START_TEST(an_unused_label_may_stay_away)
{
	begin();
	cptx_label(k);
	body_is("sm_80", HEAD "\tret;\n");
}
END_TEST

/* ---- what is refused ---- */

START_TEST(bad_conditions)
{
	const char *text = "must be a predicate register (cptx_setp makes one)";
	REFUSES(CPTX_E_ARG, "kernel k: the condition of CPTX_IF must be a predicate register",
	        cptx_if_begin_(s.k, CPTX_HERE, s.a));
	REFUSES(CPTX_E_ARG, text, cptx_if_begin_(s.k, CPTX_HERE, (cptx_val){ 0 }));
	fresh();
	cptx_while_begin_(s.k, CPTX_HERE);
	REFUSED(CPTX_E_ARG, "the condition of CPTX_WHILE must be", cptx_while_test_(s.k, CPTX_HERE, cptx_imm(1)));
	REFUSES(CPTX_E_ARG, "the condition of cptx_break_when must be", cptx_break_when(s.k, s.f));
	REFUSES(CPTX_E_ARG, "the condition of cptx_continue_when must be", cptx_continue_when(s.k, s.f));
}
END_TEST

START_TEST(foreign_predicate)
{
	blank();
	cptx_kernel *first = cptx_kernel_begin(s.m, "first");
	cptx_val theirs = cptx_setp(first, cptx_tid_x(first), 1, .cmp = CPTX_EQ);
	s.k = cptx_kernel_begin(s.m, "k");
	REFUSED(CPTX_E_ARG, "kernel k: ", cptx_if_begin_(s.k, CPTX_HERE, theirs));
	ck_assert_ptr_nonnull(strstr(cptx_module_error(s.m)->text, "belongs to another kernel or function of the module"));
}
END_TEST

START_TEST(bad_loops)
{
	REFUSES(CPTX_E_ARG, "the counter of CPTX_FOR must be a single register, set before the loop (cptx_var makes one)",
	        cptx_for_begin_(s.k, CPTX_HERE, cptx_imm(0), cptx_imm(3), cptx_imm(1)));
	REFUSES(CPTX_E_ARG, "the counter of CPTX_FOR must be", cptx_for_begin_(s.k, CPTX_HERE, s.w, cptx_imm(3), cptx_imm(1)));
	REFUSES(CPTX_E_FORM,
	        "kernel k: setp.lt.u32: b is .f32, not .u32; write cptx_cvt(k, b, .dtype = CPTX_U32, .rnd = CPTX_RZI)",
	        cptx_for_begin_(s.k, CPTX_HERE, s.a, s.f, cptx_imm(1)));
	REFUSES(CPTX_E_STATE, "kernel k: cptx_break_when stands in no loop", cptx_break_when(s.k, s.p));
	REFUSES(CPTX_E_STATE, "kernel k: cptx_continue_when stands in no loop", cptx_continue_when(s.k, s.p));
	fresh();
	cptx_if_begin_(s.k, CPTX_HERE, s.p);
	REFUSED(CPTX_E_STATE, "cptx_break_when stands in no loop", cptx_break_when(s.k, s.p));
	REFUSES(CPTX_E_STATE, "stands in no loop", cptx_while_test_(s.k, CPTX_HERE, s.p));
	REFUSES(CPTX_E_STATE, "kernel k: a block ends that was never begun", cptx_block_end_(s.k, CPTX_HERE));
}
END_TEST

/* The step is added where the loop ends, but it was written where the loop begins. */
START_TEST(bad_step)
{
	fresh();
	cptx_site head = { __FILE__, 12345 };
	cptx_for_begin_(s.k, head, s.a, cptx_imm(3), s.f);
	cptx_block_end_(s.k, CPTX_HERE);
	says(cptx_module_error(s.m), CPTX_E_FORM, "kernel k: add.u32: b is .f32, not .u32; write cptx_cvt(");
	ck_assert_uint_eq(cptx_module_error(s.m)->line, 12345);
}
END_TEST

START_TEST(else_without_if)
{
	const char *text = "kernel k: CPTX_ELSE must follow the closing brace of a CPTX_IF";
	REFUSES(CPTX_E_STATE, text, cptx_else_begin_(s.k, CPTX_HERE));
	fresh();
	CPTX_IF(s.k, s.p)
		cptx_add(s.k, s.a, s.b);
	cptx_add(s.k, s.a, s.b);
	REFUSED(CPTX_E_STATE, text, cptx_else_begin_(s.k, CPTX_HERE));
	fresh();
	CPTX_IF(s.k, s.p)
		cptx_add(s.k, s.a, s.b);
	CPTX_ELSE(s.k)
		cptx_add(s.k, s.a, s.b);
	REFUSED(CPTX_E_STATE, text, cptx_else_begin_(s.k, CPTX_HERE));
}
END_TEST

/* Found where the body is closed, told with the line where the block begins. */
static void left_open(const char *what, uint32_t line)
{
	char text[128];

	snprintf(text, sizeof text, "kernel k: %s is never closed (left by break, goto or return?)", what);
	ck_assert(!cptx_module_freeze(s.m));
	says(cptx_module_error(s.m), CPTX_E_STATE, text);
	ck_assert_uint_eq(cptx_module_error(s.m)->line, line);
}

START_TEST(open_blocks)
{
	fresh();
	uint32_t line = __LINE__ + 1;
	CPTX_IF(s.k, s.p)
		break;
	left_open("CPTX_IF", line);
	fresh();
	line = __LINE__ + 1;
	CPTX_FOR(s.k, s.a, 3, 1)
		break;
	left_open("CPTX_FOR", line);
	fresh();
	line = __LINE__ + 1;
	CPTX_WHILE(s.k, s.p)
		break;
	left_open("CPTX_WHILE", line);
	fresh();
	CPTX_IF(s.k, s.p)
		cptx_ret(s.k);
	line = __LINE__ + 1;
	CPTX_ELSE(s.k)
		break;
	left_open("CPTX_ELSE", line);
}
END_TEST

START_TEST(open_block_at_next_kernel)
{
	fresh();
	cptx_if_begin_(s.k, CPTX_HERE, s.p);
	ck_assert_ptr_null(cptx_kernel_begin(s.m, "next"));
	says(cptx_module_error(s.m), CPTX_E_STATE, "kernel k: CPTX_IF is never closed");
}
END_TEST

START_TEST(unplaced_label)
{
	fresh();
	cptx_val l = cptx_label(s.k);
	uint32_t line = __LINE__ + 1;
	cptx_bra(s.k, l);
	ck_assert(!cptx_module_freeze(s.m));
	says(cptx_module_error(s.m), CPTX_E_STATE,
	     "kernel k: a branch goes to a label that is never placed; cptx_place puts it");
	ck_assert_uint_eq(cptx_module_error(s.m)->line, line);
}
END_TEST

START_TEST(bad_labels)
{
	fresh();
	cptx_val l = cptx_label(s.k);
	cptx_place(s.k, l);
	REFUSED(CPTX_E_STATE, "kernel k: cptx_place: the label stands somewhere already", cptx_place(s.k, l));
	REFUSES(CPTX_E_ARG, "kernel k: cptx_place: that is no label of this kernel", cptx_place(s.k, s.a));
	REFUSES(CPTX_E_ARG, "that is no label of this kernel", cptx_place(s.k, (cptx_val){ 0 }));
	REFUSES(CPTX_E_FORM, "t is not a label", cptx_bra(s.k, s.a));
}
END_TEST

/* ---- device functions ---- */

START_TEST(arguments)
{
	fresh();
	cptx_kernel *f = cptx_func_begin(s.m, "store", CPTX_TYPE_NONE);
	cptx_val at = cptx_param(f, CPTX_PTR, "at"), what = cptx_param(f, CPTX_F32, "what");
	cptx_st(f, at, what, .space = CPTX_GLOBAL);
	cptx_val store = cptx_func_val(f);
	s.k = cptx_kernel_begin(s.m, "caller");
	cptx_val x = cptx_tid_x(s.k), y = cptx_call(s.k, s.func, 1, &x), ptr = cptx_param(s.k, CPTX_PTR, "p");
	ck_assert_int_eq(y.type, CPTX_U32);
	cptx_val none = cptx_call(s.k, store, 2, ((cptx_val[]){ ptr, cptx_as(y, CPTX_F32) }));
	ck_assert_int_eq(none.kind, CPTX_VAL_NONE);
	ck_assert_ptr_null(cptx_module_error(s.m));
	cptx_call(s.k, store, 2, ((cptx_val[]){ ptr, y }));
	says(cptx_module_error(s.m), CPTX_E_ARG, "function store: argument 1 (what) must be a .f32 register");
}
END_TEST

START_TEST(calls)
{
	fresh();
	cptx_val y = cptx_call(s.k, s.func, 1, &s.a);
	cptx_st(s.k, s.ptr, y, .space = CPTX_GLOBAL);
	cptx_kernel *f = cptx_func_begin(s.m, "later", CPTX_TYPE_NONE);
	cptx_val at = cptx_param(f, CPTX_PTR, "at"), what = cptx_param(f, CPTX_F32, "what"),
			 small = cptx_param(f, CPTX_U8, "small");
	cptx_st(f, at, what, .space = CPTX_GLOBAL);
	cptx_st(f, at, small, .space = CPTX_GLOBAL, .type = CPTX_U8);
	cptx_kernel *n = cptx_func_begin(s.m, "nothing", CPTX_TYPE_NONE);
	cptx_call(n, s.func, 1, (cptx_val[]){ cptx_tid_x(n) });
	cptx_kernel *c = cptx_kernel_begin(s.m, "c");
	cptx_val args[] = { cptx_param(c, CPTX_PTR, "p"), cptx_var(c, CPTX_F32, 2), cptx_param(c, CPTX_U8, "b") };
	cptx_call(c, cptx_func_val(f), 3, args);
	cptx_call(c, cptx_func_val(n), 0, NULL);
	shows("sm_80", ".func later(\n\t.param .b64 at,\n\t.param .b32 what,\n\t.param .b16 small\n);", ".func nothing();",
	      "\t{\n\t.param .b32 __cptx_arg0;\n\tst.param.b32 [__cptx_arg0], %r1;\n\t.param .b32 __cptx_value;\n"
	      "\tcall (__cptx_value), twice, (__cptx_arg0);\n\tld.param.b32 %r7, [__cptx_value];\n\t}\n",
	      "\tst.param.b64 [__cptx_arg0], %rd1;\n", "\tcall later, (__cptx_arg0, __cptx_arg1, __cptx_arg2);\n\t}\n",
	      "\tcall nothing;\n", NULL);
}
END_TEST

START_TEST(results_of_all_types)
{
	static const enum cptx_type types[] = { CPTX_U8,    CPTX_S16, CPTX_BF16, CPTX_B32, CPTX_F32,
		                                    CPTX_F16X2, CPTX_U64, CPTX_F64,  CPTX_PTR };
	cptx_val f[ARRAY_LEN(types)];

	blank();
	for (size_t t = 0; t < ARRAY_LEN(types); t++) {
		char name[8];
		snprintf(name, sizeof name, "f%zu", t);
		cptx_kernel *func = cptx_func_begin(s.m, name, types[t]);
		cptx_func_return(func, cptx_param(func, types[t], "x"));
		f[t] = cptx_func_val(func);
	}
	cptx_kernel *c = cptx_kernel_begin(s.m, "c");
	for (size_t t = 0; t < ARRAY_LEN(types); t++) {
		char name[8];
		snprintf(name, sizeof name, "p%zu", t);
		cptx_val x = cptx_param(c, types[t], name), y = cptx_call(c, f[t], 1, &x);
		ck_assert_msg(y.kind == CPTX_VAL_REG, "%s: %s", cptx_type_name(types[t]),
		              cptx_module_error(s.m) ? cptx_module_error(s.m)->text : "");
	}
	shows("sm_90", "st.param.b64 [__cptx_result], %fd1;\n\tret;", NULL);
}
END_TEST

START_TEST(guarded_return)
{
	blank();
	cptx_kernel *f = cptx_func_begin(s.m, "f", CPTX_U32);
	cptx_val x = cptx_param(f, CPTX_U32, "x");
	CPTX_IF(f, cptx_setp(f, x, 9, .cmp = CPTX_GT))
		cptx_func_return(f, 9);
	cptx_func_return(f, x);
	shows("sm_80",
	      "@!%p1 bra $L0;\n\tmov.u32 %r2, 9;\n\tst.param.b32 [__cptx_result], %r2;\n\tret;\n$L0:\n"
	      "\tst.param.b32 [__cptx_result], %r1;\n\tret;\n}\n",
	      NULL);
}
END_TEST

START_TEST(bad_calls)
{
	REFUSES(CPTX_E_ARG, "kernel k: cptx_call: that is no device function of this module", cptx_call(s.k, s.a, 0, NULL));
	REFUSES(CPTX_E_ARG, "that is no device function", cptx_call(s.k, cptx_func_val(s.other), 0, NULL));
	REFUSES(CPTX_E_ARG, "kernel k: function twice takes 1 arguments, 2 were given",
	        cptx_call(s.k, s.func, 2, ((cptx_val[]){ s.a, s.a })));
	REFUSES(CPTX_E_ARG, "function twice takes 1 arguments, 0 were given", cptx_call(s.k, s.func, 0, NULL));
	REFUSES(CPTX_E_ARG, "function twice: argument 0 (x) must be a .u32 register", cptx_call(s.k, s.func, 1, &s.d));
	REFUSES(CPTX_E_ARG, "argument 0 (x) must be a .u32 register", cptx_call(s.k, s.func, 1, (cptx_val[]){ cptx_imm(3) }));
	REFUSES(CPTX_E_ARG, "argument 0 (x) must be a .u32 register", cptx_call(s.k, s.func, 1, &s.w));
	REFUSES(CPTX_E_STATE, "kernel k: only a device function with a result type returns a value", cptx_func_return(s.k, s.a));
	fresh();
	s.k = cptx_func_begin(s.m, "v", CPTX_TYPE_NONE);
	REFUSED(CPTX_E_STATE, "function v: only a device function with a result type", cptx_func_return(s.k, 1));
	fresh();
	s.k = cptx_func_begin(s.m, "v", CPTX_U32);
	REFUSED(CPTX_E_FORM, "function v: mov: .type is missing: write .type = CPTX_B32", cptx_func_return(s.k, 1.5f));
}
END_TEST

START_TEST(parameters_come_first)
{
	fresh();
	CPTX_IF(s.k, s.p)
		REFUSED(CPTX_E_STATE, "declare it outside of CPTX_IF and loops", cptx_param(s.k, CPTX_U32, "late"));
	blank();
	cptx_kernel *self = cptx_func_begin(s.m, "self", CPTX_TYPE_NONE);
	cptx_call(self, cptx_func_val(self), 0, NULL);
	REFUSED(CPTX_E_STATE, "the function was called already, with fewer", cptx_param(self, CPTX_U32, "late"));
	REFUSES(CPTX_E_ARG, "args is NULL", cptx_call(s.k, s.func, 1, NULL));
	drop();
}
END_TEST

/* A function's shared memory is the kernel's too, however often and by whatever way it is called. */
START_TEST(shared_memory_of_functions)
{
	cptx_kernel_info info;

	blank();
	cptx_kernel *inner = cptx_func_begin(s.m, "inner", CPTX_TYPE_NONE);
	cptx_st(inner, cptx_shared(inner, CPTX_U32, 8 * 1024), 1u, .type = CPTX_U32);
	cptx_kernel *outer = cptx_func_begin(s.m, "outer", CPTX_TYPE_NONE);
	cptx_call(outer, cptx_func_val(inner), 0, NULL);
	cptx_call(outer, cptx_func_val(inner), 0, NULL);
	cptx_kernel *caller = cptx_kernel_begin(s.m, "k");
	cptx_st(caller, cptx_shared(caller, CPTX_U32, 4 * 1024 + 1), 1u, .type = CPTX_U32);
	cptx_call(caller, cptx_func_val(outer), 0, NULL);
	ck_assert(cptx_module_freeze(s.m));
	ck_assert(cptx_module_kernel(s.m, "k", &info));
	ck_assert_uint_eq(info.static_smem, 48 * 1024 + 4);
	cannot_print("sm_80", CPTX_E_LIMIT, "49156 bytes of static shared memory; sm_80 allows 49152");
	free(printed("sm_90a", NULL));
	drop();
	fresh();
	cptx_kernel *function = cptx_func_begin(s.m, "f", CPTX_TYPE_NONE);
	REFUSED(CPTX_E_STATE, "belongs to kernels", cptx_shared_dyn(function, 64, 16, "part"));
	drop();
}
END_TEST

START_TEST(many_arguments)
{
	cptx_val args[201];

	blank();
	cptx_kernel *f = cptx_func_begin(s.m, "f", CPTX_TYPE_NONE);
	for (unsigned n = 0; n < 201; n++) {
		char name[8];
		snprintf(name, sizeof name, "a%u", n);
		cptx_param(f, CPTX_U32, name);
	}
	s.k = cptx_kernel_begin(s.m, "k");
	for (unsigned n = 0; n < 201; n++)
		args[n] = cptx_var(s.k, CPTX_U32, n);
	REFUSED(CPTX_E_LIMIT, "kernel k: function f: a call has at most 200 arguments",
	        cptx_call(s.k, cptx_func_val(f), 201, args));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {
		if_alone,
		if_negated,
		if_else,
		else_of_the_outer,
		for_loop,
		for_of_other_types,
		while_loop,
		loops_within_loops,
		labels,
		an_unused_label_may_stay_away,
		bad_conditions,
		foreign_predicate,
		bad_loops,
		bad_step,
		else_without_if,
		open_blocks,
		open_block_at_next_kernel,
		unplaced_label,
		bad_labels,
		arguments,
		calls,
		results_of_all_types,
		guarded_return,
		bad_calls,
		many_arguments,
		shared_memory_of_functions,
		parameters_come_first,
	};
	return verify_run("control", tests, ARRAY_LEN(tests), true);
}
