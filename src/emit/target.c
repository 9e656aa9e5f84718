/* SPDX-License-Identifier: MIT */
/* Checks whether the target and the .version have an instruction with its modifiers and operands. */
#include "emit/emit.h"

#include <stdio.h>

bool emit_error(emitter *e, const ir_item *it, enum cptx_code code, const char *format, ...)
{
	cptx_site at = it && it->file ? (cptx_site){ e->m->file[it->file - 1], it->line } : NOWHERE;
	char text[CPTX_ERROR_TEXT - CPTX_ERROR_FILE - 32];
	va_list ap;

	va_start(ap, format);
	text_message(text, sizeof text, format, ap);
	va_end(ap);
	if (!e->m->parsed || !it)
		return error_set(e->err, code, at, "%s %s: %s", e->k->is_func ? "function" : "kernel", e->k->name, text);
	const char *source = e->m->source;
	uint32_t column = it->src; /* without a text in memory src is the column itself */
	if (source)
		for (column = 1; column <= it->src && source[it->src - column] != '\n'; column++)
			;
	if (e->err->code != CPTX_OK)
		return false;
	*e->err = (cptx_error){ .code = code, .line = it->line, .column = column };
	snprintf(e->err->file, sizeof e->err->file, "%s", at.file ? at.file : "");
	snprintf(e->err->text, sizeof e->err->text, "%s:%u:%u: error: %s", e->err->file, (unsigned)it->line, (unsigned)column,
	         text);
	error_clean(e->err);
	return false;
}

/* Writes "was removed in PTX 6.4 for sm_70 and later" for an availability that ends, else the text for a missing one. */
static void put_missing(const emitter *e, unsigned avail, char text[80])
{
	const char *removed = strstr(arch_avail_text[avail], "removed "), *from = removed ? strstr(removed, ", ") : NULL;

	if (removed && arch_ends[avail][e->target])
		snprintf(text, 80, "was removed in %.*s%s%s%s", (int)strcspn(removed + 8, ","), removed + 8, from ? " for " : "",
		         from ? from + 2 : "", from ? " and later" : "");
	else
		snprintf(text, 80, "is not available on %s", e->out->target->name);
}

static bool lacks(emitter *e, const ir_item *it, const char *what, const char *why, unsigned avail, const char *instead)
{
	unsigned v = arch_avails[avail][e->target], end = arch_ends[avail][e->target];
	char missing[80];
	buf targets;

	put_missing(e, avail, missing);
	if (v && end && e->strict && e->strict >= end)
		return emit_error(e, it, CPTX_E_TARGET, "%s%s %s; the text says .version %u.%u", what, why, missing, e->strict / 10,
		                  e->strict % 10);
	if (v)
		return emit_error(e, it, CPTX_E_TARGET, "%s%s needs .version %u.%u on %s; the text says %u.%u", what, why, v / 10,
		                  v % 10, e->out->target->name, e->strict / 10, e->strict % 10);
	buf_init(&targets, &e->out->hook);
	arch_avail_targets(avail, &targets);
	buf_put(&targets, "", 1);
	emit_error(e, it, CPTX_E_TARGET, "%s %s%s; targets that have it: %s%s%s", what, missing, why,
	           targets.failed ? "(out of memory)" : targets.p, *instead ? ". Instead: " : "", instead);
	buf_free(&targets);
	return false;
}

/* Raises the .version as far as an availability of something in `it` needs, and notes the version where it ends. */
static bool need(emitter *e, unsigned avail, const ir_item *it)
{
	unsigned v = arch_avails[avail][e->target], end = arch_ends[avail][e->target];
	if (e->strict && (v > e->strict || (end && end <= e->strict)))
		return false;
	if (v > e->version)
		e->version = v;
	if (v && end && (!e->end || end < e->end)) {
		e->end = end;
		e->ends = it;
		e->ends_in = e->k;
		e->ends_avail = avail;
	}
	return v != 0;
}

static bool check_modifiers(emitter *e, const ir_item *it, const char *opcode)
{
	const arch_form *f = &arch_forms[it->form];
	const uint16_t *mods = ir_mods(it);
	char which[80];

	for (unsigned i = 0; i < f->ngroup; i++) {
		const arch_group *g = &arch_groups[f->group + i];
		for (unsigned a = 0; g->has_avail && mods[i] && a < g->nalt; a++) {
			const arch_alt *alt = &arch_alts[g->alt + a];
			if (alt->mod != mods[i] || !alt->avail || need(e, alt->avail, it))
				continue;
			snprintf(which, sizeof which, " (.%s)", arch_mods[mods[i]].name);
			return lacks(e, it, opcode, which, alt->avail, arch_ops[f->op].instead);
		}
	}
	return true;
}

/* ---- directives ---- */

bool emit_needs(emitter *e, enum arch_directive d)
{
	const arch_need *n = &arch_needs[d];
	const cptx_target *t = e->out->target;

	e->version = MAX(e->version, n->version);
	if (t->number >= n->number)
		return true;
	if (!e->k)
		return error_set(e->err, CPTX_E_TARGET, NOWHERE, "%s is not available on %s; it needs sm_%u or later", n->name,
		                 t->name, n->number);
	return error_set(e->err, CPTX_E_TARGET, e->k->at, "%s %s: %s is not available on %s; it needs sm_%u or later",
	                 e->k->is_func ? "function" : "kernel", e->k->name, n->name, t->name, n->number);
}

/* Checks the directives with a word of their own; the name of a pragma ends where its argument begins. */
static bool needs_of_words(emitter *e, const char *text)
{
	for (unsigned d = 0; d < ARCH_DIRECTIVES; d++) {
		const char *name = arch_needs[d].name;
		size_t n = strlen(name) - (name[strlen(name) - 1] == '"');
		if (*name == '.' && !strncmp(text, name, n) && !strchr("abcdefghijklmnopqrstuvwxyz_", text[n] ? text[n] : ' ') &&
		    !emit_needs(e, (enum arch_directive)d))
			return false;
	}
	return true;
}

/* What stands in a section: labels, differences of them, negative numbers; strings are none of these. */
static bool needs_of_section(emitter *e, const char *text)
{
	bool ok = true, string = false, number = false; /* number: what comes next is one */

	for (const char *p = text; *p && ok; p++) {
		string ^= *p == '"';
		if (string || *p == ' ' || *p == '\t' || *p == '\n')
			continue;
		if (*p == ':')
			ok = emit_needs(e, DIR_SECTION_LABEL);
		else if (*p == '-')
			ok = emit_needs(e, number ? DIR_SECTION_NEGATIVE : DIR_SECTION_DIFFERENCE);
		bool directive = *p == '.' && p[1] == 'b' && p[2] >= '1' && p[2] <= '8';
		number = directive || *p == ',';
		p += directive ? strspn(p + 2, "123468") + 1 : 0;
	}
	return ok;
}

bool emit_text_needs(emitter *e, const char *text)
{
	if (!strncmp(text, ".section", 8))
		return needs_of_section(e, text);
	if (!strncmp(text, ".loc", 4) && strstr(text, "function_name"))
		return emit_needs(e, DIR_INLINED);
	return needs_of_words(e, text);
}

/* ---- spellings ---- */

/* Whether the modifiers behind the first four are the same. */
static bool same_rest(const spelling *s, const uint16_t *mods, unsigned n)
{
	for (unsigned i = 4; i < n; i += 4)
		if (s->mods[i / 4] != arch_four_mods(mods + i, n - i))
			return false;
	return true;
}

static uint64_t hash_of(unsigned form, const uint16_t *mods, unsigned n)
{
	uint64_t hash = (form ^ arch_four_mods(mods, n) << 1) * 0x9e3779b97f4a7c15u;

	for (unsigned i = 4; i < n; i += 4)
		hash = (hash ^ arch_four_mods(mods + i, n - i)) * 0x9e3779b97f4a7c15u;
	return hash >> 40;
}

/* The place in the table for an item's spelling: where its number stands, or would stand.  The table is there. */
static inline uint16_t *place_of(emitter *e, const ir_item *it)
{
	const uint16_t *mods = ir_mods(it);
	unsigned n = it->nmod, form = it->form;
	uint64_t first = arch_four_mods(mods, n);

	for (size_t at = hash_of(form, mods, n);; at++) {
		uint16_t *place = &e->out->known_at[at & (e->out->places - 1)];
		if (!*place)
			return place;
		const spelling *s = &e->out->known[*place - 1];
		if (s->form == form && s->mods[0] == first && same_rest(s, mods, n))
			return place;
	}
}

static void note_operands(spelling *s, const ir_item *it)
{
	const arch_form *f = &arch_forms[it->form];
	const arch_operand *o = &arch_operands[f->operand];

	for (unsigned i = 0; i < f->noperand; i++, o++) {
		bool followed = o->behind != ARCH_NO && ir_mods(it)[o->behind];
		s->odd |= o->flags & (OPERAND_PIPE | OPERAND_INSIDE | OPERAND_MORE) || o->brace || followed;
		s->special |= (o->flags & OPERAND_SPECIAL) != 0;
		s->address |= (uint16_t)((o->kind == OPERAND_ADDR) << i);
	}
	s->asks = f->asks;
}

static void forget_spellings(emitter *e)
{
	memset(e->out->known_at, 0, e->out->places * sizeof *e->out->known_at);
	e->nknown = 0;
	e->out->spelled.n = 0;
}

/* Makes a table of twice the places for n spellings; false when memory is short. */
static bool more_places(cptx_ptx *out, unsigned n)
{
	size_t places = out->places ? 2 * out->places : SPELLING_PLACES;
	uint16_t *at = ARENA_ZEROED(&out->work, uint16_t, places);

	if (!at)
		return false;
	out->known_at = at;
	out->places = places;
	for (unsigned i = 0; i < n; i++) {
		uint16_t mods[ARCH_GROUPS];
		memcpy(mods, out->known[i].mods, sizeof mods);
		size_t place = hash_of(out->known[i].form, mods, arch_forms[out->known[i].form].ngroup);
		while (at[place & (places - 1)])
			place++;
		at[place & (places - 1)] = (uint16_t)(i + 1);
	}
	return true;
}
_Static_assert(!(SPELLING_PLACES & (SPELLING_PLACES - 1)) && SPELLINGS <= UINT16_MAX, "places are found by a mask");

static bool room_for_spelling(emitter *e, size_t n)
{
	if (e->out->spelled.n > SPELLINGS_TEXT || e->nknown == SPELLINGS)
		forget_spellings(e);
	if (2 * e->nknown >= e->out->places && !more_places(e->out, e->nknown))
		return false;
	return arena_push(&e->out->work, &e->out->known, e->nknown, &e->out->cap_known, sizeof *e->out->known) &&
	       buf_reserve(&e->out->spelled, n + 1 + OPCODE_USUAL);
}

static const spelling *keep_spelling(emitter *e, const ir_item *it, const char *opcode, size_t n)
{
	if (!room_for_spelling(e, n)) {
		error_set(e->err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
		return NULL;
	}
	uint16_t *place = place_of(e, it);
	spelling *s = &e->out->known[e->nknown++];
	*place = (uint16_t)e->nknown;
	*s = (spelling){ .form = it->form, .len = (uint16_t)(n + 1), .text = (uint32_t)e->out->spelled.n };
	for (unsigned i = 0; i < it->nmod; i += 4)
		s->mods[i / 4] = arch_four_mods(ir_mods(it) + i, it->nmod - i);
	note_operands(s, it);
	buf_put(&e->out->spelled, opcode, n);
	buf_put(&e->out->spelled, " ", 1);
	memset(e->out->spelled.p + e->out->spelled.n, 0, OPCODE_USUAL);
	return s;
}

/* Writes the spelling of an instruction, and a NUL, if the target has it; returns its length, or 0, with an error. */
static size_t spell(emitter *e, const ir_item *it, char opcode[OPCODE_MOST])
{
	const arch_form *f = &arch_forms[it->form];
	char *end = arch_put_opcode(opcode, it->form, ir_mods(it));

	*end = 0;
	if (!need(e, f->avail, it)) {
		lacks(e, it, opcode, "", f->avail, arch_ops[f->op].instead);
		return 0;
	}
	return check_modifiers(e, it, opcode) ? (size_t)(end - opcode) : 0;
}

static const spelling *new_spelling(emitter *e, const ir_item *it)
{
	char opcode[OPCODE_MOST];
	size_t n = spell(e, it, opcode);

	return n ? keep_spelling(e, it, opcode, n) : NULL;
}

bool emit_spell_once(emitter *e, const ir_item *it, spelling *s, char opcode[OPCODE_MOST + 1])
{
	size_t n = spell(e, it, opcode);

	memcpy(opcode + n, " ", 2);
	*s = (spelling){ .form = it->form, .len = (uint16_t)(n + 1) };
	note_operands(s, it);
	return n != 0;
}

unsigned emit_lasting_version(emitter *e, const ir_item *it)
{
	const unsigned version = e->version, end = e->end, ends_avail = e->ends_avail;
	const ir_item *ends = e->ends;
	const cptx_kernel *ends_in = e->ends_in;

	e->version = e->end = 0;
	bool there = need(e, arch_forms[it->form].avail, it) && check_modifiers(e, it, "");
	unsigned own = there && !e->end ? e->version : 0;
	e->version = version, e->end = end, e->ends_avail = ends_avail;
	e->ends = ends, e->ends_in = ends_in;
	return own;
}

const spelling *emit_spelling(emitter *e, const ir_item *it)
{
	if (!e->nknown && e->out->places)
		forget_spellings(e); /* those of an earlier print */
	unsigned number = e->nknown ? *place_of(e, it) : 0;
	return number ? &e->out->known[number - 1] : new_spelling(e, it);
}

/*
 * Of the C library one block that most modules are printed with, of which nothing costs but what is touched.  glibc, once a
 * block of this size was given back, keeps as much as twice the size of what is free: else each module of a thousand
 * instructions would be made in pages that the system has to clear first.
 */
void emit_work_for(cptx_ptx *out, size_t text)
{
	enum { LEAST = 1 << 20, MOST = 3 << 20 /* below what arena.c asks huge pages for */, OTHERS = 8 << 10 };

	out->work.least =
		out->hook.realloc_fn == heap_default.realloc_fn ? MIN(MAX(4 * text, (size_t)LEAST), (size_t)MOST) : (size_t)OTHERS;
	out->work.failed = false; /* memory that was short for an earlier text may be there again */
}

void emit_work_begin(cptx_ptx *out)
{
	arena_init(&out->work, &out->hook);
	emit_work_for(out, 0);
	out->names = NULL, out->names_cap = 0;
	memset(out->numbered, 0, sizeof out->numbered);
	memset(out->nnumbered, 0, sizeof out->nnumbered);
	memset(out->cap_numbered, 0, sizeof out->cap_numbered);
	memset(out->range, 0, sizeof out->range);
	out->plan = NULL, out->cap_plan = 0;
	out->plan_at = NULL, out->cap_plan_at = 0;
	out->shaped = NULL, out->cap_shaped = 0, out->nshaped = 0, out->shaped_module = NULL;
	out->known = NULL, out->cap_known = 0;
	out->known_at = NULL, out->places = 0;
}

void emit_done(cptx_ptx *out)
{
	buf_free(&out->spelled);
	arena_free(&out->work);
	emit_work_begin(out);
}

bool emit_still_there(emitter *e, unsigned version)
{
	char opcode[OPCODE_MOST], missing[80];

	if (!e->end || version < e->end)
		return true;
	e->k = e->ends_in;
	*arch_put_opcode(opcode, e->ends->form, ir_mods(e->ends)) = 0;
	put_missing(e, e->ends_avail, missing);
	return emit_error(e, e->ends, CPTX_E_TARGET, "%s %s; this module is printed for PTX %u.%u", opcode, missing,
	                  version / 10, version % 10);
}

/*
 * Whether the instruction agrees with the others of the module, or with the .target of text, on naming samplers.  A handle
 * in a register tells nothing in queries of samplers alone (txq).
 */
static bool check_texmode(emitter *e, const ir_item *it, const arch_operand *o, const cptx_val *v)
{
	bool beside = o->flags & OPERAND_OPTIONAL;
	unsigned mode = !v->kind ? TEXMODE_UNIFIED : beside || v->kind == CPTX_VAL_SYM ? TEXMODE_INDEPENDENT : TEXMODE_NONE;

	if (e->m->parsed && !e->texmode)
		e->texmode = strstr(e->m->target_more, "texmode_independent") ? TEXMODE_INDEPENDENT : TEXMODE_UNIFIED;
	if (mode && e->texmode && mode != e->texmode)
		return emit_error(e, it, CPTX_E_ARG, "%s %s; all of a module must do the same%s",
		                  arch_ops[arch_forms[it->form].op].name,
		                  mode == TEXMODE_UNIFIED ? "without a sampler, while the module names samplers"
		                                          : "with a sampler, while others of the module have none",
		                  e->m->parsed ? ", as its .target says (texmode_independent or not)" : "");
	if (mode)
		e->texmode = (unsigned char)mode;
	return true;
}

bool emit_has_special(emitter *e, const ir_item *it, uint32_t sreg) { return need(e, arch_sregs[sreg].avail, it); }

bool emit_check_asking(emitter *e, const ir_item *it)
{
	const arch_form *f = &arch_forms[it->form];

	for (unsigned i = 0; i < it->noperand; i++) {
		cptx_val v = ir_operand(e->k, it, i);
		if (v.kind == CPTX_VAL_SREG && !need(e, arch_sregs[v.id].avail, it))
			return lacks(e, it, arch_sregs[v.id].text, "", arch_sregs[v.id].avail, "");
	}
	for (unsigned i = 0; f->asks && i < it->noperand; i++) {
		const arch_operand *o = &arch_operands[f->operand + i];
		cptx_val v = ir_operand(e->k, it, i);
		if (o->avail && v.kind && !need(e, o->avail, it))
			return lacks(e, it, f->text, " with all its operands", o->avail, arch_ops[f->op].instead);
		if (o->space == CPTX_SAMPLERREF && !check_texmode(e, it, o, &v))
			return false;
	}
	return true;
}
