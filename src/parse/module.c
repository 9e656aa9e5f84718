/* SPDX-License-Identifier: MIT */
/* Reads PTX text into a module: the statements outside of functions. */
#include "base/options.h"
#include "parse/parser.h"

#include <stdio.h>

enum { MOST_ERRORS = 1000 };

static bool top_text(parser *p)
{
	const char *text = parse_collapse(p, p->start, p->stop);
	ir_top *t = text ? parse_top(p, TOP_TEXT) : NULL;

	if (t)
		t->text = text;
	return t != NULL;
}

/* ---- .version, .target, .address_size ---- */

static bool read_version(parser *p)
{
	const char *s = p->p;
	unsigned major = 0, minor = 0;

	while (*s >= '0' && *s <= '9' && major < 100)
		major = major * 10 + (unsigned)(*s++ - '0');
	if (s == p->p || *s != '.' || s[1] < '0' || s[1] > '9')
		return parse_error(p, p->p, CPTX_E_PARSE, "expected a version such as 8.0 behind .version");
	for (s++; *s >= '0' && *s <= '9' && minor < 100; s++)
		minor = minor * 10 + (unsigned)(*s - '0');
	if (!arch_is_version(major * 10 + minor) || minor > 9)
		return parse_error(p, p->p, CPTX_E_PARSE, "there is no PTX version %u.%u", major, minor);
	p->m->version = p->m->text_version = (uint16_t)(major * 10 + minor);
	p->m->version_src = (ir_span){ (uint32_t)(p->p - p->begin), (uint32_t)(s - p->p) };
	p->stop = p->p = s;
	parse_blanks(p);
	return true;
}

static bool read_target(parser *p)
{
	static const char *const options[] = { "texmode_unified", "texmode_independent", "debug" };
	const char *texmode = NULL;
	char name[32];
	word w;

	do {
		const char *at = p->p;
		if (!parse_word(p, &w))
			return parse_error(p, at, CPTX_E_PARSE, "expected a target such as sm_90a behind .target");
		snprintf(name, sizeof name, "%.*s", (int)MIN(w.len, 31u), w.s);
		bool option = false;
		for (unsigned i = 0; i < ARRAY_LEN(options); i++)
			option |= !strcmp(options[i], name);
		if (!option && p->m->target)
			return parse_error(p, at, CPTX_E_PARSE,
			                   "'%s' is no option of .target; debug, texmode_unified, texmode_independent are", name);
		if (option && !p->m->target)
			return parse_error(p, at, CPTX_E_PARSE, "expected a target such as sm_90a in front of '%s'", name);
		if (option && *name == 't' && texmode && strcmp(name, texmode))
			return parse_error(p, at, CPTX_E_PARSE, "texmode_unified and texmode_independent: write one of the two");
		if (option && *name == 't')
			texmode = !strcmp(name, options[0]) ? options[0] : options[1];
		if (option && texmode == options[1])
			parse_needs(p, at, DIR_TEXMODE_INDEPENDENT);
		if (option)
			continue;
		char as_sm[40];
		snprintf(as_sm, sizeof as_sm, "%s", name);
		if (!strncmp(name, "compute_", 8))
			snprintf(as_sm, sizeof as_sm, "sm_%s", name + 8);
		p->m->target = p->m->text_target = arch_target_any(as_sm);
		p->m->target_src = (ir_span){ (uint32_t)(at - p->begin), w.len };
		if (!p->m->target)
			return parse_error(p, at, CPTX_E_TARGET, "there is no target '%s'; `cptx arch` lists them", name);
		if (p->m->version < p->m->target->ptx)
			parse_error(p, at, CPTX_E_TARGET, ".target %s needs .version %u.%u or later; the text says %u.%u", name,
			            p->m->target->ptx / 10u, p->m->target->ptx % 10u, p->m->version / 10u, p->m->version % 10u);
	} while (parse_take(p, ','));
	return true;
}

/* The words behind the first target, as text. */
static const char *target_options(parser *p, const char *from)
{
	const char *comma = text_find(from, ',', (size_t)(p->stop - from));
	return comma ? parse_collapse(p, comma, p->stop) : "";
}

static bool is_utf16(const char *s, size_t n)
{
	return n >= 4 && (!memcmp(s, "\xff\xfe", 2) || !memcmp(s, "\xfe\xff", 2) || (!s[0] && s[1] && !s[2] && s[3]) ||
	                  (s[0] && !s[1] && s[2] && !s[3]));
}

static bool no_version(parser *p)
{
	size_t n = (size_t)(p->end - p->begin);
	char found[24];

	if (is_utf16(p->begin, n))
		return parse_error(p, p->begin, CPTX_E_PARSE, "the text is UTF-16; PTX is ASCII");
	if (p->p == p->end && memchr(p->begin, '\r', n) && !memchr(p->begin, '\n', n))
		return parse_error(p, p->begin, CPTX_E_PARSE,
		                   "the text is one comment, for its lines end in CR alone; PTX takes LF, or CR LF");
	return parse_error(p, p->p, CPTX_E_PARSE, "PTX text begins with .version, such as .version 8.0; found %s",
	                   parse_found(p, found));
}

static bool read_head(parser *p)
{
	const char *from = p->p;
	uint32_t bits = 64;

	p->start_line = p->line;
	p->start = from;
	if (!parse_directive(p, "version"))
		return no_version(p);
	if (!read_version(p))
		return false;
	if (!parse_directive(p, "target"))
		return parse_error(p, p->p, CPTX_E_PARSE, "expected .target behind .version, such as .target sm_90a");
	const char *target = p->p;
	if (!read_target(p))
		return false;
	p->m->target_more = p->m->text_more = target_options(p, target);
	p->m->target_end = (uint32_t)(p->stop - p->begin);
	if (!p->m->target_more)
		return false;
	if (!p->m->target)
		return parse_error(p, target, CPTX_E_PARSE, "expected a target such as sm_90a behind .target");
	const char *size = p->p;
	if (parse_listed(p, DIR_ADDRESS_SIZE) && !parse_literal(p, 32, 64, &bits, "the size of an address"))
		return false;
	if (bits != 64)
		return parse_error(p, size, CPTX_E_PARSE, "addresses of %u bits are no longer supported; .address_size 64 is",
		                   (unsigned)bits);
	p->m->top_first->src = (uint32_t)(from - p->begin);
	p->m->top_first->src_len = (uint32_t)(p->stop - from);
	return true;
}

/* ---- directives ---- */

static bool read_file(parser *p)
{
	const char *at = p->p;
	uint32_t number;
	int64_t v;

	if (!parse_literal(p, 0, UINT32_MAX, &number, "the number of a file"))
		return false;
	word w = parse_word_of(at, (size_t)(p->stop - at));
	w.at = at;
	if (names_find(p, &w))
		return parse_error(p, at, CPTX_E_PARSE, "there is a file %u above already", (unsigned)number);
	if (!names_bind(p, &w, NAME_FILE, number, 1) || !parse_string(p))
		return false;
	if (*p->p == ',')
		parse_needs(p, p->p, DIR_FILE_TIME);
	while (parse_take(p, ','))
		if (!parse_int(p, 0, INT64_MAX, &v, "time or size of the file"))
			return false;
	return top_text(p);
}

/* Reads .section .debug_info { ... }, which is kept as text. */
static bool read_section(parser *p)
{
	const char *from = p->start;
	size_t behind = 0;

	if (!parse_section(p))
		return false;
	for (size_t i = 0; i < p->ncomment; i++) /* comments inside of the section are part of its text */
		if (p->comments[i].at >= p->stop)
			p->comments[behind++] = p->comments[i];
	p->ncomment = behind;
	char *text = ARENA_ARRAY(&p->m->a, char, (size_t)(p->stop - from) + 1);
	ir_top *t = text ? parse_top(p, TOP_TEXT) : NULL;
	if (!t)
		return parse_out_of_memory(p);
	char *out = text;
	for (const char *s = from; s < p->stop; s++)
		if (*s != '\r')
			*out++ = *s;
	*out = 0;
	t->text = text;
	return true;
}

static bool read_alias(parser *p)
{
	const cptx_kernel *f[2];
	word w[2];

	for (int i = 0; i < 2; i++) {
		const char *at = p->p;
		if (!parse_word(p, &w[i]))
			return parse_error(p, at, CPTX_E_PARSE, "expected .alias name, function;");
		const binding *b = names_find(p, &w[i]);
		if (!b || b->kind != NAME_FUNC)
			return parse_error(p, at, CPTX_E_PARSE, "'%.*s' is no function that is declared above", (int)MIN(w[i].len, 64u),
			                   w[i].s);
		f[i] = p->m->body[b->id - 1];
		if (!f[i]->is_func || (!i && (f[i]->has_body || f[i]->def)))
			return parse_error(p, at, CPTX_E_PARSE, "'%s' %s", f[i]->name,
			                   f[i]->is_func ? "has a body; an alias is a function that is only declared" : "is a kernel");
		if (i && f[0] == f[1])
			return parse_error(p, at, CPTX_E_PARSE, "'%s' cannot be another name of itself", f[i]->name);
		if (i && !ir_same_signature(f[0], f[1]))
			return parse_error(p, at, CPTX_E_PARSE, "'%s' has other parameters or results than '%s'", f[1]->name,
			                   f[0]->name);
		if (!i && !parse_expect(p, ',', "between the two names of .alias"))
			return false;
	}
	p->m->body[names_find(p, &w[0])->id - 1]->aliased = true;
	return parse_expect(p, ';', "behind .alias") && top_text(p);
}

static unsigned read_linkage(parser *p)
{
	return parse_directive(p, "extern")    ? LINK_EXTERN
	       : parse_directive(p, "visible") ? LINK_VISIBLE
	       : parse_listed(p, DIR_WEAK)     ? LINK_WEAK
	       : parse_listed(p, DIR_COMMON)   ? LINK_COMMON
	                                       : LINK_NONE;
}

static bool top_statement(parser *p)
{
	const char *at = p->p;
	char found[24];

	if (*p->p != '.')
		return parse_error(p, at, CPTX_E_PARSE, "expected a directive, such as .visible .entry, found %s",
		                   parse_found(p, found));
	if (parse_directive(p, "file"))
		return read_file(p);
	if (parse_listed(p, DIR_SECTION))
		return read_section(p);
	if (parse_listed(p, DIR_ALIAS))
		return read_alias(p);
	if (parse_listed(p, DIR_PRAGMA))
		return parse_pragma(p, PRAGMA_MODULE) && top_text(p);
	unsigned linkage = read_linkage(p);
	const char *space = p->p;
	if (parse_space(p)) {
		p->p = space;
		return parse_variables(p, linkage);
	}
	size_t n = strcspn(p->p, " \t\r\n;({");
	bool function = !strncmp(p->p, ".entry", 6) || !strncmp(p->p, ".func", 5);
	if (function)
		return parse_function(p, linkage);
	if (!strncmp(p->p, ".reg", 4))
		return parse_error(p, at, CPTX_E_PARSE, "registers belong into functions");
	return parse_error(p, p->p, CPTX_E_PARSE, "'%.*s' is no directive of a module", (int)MIN(n, (size_t)40), p->p);
}

/* Skips the rest of a wrong statement: to behind the semicolon, over braces, or in front of a directive that only stands
 * outside of functions. */
static void recover(parser *p)
{
	size_t depth = 0;

	for (; p->p < p->end; p->p++) {
		if (*p->p == '\n') {
			p->line++;
			p->line_start = p->p + 1;
			if (!depth &&
			    (!strncmp(p->p + 1, ".visible", 8) || !strncmp(p->p + 1, ".entry", 6) || !strncmp(p->p + 1, ".func", 5)))
				break;
		}
		depth += *p->p == '{';
		if (*p->p == '}' && (!depth || --depth == 0)) {
			p->p++;
			parse_blanks(p);
			p->p += *p->p == ';'; /* the semicolon of initial values */
			break;
		}
		if (*p->p == ';' && !depth) {
			p->p++;
			break;
		}
	}
	parse_blanks(p);
}

static bool has_predicate(const cptx_kernel *f, const ir_arg *a, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].sym == IR_NONE && f->reg[a[i].reg].type == CPTX_PRED)
			return true;
	return false;
}

/* Checks that calls pass no predicates, except where a function of several results keeps ptxas from its calling convention.
 */
static void check_predicates(parser *p)
{
	const cptx_module *m = p->m;

	for (size_t i = p->first_body; i < m->nbody; i++)
		if (m->body[i]->nresult > 1)
			return;
	for (size_t i = p->first_body; i < m->nbody; i++) {
		const cptx_kernel *f = m->body[i];
		if (f->called && (has_predicate(f, f->arg, f->narg) || has_predicate(f, f->result, f->nresult)))
			parse_error(p, p->begin + f->src, CPTX_E_PARSE,
			            "'%s' is called with a predicate, which ptxas cannot pass; pass an integer made by selp", f->name);
	}
}

/* Checks what needs the whole text. */
static void check_whole(parser *p)
{
	const cptx_module *m = p->m;

	check_predicates(p);
	if (strstr(m->target_more, "debug") && !p->has_section)
		parse_error(p, p->begin + m->target_src.src, CPTX_E_PARSE,
		            ".target with debug needs debug information: sections such as .section .debug_info { ... }");
	for (size_t i = p->first_body; i < m->nbody; i++) {
		const cptx_kernel *k = m->body[i];
		word w = parse_word_of(k->name, strlen(k->name));
		const binding *b = k->is_proto ? NULL : names_find(p, &w);
		if (b && m->body[b->id - 1] == k && !k->has_body && !k->def && !k->aliased && k->linkage != LINK_EXTERN)
			parse_error(p, p->begin + k->src, CPTX_E_PARSE,
			            "'%s' is declared and never defined; write .extern if it is elsewhere", k->name);
	}
}

static void read_module(parser *p)
{
	parse_blanks(p);
	const char *mark = p->p;
	if (!strncmp(mark, "\xef\xbb\xbf", 3)) {
		parse_error(p, mark, CPTX_E_PARSE, "the text begins with a byte order mark; PTX is ASCII, without one");
		p->p = MAX(p->p, mark + 3); /* p->p is at the end already, if the limit of errors was reached */
	}
	parse_blanks(p);
	size_t ncomment = p->ncomment;
	if (!read_head(p))
		return; /* without version and target nothing can be checked */
	/* comments in front of the head stay in front */
	ir_top *head = p->m->top_first;
	size_t behind = p->ncomment - ncomment;
	p->ncomment = ncomment;
	parse_flush_comments(p);
	if (head->next && !p->no_memory && !p->first_body) {
		head->next->prev = NULL;
		p->m->top_first = head->next;
		head->prev = p->m->top_last;
		head->next = NULL;
		p->m->top_last->next = head;
		p->m->top_last = head;
	}
	for (size_t i = 0; i < behind; i++)
		p->comments[i] = p->comments[ncomment + i];
	p->ncomment = behind;
	while (p->p < p->end) {
		p->start = p->p;
		p->start_line = p->line;
		if (!top_statement(p) && p->p < p->end)
			recover(p);
	}
	p->start_line = p->line;
	p->start = p->stop = p->p;
	parse_flush_comments(p);
	if (!p->nerror && !p->no_memory)
		check_whole(p);
}

/* A copy of the text with TEXT_BEHIND NULs behind it; NULL, with an error in the module if there is one to tell. */
static char *copy_text(cptx_module *m, const parse_input *in)
{
	char *copy = in->size < UINT32_MAX ? HEAP_ARRAY(&m->a.hook, char, NULL, in->size + TEXT_BEHIND) : NULL;

	if (in->size >= UINT32_MAX)
		error_set(&m->err, CPTX_E_LIMIT, NOWHERE, "the text has %zu bytes; at most 4 GiB can be read", in->size);
	if (!copy)
		return NULL;
	if (in->size)
		memcpy(copy, in->text, in->size);
	memset(copy + in->size, 0, TEXT_BEHIND);
	return copy;
}

static void read_copy(parser *p, const char *copy, size_t size)
{
	cptx_module *m = p->m;

	p->begin = p->p = p->stop = p->start = p->line_start = copy;
	p->end = copy + size;
	p->line = p->start_line = 1;
	p->first_body = m->nbody;
	p->has_section = false;
	p->memory_before = m->a.total - (size_t)(m->a.end - m->a.at);
	read_module(p);
}

/* Reads one text of several that are linked.  The module is of the newest target and version that one of them has. */
static void read_linked(parser *p, const char *copy, size_t size)
{
	cptx_module *m = p->m;
	const cptx_target *target = m->target;
	uint16_t version = m->version;

	m->target = NULL;
	read_copy(p, copy, size);
	if (target && (!m->target || m->target->compute_capability < target->compute_capability))
		m->target = m->text_target = target;
	m->version = m->text_version = MAX(m->version, version);
	names_end_text(p);
	p->ncomment = 0;
}

/* Whether the texts can be read, and a parser for them; false without an error: memory is short. */
static parser *parser_new(cptx_module *m, const parse_input *in, size_t n, const cptx_parse_opt *o)
{
	enum { CHUNK = 16 << 10 };

	for (size_t i = 0; i < n; i++)
		if (in[i].size && !in[i].text)
			return NULL;
	parser *p = HEAP_ARRAY(&m->a.hook, parser, NULL, 1);
	if (!p)
		return NULL;
	memset(p, 0, sizeof *p);
	p->m = m;
	arena_init(&p->spellings, &m->a.hook);
	arena_init(&p->forms, &m->a.hook);
	p->spellings.least = p->forms.least = CHUNK;
	m->parsed = true;
	p->report = o->report;
	p->user = o->user;
	p->columns = !o->keep;
	p->most_errors = o->most_errors ? o->most_errors : MOST_ERRORS;
	return p;
}

/* Ends the reading: the parser is freed. */
static void finish(parser *p)
{
	cptx_module *m = p->m;

	m->misread = p->nerror && !p->no_memory && m->target && m->version >= m->target->ptx;
	m->a.ahead = m->a.total / 64; /* freezing needs little memory */
	names_free(p);
	arena_free(&p->spellings);
	arena_free(&p->forms);
	if (p->comments)
		heap_realloc(&m->a.hook, p->comments, 0);
	heap_realloc(&m->a.hook, p, 0);
}

cptx_module *parse_inputs(const parse_input *in, size_t n, const cptx_parse_opt *o)
{
	cptx_module *m = cptx_module_new(o->allocator);
	parser *p = m ? parser_new(m, in, n, o) : NULL;
	bool ok = p != NULL, begun = ok && names_init(p);

	for (size_t i = 0; i < n && begun && ok && m->err.code == CPTX_OK; i++) {
		char *copy = copy_text(m, &in[i]);
		p->file = arena_strdup(&m->a, in[i].name ? in[i].name : "ptx");
		ok = (copy || m->err.code != CPTX_OK) && p->file;
		if (ok && copy && n == 1)
			read_copy(p, copy, in[i].size);
		else if (ok && copy)
			read_linked(p, copy, in[i].size);
		for (const cptx_kernel *k = copy && ok && p->nerror && !p->no_memory && !p->columns ? m->first : NULL; k;
		     k = k->next)
			parse_keep_columns(p, k);
		if (copy && ok && o->keep && n == 1 && m->err.code == CPTX_OK) {
			m->source = copy; /* lies in the arena, and is freed with the module */
			m->source_size = in[i].size;
		} else if (copy) {
			heap_realloc(&m->a.hook, copy, 0);
		}
	}
	if (p)
		finish(p);
	if (ok)
		return m;
	cptx_module_destroy(m);
	return NULL;
}

cptx_module *cptx_parse(const char *text, size_t size, const cptx_parse_opt *opt)
{
	cptx_parse_opt o;
	cptx_error err = { .code = CPTX_OK };

	if (OPTIONS_READ(cptx_parse_opt, &o, opt, NOWHERE, &err))
		return parse_inputs(CPTX_OPT_(parse_input, .text = text, .size = size, .name = o.name), 1, &o);
	cptx_module *m = cptx_module_new(o.allocator);
	if (m)
		m->err = err;
	return m;
}
