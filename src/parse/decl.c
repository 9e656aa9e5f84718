/* SPDX-License-Identifier: MIT */
/* Declarations: registers, variables, parameters. */
#include "parse/parser.h"

enum { MOST_DIMS = 8, MOST_REGISTERS = 1 << 20, MOST_IN_ALL = 1 << 25, MOST_CONSTANTS = 1 << 16, MOST_VARIABLES = 1 << 16 };
static const uint64_t most_bytes = (uint64_t)1 << 40;

/* The length of the word behind a dot at the text, 0 if there is none; skips nothing. */
static size_t dot_word(const parser *p)
{
	size_t n = 0;
	while (*p->p == '.' && parse_is_word[(unsigned char)p->p[1 + n]])
		n++;
	return n;
}

/* Reads a type that variables and registers may have; 0 if there is none. */
static unsigned take_type(parser *p)
{
	size_t n = dot_word(p);
	unsigned t = n ? arch_type_of(p->p + 1, n) : 0;

	if (!t || t == CPTX_BF16 || (arch_types[t].cls == 'X' && t != CPTX_F16X2))
		return 0;
	if (t == CPTX_B128 || t == CPTX_F16X2)
		parse_needs(p, p->p, t == CPTX_B128 ? DIR_B128 : DIR_F16X2);
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

static bool read_align(parser *p, uint32_t *align)
{
	const char *at = p->p;

	if (!parse_literal(p, 1, 1 << 30, align, "an alignment"))
		return false;
	return !(*align & (*align - 1)) ||
	       parse_error(p, at, CPTX_E_PARSE, "an alignment is a power of two, not %u", (unsigned)*align);
}

/* Reads "<4>" behind a name. */
static bool read_count(parser *p, uint32_t most, uint32_t *count)
{
	return parse_take(p, '<') && parse_literal(p, 0, most, count, "the number of names") &&
	       parse_expect(p, '>', "behind the number of names");
}

/* Makes the i-th name that "w<n>" stands for. */
static bool numbered(parser *p, const word *w, uint32_t i, word *one)
{
	char *name = ARENA_ARRAY(&p->m->a, char, (size_t)w->len + 11);

	if (!name)
		return parse_out_of_memory(p);
	memcpy(name, w->s, w->len);
	*one = parse_word_of(name, (size_t)(text_u64(name + w->len, i) - name));
	one->at = w->at;
	return true;
}

/* ---- registers ---- */

static bool declare_registers(parser *p, const word *w, ir_decl d)
{
	cptx_kernel *k = p->k;

	if (d.count > MOST_IN_ALL - p->nregister)
		return parse_error(p, w->at, CPTX_E_LIMIT, "more than %d registers in all", MOST_IN_ALL);
	p->nregister += d.count;
	unsigned kind = d.form == DECL_RANGE ? NAME_RANGE : d.form == DECL_VECTOR ? NAME_VECTOR : NAME_REG;
	binding *b = names_bind(p, w, kind, (uint32_t)k->nreg, d.count);
	if (!b)
		return false;
	d.name = names_text(p, b);
	return ir_declare(k, &d) != IR_NONE || parse_out_of_memory(p);
}

/* Checks that a vector of variables or registers, which stands at `at`, has at most 128 bits. */
static bool check_vector(parser *p, const char *at, unsigned type, unsigned n)
{
	if (n < 2 || (type != CPTX_PRED && n * arch_types[type].bits <= 128))
		return true;
	return parse_error(p, at, CPTX_E_PARSE, ".v%u .%s: vectors have at most 128 bits, and none of predicates", n,
	                   arch_mods[type].name);
}

bool parse_registers(parser *p)
{
	unsigned vec = 0;
	const char *at = p->p;
	char found[24];
	uint32_t align;

	/* .align is accepted and ignored: registers have no address */
	if (parse_directive(p, "align") && !read_align(p, &align))
		return false;
	if (parse_directive(p, "v2"))
		vec = 2;
	else if (parse_directive(p, "v4"))
		vec = 4;
	at = p->p;
	unsigned type = take_type(p);
	if (!type)
		return parse_error(p, at, CPTX_E_PARSE, "expected the type of the registers, such as .b32, .f32, .b64, .pred");
	if (!check_vector(p, at, type, vec))
		return false;
	uint32_t first = (uint32_t)MAX(p->k->ndecl, (size_t)CLASS_COUNT);
	for (bool more = *p->p != ';'; more; more = parse_take(p, ',')) { /* ptxas accepts a declaration without names */
		word w;
		at = p->p;
		if (!parse_word(p, &w))
			return parse_error(p, at, CPTX_E_PARSE, "expected the name of a register, found %s", parse_found(p, found));
		uint32_t count = 1;
		bool range = *p->p == '<';
		if (range && !read_count(p, MOST_REGISTERS, &count))
			return false;
		ir_decl d = { .count = vec ? vec : count, .type = (uint8_t)type, .form = range ? DECL_RANGE : DECL_SINGLE };
		if (vec)
			d.form = DECL_VECTOR;
		for (uint32_t i = 0; i < (vec ? count : 1); i++) {
			word one = w;
			if (vec && range && !numbered(p, &w, i, &one))
				return false;
			if (!declare_registers(p, &one, d))
				return false;
		}
	}
	if (!parse_expect(p, ';', "behind the registers"))
		return false;
	uint32_t n = (uint32_t)MAX(p->k->ndecl, (size_t)CLASS_COUNT) - first;
	return !n || parse_item(p, ITEM_REGS, CPTX_OPT_(cptx_val, .kind = CPTX_VAL_LIST, .id = first, .offset = (int32_t)n), 1);
}

/* ---- variables ---- */

static bool add_attributes(parser *p, ir_sym *s)
{
	const char *more = parse_attributes(p, true);
	size_t n = s->attribute ? strlen(s->attribute) : 0, m = more ? strlen(more) : 0;

	if (!more || !n) {
		s->attribute = more;
		return more != NULL;
	}
	char *both = ARENA_ARRAY(&p->m->a, char, n + m + 3);
	if (!both)
		return parse_out_of_memory(p);
	memcpy(both, s->attribute, n);
	memcpy(both + n, ", ", 2);
	memcpy(both + n + 2, more, m + 1);
	s->attribute = both;
	return true;
}

/* Reads .texref, .samplerref or .surfref: a kind of variable, declared in .global or as a parameter. */
static bool read_opaque(parser *p, ir_sym *s)
{
	static const uint16_t opaque[] = { CPTX_TEXREF, CPTX_SAMPLERREF, CPTX_SURFREF };

	const char *at = p->p;
	for (unsigned i = 0; i < ARRAY_LEN(opaque); i++)
		if (parse_directive(p, arch_mods[opaque[i]].name)) {
			parse_needs(p, at, DIR_OPAQUE);
			if (opaque[i] == CPTX_SAMPLERREF && !strstr(p->m->target_more, "texmode_independent"))
				parse_error(p, at, CPTX_E_PARSE, "a .samplerref is for .target sm_XX, texmode_independent only");
			s->is_param = s->space == CPTX_PARAM;
			s->space = (uint8_t)opaque[i];
			s->type = CPTX_B64;
			return true;
		}
	return false;
}

/* Reads .ptr .space .align n, for a parameter of a kernel. */
static bool read_ptr(parser *p, ir_sym *s)
{
	const char *at = p->p;

	s->is_ptr = 1;
	s->ptr_space = (uint8_t)parse_space(p);
	if (s->ptr_space == CPTX_PARAM)
		return parse_error(p, at, CPTX_E_PARSE, ".ptr points to .global, .const, .shared or .local");
	return !parse_directive(p, "align") || read_align(p, &s->ptr_align);
}

/* Reads all of a declaration between state space and name.  k: the kernel whose parameter it is, or NULL. */
static bool read_specifiers(parser *p, ir_sym *s, const cptx_kernel *k)
{
	bool opaque = k ? !k->is_func : !p->k && s->space == CPTX_GLOBAL, early = true;
	const char *at = p->p, *vector = p->p;
	size_t n;

	while ((n = dot_word(p))) {
		at = p->p;
		early = !s->type && !s->vec;
		if (early && parse_directive(p, "align")) {
			if (!read_align(p, &s->align))
				return false;
			s->align_given = 1;
		} else if (early && parse_directive(p, "attribute")) {
			if (!add_attributes(p, s))
				return false;
		} else if (early && opaque && read_opaque(p, s)) {
			continue;
		} else if (s->type && k && !k->is_func && parse_listed(p, DIR_PTR)) {
			if (!read_ptr(p, s))
				return false;
		} else if (early && n == 2 && p->p[1] == 'v' && strchr("24", p->p[2])) {
			vector = p->p;
			s->vec = (uint8_t)(p->p[2] - '0');
			p->stop = p->p += 3;
			parse_blanks(p);
		} else if (!s->type && (s->type = (uint8_t)take_type(p))) {
			continue;
		} else {
			return parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no type or specifier of a declaration",
			                   (int)MIN(n + 1, (size_t)40), at);
		}
	}
	if (!s->type || s->type == CPTX_PRED)
		return parse_error(p, at, CPTX_E_PARSE, "expected the type of a variable, such as .b32");
	if (s->vec && s->space == CPTX_PARAM)
		return parse_error(p, vector, CPTX_E_PARSE, "no vectors in .param; write .align 16 .b8 name[16]");
	s->elem = s->type;
	return check_vector(p, vector, s->type, s->vec);
}

/* Reads "[2][3]" behind a name, and computes the size in bytes. */
static bool read_dims(parser *p, ir_sym *s)
{
	uint32_t dim[MOST_DIMS];
	const char *at = p->p;

	s->ndim = 0;
	s->size = (uint64_t)arch_types[s->type].bits / 8 * (s->vec ? s->vec : 1);
	while (parse_take(p, '[')) {
		uint32_t v = 0;
		if (s->ndim == MOST_DIMS)
			return parse_error(p, at, CPTX_E_LIMIT, "an array has at most %d dimensions", MOST_DIMS);
		bool open = *p->p == ']' && !s->ndim;
		if (!open && !parse_literal(p, s->ndim > 0, UINT32_MAX - 1, &v, "the length of an array"))
			return false;
		if (!parse_expect(p, ']', "behind the length of the array"))
			return false;
		dim[s->ndim++] = v;
		s->size *= v;
		if (s->size > most_bytes)
			return parse_error(p, at, CPTX_E_LIMIT, "the array is larger than any memory");
	}
	s->dim = s->ndim ? ARENA_COPY(&p->m->a, uint32_t, dim, s->ndim) : NULL;
	uint32_t natural = arch_types[s->type].bits / 8 * (s->vec ? s->vec : 1u);
	if (!s->align_given)
		s->align = natural ? natural : 1;
	return s->dim || !s->ndim || parse_out_of_memory(p);
}

/* Counts constant memory over the whole module, with all functions. */
static bool count_constants(parser *p, const ir_sym *s, const char *at)
{
	uint64_t end = ((uint64_t)p->m->const_bytes + s->align - 1) / s->align * s->align + s->size;

	if (s->space != CPTX_CONST || s->linkage == LINK_EXTERN)
		return true;
	if (end > MOST_CONSTANTS)
		return parse_error(p, at, CPTX_E_LIMIT, "%llu bytes of .const memory, with '%s'; there are %u",
		                   (unsigned long long)end, s->name, (unsigned)MOST_CONSTANTS);
	p->m->const_bytes = (uint32_t)end;
	return true;
}

static bool check_variable(parser *p, const ir_sym *s, const char *at)
{
	bool open = s->ndim && !s->dim[0], local = p->k != NULL;

	if (open && !s->init && s->linkage != LINK_EXTERN)
		return parse_error(p, at, CPTX_E_PARSE,
		                   "'%s' has no length; only .extern arrays and those with initial values may leave it out",
		                   s->name);
	if (s->init && s->space != CPTX_GLOBAL && s->space != CPTX_CONST)
		return parse_error(p, at, CPTX_E_PARSE, "only .global and .const variables have initial values");
	if (s->init && s->linkage == LINK_EXTERN)
		return parse_error(p, at, CPTX_E_PARSE, "an .extern variable gets its value where it is defined");
	if (!local && (s->space == CPTX_PARAM || s->space == CPTX_LOCAL))
		return parse_error(p, at, CPTX_E_PARSE, ".%s variables belong into functions", arch_mods[s->space].name);
	if (local && s->linkage != LINK_NONE)
		return parse_error(p, at, CPTX_E_PARSE, "'%s' is %sbut in a function; such variables belong into the module",
		                   s->name, ir_linkages[s->linkage]);
	if (s->linkage == LINK_COMMON && s->space != CPTX_GLOBAL)
		return parse_error(p, at, CPTX_E_PARSE, ".common variables are .global");
	if (s->attribute && s->space != CPTX_GLOBAL && !ir_is_opaque(s->space))
		return parse_error(p, at, CPTX_E_PARSE, "only .global variables have attributes");
	return count_constants(p, s, at);
}

/* Checks that a second declaration `s` agrees with the first, `before`, except for the length of an array.  In texts that
 * are linked, as by linkers, the size counts alone: nvcc writes .u64 x and .u64 x[1] for one variable. */
static bool check_again(parser *p, const ir_sym *before, const ir_sym *s, const char *at, bool earlier)
{
	if (earlier)
		return !before->size || !s->size || before->size == s->size ||
		       parse_error(p, at, CPTX_E_COMPILE, "'%s' has %llu bytes here, and %llu in a text that this one is linked to",
		                   s->name, (unsigned long long)s->size, (unsigned long long)before->size);
	unsigned from = (s->ndim && !s->dim[0]) || (before->ndim && !before->dim[0]);

	if (before->type != s->type || before->vec != s->vec || before->ndim != s->ndim ||
	    (s->ndim > from && memcmp(before->dim + from, s->dim + from, (s->ndim - from) * sizeof *s->dim)))
		return parse_error(p, at, CPTX_E_PARSE, "'%s' was declared above with another type", s->name);
	if (before->linkage == LINK_EXTERN && s->linkage == LINK_NONE)
		return parse_error(p, at, CPTX_E_PARSE, "'%s' was declared .extern above; define it as .visible", s->name);
	return true;
}

/* Reads { width = 4, filter_mode = linear } of a texture, sampler or surface; each element of an array has braces of its
 * own. */
static bool read_fields(parser *p, const ir_sym *s, unsigned depth)
{
	enum { T = 1, S = 2, F = 4 }; /* bits: textures, samplers, surfaces have the field */
	static const struct {
		const char *name;
		int of;
	} fields[] = { { "width", T | F },
		           { "height", T | F },
		           { "depth", T | F },
		           { "channel_order", T | F },
		           { "channel_data_type", T | F },
		           { "array_size", T | F },
		           { "num_samples", T },
		           { "num_mipmap_levels", T },
		           { "normalized_coords", T },
		           { "filter_mode", T | S },
		           { "addr_mode_0", T | S },
		           { "addr_mode_1", T | S },
		           { "addr_mode_2", T | S },
		           { "memory_layout", F },
		           { "force_unnormalized_coords", S } };
	int kind = s->space == CPTX_TEXREF ? T : s->space == CPTX_SAMPLERREF ? S : F;
	const char *at = p->p;
	bool known = false;
	cptx_val v;
	word w;

	if (!parse_expect(p, '{', "in front of the initial values"))
		return false;
	if (parse_take(p, '}'))
		return true;
	do {
		if (depth < s->ndim) {
			if (!read_fields(p, s, depth + 1))
				return false;
			continue;
		}
		at = p->p;
		if (!parse_word(p, &w))
			return parse_error(p, at, CPTX_E_PARSE, "expected a field such as width = 4");
		known = false;
		for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
			known |= fields[i].of & kind && strlen(fields[i].name) == w.len && !memcmp(fields[i].name, w.s, w.len);
		if (!known)
			return parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no field of a .%s", (int)MIN(w.len, 64u), w.s,
			                   arch_mods[s->space].name);
		if (!memcmp(w.s, "channel", 7) || !memcmp(w.s, "force", 5))
			parse_needs(p, at, *w.s == 'c' ? DIR_CHANNELS : DIR_UNNORMALIZED);
		if (!parse_expect(p, '=', "behind the field") || !(parse_word(p, &w) || parse_constant(p, &v)))
			return false;
	} while (parse_take(p, ','));
	return parse_expect(p, '}', "behind the initial values");
}

static bool read_opaque_initialiser(parser *p, ir_sym *s)
{
	const char *from = p->p;

	if (!read_fields(p, s, 0))
		return false;
	s->attribute = parse_collapse(p, from, p->stop);
	return s->attribute != NULL;
}

/* Whether two texts that are linked may both define the variable. */
static bool may_repeat(const ir_sym *a, const ir_sym *b)
{
	return a->linkage == LINK_WEAK || b->linkage == LINK_WEAK || (a->linkage == LINK_COMMON && b->linkage == LINK_COMMON);
}

static bool declare_variable(parser *p, const ir_sym *specified, const word *w, const char *at)
{
	ir_sym s = *specified;

	const binding *before = p->k ? NULL : names_declared(p, w, s.linkage);
	const ir_sym *first = before && before->kind == NAME_SYM ? p->m->sym[before->id - MODULE_SYM] : NULL;
	bool earlier = before && names_is_earlier(p, before);
	bool again = first && (first->linkage == LINK_EXTERN || s.linkage == LINK_EXTERN || (earlier && may_repeat(first, &s)));
	if (earlier && !again)
		return parse_error(p, at, CPTX_E_COMPILE, "'%.*s' is defined by another text too, which this one is linked to",
		                   (int)MIN(w->len, 64u), w->s);
	/* The variable exists from here on, even if the rest of its declaration is wrong; it has no name until that is read. */
	s.name = "";
	uint32_t id = ir_add_symbol(p->m, p->k, &s);
	if (id == IR_NONE)
		return parse_out_of_memory(p);
	const binding *b = again ? before : names_bind(p, w, NAME_SYM, id, 1); /* .extern may be repeated, and defined later */
	if (!b)
		return false;
	s.name = names_text(p, b);
	if (!read_dims(p, &s) || (again && !check_again(p, first, &s, at, earlier)))
		return false;
	if (parse_take(p, '=') && !(ir_is_opaque(s.space) ? read_opaque_initialiser(p, &s) : parse_initialiser(p, &s)))
		return false;
	if (!check_variable(p, &s, at))
		return false;
	if (s.ndim && !s.dim[0] && s.init) {
		uint64_t all = (uint64_t)s.ninit * (arch_types[s.type].bits / 8);
		s.size = all; /* the number of values decides the length; the printed text leaves it open */
	}
	*(p->k ? p->k->sym[id] : p->m->sym[id - MODULE_SYM]) = s;
	if (!p->k && !ir_index_global(p->m, NAMED_GLOBAL, id - MODULE_SYM))
		return parse_out_of_memory(p);
	if (!p->k) {
		ir_top *t = parse_top(p, TOP_VAR);
		if (t)
			ir_top_var(p->m, t, id);
		return t != NULL;
	}
	if (s.space == CPTX_SHARED && s.linkage != LINK_EXTERN)
		p->k->static_smem =
			(uint32_t)MIN((p->k->static_smem + (uint64_t)s.align - 1) / s.align * s.align + s.size, (uint64_t)UINT32_MAX);
	cptx_val v = ir_symbol_value(p->m, p->k, id);
	return parse_item(p, ITEM_VAR, &v, 1);
}

/* Reads a name and what follows it; "x<4>" stands for x0 to x3. */
static bool read_variable(parser *p, const ir_sym *specified)
{
	const char *at = p->p;
	uint32_t count = 0;
	char found[24];
	word w, one;

	if (!parse_word(p, &w))
		return parse_error(p, at, CPTX_E_PARSE, "expected the name of the variable, found %s", parse_found(p, found));
	if (*p->p != '<')
		return declare_variable(p, specified, &w, at);
	if (!read_count(p, MOST_VARIABLES, &count))
		return false;
	if (*p->p != ',' && *p->p != ';')
		return parse_error(p, p->p, CPTX_E_PARSE, "several names, %.*s<%u>, have neither lengths nor values",
		                   (int)MIN(w.len, 64u), w.s, (unsigned)count);
	for (uint32_t i = 0; i < count; i++)
		if (!numbered(p, &w, i, &one) || !declare_variable(p, specified, &one, at))
			return false;
	return true;
}

/* Reads the semicolon, which belongs to the statement; all variables of the statement share its place in the source. */
static void end_statement(parser *p)
{
	uint32_t src = (uint32_t)(p->start - p->begin), len = (uint32_t)(p->stop - p->start);

	for (ir_item *it = p->k ? p->k->last : NULL; it && (it->src == src || it->src == IR_NONE); it = it->prev)
		it->src_len = it->src == src ? len : 0;
	for (ir_top *t = p->k ? NULL : p->m->top_last; t && (t->src == src || !t->src_len); t = t->prev)
		t->src_len = t->src == src ? len : 0;
}

bool parse_variables(parser *p, unsigned linkage)
{
	ir_sym s = { .linkage = (uint8_t)linkage };

	const char *at = p->p;
	s.space = (uint8_t)parse_space(p);
	if (s.space == CPTX_PARAM && p->k)
		parse_needs(p, at, DIR_PASSED);
	if (!read_specifiers(p, &s, NULL))
		return false;
	for (bool more = *p->p != ';'; more; more = parse_take(p, ',')) /* ptxas accepts a declaration without names */
		if (!read_variable(p, &s))
			return false;
	if (!parse_expect(p, ';', "behind the declaration"))
		return false;
	end_statement(p);
	return true;
}

/* ---- parameters ---- */

bool parse_argument(parser *p, cptx_kernel *k, ir_arg *a, bool named)
{
	const char *at = p->p;
	char found[24];
	word w;

	*a = (ir_arg){ IR_NONE, IR_NONE };
	if (parse_directive(p, "reg")) {
		if (!k->is_func)
			return parse_error(p, at, CPTX_E_PARSE, "the parameters of a kernel are .param");
		at = p->p;
		unsigned type = take_type(p);
		if (!type)
			return parse_error(p, at, CPTX_E_PARSE, "expected the type of the parameter's register");
		at = p->p;
		if (!parse_word(p, &w))
			return parse_error(p, at, CPTX_E_PARSE, "expected the name of the parameter, found %s", parse_found(p, found));
		a->reg = (uint32_t)k->nreg;
		if (named)
			return declare_registers(p, &w, (ir_decl){ .count = 1, .type = (uint8_t)type, .form = DECL_SINGLE });
		ir_decl d = { .name = parse_collapse(p, w.s, w.s + w.len), .count = 1, .type = (uint8_t)type, .form = DECL_SINGLE };
		return d.name && (ir_declare(k, &d) != IR_NONE || parse_out_of_memory(p));
	}
	ir_sym s = { .space = CPTX_PARAM };
	if (!parse_directive(p, "param"))
		return parse_error(p, at, CPTX_E_PARSE, "expected a parameter, .param or .reg, found %s", parse_found(p, found));
	parse_needs(p, at, k->is_func ? DIR_PASSED : DIR_PARAMETER);
	if (!read_specifiers(p, &s, k))
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
	if (s.ndim > 1 || (s.ndim && !s.dim[0] && !k->is_func))
		return parse_error(p, at, CPTX_E_PARSE,
		                   s.ndim > 1 ? "a parameter has one dimension at most"
		                              : "an array that a kernel takes has a length");
	if (s.ndim && !s.dim[0])
		parse_needs(p, at, DIR_OPEN_PARAMETER);
	a->sym = ir_add_symbol(p->m, k, &s);
	return a->sym != IR_NONE || parse_out_of_memory(p);
}
