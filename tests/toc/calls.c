// Functions: declared first, from elsewhere, through a pointer; call sequences; variables with addresses.
// ptxas: -arch=sm_90 -c
#include <cptx/cptx.h>

void build(cptx_module *m);

static void declare_vprintf(cptx_module *m)
{
	cptx_kernel *k = cptx_func_declare(m, "vprintf");
	cptx_set_linkage(k, CPTX_LINK_EXTERN);
	cptx_result_var(k, CPTX_B32, "func_retval0");
	cptx_param_var(k, CPTX_B64, "vprintf_param_0");
	cptx_param_var(k, CPTX_B64, "vprintf_param_1");
}

static void declare_twice(cptx_module *m)
{
	cptx_kernel *k = cptx_func_declare(m, "twice");
	cptx_result_var(k, CPTX_B32, "func_retval0");
	cptx_param_var(k, CPTX_B32, "twice_param_0");
}

static cptx_kernel *func_twice(cptx_module *m)
{
	cptx_kernel *k = cptx_func_define(m, "twice");
	cptx_val func_retval0 = cptx_result_at(k, 0);
	cptx_val twice_param_0 = cptx_param_at(k, 0);
	cptx_val r1 = cptx_ld(k, twice_param_0, .type = CPTX_B32);
	cptx_val r2 = cptx_add(k, r1, r1, .type = CPTX_S32);
	cptx_st(k, func_retval0, r2, .type = CPTX_B32);
	cptx_ret(k);
	return k;
}

static cptx_kernel *kernel_calls(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "calls");
	cptx_val r1 = cptx_param(k, CPTX_U32, "n");
	cptx_val str = cptx_find(m, "$str");
	cptx_val table = cptx_find(m, "table");
	cptx_val vprintf = cptx_find(m, "vprintf");
	cptx_val twice = cptx_find(m, "twice");
	cptx_val local_depot0 = cptx_local(k, CPTX_B8, "__local_depot0", .dim = { 8 }, .align = 8);
	cptx_val r2 = cptx_reg(k, CPTX_B32);
	CPTX_SCOPE(k)
	{
		cptx_val param0 = cptx_local(k, CPTX_B32, "param0", .space = CPTX_PARAM);
		cptx_st(k, param0, r1, .type = CPTX_B32);
		cptx_val retval0 = cptx_local(k, CPTX_B32, "retval0", .space = CPTX_PARAM);
		cptx_call_func(k, twice, .r = cptx_args(k, retval0), .a = cptx_args(k, param0), .uni = 1);
		cptx_ld(k, retval0, .into = r2);
	}
	cptx_val rd1 = cptx_ld(k, table, .type = CPTX_U64);
	cptx_val r3 = cptx_reg(k, CPTX_B32);
	CPTX_SCOPE(k)
	{
		cptx_val param0 = cptx_local(k, CPTX_B32, "param0", .space = CPTX_PARAM);
		cptx_st(k, param0, r2);
		cptx_val retval0 = cptx_local(k, CPTX_B32, "retval0", .space = CPTX_PARAM);
		cptx_val prototype_1 = cptx_prototype(k, CPTX_B32, 1, ((enum cptx_type[]){ CPTX_B32 }));
		cptx_call_ptr(k, rd1, prototype_1, .r = cptx_args(k, retval0), .a = cptx_args(k, param0));
		cptx_ld(k, retval0, .into = r3);
	}
	cptx_st(k, local_depot0, r3, .type = CPTX_U32);
	cptx_val rd2 = cptx_mov(k, str);
	cptx_val rd3 = cptx_cvta(k, rd2, .space = CPTX_GLOBAL);
	cptx_val rd4 = cptx_mov(k, local_depot0);
	cptx_val rd5 = cptx_cvta(k, rd4, .space = CPTX_LOCAL);
	CPTX_SCOPE(k)
	{
		cptx_val param0 = cptx_local(k, CPTX_B64, "param0", .space = CPTX_PARAM);
		cptx_st(k, param0, rd3, .type = CPTX_B64);
		cptx_val param1 = cptx_local(k, CPTX_B64, "param1", .space = CPTX_PARAM);
		cptx_st(k, param1, rd5, .type = CPTX_B64);
		cptx_val retval0 = cptx_local(k, CPTX_B32, "retval0", .space = CPTX_PARAM);
		cptx_call_func(k, vprintf, .r = cptx_args(k, retval0), .a = cptx_args(k, param0, param1), .uni = 1);
	}
	cptx_ret(k);
	return k;
}

void build(cptx_module *m)
{
	cptx_set_target(m, "sm_80", 80, NULL);
	declare_vprintf(m);
	declare_twice(m);
	static const char str[] = "sum = %d\n";
	cptx_variable(m, CPTX_B8, "$str", .dim = { 10 }, .align = 1, .init = str, .ninit = 10);
	static const uint64_t table[] = { 0, 0 };
	cptx_variable(m, CPTX_U64, "table", .dim = { 2 }, .align = 8, .linkage = CPTX_LINK_VISIBLE, .init = table, .ninit = 2,
	              .address = ((cptx_address[]){ { 0, cptx_find(m, "twice"), 0x0, false },
	                                            { 1, cptx_offset(cptx_find(m, "$str"), 4), 0x0, true } }),
	              .naddress = 2);
	func_twice(m);
	kernel_calls(m);
}
