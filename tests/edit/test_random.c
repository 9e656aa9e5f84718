/* SPDX-License-Identifier: MIT */
/*
 * Random edits of corpus files: after each sequence the module prints; what it prints, as it stood and in normal form, is
 * read again as the same module and prints the same.
 */
#include "../sanitized.h"
#include "corpus.h"

static uint32_t state;
static const char *doing, *of;
static unsigned read, edited, retargeted, refused; /* files; edits; printed for other targets, or not */

static uint32_t roll(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return n ? (state >> 8) % n : 0;
}

static cptx_item *some_item(cptx_kernel *k)
{
	size_t n = 0;
	for (cptx_item *it = cptx_item_first(k); it; it = cptx_item_next(it))
		n++;
	n = roll((uint32_t)n);
	cptx_item *it = cptx_item_first(k);
	while (it && n--)
		it = cptx_item_next(it);
	return it;
}

static cptx_item *some_insn(cptx_kernel *k)
{
	cptx_item_info info;
	for (int i = 0; i < 20; i++) {
		cptx_item *it = some_item(k);
		if (it && cptx_item_look(k, it, &info) && info.kind == CPTX_ITEM_INSN)
			return it;
	}
	return NULL;
}

static cptx_kernel *some_body(cptx_module *m)
{
	size_t n = 0;
	while (cptx_module_body_at(m, n))
		n++;
	return n ? cptx_module_body_at(m, roll((uint32_t)n)) : NULL;
}

static void insert(cptx_kernel *k, cptx_item *it)
{
	doing = "insert";
	if (!it)
		cptx_edit_end(k);
	else if (roll(2))
		cptx_edit_before(k, it);
	else
		cptx_edit_after(k, it);
	cptx_val a = cptx_tid_x(k), b = cptx_add(k, a, 7);
	switch (roll(5)) {
	case 0: cptx_comment(k, "inserted"); break;
	case 1: {
		cptx_val s = cptx_shared(k, CPTX_U32, 4);
		cptx_st(k, s, b, .space = CPTX_SHARED, .type = CPTX_U32);
		break;
	}
	case 2: {
		CPTX_IF(k, cptx_setp(k, a, b, .cmp = CPTX_LT))
			cptx_add(k, a, b, .into = b);
		CPTX_ELSE(k)
			cptx_bar_sync(k, 1);
		break;
	}
	case 3: {
		cptx_val end = cptx_label(k);
		cptx_bra(k, end, .when = cptx_setp(k, a, 3, .cmp = CPTX_EQ));
		cptx_place(k, end);
		break;
	}
	default: cptx_pragma(k, "nounroll"); break;
	}
}

static void change_operand(cptx_kernel *k, cptx_item *it)
{
	cptx_item_info info;
	cptx_item_look(k, it, &info);
	for (size_t i = 0; i < info.noperands; i++) {
		cptx_val v = cptx_item_operand(it, i);
		if (v.kind != CPTX_VAL_REG || v.count != 1 || v.space || v.negated || v.offset || roll(2))
			continue;
		doing = "operand";
		cptx_edit_before(k, it);
		cptx_val fresh = cptx_reg(k, (enum cptx_type)v.type);
		cptx_edit_operand(k, it, i, fresh);
		return;
	}
}

static void rename_some(cptx_module *m, cptx_kernel *k, cptx_item *it, int n)
{
	char name[64], old[1024];
	cptx_item_info info;

	doing = "rename";
	cptx_item_look(k, it, &info);
	snprintf(name, sizeof name, "renamed_%d_", n);
	if (!roll(6)) {
		cptx_edit_rename_global(m, cptx_body_name(k), name);
		return;
	}
	for (size_t i = 0; i < info.noperands; i++) {
		cptx_val v = cptx_item_operand(it, i);
		if (v.kind == CPTX_VAL_VEC || v.kind == CPTX_VAL_LIST)
			v = cptx_body_element(k, v, 0);
		cptx_body_name_of(k, v, old, sizeof old);
		bool made = !strncmp(old, "%cptx", 5) || !strncmp(old, "$cptx", 5);
		bool has = v.kind == CPTX_VAL_REG || v.kind == CPTX_VAL_SYM || v.kind == CPTX_VAL_LABEL || v.kind == CPTX_VAL_FUNC;
		if (!has || made)
			continue;
		if (v.kind == CPTX_VAL_FUNC && (!strcmp(old, "vprintf") || !strcmp(old, "malloc") || !strcmp(old, "free")))
			continue;
		cptx_edit_rename(k, v, name);
		return;
	}
}

static void edit(cptx_module *m, int n)
{
	cptx_kernel *k = some_body(m);
	cptx_item *it = k ? some_insn(k) : NULL;
	char name[64];

	if (!k)
		return;
	if (!it || !roll(4)) {
		insert(k, roll(5) ? some_item(k) : NULL);
		return;
	}
	switch (roll(7)) {
	case 0: {
		doing = "remove";
		cptx_item_info info;
		cptx_item *scope = some_item(k);
		cptx_item_look(k, scope, &info);
		cptx_edit_remove(k, info.kind == CPTX_ITEM_SCOPE || info.kind == CPTX_ITEM_COMMENT ? scope : it);
		break;
	}
	case 1:
		doing = "replace";
		cptx_edit_replace(k, it);
		cptx_mov(k, 5, .type = CPTX_U32);
		break;
	case 2: change_operand(k, it); break;
	case 3: rename_some(m, k, it, n); break;
	case 4:
		doing = "guard";
		cptx_edit_before(k, it);
		cptx_edit_guard(k, it, cptx_negated(cptx_setp(k, cptx_ctaid_x(k), 0, .cmp = CPTX_NE)));
		break;
	case 5:
		doing = "parameter";
		snprintf(name, sizeof name, "added_%d", n);
		if (cptx_body_is_func(k))
			break;
		cptx_edit_before(k, cptx_item_first(k));
		cptx_param(k, CPTX_PTR, name);
		break;
	default:
		doing = "bounds";
		if (!cptx_body_is_func(k) && !strstr(of, ".blocksareclusters"))
			cptx_edit_bounds(k, .max_block = { 128 }, .min_ctas = 2);
		snprintf(name, sizeof name, "table_%d", n);
		cptx_global(m, CPTX_U32, 2, name);
	}
}

static void check_same(const char *path, uint32_t seed, const char *what, const char *a, const char *b)
{
	size_t line = 1, i = 0;
	for (; a[i] && a[i] == b[i]; i++)
		line += a[i] == '\n';
	if (a[i] == b[i])
		return;
	while (i && a[i - 1] != '\n')
		i--;
	ck_abort_msg("%s, seed %u: %s differs in line %zu:\n%.200s\n-- and\n%.200s", path, seed, what, line, a + i, b + i);
}

/* Printed for another target: what it lacks is named with its place, or all of it can be read again for that target. */
static void try_target(const char *path, uint32_t seed, cptx_module *m)
{
	static const char *const targets[] = { "sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120" };
	const char *target = targets[seed % 5];
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, target, &(cptx_emit_opt){ .keep = true }, &err);

	if (!ptx) {
		ck_assert_msg(err.code == CPTX_E_TARGET || err.code == CPTX_E_LIMIT, "%s, seed %u: %s", path, seed, err.text);
		ck_assert_msg(err.line || strstr(err.text, "cluster") || err.code == CPTX_E_LIMIT, "%s, seed %u: %s", path, seed,
		              err.text);
		refused++;
		return;
	}
	cptx_module *again = corpus_parse("again", cptx_ptx_text(ptx), cptx_ptx_size(ptx));
	ck_assert_msg(again != NULL, "%s, seed %u: for %s, cannot be read again", path, seed, target);
	ck_assert_str_eq(cptx_module_target(again)->name, target);
	ck_assert_uint_eq(cptx_module_version(again), cptx_ptx_version(ptx));
	cptx_module_destroy(again);
	cptx_ptx_destroy(ptx);
	retargeted++;
}

static void try_file(const corpus_file *f, uint32_t seed)
{
	cptx_module *m = corpus_parse("a.ptx", f->text, f->size);
	state = seed;
	of = f->text;
	if (!m)
		return;
	read++;
	for (int i = 0, n = 1 + (int)roll(12); i < n; i++) {
		edit(m, i);
		edited++;
		const cptx_error *e = cptx_module_error(m);
		ck_assert_msg(!e, "%s, seed %u, %s: %s", f->path, seed, doing, e ? e->text : "");
	}
	bool ok = cptx_module_freeze(m);
	ck_assert_msg(ok, "%s, seed %u: %s", f->path, seed, ok ? "" : cptx_module_error(m)->text);
	char *kept = print_module(m, NULL, true), *normal = print_module(m, NULL, false), *code = print_code(m);
	cptx_error err = { 0 };
	cptx_module *again = cptx_parse(kept, strlen(kept), &(cptx_parse_opt){ .name = "kept", .keep = true });
	if (cptx_module_error(again))
		err = *cptx_module_error(again);
	ck_assert_msg(!err.code, "%s, seed %u: %s", f->path, seed, err.text);
	char *kept_again = print_module(again, NULL, true), *code_again = print_code(again);
	check_same(f->path, seed, "kept text", kept, kept_again);
	check_same(f->path, seed, "what the kept text means", code, code_again);
	cptx_module *third = cptx_parse(normal, strlen(normal), &(cptx_parse_opt){ .name = "normal" });
	ck_assert_msg(!cptx_module_error(third), "%s, seed %u: %s", f->path, seed, cptx_module_error(third)->text);
	char *normal_again = print_module(third, NULL, false);
	check_same(f->path, seed, "normal form", normal, normal_again);
	try_target(f->path, seed, m);
	free(kept), free(normal), free(code), free(kept_again), free(code_again), free(normal_again);
	cptx_module_destroy(m);
	cptx_module_destroy(again);
	cptx_module_destroy(third);
}

START_TEST(random_edits)
{
	enum { LARGEST = 300000 };
	const char *first = getenv("CPTX_EDIT_SEED");
	uint32_t seed = first ? (uint32_t)atoi(first) : 1, tried = 0;
	const size_t step = SAMPLE_OF(4, 16);

	for (size_t i = seed % step; i < corpus_count(); i += step) {
		corpus_file f = corpus_read(i);
		for (int turn = 0; turn < SAMPLE_OF(2, 1) && f.size < LARGEST; turn++, tried++)
			try_file(&f, seed + (uint32_t)(i * 1000 + (size_t)turn));
		corpus_free(&f);
	}
	printf("%u sequences of %u edits; for other targets %u, %u of them refused\n", read, edited, retargeted + refused,
	       refused);
	ck_assert_uint_gt(retargeted, read / 4);
	ck_assert_uint_ge(read, tried * 9 / 10);
	ck_assert_uint_gt(edited, read);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("random");
	TCase *c = tcase_create("random");
	tcase_set_timeout(c, 0);
	tcase_add_test(c, random_edits);
	suite_add_tcase(s, c);
	return test_main("edit_random", s);
}
