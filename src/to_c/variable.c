/* SPDX-License-Identifier: MIT */
/* Prints declarations and initial values of variables. */
#include "to_c/to_c.h"

#include <stdio.h>

const char *linkage_name(unsigned linkage)
{
	static const char *const names[LINK_COUNT] = { "NONE", "EXTERN", "VISIBLE", "WEAK", "COMMON" };
	return names[linkage];
}

void put_string(buf *out, const char *s, size_t n)
{
	buf_str(out, "\"");
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		if (c == '\n')
			buf_str(out, "\\n");
		else if (c == '"' || c == '\\' || (c == '?' && i && s[i - 1] == '?'))
			buf_printf(out, "\\%c", c);
		else if (c < ' ' || c > '~')
			buf_printf(out, "\\%03o", c);
		else
			buf_put(out, s + i, 1);
	}
	buf_str(out, "\"");
}

static void put_mod(buf *out, const char *field, unsigned mod)
{
	buf_printf(out, ", .%s = CPTX_%s", field, arch_mods[mod].id);
}

void put_variable(buf *out, const ir_sym *s, const char *name, unsigned usual_space)
{
	bool open = s->ndim && !s->dim[0];

	buf_printf(out, "CPTX_%s, ", arch_mods[s->type].id);
	put_string(out, name, strlen(name));
	if (s->space != usual_space)
		put_mod(out, "space", s->space);
	if (open)
		buf_str(out, ", .unsized = true");
	for (unsigned i = open; i < s->ndim; i++)
		buf_printf(out, "%s%u%s", i == open ? ", .dim = { " : ", ", (unsigned)s->dim[i], i + 1u == s->ndim ? " }" : "");
	if (s->vec)
		buf_printf(out, ", .vec = %u", s->vec);
	if (s->align_given)
		buf_printf(out, ", .align = %u", (unsigned)s->align);
	if (s->linkage)
		buf_printf(out, ", .linkage = CPTX_LINK_%s", linkage_name(s->linkage));
	if (s->attribute) {
		buf_str(out, ", .attribute = ");
		put_string(out, s->attribute, strlen(s->attribute));
	}
	if (s->is_ptr) {
		buf_str(out, ", .pointer = true");
		if (s->ptr_space)
			put_mod(out, "ptr_space", s->ptr_space);
		if (s->ptr_align)
			buf_printf(out, ", .ptr_align = %u", (unsigned)s->ptr_align);
	}
}

/* ---- initial values ---- */

static uint64_t element(const ir_sym *s, size_t i, unsigned size)
{
	uint64_t v = 0;
	for (unsigned j = size; j-- > 0;)
		v = v << 8 | s->init[i * size + j];
	return v;
}

/* Whether initial values are text with its NUL. */
static bool is_text(const ir_sym *s)
{
	if (arch_types[s->type].bits != 8 || s->ninit < 2 || s->nreloc || s->init[s->ninit - 1])
		return false;
	for (uint32_t i = 0; i + 1 < s->ninit; i++)
		if ((s->init[i] < ' ' || s->init[i] > '~') && s->init[i] != '\n' && s->init[i] != '\t')
			return false;
	return true;
}

static bool is_finite(const ir_sym *s, bool wide)
{
	for (uint32_t i = 0; i < s->ninit; i++)
		if (wide ? (element(s, i, 8) >> 52 & 0x7ff) == 0x7ff : (element(s, i, 4) >> 23 & 0xff) == 0xff)
			return false;
	return true;
}

static void put_element(buf *out, const ir_sym *s, size_t i, unsigned size, char cls)
{
	uint64_t v = element(s, i, size);

	if (cls == 'F' && size == 8) {
		double d;
		memcpy(&d, &v, sizeof d);
		put_float(out, d, true, false);
	} else if (cls == 'F') {
		put_float(out, text_f32_as_f64((uint32_t)v), false, false);
	} else if (cls == 'S' && v >> (size * 8 - 1) && v << (64 - size * 8) != (uint64_t)1 << 63) {
		buf_printf(out, "-%llu", (unsigned long long)(0 - (v | (size == 8 ? 0 : UINT64_MAX << (size * 8)))));
	} else {
		buf_printf(out, v > 9999 ? "0x%llX" : "%llu", (unsigned long long)v);
	}
}

void put_initial(to_c *t, const ir_sym *s, const char *name)
{
	enum { WIDTH = 112 };
	unsigned bits = arch_types[s->type].bits, size = bits > 64 ? 8 : bits / 8;
	size_t n = (size_t)s->ninit * (bits / 8) / size;
	char cls = arch_types[s->type].cls, type[16];
	buf *out = &t->out;

	if (is_text(s)) {
		buf_printf(out, "\tstatic const char %s[] =", name);
		for (size_t i = 0; i + 1 < s->ninit; i += 96) {
			buf_str(out, s->ninit > 60 ? "\n\t\t" : " ");
			put_string(out, (const char *)s->init + i, MIN((size_t)96, s->ninit - 1 - i));
		}
		buf_str(out, ";\n");
		return;
	}
	if (cls == 'F' && size >= 4 && is_finite(s, size == 8)) {
		snprintf(type, sizeof type, size == 8 ? "double" : "float");
	} else {
		cls = cls == 'S' ? 'S' : 'U';
		snprintf(type, sizeof type, "%sint%u_t", cls == 'S' ? "" : "u", size * 8);
	}
	bool inline_ = n <= 8;
	buf_printf(out, "\tstatic const %s %s[] = {%s", type, name, inline_ ? "" : "\n\t\t");
	size_t line = out->n;
	for (size_t i = 0; i < n; i++) {
		if (!inline_ && out->n - line >= WIDTH - 12) {
			buf_str(out, "\n\t\t");
			line = out->n;
		} else if (inline_ || i) {
			buf_str(out, " ");
		}
		put_element(out, s, i, size, cls);
		buf_str(out, inline_ && i + 1 == n ? "" : ",");
	}
	buf_str(out, inline_ ? " };\n" : "\n\t};\n");
}
