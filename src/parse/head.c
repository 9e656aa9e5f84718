/* Heads of kernels and device functions: linkage, name, parameters, and the directives in front of the body. */
#include "parse/parser.h"

#include <stdio.h>

static bool read_arguments(parser *p, cptx_kernel *k, ir_arg **list, size_t *n, size_t *cap, bool named)
{
	if (parse_take(p, ')'))
		return true;
	do {
		ir_arg a;
		if (!parse_argument(p, k, &a, named))
			return false;
		if (!arena_push(&p->m->a, list, *n, cap, sizeof **list))
			return parse_out_of_memory(p);
		(*list)[(*n)++] = a;
	} while (parse_take(p, ','));
	return parse_expect(p, ')', "behind the parameters");
}

/* What those who launch a kernel want to know of its parameters. */
static bool publish_parameters(parser *p, cptx_kernel *k)
{
	uint32_t end = 0;

	for (size_t i = 0; i < k->narg; i++) {
		if (k->arg[i].sym == IR_NONE)
			continue;
		const ir_sym *s = k->sym[k->arg[i].sym];
		bool bytes = s->ndim || s->vec;
		uint32_t align = MAX(s->align, 1u);
		if (s->size > UINT16_MAX)
			return parse_error(p, p->start, CPTX_E_LIMIT, "parameter '%s' has %llu bytes; a kernel has at most 32764",
			                   s->name, (unsigned long long)s->size);
		end = (end + align - 1) / align * align + (uint32_t)s->size;
		if (!arena_push(&p->m->a, &k->param, k->nparam, &k->cap_param, sizeof *k->param))
			return parse_out_of_memory(p);
		k->param[k->nparam++] = (cptx_param_info){ s->name,
			                                       s->is_ptr ? CPTX_PTR
			                                       : bytes   ? CPTX_B8
			                                                 : (enum cptx_type)s->type,
			                                       (uint32_t)s->size, align };
	}
	k->param_bytes = end;
	return true;
}

/* ---- directives in front of the body ---- */

static bool read_dims(parser *p, uint32_t dims[3], const char *what)
{
	dims[1] = dims[2] = 1;
	for (int i = 0; i < 3; i++) {
		int64_t v;
		if (!parse_int(p, 0, UINT32_MAX, &v, what))
			return false;
		dims[i] = (uint32_t)v;
		if (*p->p != ',' || i == 2)
			break;
		parse_take(p, ',');
	}
	if (!dims[0])
		dims[1] = dims[2] = 0;
	return true;
}

static bool read_number(parser *p, uint32_t *v, const char *what)
{
	int64_t i;
	if (!parse_int(p, 0, UINT32_MAX, &i, what))
		return false;
	*v = (uint32_t)i;
	return true;
}

static bool add_extra(parser *p, cptx_kernel *k, const char *from)
{
	const char *text = parse_collapse(p, from, p->stop);

	if (!text || !arena_push(&p->m->a, &k->extra, k->nextra, &k->cap_extra, sizeof *k->extra))
		return parse_out_of_memory(p);
	k->extra[k->nextra++] = text;
	return true;
}

static bool read_strings(parser *p)
{
	char found[24];
	do {
		if (*p->p != '"')
			return parse_error(p, p->p, CPTX_E_PARSE, "expected a string in double quotes, found %s", parse_found(p, found));
		const char *from = p->p++;
		while (p->p < p->end && *p->p != '"' && *p->p != '\n')
			p->p++;
		if (*p->p != '"')
			return parse_error(p, from, CPTX_E_PARSE, "this string never ends; close it with \"");
		p->stop = ++p->p;
		parse_blanks(p);
	} while (parse_take(p, ','));
	return true;
}

bool parse_pragma(parser *p) { return read_strings(p) && parse_expect(p, ';', "behind .pragma"); }

/* Directives that we keep as they stand; ptxas knows them. */
static bool read_extra(parser *p, cptx_kernel *k)
{
	static const char *const alone[] = { "noreturn", "blocksareclusters", "explicitcluster" };
	static const char *const number[] = { "abi_preserve", "abi_preserve_control", "maxnctapersm" };
	const char *from = p->p;
	uint32_t ignored;

	for (unsigned i = 0; i < ARRAY_LEN(alone); i++)
		if (parse_directive(p, alone[i]))
			return add_extra(p, k, from);
	for (unsigned i = 0; i < ARRAY_LEN(number); i++)
		if (parse_directive(p, number[i]))
			return read_number(p, &ignored, "the argument of this directive") && add_extra(p, k, from);
	if (parse_directive(p, "pragma"))
		return parse_pragma(p) && add_extra(p, k, from);
	size_t n = strcspn(from, " \t\r\n;{");
	return parse_error(p, from, CPTX_E_PARSE, "'%.*s' is no directive in front of a body", (int)MIN(n, (size_t)40), from);
}

static bool read_directives(parser *p, cptx_kernel *k)
{
	while (*p->p == '.') {
		bool ok;
		if (parse_directive(p, "reqntid"))
			ok = read_dims(p, k->opt.block, "a dimension of the block");
		else if (parse_directive(p, "maxntid"))
			ok = read_dims(p, k->opt.max_block, "a dimension of the block");
		else if (parse_directive(p, "minnctapersm"))
			ok = read_number(p, &k->opt.min_ctas, "the number of CTAs");
		else if (parse_directive(p, "maxnreg"))
			ok = read_number(p, &k->opt.max_regs, "the number of registers");
		else if (parse_directive(p, "reqnctapercluster"))
			ok = read_dims(p, k->opt.cluster, "a dimension of the cluster");
		else if (parse_directive(p, "maxclusterrank"))
			ok = read_number(p, &k->opt.max_cluster_rank, "the number of CTAs");
		else
			ok = read_extra(p, k);
		if (!ok)
			return false;
	}
	return true;
}

/* ---- the head ---- */

static bool same_argument(const cptx_kernel *f, const ir_arg *a, const cptx_kernel *g, const ir_arg *b)
{
	if ((a->sym == IR_NONE) != (b->sym == IR_NONE))
		return false;
	if (a->sym == IR_NONE)
		return arch_types[f->reg[a->reg].type].bits == arch_types[g->reg[b->reg].type].bits;
	return f->sym[a->sym]->size == g->sym[b->sym]->size;
}

static bool same_signature(const cptx_kernel *f, const cptx_kernel *g)
{
	if (f->is_func != g->is_func || f->narg != g->narg || f->nresult != g->nresult)
		return false;
	for (size_t i = 0; i < f->narg; i++)
		if (!same_argument(f, &f->arg[i], g, &g->arg[i]))
			return false;
	for (size_t i = 0; i < f->nresult; i++)
		if (!same_argument(f, &f->result[i], g, &g->result[i]))
			return false;
	return true;
}

/* "(results) name (parameters)" and what follows up to the body; named: parameters become names of the scope. */
static bool read_signature(parser *p, cptx_kernel *k, word *name, bool named)
{
	char found[24];
	const char *at = p->p;

	if (parse_take(p, '(') && !read_arguments(p, k, &k->result, &k->nresult, &k->cap_result, named))
		return false;
	at = p->p;
	if (!parse_word(p, name))
		return parse_error(p, at, CPTX_E_PARSE, "expected the name of the %s, found %s", k->is_func ? "function" : "kernel",
		                   parse_found(p, found));
	if (parse_take(p, '(') && !read_arguments(p, k, &k->arg, &k->narg, &k->cap_arg, named))
		return false;
	return true;
}

bool parse_signature(parser *p, cptx_kernel *k)
{
	word ignored;
	return read_signature(p, k, &ignored, false) && read_directives(p, k);
}

/*
 * The text of a head is read twice: results stand in front of the name, which belongs to the module, but their own names to
 * the scope of the body.
 */
static bool read_name(parser *p, cptx_kernel *k, cptx_kernel **declared)
{
	const char *at = p->p, *line_start = p->line_start;
	cptx_kernel scratch = *k; /* its symbols are seen by nobody */
	uint32_t line = p->line;
	size_t ncomment = p->ncomment;
	word name;

	p->k = &scratch;
	if (!read_signature(p, &scratch, &name, false))
		return false;
	p->k = k;
	p->ncomment = ncomment;
	p->p = at;
	p->line = line;
	p->line_start = line_start;
	const binding *b = names_find(p, &name);
	if (b && b->kind == NAME_FUNC) {
		*declared = p->m->body[b->id - 1];
		k->name = (*declared)->name;
		return same_signature(*declared, &scratch) ||
		       parse_error(p, name.s, CPTX_E_PARSE, "'%s' was declared above with other parameters", k->name);
	}
	b = names_bind(p, &name, NAME_FUNC, k->number, 1);
	k->name = b ? names_text(p, b) : "";
	return b != NULL;
}

/* .attribute(.unified(uuid1, uuid2)) behind .func */
static bool read_attribute(parser *p, cptx_kernel *k)
{
	const char *from = p->p;
	size_t n = strcspn(p->p, ")\n");

	if (p->p[n] != ')' || p->p[n + 1] != ')')
		return parse_error(p, from, CPTX_E_PARSE, "the attribute of a function is (.unified(uuid1, uuid2))");
	p->stop = p->p += n + 2;
	k->attribute = parse_collapse(p, from, p->p);
	parse_blanks(p);
	return k->attribute != NULL;
}

static bool read_body(parser *p, cptx_kernel *k, cptx_kernel *declared)
{
	if (declared && (declared->has_body || declared->def))
		return parse_error(p, p->start, CPTX_E_PARSE, "'%s' is defined twice", k->name);
	if (declared)
		declared->def = k;
	p->stop = p->p; /* comments in front of the brace belong to the head */
	ir_top *t = parse_top(p, TOP_BODY);
	if (!t)
		return false;
	t->k = k;
	k->src = (uint32_t)(p->start - p->begin);
	k->src_len = (uint32_t)(p->p - p->start);
	ir_body_link(k);
	parse_take(p, '{');
	parse_body(p);
	t->src_len = (uint32_t)(p->stop - p->begin) - t->src;
	return true;
}

bool parse_function(parser *p, unsigned linkage)
{
	char found[24];
	cptx_kernel *declared = NULL, *k = ir_body_new(p->m, parse_site(p), "");
	bool ok = false;

	if (!k)
		return parse_out_of_memory(p);
	k->closed = true;
	k->linkage = (uint8_t)linkage;
	k->is_func = !parse_directive(p, "entry");
	if (k->is_func && !parse_directive(p, "func"))
		return parse_error(p, p->p, CPTX_E_PARSE, "expected .entry, .func or a declaration, found %s",
		                   parse_found(p, found));
	p->k = k;
	if (parse_directive(p, "attribute") && !read_attribute(p, k))
		goto out;
	if (!read_name(p, k, &declared) || !names_enter(p))
		goto out;
	word name;
	if (read_signature(p, k, &name, true) && read_directives(p, k) && (k->is_func || publish_parameters(p, k))) {
		if (*p->p == '{') {
			ok = read_body(p, k, declared);
		} else if (parse_take(p, ';')) {
			ir_top *t = parse_top(p, TOP_PROTO);
			if (t)
				t->k = k;
			ok = t != NULL;
		} else {
			parse_error(p, p->p, CPTX_E_PARSE, "expected { or ; behind the head of '%s', found %s", k->name,
			            parse_found(p, found));
		}
	}
	while (p->names.nscope > 2)
		names_leave(p);
out:
	p->k = NULL;
	return ok;
}
