/* SPDX-License-Identifier: MIT */
/* The memory layout of items: operands packed into words, see ir_words. */
#include "ir/ir.h"

static inline cptx_val value_of(uint32_t word, uint16_t owner)
{
	uint32_t number = word >> WORD_NUMBER;
	cptx_val v = { .kind = word & ((1u << WORD_KIND) - 1), .count = 1, .owner = owner, .id = number };

	v.type = word >> WORD_KIND & ((1u << WORD_TYPE) - 1);
	if (v.kind == CPTX_VAL_INT)
		v.owner = 0, v.i = ir_word_int(word);
	else if (v.kind == CPTX_VAL_SREG || v.kind == CPTX_VAL_SINK)
		v.owner = 0;
	else if (v.kind == CPTX_VAL_NONE)
		v.owner = 0, v.count = 0;
	return v;
}

cptx_val ir_unpack(const uint32_t *words, unsigned i, uint16_t owner)
{
	if (ir_word_is_whole(words[i]))
		return *ir_whole(words, i);
	return value_of(words[i], owner);
}

/* The word of a value that is neither register nor integer; WORD_WHOLE if no word can hold all of it. */
static uint32_t pack_other(const cptx_val *v, uint16_t owner)
{
	uint32_t word = v->kind | (uint32_t)v->type << WORD_KIND | v->id << WORD_NUMBER;

	switch ((enum cptx_val_kind)v->kind) {
	case CPTX_VAL_SREG:
	case CPTX_VAL_LABEL:
	case CPTX_VAL_TARGETS:
	case CPTX_VAL_PROTO:
	case CPTX_VAL_SINK: break;
	default: return WORD_WHOLE;
	}
	cptx_val back = value_of(word, owner);
	return memcmp(&back, v, sizeof back) ? WORD_WHOLE : word;
}

/* The word of a value that is not NONE; WORD_WHOLE if no word can hold all of it. */
static inline uint32_t word_of(const cptx_val *v, uint16_t owner)
{
	const uint64_t reg = arch_value_front((cptx_val){ .kind = CPTX_VAL_REG, .count = 1, .owner = owner });
	const uint64_t integer = arch_value_front((cptx_val){ .kind = CPTX_VAL_INT, .count = 1 });
	const uint64_t type = arch_value_front((cptx_val){ .type = (1u << WORD_TYPE) - 1 });
	uint64_t mine = arch_value_front(*v) & ~type;
	uint32_t typed = v->kind | (uint32_t)v->type << WORD_KIND;

	if (mine == reg && !v->offset && v->id < WORD_NUMBERS) /* the most frequent case */
		return typed | v->id << WORD_NUMBER;
	if (mine == integer && v->i >= -(int64_t)WORD_ZERO && v->i < (int64_t)WORD_ZERO)
		return typed | ((uint32_t)v->i + WORD_ZERO) << WORD_NUMBER;
	return v->kind == CPTX_VAL_REG ? WORD_WHOLE : pack_other(v, owner);
}

uint32_t ir_word(const cptx_val *v, uint16_t owner) { return v->kind == CPTX_VAL_NONE ? 0 : word_of(v, owner); }

size_t ir_put_value(uint32_t *words, unsigned i, const cptx_val *v, uint16_t owner, size_t size)
{
	words[i] = v->kind == CPTX_VAL_NONE ? 0 : word_of(v, owner);
	if (!ir_word_is_whole(words[i]))
		return size;
	words[i] |= (uint32_t)v->kind << WORD_KIND | (uint32_t)(size / 8) << 2 * WORD_KIND;
	memcpy((char *)words + size, v, sizeof *v);
	return size + sizeof *v;
}

/* Writes the words, modifiers and whole values that stand behind an item, at most ir_bytes_of(noperand, nmod, noperand)
 * bytes; returns how many. */
static inline size_t fill(uint32_t *words, uint16_t owner, const cptx_val *operand, unsigned noperand, const uint16_t *mod,
                          unsigned nmod)
{
	size_t size = ir_bytes_of(noperand, nmod, 0);

	if (nmod)
		ir_put_mods((uint16_t *)(words + noperand), mod, nmod);
	for (unsigned i = 0; i < noperand; i++) {
		const cptx_val *v = &operand[i];
		size = ir_put_value(words, i, v, owner, size);
	}
	return size;
}

ir_item *ir_append(cptx_kernel *k, cptx_site at, enum ir_item_kind kind, const cptx_val *operand, unsigned noperand,
                   const uint16_t *mod, unsigned nmod)
{
	if (!k->has_body) {
		ir_error(k, CPTX_E_STATE, at, "it is only declared; cptx_func_define opens its body");
		return NULL;
	}
	ir_item *it = ir_item_room(k, at, noperand, nmod, true);
	if (!it) {
		ir_no_memory(k->m, at);
		return NULL;
	}
	it->kind = (uint16_t)kind & 15;
	arena_end(&k->m->a, (char *)(it + 1) + fill((uint32_t *)(it + 1), k->owner, operand, noperand, mod, nmod));
	ir_link(k, it);
	return it;
}

ir_item *ir_append_like(cptx_kernel *k, cptx_site at, const ir_item *like, const uint32_t *words, const uint16_t *mod)
{
	uint16_t file = ir_file_number(k->m, at.file); /* may allocate */
	unsigned noperand = like->noperand, nmod = like->nmod;
	size_t size = ir_bytes_of(noperand, nmod, 0);
	ir_item *it = ARENA_SIZED(&k->m->a, ir_item, sizeof *it + size + ITEM_BEHIND);

	if (!it) {
		ir_no_memory(k->m, at);
		return NULL;
	}
	*it = *like;
	it->owner = k->owner;
	it->file = file;
	it->line = at.line;
	uint32_t *to = (uint32_t *)(it + 1);
	for (unsigned i = 0; i < noperand; i++)
		to[i] = words[i];
	ir_put_mods((uint16_t *)(to + noperand), mod, nmod);
	arena_end(&k->m->a, (char *)to + size);
	ir_link(k, it);
	k->ninsn++;
	return it;
}

bool ir_refill(cptx_kernel *k, ir_item *it, const cptx_val *operand, unsigned noperand, const uint16_t *mod, unsigned nmod)
{
	uint64_t
		made[(ARCH_OPERANDS * (sizeof(uint32_t) + sizeof(cptx_val)) + ARCH_GROUPS * sizeof(uint16_t) + ITEM_BEHIND) / 8];
	const uint32_t *old = ir_words(it);
	void *words = (void *)(uintptr_t)old;
	unsigned nwhole = 0;

	for (unsigned i = 0; i < it->noperand; i++)
		nwhole += ir_word_is_whole(old[i]);
	size_t size = fill((uint32_t *)(void *)made, k->owner, operand, noperand, mod, nmod);
	if (size > ir_bytes_of(it->noperand, it->shaped ? 0 : it->nmod,
	                       nwhole)) { /* at least 8 bytes, since the item had operands or modifiers */
		words = arena_alloc(&k->m->a, size + ITEM_BEHIND);
		if (!words)
			return ir_no_memory(k->m, NOWHERE);
		memcpy(it + 1, &words, sizeof words);
		it->apart = 1;
	}
	memcpy(words, made, size);
	if (it->shaped)
		it->shaped = 0, it->src = it->src_len = 0;
	it->noperand = noperand & 15;
	it->nmod = nmod & 31;
	return true;
}

void ir_unlink(cptx_kernel *k, ir_item *it)
{
	if (it->prev)
		it->prev->next = it->next;
	else
		k->first = it->next;
	if (it->next)
		it->next->prev = it->prev;
	else
		k->last = it->prev;
	if (k->last_var == it)
		k->last_var = it->prev && it->prev->kind == ITEM_VAR ? it->prev : NULL;
	if (k->cursor == it)
		k->cursor = it->next;
}

bool ir_relabel(cptx_kernel *k, const uint32_t *as)
{
	cptx_val v[ARCH_OPERANDS];

	for (ir_item *it = k->first; it; it = it->next) {
		bool other = false;
		if (it->kind != ITEM_INSN || !ir_has_kind(it, 1u << CPTX_VAL_LABEL | 1u << CPTX_VAL_TARGETS | 1u << CPTX_VAL_PROTO))
			continue;
		ir_operands(k, it, v);
		for (unsigned i = 0; i < it->noperand; i++) {
			if (!ir_is_label(&v[i]) || as[v[i].id] == v[i].id)
				continue;
			v[i].id = as[v[i].id];
			other = true;
		}
		if (other && !ir_refill(k, it, v, it->noperand, ir_mods(it), it->nmod))
			return false;
	}
	for (size_t i = 0; i < k->nvec; i++)
		if (ir_is_label(&k->vec[i]))
			k->vec[i].id = as[k->vec[i].id];
	return true;
}
