/* In place of the generators where they are left out (-Dkernels=disabled); pipelines, tensor memory and sizes.c stay. */
#include "base/base.h"

#include <cptx/gemm_sm100.h>
#include <cptx/gemm_sm120.h>
#include <cptx/gemm_sm90.h>
#include <cptx/kernels.h>

static bool absent(cptx_error *err) { return error_absent(err, NOWHERE, "ready kernels", "kernels"); }

bool cptx_gemm_check(const cptx_gemm_opt *o, const cptx_target *target, cptx_gemm_plan *plan, cptx_error *err)
{
	(void)o, (void)target, (void)plan;
	return absent(err);
}

bool cptx_gemm_check_problem(const cptx_gemm_opt *o, uint64_t m, uint64_t n, uint64_t k, cptx_error *err)
{
	(void)o, (void)m, (void)n, (void)k;
	return absent(err);
}

cptx_kernel *cptx_gemm_build(cptx_module *m, const cptx_gemm_opt *opt, cptx_error *err)
{
	(void)m, (void)opt;
	absent(err);
	return NULL;
}

bool cptx_gemm_sm90_check(const cptx_gemm_sm90_opt *o, cptx_gemm_sm90_plan *plan, cptx_error *err)
{
	(void)o, (void)plan;
	return absent(err);
}

bool cptx_gemm_sm90_check_problem(const cptx_gemm_sm90_opt *o, const cptx_gemm_problem *p, uint32_t sms,
                                  cptx_gemm_sm90_plan *plan, cptx_error *err)
{
	(void)o, (void)p, (void)sms, (void)plan;
	return absent(err);
}

size_t cptx_gemm_sm90_auto(const cptx_gemm_sm90_opt *opt, const cptx_gemm_problem *p, uint32_t sms,
                           cptx_gemm_sm90_choice *choices, size_t room, cptx_error *err)
{
	(void)opt, (void)p, (void)sms, (void)choices, (void)room;
	return absent(err);
}

bool cptx_gemm_sm90_tune(cptx_device *dev, const cptx_gemm_problem *p, cptx_gemm_sm90_choice *choices, size_t n,
                         cptx_error *err)
{
	(void)dev, (void)p, (void)choices, (void)n;
	return absent(err);
}

cptx_kernel *cptx_gemm_sm90_build(cptx_module *m, const cptx_gemm_sm90_opt *opt, cptx_error *err)
{
	(void)m, (void)opt;
	absent(err);
	return NULL;
}

bool cptx_gemm_sm90_maps(const cptx_gemm_sm90_opt *o, const cptx_gemm_problem *p,
                         cptx_tensor_map_opt map[CPTX_GEMM_SM90_MAPS], cptx_error *err)
{
	(void)o, (void)p, (void)map;
	return absent(err);
}

cptx_launch *cptx_gemm_sm90_launch_grouped(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm90_opt *o,
                                           const cptx_gemm_problem *p, size_t n, uint64_t table, cptx_error *err)
{
	(void)program, (void)dev, (void)o, (void)p, (void)n, (void)table;
	absent(err);
	return NULL;
}

cptx_launch *cptx_gemm_sm90_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm90_opt *o,
                                   const cptx_gemm_problem *p, cptx_error *err)
{
	(void)program, (void)dev, (void)o, (void)p;
	absent(err);
	return NULL;
}

bool cptx_gemm_sm100_check(const cptx_gemm_sm100_opt *opt, const cptx_target *target, cptx_gemm_sm100_plan *plan,
                           cptx_error *err)
{
	(void)opt, (void)target, (void)plan;
	return absent(err);
}

bool cptx_gemm_sm100_check_problem(const cptx_gemm_sm100_opt *opt, const cptx_gemm_problem *p, uint32_t sms,
                                   cptx_gemm_sm100_plan *plan, cptx_error *err)
{
	(void)opt, (void)p, (void)sms, (void)plan;
	return absent(err);
}

size_t cptx_gemm_sm100_auto(const cptx_gemm_sm100_opt *opt, const cptx_gemm_problem *p, uint32_t sms,
                            cptx_gemm_sm100_choice *choices, size_t room, cptx_error *err)
{
	(void)opt, (void)p, (void)sms, (void)choices, (void)room;
	return absent(err);
}

bool cptx_gemm_sm100_tune(cptx_device *dev, const cptx_gemm_problem *p, cptx_gemm_sm100_choice *choices, size_t n,
                          cptx_error *err)
{
	(void)dev, (void)p, (void)choices, (void)n;
	return absent(err);
}

cptx_kernel *cptx_gemm_sm100_build(cptx_module *m, const cptx_gemm_sm100_opt *opt, cptx_error *err)
{
	(void)m, (void)opt;
	absent(err);
	return NULL;
}

bool cptx_gemm_sm100_maps(const cptx_gemm_sm100_opt *opt, const cptx_gemm_problem *p, cptx_tensor_map_opt map[5],
                          cptx_error *err)
{
	(void)opt, (void)p, (void)map;
	return absent(err);
}

cptx_launch *cptx_gemm_sm100_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm100_opt *opt,
                                    const cptx_gemm_problem *p, cptx_error *err)
{
	(void)program, (void)dev, (void)opt, (void)p;
	absent(err);
	return NULL;
}

cptx_launch *cptx_gemm_sm100_launch_grouped(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm100_opt *opt,
                                            const cptx_gemm_problem *p, size_t n, uint64_t table, cptx_error *err)
{
	(void)program, (void)dev, (void)opt, (void)p, (void)n, (void)table;
	absent(err);
	return NULL;
}

bool cptx_gemm_sm120_check(const cptx_gemm_sm120_opt *opt, const cptx_target *target, cptx_gemm_sm120_plan *plan,
                           cptx_error *err)
{
	(void)opt, (void)target, (void)plan;
	return absent(err);
}

bool cptx_gemm_sm120_check_problem(const cptx_gemm_sm120_opt *opt, const cptx_gemm_problem *p, uint32_t sms,
                                   cptx_gemm_sm120_plan *plan, cptx_error *err)
{
	(void)opt, (void)p, (void)sms, (void)plan;
	return absent(err);
}

size_t cptx_gemm_sm120_auto(const cptx_gemm_sm120_opt *opt, const cptx_gemm_problem *p, uint32_t sms,
                            cptx_gemm_sm120_choice *choices, size_t room, cptx_error *err)
{
	(void)opt, (void)p, (void)sms, (void)choices, (void)room;
	return absent(err);
}

cptx_kernel *cptx_gemm_sm120_build(cptx_module *m, const cptx_gemm_sm120_opt *opt, cptx_error *err)
{
	(void)m, (void)opt;
	absent(err);
	return NULL;
}

cptx_launch *cptx_gemm_sm120_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_sm120_opt *opt,
                                    const cptx_gemm_problem *p, cptx_error *err)
{
	(void)program, (void)dev, (void)opt, (void)p;
	absent(err);
	return NULL;
}
