/* SPDX-License-Identifier: MIT */
/* Replaces the other files here where the parser is left out of the build (-Dparser=disabled). */
#include "ir/ir.h"
#include "parse/parse.h"

cptx_module *cptx_parse(const char *text, size_t size, const cptx_parse_opt *opt)
{
	cptx_module *m = text || !size ? cptx_module_new(opt ? opt->allocator : NULL) : NULL;

	if (m)
		error_absent(&m->err, NOWHERE, "reader of PTX text", "parser");
	if (m && opt && opt->report)
		opt->report(opt->user, &m->err);
	return m;
}

cptx_module *parse_inputs(const parse_input *in, size_t n, const cptx_parse_opt *opt)
{
	(void)n;
	return cptx_parse(in->text, in->size, opt);
}

cptx_val cptx_asm_(cptx_kernel *k, cptx_site at, const char *text, const cptx_val *holes, size_t n)
{
	(void)text, (void)holes, (void)n;
	if (ir_open(k, at))
		error_absent(&k->m->err, at, "reader of PTX text", "parser");
	return (cptx_val){ 0 };
}

size_t cptx_spelling_example(const char *spelling, size_t nth, char *text, size_t size)
{
	(void)spelling, (void)nth;
	if (text && size)
		*text = 0;
	return 0;
}

bool cptx_form_spelled(const char *spelling, size_t nth, size_t *op, size_t *form)
{
	(void)spelling, (void)nth, (void)op, (void)form;
	return false;
}
