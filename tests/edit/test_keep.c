/* SPDX-License-Identifier: MIT */
/* The corpus, printed as it stood: untouched, after edits that mean nothing, and with stamps around its barriers. */
#include "../sanitized.h"
#include "../../examples/examples.h"
#include "corpus.h"

#include "../ask.h"

static size_t unread;

static void same_text(const char *path, const char *text, size_t size)
{
	cptx_module *m = corpus_parse(path, text, size);
	cptx_error err = { .code = CPTX_OK };

	if (!m) {
		unread++;
		return;
	}
	cptx_ptx *ptx = cptx_emit(m, NULL, &(cptx_emit_opt){ .keep = true }, &err);
	ck_assert_msg(ptx != NULL, "%s: %s", path, err.text);
	ck_assert_msg(cptx_ptx_size(ptx) == size && !memcmp(cptx_ptx_text(ptx), text, size), "%s is printed otherwise", path);
	cptx_ptx_destroy(ptx);
	cptx_module_destroy(m);
}

START_TEST(untouched_text_stays)
{
	for (size_t i = 0; i < corpus_count(); i++) {
		corpus_file f = corpus_read(i);
		same_text(f.path, f.text, f.size);
		corpus_free(&f);
	}
	if (unread)
		skip("%zu of %zu files, which the parser refuses", unread, corpus_count());
	ck_assert_uint_lt(unread, corpus_count() / 20);
}
END_TEST

START_TEST(other_line_ends)
{
	for (size_t i = 0; i < corpus_count(); i += SAMPLE_OF(4, 16)) {
		corpus_file f = corpus_read(i);
		char *crlf = malloc(2 * f.size + 1);
		size_t n = 0;
		for (size_t j = 0; j < f.size; j++) {
			if (f.text[j] == '\n' && (!j || f.text[j - 1] != '\r'))
				crlf[n++] = '\r';
			crlf[n++] = f.text[j];
		}
		same_text(f.path, crlf, n);
		while (f.size && (f.text[f.size - 1] == '\n' || f.text[f.size - 1] == '\r'))
			f.size--;
		same_text(f.path, f.text, f.size);
		free(crlf);
		corpus_free(&f);
	}
}
END_TEST

/* Each line of a body that a statement begins comes from itself. */
START_TEST(lines_come_from_themselves)
{
	for (size_t i = 0; i < corpus_count(); i += SAMPLE_OF(4, 16)) {
		corpus_file f = corpus_read(i);
		cptx_module *m = corpus_parse(f.path, f.text, f.size);
		cptx_ptx *ptx = m ? cptx_emit(m, NULL, &(cptx_emit_opt){ .keep = true }, NULL) : NULL;
		cptx_item_info info;
		for (size_t b = 0; ptx && cptx_module_body_at(m, b); b++) {
			cptx_kernel *k = cptx_module_body_at(m, b);
			uint32_t last = 0;
			for (cptx_item *it = cptx_item_first(k); it; it = cptx_item_next(it)) {
				cptx_item_look(k, it, &info);
				if (info.kind == CPTX_ITEM_COMMENT || info.at.line == last)
					continue;
				last = info.at.line;
				cptx_site at = cptx_ptx_origin(ptx, last);
				ck_assert_msg(at.file && !strcmp(at.file, f.path) && at.line == last, "%s:%u comes from %s:%u", f.path, last,
				              at.file ? at.file : "nowhere", at.line);
			}
		}
		cptx_ptx_destroy(ptx);
		cptx_module_destroy(m);
		corpus_free(&f);
	}
}
END_TEST

/* ---- what ptxas makes of it ---- */

/* How the head says that ptxas takes the file: "-arch=sm_80 -c". */
static bool options_of(const corpus_file *f, char options[128])
{
	const char *line = strstr(f->text, "// ptxas:");
	if (!line)
		return false;
	snprintf(options, 128, "%.*s", (int)strcspn(line + 9, "\r\n"), line + 9);
	return true;
}

static void write_file(const char *path, const char *text)
{
	FILE *out = fopen(path, "wb");
	must(out && fwrite(text, 1, strlen(text), out) == strlen(text) && !fclose(out), path);
}

static int assemble(const char *options, const char *folder, const char *name, const char *text)
{
	char path[64], command[5000];
	snprintf(path, sizeof path, "%s/%s.ptx", folder, name);
	write_file(path, text);
	snprintf(command, sizeof command, "'%s' %s %s -o %s/%s.cubin > %s/said 2>&1", test_ptxas(), options, path, folder, name,
	         folder);
	return system(command);
}

static char *read_whole(const char *folder, const char *name, size_t *size)
{
	char path[64];
	snprintf(path, sizeof path, "%s/%s", folder, name);
	FILE *in = fopen(path, "rb");
	must(in != NULL, path);
	char *p = calloc(1, 8 << 20);
	*size = fread(p, 1, (8 << 20) - 1, in);
	fclose(in);
	return p;
}

/* The number of the cubin's code sections, and whether those of the same name have the same bytes in both (ELF64). */
static size_t same_code(const char *a, const char *b)
{
	uint64_t at[2];
	uint16_t count[2], names[2];
	const char *file[2] = { a, b };
	size_t found = 0;

	for (int i = 0; i < 2; i++) {
		memcpy(&at[i], file[i] + 40, 8);
		memcpy(&count[i], file[i] + 60, 2);
		memcpy(&names[i], file[i] + 62, 2);
	}
#define SECTION(i, n, field, v) memcpy(&(v), file[i] + at[i] + (size_t)(n)*64 + (field), sizeof(v))
	for (unsigned x = 0; x < count[0]; x++)
		for (unsigned y = 0; y < count[1]; y++) {
			uint32_t name[2];
			uint64_t table[2], offset[2], size[2];
			SECTION(0, x, 0, name[0]), SECTION(1, y, 0, name[1]);
			SECTION(0, names[0], 24, table[0]), SECTION(1, names[1], 24, table[1]);
			const char *s = a + table[0] + name[0];
			if (strncmp(s, ".text.", 6) != 0 || strcmp(s, b + table[1] + name[1]) != 0)
				continue;
			SECTION(0, x, 24, offset[0]), SECTION(1, y, 24, offset[1]);
			SECTION(0, x, 32, size[0]), SECTION(1, y, 32, size[1]);
			if (size[0] != size[1] || memcmp(a + offset[0], b + offset[1], size[0]) != 0)
				return 0;
			found++;
		}
#undef SECTION
	return found;
}

/* Edits that change no meaning: other names for all registers, labels and variables, comments, registers that nobody uses.
 */
static void rename_all(cptx_module *m)
{
	char name[64];
	size_t n = 0;

	for (size_t b = 0; cptx_module_body_at(m, b); b++) {
		cptx_kernel *k = cptx_module_body_at(m, b);
		cptx_item_info info;
		for (cptx_item *it = cptx_item_first(k); it; it = cptx_item_next(it)) {
			cptx_item_look(k, it, &info);
			for (size_t i = 0; i < info.noperands; i++) {
				cptx_val v = cptx_item_operand(it, i);
				char old[1024];
				cptx_body_name_of(k, v, old, sizeof old);
				bool global = v.kind == CPTX_VAL_SYM && !cptx_item_declaring(k, v);
				bool label =
					v.kind == CPTX_VAL_LABEL && info.kind == CPTX_ITEM_LABEL && !strstr(old, "tmp") && !strstr(old, "func");
				if ((v.kind == CPTX_VAL_REG || (v.kind == CPTX_VAL_SYM && !global) || label) && !strstr(old, "ren_")) {
					snprintf(name, sizeof name, "%sren_%zu_", v.kind == CPTX_VAL_REG ? "%" : "", n++);
					cptx_edit_rename(k, v, name);
				}
			}
			if (info.kind == CPTX_ITEM_INSN && n % 3 == 0) {
				cptx_edit_before(k, it);
				cptx_comment(k, "a comment");
				cptx_reg(k, CPTX_U32);
			}
		}
	}
}

START_TEST(names_make_no_difference)
{
	char folder[] = "/tmp/cptx-edit-XXXXXX", options[128], command[64];
	size_t compared = 0;

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	must(mkdtemp(folder) != NULL, folder);
	for (size_t i = 3; i < corpus_count(); i += CODE_STEP) {
		corpus_file f = corpus_read(i);
		cptx_module *m = corpus_parse(f.path, f.text, f.size);
		if (m && options_of(&f, options) && !strstr(options, "-g") && !assemble(options, folder, "before", f.text)) {
			rename_all(m);
			const cptx_error *e = cptx_module_error(m);
			ck_assert_msg(!e, "%s: %s", f.path, e ? e->text : "");
			char *text = print_module(m, NULL, true);
			size_t size;
			int status = assemble(options, folder, "after", text);
			char *message = read_whole(folder, "said", &size);
			ck_assert_msg(!status, "%s: %s", f.path, message);
			char *before = read_whole(folder, "before.cubin", &size), *after = read_whole(folder, "after.cubin", &size);
			ck_assert_msg(same_code(before, after) || !strstr(before, ".text."), "%s has other code", f.path);
			compared++;
			free(text), free(before), free(after), free(message);
		}
		cptx_module_destroy(m);
		corpus_free(&f);
	}
	snprintf(command, sizeof command, "rm -r %s", folder);
	must(!system(command), command);
	ck_assert_uint_gt(compared, 5);
}
END_TEST

START_TEST(stamps_are_assembled)
{
	char folder[] = "/tmp/cptx-edit-XXXXXX", options[128], command[64];
	size_t files = 0, waits = 0;

	if (!test_ptxas()) {
		skip("ptxas");
		return;
	}
	must(mkdtemp(folder) != NULL, folder);
	for (size_t i = 0; i < corpus_count() && files < STAMPED; i++) {
		corpus_file f = corpus_read(i);
		bool worth = strstr(f.path, ".O3.") && (strstr(f.text, "mbarrier.try_wait") || strstr(f.text, "barrier.cluster") ||
		                                        (strstr(f.text, "bar.sync") && i % 5 == 0));
		cptx_module *m = worth ? corpus_parse(f.path, f.text, f.size) : NULL;
		size_t n = 0;
		for (size_t b = 0; m && cptx_module_body_at(m, b); b++)
			if (!cptx_body_is_func(cptx_module_body_at(m, b)))
				n += stamp_waits(cptx_module_body_at(m, b));
		const cptx_error *e = m ? cptx_module_error(m) : NULL;
		ck_assert_msg(!e, "%s: %s", f.path, e ? e->text : "");
		if (n && options_of(&f, options)) {
			char *text = print_module(m, NULL, true), *message;
			size_t size, stamps = 0;
			int status = assemble(options, folder, "stamped", text);
			message = read_whole(folder, "said", &size);
			ck_assert_msg(!status, "%s: %s", f.path, message);
			for (const char *p = text; (p = strstr(p, "%globaltimer;")); p++)
				stamps++;
			ck_assert_uint_ge(stamps, 2 * n);
			free(text), free(message);
			files++;
			waits += n;
		}
		cptx_module_destroy(m);
		corpus_free(&f);
	}
	printf("%zu waits in %zu files\n", waits, files);
	ck_assert_uint_eq(files, STAMPED);
	snprintf(command, sizeof command, "rm -r %s", folder);
	must(!system(command), command);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("keep");
	TCase *c = tcase_create("keep");
	tcase_set_timeout(c, 0);
	tcase_add_test(c, untouched_text_stays);
	tcase_add_test(c, other_line_ends);
	tcase_add_test(c, lines_come_from_themselves);
	tcase_add_test(c, names_make_no_difference);
	tcase_add_test(c, stamps_are_assembled);
	suite_add_tcase(s, c);
	return test_main("edit_keep", s);
}
