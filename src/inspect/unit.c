/* SPDX-License-Identifier: MIT */
/* The unit that an instruction keeps busy: by its name (unit.def), by the space of its address, by its chapter and type. */
#include "inspect/flow.h"

static const struct exception {
	const char *name;
	enum cptx_unit unit;
} exceptions[] = {
#define UNIT(unit, name) { name, CPTX_UNIT_##unit },
#include "inspect/unit.def"
#undef UNIT
};

static const char *const names[CPTX_UNITS] = { "tensor", "float", "double",   "integer", "special", "global",
	                                           "shared", "local", "constant", "copy",    "sync",    "control" };

const char *cptx_unit_name(enum cptx_unit unit) { return (unsigned)unit < CPTX_UNITS ? names[unit] : "?"; }

static bool called(const char *name, const char *pattern)
{
	size_t n = strlen(pattern);

	return n && pattern[n - 1] == '*' ? !strncmp(name, pattern, n - 1) : !strcmp(name, pattern);
}

/* The unit of a state space; CPTX_UNITS: none. */
static enum cptx_unit unit_of_space(unsigned space)
{
	switch (space) {
	case CPTX_SHARED:
	case CPTX_SHARED_CTA:
	case CPTX_SHARED_CLUSTER: return CPTX_UNIT_SHARED;
	case CPTX_LOCAL: return CPTX_UNIT_LOCAL;
	case CPTX_PARAM:
	case CPTX_PARAM_ENTRY:
	case CPTX_PARAM_FUNC:
	case CPTX_CONST: return CPTX_UNIT_CONSTANT;
	case CPTX_GLOBAL: return CPTX_UNIT_GLOBAL;
	default: return CPTX_UNITS;
	}
}

static enum cptx_unit by_address(const ir_item *it)
{
	const arch_form *form = &arch_forms[it->form];
	const uint16_t *mods = ir_mods(it);

	for (unsigned i = 0; i < form->noperand; i++) {
		const arch_operand *o = &arch_operands[form->operand + i];
		if (o->kind != OPERAND_ADDR || o->address != ADDRESS_MEMORY)
			continue;
		unsigned space = o->sgroup != ARCH_NO && mods[o->sgroup] ? mods[o->sgroup] : o->space;
		enum cptx_unit unit = unit_of_space(space);
		return unit < CPTX_UNITS ? unit : CPTX_UNIT_GLOBAL; /* generic addresses are mostly global */
	}
	return CPTX_UNITS;
}

static unsigned type_of(const ir_item *it)
{
	const arch_form *form = &arch_forms[it->form];

	for (unsigned g = 0; g < form->ngroup; g++)
		if (arch_groups[form->group + g].is_type)
			return ir_mods(it)[g];
	return CPTX_TYPE_NONE;
}

static enum cptx_unit by_chapter(const char *chapter, unsigned type)
{
	if (!strncmp(chapter, "Synchronization", 15) || !strncmp(chapter, "Asynchronous Warpgroup", 22))
		return CPTX_UNIT_SYNC;
	if (!strncmp(chapter, "Control Flow", 12))
		return CPTX_UNIT_CONTROL;
	if (!strncmp(chapter, "Texture", 7) || !strncmp(chapter, "Surface", 7) || !strncmp(chapter, "Fabric", 6))
		return CPTX_UNIT_GLOBAL;
	bool arithmetic = !strncmp(chapter, "Integer Arithmetic", 18) || !strncmp(chapter, "Floating Point", 14);
	if (arithmetic && type == CPTX_F64)
		return CPTX_UNIT_DOUBLE;
	bool is_float = type == CPTX_F32 || type == CPTX_F16 || type == CPTX_BF16 || type == CPTX_F16X2 || type == CPTX_BF16X2 ||
	                type == CPTX_F32X2;
	return arithmetic && is_float ? CPTX_UNIT_FLOAT : CPTX_UNIT_INTEGER;
}

enum cptx_unit flow_unit(const cptx_kernel *k, const ir_item *it)
{
	const arch_op *op = &arch_ops[arch_forms[it->form].op];

	(void)k;
	for (size_t i = 0; i < ARRAY_LEN(exceptions); i++)
		if (called(op->name, exceptions[i].name))
			return exceptions[i].unit;
	enum cptx_unit unit = by_address(it);
	if (!strncmp(op->chapter, "Synchronization", 15) && strncmp(op->name, "atom", 4) != 0 &&
	    strncmp(op->name, "red", 3) != 0)
		return CPTX_UNIT_SYNC;
	return unit < CPTX_UNITS ? unit : by_chapter(op->chapter, type_of(it));
}

/* Multiplications of a matrix instruction, from the shape in its name: m64n128k16. */
static double products(const ir_item *it)
{
	const arch_form *form = &arch_forms[it->form];
	char spelling[ARCH_OPCODE];
	char *end = arch_put_opcode(spelling, it->form, ir_mods(it));

	(void)form;
	*end = 0;
	for (const char *p = spelling; (p = strstr(p, ".m")); p++) {
		double all = 1;
		unsigned dims = 0;
		for (const char *q = p + 1; dims < 3 && *q == "mnk"[dims]; dims++) {
			unsigned v = 0;
			for (q++; *q >= '0' && *q <= '9'; q++)
				v = v * 10 + (unsigned)(*q - '0');
			all *= v;
		}
		if (dims == 3)
			return all;
	}
	return 64 * 64 * 16; /* tcgen05 has its shape in a descriptor, so this is a guess */
}

/* An estimate of how long an instruction keeps its unit busy, in units of one addition: matrix instructions by their
 * multiplications, memory accesses by their latency. */
double flow_cost(const cptx_kernel *k, const ir_item *it, enum cptx_unit unit)
{
	(void)k;
	switch (unit) {
	case CPTX_UNIT_TENSOR: return products(it) / 1024;
	case CPTX_UNIT_SPECIAL:
	case CPTX_UNIT_DOUBLE: return 4;
	case CPTX_UNIT_SHARED:
	case CPTX_UNIT_SYNC: return 8;
	case CPTX_UNIT_GLOBAL:
	case CPTX_UNIT_LOCAL: return 16;
	case CPTX_UNIT_COPY: return 16;
	default: return 1;
	}
}
