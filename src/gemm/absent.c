/* SPDX-License-Identifier: MIT */
/* In place of the generators where they are left out (-Dkernels=disabled); pipelines, tensor memory and sizes.c stay. */
#include "base/base.h"

#include <cptx/gemm.h>

static bool absent(cptx_error *err) { return error_absent(err, NOWHERE, "ready kernels", "kernels"); }

bool cptx_gemm_check_(const cptx_gemm_opt *o, const cptx_target *target, cptx_gemm_plan *plan, size_t size, cptx_error *err)
{
	(void)o, (void)target, (void)plan, (void)size;
	return absent(err);
}

bool cptx_gemm_check_problem_(const cptx_gemm_opt *o, const cptx_gemm_problem *p, uint32_t sms, cptx_gemm_plan *plan,
                              size_t size, cptx_error *err)
{
	(void)o, (void)p, (void)sms, (void)plan, (void)size;
	return absent(err);
}

size_t cptx_gemm_auto_(const cptx_gemm_opt *o, const cptx_target *target, const cptx_gemm_problem *p, uint32_t sms,
                       cptx_gemm_choice *choices, size_t size, size_t room, cptx_error *err)
{
	(void)o, (void)target, (void)p, (void)sms, (void)choices, (void)size, (void)room;
	return absent(err);
}

const char *cptx_gemm_model(const cptx_gemm_opt *o, const cptx_target *target, uint32_t *sms)
{
	(void)o, (void)target, (void)sms;
	return NULL;
}

bool cptx_gemm_tune_(cptx_device *dev, const cptx_gemm_problem *p, cptx_gemm_choice *choices, size_t size, size_t n,
                     cptx_error *err)
{
	(void)dev, (void)p, (void)choices, (void)size, (void)n;
	return absent(err);
}

cptx_kernel *cptx_gemm_build(cptx_module *m, const cptx_gemm_opt *o, cptx_error *err)
{
	(void)m, (void)o;
	absent(err);
	return NULL;
}

bool cptx_gemm_maps(const cptx_gemm_opt *o, const cptx_gemm_problem *p, cptx_tensor_map_opt map[CPTX_GEMM_MAPS],
                    cptx_error *err)
{
	(void)o, (void)p, (void)map;
	return absent(err);
}

cptx_launch *cptx_gemm_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_opt *o,
                              const cptx_gemm_problem *p, cptx_error *err)
{
	(void)program, (void)dev, (void)o, (void)p;
	absent(err);
	return NULL;
}

cptx_launch *cptx_gemm_launch_grouped(const cptx_program *program, cptx_device *dev, const cptx_gemm_opt *o,
                                      const cptx_gemm_problem *p, size_t n, uint64_t table, cptx_error *err)
{
	(void)program, (void)dev, (void)o, (void)p, (void)n, (void)table;
	absent(err);
	return NULL;
}

cptx_gemm_runner *cptx_gemm_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	(void)dev, (void)cache;
	absent(err);
	return NULL;
}

void cptx_gemm_runner_destroy(cptx_gemm_runner *r) { (void)r; }

bool cptx_gemm_run(cptx_gemm_runner *r, const cptx_gemm_opt *o, const cptx_gemm_problem *p, cptx_stream *s, cptx_error *err)
{
	(void)r, (void)o, (void)p, (void)s;
	return absent(err);
}

void cptx_gemm_runner_count_(cptx_gemm_runner *r, cptx_gemm_runner_stats *stats, size_t size)
{
	(void)r;
	if (stats)
		memset(stats, 0, size);
}

bool cptx_gemm_runner_set_tune(cptx_gemm_runner *r, const cptx_tune_use *use, cptx_error *err)
{
	(void)r, (void)use;
	return absent(err);
}

bool cptx_gemm_measure(cptx_tune *db, cptx_device *dev, const cptx_gemm_opt *o, const cptx_gemm_problem *p,
                       const cptx_tune_use *use, cptx_tune_done *done, cptx_error *err)
{
	(void)db, (void)dev, (void)o, (void)p, (void)use, (void)done;
	return absent(err);
}

bool cptx_gemm_options_read(const char *text, cptx_gemm_opt *o, cptx_error *err)
{
	(void)text, (void)o;
	return absent(err);
}

cptx_kernel *cptx_gemm_quantize_build(cptx_module *m, const cptx_gemm_quantize_opt *o, cptx_error *err)
{
	(void)m, (void)o;
	absent(err);
	return NULL;
}

cptx_launch *cptx_gemm_quantize_launch(const cptx_program *program, cptx_device *dev, const cptx_gemm_quantize_opt *o,
                                       const cptx_gemm_quantize_problem *p, cptx_error *err)
{
	(void)program, (void)dev, (void)o, (void)p;
	absent(err);
	return NULL;
}
