// Vectors: what is loaded or computed as one is an array, what is gathered is a vector of single registers.
// ptxas: -arch=sm_90
#include <cptx/cptx.h>

void build(cptx_module *m);

static cptx_kernel *kernel_arrays(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "arrays");
	cptx_val data = cptx_param_var(k, CPTX_U64, "data", .pointer = true, .ptr_space = CPTX_GLOBAL, .ptr_align = 16);
	cptx_val scale = cptx_find(m, "scale");
	cptx_val steps = cptx_find(m, "steps");
	cptx_val rd1 = cptx_ld(k, data, .type = CPTX_U64);
	cptx_val r1 = cptx_ld(k, rd1, .space = CPTX_GLOBAL, .vec = CPTX_V4, .type = CPTX_B32);
	cptx_val r5 = cptx_ld(k, cptx_offset(rd1, 16), .space = CPTX_GLOBAL, .vec = CPTX_V2, .type = CPTX_B32);
	cptx_val f1 = cptx_regs(k, CPTX_F32, 4);
	cptx_mov(k, 0.0f, .into = cptx_elem(f1, 0));
	cptx_mov(k, cptx_elem(f1, 0), .into = cptx_elem(f1, 1));
	cptx_mov(k, cptx_elem(f1, 0), .into = cptx_elem(f1, 2));
	cptx_mov(k, cptx_elem(f1, 0), .into = cptx_elem(f1, 3));
	cptx_mma(k, r1, r5, f1, .shape = CPTX_M16N8K16, .atype = CPTX_F16, .into = f1);
	cptx_val f5 = cptx_mma(k, cptx_vec(k, cptx_elem(r1, 3), cptx_elem(r1, 2), cptx_elem(r1, 1), cptx_elem(r1, 0)),
	                       cptx_vec(k, cptx_elem(r5, 1), cptx_elem(r5, 0)), f1, .shape = CPTX_M16N8K16, .atype = CPTX_F16);
	cptx_val v = cptx_ld(k, scale, .vec = CPTX_V4, .type = CPTX_F32);
	cptx_val f9 = cptx_mul(k, cptx_elem(f5, 0), cptx_elem(v, 0));
	cptx_val f10 = cptx_mul(k, cptx_elem(f5, 1), cptx_elem(v, 3));
	cptx_val h1 = cptx_regs(k, CPTX_B16, 2);
	cptx_mov(k, cptx_elem(r1, 0), .into = h1);
	cptx_val r7 = cptx_cvt(k, cptx_elem(h1, 1), .dtype = CPTX_U32, .atype = CPTX_U16);
	cptx_val r8 = cptx_ld(k, cptx_offset(steps, 8), .type = CPTX_S32);
	cptx_val r9 = cptx_add(k, r7, r8, .type = CPTX_S32);
	cptx_st(k, cptx_offset(rd1, 32), cptx_vec(k, f9, f10), .space = CPTX_GLOBAL);
	cptx_st(k, cptx_offset(rd1, 40), cptx_slice(f5, 2, 2), .space = CPTX_GLOBAL);
	cptx_st(k, cptx_offset(rd1, 48), r9, .space = CPTX_GLOBAL, .type = CPTX_B32);
	cptx_ret(k);
	return k;
}

void build(cptx_module *m)
{
	cptx_set_target(m, "sm_90", 80, NULL);
	static const uint32_t scale[] = { 0x3F800000, 0x3F000000, 0x3E800000, 0x7F800000 };
	cptx_variable(m, CPTX_F32, "scale", .dim = { 4 }, .align = 16, .linkage = CPTX_LINK_VISIBLE, .init = scale, .ninit = 4);
	static const int32_t steps[] = { 1, -2, 3, 4 };
	cptx_variable(m, CPTX_S32, "steps", .space = CPTX_CONST, .dim = { 2, 3 }, .align = 4, .init = steps, .ninit = 4);
	kernel_arrays(m);
}
