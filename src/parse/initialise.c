/* SPDX-License-Identifier: MIT */
/* Initial values of variables: numbers, addresses, braces. */
#include "parse/parser.h"

typedef struct filling {
	parser *p;
	ir_sym *s;
	buf bytes, relocs;
	uint64_t size; /* bytes of an element */
	uint32_t most; /* number of elements; UINT32_MAX while the first length is open */
} filling;

static bool room_for(filling *f, uint32_t i, const char *at)
{
	if (i >= f->most)
		return parse_error(f->p, at, CPTX_E_PARSE, "more initial values than '%s' has elements (%u)", f->s->name, f->most);
	while (f->bytes.n < (i + 1) * f->size && !f->bytes.failed)
		buf_put(&f->bytes, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", (size_t)MIN(f->size, (uint64_t)16));
	return !f->bytes.failed || parse_out_of_memory(f->p);
}

static bool store_number(filling *f, uint32_t i, const char *at, cptx_val v)
{
	arch_type t = arch_types[f->s->type];
	uint64_t bits = (uint64_t)v.i;

	if (t.cls == 'F' && v.kind == CPTX_VAL_INT)
		return parse_error(f->p, at, CPTX_E_PARSE, "'%s' is .%s: write a floating point number, 1.0 for 1", f->s->name,
		                   arch_mods[f->s->type].name);
	if (v.kind == CPTX_VAL_FLOAT && (t.cls == 'F' || t.cls == 'B') && t.bits == 32) {
		bits = text_f32_bits(v.f);
	} else if (v.kind == CPTX_VAL_FLOAT && (t.cls == 'F' || t.cls == 'B') && t.bits == 64) {
		memcpy(&bits, &v.f, sizeof bits);
	} else if (v.kind == CPTX_VAL_FLOAT) {
		return parse_error(f->p, at, CPTX_E_PARSE, "'%s' is .%s, which has no floating point values", f->s->name,
		                   arch_mods[f->s->type].name);
	}
	unsigned char *to = (unsigned char *)f->bytes.p + i * f->size;
	for (unsigned b = 0; b < f->size; b++)
		to[b] = b < 8 ? (unsigned char)(bits >> 8 * b) : v.kind == CPTX_VAL_INT && v.i < 0 && !v.negated ? 0xff : 0;
	return true;
}

/* Reads name, name + 4, generic(name) or 0xff00(name). */
static bool read_address(filling *f, uint32_t i, uint64_t mask)
{
	parser *p = f->p;
	const char *at = p->p;
	ir_reloc r = { .mask = mask, .index = i };
	word w;
	int64_t offset = 0;

	if (!parse_word(p, &w))
		return parse_error(p, at, CPTX_E_PARSE, "expected a constant or the name of a variable or function");
	bool wrapped = w.len == 7 && !memcmp(w.s, "generic", 7) && *p->p == '(';
	if (mask)
		parse_needs(p, at, DIR_MASK);
	if (wrapped) {
		parse_needs(p, at, DIR_GENERIC);
		parse_take(p, '(');
		r.generic = 1;
		at = p->p;
		if (!parse_word(p, &w))
			return parse_error(p, at, CPTX_E_PARSE, "expected the name of a variable in generic( )");
	}
	const binding *b = names_find(p, &w);
	/* a variable may not refer to itself, `a = a`; it has no name yet */
	bool known = b && b->kind == NAME_SYM && b->id >= MODULE_SYM && *p->m->sym[b->id - MODULE_SYM]->name;
	const ir_sym *s = known ? p->m->sym[b->id - MODULE_SYM] : NULL;
	if (!s && !(b && b->kind == NAME_FUNC))
		return parse_error(
			p, at, CPTX_E_PARSE,
			"'%.*s' is no variable or function of the module that is declared above; its address is no initial value",
			(int)MIN(w.len, 64u), w.s);
	const cptx_kernel *function = b->kind == NAME_FUNC ? p->m->body[b->id - 1] : NULL;
	parse_needs(p, at, !function ? DIR_ADDRESS : function->is_func ? DIR_ADDRESS_OF_FUNCTION : DIR_ADDRESS_OF_KERNEL);
	r.to = b->kind == NAME_FUNC ? ir_func_value(p->m->body[b->id - 1]) : ir_symbol_value(p->m, NULL, b->id);
	if (s && s->space != CPTX_GLOBAL && s->space != CPTX_CONST)
		return parse_error(p, at, CPTX_E_PARSE, "'%s' is in .%s; only addresses in .global and .const are initial values",
		                   s->name, arch_mods[s->space].name);
	if (wrapped && !s)
		return parse_error(p, at, CPTX_E_PARSE, "generic( ) is for variables; write the name of the function alone");
	if (wrapped && !parse_expect(p, ')', "behind generic(name"))
		return false;
	if (parse_take(p, '+') && !parse_int(p, INT32_MIN, INT32_MAX, &offset, "an offset"))
		return false;
	r.to.offset = (int32_t)offset;
	if (b->kind == NAME_FUNC && offset)
		return parse_error(p, at, CPTX_E_PARSE, "an offset to the address of a function");
	unsigned t = f->s->type;
	if (t != CPTX_U32 && t != CPTX_U64 && !(t == CPTX_U8 && mask))
		return parse_error(p, at, CPTX_E_PARSE,
		                   "'%s' is .%s: an address is .u64 or .u32; one byte of it, 0xFF(name), 0xFF00(name) ..., is .u8",
		                   f->s->name, arch_mods[t].name);
	buf_put(&f->relocs, (const char *)&r, sizeof r);
	return !f->relocs.failed || parse_out_of_memory(p);
}

static bool read_element(filling *f, uint32_t i)
{
	parser *p = f->p;
	const char *at = p->p;
	cptx_val v;

	if (!room_for(f, i, at))
		return false;
	bool name =
		parse_is_word[(unsigned char)*p->p] == 1 && (strncmp(p->p, "WARP_SZ", 7) || parse_is_word[(unsigned char)p->p[7]]);
	if (name)
		return read_address(f, i, 0);
	if (!parse_constant(p, &v))
		return false;
	if (*p->p != '(')
		return store_number(f, i, at, v);
	parse_take(p, '(');
	unsigned shift = 0;
	while (v.kind == CPTX_VAL_INT && shift < 56 && (uint64_t)v.i >> shift != 0xff)
		shift += 8;
	if (v.kind != CPTX_VAL_INT || (uint64_t)v.i != (uint64_t)0xff << shift)
		return parse_error(p, at, CPTX_E_PARSE, "the mask in front of ( is one byte: 0xFF, 0xFF00, 0xFF0000 ...");
	return read_address(f, i, (uint64_t)v.i) && parse_expect(p, ')', "behind the masked address");
}

/* Reads the values of dimension `depth` from element *i on, and advances *i behind them.  A short row is not filled up:
 * ptxas, too, puts the values one behind another. */
static bool read_values(filling *f, unsigned depth, uint32_t *i)
{
	parser *p = f->p;
	const ir_sym *s = f->s;
	unsigned depths = s->ndim + (s->vec > 1);

	if (!parse_take(p, '{'))
		return read_element(f, (*i)++);
	if (depth >= depths)
		return parse_error(p, p->p, CPTX_E_PARSE, "more braces than '%s' has dimensions", s->name);
	uint32_t length = depth < s->ndim ? s->dim[depth] : s->vec, n = 0;
	for (bool more = *p->p != '}'; more; n++, more = parse_take(p, ',')) {
		if (length && n == length)
			return parse_error(p, p->p, CPTX_E_PARSE, "more than the %u values of this dimension of '%s'", length, s->name);
		if (depth + 1 < depths && *p->p != '{')
			return parse_error(p, p->p, CPTX_E_PARSE, "expected {: each dimension of '%s' has braces of its own", s->name);
		if (!read_values(f, depth + 1, i))
			return false;
	}
	if (depth >= s->ndim && n < length)
		return parse_error(p, p->p, CPTX_E_PARSE, "a vector of '%s' has %u values, not %u", s->name, length, n);
	if (!length && !n)
		return parse_error(p, p->p, CPTX_E_PARSE, "'%s' has neither length nor values", s->name);
	return parse_expect(p, '}', "behind the initial values");
}

bool parse_initialiser(parser *p, ir_sym *s)
{
	arena *a = &p->m->a;
	filling f = { .p = p, .s = s, .size = arch_types[s->type].bits / 8, .most = UINT32_MAX };
	uint32_t n = 0;
	bool ok = false;

	if (!f.size || (arch_types[s->type].cls == 'F' && f.size < 4) || arch_types[s->type].cls == 'X')
		return parse_error(p, p->p, CPTX_E_PARSE, "'%s' is of a type without initial values", s->name);
	if (s->size)
		f.most = (uint32_t)MIN(s->size / f.size, (uint64_t)UINT32_MAX);
	buf_init(&f.bytes, &a->hook);
	buf_init(&f.relocs, &a->hook);
	if (s->ndim + (s->vec > 1) == 0 || *p->p == '{')
		ok = read_values(&f, 0, &n);
	else
		parse_error(p, p->p, CPTX_E_PARSE, "expected { in front of the initial values of the array '%s'", s->name);
	if (ok && s->ndim + (s->vec > 1) == 0 && n > 1)
		ok = parse_error(p, p->p, CPTX_E_PARSE, "'%s' is a single value", s->name);
	if (ok) {
		s->ninit = (uint32_t)(f.bytes.n / f.size);
		s->nreloc = (uint32_t)(f.relocs.n / sizeof(ir_reloc));
		s->init = ARENA_COPY(a, unsigned char, f.bytes.p ? f.bytes.p : "", f.bytes.n);
		s->reloc = f.relocs.n ? ARENA_COPY(a, ir_reloc, f.relocs.p, s->nreloc) : NULL;
		ok = (s->init && (s->reloc || !f.relocs.n)) || parse_out_of_memory(p);
	}
	buf_free(&f.bytes);
	buf_free(&f.relocs);
	return ok;
}
