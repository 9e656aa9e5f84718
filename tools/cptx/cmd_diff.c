/*
 * cptx diff: two kernels beside each other: what they take, their PTX in the normal form, their machine code.
 *
 * Lines are aligned by what they are without the numbers of registers and labels; lines that are aligned are the same if one
 * renaming of registers makes all of them so.
 */
#include "inspect.h"

#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_ARCH, OPTION_BRIEF };
static const cli_option options[] = {
	[OPTION_ARCH] = { "arch", 'a', "NAME", "assemble both for that target; default: that of each text", "@arch" },
	[OPTION_BRIEF] = { "brief", 'b', NULL, "no lines, only how many differ", NULL },
};

enum { TROUBLE = 2, KEY = 512, MOST_CELLS = 64 << 20 /* of the table that aligns two texts */ };

typedef struct text {
	char **line;
	char (*key)[KEY]; /* without numbers of names */
	size_t n, cap;
} text;

static void text_free(text *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->line[i]);
	free(t->line), free(t->key);
}

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$'; }

/* The length of a name at p that registers or labels of PTX may have; 0: there is none. */
static size_t name_at(const char *begin, const char *p)
{
	size_t n = 0;

	if ((p > begin && (is_name(p[-1]) || p[-1] == '.' || p[-1] == '%')) || !(is_name(*p) || *p == '%') ||
	    isdigit((unsigned char)*p))
		return 0;
	for (n = 1; is_name(p[n]);)
		n++;
	return n;
}

/* What stands for a name: registers and labels of the module may be called otherwise. */
static char stands_for(const cptx_module *m, const char *p, size_t n)
{
	char name[128];
	cptx_kernel *k;

	snprintf(name, sizeof name, "%.*s", (int)n, p);
	for (size_t i = 0; (k = cptx_module_body_at(m, i)); i++) {
		uint8_t kind = cptx_body_value(k, name).kind;
		if (kind == CPTX_VAL_REG || kind == CPTX_VAL_LABEL)
			return kind == CPTX_VAL_REG ? '%' : '$';
	}
	return 0;
}

/* Of PTX, without the names of registers and labels. */
static void key_of_ptx(char *key, const char *line, const cptx_module *m)
{
	size_t n = 0;

	for (const char *p = line; *p && n + 1 < KEY;) {
		size_t name = name_at(line, p);
		char other = name ? stands_for(m, p, name) : 0;
		key[n++] = other ? other : *p;
		p += other ? name : 1;
	}
	key[n] = 0;
}

/* Of machine code, without the numbers of registers and labels: R12 R, UR4 UR, `(.L_x_3) `(.L_x_). */
static void key_of_code(char *key, const char *line)
{
	size_t n = 0;

	for (const char *p = line; *p && n + 1 < KEY; p++) {
		bool reg = strchr("RUPB", *p) && (p == line || !is_name(p[-1])), label = *p == '_' && p > line && p[-1] == 'x';
		key[n++] = *p;
		while (reg && isupper((unsigned char)p[1]) && n + 1 < KEY)
			key[n++] = *++p;
		while ((reg || label) && isdigit((unsigned char)p[1]))
			p++;
	}
	key[n] = 0;
}

static bool text_add(text *t, const char *p, size_t n, const cptx_module *m)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 256;
		char **line = realloc(t->line, cap * sizeof *line);
		t->line = line ? line : t->line;
		char(*key)[KEY] = line ? realloc(t->key, cap * sizeof *key) : NULL;
		if (!key)
			return false;
		t->key = key, t->cap = cap;
	}
	if (!(t->line[t->n] = strndup(p, n)))
		return false;
	if (m)
		key_of_ptx(t->key[t->n], t->line[t->n], m);
	else
		key_of_code(t->key[t->n], t->line[t->n]);
	t->n++;
	return true;
}

/* What changes no program: the registers that there are, places in sources, the version that was written for. */
static bool says_nothing(const char *line)
{
	static const char *const directives[] = { ".reg ", ".loc\t", ".loc ", ".file", ".version", ".pragma", ".section" };

	for (size_t i = 0; i < sizeof directives / sizeof *directives; i++)
		if (!strncmp(line, directives[i], strlen(directives[i])))
			return true;
	return !strncmp(line, "//", 2) || strchr("\n{}()", *line);
}

/* Instructions, labels, variables and heads of the normal form. */
static bool text_of_ptx(text *t, cptx_module *m, cptx_error *err)
{
	cptx_ptx *ptx = cptx_emit(m, NULL, NULL, err);
	bool ok = ptx != NULL;

	for (const char *p = ok ? cptx_ptx_text(ptx) : ""; ok && *p; p += strcspn(p, "\n"), p += *p == '\n') {
		const char *q = p + strspn(p, " \t");
		if (!says_nothing(q))
			ok = text_add(t, q, strcspn(q, "\n"), m);
	}
	cptx_ptx_destroy(ptx);
	return ok;
}

static bool text_of_code(text *t, const inspect_kernel *k)
{
	for (size_t i = 0; i < k->nsass; i++)
		if (k->sass[i].text && strcmp(k->sass[i].text, "NOP") != 0 &&
		    !text_add(t, k->sass[i].text, strlen(k->sass[i].text), NULL))
			return false;
	return true;
}

/* ---- aligning ---- */

typedef struct pair {
	size_t a, b; /* SIZE_MAX: the line is on the other side only */
} pair;

static bool same_key(const text *a, size_t i, const text *b, size_t j) { return !strcmp(a->key[i], b->key[j]); }

/* Longest common subsequence of keys between equal ends, in O(n m); where that is far too much, all there are different. */
static pair *align(const text *a, const text *b, size_t *n)
{
	size_t head = 0, na = a->n, nb = b->n, i, j;

	while (head < na && head < nb && same_key(a, head, b, head))
		head++;
	while (na > head && nb > head && same_key(a, na - 1, b, nb - 1))
		na--, nb--;
	size_t w = nb - head + 1, cells = (na - head + 1) * w;
	bool whole = cells <= MOST_CELLS;
	pair *p = malloc((a->n + b->n + 1) * sizeof *p);
	uint16_t *best = whole && p ? calloc(cells, sizeof *best) : NULL;

	*n = 0;
	if (!p || (whole && !best)) {
		free(p);
		return NULL;
	}
#define BEST(i, j) best[((i)-head) * w + (j)-head]
	for (i = whole ? na : head; i-- > head;)
		for (j = nb; j-- > head;) {
			uint16_t down = BEST(i + 1, j), right = BEST(i, j + 1), both = BEST(i + 1, j + 1);
			BEST(i, j) = same_key(a, i, b, j) && both < UINT16_MAX ? (uint16_t)(both + 1) : down > right ? down : right;
		}
	for (i = j = 0; i < a->n || j < b->n;) {
		bool between = i >= head && (i < na || j < nb);
		if (!between || (whole && i < na && j < nb && same_key(a, i, b, j)))
			p[(*n)++] = (pair){ i++, j++ };
		else if (j == nb || (i < na && (!whole || BEST(i + 1, j) >= BEST(i, j + 1))))
			p[(*n)++] = (pair){ i++, SIZE_MAX };
		else
			p[(*n)++] = (pair){ SIZE_MAX, j++ };
	}
#undef BEST
	free(best);
	return p;
}

/* ---- names: one renaming for both texts ---- */

typedef struct renaming {
	struct name {
		char a[64], b[64];
	} * at;
	size_t n, cap;
} renaming;

static bool goes_to(renaming *r, const char *a, size_t na, const char *b, size_t nb)
{
	struct name name;

	snprintf(name.a, sizeof name.a, "%.*s", (int)na, a), snprintf(name.b, sizeof name.b, "%.*s", (int)nb, b);
	for (size_t i = 0; i < r->n; i++)
		if (!strcmp(r->at[i].a, name.a) || !strcmp(r->at[i].b, name.b))
			return !strcmp(r->at[i].a, name.a) && !strcmp(r->at[i].b, name.b);
	if (r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 64;
		struct name *grown = realloc(r->at, cap * sizeof *grown);
		if (!grown)
			return false;
		r->at = grown, r->cap = cap;
	}
	r->at[r->n++] = name;
	return true;
}

/* Lines of one key: PTX whose names correspond; machine code, where registers are handed out anew, letter by letter. */
static bool same_line(renaming *r, const cptx_module *const m[2], const char *a, const char *b)
{
	const char *begin_a = a, *begin_b = b;

	while (*a && *b) {
		size_t na = m[0] ? name_at(begin_a, a) : 0, nb = m[0] ? name_at(begin_b, b) : 0;
		if (na && nb && stands_for(m[0], a, na) && stands_for(m[1], b, nb)) {
			if (!goes_to(r, a, na, b, nb))
				return false;
			a += na, b += nb;
		} else if (*a++ != *b++) {
			return false;
		}
	}
	return *a == *b;
}

/* ---- the report ---- */

/* True: no difference. */
static bool put_texts(const char *what, const text *a, const text *b, const cptx_module *const m[2], bool brief,
                      bool *trouble)
{
	renaming r = { 0 };
	size_t n, less = 0, more = 0, other = 0;
	pair *p = align(a, b, &n);

	if (!p) {
		*trouble = true;
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		bool changed = p[i].a != SIZE_MAX && p[i].b != SIZE_MAX && !same_line(&r, m, a->line[p[i].a], b->line[p[i].b]);
		less += p[i].b == SIZE_MAX, more += p[i].a == SIZE_MAX, other += changed;
		if (!brief && (changed || p[i].b == SIZE_MAX))
			printf("- %s\n", a->line[p[i].a]);
		if (!brief && (changed || p[i].a == SIZE_MAX))
			printf("+ %s\n", b->line[p[i].b]);
	}
	free(p), free(r.at);
	if (less + more + other)
		printf("%s: %zu lines only in the first, %zu only in the second, %zu with other operands, of %zu and %zu\n", what,
		       less, more, other, a->n, b->n);
	else
		printf("%s: the same, %zu lines\n", what, a->n);
	return !(less + more + other);
}

static bool put_number(const char *kernel, const char *what, uint32_t a, uint32_t b)
{
	if (a != b)
		printf("%s: %s %u, %u\n", kernel, what, a, b);
	return a == b;
}

static bool put_resources(const inspect_kernel *a, const inspect_kernel *b)
{
	bool same = put_number(a->name, "registers", a->registers, b->registers);

	same &= put_number(a->name, "static shared memory", a->static_smem, b->static_smem);
	same &= put_number(a->name, "stack frame", a->frame, b->frame);
	same &= put_number(a->name, "barriers", a->barriers, b->barriers);
	same &= put_number(a->name, "bytes of machine code", a->code, b->code);
	same &= put_number(a->name, "spill stores", a->spill_stores, b->spill_stores);
	same &= put_number(a->name, "spill loads", a->spill_loads, b->spill_loads);
	same &= put_number(a->name, "threads of a CTA", a->threads, b->threads);
	if (a->has_occupancy && b->has_occupancy)
		same &= put_number(a->name, "resident warps", a->occupancy.warps, b->occupancy.warps);
	if (same)
		printf("%s: resources are the same\n", a->name);
	return same;
}

static const inspect_kernel *twin(const inspected *b, const inspect_kernel *k, size_t i, bool single)
{
	for (size_t j = 0; j < b->nkernel; j++)
		if (!strcmp(b->kernel[j].name, k->name))
			return &b->kernel[j];
	return single && b->nkernel == 1 ? &b->kernel[i] : NULL;
}

static bool put_kernels(const inspected *a, const inspected *b, bool brief, bool *trouble)
{
	static const cptx_module *const none[2];
	bool same = true;

	for (size_t i = 0; i < a->nkernel; i++) {
		const inspect_kernel *k = &a->kernel[i], *l = twin(b, k, i, a->nkernel == 1);
		text ta = { 0 }, tb = { 0 };
		if (!l) {
			printf("kernel %s: only in %s\n", k->name, a->path), same = false;
			continue;
		}
		same &= put_resources(k, l);
		if (!text_of_code(&ta, k) || !text_of_code(&tb, l))
			*trouble = true;
		else if (ta.n && tb.n)
			same &= put_texts("machine code", &ta, &tb, none, brief, trouble);
		text_free(&ta), text_free(&tb);
	}
	for (size_t i = 0; i < b->nkernel; i++)
		if (!twin(a, &b->kernel[i], i, b->nkernel == 1))
			printf("kernel %s: only in %s\n", b->kernel[i].name, b->path), same = false;
	return same;
}

static bool put_ptx(const inspected *a, const inspected *b, bool brief, bool *trouble)
{
	text ta = { 0 }, tb = { 0 };
	cptx_error err = { 0 };
	bool same = true;

	if (!a->m || !b->m) {
		printf("PTX: not compared, %s has none\n", a->m ? b->path : a->path);
	} else if (!text_of_ptx(&ta, a->m, &err) || !text_of_ptx(&tb, b->m, &err)) {
		cli_failed(a->cmd, "%s", err.code ? err.text : "out of memory");
		*trouble = true;
	} else {
		same = put_texts("PTX", &ta, &tb, (const cptx_module *[]){ a->m, b->m }, brief, trouble);
	}
	text_free(&ta), text_free(&tb);
	return same;
}

static int run(const cli_command *cmd, int argc, char **argv)
{
	inspect_opt o = { 0 };
	const char *value;
	bool brief = false, trouble = false, same = true;
	int status = EXIT_OK, option;

	while ((option = cli_next(cmd, argc, argv, &value, &status)) >= 0) {
		if (option == OPTION_ARCH && !cptx_target_find(value))
			return cli_usage(cmd, "there is no target '%s'; `cptx arch` lists them", value);
		if (option == OPTION_ARCH)
			o.arch = value;
		else
			brief = true;
	}
	if (option == -2)
		return status;
	if (optind + 2 != argc)
		return cli_usage(cmd, "give two files, PTX or cubins");
	inspected *in = calloc(2, sizeof *in);
	if (!in || !inspect_load(&in[0], cmd, argv[optind], &o) || !inspect_load(&in[1], cmd, argv[optind + 1], &o))
		trouble = true;
	if (!trouble) {
		same &= put_kernels(&in[0], &in[1], brief, &trouble);
		same &= put_ptx(&in[0], &in[1], brief, &trouble);
		for (int i = 0; i < 2; i++)
			if (*in[i].note)
				printf("note: %s: %s\n", in[i].path, in[i].note);
	}
	for (int i = 0; in && i < 2; i++)
		inspect_free(&in[i]);
	free(in);
	return cli_flush(cmd, trouble ? TROUBLE : same ? EXIT_OK : EXIT_FAILED);
}

const cli_command cmd_diff = {
	.name = "diff",
	.arguments = "[OPTION]... A B",
	.about = "Compares two kernels: what they take, their PTX, their machine code.",
	.details = "A and B are PTX or cubins. PTX is compared in the normal form, up to the names of registers and labels.\n"
			   "Exit status: 0 the same, 1 different, 2 trouble.\n",
	.options = options,
	.noption = sizeof options / sizeof *options,
	.operand_choices = "@file",
	.run = run,
};
