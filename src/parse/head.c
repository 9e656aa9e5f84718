/* SPDX-License-Identifier: MIT */
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
		if (a.sym != IR_NONE)
			k->sym[a.sym]->is_param = list == &k->arg ? PARAM_IN : PARAM_OUT;
		if (!arena_push(&p->m->a, list, *n, cap, sizeof **list))
			return parse_out_of_memory(p);
		(*list)[(*n)++] = a;
	} while (parse_take(p, ','));
	return parse_expect(p, ')', "behind the parameters");
}

/* Collects what launches need to know about a kernel's parameters. */
static bool publish_parameters(parser *p, cptx_kernel *k)
{
	unsigned most = p->m->version < 15 ? 256 : p->m->version >= 81 && p->m->target->number >= 70 ? 32764 : 4352;
	uint64_t end = 0;

	for (size_t i = 0; i < k->narg; i++) {
		if (k->arg[i].sym == IR_NONE)
			continue;
		const ir_sym *s = k->sym[k->arg[i].sym];
		end = (end + MAX(s->align, 1u) - 1) / MAX(s->align, 1u) * MAX(s->align, 1u) + s->size;
		if (end > most)
			return parse_error(p, p->start, CPTX_E_LIMIT,
			                   "%llu bytes of parameters, with '%s'; a kernel has at most %u (32764 from .version 8.1 and "
			                   "sm_70 on)",
			                   (unsigned long long)end, s->name, most);
		if (!ir_publish_param(k, s))
			return parse_out_of_memory(p);
	}
	return true;
}

/* Whether cptx_call can pass a parameter or result: a single value of 16 bits or more, in memory. */
static bool is_plain(const cptx_kernel *k, const ir_arg *a)
{
	const ir_sym *s = a->sym == IR_NONE ? NULL : k->sym[a->sym];
	return s && s->space == CPTX_PARAM && !s->ndim && !s->vec && s->size >= 2 && s->size <= 8;
}

static bool publish_function(parser *p, cptx_kernel *k)
{
	bool plain = k->nresult <= 1 && (!k->nresult || is_plain(k, k->result));

	for (size_t i = 0; i < k->narg; i++)
		plain &= is_plain(k, &k->arg[i]);
	k->odd_call = !plain;
	for (size_t i = 0; plain && i < k->narg; i++) {
		const ir_sym *s = k->sym[k->arg[i].sym];
		if (!arena_push(&p->m->a, &k->param, k->nparam, &k->cap_param, sizeof *k->param) ||
		    !arena_push(&p->m->a, &k->param_val, k->nparam, &k->cap_param_val, sizeof *k->param_val))
			return parse_out_of_memory(p);
		k->param_val[k->nparam] = (cptx_val){ .kind = CPTX_VAL_REG, .type = s->type, .count = 1 };
		k->param[k->nparam++] = (cptx_param_info){ s->name, (enum cptx_type)s->type, (uint32_t)s->size, MAX(s->align, 1u) };
	}
	if (plain && k->nresult) {
		k->ret = ir_symbol_value(p->m, k, k->result[0].sym);
		k->ret_type = k->sym[k->result[0].sym]->type;
	}
	return true;
}

/* ---- directives in front of the body ---- */

static bool read_dims(parser *p, uint32_t dims[3], const char *what)
{
	dims[1] = dims[2] = 1;
	for (int i = 0; i < 3; i++)
		if (!parse_literal(p, 1, UINT32_MAX, &dims[i], what))
			return false;
		else if (i == 2 || !parse_take(p, ','))
			break;
	return true;
}

static bool read_number(parser *p, uint32_t *v, const char *what) { return parse_literal(p, 1, UINT32_MAX, v, what); }

static bool add_extra(parser *p, cptx_kernel *k, const char *from)
{
	const char *text = parse_collapse(p, from, p->stop);

	if (!text || !arena_push(&p->m->a, &k->extra, k->nextra, &k->cap_extra, sizeof *k->extra))
		return parse_out_of_memory(p);
	k->extra[k->nextra++] = text;
	return true;
}

bool parse_string(parser *p)
{
	char found[24];

	if (*p->p != '"')
		return parse_error(p, p->p, CPTX_E_PARSE, "expected a string in double quotes, found %s", parse_found(p, found));
	const char *from = p->p++;
	while (p->p < p->end && *p->p != '"' && *p->p != '\n')
		p->p++;
	if (p->p >= p->end || *p->p != '"')
		return parse_error(p, from, CPTX_E_PARSE, "this string never ends; close it with \"");
	p->stop = ++p->p;
	parse_blanks(p);
	for (const char *s = from; s < p->stop; s++) /* ptxas takes these, but they control the terminal that shows the text */
		if ((unsigned char)*s < ' ' ? *s != '\t' && *s : *s == 127)
			return parse_error(p, s, CPTX_E_PARSE, "a control byte (0x%02x) in a string", (unsigned char)*s);
	return parse_ascii(p, from, p->stop);
}

/* Reads further directives, which are kept as text; ptxas knows them. */
static bool read_extra(parser *p, cptx_kernel *k)
{
	static const struct {
		enum arch_directive id;
		bool func, number;
	} extras[] = { { DIR_NORETURN, true, false },
		           { DIR_ABI_PRESERVE, true, true },
		           { DIR_ABI_PRESERVE_CONTROL, true, true },
		           { DIR_EXPLICITCLUSTER, false, false },
		           { DIR_BLOCKSARECLUSTERS, false, false },
		           { DIR_MINPERCTAMEMORY, false, true } };
	const char *from = p->p;
	uint32_t ignored;

	for (unsigned i = 0; i < ARRAY_LEN(extras); i++) {
		if (extras[i].func != k->is_func || !parse_listed(p, extras[i].id))
			continue;
		if (extras[i].id == DIR_NORETURN && k->nresult)
			return parse_error(p, from, CPTX_E_PARSE, ".noreturn is for functions without results");
		if (extras[i].number && !read_number(p, &ignored, "the argument of this directive"))
			return false;
		return add_extra(p, k, from);
	}
	if (!k->is_func && parse_listed(p, DIR_PRAGMA))
		return parse_pragma(p, PRAGMA_HEAD) && add_extra(p, k, from);
	size_t n = strcspn(from, " \t\r\n;{");
	return parse_error(p, from, CPTX_E_PARSE, "'%.*s' is no directive in front of the body of a %s", (int)MIN(n, (size_t)40),
	                   from, k->is_func ? "function" : "kernel");
}

static bool read_directives(parser *p, cptx_kernel *k)
{
	const char *at = p->p;

	while (*p->p == '.') {
		bool ok;
		if (k->is_func)
			ok = read_extra(p, k);
		else if (parse_listed(p, DIR_REQNTID))
			ok = read_dims(p, k->opt.block, "a dimension of the block");
		else if (parse_listed(p, DIR_MAXNTID))
			ok = read_dims(p, k->opt.max_block, "a dimension of the block");
		else if (parse_listed(p, DIR_MINNCTAPERSM))
			ok = read_number(p, &k->opt.min_ctas, "the number of CTAs");
		else if (parse_listed(p, DIR_MAXNREG))
			ok = read_number(p, &k->opt.max_regs, "the number of registers");
		else if (parse_listed(p, DIR_REQNCTAPERCLUSTER))
			ok = read_dims(p, k->opt.cluster, "a dimension of the cluster");
		else if (parse_listed(p, DIR_MAXCLUSTERRANK))
			ok = read_number(p, &k->opt.max_cluster_rank, "the number of CTAs");
		else
			ok = read_extra(p, k);
		if (!ok)
			return false;
	}
	const cptx_kernel_opt *o = &k->opt;
	if (o->block[0] && o->max_block[0])
		return parse_error(p, at, CPTX_E_PARSE, ".reqntid and .maxntid: write one of the two");
	if (o->cluster[0] && o->max_cluster_rank)
		return parse_error(p, at, CPTX_E_PARSE, ".reqnctapercluster and .maxclusterrank: write one of the two");
	if (ir_grid_of_clusters(k) && !(o->block[0] && o->cluster[0]))
		return parse_error(p, at, CPTX_E_PARSE, ".blocksareclusters needs .reqntid and .reqnctapercluster beside it");
	return true;
}

/* ---- the head ---- */

/* Reads "(results)", if there are any; named: their names are entered into the scope. */
static bool read_results(parser *p, cptx_kernel *k, bool named)
{
	const char *at = p->p;

	if (*p->p == '(' && !k->is_func)
		return parse_error(p, at, CPTX_E_PARSE, "a kernel has no results");
	if (parse_take(p, '(') && !read_arguments(p, k, &k->result, &k->nresult, &k->cap_result, named))
		return false;
	for (size_t i = 0; i < k->nresult && k->nresult > 1; i++)
		if (k->result[i].sym != IR_NONE)
			return parse_error(p, at, CPTX_E_PARSE, "several results are registers, (.reg .b32 a, .reg .b32 b)");
	return true;
}

static bool read_name(parser *p, const cptx_kernel *k, word *name)
{
	char found[24];

	return parse_word(p, name) || parse_error(p, p->p, CPTX_E_PARSE, "expected the name of the %s, found %s",
	                                          k->is_func ? "function" : "kernel", parse_found(p, found));
}

static bool read_parameters(parser *p, cptx_kernel *k, bool named)
{
	return !parse_take(p, '(') || read_arguments(p, k, &k->arg, &k->narg, &k->cap_arg, named);
}

bool parse_signature(parser *p, cptx_kernel *k)
{
	word ignored;
	return read_results(p, k, false) && read_name(p, k, &ignored) && read_parameters(p, k, false) && read_directives(p, k);
}

/* Enters the name into the module; *declared gets the function that the text above declares with it. */
static bool bind_name(parser *p, cptx_kernel *k, const word *name, cptx_kernel **declared)
{
	const binding *b = names_declared(p, name, k->linkage);

	if (b && b->kind == NAME_FUNC) {
		*declared = p->m->body[b->id - 1];
		k->name = (*declared)->name;
	} else {
		b = names_bind(p, name, NAME_FUNC, k->number, 1);
		k->name = b ? names_text(p, b) : "";
	}
	return b && (ir_index_global(p->m, NAMED_BODY, k->number - 1) || parse_out_of_memory(p));
}

/* Whether another text declares it, which this one is linked to. */
static bool is_earlier(const parser *p, const cptx_kernel *k) { return k->number <= p->first_body; }

/* The definition that a declaration stands for; NULL: there is none yet. */
static const cptx_kernel *definition(const cptx_kernel *declared)
{
	return declared && declared->def ? declared->def : declared && declared->has_body ? declared : NULL;
}

/* Whether a head, which a body follows or not, defines once more what is defined already. */
static bool is_twice(const parser *p, const cptx_kernel *k, const cptx_kernel *declared)
{
	const cptx_kernel *def = definition(declared);

	if (!def || !is_earlier(p, def))
		return def != NULL;
	return *p->p == '{' && k->linkage != LINK_WEAK && def->linkage != LINK_WEAK;
}

static bool same_as_declared(parser *p, const cptx_kernel *k, const word *name, const cptx_kernel *declared)
{
	if (!ir_same_signature(declared, k))
		return parse_error(p, name->s, CPTX_E_PARSE, "'%s' was declared above with other parameters", k->name);
	unsigned before = declared->linkage;
	return is_earlier(p, declared) || k->linkage == before || (k->linkage == LINK_NONE && before != LINK_EXTERN) ||
	       parse_error(p, name->s, CPTX_E_PARSE, "'%s' was declared %sabove; write the same here", k->name,
	                   before ? ir_linkages[before] : "without .visible, .extern or .weak ");
}

/* Reads a head, and leaves the scope of the body open.  Results stand in front of the function's name, but their names
 * belong into the scope of the body behind it; so they are read twice. */
static bool read_head(parser *p, cptx_kernel *k, word *name, cptx_kernel **declared)
{
	const char *at = p->p, *line_start = p->line_start;
	cptx_kernel scratch = *k; /* for the first reading of the results, whose symbols are dropped */
	uint32_t line = p->line;
	size_t ncomment = p->ncomment;
	bool results = *at == '(';

	p->k = &scratch;
	bool read = read_results(p, &scratch, false);
	p->k = k;
	if (!read || !read_name(p, k, name) || !bind_name(p, k, name, declared) || !names_enter(p))
		return false;
	if (results) {
		p->ncomment = ncomment;
		p->p = at;
		p->line = line;
		p->line_start = line_start;
		if (!read_results(p, k, true) || !read_name(p, k, name))
			return false;
	}
	return read_parameters(p, k, true) && (!*declared || same_as_declared(p, k, name, *declared));
}

/* Replaces the places of a body's statements by their columns, for errors (see emit_error) when the text is not kept. */
void parse_keep_columns(parser *p, const cptx_kernel *k)
{
	const char *line = p->end, *seen = p->end; /* line: start of the line; seen: no line end was found up to here */

	for (ir_item *it = k->first; it; it = it->next) {
		const char *at = p->begin + it->src;
		if (!it->src_len)
			continue;
		if (at < line)
			for (line = seen = at; line > p->begin && line[-1] != '\n'; line--)
				;
		const char *from = at; /* most statements begin their line */
		while (from > seen && from[-1] != '\n')
			from--;
		line = from > seen ? from : line;
		seen = MAX(seen, at);
		it->src = (uint32_t)(at - line) + 1;
	}
}

static bool read_body(parser *p, cptx_kernel *k, cptx_kernel *declared)
{
	if (k->linkage == LINK_EXTERN)
		return parse_error(p, p->start, CPTX_E_PARSE, "'%s' is .extern, so its body is elsewhere", k->name);
	if (declared && (!definition(declared) || k->linkage != LINK_WEAK))
		declared->def = k;
	p->stop = p->p; /* comments in front of the brace belong to the head */
	ir_top *t = parse_top(p, TOP_BODY);
	if (!t)
		return false;
	ir_top_body(t, k);
	k->src = (uint32_t)(p->start - p->begin);
	k->src_len = (uint32_t)(p->p - p->start);
	if (!ir_body_link(k))
		return parse_out_of_memory(p);
	parse_take(p, '{');
	parse_body(p);
	if (p->columns)
		parse_keep_columns(p, k);
	t->src_len = (uint32_t)(p->stop - p->begin) - t->src;
	return true;
}

/* Tells the arena how much memory the rest of the text will need if it is like the text so far. */
static void expect_more(parser *p)
{
	arena *a = &p->m->a;
	double read = (double)(p->p - p->begin) + 1, used = (double)(a->total - (size_t)(a->end - a->at) - p->memory_before);

	a->ahead = (size_t)(used / read * (double)(p->end - p->p));
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
	if (linkage == LINK_COMMON)
		return parse_error(p, p->start, CPTX_E_PARSE, ".common is for variables");
	k->is_func = !parse_directive(p, "entry");
	if (k->is_func && !parse_directive(p, "func"))
		return parse_error(p, p->p, CPTX_E_PARSE, "expected .entry, .func or a declaration, found %s",
		                   parse_found(p, found));
	p->k = k;
	if (k->is_func && parse_directive(p, "attribute") && !(k->attribute = parse_attributes(p, false))) {
		p->k = NULL;
		return false;
	}
	expect_more(p);
	word name;
	const char *directives = NULL;
	bool head = read_head(p, k, &name, &declared) && (directives = p->p, read_directives(p, k)) &&
	            (k->is_func ? publish_function(p, k) : publish_parameters(p, k));
	if (head && is_twice(p, k, declared)) {
		bool earlier = is_earlier(p, definition(declared));
		parse_error(p, name.s, earlier ? CPTX_E_COMPILE : CPTX_E_PARSE,
		            earlier ? "'%s' is defined by another text too, which this one is linked to"
		                    : "'%s' is defined above already",
		            k->name);
	} else if (head && *p->p == ';' && *directives == '.' && !k->is_func) {
		parse_error(p, directives, CPTX_E_PARSE, "the directives of a kernel stand where its body is");
	} else if (head) {
		if (*p->p == '{') {
			ok = read_body(p, k, declared);
		} else if (parse_take(p, ';')) {
			if (!k->is_func)
				parse_needs(p, p->start, DIR_EXTERN_ENTRY);
			ir_top *t = parse_top(p, TOP_PROTO);
			k->src = (uint32_t)(p->start - p->begin);
			if (t)
				ir_top_body(t, k);
			ok = t != NULL;
		} else {
			parse_error(p, p->p, CPTX_E_PARSE, "expected { or ; behind the head of '%s', found %s", k->name,
			            parse_found(p, found));
		}
	}
	while (p->names.nscope > 2)
		names_leave(p);
	p->k = NULL;
	return ok;
}
