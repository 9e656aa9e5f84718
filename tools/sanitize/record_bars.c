/* SPDX-License-Identifier: MIT */
/* Launches that a recording (record.c) cannot hold. */
#include "record.h"

#include <string.h>

/* Why the kernel, or a function of its text, cannot be recorded; NULL: it can. */
static const char *in_text(const san_kernel *k)
{
	static const struct {
		const char *begins, *why;
	} names[] = {
#define TEXTURES "it reads textures or surfaces, which are not recorded"
		{ "tex.", TEXTURES },  { "tld4.", TEXTURES },  { "suld.", TEXTURES },
		{ "sust.", TEXTURES }, { "sured.", TEXTURES }, { "multimem.", "it uses multicast objects, which are not recorded" }
#undef TEXTURES
	};
	const cptx_module *m = k->in->parsed;
	char spelling[16];
	cptx_kernel *b;

	for (size_t i = 0; (b = cptx_module_body_at(m, i)); i++)
		for (const cptx_item *it = cptx_body_is_func(b) || !strcmp(cptx_body_name(b), k->name) ? cptx_item_first(b) : NULL;
		     it; it = cptx_item_next(it)) {
			cptx_item_spelling(it, spelling, sizeof spelling);
			for (size_t n = 0; n < sizeof names / sizeof *names; n++)
				if (!strncmp(spelling, names[n].begins, strlen(names[n].begins)))
					return names[n].why;
		}
	return NULL;
}

/* Whether a module that another device has, too, has a variable at one address for both: a managed one. */
static bool shares_variables(const san_module *m)
{
	cptx_emu_variable_info here, there;

	for (int d = 0; d < SAN_DEVICES; d++)
		for (size_t i = 0; d != san.device && m->recorded[d] && cptx_emu_variable(m->program[d], i, &there); i++)
			if (cptx_emu_variable(m->program[san.device], i, &here) && here.at == there.at)
				return true;
	return false;
}

const char *san_record_bars(const san_kernel *k)
{
	const char *why = in_text(k);

	return why           ? why
	       : san.several ? "memory is mapped at several addresses"
	       : !k->module->recorded[san.device] && shares_variables(k->module)
	           ? "a managed variable of its module is one of several devices, which is not recorded"
	           : NULL;
}
