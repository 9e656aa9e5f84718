/* SPDX-License-Identifier: MIT */
/* The optimizing pass (cptx/optimize.h): one walk over each body from the front, in which operands are replaced and values
 * found again, and one from the back, which removes what is dead. */
#include "base/options.h"
#include "ir/optimize.h"

/* ---- what holds here ---- */

/* Forgets what is written behind place `at`, and does not dominate what comes now. */
static void forget(optimizer *o, uint32_t at)
{
	while (o->nfact && o->fact[o->nfact - 1].at > at) {
		const opt_fact *f = &o->fact[--o->nfact];
		opt_reg *r = &o->reg[f->reg];
		r->here = r->is_number = false;
		r->same_as = r->base = 0;
		if (f->bucket != IR_NONE)
			o->list[f->bucket] = f->prev;
	}
}

static void begin_label(optimizer *o, uint32_t id, uint32_t at)
{
	const opt_label *l = &o->label[id];

	if (o->irregular)
		forget(o, 0);
	else if (l->first < at)
		forget(o, l->first);
}

/* Whether operand i is one register, in a word. */
static bool is_register(const ir_item *it, unsigned i)
{
	return i < it->noperand && ir_word_is(ir_words(it)[i], CPTX_VAL_REG);
}

static bool is_number(const optimizer *o, const ir_item *it, unsigned i, int64_t *number)
{
	cptx_val v = ir_operand(o->k, it, i);

	*number = v.kind == CPTX_VAL_REG ? o->reg[v.id].number : v.i;
	return v.kind == CPTX_VAL_INT || (is_register(it, i) && o->reg[v.id].is_number);
}

/* The type of operand i: of an integer, or bits; 0: it has another. */
static unsigned integer_type(const ir_item *it, unsigned i)
{
	const arch_operand *a = &arch_operands[arch_forms[it->form].operand + i];
	unsigned type = a->type ? a->type : a->tgroup != ARCH_NO ? ir_mods(it)[a->tgroup] : 0;

	return type && type < arch_ntype && arch_is_integer(type) && arch_types[type].bits >= 16 &&
	               arch_types[type].bits <= 64 && !(a->flags & OPERAND_DOUBLE) && a->count == 1 && a->cgroup == ARCH_NO
	           ? type
	           : 0;
}

/* A number as a type holds it. */
static int64_t cut_to(unsigned type, uint64_t v)
{
	unsigned spare = 64 - arch_types[type].bits;

	return arch_types[type].cls == 'S' ? (int64_t)(v << spare) >> spare : (int64_t)(v << spare >> spare);
}

/* ---- operands ---- */

/* Reads registers in the place of others that are the same. */
static void read_same(optimizer *o, ir_item *it)
{
	uint32_t *words = (uint32_t *)(uintptr_t)ir_words(it);
	bool changed = false;

	for (unsigned i = 0; i < it->noperand; i++) {
		if ((!ir_word_is(words[i], CPTX_VAL_REG) && ir_word_kind(words[i]) != CPTX_VAL_REG) ||
		    arch_operands[arch_forms[it->form].operand + i].flags & OPERAND_DEST)
			continue;
		cptx_val v = ir_operand(o->k, it, i);
		uint32_t same = v.count == 1 ? o->reg[v.id].same_as : 0;
		if (!same || same > WORD_NUMBERS)
			continue;
		if (ir_word_is_whole(words[i]))
			((cptx_val *)(uintptr_t)ir_whole(words, i))->id = same - 1;
		else
			words[i] = (words[i] & ((1u << WORD_NUMBER) - 1)) | (same - 1) << WORD_NUMBER;
		changed = true;
	}
	if (it->guard && o->reg[it->guard - 1].same_as) {
		it->guard = o->reg[it->guard - 1].same_as & IR_MOST_REGS_MASK;
		changed = true;
	}
	if (changed && o->k->m->parsed)
		ir_mark(o->k, it);
}

/* [a + n], a being b + m: [b + (m + n)]. */
static bool fold_address(optimizer *o, ir_item *it)
{
	const arch_operand *operand = &arch_operands[arch_forms[it->form].operand];
	cptx_val v[ARCH_OPERANDS];
	size_t before = o->done.addresses;

	ir_operands(o->k, it, v);
	for (unsigned i = 0; i < it->noperand; i++) {
		if (operand[i].kind != OPERAND_ADDR || operand[i].address != ADDRESS_MEMORY || v[i].kind != CPTX_VAL_REG ||
		    v[i].count != 1 || v[i].space || v[i].negated || !o->reg[v[i].id].base)
			continue;
		int64_t m = o->reg[v[i].id].number;
		if (m + v[i].offset < INT32_MIN || m + v[i].offset > INT32_MAX)
			continue;
		v[i].id = o->reg[v[i].id].base - 1;
		v[i].offset = (int32_t)(m + v[i].offset);
		o->done.addresses++;
	}
	if (o->done.addresses == before)
		return true;
	if (o->k->m->parsed)
		ir_mark(o->k, it);
	return ir_refill(o->k, it, v, it->noperand, ir_mods(it), it->nmod);
}

/* Writes integer operands that are constants as such, where the form takes them. */
static bool write_numbers(optimizer *o, ir_item *it)
{
	const arch_operand *operand = &arch_operands[arch_forms[it->form].operand];
	cptx_val v[ARCH_OPERANDS];
	arch_match m;

	for (unsigned i = 0; i < it->noperand; i++) {
		if (operand[i].flags & (OPERAND_DEST | OPERAND_REG_ONLY) || operand[i].kind != OPERAND_REG || !is_register(it, i) ||
		    !o->reg[ir_word_reg(ir_words(it)[i])].is_number || !integer_type(it, i))
			continue;
		ir_operands(o->k, it, v);
		v[i] = cptx_imm(cut_to(integer_type(it, i), (uint64_t)o->reg[v[i].id].number));
		if (!ir_match_as(o->k, it, v, &m))
			continue;
		if (!ir_become(o->k, it, &m))
			return false;
		o->done.constants++;
	}
	return true;
}

/* ---- arithmetic on constants ---- */

/* What an operation makes of integers of a type, each in the range of that; false: it is none of those that are known. */
static bool compute(unsigned op, unsigned type, const int64_t *v, uint64_t *to)
{
	const uint64_t a = (uint64_t)v[0], b = (uint64_t)v[1], c = (uint64_t)v[2];
	const bool is_signed = arch_types[type].cls == 'S', less = is_signed ? v[0] < v[1] : a < b;
	const uint64_t by = b & UINT32_MAX;

	switch (op) {
	case CPTX_OP_ADD: *to = a + b; break;
	case CPTX_OP_SUB: *to = a - b; break;
	case CPTX_OP_MUL: *to = a * b; break;
	case CPTX_OP_MUL_WIDE: *to = a * b; break;
	case CPTX_OP_MAD: *to = a * b + c; break;
	case CPTX_OP_AND: *to = a & b; break;
	case CPTX_OP_OR: *to = a | b; break;
	case CPTX_OP_XOR: *to = a ^ b; break;
	case CPTX_OP_NOT: *to = ~a; break;
	case CPTX_OP_MIN: *to = less ? a : b; break;
	case CPTX_OP_MAX: *to = less ? b : a; break;
	case CPTX_OP_SHL: *to = by < arch_types[type].bits ? a << by : 0; break;
	case CPTX_OP_SHR: *to = is_signed ? (uint64_t)(v[0] >> MIN(by, 63u)) : by < 64 ? a >> by : 0; break;
	default: return false;
	}
	return true;
}

/* Whether an instruction has no modifiers but its type and .lo. */
static bool is_plain(const ir_item *it)
{
	const arch_form *f = &arch_forms[it->form];

	for (unsigned g = 0; g < f->ngroup; g++)
		if (ir_mods(it)[g] && !arch_groups[f->group + g].is_type && ir_mods(it)[g] != CPTX_LO)
			return false;
	return !strstr(f->text, ".sat") && !strstr(f->text, ".relu");
}

/* The result of an instruction all of whose operands are integer constants; false: it is none. */
static bool result_of(const optimizer *o, const ir_item *it, uint64_t *result)
{
	int64_t v[3] = { 0 };
	unsigned type = it->noperand > 1 ? integer_type(it, 1) : 0;

	if (!type || it->noperand > 4)
		return false;
	for (unsigned i = 1; i < it->noperand; i++) {
		unsigned own = integer_type(it, i);
		if (!own || !is_number(o, it, i, &v[i - 1]))
			return false;
		v[i - 1] = cut_to(own, (uint64_t)v[i - 1]);
	}
	return is_plain(it) && compute(arch_forms[it->form].op, type, v, result);
}

/* Makes an instruction a mov of its result, where that is known. */
static bool fold(optimizer *o, ir_item *it)
{
	cptx_val vals[3 + ARCH_SLOTS] = { 0 };
	uint16_t mods[ARCH_FIELDS] = { 0 };
	uint64_t result;
	arch_match m;

	if (!result_of(o, it, &result))
		return true;
	vals[0] = ir_operand(o->k, it, 0);
	unsigned type = arch_bits_of(vals[0].type);
	vals[3] = cptx_imm(cut_to(type, result));
	for (unsigned i = 0; i < arch_ops[CPTX_OP_MOV].nfield; i++)
		if (!strcmp(arch_ops[CPTX_OP_MOV].field[i], "type"))
			mods[i] = (uint16_t)type;
	if (arch_forms[it->form].op == CPTX_OP_MOV || !arch_match_op(&o->k->m->memo, CPTX_OP_MOV, vals, mods, o->k->vec, &m) ||
	    m.dest_type)
		return true;
	o->done.constants++;
	return ir_become(o->k, it, &m) != NULL;
}

/* ---- values ---- */

/* Whether register `by` is declared wherever `reg` is, once both were. */
static bool is_declared_as_long(const optimizer *o, uint32_t by, uint32_t reg)
{
	return o->until[ir_decl_of(o->k, by)] >= o->until[ir_decl_of(o->k, reg)];
}

/* Whether register a can be read in the place of b. */
static bool is_alike(const optimizer *o, uint32_t a, uint32_t b)
{
	const cptx_kernel *k = o->k;

	return k->reg[a].made == k->reg[b].made && is_declared_as_long(o, a, b) &&
	       (k->reg[a].made ? ir_decl_of(k, a) == ir_decl_of(k, b)
	                       : k->decl[ir_decl_of(k, a)].type == k->decl[ir_decl_of(k, b)].type);
}

/* Whether all that a value is computed from is the same wherever it dominates. */
static bool is_steady(const optimizer *o, const ir_item *it)
{
	for (unsigned i = 1; i < it->noperand; i++) {
		cptx_val v = ir_operand(o->k, it, i);
		if (v.kind == CPTX_VAL_NONE)
			continue;
		bool steady = v.kind == CPTX_VAL_REG ? v.count == 1 && o->reg[v.id].here
		                                     : v.kind == CPTX_VAL_INT || v.kind == CPTX_VAL_FLOAT ||
		                                           v.kind == CPTX_VAL_SYM || (v.kind == CPTX_VAL_SREG && opt_is_fixed(v.id));
		if (!steady || arch_operands[arch_forms[it->form].operand + i].flags & OPERAND_DEST)
			return false;
	}
	return true;
}

static uint64_t mixed(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 29;
}

static uint32_t bucket_of(const optimizer *o, const ir_item *it)
{
	uint64_t hash = it->form;

	for (unsigned i = 0; i < it->nmod; i++)
		hash = mixed(hash, ir_mods(it)[i]);
	for (unsigned i = 1; i < it->noperand; i++) {
		cptx_val v = ir_operand(o->k, it, i);
		hash = mixed(mixed(hash, arch_value_front(v)), (uint64_t)v.i);
	}
	return (uint32_t)(hash >> 32) & (o->nlist - 1);
}

static bool is_same_value(const optimizer *o, const ir_item *a, const ir_item *b)
{
	if (a->form != b->form || a->nmod != b->nmod || a->noperand != b->noperand ||
	    memcmp(ir_mods(a), ir_mods(b), a->nmod * sizeof(uint16_t)) != 0)
		return false;
	for (unsigned i = 1; i < a->noperand; i++) {
		cptx_val v = ir_operand(o->k, a, i), w = ir_operand(o->k, b, i);
		if (memcmp(&v, &w, sizeof v))
			return false;
	}
	return true;
}

/* Notes that register `reg` may be replaced by `by` from here on. */
static void replace(optimizer *o, uint32_t reg, uint32_t by, size_t *counted)
{
	o->reg[reg].same_as = by + 1;
	++*counted;
}

/* Finds an earlier computation of the value, or enters this one as fact `f`. */
static void find_common(optimizer *o, ir_item *it, opt_fact *f)
{
	f->bucket = bucket_of(o, it);
	for (uint32_t n = o->list[f->bucket]; n; n = o->fact[n - 1].prev) {
		const opt_fact *had = &o->fact[n - 1];
		if (!is_same_value(o, had->it, it) || !is_alike(o, had->reg, f->reg))
			continue;
		replace(o, f->reg, had->reg, &o->done.common);
		f->bucket = IR_NONE;
		return;
	}
	f->prev = o->list[f->bucket];
	o->list[f->bucket] = o->nfact + 1;
}

/* Notes that a register is an address and a number behind another one, which holds now what it holds wherever this one does.
 */
static void note_sum(optimizer *o, const ir_item *add, uint32_t reg)
{
	unsigned type = integer_type(add, 0);
	int64_t number;

	if (arch_forms[add->form].op != CPTX_OP_ADD || !type || arch_types[type].bits != 64 || !is_register(add, 1) ||
	    !is_number(o, add, 2, &number) || number < INT32_MIN || number > INT32_MAX)
		return;
	uint32_t base = ir_word_reg(ir_words(add)[1]);
	if (is_declared_as_long(o, base, reg))
		o->reg[reg].base = base + 1, o->reg[reg].number = number;
}

/* Notes the value that an instruction computes. */
static void note_value(optimizer *o, ir_item *it, uint32_t at)
{
	uint32_t reg = ir_word_reg(ir_words(it)[0]);
	opt_reg *r = &o->reg[reg];
	opt_fact f = { it, reg, at, IR_NONE, 0 };
	bool moves = arch_forms[it->form].op == CPTX_OP_MOV && it->noperand == 2;
	bool pure = opt_is_pure(o, it) && is_steady(o, it);

	if (pure && moves && is_register(it, 1)) {
		uint32_t from = ir_word_reg(ir_words(it)[1]);
		r->is_number = o->reg[from].is_number, r->number = o->reg[from].number;
		if (!o->opt.keep_copies && is_alike(o, from, reg))
			replace(o, reg, from, &o->done.copies);
	} else if (pure && moves && integer_type(it, 1) && ir_operand(o->k, it, 1).kind == CPTX_VAL_INT) {
		r->is_number = !o->opt.keep_constants;
		r->number = ir_operand(o->k, it, 1).i;
	}
	if (pure && !r->is_number)
		note_sum(o, it, reg);
	if (pure && !r->same_as && !o->opt.keep_common)
		find_common(o, it, &f);
	r->here = true;
	o->fact[o->nfact++] = f;
}

/* Whether operand 0 is a register that this instruction writes for good. */
static bool makes_value(const optimizer *o, const ir_item *it)
{
	const opt_reg *r = is_register(it, 0) ? &o->reg[ir_word_reg(ir_words(it)[0])] : NULL;

	return r && opt_is_written(it, 0) && r->writes == 1 && r->def == it;
}

static bool look_at(optimizer *o, ir_item *it, uint32_t at)
{
	read_same(o, it);
	if (!o->opt.keep_addresses && !fold_address(o, it))
		return false;
	if (!o->opt.keep_constants && opt_is_pure(o, it)) {
		if (makes_value(o, it) && !fold(o, it))
			return false;
		if (arch_forms[it->form].op != CPTX_OP_MOV && !write_numbers(o, it))
			return false;
	}
	if (makes_value(o, it))
		note_value(o, it, at);
	return true;
}

static bool walk(optimizer *o)
{
	uint32_t at = 1; /* so that there is a place in front of all */

	for (ir_item *it = o->k->first; it; it = it->next, at++) {
		if (it->kind == ITEM_LABEL)
			begin_label(o, ir_operand(o->k, it, 0).id, at - 1);
		if (it->kind == ITEM_INSN && !look_at(o, it, at))
			return false;
	}
	return true;
}

/* ---- bodies ---- */

static bool make_room(optimizer *o)
{
	const cptx_allocator *hook = &o->k->m->a.hook;
	size_t n = o->k->ninsn + 1;

	for (o->nlist = 16; o->nlist < n && o->nlist < 1u << 30;)
		o->nlist *= 2;
	o->reg = HEAP_ARRAY(hook, opt_reg, NULL, o->k->nreg + 1);
	o->label = HEAP_ARRAY(hook, opt_label, NULL, o->k->nlabel + 1);
	o->until = HEAP_ARRAY(hook, uint32_t, NULL, o->k->ndecl + 1);
	o->open = HEAP_ARRAY(hook, uint32_t, NULL, o->k->ndecl + 1);
	o->loop = HEAP_ARRAY(hook, uint32_t, NULL, o->k->nlabel + 1);
	o->fact = HEAP_ARRAY(hook, opt_fact, NULL, n);
	o->list = HEAP_ARRAY(hook, uint32_t, NULL, o->nlist);
	if (!o->reg || !o->label || !o->until || !o->open || !o->loop || !o->fact || !o->list)
		return ir_no_memory(o->k->m, NOWHERE);
	memset(o->reg, 0, (o->k->nreg + 1) * sizeof *o->reg);
	memset(o->list, 0, o->nlist * sizeof *o->list);
	return true;
}

static void free_room(const optimizer *o)
{
	void *all[] = { o->reg, o->label, o->until, o->open, o->loop, o->fact, o->list };

	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		if (all[i])
			heap_realloc(&o->k->m->a.hook, all[i], 0);
}

static bool optimize_body(cptx_kernel *k, const cptx_optimize_opt *opt, cptx_optimized *done)
{
	optimizer o = { .k = k, .opt = *opt, .done = *done };

	if (k->block)
		return ir_error(k, CPTX_E_STATE, k->block->at, "%s is open; optimize when it is closed", ir_block_name(k->block));
	bool ok = make_room(&o) && opt_survey(&o) && walk(&o) && opt_remove_dead(&o);
	free_room(&o);
	*done = o.done;
	return ok;
}

bool cptx_optimize(cptx_module *m, const cptx_optimize_opt *opt, cptx_optimized *done, cptx_error *err)
{
	cptx_optimized sums = { 0 };
	cptx_optimize_opt o;

	if (!IS_GIVEN(m, "module", NOWHERE, err) || !OPTIONS_READ(cptx_optimize_opt, &o, opt, NOWHERE, err))
		return false;
	if (m->frozen)
		error_set(&m->err, CPTX_E_STATE, NOWHERE,
		          "the module is frozen; optimize it before it is printed, checked or loaded");
	for (cptx_kernel *k = m->first; k && m->err.code == CPTX_OK; k = k->next)
		optimize_body(k, &o, &sums);
	if (done)
		*done = sums;
	if (m->err.code == CPTX_OK)
		return true;
	if (err)
		*err = m->err;
	return false;
}
