/* SPDX-License-Identifier: MIT */
#include "parse.h"

#include "../ask.h"

typedef struct message {
	char *text;
	size_t n, count;
} message;

static void collect(void *user, const cptx_error *e)
{
	message *s = user;
	size_t n = strlen(e->text);

	s->text = realloc(s->text, s->n + n + 2);
	must(s->text != NULL, "realloc");
	memcpy(s->text + s->n, e->text, n);
	memcpy(s->text + s->n + n, "\n", 2);
	s->n += n + 1;
	s->count++;
}

outcome outcome_of(const char *text, size_t size, const char *arch)
{
	message s = { 0 };
	outcome o = { 0 };
	cptx_error err = { 0 };
	cptx_module *m = cptx_parse(text, size, &(cptx_parse_opt){ .name = "t", .report = collect, .user = &s });
	const cptx_error *e = cptx_module_error(m);

	ck_assert_ptr_nonnull(m);
	if (e && !s.count)
		collect(&s, e);
	ck_assert_msg(!s.count == !e, "messages and error disagree: %s", s.text ? s.text : e->text);
	if (!e) {
		size_t n = cptx_check(m, arch, collect, &s);
		ck_assert_uint_eq(n, s.count);
		cptx_ptx *ptx = cptx_emit(m, arch, NULL, &err);
		if (!ptx && !s.count)
			collect(&s, &err);
		else if (ptx && !s.count)
			o.printed = strdup(cptx_ptx_text(ptx));
		cptx_ptx_destroy(ptx);
	}
	cptx_module_destroy(m);
	o.nerror = s.count;
	o.message = s.text ? s.text : strdup("");
	return o;
}

void outcome_free(outcome *o)
{
	free(o->message);
	free(o->printed);
	*o = (outcome){ 0 };
}

static char *join(const char *a, const char *b, const char *c)
{
	char *text = malloc(strlen(a) + strlen(b) + strlen(c) + 1);

	must(text != NULL, "malloc");
	strcpy(text, a);
	strcat(text, b);
	strcat(text, c);
	return text;
}

char *with_head(const char *text)
{
	bool has = !strncmp(text, ".version", 8) || !strncmp(text, "//", 2);
	return join(has ? "" : HEAD, text, "");
}

/* Up to the first statement. */
#define BODY_BEGINS                                                                                                         \
	".global .align 16 .b8 g[64];\n.const .b32 c[4];\n.visible .entry k(.param .b64 p, .param .u32 n)\n{\n"                 \
	".reg .pred p<4>; .reg .b16 h<4>; .reg .b32 r<9>; .reg .f32 f<9>; .reg .b64 d<9>; .reg .f64 e<4>;\n"                    \
	".shared .align 16 .b8 s[256];\n"

char *in_body(const char *text) { return join(HEAD BODY_BEGINS, text, "\nret;\n}\n"); }

char *in_body_on(const char *target, const char *text)
{
	char head[sizeof BODY_BEGINS + 128];

	snprintf(head, sizeof head, ".version 9.0\n.target %s\n.address_size 64\n" BODY_BEGINS, target);
	return join(head, text, "\nret;\n}\n");
}

char *print_text(const char *text, size_t size, bool keep)
{
	cptx_error err = { .code = CPTX_OK };
	cptx_module *m = cptx_parse(text, size, &(cptx_parse_opt){ .name = "t", .keep = keep });
	const cptx_error *e = cptx_module_error(m);

	ck_assert_msg(m && !e, "%s", e ? e->text : "no module");
	cptx_ptx *ptx = cptx_emit(m, NULL, &(cptx_emit_opt){ .keep = keep }, &err);
	ck_assert_msg(ptx != NULL, "%s", err.text);
	char *out = strdup(cptx_ptx_text(ptx));
	ck_assert_uint_eq(strlen(out), cptx_ptx_size(ptx));
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
	return out;
}

char *read_whole(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");

	must(f != NULL, path);
	must(!fseek(f, 0, SEEK_END), path);
	*size = (size_t)ftell(f);
	rewind(f);
	char *text = malloc(*size + 1);
	must(text && fread(text, 1, *size, f) == *size, path);
	text[*size] = 0;
	fclose(f);
	return text;
}

int parse_test_run(const char *name, const TTest *const *tests, size_t n)
{
	Suite *suite = suite_create(name);
	TCase *c = tcase_create(name);

	for (size_t i = 0; i < n; i++)
		tcase_add_test(c, tests[i]);
	tcase_set_timeout(c, 0);
	suite_add_tcase(suite, c);
	return test_main(name, suite);
}
