// Blocks: if, else, loops that test at the head and at the end, a counting loop, an early way out, a jump that no block
// says. ptxas: -arch=sm_90
#include <cptx/cptx.h>

void build(cptx_module *m);

static cptx_kernel *kernel_loops(cptx_module *m)
{
	cptx_kernel *k = cptx_kernel_begin(m, "loops", .max_block = { 256 });
	cptx_val rd1 = cptx_param(k, CPTX_U64, "data");
	cptx_val r1 = cptx_param(k, CPTX_U32, "n");
	cptx_val r2 = cptx_tid_x(k);
	cptx_val p1 = cptx_setp(k, r2, r1, .cmp = CPTX_GE);
	CPTX_IF(k, cptx_negated(p1)) {
		cptx_val sum = cptx_mov(k, 0.0f, .type = CPTX_F32);
		cptx_val r3 = cptx_mov(k, 0, .type = CPTX_U32);
		CPTX_WHILE(k, cptx_negated(cptx_setp(k, r3, 16, .cmp = CPTX_GE, .type = CPTX_S32))) {
			// tested at the head
			cptx_val r4 = cptx_and(k, r3, 1, .type = CPTX_B32);
			cptx_val p3 = cptx_setp(k, r4, 0, .cmp = CPTX_EQ);
			CPTX_IF(k, p3) {
				cptx_add(k, sum, 1.0f, .into = sum);
			}
			CPTX_ELSE(k) {
				cptx_mul(k, sum, 0.5f, .into = sum);
			}
			cptx_add(k, r3, 1, .type = CPTX_S32, .into = r3);
		}
		cptx_val r5 = cptx_mov(k, r1);
		CPTX_DO(k)
		{
			// tested at the end
			cptx_shr(k, r5, 1, .into = r5);
			cptx_val p4 = cptx_setp(k, sum, 100.0f, .cmp = CPTX_GT);
			cptx_break_when(k, p4);
			cptx_add(k, sum, sum, .into = sum);
			cptx_val p5 = cptx_setp(k, r5, 0, .cmp = CPTX_NE);
			cptx_continue_when(k, p5);
		}
		cptx_val r6 = cptx_mov(k, 0, .type = CPTX_U32);
		CPTX_FOR(k, r6, r1, 4) {
			// as CPTX_FOR prints it
			cptx_add(k, sum, 2.0f, .into = sum);
		}
		cptx_val p8 = cptx_setp(k, r2, 8, .cmp = CPTX_LT);
		cptx_val store = cptx_label(k);
		CPTX_IF(k, cptx_negated(p8)) {
			cptx_val p9 = cptx_setp(k, r2, 32, .cmp = CPTX_GT);
			cptx_bra(k, store, .when = p9);
			cptx_add(k, sum, 1.0f, .into = sum);
		}
		cptx_add(k, sum, 2.0f, .into = sum);
		cptx_place(k, store);
		cptx_val rd2 = cptx_mul_wide(k, r2, 4);
		cptx_val rd3 = cptx_add(k, rd1, rd2, .type = CPTX_S64);
		cptx_st(k, rd3, sum, .space = CPTX_GLOBAL);
	}
	cptx_ret(k);
	return k;
}

void build(cptx_module *m)
{
	cptx_set_target(m, "sm_80", 80, NULL);
	kernel_loops(m);
}
