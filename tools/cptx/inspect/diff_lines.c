/* SPDX-License-Identifier: MIT */
#include "inspect/diff.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void diff_free(diff_lines *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->at[i].key), free(l->at[i].name);
	free(l->at), free(l->own);
	*l = (diff_lines){ 0 };
}

bool diff_add(diff_lines *l, diff_line line)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 256;
		diff_line *grown = line.key ? realloc(l->at, cap * sizeof *grown) : NULL;
		if (!grown) {
			free(line.key), free(line.name);
			return false;
		}
		l->at = grown, l->cap = cap;
	}
	if (line.key)
		l->at[l->n++] = line;
	else
		free(line.name);
	return line.key != NULL;
}

static int by_key(const void *a, const void *b)
{
	return strcmp((*(diff_line *const *)a)->key, (*(diff_line *const *)b)->key);
}

bool diff_number(diff_lines *a, diff_lines *b)
{
	size_t n = a->n + b->n;
	diff_line **all = malloc((n + 1) * sizeof(diff_line *));

	if (!all)
		return false;
	for (size_t i = 0; i < n; i++)
		all[i] = i < a->n ? &a->at[i] : &b->at[i - a->n];
	qsort(all, n, sizeof *all, by_key);
	for (size_t i = 0; i < n; i++)
		all[i]->same = i ? all[i - 1]->same + (strcmp(all[i - 1]->key, all[i]->key) != 0) : 0;
	free(all);
	return true;
}

/* ---- what a line is, and its names ---- */

typedef struct builder {
	const cptx_kernel *k;
	char *key;
	size_t n, cap;
	uint32_t *name;
	size_t nname, cap_name;
	bool failed;
} builder;

static void put(builder *b, const char *format, ...) CPTX_PRINTF_(2, 3);
static void put(builder *b, const char *format, ...)
{
	va_list ap, again;

	va_start(ap, format);
	va_copy(again, ap);
	size_t n = (size_t)vsnprintf(NULL, 0, format, ap);
	if (b->n + n >= b->cap) {
		size_t cap = 2 * (b->n + n) + 64;
		char *grown = realloc(b->key, cap);
		if (grown)
			b->key = grown, b->cap = cap;
		else
			b->failed = true;
	}
	if (!b->failed)
		b->n += (size_t)vsnprintf(b->key + b->n, b->cap - b->n, format, again);
	va_end(again);
	va_end(ap);
}

/* A name of the line: its number among those of its body, unique. */
static void put_name(builder *b, uint32_t name)
{
	if (b->nname == b->cap_name) {
		size_t cap = b->cap_name ? 2 * b->cap_name : 4;
		uint32_t *grown = realloc(b->name, cap * sizeof *grown);
		if (!grown) {
			b->failed = true;
			return;
		}
		b->name = grown, b->cap_name = cap;
	}
	b->name[b->nname++] = name;
}

/* ---- outside of bodies ---- */

/* What changes no program: places in sources, the version that was written for, sections for debuggers. */
static bool says_nothing(const char *line, bool in_body)
{
	static const char *const outside[] = { ".loc", ".file", ".version", "//" };
	static const char *const inside[] = { ".loc", ".pragma " };

	for (size_t i = 0; !in_body && i < sizeof outside / sizeof *outside; i++)
		if (!strncmp(line, outside[i], strlen(outside[i])))
			return true;
	for (size_t i = 0; in_body && i < sizeof inside / sizeof *inside; i++)
		if (!strncmp(line, inside[i], strlen(inside[i])))
			return true;
	if (in_body && !strncmp(line, ".reg ", 5) && strchr(line, ';')) /* else it is of a prototype */
		return true;
	return *line == '\n' || !*line || (in_body && *line != '.' && !strstr(line, ".callprototype"));
}

/* Without the names of what has none to others: that of a prototype, those of parameters in registers. */
static char *key_of_head(const char *line)
{
	const char *prototype = strstr(line, ".callprototype");
	char *key = malloc(strlen(line) + 1), *to = key;

	for (const char *p = prototype ? prototype : line; key && *p;) {
		size_t type = strncmp(p, ".reg .", 6) ? 0 : strcspn(p + 6, " ,)");
		memcpy(to, p, type ? 6 + type : 1);
		to += type ? 6 + type : 1;
		p += type ? 6 + type : 1;
		p += type ? strcspn(p, ",)") : 0;
	}
	if (key)
		*to = 0;
	return key;
}

bool diff_head(diff_lines *l, cptx_module *m, cptx_error *err)
{
	cptx_ptx *ptx = cptx_emit(m, NULL, NULL, err);
	bool in_body = false, in_section = false, ok = ptx && (l->own = strdup(cptx_ptx_text(ptx)));

	cptx_ptx_destroy(ptx);
	for (char *p = ok ? l->own : NULL, *end; ok && p; p = end) {
		if ((end = strchr(p, '\n')))
			*end++ = 0;
		bool outermost = !strcmp(p, "{") || !strcmp(p, "}");
		p += strspn(p, " \t");
		in_section |= !in_body && !strncmp(p, ".section", strlen(".section"));
		if (in_section) { /* up to its closing brace, it is for debuggers */
			in_section = *p != '}';
			continue;
		}
		if (outermost)
			in_body = *p == '{';
		if (!says_nothing(p, in_body) && strcmp(p, "}") != 0)
			ok = diff_add(l, (diff_line){ .text = p, .n = strlen(p), .key = key_of_head(p) });
	}
	return ok;
}

/* ---- bodies ---- */

static void put_value(builder *b, cptx_val v)
{
	switch ((enum cptx_val_kind)v.kind) {
	case CPTX_VAL_REG:
		put(b, " %s%u.%u%+d", v.negated ? "!" : "", cptx_type_bits((enum cptx_type)v.type), v.count, v.offset);
		for (uint32_t i = 0; i < v.count; i++)
			put_name(b, 2 * (v.id + i));
		return;
	case CPTX_VAL_VEC:
	case CPTX_VAL_LIST:
		put(b, " {");
		for (size_t i = 0; i < v.count; i++)
			put_value(b, cptx_body_element(b->k, v, i));
		put(b, "}");
		return;
	case CPTX_VAL_LABEL:
	case CPTX_VAL_TARGETS:
	case CPTX_VAL_PROTO:
		put(b, " L");
		put_name(b, 2 * v.id + 1);
		return;
	case CPTX_VAL_SYM:
	case CPTX_VAL_FUNC: {
		size_t n = cptx_body_name_of(b->k, v, NULL, 0);
		char *name = malloc(n + 1);
		b->failed |= !name;
		if (name)
			cptx_body_name_of(b->k, v, name, n + 1);
		put(b, " %s%+d", name ? name : "", v.kind == CPTX_VAL_SYM ? v.offset : 0);
		free(name);
		return;
	}
	default: put(b, " %u:%llx", v.kind, (unsigned long long)v.i); return;
	}
}

/* The line of a text, from 1, of *n bytes; in->line has where they begin. */
static const char *line_of(const inspected *in, uint32_t line, size_t *n)
{
	const char *p = line && line <= in->nline ? in->line[line - 1] : "";

	p += strspn(p, " \t");
	*n = strcspn(p, "\r\n");
	return p;
}

bool diff_find_lines(inspected *in)
{
	size_t n = 1;

	for (const char *p = in->ptx ? in->ptx : ""; (p = strchr(p, '\n')); p++)
		n++;
	in->line = calloc(n, sizeof *in->line);
	for (const char *p = in->line ? in->ptx : NULL; p; p = strchr(p, '\n'), p = p ? p + 1 : NULL)
		in->line[in->nline++] = p;
	return in->line != NULL;
}

/* Parsed, it is a text. */
static bool is_pragma(const cptx_item_info *i)
{
	return i->kind == CPTX_ITEM_PRAGMA || (i->kind == CPTX_ITEM_TEXT && !strncmp(i->text, ".pragma", 7));
}

static void put_item(builder *b, const cptx_item *it, const cptx_item_info *info)
{
	char spelling[256];

	for (const char *p = is_pragma(info) ? info->text : ""; *p; p++)
		if (*p > ' ')
			put(b, "%c", *p);
	if (info->kind == CPTX_ITEM_LABEL || info->kind == CPTX_ITEM_TARGETS || info->kind == CPTX_ITEM_PROTO)
		put(b, info->kind == CPTX_ITEM_LABEL ? "label" : info->kind == CPTX_ITEM_PROTO ? "prototype" : "targets");
	if (info->kind == CPTX_ITEM_INSN) {
		cptx_item_spelling(it, spelling, sizeof spelling);
		if (info->guard.kind != CPTX_VAL_NONE) {
			put(b, "@");
			put_value(b, info->guard);
		}
		put(b, "%s", spelling);
	}
	for (size_t i = 0; i < info->noperands; i++)
		put_value(b, cptx_item_operand(it, i));
}

/* Registers of the head, in their order, which the lines of the body alone do not tell. */
static bool add_parameters(diff_lines *l, const cptx_kernel *k)
{
	builder b = { .k = k };
	const char *name = cptx_body_name(k);
	cptx_val v;

	put(&b, "parameters");
	for (uint32_t i = 0; (v = cptx_result_at(k, i)).kind != CPTX_VAL_BAD; i++)
		if (v.kind == CPTX_VAL_REG)
			put_value(&b, v);
	put(&b, " of");
	for (uint32_t i = 0; (v = cptx_param_at(k, i)).kind != CPTX_VAL_BAD; i++)
		if (v.kind == CPTX_VAL_REG)
			put_value(&b, v);
	if (!b.failed && b.nname)
		return diff_add(l, (diff_line){ .text = name, .n = strlen(name), .key = b.key, .name = b.name, .nname = b.nname });
	free(b.key), free(b.name);
	return !b.failed;
}

/* The labels that something of the body names, by their number; those of nothing but debug information are none of them. */
static bool *find_used_labels(const cptx_kernel *k)
{
	size_t n = 0;
	cptx_item_info info;

	for (const cptx_item *it = cptx_item_first(k); it; it = cptx_item_next(it))
		if (cptx_item_look(k, it, &info) && info.kind == CPTX_ITEM_LABEL && cptx_item_operand(it, 0).id >= n)
			n = cptx_item_operand(it, 0).id + (size_t)1;
	bool *used = calloc(n + 1, sizeof *used);
	for (const cptx_item *it = used ? cptx_item_first(k) : NULL; it; it = cptx_item_next(it)) {
		bool names = cptx_item_look(k, it, &info) && info.kind != CPTX_ITEM_LABEL;
		for (size_t i = 0; names && i < info.noperands; i++) {
			cptx_val v = cptx_item_operand(it, i);
			if (v.kind == CPTX_VAL_LABEL && v.id < n)
				used[v.id] = true;
		}
	}
	return used;
}

static bool is_compared(const cptx_item *it, const cptx_item_info *info, const bool *used)
{
	if (info->kind == CPTX_ITEM_LABEL)
		return used[cptx_item_operand(it, 0).id];
	return info->kind == CPTX_ITEM_INSN || info->kind == CPTX_ITEM_TARGETS || info->kind == CPTX_ITEM_PROTO ||
	       is_pragma(info);
}

static bool add_items(diff_lines *l, const inspected *in, const cptx_kernel *k, const bool *used)
{
	for (const cptx_item *it = cptx_item_first(k); it; it = cptx_item_next(it)) {
		builder b = { .k = k };
		cptx_item_info info;
		if (!cptx_item_look(k, it, &info) || !is_compared(it, &info, used))
			continue;
		put_item(&b, it, &info);
		diff_line line = { .name = b.name, .nname = b.nname, .key = b.key };
		line.text = line_of(in, info.at.line, &line.n);
		if (b.failed) {
			free(b.key), free(b.name);
			return false;
		}
		if (!diff_add(l, line))
			return false;
	}
	return true;
}

bool diff_body(diff_lines *l, const inspected *in, const cptx_kernel *k)
{
	bool *used = k ? find_used_labels(k) : NULL;
	bool ok = !k || (used && add_parameters(l, k) && add_items(l, in, k, used));

	free(used);
	return ok;
}
