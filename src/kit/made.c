/* SPDX-License-Identifier: MIT */
/* Marks in the structs of the kit. */
#include "kit/made.h"

#include <cptx/params.h>
#include <cptx/roles.h>
#include <cptx/scheduler.h>
#include <cptx/softmax.h>
#include <cptx/timeline.h>
#include <cptx/tmem.h>
#include <cptx/vector.h>
#include <cptx/epilogue.h>
#include <cptx/operand.h>

#define MARK UINT64_C(0x63707478206b6974) /* no count, type or address of a struct that was not made looks like it */

#define NOUN(type, bytes, what, by) _Static_assert(sizeof(type) == (bytes), #type " has another size in src/kit/nouns.def");
#include "kit/nouns.def"

static const struct {
	const char *what, *by;
} nouns[] = {
	{ "", "" },
#define NOUN(type, bytes, what, by) { what, by },
#include "kit/nouns.def"
};

cptx_made kit_made(const cptx_kernel *k, enum kit_noun noun) { return (cptx_made){ MARK + noun, k }; }

bool kit_is_made(cptx_kernel *k, cptx_site at, const cptx_made *made, enum kit_noun noun)
{
	if (!made || made->mark != MARK + noun)
		cptx_fail_(k, at, "%s that %s did not make", nouns[noun].what, nouns[noun].by);
	else if (made->kernel != k)
		cptx_fail_(k, at, "%s of another kernel; each kernel makes its own: %s", nouns[noun].what, nouns[noun].by);
	else
		return true;
	return false;
}
