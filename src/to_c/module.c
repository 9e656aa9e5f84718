/* SPDX-License-Identifier: MIT */
/* cptx_to_c: prints the top level of the module, in the order of the text, and the program around it. */
#include "base/options.h"
#include "to_c/to_c.h"

#include "emit/emit.h"

#include <stdio.h>

static const char *c_name(to_c *t, const char *prefix, const char *name)
{
	size_t n = strlen(name);
	char *joined = TO_C_ARRAY(t, char, n + 16);

	if (!joined)
		return "";
	snprintf(joined, n + 16, "%s%s", prefix, name + strspn(name, "_$%"));
	return names_make(t, &t->names, joined, true, NULL, IR_NONE);
}

static void put_comment(to_c *t, const char *text)
{
	buf_str(&t->out, *text ? "// " : "//");
	for (; *text; text++)
		buf_put(&t->out, *text == '\\' ? "/" : *text == '?' && text[1] == '?' ? " " : text, 1);
	buf_str(&t->out, "\n");
}

/* ---- variables ---- */

static void put_addresses(to_c *t, buf *line, const ir_sym *s)
{
	buf_str(line, ", .address = ((cptx_address[]){ ");
	for (uint32_t i = 0; i < s->nreloc; i++) {
		const ir_reloc *r = &s->reloc[i];
		bool func = r->to.kind == CPTX_VAL_FUNC;
		const char *name = func ? t->m->body[r->to.id - 1]->name : t->global[r->to.id - MODULE_SYM];
		buf_printf(line, i ? ", { %u, " : "{ %u, ", (unsigned)r->index);
		buf_printf(line, !func && r->to.offset ? "cptx_offset(cptx_find(m, \"%s\"), %d)" : "cptx_find(m, \"%s\")", name,
		           (int)r->to.offset);
		buf_printf(line, ", 0x%llX, %s }", (unsigned long long)r->mask, r->generic ? "true" : "false");
	}
	buf_printf(line, " }), .naddress = %u", (unsigned)s->nreloc);
}

static void put_global(to_c *t, to_c_body *b, uint32_t id)
{
	const ir_sym *s = t->m->sym[id];
	const char *init = NULL;

	if ((t->m->dyn_sym && t->m->dyn_sym - MODULE_SYM == id) || t->printed[id] != id)
		return;
	if (s->init) {
		init = c_name(t, "", t->global[id]);
		put_initial(t, s, init);
	}
	put(b, "cptx_variable(m, ");
	put_variable(&b->line, s, t->global[id], CPTX_GLOBAL);
	if (init)
		buf_printf(&b->line, ", .init = %s, .ninit = %u", init, (unsigned)s->ninit);
	if (s->nreloc)
		put_addresses(t, &b->line, s);
	put(b, ");");
	flush_line(b);
}

/* ---- functions ---- */

/* The body that a declaration stands for: its own, or the definition's. */
static const cptx_kernel *meant(const cptx_kernel *k) { return k->def ? k->def : k; }

/* Notes the functions that are declared in front of their bodies, or have none, and where each is first declared. */
static bool note_declared(to_c *t)
{
	bool *seen = TO_C_ARRAY(t, bool, t->m->nbody);
	to_c_names declared;

	t->by_name = TO_C_ARRAY(t, bool, t->m->nbody);
	t->declares = TO_C_ARRAY(t, bool, t->m->nbody);
	if (t->failed || !names_new(t, &declared))
		return false;
	for (const ir_top *top = t->m->top_first; top; top = top->next) {
		if (top->kind == TOP_BODY)
			seen[top->k->number - 1] = true;
		if (top->kind != TOP_PROTO)
			continue;
		if (top->k->is_func && !seen[meant(top->k)->number - 1])
			t->by_name[meant(top->k)->number - 1] = true;
		if (names_has(&declared, top->k->name))
			continue;
		t->declares[top->k->number - 1] = true;
		if (!names_add(t, &declared, top->k->name, 0))
			return false;
	}
	return true;
}

/* Whether an entry is the first declaration of its function, and C calls declare it. */
static bool declares(const to_c *t, const ir_top *top)
{
	const cptx_kernel *k = meant(top->k);
	return k->is_func && t->by_name[k->number - 1] && t->declares[top->k->number - 1];
}

static void put_declaration(to_c *t, const cptx_kernel *k)
{
	to_c_body b;

	if (body_begin(t, &b, k))
		put_signature(&b, true);
	body_end(&b);
}

static void put_functions(to_c *t, const char **name)
{
	for (const ir_top *top = t->m->top_first; top && !t->failed; top = top->next) {
		if (top->kind == TOP_PROTO && declares(t, top)) {
			const char *declare = c_name(t, "declare_", top->k->name);
			name[meant(top->k)->number - 1] = declare;
			buf_printf(&t->out, "static void %s(cptx_module *m)\n{\n", declare);
			put_declaration(t, meant(top->k));
			buf_str(&t->out, "}\n\n");
		}
	}
	for (const ir_top *top = t->m->top_first; top && !t->failed; top = top->next) {
		if (top->kind != TOP_BODY)
			continue;
		const char *function = c_name(t, top->k->is_func ? "func_" : "kernel_", top->k->name);
		name[t->m->nbody + top->k->number - 1] = function;
		buf_printf(&t->out, "static cptx_kernel *%s(cptx_module *m)\n{\n", function);
		put_body(t, top->k);
		buf_str(&t->out, "}\n\n");
	}
}

/* ---- the module ---- */

/* Prints text of several lines as a string for each. */
static void put_module_text(to_c *t, const char *text)
{
	const char *end = strchr(text, '\n');

	buf_str(&t->out, "\tcptx_module_text(m, ");
	for (; *text; text = end ? end + 1 : text + strlen(text), end = strchr(text, '\n')) {
		buf_str(&t->out, end || text[-1] == '\n' ? "\n\t\t" : "");
		put_string(&t->out, text, end ? (size_t)(end - text) + 1 : strlen(text));
	}
	buf_str(&t->out, ");\n");
}

static void put_target(to_c_body *b)
{
	const cptx_module *m = b->t->m;
	const char *more = m->target_more + strspn(m->target_more, ", ");

	if (!m->target)
		return;
	buf_printf(&b->line, "cptx_set_target(m, \"%s\", %u, ", m->target->name, m->version);
	if (*more)
		put_string(&b->line, more, strlen(more));
	put(b, *more ? ");" : "NULL);");
	flush_line(b);
}

static void put_top(to_c *t, to_c_body *b, const ir_top *top, const char *const *name)
{
	switch (top->kind) {
	case TOP_HEAD: put_target(b); break;
	case TOP_VAR: put_global(t, b, top->sym - MODULE_SYM); break;
	case TOP_PROTO:
		if (declares(t, top))
			buf_printf(&t->out, "\t%s(m);\n", name[meant(top->k)->number - 1]);
		break;
	case TOP_BODY: buf_printf(&t->out, "\t%s(m);\n", name[t->m->nbody + top->k->number - 1]); break;
	case TOP_TEXT: put_module_text(t, top->text); break;
	case TOP_COMMENT: break; /* comments in front of the head stand at the top of the file */
	}
}

static void put_build(to_c *t, const char *const *name)
{
	to_c_body b = { .t = t, .indent = 1 };

	buf_init(&b.line, t->out.hook);
	buf_str(&t->out, "void build(cptx_module *m)\n{\n");
	for (const ir_top *top = t->m->top_first; top && !t->failed; top = top->next)
		put_top(t, &b, top, name);
	if (!t->m->nbody && !t->m->nsym)
		buf_str(&t->out, "\t(void)m;\n");
	buf_str(&t->out, "}\n");
	t->failed |= b.line.failed;
	buf_free(&b.line);
}

static void put_main(to_c *t)
{
	buf_printf(&t->out, "\n/* Prints the PTX, for the target that is named%s. */\nint main(int argc, char **argv)\n{\n",
	           t->m->target ? " or that of the text" : "");
	if (!t->m->target)
		buf_str(&t->out, "\tif (argc < 2) {\n\t\tfputs(\"name a target, such as sm_80\\n\", stderr);\n\t\treturn 2;\n\t}\n");
	buf_printf(&t->out,
	           "\tcptx_module *m = cptx_module_new(NULL);\n\tcptx_error err = { .code = CPTX_OK };\n\n\tbuild(m);\n"
	           "\tcptx_ptx *ptx = cptx_emit(m, %s, NULL, &err);\n",
	           t->m->target ? "argc > 1 ? argv[1] : NULL" : "argv[1]");
	buf_str(&t->out,
	        "\tif (ptx)\n\t\tfputs(cptx_ptx_text(ptx), stdout);\n\telse\n\t\tfprintf(stderr, \"%s\\n\", err.text);\n"
	        "\tint status = !ptx || fflush(stdout);\n\tcptx_ptx_destroy(ptx);\n\tcptx_module_destroy(m);\n"
	        "\treturn status;\n}\n");
}

/* Finds for each name with several declarations the one that is printed: the one that is not .extern, or else the first.
 * *by_name: the first of each name. */
static bool find_printed(to_c *t, to_c_names *by_name)
{
	const cptx_module *m = t->m;

	t->printed = TO_C_ARRAY(t, uint32_t, m->nsym);
	if (!t->printed || !names_new(t, by_name))
		return false;
	for (uint32_t i = 0; i < m->nsym; i++) {
		const to_c_name *had = names_get(by_name, m->sym[i]->name);
		if (!had && !names_add(t, by_name, m->sym[i]->name, i))
			return to_c_no_memory(t);
		uint32_t first = had ? had->id : i;
		if (!had || (m->sym[t->printed[first]]->linkage == LINK_EXTERN && m->sym[i]->linkage != LINK_EXTERN))
			t->printed[first] = i;
	}
	/* the first declaration stands in front of the others, and knows which one is printed */
	for (uint32_t i = 0; i < m->nsym; i++)
		t->printed[i] = t->printed[names_get(by_name, m->sym[i]->name)->id];
	return true;
}

/* Names the variables and functions; reserved names, such as those of the builder's own variables, are changed. */
static bool name_globals(to_c *t)
{
	const cptx_module *m = t->m;
	to_c_names taken, first;

	t->global = TO_C_ARRAY(t, const char *, m->nsym);
	if (!t->global || !names_new(t, &taken) || !find_printed(t, &first))
		return false;
	for (size_t i = 0; i < m->nsym; i++)
		if (!names_has(&taken, m->sym[i]->name))
			names_make(t, &taken, m->sym[i]->name, false, NULL, IR_NONE);
	for (size_t i = 0; i < m->nsym; i++) {
		const char *name = m->sym[i]->name;
		uint32_t id = names_get(&first, name)->id;
		if (id < i)
			t->global[i] = t->global[id];
		else
			t->global[i] =
				strncmp(name, IR_PREFIX, strlen(IR_PREFIX)) ? name : names_make(t, &taken, name, false, NULL, IR_NONE);
	}
	return !t->failed;
}

/* Takes the names that no body may give to its own variables. */
static bool take_names(to_c *t)
{
	const cptx_module *m = t->m;

	if (!names_new(t, &t->ptx_names))
		return false;
	for (size_t i = 0; i < m->nsym; i++)
		if (!names_has(&t->ptx_names, t->global[i]))
			names_make(t, &t->ptx_names, t->global[i], false, NULL, IR_NONE);
	for (size_t i = 0; i < m->nbody; i++)
		if (m->body[i]->is_func && !m->body[i]->is_proto && !names_has(&t->ptx_names, m->body[i]->name))
			names_make(t, &t->ptx_names, m->body[i]->name, false, NULL, IR_NONE);
	return !t->failed;
}

/* Takes the words of directives that are kept as text: labels among them must keep their names. */
static bool take_words(to_c *t)
{
	static const char apart[] = " \t\r\n.,:;+-*/()[]{}<>\"'";

	if (!names_new(t, &t->words))
		return false;
	for (const ir_top *top = t->m->top_first; top; top = top->next) {
		char *s = top->kind == TOP_TEXT ? arena_strdup(&t->a, top->text) : NULL;
		if (top->kind == TOP_TEXT && !s)
			return to_c_no_memory(t);
		while (s && *s) {
			char *word = s + strspn(s, apart), *end = word + strcspn(word, apart);
			s = *end ? end + 1 : end;
			*end = 0;
			if (*word && !names_has(&t->words, word) && !names_add(t, &t->words, word, 0))
				return false;
		}
	}
	return true;
}

static void put_file(to_c *t)
{
	const char **name = TO_C_ARRAY(t, const char *, 2 * t->m->nbody);

	t->found_var = to_c_nones(t, t->m->nsym + t->m->nbody);
	if (t->failed || !names_new(t, &t->names) || !name_globals(t) || !take_names(t) || !take_words(t) || !note_declared(t))
		return;
	for (const ir_top *top = t->m->top_first; top && top->kind != TOP_HEAD; top = top->next)
		if (top->kind == TOP_COMMENT)
			put_comment(t, top->text);
	buf_str(&t->out, "#include <cptx/cptx.h>\n\n");
	buf_str(&t->out, t->opt->main ? "#include <stdio.h>\n\n" : "");
	buf_str(&t->out, "void build(cptx_module *m);\n\n");
	put_functions(t, name);
	put_build(t, name);
	if (t->opt->main)
		put_main(t);
}

cptx_ptx *cptx_to_c(cptx_module *m, const cptx_to_c_opt *opt, cptx_error *err)
{
	cptx_to_c_opt o;
	cptx_error ignored = { .code = CPTX_OK };

	err = err ? err : &ignored;
	if (!OPTIONS_READ(cptx_to_c_opt, &o, opt, NOWHERE, err))
		return NULL;
	if (!m || !cptx_module_freeze(m)) {
		*err = *cptx_module_error(m);
		return NULL;
	}
	cptx_ptx *out = emit_new(m, m->target);
	to_c t = { .m = m, .opt = &o };
	arena_init(&t.a, &m->a.hook);
	if (out) {
		t.out = out->text;
		put_file(&t);
		buf_put(&t.out, "", 1);
		out->text = t.out;
		out->text.n -= out->text.n > 0;
		t.failed |= out->text.failed || t.a.failed;
	}
	arena_free(&t.a);
	if (out && !t.failed)
		return out;
	cptx_ptx_destroy(out);
	error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory while writing C");
	return NULL;
}
