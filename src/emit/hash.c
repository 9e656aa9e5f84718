/* SPDX-License-Identifier: MIT */
/*
 * Hashing a module: it is printed into a small buffer, which is hashed and emptied from time to time.  What the .version and
 * .target lines say is hashed last, when it is known.  Registers that are to be told apart by their first use get names by
 * that, in front of each line that has new ones.
 */
#include "emit/emit.h"

/* ---- text ---- */

enum { BLOCK = 32, AT_LEAST = 4096 /* bytes of text that are hashed at once */ };

static inline uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
	x = (x ^ x >> 29) * 0x9e3779b97f4a7c15u;
	return x ^ x >> 32;
}

static inline uint64_t step(uint64_t lane, const char *p, uint64_t factor)
{
	uint64_t word;

	memcpy(&word, p, sizeof word);
	return mix(lane ^ word) + factor;
}

/* Four lanes take eight bytes each of every block: none waits for another. */
static void hash_blocks(emit_hash_state *h, const char *p, size_t n)
{
	uint64_t a = h->lane[0], b = h->lane[1], c = h->lane[2], d = h->lane[3];

	for (; n >= BLOCK; n -= BLOCK, p += BLOCK) {
		a = step(a, p, 0x9e3779b97f4a7c15u);
		b = step(b, p + 8, 0xa0761d6478bd642fu);
		c = step(c, p + 16, 0xe7037ed1a0b428dbu);
		d = step(d, p + 24, 0x8ebc6af09c88c6e3u);
	}
	h->lane[0] = a, h->lane[1] = b, h->lane[2] = c, h->lane[3] = d;
}

void emit_hash_begin(emit_hash_state *h, bool any_registers)
{
	*h = (emit_hash_state){ .any_registers = any_registers, .lane = { 1, 2, 3, 4 } };
}

/* Whole blocks are hashed and the rest stays, so that it makes no difference when this is called. */
void emit_hash_text(emitter *e)
{
	buf *b = &e->out->text;
	size_t whole = b->n / BLOCK * BLOCK;

	if (b->n < AT_LEAST || b->failed)
		return;
	hash_blocks(e->hash, b->p, whole);
	e->hash->size += whole;
	memmove(b->p, b->p + whole, b->n - whole);
	b->n -= whole;
	e->out->map.n = 0; /* nobody asks where lines come from */
}

void emit_hash_end(emitter *e, bool adds_texmode, cptx_hash *to)
{
	emit_hash_state *h = e->hash;
	buf *b = &e->out->text;
	char end[BLOCK] = { 0 };

	buf_printf(b, ".version %u .target %s%s%s", e->out->version, e->out->target->name, e->m->target_more,
	           adds_texmode ? ", texmode_independent" : "");
	if (b->failed)
		return;
	h->size += b->n;
	hash_blocks(h, b->p, b->n);
	memcpy(end, b->p + b->n / BLOCK * BLOCK, b->n % BLOCK);
	hash_blocks(h, end, BLOCK);
	for (unsigned i = 0; i < 2; i++)
		to->word[i] = mix(h->lane[i] + mix(h->lane[i + 2] + mix(h->lane[1 - i] + mix(h->lane[3 - i] + h->size + i))));
}

/* ---- registers ---- */

static reg_name spelled(unsigned type, uint32_t number)
{
	const char *s = arch_mods[type].name;
	size_t len = strlen(s);
	char text[64] = "%";
	reg_name name;

	memcpy(text + 1, s, len);
	text[1 + len] = '_';
	name.len = (uint8_t)(text_u64(text + 2 + len, number) - text);
	memcpy(name.text, text, NAME_MOST);
	return name;
}

/* Names a register by its type, and its number among those of its type that were named in the body so far. */
void emit_hash_name(emitter *e, uint32_t id)
{
	unsigned type = e->k->decl[ir_decl_of(e->k, id)].type;
	uint32_t number = e->hash->count[type]++;
	reg_name *last = &e->hash->last[type];

	if (number % 10) /* the last name's last digit was below 9 */
		last->text[last->len - 1]++;
	else
		*last = spelled(type, number);
	e->out->names[id] = *last;
}

static bool name_value(const cptx_kernel *k, const cptx_val *v, void *user)
{
	(void)k;
	for (uint32_t i = 0; v->kind == CPTX_VAL_REG && i < v->count; i++)
		emit_hash_use((emitter *)user, v->id + i);
	return false;
}

void emit_hash_item(emitter *e, const ir_item *it)
{
	if (it->kind == ITEM_INSN)
		ir_any_value(e->k, it, name_value, e);
}

void emit_hash_registers(emitter *e)
{
	const cptx_kernel *k = e->k;

	memset(e->hash->count, 0, sizeof e->hash->count);
	for (size_t i = 0; i < k->nreg; i++)
		e->out->names[i].len = 0;
	for (size_t i = 0; i < k->nresult; i++) /* the head says "_" for registers, in this order */
		if (k->result[i].sym == IR_NONE)
			emit_hash_use(e, k->result[i].reg);
	for (size_t i = 0; i < k->narg; i++)
		if (k->arg[i].sym == IR_NONE)
			emit_hash_use(e, k->arg[i].reg);
}
