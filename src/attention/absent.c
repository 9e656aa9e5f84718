/* SPDX-License-Identifier: MIT */
/* In place of the generators where they are left out (-Dkernels=disabled); names.c stays. */
#include "base/base.h"

#include <cptx/attention.h>

static bool absent(cptx_error *err) { return error_absent(err, NOWHERE, "ready kernels", "kernels"); }

bool cptx_attention_check(const cptx_attention_opt *o, const cptx_target *target, cptx_attention_plan *plan, cptx_error *err)
{
	(void)o, (void)target, (void)plan;
	return absent(err);
}

bool cptx_attention_check_problem(const cptx_attention_opt *o, const cptx_attention_problem *p, uint32_t sms,
                                  cptx_attention_plan *plan, cptx_error *err)
{
	(void)o, (void)p, (void)sms, (void)plan;
	return absent(err);
}

size_t cptx_attention_auto(const cptx_attention_opt *o, const cptx_attention_problem *p, uint32_t sms,
                           cptx_attention_choice *choices, size_t room, cptx_error *err)
{
	(void)o, (void)p, (void)sms, (void)choices, (void)room;
	return absent(err);
}

cptx_kernel *cptx_attention_build(cptx_module *m, const cptx_attention_opt *o, cptx_error *err)
{
	(void)m, (void)o;
	absent(err);
	return NULL;
}

cptx_launch *cptx_attention_launch(const cptx_program *program, cptx_device *dev, const cptx_attention_opt *o,
                                   const cptx_attention_problem *p, cptx_error *err)
{
	(void)program, (void)dev, (void)o, (void)p;
	absent(err);
	return NULL;
}

cptx_attention_runner *cptx_attention_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	(void)dev, (void)cache;
	absent(err);
	return NULL;
}

void cptx_attention_runner_destroy(cptx_attention_runner *r) { (void)r; }

bool cptx_attention_run(cptx_attention_runner *r, const cptx_attention_opt *o, const cptx_attention_problem *p,
                        cptx_stream *s, cptx_error *err)
{
	(void)r, (void)o, (void)p, (void)s;
	return absent(err);
}

bool cptx_attention_runner_set_tune(cptx_attention_runner *r, const cptx_tune_use *use, cptx_error *err)
{
	(void)r, (void)use;
	return absent(err);
}

bool cptx_attention_measure(cptx_tune *db, cptx_device *dev, const cptx_attention_opt *o, const cptx_attention_problem *p,
                            const cptx_tune_use *use, cptx_tune_done *done, cptx_error *err)
{
	(void)db, (void)dev, (void)o, (void)p, (void)use, (void)done;
	return absent(err);
}

bool cptx_attention_options_read(const char *text, cptx_attention_opt *o, cptx_error *err)
{
	(void)text, (void)o;
	return absent(err);
}
