/* SPDX-License-Identifier: MIT */
#include "scene.h"

const char text[] = ".version 8.0\n"
					".target sm_90 // the target\n"
					".address_size 64\n"
					"\n"
					".global .align 4 .b32 one, two;\n"
					".func (.param .b32 out) helper(.param .b32 in);\n"
					".global .u64 table[2] = { generic(one), helper };\n"
					"// a helper\n"
					".func (.param .b32 out) helper(.param .b32 in)\n"
					"{\n"
					"    .reg .b32 %r<2>;\n"
					"    ld.param.b32 %r1, [in];\n"
					"    st.param.b32 [out], %r1;\n"
					"    ret;\n"
					"}\n"
					".visible .entry main( // its head\n"
					"    .param .u64 p\n"
					")\n"
					".maxntid 64\n"
					"{\n"
					"    .reg .b32 %r<8>, %x;\n"
					"    .reg .b64 %rd<4>;\n"
					"    .reg .pred %p<2>;\n"
					"    .shared .b32 buffer[32], other;\n"
					"\n"
					"    ld.param.u64 %rd1, [p]; // the pointer\n"
					"    mov.u32 %r1, %tid.x;\n"
					"    setp.lt.u32 %p1, %r1, 16; @%p1 bra DONE;\n"
					"    // between\n"
					"    bar.sync 0;\n"
					"    {\n"
					"        .reg .b32 %inner;\n"
					"        .param .b32 a, b;\n"
					"        st.param.b32 [a], %r1;\n"
					"        call (b), helper, (a);\n"
					"        ld.param.b32 %inner, [b];\n"
					"    }\n"
					"    st.global.v2.u32 [%rd1+8], {%r1, %r2};\n"
					"    st.global.u32 [one], %r1;\n"
					"DONE:\n"
					"    ret;\n"
					"}\n";

cptx_module *m;
cptx_kernel *k, *f;

void open_text(const char *ptx)
{
	cptx_module_destroy(m);
	m = cptx_parse(ptx, strlen(ptx), &(cptx_parse_opt){ .name = "t.ptx", .keep = true });
	const cptx_error *e = cptx_module_error(m);
	ck_assert_msg(!e, "%s", e ? e->text : "");
	k = cptx_module_body(m, "main");
	f = cptx_module_body(m, "helper");
}

void drop(void)
{
	cptx_module_destroy(m);
	m = NULL;
}

cptx_item *find(const char *spelling)
{
	cptx_item *it = cptx_item_find(k, NULL, spelling);
	ck_assert_msg(it != NULL, "no %s", spelling);
	return it;
}

cptx_val value(const char *name)
{
	cptx_val v = cptx_body_value(k, name);
	ck_assert_msg(v.kind != CPTX_VAL_NONE, "no %s", name);
	return v;
}

enum { MOST_LINES = 120 };
static size_t length(const char *line) { return strcspn(line, "\n") + 1; }
static bool equal(const char *a, const char *b) { return length(a) == length(b) && !memcmp(a, b, length(a)); }

/* The kept text: the lines that `want` lists, "-old" and "+new" in the order of the text, are all that changed. */
void changes(const char *want)
{
	char *now = print_module(m, NULL, true), *got = calloc(1, 20000), *n = now;
	static unsigned same[MOST_LINES][MOST_LINES]; /* the longest common part of what follows */
	const char *a[MOST_LINES], *b[MOST_LINES];
	size_t na = 0, nb = 0, x = 0, y = 0;

	for (const char *p = text; *p && na < MOST_LINES - 1; p += length(p))
		a[na++] = p;
	for (const char *p = n; *p && nb < MOST_LINES - 1; p += length(p))
		b[nb++] = p;
	memset(same, 0, sizeof same);
	for (x = na; x-- > 0;)
		for (y = nb; y-- > 0;)
			same[x][y] = equal(a[x], b[y])                  ? same[x + 1][y + 1] + 1
			             : same[x + 1][y] >= same[x][y + 1] ? same[x + 1][y]
			                                                : same[x][y + 1];
	for (x = y = 0; x < na || y < nb;) {
		if (x < na && y < nb && equal(a[x], b[y]))
			x++, y++;
		else if (x < na && same[x + 1][y] >= same[x][y + 1])
			sprintf(got + strlen(got), "-%.*s", (int)length(a[x]), a[x]), x++;
		else
			sprintf(got + strlen(got), "+%.*s", (int)length(b[y]), b[y]), y++;
	}
	ck_assert_msg(!strcmp(got, want), "changed:\n%s-- and not\n%s-- in\n%s", got, want, now);
	cptx_module *again = corpus_parse("again", now, strlen(now));
	ck_assert_msg(again != NULL, "cannot be read again:\n%s", now);
	char *code = print_code(m), *code_again = print_code(again);
	ck_assert_str_eq(code, code_again);
	cptx_module_destroy(again);
	free(code), free(code_again), free(got), free(now);
}

void says(enum cptx_code code, const char *part)
{
	const cptx_error *e = cptx_module_error(m);
	ck_assert_msg(e != NULL, "no error, where this was to come: %s", part);
	ck_assert_msg(e->code == code && strstr(e->text, part), "%s, not %s: %s", cptx_code_name(e->code), part, e->text);
	char first[CPTX_ERROR_TEXT];
	memcpy(first, e->text, sizeof first);
	cptx_edit_remove(k, cptx_item_first(k)); /* harmless from now on */
	cptx_edit_rename_global(m, "main", "later");
	ck_assert_ptr_null(cptx_emit(m, NULL, NULL, NULL));
	ck_assert_str_eq(cptx_module_error(m)->text, first);
}
