/* SPDX-License-Identifier: MIT */
/* Names of registers, made ready to be copied: most of the text is register names. */
#include "emit/emit.h"

/* Makes the names of a range: n from `number` on.  Those that differ in their last digit are copied from one text. */
static void name_range(reg_name *to, const char *prefix, size_t len, uint32_t number, uint32_t n)
{
	char text[NAME_MOST + 16] = { 0 }; /* room for a name of NAME_MOST bytes, or for one that turns out to be too long */

	memcpy(text, prefix, MIN(len, NAME_MOST));
	for (uint32_t i = 0; i < n;) {
		uint32_t last = number % 10;
		reg_name name = { .len = NAME_LONGER };
		size_t end = len < NAME_MOST ? (size_t)(text_u64(text + len, number) - text) : len + 1;
		bool fits = end <= NAME_MOST;
		if (fits) {
			memcpy(name.text, text, NAME_MOST);
			name.len = (uint8_t)end;
		}
		for (; last < 10 && i < n; i++, number++, last++) {
			to[i] = name;
			if (fits)
				to[i].text[end - 1] = (char)('0' + last);
		}
	}
}

/* Names n registers of a range, from number 0 on: copies names that are kept from body to body. */
static bool name_again(emitter *e, reg_name *to, const char *prefix, size_t len, uint32_t n)
{
	enum { MOST = 4096 };
	char key[8] = { 0 };

	if (len >= sizeof key || n > MOST)
		return false;
	memcpy(key, prefix, len);
	uint64_t hash;
	memcpy(&hash, key, sizeof hash);
	range_names *r = &e->out->range[hash * 0x9e3779b97f4a7c15u >> (64 - RANGES_LOG)];
	if (memcmp(r->prefix, key, sizeof key)) {
		memcpy(r->prefix, key, sizeof key);
		r->n = 0;
	}
	if (n > r->n) {
		if (!arena_reserve(&e->out->work, &r->name, r->n, &r->cap, sizeof *r->name, n))
			return false;
		name_range(r->name + r->n, prefix, len, r->n, n - r->n);
		r->n = n;
	}
	if (n)
		memcpy(to, r->name, n * sizeof *to);
	return true;
}

/* Makes the names of the made registers of a class up to `number`, which are kept from body to body. */
static bool number_names(emitter *e, unsigned cls, uint32_t number)
{
	cptx_ptx *out = e->out;
	const char *prefix = ir_classes[cls].prefix;
	uint32_t have = out->nnumbered[cls];

	if (have >= number)
		return true;
	if (!arena_reserve(&out->work, &out->numbered[cls], have, &out->cap_numbered[cls], sizeof *out->numbered[cls], number))
		return false;
	name_range(out->numbered[cls] + have, prefix, strlen(prefix), have + 1, number - have);
	out->nnumbered[cls] = number;
	return true;
}

/* Makes the name of a made register whose type was not met before in the body; a usual one is copied from then on. */
static void name_first(emitter *e, uint32_t id)
{
	ir_reg r = e->k->reg[id];
	unsigned cls = ir_class_of(r.type);
	const char *prefix = e->k->decl[cls].name;
	reg_name *name = &e->out->names[id];

	e->named[r.type] = e->numbered[cls];
	name_range(name, prefix, strlen(prefix), r.at, 1);
	e->long_names |= name->len == NAME_LONGER;
}

/* Makes the names of made registers from `id` on; returns how many there are one behind another. */
static inline uint32_t name_made(emitter *e, uint32_t id)
{
	const ir_reg *r = e->k->reg;
	reg_name *names = e->out->names;
	uint32_t i = id, n = (uint32_t)e->k->nreg;

	for (; i < n && r[i].made; i++) {
		const reg_name *numbered = e->named[r[i].type];
		if (numbered)
			names[i] = numbered[r[i].at - 1];
		else
			name_first(e, i);
	}
	return i - id;
}

/* Prepares the tables of names that made registers of the body get. */
static bool prepare_made(emitter *e)
{
	const cptx_kernel *k = e->k;

	for (unsigned cls = 0; cls < CLASS_COUNT && k->ndecl; cls++) {
		bool usual = k->decl[cls].name == ir_classes[cls].prefix;
		if (usual && k->decl[cls].count && !number_names(e, cls, k->decl[cls].count))
			return false;
		e->numbered[cls] = usual ? e->out->numbered[cls] : NULL;
	}
	memset(e->named, 0, sizeof e->named);
	return true;
}

/* Makes the names of the registers of a declaration in text. */
static void name_declared(emitter *e, const ir_decl *d)
{
	const cptx_kernel *k = e->k;

	if (d->form == DECL_RANGE && !d->count) /* without a name there may be no array of them */
		return;
	reg_name *names = e->out->names + d->first;
	size_t len = strlen(d->name);

	if (d->form == DECL_RANGE) {
		if (!name_again(e, names, d->name, len, d->count))
			name_range(names, d->name, len, 0, d->count);
		e->long_names |= names[d->count - 1].len == NAME_LONGER;
		return;
	}
	for (reg_name *name = names; name < names + d->count; name++) {
		bool fits = len + 2 <= NAME_MOST; /* 2: ".x" */
		name->len =
			fits ? (uint8_t)(ir_reg_name(k, name->text, (uint32_t)(name - e->out->names)) - name->text) : NAME_LONGER;
		e->long_names |= !fits;
	}
}

/* Makes the names of all registers: of the declarations of text, then of the made ones. */
static void name_all(emitter *e)
{
	const cptx_kernel *k = e->k;
	uint32_t declared = 0;

	for (size_t i = CLASS_COUNT; i < k->ndecl; i++) {
		name_declared(e, &k->decl[i]);
		declared += k->decl[i].count;
	}
	for (uint32_t i = 0, n; declared < k->nreg && i < k->nreg; i += n)
		n = k->reg[i].made ? name_made(e, i) : k->decl[k->reg[i].at].count;
}

static bool room_for_names(cptx_ptx *out, size_t n)
{
	return arena_reserve(&out->work, &out->names, 0, &out->names_cap, sizeof *out->names, n);
}

bool emit_name_registers(emitter *e)
{
	const cptx_kernel *k = e->k;

	if (!room_for_names(e->out, k->nreg) || !prepare_made(e))
		return error_set(e->err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
	size_t longest = 0;
	e->long_names = false;
	if (e->hash && e->hash->any_registers)
		emit_hash_registers(e);
	else
		name_all(e);
	for (size_t i = 0; e->long_names && i < k->ndecl; i++)
		longest = MAX(longest, strlen(k->decl[i].name) + 12);
	e->own_most = 48 + longest;
	return true;
}
