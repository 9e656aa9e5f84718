/* SPDX-License-Identifier: MIT */
/*
 * Files that never met share one scope in the amalgamation.  A name that two of them define at file scope gets the file's
 * name behind it in each; so may a local of the same name there, which changes nothing.  Members keep their names: those
 * behind . and
 * ->, and where the body of a struct or union declares them.  Macros of a file end with it.
 */
#include "amalgamate.h"

#include <string.h>

enum { MOST_DEPTH = 256 };

typedef struct scope {
	bool members[MOST_DEPTH]; /* the braces at that depth are those of a struct or union */
	int depth;
	token last, before;
} scope;

static void follow(scope *s, const token *t)
{
	if (*t->p == '{' && s->depth < MOST_DEPTH - 1)
		s->members[++s->depth] = token_is(&s->last, "struct") || token_is(&s->last, "union") ||
		                         token_is(&s->before, "struct") || token_is(&s->before, "union");
	if (*t->p == '}' && s->depth > 0)
		s->depth--;
	s->before = s->last;
	s->last = *t;
}

static bool is_member(const scope *s, const token *next, bool macro)
{
	if (*s->last.p == '.' || token_is(&s->last, "->"))
		return true;
	if (!s->members[s->depth] || *s->last.p == '[' || macro)
		return false;
	return next->n == 1 && strchr(";,[:)", *next->p);
}

void rename_into(text *out, const text *in, const names *all, int file, int headers, const char *suffix)
{
	static const token none = { TOKEN_END, "", 0, false };
	scope s = { .last = none, .before = none };
	const char *p = in->p, *end = in->p + in->n;
	bool line = false;

	for (token t = token_at(p, end, &line); t.kind != TOKEN_END; p += t.n, t = token_at(p, end, &line)) {
		text_put(out, t.p, t.n);
		if (t.kind == TOKEN_BLANK)
			continue;
		const defined *d =
			t.kind == TOKEN_NAME && names_clash(all, t.p, t.n) ? names_own(all, t.p, t.n, file, headers) : NULL;
		if (d) {
			token next = token_next(p + t.n, end, line);
			bool pasted = token_is(&s.last, "##") || token_is(&next, "##");
			if (!pasted && !is_member(&s, &next, d->macro))
				text_str(out, suffix);
		}
		follow(&s, &t);
	}
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].file == file && all->v[i].macro && names_own(all, all->v[i].s, strlen(all->v[i].s), file, headers)) {
			text_str(out, "#undef ");
			text_str(out, all->v[i].s);
			text_str(out, all->v[i].twice ? suffix : "");
			text_str(out, "\n");
		}
}
