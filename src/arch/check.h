/* SPDX-License-Identifier: MIT */
/* The named rules of insn.def, which its notation cannot say: one function each, which returns NULL, or what is wrong. */
#ifndef CPTX_ARCH_CHECK_H
#define CPTX_ARCH_CHECK_H

#include "arch/arch.h"

#define CONSTRAINT(name, text) const char *arch_check_##name(const arch_match *m);
#include "arch/constraint.def"
#undef CONSTRAINT

static inline const arch_group *check_group(const arch_match *m, unsigned i)
{
	return &arch_groups[arch_forms[m->form].group + i];
}

/* The value of the form's nth group, from 0 on, that is a type. */
static inline unsigned check_type(const arch_match *m, unsigned nth)
{
	for (unsigned i = 0; i < m->ngroup; i++)
		if (check_group(m, i)->is_type && nth-- == 0)
			return m->mod[i];
	return 0;
}

#endif
