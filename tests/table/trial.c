/* SPDX-License-Identifier: MIT */
/* One instruction: its operands, and what the library makes of it. */
#include "cases.h"
#include "../reparse.h"

#include <stdio.h>

static unsigned want_type(const spelling *s, const arch_operand *o)
{
	unsigned t = o->type ? o->type : o->tgroup != ARCH_NO ? s->mod[o->tgroup] : 0;

	if (o->flags & OPERAND_DOUBLE)
		t = t == CPTX_U16   ? CPTX_U32
		    : t == CPTX_S16 ? CPTX_S32
		    : t == CPTX_U32 ? CPTX_U64
		    : t == CPTX_S32 ? CPTX_S64
		                    : CPTX_B128;
	return t;
}

static unsigned want_count(const spelling *s, const arch_operand *o) { return arch_operand_count(o, s->mod); }

/* What is called has a result and a parameter if the form has lists for them. */
static cptx_val callee(const arch_form *f, bool prototype, bool full)
{
	bool result = arch_operands[f->operand].kind == OPERAND_LIST, parameter = false;

	for (unsigned i = 1; i < f->noperand; i++)
		parameter |= arch_operands[f->operand + i].kind == OPERAND_LIST &&
		             (full || !(arch_operands[f->operand + i].flags & OPERAND_OPTIONAL));
	return prototype ? pool_prototype(result, parameter) : pool_function(result, parameter);
}

/* Samplers are registers: variables of that kind need another .target mode. */
static cptx_val plain_address(const spelling *s, const arch_operand *o, unsigned nth)
{
	cptx_val v = { 0 };

	if (o->address == ADDRESS_TMEM || o->address == ADDRESS_ENDPOINT)
		return pool_reg(CPTX_B32, nth);
	if (o->address == ADDRESS_HANDLE && s->mod[0] % 2)
		v = pool_symbol(o->space);
	if (arch_forms[s->form].op == CPTX_OP_ST && o->sgroup != ARCH_NO &&
	    (s->mod[o->sgroup] == CPTX_PARAM || s->mod[o->sgroup] == CPTX_PARAM_FUNC))
		v = pool_symbol(CPTX_PARAM);
	return v.kind ? v : pool_reg(CPTX_U64, nth);
}

static cptx_val plainest(const spelling *s, const arch_operand *o, unsigned nth, bool full)
{
	const arch_form *f = &arch_forms[s->form];

	switch ((enum arch_operand_kind)o->kind) {
	case OPERAND_ADDR: return plain_address(s, o, nth);
	case OPERAND_IMM: return cptx_imm(o->lo == INT32_MIN ? 0 : o->lo == -1 && o->hi == -1 ? (int64_t)UINT32_MAX : o->lo);
	case OPERAND_LABEL: return pool_label();
	case OPERAND_TARGETS: return pool_targets();
	case OPERAND_LIST: return pool_list();
	case OPERAND_FUNC: return callee(f, false, full);
	case OPERAND_PROTO: return callee(f, true, full);
	case OPERAND_NOWHERE: return cptx_sink();
	case OPERAND_REG: break;
	}
	unsigned n = want_count(s, o), t = want_type(s, o);
	if (o->flags & OPERAND_WIDER && arch_types[t].bits == 8)
		t = CPTX_B16; /* as nearly everybody does */
	return n > 1 ? pool_vec(t, nth, n) : pool_reg(t, nth);
}

static void fill_mods(const spelling *s, trial *t)
{
	const arch_form *f = &arch_forms[s->form];
	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		if (g->kind != GROUP_REPEAT)
			t->mods[g->field] = s->mod[i];
	}
}

static void put_operand(const spelling *s, trial *t, unsigned i, cptx_val v)
{
	const arch_form *f = &arch_forms[s->form];
	const arch_operand *o = &arch_operands[f->operand + i];

	t->vals[o->slot ? 2 + o->slot : 0] = v;
	if (v.kind)
		t->tok[t->ntok++] = (token){ v,
			                         o->flags & OPERAND_PIPE,
			                         o->kind == OPERAND_ADDR && !(o->flags & OPERAND_INSIDE),
			                         o->flags & OPERAND_INSIDE,
			                         o->brace,
			                         o->behind != ARCH_NO ? s->mod[o->behind] : 0,
			                         0,
			                         0,
			                         0 };
}

/* Whether an operand is there in the plainest instruction, or in the fullest. */
static bool is_there(const spelling *s, const arch_operand *o, bool full)
{
	if (o->given != ARCH_NO)
		return s->mod[o->given] != 0;
	return full || !(o->flags & OPERAND_OPTIONAL);
}

static trial make(const spelling *s, const trial *base, unsigned changed, cptx_val v, bool full)
{
	const arch_form *f = &arch_forms[s->form];
	trial t = { .form = s->form, .structured = true };

	spell(s, t.opcode);
	fill_mods(s, &t);
	for (unsigned i = 0; i < f->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		if (i == changed)
			put_operand(s, &t, i, v);
		else if (base)
			put_operand(s, &t, i, base->vals[o->slot ? 2 + o->slot : 0]);
		else
			put_operand(s, &t, i, is_there(s, o, full) ? plainest(s, o, i, full) : (cptx_val){ 0 });
	}
	return t;
}

trial trial_with(const spelling *s, const trial *base, unsigned changed, cptx_val v)
{
	return make(s, base, changed, v, false);
}

trial trial_of(const spelling *s) { return make(s, NULL, ARCH_OPERANDS, (cptx_val){ 0 }, false); }
trial trial_full(const spelling *s) { return make(s, NULL, ARCH_OPERANDS, (cptx_val){ 0 }, true); }

unsigned trial_end(const spelling *s, unsigned target)
{
	const arch_form *f = &arch_forms[s->form];
	unsigned end = arch_ends[f->avail][target];

	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		for (unsigned a = 0; a < g->nalt; a++) {
			const arch_alt *alt = &arch_alts[g->alt + a];
			unsigned e = alt->mod == s->mod[i] && alt->avail ? arch_ends[alt->avail][target] : 0;
			end = e && (!end || e < end) ? e : end;
		}
	}
	return end;
}

/* ---- what the library says ---- */

static void append_text(const trial *t, cptx_kernel *k)
{
	char text[LINE], *p = text + sprintf(text, "%s", t->opcode);
	cptx_val holes[MOST_TOKENS];

	for (unsigned i = 0; i < t->ntok; i++) {
		const token *x = &t->tok[i];
		bool single = x->brace && x->v.count == 1 && x->v.kind != CPTX_VAL_VEC;
		bool last = (x->address || x->inside) && !(i + 1 < t->ntok && x[1].inside);
		p += sprintf(p, "%s%s%s%s",
		             i == 0    ? " "
		             : x->pipe ? "|"
		                       : ", ",
		             x->address ? "[" : "", single ? "{{}}" : "{}", last ? "]" : "");
		if (x->behind)
			p += sprintf(p, ".%s", arch_mods[x->behind].name);
		holes[i] = x->v;
	}
	sprintf(p, ";");
	cptx_asm_(k, (cptx_site){ "trial", TRIED_LINE }, text, holes, t->ntok);
}

static void first_line(char *to, size_t size, const char *from)
{
	size_t n = 0;
	for (; from[n] && n + 1 < size; n++)
		to[n] = from[n] == '\n' ? '/' : from[n];
	to[n] = 0;
}

static bool needs_b128(const trial *t)
{
	for (unsigned i = 0; i < t->ntok; i++)
		if (t->tok[i].v.type == CPTX_B128)
			return true;
	return false;
}

static bool build(const trial *t, enum path path, pool *p, outcome *o)
{
	*p = pool_make(needs_b128(t));
	if (path == BY_CALL)
		cptx_insn_(p->k, (cptx_site){ "trial", TRIED_LINE }, (enum cptx_op)arch_forms[t->form].op, t->vals, t->mods);
	else
		append_text(t, p->k);
	o->built = cptx_module_freeze(p->m);
	if (!o->built)
		first_line(o->why, sizeof o->why, cptx_module_error(p->m)->text);
	return o->built;
}

static void find_line(const cptx_ptx *ptx, char line[LINE])
{
	uint32_t n = 1;

	line[0] = 0;
	for (const char *p = cptx_ptx_text(ptx); *p; n++) {
		size_t len = strcspn(p, "\n");
		if (len < LINE && cptx_ptx_origin(ptx, n).line == TRIED_LINE) {
			memcpy(line, p, len);
			line[len] = 0;
			return;
		}
		p += len + (p[len] == '\n');
	}
}

static void emit(pool *p, const cptx_target *target, outcome *o)
{
	static cptx_ptx *ptx; /* it keeps the names of the pool's registers, which take longer than the rest */
	cptx_error err = { .code = CPTX_OK };

	if (!ptx)
		ptx = cptx_ptx_new(NULL);
	o->ok = ptx && cptx_emit_again(ptx, p->m, target->name, NULL, &err);
	if (!o->ok) {
		first_line(o->why, sizeof o->why, ptx ? err.text : "out of memory");
		return;
	}
	o->version = cptx_ptx_version(ptx);
	if (!o->line[0])
		find_line(ptx, o->line);
	if (!test_reparses_slowly(cptx_ptx_text(ptx))) {
		o->ok = false;
		first_line(o->why, sizeof o->why, "read and printed again it is another");
	}
}

void trial_build(const trial *t, enum path path, const cptx_target *target, outcome *o)
{
	pool p;

	*o = (outcome){ 0 };
	if (build(t, path, &p, o))
		emit(&p, target, o);
	cptx_module_destroy(p.m);
}

bool trial_versions(const trial *t, enum path path, uint8_t version[ARCH_TARGETS], outcome *o)
{
	pool p;

	*o = (outcome){ 0 };
	if (build(t, path, &p, o))
		for (unsigned i = 0; i < arch_ntarget; i++) {
			emit(&p, &arch_targets[i], o);
			version[i] = o->ok ? (uint8_t)o->version : 0;
		}
	cptx_module_destroy(p.m);
	return o->built;
}

const cptx_target *trial_lowest(const trial *t, enum path path, outcome *o)
{
	const cptx_target *low = NULL;
	pool p;

	*o = (outcome){ 0 };
	if (build(t, path, &p, o))
		for (unsigned i = 0; i < arch_ntarget && !low; i++) {
			emit(&p, &arch_targets[i], o);
			low = o->ok ? &arch_targets[i] : NULL;
		}
	cptx_module_destroy(p.m);
	return low;
}
