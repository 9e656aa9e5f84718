// Loops that wait for an mbarrier, in the three shapes that ptxas makes different code of.
// ptxas: -arch=sm_90
#include <cptx/cptx.h>

void build(cptx_module *m);

static cptx_kernel *kernel_wait(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "wait");
	cptx_val rd1 = cptx_param(k, CPTX_U64, "out");
	cptx_val r1 = cptx_param(k, CPTX_U32, "phase");
	cptx_val bar = cptx_local(k, CPTX_B64, "bar", .space = CPTX_SHARED, .align = 8);
	cptx_val r2 = cptx_mov(k, bar);
	cptx_mbarrier_wait(k, CPTX_WAIT_DONE, cptx_mbarrier_try_wait_parity(k, r2, r1, .space = CPTX_SHARED_CTA));
	cptx_mbarrier_wait(k, CPTX_WAIT_UNIFORM, cptx_mbarrier_try_wait_parity(k, r2, r1, .space = CPTX_SHARED));
	cptx_val rd2 = cptx_mbarrier_arrive(k, bar);
	cptx_val p1 = cptx_reg(k, CPTX_PRED);
	cptx_mbarrier_wait(k, CPTX_WAIT_LOOP, cptx_mbarrier_test_wait(k, bar, rd2, .into = p1));
	cptx_val r3 = cptx_selp(k, 1, 0, p1, .type = CPTX_B32);
	cptx_st(k, rd1, r3, .space = CPTX_GLOBAL);
	cptx_ret(k);
	return k;
}

void build(cptx_module *m)
{
	cptx_set_target(m, "sm_90", 80, NULL);
	kernel_wait(m);
}
