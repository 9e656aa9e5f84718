/* SPDX-License-Identifier: MIT */
#include "cases.h"

#include "ir/ir.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SINGLES = 8, VECTOR = 24, VALUES = 800 };

static cptx_val regs[256]; /* of each type: single ones, then those for vectors */
static cptx_val symbols[8], label, targets, list, functions[4], prototypes[4];
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

/* As long as the longest vector of that type in the table. */
static void grow(uint8_t longest[256], const arch_form *f, const arch_operand *o, unsigned n)
{
	if (o->type)
		longest[o->type] = (uint8_t)MAX(longest[o->type], n);
	for (unsigned a = 0; o->tgroup != ARCH_NO && a < arch_groups[f->group + o->tgroup].nalt; a++) {
		unsigned t = arch_alts[arch_groups[f->group + o->tgroup].alt + a].mod;
		longest[t] = (uint8_t)MAX(longest[t], n);
	}
}

/* Registers for vectors of a type. */
static unsigned room(unsigned type)
{
	static uint8_t longest[256];
	static bool known;

	for (unsigned i = 0; !known && i < arch_nform; i++)
		for (unsigned n = 0; n < arch_forms[i].noperand; n++) {
			const arch_form *f = &arch_forms[i];
			const arch_operand *o = &arch_operands[f->operand + n];
			if (o->kind != OPERAND_REG)
				continue;
			uint16_t mods[ARCH_GROUPS] = { 0 };
			const arch_group *g = o->cgroup == ARCH_NO ? NULL : &arch_groups[f->group + o->cgroup];
			grow(longest, f, o, arch_operand_count(o, mods));
			for (unsigned a = 0; g && a < g->nalt; a++) {
				mods[o->cgroup] = arch_alts[g->alt + a].mod;
				grow(longest, f, o, arch_operand_count(o, mods));
			}
		}
	known = true;
	return MAX(longest[type], (unsigned)VECTOR);
}

static void add_value(cptx_val v)
{
	if (nvalue < VALUES && v.kind != CPTX_VAL_BAD)
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
	const cptx_val mixed[][4] = {
		{ pool_reg(CPTX_B32, 5), cptx_imm(3) },
		{ cptx_imm(0), pool_reg(CPTX_B64, 5) },
		{ cptx_immf(1.5), pool_reg(CPTX_F32, 5) },
		{ cptx_imm(0), cptx_imm(0) },
		{ cptx_sink(), pool_reg(CPTX_B32, 5) },
		{ cptx_sink(), cptx_sink() },
		{ pool_reg(CPTX_B32, 5), cptx_imm(1), cptx_imm(2), pool_reg(CPTX_B32, 1) },
		{ pool_reg(CPTX_F32, 5), cptx_sink(), cptx_sink(), pool_reg(CPTX_F32, 1) },
	};

	packed = true;
	for (unsigned i = 0; i < ARRAY_LEN(mixed); i++) {
		cptx_val v = cptx_pack_(k, NOWHERE, mixed[i], mixed[i][2].kind ? 4 : 2);
		if (first)
			add_value(v);
	}
	for (unsigned i = 0; i < ARRAY_LEN(types); i++) {
		cptx_val v = cptx_pack_(k, NOWHERE, (cptx_val[]){ pool_reg(types[i], 5), pool_reg(types[i], 1) }, 2);
		if (first)
			add_value(v);
	}
}

static void add_values(cptx_kernel *k)
{
	for (unsigned t = CPTX_ON + 1; t < CPTX_PTR; t++) {
		if (ir_class_of(t) == CLASS_COUNT)
			continue; /* a type of opcodes only */
		add_value(pool_reg(t, 3));
		add_value(pool_vec(t, 0, 2));
		add_value(pool_vec(t, 1, 4));
	}
	add_value(cptx_negated(pool_reg(CPTX_PRED, 3)));
	add_value(cptx_negated(pool_reg(CPTX_S32, 3)));
	static const char *const selectors[] = { "b0", "b3", "b5", "h0", "h1", "h10", "h32", "b10", "b210", "b3210", "b7654" };
	for (unsigned i = 0; i < ARRAY_LEN(selectors); i++)
		add_value(cptx_select(pool_reg(i % 2 ? CPTX_S32 : CPTX_U32, 2), selectors[i]));
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
	add_value(cptx_sink());
	add_value(targets);
	add_value(list);
	add_value(functions[3]);
	add_value(prototypes[3]);
}

/* What calls and indirect branches name. */
static void add_callees(cptx_kernel *k)
{
	static const enum cptx_type b32 = CPTX_B32;
	cptx_val reg = pool_reg(CPTX_B32, 2);

	targets = cptx_targets_(k, NOWHERE, &label, 1);
	list = cptx_list_(k, NOWHERE, &reg, 1);
	for (unsigned i = 0; i < ARRAY_LEN(prototypes); i++)
		prototypes[i] = cptx_prototype_(k, NOWHERE, i & 1 ? CPTX_B32 : CPTX_TYPE_NONE, &b32, i >> 1);
}

static void add_functions(cptx_module *m)
{
	for (unsigned i = 0; i < ARRAY_LEN(functions); i++) {
		char name[16];
		snprintf(name, sizeof name, "in_func%u", i);
		cptx_kernel *f = cptx_func_begin_(m, NOWHERE, name, i & 1 ? CPTX_B32 : CPTX_TYPE_NONE);
		if (i >> 1)
			cptx_param_(f, NOWHERE, CPTX_B32, "a");
		functions[i] = cptx_func_val(f);
	}
}

/* The same calls in every kernel, so the same names and values.  128-bit registers raise the .version: only on demand. */
pool pool_make(bool b128)
{
	static const cptx_kernel_opt plain;
	static const cptx_global_opt in_const = { .space = CPTX_CONST }, in_tex = { .space = CPTX_TEXREF },
								 in_surf = { .space = CPTX_SURFREF }, in_global;
	pool p = { cptx_module_new(NULL), NULL };
	p.m->tag = 1; /* all pools alike, so that a value of one stands for the same of another */

	cptx_val g = cptx_global_(p.m, NOWHERE, CPTX_F32, 64, "in_global", &in_global);
	cptx_val c = cptx_global_(p.m, NOWHERE, CPTX_F32, 64, "in_const", &in_const);
	cptx_val x = cptx_global_(p.m, NOWHERE, CPTX_B64, 1, "in_tex", &in_tex);
	cptx_val u = cptx_global_(p.m, NOWHERE, CPTX_B64, 1, "in_surf", &in_surf);
	add_functions(p.m);
	p.k = cptx_kernel_begin_(p.m, NOWHERE, "k", &plain);
	for (unsigned t = CPTX_ON + 1; t < CPTX_PTR; t++)
		if (t != CPTX_B128 && ir_class_of(t) != CLASS_COUNT)       /* formats of 4 and 6 bits come packed only */
			regs[t] = ir_regs(p.k, NOWHERE, t, SINGLES + room(t)); /* 8 bits stay 8 */
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
	symbols[nsymbol++] = x;
	symbols[nsymbol++] = u;
	add_callees(p.k);
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
cptx_val pool_targets(void) { return targets; }
cptx_val pool_list(void) { return list; }
cptx_val pool_function(bool result, bool parameter) { return functions[2 * parameter + result]; }
cptx_val pool_prototype(bool result, bool parameter) { return prototypes[2 * parameter + result]; }

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

bool pool_names_sampler(const char *line)
{
	const char *p = strstr(line, "\ttex.") || strstr(line, "\ttld4.") ? strchr(line, '[') : NULL;

	if (p)
		p += strcspn(p, ",]");
	return p && *p == ',' && p[1 + strspn(p + 1, " ")] != '{';
}

char *pool_file_head(const char *target, unsigned version, bool samplers)
{
	char text[1024];
	snprintf(text, sizeof text,
	         ".version %u.%u\n.target %s%s\n.address_size 64\n.global .align 16 .b8 in_global[256];\n"
	         ".const .align 16 .b8 in_const[256];\n.global .texref in_tex;\n.global .surfref in_surf;\n"
	         ".func function { ret; }\n.func in_func0 { ret; }\n.func (.reg .b32 r) in_func1 { mov.b32 r, 0; ret; }\n"
	         ".func in_func2(.reg .b32 a) { ret; }\n.func (.reg .b32 r) in_func3(.reg .b32 a) { mov.b32 r, a; ret; }\n",
	         version / 10, version % 10, target, samplers ? ", texmode_independent" : "");
	return duplicate(text);
}

unsigned pool_declared(unsigned nth)
{
	static const uint8_t types[] = { CPTX_PRED,  CPTX_B8,  CPTX_U8,  CPTX_S8,  CPTX_B16, CPTX_U16,
		                             CPTX_S16,   CPTX_F16, CPTX_B32, CPTX_U32, CPTX_S32, CPTX_F32,
		                             CPTX_F16X2, CPTX_B64, CPTX_U64, CPTX_S64, CPTX_F64 };

	return nth < ARRAY_LEN(types) ? types[nth] : 0;
}

/* How many registers %PREFIXn a line needs, one more than the highest n that stands in it; most, if there is no line. */
static unsigned needed_by(const char *line, const char *prefix, const char *behind, unsigned most)
{
	char name[32];
	unsigned n = line ? 0 : most;

	snprintf(name, sizeof name, "%s%s", prefix, behind);
	for (const char *p = line; p && (p = strstr(p, name)); p++)
		if (isdigit((unsigned char)p[strlen(name)]))
			n = MAX(n, (unsigned)strtoul(p + strlen(name), NULL, 10) + 1);
	return n;
}

char *pool_kernel_head(unsigned n, unsigned version, const char *line)
{
	char text[4096];
	const cptx_kernel *k = names();
	int at = snprintf(text, sizeof text, ".visible .entry k%u(.param .align 16 .b8 in_param[64])\n{\n", n);

	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		/* more than the pool has: for destinations that calls make */
		const unsigned most = k->decl[c].count + 300, count = needed_by(line, ir_classes[c].prefix, "", most);
		if ((c != CLASS_B128 || version >= 83) && count)
			at += snprintf(text + at, sizeof text - (size_t)at, "\t.reg .%s %s<%u>;\n", arch_mods[ir_classes[c].type].name,
			               ir_classes[c].prefix, count);
	}
	for (unsigned i = 0; pool_declared(i); i++) {
		const char *type = arch_mods[pool_declared(i)].name;
		const unsigned count = needed_by(line, type, "_", 400);
		if (count)
			at += snprintf(text + at, sizeof text - (size_t)at, "\t.reg .%s %%%s_<%u>;\n", type, type, count);
	}
	at += snprintf(
		text + at, sizeof text - (size_t)at,
		"\t.shared .align 16 .b8 in_shared[256];\n\t.param .align 16 .b8 to_param[64];\n$L%u:\n$L%u: .branchtargets $L%u;\n",
		(unsigned)label.id, (unsigned)targets.id, (unsigned)label.id);
	for (unsigned i = 0; i < ARRAY_LEN(prototypes); i++)
		at += snprintf(text + at, sizeof text - (size_t)at, "$L%u: .callprototype %s_ %s;\n", (unsigned)prototypes[i].id,
		               i & 1 ? "(.param .b32 _) " : "", i >> 1 ? "(.param .b32 _)" : "()");
	return duplicate(text);
}

/* ---- printing ---- */

static char *print_reg(char *p, uint32_t id) { return ir_reg_name(names(), p, id); }

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

static char *print_symbol(char *p, const cptx_val *v) { return p + sprintf(p, "%s", ir_symbol(names(), v->id)->name); }

static char *print_elements(char *p, const cptx_val *v, const char *around, bool wide)
{
	if (*around)
		*p++ = around[0];
	for (unsigned i = 0; i < v->count; i++) {
		cptx_val e = { .kind = CPTX_VAL_REG, .id = v->id + i };
		if (v->kind != CPTX_VAL_REG)
			e = names()->vec[v->id + i];
		p += sprintf(p, "%s", i ? ", " : "");
		if (e.kind == CPTX_VAL_REG)
			p = print_reg(p, e.id);
		else if (e.kind == CPTX_VAL_SINK)
			*p++ = '_';
		else
			p = print_number(p, &e, wide);
	}
	if (*around)
		*p++ = around[1];
	return p;
}

static char *print_selector(char *p, const cptx_val *v)
{
	p += sprintf(p, ".%c", v->space & SELECTED_H ? 'h' : 'b');
	for (unsigned i = 0; i < (v->space & SELECTED_DIGITS); i++)
		*p++ = (char)('0' + ((uint32_t)v->offset >> 3 * i & 7));
	return p;
}

char *pool_print(char *p, const cptx_val *v, bool brace, bool wide)
{
	if (v->negated && v->kind != CPTX_VAL_INT)
		*p++ = v->type == CPTX_PRED ? '!' : '-';
	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_REG:
	case CPTX_VAL_VEC: p = print_elements(p, v, v->count > 1 || brace ? "{}" : "", wide); break;
	case CPTX_VAL_LIST: p = print_elements(p, v, "()", wide); break;
	case CPTX_VAL_INT:
	case CPTX_VAL_FLOAT:
		p += sprintf(p, "%s", brace ? "{" : "");
		p = print_number(p, v, wide);
		p += sprintf(p, "%s", brace ? "}" : "");
		break;
	case CPTX_VAL_SYM: p = print_symbol(p, v); break;
	case CPTX_VAL_SREG: p += sprintf(p, "%s", arch_sregs[v->id].text); break;
	case CPTX_VAL_LABEL: p += sprintf(p, "$L%u", (unsigned)v->id); break;
	case CPTX_VAL_TARGETS: p += sprintf(p, "$L%u", (unsigned)v->id); break;
	case CPTX_VAL_PROTO: p += sprintf(p, "$L%u", (unsigned)v->id); break;
	case CPTX_VAL_SINK: *p++ = '_'; break;
	case CPTX_VAL_FUNC:
		for (unsigned i = 0; i < ARRAY_LEN(functions); i++)
			p += functions[i].id == v->id ? sprintf(p, "in_func%u", i) : 0;
		break;
	case CPTX_VAL_BAD:
	case CPTX_VAL_NONE: break;
	}
	if (v->kind == CPTX_VAL_REG && v->space)
		p = print_selector(p, v);
	else if ((v->kind == CPTX_VAL_REG || v->kind == CPTX_VAL_SYM) && v->offset)
		p += sprintf(p, "+%d", (int)v->offset);
	*p = 0;
	return p;
}

/* Prints a register of its declared type; those of different operands differ, as long as there are enough. */
static char *print_declared(char *p, const token *k, unsigned operand)
{
	bool brace = k->v.count > 1 || k->brace;

	p += sprintf(p, "%s", brace ? "{" : "");
	for (unsigned i = 0; i < k->v.count; i++)
		p += sprintf(p, "%s%%%s_%u", i ? ", " : "", arch_mods[k->odd && i == k->at ? k->odd : k->as].name,
		             (operand * 16 + i) % 400);
	return p + sprintf(p, "%s", brace ? "}" : "");
}

void trial_print(const trial *t, char line[LINE])
{
	char *p = line + sprintf(line, "\t%s", t->opcode);
	bool wide = strstr(t->opcode, "64") != NULL;

	for (unsigned i = 0; i < t->ntok; i++) {
		const token *k = &t->tok[i];
		p += sprintf(p, "%s%s", i == 0 ? " " : k->pipe ? "|" : ", ", k->address ? "[" : "");
		p = k->as ? print_declared(p, k, i) : pool_print(p, &k->v, k->brace, wide);
		p += sprintf(p, "%s", (k->address || k->inside) && !(i + 1 < t->ntok && k[1].inside) ? "]" : "");
		if (k->behind)
			p += sprintf(p, ".%s", arch_mods[k->behind].name);
	}
	sprintf(p, ";");
}
