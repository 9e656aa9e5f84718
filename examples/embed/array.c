/* SPDX-License-Identifier: MIT */
/* The array language: reading statements, and computing them on the host. */
#include "array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void die(const char *what, const char *why)
{
	fprintf(stderr, "jit: %.40s: %s\n", what, why);
	exit(1);
}

/* ---- reading ---- */

static bool take(script *p, const char *text)
{
	p->rest += strspn(p->rest, " \n\t");
	size_t n = strlen(text);
	bool there = !strncmp(p->rest, text, n);
	p->rest += there ? n : 0;
	return there;
}

static void need(script *p, const char *text)
{
	if (!take(p, text))
		die(p->rest, "something else is missing here");
}

/* The place among the statement's variables of the one with this name, which is made if it is new. */
static int variable(script *p, statement *s)
{
	char name[NAME] = "";
	int v = 0, at = 0;

	p->rest += strspn(p->rest, " \n\t");
	for (size_t n = 0; n < NAME - 1 && *p->rest >= 'a' && *p->rest <= 'z'; p->rest++)
		name[n++] = *p->rest;
	while (v < p->nvar && strcmp(p->var[v].name, name))
		v++;
	if (!*name || v == VARS)
		die(p->rest, "not a name of a to z, or one too many");
	if (v == p->nvar) {
		array *a = &p->var[p->nvar++];
		memcpy(a->name, name, sizeof name);
		a->host = malloc(p->n * sizeof(float));
		if (!a->host)
			die(name, "out of memory");
		for (uint32_t i = 0; i < p->n; i++)
			a->host[i] = (float)i / (float)p->n;
	}
	while (at < s->nvar && s->var[at] != v)
		at++;
	s->var[at] = v;
	s->nvar += at == s->nvar;
	return at;
}

static int add(statement *s, node n)
{
	if (s->nnode == NODES)
		die("statement", "it is too long");
	s->node[s->nnode] = n;
	return s->nnode++;
}

static int expression(script *p, statement *s);
static int call_of(script *p, statement *s, enum kind kind, bool two)
{
	int a = expression(p, s), b = 0;

	if (two)
		need(p, ","), b = expression(p, s);
	need(p, ")");
	return add(s, (node){ kind, a, b, 0 });
}

static int factor(script *p, statement *s)
{
	if (take(p, "min("))
		return call_of(p, s, MIN_OF, true);
	if (take(p, "max("))
		return call_of(p, s, MAX_OF, true);
	if (take(p, "sqrt("))
		return call_of(p, s, SQRT, false);
	if (take(p, "(")) {
		int e = expression(p, s);
		need(p, ")");
		return e;
	}
	char *end;
	float number = strtof(p->rest, &end);
	if (end != p->rest) {
		p->rest = end;
		return add(s, (node){ NUMBER, 0, 0, number });
	}
	if (*p->rest == 'i' && !(p->rest[1] >= 'a' && p->rest[1] <= 'z')) {
		p->rest++;
		return add(s, (node){ INDEX, 0, 0, 0 });
	}
	int v = variable(p, s);
	return add(s, (node){ VAR, v, 0, 0 });
}

static int product(script *p, statement *s)
{
	int a = factor(p, s);

	for (;;) {
		enum kind kind = take(p, "*") ? MUL : take(p, "/") ? DIV : NUMBER;
		if (kind == NUMBER)
			return a;
		int b = factor(p, s);
		a = add(s, (node){ kind, a, b, 0 });
	}
}

static int expression(script *p, statement *s)
{
	int a = product(p, s);

	for (;;) {
		enum kind kind = take(p, "+") ? ADD : take(p, "-") ? SUB : NUMBER;
		if (kind == NUMBER)
			return a;
		int b = product(p, s);
		a = add(s, (node){ kind, a, b, 0 });
	}
}

bool read_statement(script *p, statement *s)
{
	p->rest += strspn(p->rest, " \n\t");
	if (!*p->rest)
		return false;
	*s = (statement){ .form = EACH, .repeat = 1 };
	if (take(p, "repeat")) {
		char *end;
		s->repeat = (int)strtol(p->rest, &end, 10);
		p->rest = end;
	}
	variable(p, s);
	if (take(p, "[")) {
		s->form = SCATTER;
		s->at = expression(p, s);
		need(p, "]"), need(p, "+=");
	} else {
		need(p, "=");
	}
	if (s->form == EACH && take(p, "sum(")) {
		s->form = SUM;
		s->value = expression(p, s);
		need(p, ")");
	} else {
		s->value = expression(p, s);
	}
	need(p, ";");
	if (s->form != EACH && s->repeat != 1)
		die("repeat", "only element-wise statements are repeated");
	for (int i = 0; i < s->nnode && s->form != EACH; i++)
		if (s->node[i].kind == VAR && !s->node[i].a)
			die(p->var[s->var[0]].name, "sums and scatters do not read their own target");
	if (s->form != SUM && p->var[s->var[0]].single)
		die(p->var[s->var[0]].name, "it is one sum; give the elements another name");
	size_t n = (size_t)snprintf(s->shape, SHAPE, "%d x%d =%d [%d]", s->form, s->repeat, s->value, s->at);
	for (int i = 0; i < s->nvar; i++)
		n += (size_t)snprintf(s->shape + n, SHAPE - n, " %c", p->var[s->var[i]].single ? 's' : 'v');
	for (int i = 0; i < s->nnode; i++) {
		const node *e = &s->node[i];
		n += n < SHAPE ? (size_t)snprintf(s->shape + n, SHAPE - n, ";%d %d %d %a", e->kind, e->a, e->b, (double)e->number)
		               : 0;
	}
	if (n >= SHAPE)
		die("statement", "it is too long");
	return true;
}

/* ---- computing ---- */

static float element(const script *p, const statement *s, int at, uint32_t i)
{
	const node *e = &s->node[at];

	if (e->kind == NUMBER || e->kind == INDEX)
		return e->kind == NUMBER ? e->number : (float)i;
	if (e->kind == VAR)
		return p->var[s->var[e->a]].host[p->var[s->var[e->a]].single ? 0 : i];
	float x = element(p, s, e->a, i), y = e->kind == SQRT ? x : element(p, s, e->b, i);
	switch (e->kind) {
	case ADD: return x + y;
	case SUB: return x - y;
	case MUL: return x * y;
	case DIV: return x / y;
	case MIN_OF: return fminf(x, y);
	case MAX_OF: return fmaxf(x, y);
	default: return sqrtf(x);
	}
}

void interpret(script *p, const statement *s)
{
	array *to = &p->var[s->var[0]];
	double sum = 0;

	for (uint32_t i = 0; i < p->n; i++) {
		if (s->form == SUM)
			sum += (double)element(p, s, s->value, i);
		for (int turn = 0; s->form == EACH && turn < s->repeat; turn++)
			to->host[i] = element(p, s, s->value, i);
		float at = s->form == SCATTER ? floorf(element(p, s, s->at, i)) : -1;
		if (at >= 0 && at < (float)p->n)
			to->host[(uint32_t)at] += element(p, s, s->value, i);
	}
	if (s->form == SUM)
		to->host[0] = (float)sum;
	to->single = s->form == SUM;
}
