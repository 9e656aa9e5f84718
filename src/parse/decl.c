/* Declarations: registers, variables with initialisers, parameters. */
#include "parse/parser.h"

#include <stdio.h>

enum { MOST_DIMS = 8, MOST_REGISTERS = 1 << 20, MOST_IN_ALL = 1 << 25 };
static const uint64_t most_bytes = (uint64_t)1 << 40;

/* ".word" at the text, without skipping it; its length behind the dot, 0 if there is none. */
static size_t dot_word(const parser *p)
{
	size_t n = 0;
	while (*p->p == '.' && parse_is_word[(unsigned char)p->p[1 + n]])
		n++;
	return n;
}

/* A type that variables and registers may have; skips it. */
static unsigned take_type(parser *p)
{
	char text[16];
	size_t n = dot_word(p);

	if (!n || n >= sizeof text)
		return 0;
	memcpy(text, p->p + 1, n);
	text[n] = 0;
	unsigned t = cptx_type_find(text);
	if (!t)
		return 0;
	p->stop = p->p += 1 + n;
	parse_blanks(p);
	return t;
}

unsigned parse_space(parser *p)
{
	static const struct {
		const char *name;
		unsigned space;
	} spaces[] = { { "global", CPTX_GLOBAL },
		           { "shared", CPTX_SHARED },
		           { "const", CPTX_CONST },
		           { "local", CPTX_LOCAL },
		           { "param", CPTX_PARAM } };

	for (unsigned i = 0; i < ARRAY_LEN(spaces); i++)
		if (parse_directive(p, spaces[i].name))
			return spaces[i].space;
	return 0;
}

/* ---- registers ---- */

static bool declare_registers(parser *p, const word *w, ir_decl d)
{
	cptx_kernel *k = p->k;

	if (d.count > MOST_IN_ALL - p->nregister)
		return parse_error(p, w->s, CPTX_E_LIMIT, "more than %d registers in all", MOST_IN_ALL);
	p->nregister += d.count;
	unsigned kind = d.form == DECL_RANGE ? NAME_RANGE : d.form == DECL_VECTOR ? NAME_VECTOR : NAME_REG;
	binding *b = names_bind(p, w, kind, (uint32_t)k->nreg, d.count);
	if (!b)
		return false;
	d.name = names_text(p, b);
	return ir_declare(k, &d) != IR_NONE || parse_out_of_memory(p);
}

/* What a register may be declared as; ptxas has no other. */
static bool is_register_type(unsigned t) { return arch_types[t].cls != 'X' || arch_types[t].bits == 32; }

bool parse_registers(parser *p)
{
	unsigned vec = 0;
	const char *at = p->p;
	char found[24];

	if (parse_directive(p, "v2"))
		vec = 2;
	else if (parse_directive(p, "v4"))
		vec = 4;
	at = p->p;
	unsigned type = take_type(p);
	if (!type || !is_register_type(type))
		return parse_error(p, at, CPTX_E_PARSE, "expected the type of the registers, such as .b32, .f32, .b64, .pred");
	uint32_t first = (uint32_t)MAX(p->k->ndecl, (size_t)CLASS_COUNT), n = 0;
	do {
		word w;
		at = p->p;
		if (!parse_word(p, &w))
			return parse_error(p, at, CPTX_E_PARSE, "expected the name of a register, found %s", parse_found(p, found));
		ir_decl d = { .type = (uint8_t)type, .count = vec ? vec : 1, .form = vec ? DECL_VECTOR : DECL_SINGLE };
		if (parse_take(p, '<')) {
			uint32_t count;
			if (vec)
				return parse_error(p, at, CPTX_E_PARSE, "vectors of registers are declared by name, without <count>");
			if (!parse_count(p, MOST_REGISTERS, &count, "the number of registers") ||
			    !parse_expect(p, '>', "behind the number of registers"))
				return false;
			d.form = DECL_RANGE;
			d.count = count;
		}
		if (!declare_registers(p, &w, d))
			return false;
		n++;
	} while (parse_take(p, ','));
	if (!parse_expect(p, ';', "behind the registers"))
		return false;
	ir_item *it = parse_item(p, ITEM_REGS, 1);
	if (!it)
		return false;
	ir_operands(it)[0] = (cptx_val){ .id = first, .offset = (int32_t)n };
	return true;
}

/* ---- initialisers ---- */

typedef struct filling {
	parser *p;
	ir_sym *s;
	buf bytes, relocs;
	uint64_t size; /* bytes of an element */
	uint32_t most; /* elements it has room for; UINT32_MAX while the first length is open */
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

	if (t.cls == 'F' && t.bits >= 32) {
		double d = v.kind == CPTX_VAL_FLOAT ? v.f : v.negated ? (double)(uint64_t)v.i : (double)v.i;
		if (v.kind == CPTX_VAL_INT)
			return parse_error(f->p, at, CPTX_E_PARSE, "'%s' is .%s: write a floating point number, 1.0 for 1", f->s->name,
			                   arch_mods[f->s->type].name);
		if (t.bits == 32)
			bits = text_f32_bits(d);
		else
			memcpy(&bits, &d, sizeof bits);
	} else if (v.kind == CPTX_VAL_FLOAT) {
		return parse_error(f->p, at, CPTX_E_PARSE, "'%s' is .%s, which has no floating point values", f->s->name,
		                   arch_mods[f->s->type].name);
	}
	unsigned char *to = (unsigned char *)f->bytes.p + i * f->size;
	for (unsigned b = 0; b < f->size; b++)
		to[b] = b < 8 ? (unsigned char)(bits >> 8 * b) : v.kind == CPTX_VAL_INT && v.i < 0 && !v.negated ? 0xff : 0;
	return true;
}

/* name, name + 4, generic(name), 0xff00(name). */
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
	if (wrapped) {
		parse_take(p, '(');
		r.generic = 1;
		at = p->p;
		if (!parse_word(p, &w))
			return parse_error(p, at, CPTX_E_PARSE, "expected the name of a variable in generic( )");
	}
	const binding *b = names_find(p, &w);
	if (!b || (b->kind != NAME_SYM && b->kind != NAME_FUNC) || (b->kind == NAME_SYM && b->id < MODULE_SYM))
		return parse_error(
			p, at, CPTX_E_PARSE,
			"'%.*s' is no variable or function of the module that is declared above; its address is no initial value",
			(int)MIN(w.len, 64u), w.s);
	r.to = b->kind == NAME_FUNC ? ir_func_value(p->m->body[b->id - 1]) : ir_symbol_value(p->m, NULL, b->id);
	if (wrapped && !parse_expect(p, ')', "behind generic(name"))
		return false;
	if ((*p->p == '+' || *p->p == '-') && !parse_int(p, INT32_MIN, INT32_MAX, &offset, "an offset"))
		return false;
	r.to.offset = (int32_t)offset;
	if (b->kind == NAME_FUNC && offset)
		return parse_error(p, at, CPTX_E_PARSE, "an offset to the address of a function");
	if (!mask && arch_types[f->s->type].bits < 32)
		return parse_error(p, at, CPTX_E_PARSE,
		                   "an address has 32 or 64 bits; one byte of it is written 0xFF(name), 0xFF00(name) ...");
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
	if (v.kind != CPTX_VAL_INT || !v.i)
		return parse_error(p, at, CPTX_E_PARSE, "the mask in front of ( is an integer such as 0xFF");
	return read_address(f, i, (uint64_t)v.i) && parse_expect(p, ')', "behind the masked address");
}

/* Values of dimension `depth`, from element i on; the next element behind them. */
static bool read_values(filling *f, unsigned depth, uint32_t *i)
{
	parser *p = f->p;
	const ir_sym *s = f->s;
	unsigned depths = s->ndim + (s->vec > 1);
	uint32_t stride = 1, from = *i;

	for (unsigned d = depth + 1; d < depths; d++)
		stride *= d < s->ndim ? s->dim[d] : s->vec;
	if (!parse_take(p, '{'))
		return read_element(f, (*i)++);
	if (depth >= depths)
		return parse_error(p, p->p, CPTX_E_PARSE, "more braces than '%s' has dimensions", s->name);
	uint32_t length = depth < s->ndim ? s->dim[depth] : s->vec;
	for (uint32_t n = 0; *p->p != '}'; n++) {
		if (length && n == length)
			return parse_error(p, p->p, CPTX_E_PARSE, "more than the %u values of this dimension of '%s'", length, s->name);
		if (depth + 1 < depths && *p->p == '{') {
			*i = from + n * stride;
			if (!read_values(f, depth + 1, i))
				return false;
		} else if (!read_element(f, (*i)++)) {
			return false;
		}
		if (!parse_take(p, ','))
			break;
	}
	if (!parse_expect(p, '}', "behind the initial values"))
		return false;
	if (depth > 0)
		*i = from + length * stride;
	return true;
}

static bool read_initialiser(parser *p, ir_sym *s)
{
	arena *a = &p->m->a;
	filling f = { .p = p, .s = s, .size = arch_types[s->type].bits / 8, .most = UINT32_MAX };
	uint32_t n = 0;
	bool ok = false;

	if (!f.size)
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
		s->init = arena_memdup(a, f.bytes.p ? f.bytes.p : "", f.bytes.n);
		s->reloc = f.relocs.n ? arena_memdup(a, f.relocs.p, f.relocs.n) : NULL;
		ok = (s->init && (s->reloc || !f.relocs.n)) || parse_out_of_memory(p);
	}
	buf_free(&f.bytes);
	buf_free(&f.relocs);
	return ok;
}

/* ---- variables ---- */

static bool read_align(parser *p, uint32_t *align)
{
	int64_t v;
	const char *at = p->p;

	if (!parse_int(p, 1, 1 << 30, &v, "an alignment"))
		return false;
	if (v & (v - 1))
		return parse_error(p, at, CPTX_E_PARSE, "an alignment is a power of two, not %lld", (long long)v);
	*align = (uint32_t)v;
	return true;
}

/* What .attribute( ) holds, as text. */
static bool read_attribute(parser *p, ir_sym *s)
{
	if (!parse_expect(p, '(', "behind .attribute"))
		return false;
	const char *from = p->p;
	int depth = 1;
	for (; p->p < p->end && depth; p->p++)
		depth += *p->p == '(' ? 1 : *p->p == ')' ? -1 : *p->p == ';' || *p->p == '\n' ? -depth : 0;
	if (p->p[-1] != ')')
		return parse_error(p, from, CPTX_E_PARSE, "expected ) behind the attributes");
	s->attribute = parse_collapse(p, from, p->p - 1);
	if (s->attribute && strcmp(s->attribute, ".managed") && strncmp(s->attribute, ".unified", 8))
		return parse_error(p, from, CPTX_E_PARSE, "the attributes of variables are .managed and .unified(uuid1, uuid2)");
	p->stop = p->p;
	parse_blanks(p);
	return s->attribute != NULL;
}

/* .texref and its like: a kind of variable of its own, declared in .global or as a parameter. */
static bool read_opaque(parser *p, ir_sym *s)
{
	static const uint16_t opaque[] = { CPTX_TEXREF, CPTX_SAMPLERREF, CPTX_SURFREF };

	if (s->space != CPTX_GLOBAL && s->space != CPTX_PARAM)
		return false;
	for (unsigned i = 0; i < ARRAY_LEN(opaque); i++)
		if (parse_directive(p, arch_mods[opaque[i]].name)) {
			s->is_param = s->space == CPTX_PARAM;
			s->space = (uint8_t)opaque[i];
			s->type = CPTX_B64;
			return true;
		}
	return false;
}

/* Everything of a declaration between state space and name. */
static bool read_specifiers(parser *p, ir_sym *s)
{
	const char *at = p->p;
	size_t n;

	while ((n = dot_word(p))) {
		at = p->p;
		if (parse_directive(p, "align")) {
			if (!read_align(p, s->is_ptr ? &s->ptr_align : &s->align))
				return false;
			s->align_given |= !s->is_ptr;
		} else if (parse_directive(p, "attribute")) {
			if (!read_attribute(p, s))
				return false;
		} else if (!s->type && read_opaque(p, s)) {
			continue;
		} else if (parse_directive(p, "ptr")) {
			s->is_ptr = 1;
			s->ptr_space = (uint8_t)parse_space(p);
		} else if (n == 2 && p->p[1] == 'v' && strchr("248", p->p[2])) {
			s->vec = (uint8_t)(p->p[2] - '0');
			p->stop = p->p += 3;
			parse_blanks(p);
		} else if (s->type || !(s->type = (uint8_t)take_type(p))) {
			return parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no type or specifier of a declaration",
			                   (int)MIN(n + 1, (size_t)40), at);
		}
	}
	if (!s->type || s->type == CPTX_PRED)
		return parse_error(p, at, CPTX_E_PARSE, "expected the type of a variable, such as .b32");
	s->elem = s->type;
	return true;
}

/* "[2][3]" behind a name; the size in bytes. */
static bool read_dims(parser *p, ir_sym *s)
{
	uint32_t dim[MOST_DIMS];
	const char *at = p->p;

	s->ndim = 0;
	s->size = (uint64_t)arch_types[s->type].bits / 8 * (s->vec ? s->vec : 1);
	while (parse_take(p, '[')) {
		int64_t v = 0;
		if (s->ndim == MOST_DIMS)
			return parse_error(p, at, CPTX_E_LIMIT, "an array has at most %d dimensions", MOST_DIMS);
		bool open = *p->p == ']' && !s->ndim;
		if (!open && !parse_int(p, s->ndim > 0, UINT32_MAX - 1, &v, "the length of an array"))
			return false;
		if (!parse_expect(p, ']', "behind the length of the array"))
			return false;
		dim[s->ndim++] = (uint32_t)v;
		s->size *= (uint64_t)v;
		if (s->size > most_bytes)
			return parse_error(p, at, CPTX_E_LIMIT, "the array is larger than any memory");
	}
	s->dim = s->ndim ? arena_memdup(&p->m->a, dim, s->ndim * sizeof *dim) : NULL;
	uint32_t natural = arch_types[s->type].bits / 8 * (s->vec ? s->vec : 1u);
	if (!s->align_given)
		s->align = natural ? natural : 1;
	return s->dim || !s->ndim || parse_out_of_memory(p);
}

static bool check_variable(parser *p, const ir_sym *s, const char *at)
{
	bool open = s->ndim && !s->dim[0], local = p->k != NULL;

	if (open && !s->init && s->linkage != LINK_EXTERN && s->linkage != LINK_COMMON && s->space != CPTX_PARAM &&
	    !(s->space == CPTX_SHARED && s->linkage == LINK_NONE))
		return parse_error(p, at, CPTX_E_PARSE,
		                   "'%s' has no length; only .extern arrays and those with initial values may leave it out",
		                   s->name);
	if (s->init && s->space != CPTX_GLOBAL && s->space != CPTX_CONST)
		return parse_error(p, at, CPTX_E_PARSE, "only .global and .const variables have initial values");
	if (s->init && s->linkage == LINK_EXTERN)
		return parse_error(p, at, CPTX_E_PARSE, "an .extern variable gets its value where it is defined");
	if (!local && (s->space == CPTX_PARAM || (s->space == CPTX_LOCAL && s->linkage != LINK_NONE)))
		return parse_error(p, at, CPTX_E_PARSE, ".%s variables belong into functions", arch_mods[s->space].name);
	return true;
}

static bool read_variable(parser *p, const ir_sym *specified)
{
	ir_sym s = *specified;
	const char *at = p->p;
	char found[24];
	word w;

	if (!parse_word(p, &w))
		return parse_error(p, at, CPTX_E_PARSE, "expected the name of the variable, found %s", parse_found(p, found));
	const binding *before = p->k ? NULL : names_find(p, &w);
	bool again = before && before->kind == NAME_SYM &&
	             (p->m->sym[before->id - MODULE_SYM]->linkage == LINK_EXTERN || s.linkage == LINK_EXTERN);
	/* It exists before its values are read: they may name it. */
	s.name = "";
	uint32_t id = ir_add_symbol(p->m, p->k, &s);
	if (id == IR_NONE)
		return parse_out_of_memory(p);
	const binding *b =
		again ? before : names_bind(p, &w, NAME_SYM, id, 1); /* .extern may be said twice, and defined later */
	if (!b)
		return false;
	s.name = names_text(p, b);
	if (!read_dims(p, &s) || (parse_take(p, '=') && !read_initialiser(p, &s)) || !check_variable(p, &s, at))
		return false;
	if (s.ndim && !s.dim[0] && s.init) {
		uint64_t all = (uint64_t)s.ninit * (arch_types[s.type].bits / 8);
		s.size = all; /* the length follows from the values; it stays open in the text */
	}
	*(p->k ? p->k->sym[id] : p->m->sym[id - MODULE_SYM]) = s;
	if (!p->k) {
		ir_top *t = parse_top(p, TOP_VAR);
		if (t)
			t->sym = id;
		return t != NULL;
	}
	if (s.space == CPTX_SHARED && s.linkage != LINK_EXTERN)
		p->k->static_smem =
			(uint32_t)MIN((p->k->static_smem + (uint64_t)s.align - 1) / s.align * s.align + s.size, (uint64_t)UINT32_MAX);
	ir_item *it = parse_item(p, ITEM_VAR, 1);
	if (it)
		ir_operands(it)[0] = ir_symbol_value(p->m, p->k, id);
	return it != NULL;
}

bool parse_variables(parser *p, unsigned linkage)
{
	ir_sym s = { .linkage = (uint8_t)linkage };

	s.space = (uint8_t)parse_space(p);
	if (!read_specifiers(p, &s))
		return false;
	do {
		if (!read_variable(p, &s))
			return false;
	} while (parse_take(p, ','));
	return parse_expect(p, ';', "behind the declaration");
}

/* ---- parameters ---- */

bool parse_argument(parser *p, cptx_kernel *k, ir_arg *a, bool named)
{
	const char *at = p->p;
	char found[24];
	word w;

	*a = (ir_arg){ IR_NONE, IR_NONE };
	if (parse_directive(p, "reg")) {
		at = p->p;
		unsigned type = take_type(p);
		if (!type || !is_register_type(type))
			return parse_error(p, at, CPTX_E_PARSE, "expected the type of the parameter's register");
		at = p->p;
		if (!parse_word(p, &w))
			return parse_error(p, at, CPTX_E_PARSE, "expected the name of the parameter, found %s", parse_found(p, found));
		a->reg = (uint32_t)k->nreg;
		if (named)
			return declare_registers(p, &w, (ir_decl){ .type = (uint8_t)type, .count = 1, .form = DECL_SINGLE });
		ir_decl d = { .name = parse_collapse(p, w.s, w.s + w.len), .type = (uint8_t)type, .count = 1, .form = DECL_SINGLE };
		return d.name && (ir_declare(k, &d) != IR_NONE || parse_out_of_memory(p));
	}
	ir_sym s = { .space = CPTX_PARAM };
	if (!parse_directive(p, "param"))
		return parse_error(p, at, CPTX_E_PARSE, "expected a parameter, .param or .reg, found %s", parse_found(p, found));
	if (!read_specifiers(p, &s))
		return false;
	at = p->p;
	if (!parse_word(p, &w))
		return parse_error(p, at, CPTX_E_PARSE, "expected the name of the parameter, found %s", parse_found(p, found));
	if (named) {
		const binding *b = names_bind(p, &w, NAME_SYM, (uint32_t)k->nsym, 1);
		s.name = b ? names_text(p, b) : NULL;
	} else {
		s.name = parse_collapse(p, w.s, w.s + w.len);
	}
	if (!s.name || !read_dims(p, &s))
		return false;
	a->sym = ir_add_symbol(p->m, k, &s);
	return a->sym != IR_NONE || parse_out_of_memory(p);
}
