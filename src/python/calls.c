/* SPDX-License-Identifier: MIT */
/* What the calls of calls.def do. */
#include "python/builder.h"

#define DEFINE(f) static cptx_val python_##f(cptx_kernel *k, cptx_site at, const call_arg *a, const cptx_val *v, size_t n)
#define UNUSED (void)k, (void)at, (void)a, (void)v, (void)n

static cptx_val nothing(void) { return (cptx_val){ 0 }; }
static enum cptx_type type_of(call_arg a) { return (enum cptx_type)a.mod; }

/* An integer that C takes in 32 bits; one that is out of range becomes one that every call refuses, 0. */
static uint32_t u32(call_arg a) { return a.i < 0 || a.i > UINT32_MAX ? 0 : (uint32_t)a.i; }
/* An alignment, 16 where none was given. */
static uint32_t align_of(call_arg a) { return a.i ? u32(a) : 16; }

DEFINE(param)
{
	UNUSED;
	return cptx_param_(k, at, type_of(a[0]), a[1].s);
}
DEFINE(param_bytes)
{
	UNUSED;
	return cptx_param_bytes_(k, at, u32(a[0]), u32(a[1]), a[2].s);
}
DEFINE(reg)
{
	UNUSED;
	return cptx_regs_(k, at, type_of(a[0]), 1);
}
DEFINE(regs)
{
	UNUSED;
	return cptx_regs_(k, at, type_of(a[0]), u32(a[1]));
}
DEFINE(var)
{
	UNUSED;
	return cptx_var_(k, at, type_of(a[0]), a[1].v);
}
DEFINE(pack)
{
	UNUSED;
	return cptx_pack_(k, at, v, n);
}
DEFINE(list)
{
	UNUSED;
	return cptx_list_(k, at, v, n);
}
DEFINE(sink)
{
	UNUSED;
	return cptx_sink();
}
DEFINE(f32_bits)
{
	UNUSED;
	return cptx_f32_bits((uint32_t)a[0].i);
}
DEFINE(f64_bits)
{
	UNUSED;
	return cptx_f64_bits((uint64_t)a[0].i);
}
DEFINE(shared)
{
	UNUSED;
	return cptx_shared_(k, at, type_of(a[0]), u32(a[1]), align_of(a[2]), a[3].s);
}
DEFINE(shared_dyn)
{
	UNUSED;
	return cptx_shared_dyn_(k, at, u32(a[0]), u32(a[1]), a[2].s);
}
DEFINE(label)
{
	UNUSED;
	return a[0].s ? cptx_label_named_(k, at, a[0].s) : cptx_label(k);
}
DEFINE(place)
{
	UNUSED;
	cptx_place_(k, at, a[0].v);
	return nothing();
}
DEFINE(if_begin)
{
	UNUSED;
	cptx_if_begin_(k, at, a[0].v);
	return nothing();
}
DEFINE(else_begin)
{
	UNUSED;
	cptx_else_begin_(k, at);
	return nothing();
}
DEFINE(for_begin)
{
	UNUSED;
	cptx_for_begin_(k, at, a[0].v, a[1].v, a[2].v);
	return nothing();
}
DEFINE(while_begin)
{
	UNUSED;
	cptx_while_begin_(k, at);
	return nothing();
}
DEFINE(while_test)
{
	UNUSED;
	cptx_while_test_(k, at, a[0].v);
	return nothing();
}
DEFINE(do_begin)
{
	UNUSED;
	cptx_do_begin_(k, at);
	return nothing();
}
DEFINE(scope_begin)
{
	UNUSED;
	cptx_scope_begin_(k, at);
	return nothing();
}
DEFINE(block_end)
{
	UNUSED;
	cptx_block_end_(k, at);
	return nothing();
}
DEFINE(break_when)
{
	UNUSED;
	cptx_leave_(k, at, 0, a[0].v);
	return nothing();
}
DEFINE(continue_when)
{
	UNUSED;
	cptx_leave_(k, at, 1, a[0].v);
	return nothing();
}
DEFINE(break_all)
{
	UNUSED;
	cptx_leave_(k, at, 2, cptx_val_int_(0));
	return nothing();
}
DEFINE(continue_all)
{
	UNUSED;
	cptx_leave_(k, at, 3, cptx_val_int_(0));
	return nothing();
}
DEFINE(wait_begin)
{
	UNUSED;
	cptx_wait_begin_(k, at);
	return nothing();
}
DEFINE(wait_end)
{
	UNUSED;
	cptx_wait_end_(k, at, (enum cptx_wait_shape)u32(a[0]), a[1].v);
	return nothing();
}
DEFINE(asm_text)
{
	UNUSED;
	return cptx_asm_(k, at, a[0].s, v, n);
}
DEFINE(pragma)
{
	UNUSED;
	cptx_pragma_(k, at, a[0].s);
	return nothing();
}
DEFINE(comment)
{
	UNUSED;
	cptx_comment_(k, at, "%s", a[0].s ? a[0].s : "");
	return nothing();
}
DEFINE(func_return)
{
	UNUSED;
	cptx_func_return_(k, at, a[0].v);
	return nothing();
}
DEFINE(call_func)
{
	UNUSED;
	return cptx_call_(k, at, a[0].v, v, n);
}
DEFINE(func_val)
{
	UNUSED;
	return cptx_func_val(k);
}
DEFINE(prototype)
{
	enum cptx_type types[64];
	enum { MOST = ARRAY_LEN(types) };

	UNUSED;
	for (size_t i = 0; i < MIN(n, MOST); i++)
		types[i] = (enum cptx_type)(v[i].kind == CPTX_VAL_INT ? v[i].i : 0);
	return n > MOST ? cptx_fail_(k, at, "prototype: %zu parameters, and at most %d are taken", n, MOST)
	                : cptx_prototype_(k, at, type_of(a[0]), types, n);
}
DEFINE(targets)
{
	UNUSED;
	return cptx_targets_(k, at, v, n);
}

const call_row python_calls[] = {
#define KERNEL_CALL(name, takes, names, result, fn) { #name, takes, names, python_##fn },
#include "python/calls.def"
};
const size_t python_ncalls = ARRAY_LEN(python_calls);
