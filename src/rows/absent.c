/* SPDX-License-Identifier: MIT */
/* In place of the row kernels where ready kernels are left out (-Dkernels=disabled); table.c stays. */
#include "rows/rows.h"

static bool absent(cptx_error *err) { return error_absent(err, NOWHERE, "ready kernels", "kernels"); }
static void absent_in(cptx_kernel *k) { cptx_fail(k, "row kernels were left out of this build (-Dkernels=disabled)"); }

#define ROWS_KERNEL(ID, name, body, local, reads, writes, may_read, may_write, takes, about)                                \
	void body(cptx_kernel *k, cptx_rows_row *row, void *user) { (void)row, (void)user, absent_in(k); }
#include <cptx/rows.def>

bool cptx_rows_check_(const cptx_rows_opt *o, const cptx_target *target, uint32_t rows, uint32_t sms, cptx_rows_plan *plan,
                      size_t size, cptx_error *err)
{
	(void)o, (void)target, (void)rows, (void)sms, (void)plan, (void)size;
	return absent(err);
}

size_t cptx_rows_auto_(const cptx_rows_opt *o, const cptx_target *target, uint32_t rows, uint32_t sms,
                       cptx_rows_choice *choices, size_t size, size_t room, cptx_error *err)
{
	(void)o, (void)target, (void)rows, (void)sms, (void)choices, (void)size, (void)room;
	return absent(err);
}

cptx_kernel *cptx_rows_build(cptx_module *m, const cptx_rows_opt *o, cptx_error *err)
{
	(void)m, (void)o;
	absent(err);
	return NULL;
}

cptx_launch *cptx_rows_launch(const cptx_program *program, cptx_device *dev, const cptx_rows_opt *o,
                              const cptx_rows_problem *p, uint32_t number, cptx_error *err)
{
	(void)program, (void)dev, (void)o, (void)p, (void)number;
	absent(err);
	return NULL;
}

cptx_rows_runner *cptx_rows_runner_new(cptx_device *dev, cptx_cache *cache, cptx_error *err)
{
	(void)dev, (void)cache;
	absent(err);
	return NULL;
}

void cptx_rows_runner_destroy(cptx_rows_runner *r) { (void)r; }

bool cptx_rows_run(cptx_rows_runner *r, const cptx_rows_opt *o, const cptx_rows_problem *p, cptx_stream *s, cptx_error *err)
{
	(void)r, (void)o, (void)p, (void)s;
	return absent(err);
}

uint32_t cptx_rows_bandwidth(const cptx_device_info *info) { return (void)info, 0; }

uint64_t cptx_rows_workspace(cptx_rows_runner *r, const cptx_rows_opt *o, uint32_t rows, cptx_error *err)
{
	(void)r, (void)o, (void)rows;
	return absent(err);
}

const cptx_rows_opt *cptx_rows_options(const cptx_rows_row *row)
{
	(void)row;
	return NULL;
}

bool cptx_rows_keeps(const cptx_rows_row *row) { return (void)row, false; }

bool cptx_rows_each_(cptx_kernel *k, cptx_site at, cptx_rows_row *row, cptx_rows_at *e, const cptx_rows_pass *pass)
{
	(void)at, (void)row, (void)e, (void)pass;
	absent_in(k);
	return false;
}

bool cptx_rows_next_(cptx_kernel *k, cptx_site at, cptx_rows_row *row, cptx_rows_at *e)
{
	(void)k, (void)at, (void)row, (void)e;
	return false;
}

cptx_val cptx_rows_column_(cptx_kernel *k, cptx_site at, const cptx_rows_row *row, const cptx_rows_at *e)
{
	(void)at, (void)row, (void)e;
	absent_in(k);
	return (cptx_val){ 0 };
}

cptx_val cptx_rows_inside_(cptx_kernel *k, cptx_site at, const cptx_rows_row *row, const cptx_rows_at *e)
{
	return cptx_rows_column_(k, at, row, e);
}

void cptx_rows_reduce_(cptx_kernel *k, cptx_site at, cptx_rows_row *row, cptx_val v, enum cptx_reduce_op op)
{
	(void)at, (void)row, (void)v, (void)op;
	absent_in(k);
}

cptx_val cptx_rows_get_(cptx_kernel *k, cptx_site at, const cptx_rows_row *row, enum cptx_rows_operand operand)
{
	(void)operand;
	return cptx_rows_column_(k, at, row, NULL);
}

void cptx_rows_put_(cptx_kernel *k, cptx_site at, const cptx_rows_row *row, enum cptx_rows_operand operand, cptx_val v)
{
	(void)at, (void)row, (void)operand, (void)v;
	absent_in(k);
}

cptx_val cptx_rows_element_(cptx_kernel *k, cptx_site at, cptx_rows_row *row, enum cptx_rows_operand operand,
                            cptx_val column)
{
	(void)operand, (void)column;
	return cptx_rows_column_(k, at, row, NULL);
}

bool cptx_rows_options_read(const char *text, cptx_rows_opt *o, cptx_error *err)
{
	(void)text, (void)o;
	return absent(err);
}

bool cptx_rows_runner_set_tune(cptx_rows_runner *r, const cptx_tune_use *use, cptx_error *err)
{
	(void)r, (void)use;
	return absent(err);
}

bool cptx_rows_measure(cptx_tune *db, cptx_device *dev, const cptx_rows_opt *o, uint32_t rows, const cptx_tune_use *use,
                       cptx_tune_done *done, cptx_error *err)
{
	(void)db, (void)dev, (void)o, (void)rows, (void)use, (void)done;
	return absent(err);
}
