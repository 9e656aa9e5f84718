/* SPDX-License-Identifier: MIT */
/* cptx_asm: reads one instruction as text, fills its holes with values, and matches it like a call. */
#include "ir/ir.h"
#include "parse/near.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TOKENS = 16 };

typedef struct reader {
	cptx_kernel *k;
	cptx_site at;
	const char *text, *p;
	const cptx_val *holes;
	size_t nhole, used;
	parse_token tokens[MOST_TOKENS];
	unsigned ntoken;
} reader;

static bool bad(reader *r, const char *what)
{
	return ir_error(r->k, CPTX_E_PARSE, r->at, "cptx_asm(\"%.200s\"): column %d: %s", r->text, (int)(r->p - r->text) + 1,
	                what);
}

static void blanks(reader *r) { r->p += strspn(r->p, " \t\n\r"); }

static bool take(reader *r, const char *s)
{
	size_t n = strlen(s);
	if (strncmp(r->p, s, n))
		return false;
	r->p += n;
	return true;
}

static bool read_hole(reader *r, cptx_val *v)
{
	if (r->used == r->nhole)
		return bad(r, "there are more {} than values");
	*v = r->holes[r->used++];
	return (v->kind != CPTX_VAL_NONE && v->kind != CPTX_VAL_BAD) ||
	       bad(r, "the value for this {} is none (from a call that failed, or an element out of range?)");
}

static bool read_number(reader *r, cptx_val *v)
{
	static const char hex_digits[] = "0123456789abcdefABCDEF";
	char *end;

	errno = 0;
	if (take(r, "0f") || take(r, "0F")) {
		if (strspn(r->p, hex_digits) != 8)
			return bad(r, "0f is followed by exactly 8 hexadecimal digits");
		uint32_t bits = (uint32_t)strtoul(r->p, &end, 16);
		float f;
		memcpy(&f, &bits, sizeof f);
		if ((bits & 0x7fc00000) == 0x7f800000 && (bits & 0x3fffff))
			return bad(r, "a signalling NaN would not keep its bits; mov.b32 them as an integer");
		*v = cptx_immf((double)f);
	} else if (take(r, "0d") || take(r, "0D")) {
		if (strspn(r->p, hex_digits) != 16)
			return bad(r, "0d is followed by exactly 16 hexadecimal digits");
		uint64_t bits = strtoull(r->p, &end, 16);
		double f;
		memcpy(&f, &bits, sizeof f);
		*v = cptx_immf(f);
	} else if (*r->p == '-') {
		*v = cptx_imm(strtoll(r->p, &end, 0));
	} else {
		*v = cptx_val_uint_(strtoull(r->p, &end, 0));
	}
	if (end == r->p)
		return bad(r, "expected {}, a number, a special register, [address] or {a, b}");
	if (errno)
		return bad(r, "the number has more than 64 bits");
	r->p = end;
	if (*r->p == '.')
		return bad(r, "decimal fractions depend on the locale; pass the number through a {}, or write 0f3F800000");
	return true;
}

static bool read_sreg(reader *r, cptx_val *v)
{
	size_t n = strspn(r->p + 1, "abcdefghijklmnopqrstuvwxyz0123456789_.") + 1;

	for (unsigned i = 0; i < arch_nsreg; i++)
		if (strlen(arch_sregs[i].text) == n && !memcmp(arch_sregs[i].text, r->p, n)) {
			r->p += n;
			*v = cptx_sreg_val((enum cptx_sreg)i);
			return true;
		}
	return bad(r, "no such special register; registers of the kernel go through a {}");
}

/* Reads elements up to the closing brace of a vector or parenthesis of a list. */
static bool read_elements(reader *r, cptx_val *v, bool list)
{
	enum { MOST_ELEMENTS = 256 };
	cptx_val element[MOST_ELEMENTS];
	size_t n = 0;

	for (blanks(r); !(list && !n && take(r, ")"));) {
		blanks(r);
		if (n == MOST_ELEMENTS)
			return bad(r, "more than 256 elements");
		if (take(r, "_"))
			element[n++] = cptx_sink();
		else if (!(take(r, "{}") ? read_hole(r, &element[n++]) : read_number(r, &element[n++])))
			return false;
		blanks(r);
		if (take(r, list ? ")" : "}"))
			break;
		if (!take(r, ","))
			return bad(r, list ? "expected , or )" : "expected , or }");
	}
	*v = list ? cptx_list_(r->k, r->at, element, n) : cptx_pack_(r->k, r->at, element, n);
	return v->kind != CPTX_VAL_NONE;
}

/* Reads ".b0" or ".h10" behind a register. */
static bool read_selector(reader *r, cptx_val *v)
{
	char text[8];
	size_t n = strspn(r->p, "bh01234567");

	if (n >= sizeof text)
		return bad(r, "expected a selector such as .b0 or .h10");
	memcpy(text, r->p, n);
	text[n] = 0;
	*v = cptx_select(*v, text);
	r->p += n;
	return v->kind != CPTX_VAL_BAD || bad(r, "expected a selector such as .b0 or .h10");
}

static bool read_operand(reader *r, bool pipe, bool inside);

static bool read_address(reader *r, cptx_val *v)
{
	blanks(r);
	if (!(take(r, "{}") ? read_hole(r, v) : read_number(r, v)))
		return false;
	blanks(r);
	if (*r->p == '+' || *r->p == '-') {
		char *end;
		bool minus = *r->p++ == '-';
		blanks(r);
		if (!minus && take(r, "-")) /* "+-8", as emit prints it */
			minus = true;
		unsigned long long offset = *r->p >= '0' && *r->p <= '9' ? strtoull(r->p, &end, 0) : ULLONG_MAX;
		if (offset > INT32_MAX)
			return bad(r, "expected an offset of at most 2147483647");
		*v = cptx_offset(*v, minus ? -(int64_t)offset : (int64_t)offset);
		r->p = end;
		blanks(r);
	}
	while (take(r, ","))
		if (!read_operand(r, false, true))
			return false;
	return take(r, "]") || bad(r, "expected ]");
}

static bool read_operand(reader *r, bool pipe, bool inside)
{
	parse_token *t = &r->tokens[r->ntoken];
	bool negated = false;

	if (r->ntoken++ == MOST_TOKENS)
		return bad(r, "too many operands");
	*t = (parse_token){ .pipe = pipe, .inside = inside };
	blanks(r);
	if (take(r, "!") || (!strncmp(r->p, "-{}", 3) && take(r, "-")))
		negated = true;
	if (take(r, "{}")) {
		t->braces = BRACES_EITHER;
		if (!read_hole(r, &t->v) || (take(r, ".") && !read_selector(r, &t->v)))
			return false;
	} else if ((t->braces = take(r, "{") ? BRACES_HERE : BRACES_NONE) || (!inside && *r->p == '(')) {
		if (!read_elements(r, &t->v, take(r, "(")))
			return false;
	} else if (take(r, "_")) {
		t->v = cptx_sink();
	} else if (!inside && take(r, "[")) {
		t->address = true;
		if (!read_address(r, &t->v))
			return false;
		if (take(r, ".")) {
			t->behind = r->p;
			t->nbehind = strcspn(r->p, ", \t\r\n;");
			r->p += t->nbehind;
		}
	} else if (*r->p == '%') {
		if (!read_sreg(r, &t->v))
			return false;
	} else if (!read_number(r, &t->v)) {
		return false;
	}
	if (negated)
		t->v = cptx_negated(t->v);
	blanks(r);
	return true;
}

static bool read_operands(reader *r)
{
	blanks(r);
	if (!*r->p || *r->p == ';')
		return true;
	for (bool pipe = false;;) {
		if (!read_operand(r, pipe, false))
			return false;
		if (take(r, ","))
			pipe = false;
		else if (take(r, "|"))
			pipe = true;
		else
			return true;
	}
}

/* Tries all forms that have that spelling. */
static bool match_forms(reader *r, const char *opcode, size_t n, arch_match *m)
{
	unsigned spelled = 0, count;
	const uint16_t *forms = arch_forms_of(opcode, n, &count);

	for (unsigned i = 0; i < 2 * count; i++) {
		uint16_t mods[ARCH_GROUPS];
		unsigned form = forms[i % count];
		if (i == count && spelled)
			break;
		if (i < count ? !parse_opcode(form, opcode, n, mods) : !parse_opcode_any(form, opcode, n, mods))
			continue;
		spelled++;
		if (parse_match(form, mods, r->tokens, r->ntoken, r->k->vec, false, m))
			return true;
	}
	return false;
}

static void no_form(reader *r, const char *opcode, size_t n)
{
	const near_operands o = { r->tokens, r->ntoken, r->k->vec, false };
	size_t place;
	buf why;

	buf_init(&why, &r->k->m->a.hook);
	buf_str(&why, "cptx_asm: ");
	if (!near_why(opcode, n, &o, &why, &place))
		buf_printf(&why, "'%.*s' is no instruction; `cptx insn` lists them", (int)MIN(n, (size_t)180), opcode);
	ir_form_error(r->k, r->at, &why);
	buf_free(&why);
}

static cptx_val append(reader *r, const char *opcode, size_t n, cptx_val guard)
{
	cptx_val none = { 0 };
	arch_match m;
	bool found = match_forms(r, opcode, n, &m);

	if (!found)
		no_form(r, opcode, n);
	if (!found || !ir_append_match(r->k, r->at, &m, guard))
		return none;
	const arch_form *f = &arch_forms[m.form];
	return f->noperand && arch_operands[f->operand].flags & OPERAND_DEST ? m.operand[0] : none;
}

cptx_val cptx_asm_(cptx_kernel *k, cptx_site at, const char *text, const cptx_val *holes, size_t n)
{
	cptx_val none = { 0 }, guard = none;
	reader r = { .k = k, .at = at, .text = text ? text : "", .p = text ? text : "", .holes = holes, .nhole = n };

	if (!ir_open(k, at))
		return none;
	if (n && !holes)
		return bad(&r, "the values are NULL"), none;
	for (size_t i = 0; i < n; i++)
		if (!ir_owned(k, at, &holes[i], "a value"))
			return none;
	blanks(&r);
	if (take(&r, "@")) {
		bool negated = take(&r, "!");
		if (!take(&r, "{}"))
			return bad(&r, "expected {} for the guard"), none;
		if (!read_hole(&r, &guard))
			return none;
		cptx_val when = negated ? cptx_negated(guard) : guard;
		if (!ir_guard_ok(k, at, &guard, when, none))
			return none;
		blanks(&r);
	}
	const char *opcode = r.p;
	size_t len = strcspn(r.p, " \t\r\n;[{(");
	r.p += len;
	if (!len)
		return bad(&r, "expected an instruction"), none;
	if (!read_operands(&r))
		return none;
	blanks(&r);
	take(&r, ";");
	blanks(&r);
	if (*r.p)
		return bad(&r, "expected the end of one instruction"), none;
	if (r.used != r.nhole)
		return bad(&r, "there are more values than {}"), none;
	return append(&r, opcode, len, guard);
}
