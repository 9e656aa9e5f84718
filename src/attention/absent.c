/* SPDX-License-Identifier: MIT */
/* In place of the generators where they are left out (-Dkernels=disabled); names.c stays. */
#include "base/base.h"

#include <cptx/attention_backward.h>
#include <cptx/attention_decode.h>

static bool absent(cptx_error *err) { return error_absent(err, NOWHERE, "ready kernels", "kernels"); }

bool cptx_attention_check_(const cptx_attention_opt *o, const cptx_target *target, cptx_attention_plan *plan, size_t size,
                           cptx_error *err)
{
	(void)o, (void)target, (void)plan, (void)size;
	return absent(err);
}

bool cptx_attention_check_problem_(const cptx_attention_opt *o, const cptx_attention_problem *p, uint32_t sms,
                                   cptx_attention_plan *plan, size_t size, cptx_error *err)
{
	(void)o, (void)p, (void)sms, (void)plan, (void)size;
	return absent(err);
}

size_t cptx_attention_auto_(const cptx_attention_opt *o, const cptx_attention_problem *p, uint32_t sms,
                            cptx_attention_choice *choices, size_t size, size_t room, cptx_error *err)
{
	(void)o, (void)p, (void)sms, (void)choices, (void)size, (void)room;
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

/* ---- decoding ---- */

bool cptx_attention_decode_check_(const cptx_attention_decode_opt *o, const cptx_target *target,
                                  cptx_attention_decode_plan *plan, size_t size, cptx_error *err)
{
	(void)o, (void)target, (void)plan, (void)size;
	return absent(err);
}

bool cptx_attention_decode_check_problem_(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p,
                                          const cptx_target *target, uint32_t sms, cptx_attention_decode_plan *plan,
                                          size_t size, cptx_error *err)
{
	(void)o, (void)p, (void)target, (void)sms, (void)plan, (void)size;
	return absent(err);
}

size_t cptx_attention_decode_auto_(const cptx_attention_decode_opt *o, const cptx_attention_decode_problem *p,
                                   const cptx_target *target, uint32_t sms, cptx_attention_decode_choice *choices,
                                   size_t size, size_t room, cptx_error *err)
{
	(void)o, (void)p, (void)target, (void)sms, (void)choices, (void)size, (void)room;
	return absent(err);
}

cptx_kernel *cptx_attention_decode_build(cptx_module *m, const cptx_attention_decode_opt *o, cptx_error *err)
{
	(void)m, (void)o;
	absent(err);
	return NULL;
}

cptx_launch *cptx_attention_decode_launch(const cptx_program *program, cptx_device *dev, const cptx_attention_decode_opt *o,
                                          const cptx_attention_decode_problem *p, uint32_t number, cptx_error *err)
{
	(void)program, (void)dev, (void)o, (void)p, (void)number;
	absent(err);
	return NULL;
}

cptx_attention_decode_runner *cptx_attention_decode_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	(void)dev, (void)cache;
	absent(err);
	return NULL;
}

void cptx_attention_decode_runner_destroy(cptx_attention_decode_runner *r) { (void)r; }

bool cptx_attention_decode_run(cptx_attention_decode_runner *r, const cptx_attention_decode_opt *o,
                               const cptx_attention_decode_problem *p, cptx_stream *s, cptx_error *err)
{
	(void)r, (void)o, (void)p, (void)s;
	return absent(err);
}

uint64_t cptx_attention_decode_workspace(cptx_attention_decode_runner *r, const cptx_attention_decode_opt *o,
                                         const cptx_attention_decode_problem *p, cptx_error *err)
{
	(void)r, (void)o, (void)p;
	return absent(err);
}

/* ---- backward ---- */

bool cptx_attention_backward_check_(const cptx_attention_backward_opt *o, const cptx_target *target,
                                    cptx_attention_backward_plan *plan, size_t size, cptx_error *err)
{
	(void)o, (void)target, (void)plan, (void)size;
	return absent(err);
}

bool cptx_attention_backward_check_problem_(const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p,
                                            cptx_attention_backward_plan *plan, size_t size, cptx_error *err)
{
	(void)o, (void)p, (void)plan, (void)size;
	return absent(err);
}

cptx_kernel *cptx_attention_backward_build(cptx_module *m, const cptx_attention_backward_opt *o, cptx_error *err)
{
	(void)m, (void)o;
	absent(err);
	return NULL;
}

cptx_launch *cptx_attention_backward_launch(const cptx_program *program, cptx_device *dev,
                                            const cptx_attention_backward_opt *o, const cptx_attention_backward_problem *p,
                                            uint32_t number, cptx_error *err)
{
	(void)program, (void)dev, (void)o, (void)p, (void)number;
	absent(err);
	return NULL;
}

cptx_attention_backward_runner *cptx_attention_backward_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	(void)dev, (void)cache;
	absent(err);
	return NULL;
}

void cptx_attention_backward_runner_destroy(cptx_attention_backward_runner *r) { (void)r; }

bool cptx_attention_backward_run(cptx_attention_backward_runner *r, const cptx_attention_backward_opt *o,
                                 const cptx_attention_backward_problem *p, cptx_stream *s, cptx_error *err)
{
	(void)r, (void)o, (void)p, (void)s;
	return absent(err);
}
