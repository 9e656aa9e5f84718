#include "cases.h"

#include "ir/ir.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SINGLES = 8, VECTOR = 24, VALUES = 400 };

static cptx_val regs[ARCH_TARGETS * 4]; /* of each type: single ones, then those for vectors */
static cptx_val symbols[8], label;
static cptx_val values[VALUES];
static unsigned nvalue, nsymbol;
static bool packed;
static pool reference; /* never appended to: names of registers and variables */

unsigned roll(dice *d, unsigned n)
{
	d->state = d->state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)((d->state >> 33) % n);
}

/* ---- the pool ---- */

/* Registers for vectors: accumulators are 32 bits wide, and as long as the longest operand of the table. */
static unsigned room(unsigned type)
{
	static unsigned longest;

	for (unsigned i = 0; !longest && i < arch_nform; i++)
		for (unsigned o = 0; o < arch_forms[i].noperand; o++)
			longest = MAX(longest, arch_operands[arch_forms[i].operand + o].count);
	return type == CPTX_B32 || type == CPTX_F32 || type == CPTX_S32 ? MAX(longest, (unsigned)VECTOR) : VECTOR;
}

static void add_value(cptx_val v)
{
	if (nvalue < VALUES)
		values[nvalue++] = v;
}

static void add_constants(void)
{
	static const int64_t ints[] = { 0,
		                            1,
		                            -1,
		                            2,
		                            3,
		                            4,
		                            8,
		                            16,
		                            31,
		                            32,
		                            63,
		                            64,
		                            128,
		                            255,
		                            256,
		                            1023,
		                            1024,
		                            32767,
		                            32768,
		                            65535,
		                            65536,
		                            -32768,
		                            -32769,
		                            INT32_MAX,
		                            INT32_MIN,
		                            UINT32_MAX,
		                            (int64_t)UINT32_MAX + 1,
		                            (int64_t)INT32_MIN - 1,
		                            INT64_MAX,
		                            INT64_MIN };

	for (unsigned i = 0; i < ARRAY_LEN(ints); i++)
		add_value(cptx_imm(ints[i]));
	add_value(cptx_val_uint_(UINT64_MAX));
	add_value(cptx_immf(1.5));
	add_value(cptx_immf(0.0));
	add_value(cptx_immf(1e300));
	add_value(cptx_immf(1.0 / 3.0));
	add_value(cptx_sreg_val(CPTX_SREG_TID_X));
	add_value(cptx_sreg_val(CPTX_SREG_LANEID));
	add_value(cptx_sreg_val(CPTX_SREG_CLOCK64));
}

/* Vectors of registers that are not neighbours; made in every kernel, known from the first on. */
static void add_packs(cptx_kernel *k)
{
	static const uint8_t types[] = { CPTX_U32, CPTX_U64, CPTX_F32, CPTX_B16 };
	bool first = !packed;

	packed = true;
	for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
		cptx_val v = cptx_pack_(k, NOWHERE, (cptx_val[]){ pool_reg(types[i], 5), pool_reg(types[i], 1) }, 2);
		if (first)
			add_value(v);
	}
}

static void add_values(cptx_kernel *k)
{
	for (unsigned t = CPTX_ON + 1; t < CPTX_PTR; t++) {
		add_value(pool_reg(t, 3));
		add_value(pool_vec(t, 0, 2));
		add_value(pool_vec(t, 1, 4));
	}
	add_value(cptx_negated(pool_reg(CPTX_PRED, 3)));
	cptx_val negated_bits = pool_reg(CPTX_B32, 3); /* no call makes it */
	negated_bits.negated = 1;
	add_value(negated_bits);
	for (unsigned t = 0; t < 2; t++) {
		unsigned type = t ? CPTX_U64 : CPTX_U32;
		add_value(cptx_offset(pool_reg(type, 4), 16));
		add_value(cptx_offset(pool_reg(type, 4), -4));
	}
	add_packs(k);
	for (unsigned i = 0; i < nsymbol; i++) {
		add_value(symbols[i]);
		add_value(cptx_offset(symbols[i], 16));
	}
	add_constants();
	add_value(label);
}

/* The same calls in every kernel, so the same names and values.  128-bit registers raise the .version: only on demand. */
pool pool_make(bool b128)
{
	static const cptx_kernel_opt plain;
	static const cptx_global_opt in_const = { .space = CPTX_CONST }, in_global;
	pool p = { cptx_module_new(NULL), NULL };
	p.m->tag = 1; /* all pools alike, so that a value of one stands for the same of another */

	cptx_val g = cptx_global_(p.m, NOWHERE, CPTX_F32, 64, "in_global", &in_global);
	cptx_val c = cptx_global_(p.m, NOWHERE, CPTX_F32, 64, "in_const", &in_const);
	p.k = cptx_kernel_begin_(p.m, NOWHERE, "k", &plain);
	for (unsigned t = CPTX_ON + 1; t < CPTX_PTR; t++)
		if (t != CPTX_B128)
			regs[t] = cptx_regs_(p.k, NOWHERE, (enum cptx_type)t, SINGLES + room(t));
	if (b128)
		regs[CPTX_B128] = cptx_regs_(p.k, NOWHERE, CPTX_B128, SINGLES + VECTOR);
	cptx_val s = cptx_shared_(p.k, NOWHERE, CPTX_F32, 64, 16, "in_shared");
	cptx_val b = cptx_param_bytes_(p.k, NOWHERE, 64, 16, "in_param");
	label = cptx_label(p.k);
	cptx_place_(p.k, NOWHERE, label);
	nsymbol = 0;
	symbols[nsymbol++] = g;
	symbols[nsymbol++] = c;
	symbols[nsymbol++] = s;
	symbols[nsymbol++] = b;
	if (!nvalue)
		add_values(p.k);
	else
		add_packs(p.k);
	return p;
}

static const cptx_kernel *names(void)
{
	if (!reference.m)
		reference = pool_make(true);
	return reference.k;
}

void pool_init(void) { names(); }
cptx_val pool_reg(unsigned type, unsigned nth) { return cptx_elem(regs[type], nth % SINGLES); }
cptx_val pool_vec(unsigned type, unsigned nth, unsigned n)
{
	unsigned at = nth % 3 * 8;
	return cptx_slice(regs[type], SINGLES + (at + n <= room(type) ? at : 0), n);
}
unsigned pool_nvalue(void) { return names() ? nvalue : 0; }
cptx_val pool_value(unsigned i) { return values[i]; }
cptx_val pool_label(void) { return label; }

cptx_val pool_symbol(unsigned space)
{
	if (space == CPTX_SHARED_CTA || space == CPTX_SHARED_CLUSTER)
		space = CPTX_SHARED;
	for (unsigned i = 0; i < nsymbol; i++)
		if (symbols[i].space == space)
			return symbols[i];
	return (cptx_val){ 0 };
}

static char *duplicate(const char *s)
{
	char *p = strdup(s);
	if (!p)
		exit(2);
	return p;
}

char *pool_file_head(const char *target, unsigned version)
{
	char text[512];
	snprintf(text, sizeof text,
	         ".version %u.%u\n.target %s\n.address_size 64\n.global .align 16 .b8 in_global[256];\n"
	         ".const .align 16 .b8 in_const[256];\n",
	         version / 10, version % 10, target);
	return duplicate(text);
}

char *pool_kernel_head(unsigned n, unsigned version)
{
	char text[2048];
	const cptx_kernel *k = names();
	int at = snprintf(text, sizeof text, ".visible .entry k%u(.param .align 16 .b8 in_param[64])\n{\n", n);

	for (unsigned c = 0; c < CLASS_COUNT; c++) /* more than the pool has: for destinations that calls make */
		if (c != CLASS_B128 || version >= 83)
			at += snprintf(text + at, sizeof text - (size_t)at, "\t.reg .%s %s<%u>;\n", ir_classes[c].type,
			               ir_classes[c].prefix, k->class_count[c] + 300);
	snprintf(text + at, sizeof text - (size_t)at, "\t.shared .align 16 .b8 in_shared[256];\n$L%u:\n", (unsigned)label.id);
	return duplicate(text);
}

/* ---- printing ---- */

static char *print_reg(char *p, uint32_t id)
{
	const cptx_kernel *k = names();
	return p + sprintf(p, "%s%u", ir_classes[k->reg[id].cls].prefix, (unsigned)k->reg[id].number);
}

static char *print_number(char *p, const cptx_val *v, bool wide)
{
	float f = (float)v->f;
	uint64_t wide_bits;
	uint32_t bits;

	memcpy(&wide_bits, &v->f, sizeof wide_bits);
	memcpy(&bits, &f, sizeof bits);
	if (v->kind == CPTX_VAL_INT)
		return p + (v->negated ? sprintf(p, "%" PRIu64, (uint64_t)v->i) : sprintf(p, "%" PRId64, v->i));
	return p + (wide ? sprintf(p, "0d%016" PRIX64, wide_bits) : sprintf(p, "0f%08" PRIX32, bits));
}

static char *print_symbol(char *p, const cptx_val *v)
{
	const cptx_kernel *k = names();
	const char *name = v->space == CPTX_PARAM ? k->param[v->id].name : ir_symbol(k, v->id)->name;
	return p + sprintf(p, "%s", name);
}

char *pool_print(char *p, const cptx_val *v, bool brace, bool wide)
{
	brace |= v->count > 1;
	if (v->negated && v->kind != CPTX_VAL_INT)
		*p++ = '!';
	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_REG:
	case CPTX_VAL_VEC:
		if (brace)
			*p++ = '{';
		for (unsigned i = 0; i < v->count; i++)
			p = print_reg(i ? p + sprintf(p, ", ") : p, v->kind == CPTX_VAL_VEC ? names()->vec[v->id + i].id : v->id + i);
		if (brace)
			*p++ = '}';
		break;
	case CPTX_VAL_INT:
	case CPTX_VAL_FLOAT: p = print_number(p, v, wide); break;
	case CPTX_VAL_SYM: p = print_symbol(p, v); break;
	case CPTX_VAL_SREG: p += sprintf(p, "%s", arch_sregs[v->id].text); break;
	case CPTX_VAL_LABEL: p += sprintf(p, "$L%u", (unsigned)v->id); break;
	case CPTX_VAL_SINK: *p++ = '_'; break;
	default: break;
	}
	if ((v->kind == CPTX_VAL_REG || v->kind == CPTX_VAL_SYM) && v->offset)
		p += sprintf(p, "+%d", (int)v->offset);
	*p = 0;
	return p;
}

void trial_print(const trial *t, char line[LINE])
{
	char *p = line + sprintf(line, "\t%s", t->opcode);
	bool wide = strstr(t->opcode, "64") != NULL;

	for (unsigned i = 0; i < t->ntok; i++) {
		const token *k = &t->tok[i];
		p += sprintf(p, "%s%s", i == 0 ? " " : k->pipe ? "|" : ", ", k->address ? "[" : "");
		p = pool_print(p, &k->v, k->brace, wide);
		p += sprintf(p, "%s", k->address ? "]" : "");
	}
	sprintf(p, ";");
}
