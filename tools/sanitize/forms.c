/* SPDX-License-Identifier: MIT */
#include "forms.h"

#include <string.h>

const char *san_form(const char *name, unsigned version)
{
	static const struct form {
		const char *name, *exported;
		unsigned since;
	} forms[] = {
#define FORM(name, exported, since) { #name, #exported, since },
#include "forms.def"
#undef FORM
	};
	const char *found = name;

	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
		if (forms[i].since <= version && !strcmp(forms[i].name, name))
			found = forms[i].exported;
	return found;
}
