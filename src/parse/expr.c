/* SPDX-License-Identifier: MIT */
/* Constants: numbers, and expressions of them.  (PTX manual, "Constants", "Constant Expressions") */
#include "parse/parser.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEEPEST = 200 }; /* greatest depth of nested parentheses and operators */

typedef struct number {
	bool is_float, is_unsigned;
	uint8_t type; /* CPTX_F32 for a 0f... constant, else 0 */
	uint64_t i;
	double f;
} number;

static bool ternary(parser *p, number *n, unsigned depth);
static bool unary(parser *p, number *n, unsigned depth);

static bool hex_float(parser *p, unsigned digits, number *n)
{
	uint64_t bits = 0;
	const char *s = p->p + 2;

	for (unsigned i = 0; i < digits; i++, s++) {
		char c = *s;
		unsigned v = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
		             : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
		             : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
		                                    : 16;
		if (v > 15)
			return parse_error(p, s, CPTX_E_PARSE, "0%c is followed by exactly %u hexadecimal digits", p->p[1], digits);
		bits = bits << 4 | v;
	}
	if (parse_is_word[(unsigned char)*s])
		return parse_error(p, s, CPTX_E_PARSE, "0%c is followed by exactly %u hexadecimal digits", p->p[1], digits);
	n->is_float = true;
	n->type = digits == 8 ? CPTX_F32 : CPTX_F64;
	if (digits == 16)
		memcpy(&n->f, &bits, sizeof n->f);
	else
		n->f = text_f32_as_f64((uint32_t)bits);
	p->p = s;
	return true;
}

/* Reads a decimal fraction; strtod uses the decimal point of the locale, so the text is adapted. */
static bool fraction(parser *p, number *n, size_t len)
{
	char text[512], point[8], *end;

	if (len >= 400)
		return parse_error(p, p->p, CPTX_E_PARSE,
		                   "the number has more than 400 characters; write its bits as 0d and 16 digits");
	snprintf(point, sizeof point, "%.1f", 0.5); /* prints 0.5 or 0,5 */
	memcpy(text, p->p, len);
	text[len] = 0;
	char *dot = strchr(text, '.');
	if (dot)
		*dot = point[1];
	n->is_float = true;
	n->f = strtod(text, &end);
	if (*end)
		return parse_error(p, p->p + (end - text), CPTX_E_PARSE,
		                   "this is no number; fractions are written 1.5, 1.5e-3, 0f3FC00000");
	bool zero = strcspn(text, "123456789") >= strcspn(text, "eE");
	if (isinf(n->f) || (n->f == 0 && !zero))
		return parse_error(p, p->p, CPTX_E_PARSE, "the number is out of the range of .f64");
	p->p += len;
	return true;
}

static bool literal(parser *p, number *n)
{
	const char *s = p->p;
	unsigned base = 10;
	uint64_t v = 0;

	if (*s == '0' && s[1] && strchr("fFdD", s[1]))
		return parse_error(p, s, CPTX_E_PARSE, "0f... and 0d... stand alone, without operators");
	if (*s == '0' && (s[1] == 'x' || s[1] == 'X'))
		base = 16, s += 2;
	else if (*s == '0' && (s[1] == 'b' || s[1] == 'B'))
		base = 2, s += 2;
	else if (*s == '0')
		base = 8;
	const char *digits = s;
	if (base == 10 || base == 8) {
		size_t len = strspn(s, "0123456789"), all = len;
		if (s[all] == '.')
			all += 1 + strspn(s + all + 1, "0123456789");
		if ((s[all] == 'e' || s[all] == 'E') &&
		    (parse_is_word[(unsigned char)s[all + 1]] == 3 || s[all + 1] == '-' || s[all + 1] == '+'))
			all += 2 + strspn(s + all + 2, "0123456789");
		if (all > len)
			return fraction(p, n, all);
	}
	for (;; s++) {
		unsigned d = *s >= '0' && *s <= '9'                 ? (unsigned)(*s - '0')
		             : (*s | 32) >= 'a' && (*s | 32) <= 'f' ? (unsigned)((*s | 32) - 'a' + 10)
		                                                    : 99;
		if (d >= base)
			break;
		if (v > (UINT64_MAX - d) / base)
			return parse_error(p, p->p, CPTX_E_PARSE, "the number has more than 64 bits");
		v = v * base + d;
	}
	n->is_unsigned = *s == 'U' || v > INT64_MAX;
	n->i = v;
	char behind = s[*s == 'U'];
	/* 7%(3) is a modulo; in 7 %3 the %3 would be a name */
	bool modulo = behind == '%' && !parse_is_word[(unsigned char)s[1 + (*s == 'U')]];
	if (s == digits || (parse_is_word[(unsigned char)behind] && !modulo))
		return parse_error(p, s, CPTX_E_PARSE, "this is no digit of a number to base %u", base);
	p->p = s + (*s == 'U');
	return true;
}

static bool to_int(parser *p, const char *at, const number *n)
{
	return !n->is_float ||
	       parse_error(p, at, CPTX_E_PARSE, "this operator is for integers; the constant is a floating point number");
}

static bool cast(parser *p, number *n, unsigned depth, bool *was)
{
	const char *at = p->p;

	*was = false;
	if (*p->p != '(')
		return true;
	const char *s = p->p + 1;
	while (*s == ' ' || *s == '\t')
		s++;
	bool is_signed = !strncmp(s, ".s64", 4), is_unsigned = !strncmp(s, ".u64", 4);
	if (!is_signed && !is_unsigned)
		return true;
	p->p = s + 4;
	parse_blanks(p);
	*was = true;
	if (!parse_expect(p, ')', "behind the type of a cast"))
		return false;
	if (depth > DEEPEST)
		return parse_error(p, at, CPTX_E_PARSE, "the expression is nested more than %d deep", DEEPEST);
	if (!unary(p, n, depth + 1) || !to_int(p, at, n))
		return false;
	n->is_unsigned = is_unsigned;
	return true;
}

static bool unary(parser *p, number *n, unsigned depth)
{
	const char *at = p->p;
	char found[24];
	bool was;

	*n = (number){ 0 };
	if (depth > DEEPEST)
		return parse_error(p, at, CPTX_E_PARSE, "the expression is nested more than %d deep", DEEPEST);
	if (!cast(p, n, depth, &was))
		return false;
	if (was)
		return true;
	if (parse_take(p, '('))
		return ternary(p, n, depth + 1) && parse_expect(p, ')', "behind the expression");
	if (*p->p == '-' || *p->p == '+' || *p->p == '!' || *p->p == '~') {
		char op = *p->p;
		parse_take(p, op);
		if (!unary(p, n, depth + 1) || ((op == '!' || op == '~') && !to_int(p, at, n)))
			return false;
		if (op == '-' && n->is_float)
			n->f = -n->f;
		else if (op == '-')
			n->i = 0 - n->i;
		else if (op == '!')
			n->i = !n->i, n->is_unsigned = false;
		else if (op == '~')
			n->i = ~n->i, n->is_unsigned = true;
		return true;
	}
	if (!strncmp(p->p, "WARP_SZ", 7) && !parse_is_word[(unsigned char)p->p[7]]) {
		p->p += 7;
		n->i = CPTX_WARP;
	} else if (parse_is_word[(unsigned char)*p->p] != 3 && !(*p->p == '.' && parse_is_word[(unsigned char)p->p[1]] == 3)) {
		return parse_error(p, at, CPTX_E_PARSE, "expected a number, found %s", parse_found(p, found));
	} else if (!literal(p, n)) {
		return false;
	}
	p->stop = p->p;
	parse_blanks(p);
	return true;
}

/* Binary operators by precedence; an operator has two characters if the second is not NUL. */
static const struct {
	char text[3];
	int level;
} operators[] = { { "*", 10 }, { "/", 10 }, { "%", 10 }, { "+", 9 }, { "-", 9 }, { "<<", 8 },
	              { ">>", 8 }, { "<=", 7 }, { ">=", 7 }, { "<", 7 }, { ">", 7 }, { "==", 6 },
	              { "!=", 6 }, { "&&", 2 }, { "||", 1 }, { "&", 5 }, { "^", 4 }, { "|", 3 } };

static int operator_at(const char *s)
{
	if (*s == ';' || *s == ',' || *s == ']' || *s == '}' || !strchr("*/%+-<>=!&^|", *s))
		return -1;
	for (unsigned i = 0; i < ARRAY_LEN(operators); i++)
		if (!strncmp(s, operators[i].text, strlen(operators[i].text)) && !(*s == '%' && parse_is_word[(unsigned char)s[1]]))
			return (int)i;
	return -1;
}

static bool apply_float(parser *p, const char *at, number *a, const number *b, const char *op)
{
	double x = a->f, y = b->f;
	bool compares = true;

	if (a->is_float != b->is_float)
		return parse_error(p, at, CPTX_E_PARSE, "%s of an integer and a floating point number; write 1.0 for 1", op);
	switch (*op) {
	case '<': a->i = op[1] ? x <= y : x < y; break;
	case '>': a->i = op[1] ? x >= y : x > y; break;
	case '=': a->i = x == y; break;
	case '!': a->i = x != y; break;
	default: compares = false;
	}
	if (op[1] == '<' || (op[1] == '>' && *op == '>'))
		return parse_error(p, at, CPTX_E_PARSE, "%s is for integers", op);
	a->is_float = !compares;
	a->type = 0;
	switch (compares ? 0 : *op) {
	case 0: break;
	case '+': a->f = x + y; break;
	case '-': a->f = x - y; break;
	case '*': a->f = x * y; break;
	case '/': a->f = x / y; break;
	default: return parse_error(p, at, CPTX_E_PARSE, "%s is for integers", op);
	}
	return true;
}

static bool apply(parser *p, const char *at, number *a, const number *b, const char *op)
{
	bool u = a->is_unsigned || b->is_unsigned;
	int64_t x = (int64_t)a->i, y = (int64_t)b->i;

	if (a->is_float || b->is_float)
		return apply_float(p, at, a, b, op);
	if ((*op == '/' || *op == '%') && (!b->i || (*op == '/' && !u && x == INT64_MIN && y == -1)))
		return parse_error(p, at, CPTX_E_PARSE, "this division has no result");
	if (!strcmp(op, "<<") || !strcmp(op, ">>")) {
		unsigned by = b->i & 63; /* ptxas masks the shift count, too */
		if (*op == '<')
			a->i <<= by;
		else if (a->is_unsigned)
			a->i >>= by;
		else
			a->i = (uint64_t)(x < 0 ? ~(~x >> by) : x >> by);
		return true;
	}
	a->is_unsigned = u;
	switch (*op) {
	case '*': a->i *= b->i; return true;
	case '/': a->i = u ? a->i / b->i : (uint64_t)(x / y); return true;
	case '%': /* ptxas computes it unsigned, whatever the operands */
		a->i %= b->i;
		a->is_unsigned = true;
		return true;
	case '+': a->i += b->i; return true;
	case '-': a->i -= b->i; return true;
	case '^': a->i ^= b->i; return true;
	case '&': a->i = op[1] ? a->i && b->i : a->i & b->i; break;
	case '|': a->i = op[1] ? a->i || b->i : a->i | b->i; break;
	case '=': a->i = a->i == b->i; break;
	case '!': a->i = a->i != b->i; break;
	case '<': a->i = op[1] ? (u ? a->i <= b->i : x <= y) : u ? a->i < b->i : x < y; break;
	case '>': a->i = op[1] ? (u ? a->i >= b->i : x >= y) : u ? a->i > b->i : x > y; break;
	}
	if (!((*op == '&' || *op == '|') && !op[1]))
		a->is_unsigned = false;
	return true;
}

static bool binary(parser *p, number *a, int level, unsigned depth)
{
	if (!unary(p, a, depth))
		return false;
	for (int i; (i = operator_at(p->p)) >= 0 && operators[i].level >= level;) {
		const char *at = p->p;
		number b;
		p->p += strlen(operators[i].text);
		parse_blanks(p);
		if (!binary(p, &b, operators[i].level + 1, depth + 1) || !apply(p, at, a, &b, operators[i].text))
			return false;
	}
	return true;
}

static bool ternary(parser *p, number *n, unsigned depth)
{
	number yes, no;
	const char *at = p->p;

	if (!binary(p, n, 1, depth))
		return false;
	if (*p->p != '?')
		return true;
	if (!to_int(p, at, n))
		return false;
	parse_take(p, '?');
	if (!ternary(p, &yes, depth + 1) || !to_int(p, at, &yes) || !parse_expect(p, ':', "in a ? b : c") ||
	    !ternary(p, &no, depth + 1) || !to_int(p, at, &no))
		return false;
	*n = n->i ? yes : no;
	return true;
}

bool parse_natural(parser *p, uint64_t low, uint64_t high, uint64_t *v, const char *what)
{
	const char *at = p->p;
	bool digits = parse_is_word[(unsigned char)*at] == 3;
	number n = { 0 };

	if (digits && !literal(p, &n))
		return false;
	if (!digits || n.is_float || n.i < low || n.i > high)
		return parse_error(p, at, CPTX_E_PARSE, "%s is a number from %llu to %llu", what, (unsigned long long)low,
		                   (unsigned long long)high);
	p->stop = p->p;
	parse_blanks(p);
	*v = n.i;
	return true;
}

bool parse_literal(parser *p, uint32_t low, uint32_t high, uint32_t *v, const char *what)
{
	uint64_t wide = 0;
	bool ok = parse_natural(p, low, high, &wide, what);

	*v = (uint32_t)wide;
	return ok;
}

bool parse_constant(parser *p, cptx_val *v)
{
	const char *s = p->p;
	number n;

	/* the fast path for nearly all constants: digits alone, or the bits of a floating point number */
	if (*s >= '0' && *s <= '9' && !(*s == '0' && parse_is_word[(unsigned char)s[1]] == 3)) {
		uint64_t i = 0;
		while (*s >= '0' && *s <= '9' && i < UINT64_MAX / 20)
			i = i * 10 + (uint64_t)(*s++ - '0');
		if (parse_ends_operand(*s)) {
			*v = cptx_val_int_((int64_t)i);
			v->space = EXACT_CONSTANT;
			p->stop = p->p = s;
			return true;
		}
	}
	s = p->p;
	if (*s == '0' && s[1] && strchr("fFdD", s[1])) {
		n = (number){ 0 };
		if (!hex_float(p, (s[1] | 32) == 'f' ? 8 : 16, &n))
			return false;
		p->stop = p->p;
		parse_blanks(p);
	} else if (!ternary(p, &n, 0)) {
		return false;
	}
	if (n.is_float) {
		*v = cptx_val_float_(n.f);
		v->type = n.type;
	} else {
		*v = cptx_val_int_((int64_t)n.i); /* the value is 64 bits, whatever their sign */
	}
	v->space = EXACT_CONSTANT;
	return true;
}

bool parse_int(parser *p, int64_t low, int64_t high, int64_t *v, const char *what)
{
	const char *at = p->p;
	cptx_val c;

	if (!parse_constant(p, &c))
		return false;
	if (c.kind != CPTX_VAL_INT || c.negated || c.i < low || c.i > high)
		return parse_error(p, at, CPTX_E_PARSE, "%s is an integer from %lld to %lld", what, (long long)low, (long long)high);
	*v = c.i;
	return true;
}
