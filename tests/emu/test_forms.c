/* SPDX-License-Identifier: MIT */
/*
 * Each form of the table either loads on the emulator, in every spelling that is tried, or is refused for the reason that
 * exec.def has.  CPTX_TABLE_WHOLE tries all spellings, CPTX_TABLE_ONLY=name those of one instruction.
 */
#include "../sanitized.h"
#include "../table/cases.h"
#include "../test.h"

#include "emu/core/decode.h"
#include "ir/ir.h"

enum { BATCH = 100, TEXT = 1 << 19, SAMPLE = 3 };

/* The first that has a form decides where it is loaded. */
static const char *const targets[] = { "sm_100a", "sm_103a", "sm_90a", "sm_120a", "sm_80", "sm_110a", "sm_107a" };
enum { TARGETS = sizeof targets / sizeof *targets };

/* Lines that wait to be loaded on a target, as one kernel. */
typedef struct batch {
	const char *target;
	unsigned n;
	char line[BATCH][TRIED_LINE];
} batch;

static unsigned loaded, refused;

static bool load(const batch *b, unsigned version, const char *const *line, unsigned n, cptx_error *err)
{
	char *file = pool_file_head(b->target, version, n == 1 && pool_names_sampler(*line)),
		 *head = pool_kernel_head(0, version, n == 1 ? *line : NULL), *text = malloc(TEXT), *at = text;
	cptx_device *dev = cptx_emu_open(b->target, &(cptx_emu_opt){ .threads = 1 }, err);

	ck_assert(text && dev);
	at += sprintf(at, "%s%s", file, head);
	for (unsigned i = 0; i < n; i++)
		at += sprintf(at, "%s\n", line[i]);
	at += sprintf(at, "\tret;\n}\n");
	cptx_program *p = cptx_device_load_text(dev, text, (size_t)(at - text), NULL, err);
	cptx_resources use; /* decodes it */
	bool ok = p && cptx_program_resources(p, NULL, 32, 0, &use, err);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	free(text), free(file), free(head);
	return ok;
}

static void flush(batch *b)
{
	const char *line[BATCH];
	cptx_error err = { 0 };

	for (unsigned i = 0; i < b->n; i++)
		line[i] = b->line[i];
	ck_assert_msg(!b->n || load(b, EMU_WRITTEN_FOR, line, b->n, &err), "%s: %s", b->target, err.text);
	loaded += b->n;
	b->n = 0;
}

/* The line is refused alone, for that reason. */
static void check_refused(const batch *b, unsigned version, const char *why, const char *line)
{
	cptx_error err = { 0 };

	ck_assert_msg(!load(b, version, &line, 1, &err), "%s: loaded, but: %s", line, why);
	ck_assert_msg(strstr(err.text, why), "%s: %s", line, err.text);
	refused++;
}

/* With samplers a module has another .target line, and all of its textures have one. */
static void check_alone(const batch *b, const char *line)
{
	cptx_error err = { 0 };

	ck_assert_msg(load(b, EMU_WRITTEN_FOR, &line, 1, &err), "%s: %s", line, err.text);
	loaded++;
}

/* Video instructions of one part are refused in some forms, with the reason; all others are loaded. */
static bool has_refused_forms(unsigned op) { return !strncmp(arch_ops[op].chapter, "Scalar Video", strlen("Scalar Video")); }

static void check_video(const batch *b, const char *line)
{
	cptx_error err = { 0 };
	const bool ok = load(b, EMU_WRITTEN_FOR, &line, 1, &err);

	ck_assert_msg(ok || strstr(err.text, "GPUs give other results than the manual's formula"), "%s: %s", line, err.text);
	loaded += ok, refused += !ok;
}

static bool try_spelling(const spelling *s, bool full, batch *b)
{
	trial t = full ? trial_full(s) : trial_of(s);
	unsigned op = arch_forms[s->form].op;
	outcome o;

	for (unsigned i = 0; i < TARGETS; i++) {
		trial_build(&t, BY_TEXT, cptx_target_find(targets[i]), &o);
		if (!o.ok)
			continue;
		if (!emu_decode_of(op) || o.version > EMU_WRITTEN_FOR) {
			check_refused(&b[i], MAX(o.version, EMU_WRITTEN_FOR),
			              emu_decode_of(op) ? "newer than PTX 9.3" : emu_left_out(op), o.line);
			return true;
		}
		if (pool_names_sampler(o.line)) {
			check_alone(&b[i], o.line);
			return true;
		}
		if (has_refused_forms(op)) {
			check_video(&b[i], o.line);
			return true;
		}
		if (b[i].n == BATCH)
			flush(&b[i]);
		char *line = b[i].line[b[i].n++];
		snprintf(line, TRIED_LINE, "%s", o.line);
		char *param = op == CPTX_OP_ST ? strstr(line, "[in_param") : NULL;
		if (param) /* the kernel's own is only read */
			memcpy(param + 1, "to", 2);
		return true;
	}
	return false;
}

START_TEST(each_form)
{
	batch *b = calloc(TARGETS, sizeof *b);

	ck_assert_ptr_nonnull(b);
	pool_init();
	for (unsigned i = 0; i < TARGETS; i++)
		b[i].target = targets[i];
	for (unsigned form = 0; form < arch_nform; form++) {
		unsigned n, tried = 0;
		if (!spell_wanted(form) || form % (unsigned)SAMPLE_OF(1, 4))
			continue;
		spelling *all = spell_all(form, spell_whole() ? ~0u : SAMPLE, &n);
		for (unsigned i = 0; i < n; i++)
			tried += try_spelling(&all[i], false, b) + (i == 0 && try_spelling(&all[i], true, b));
		bool is_gone = trial_end(&all[0], arch_target_index(cptx_target_find("sm_75")));
		ck_assert_msg(tried || is_gone, "%s: no spelling is legal anywhere", arch_forms[form].text);
		free(all);
	}
	for (unsigned i = 0; i < TARGETS; i++)
		flush(&b[i]);
	free(b);
	printf("%u lines loaded, %u refused\n", loaded, refused);
}
END_TEST

/* ---- forms of scalar video instructions ---- */

/* With .sat alone: of all types, of those where the three are one, or not. */
enum saturates { NEVER, ALIKE, ALWAYS };
static const struct {
	const char *name, *mode; /* of shifts and comparisons */
	enum saturates saturates;
} video[] = { { "vadd", "", ALIKE },  { "vsub", "", ALWAYS },     { "vabsdiff", "", ALWAYS },   { "vmin", "", ALWAYS },
	          { "vmax", "", ALWAYS }, { "vshl", ".wrap", NEVER }, { "vshr", ".clamp", ALWAYS }, { "vset", ".lt", NEVER } };

/* What becomes of the result: whether a form is executed that does this, and no more. */
static const struct {
	const char *op, *d, *c;
	bool loads;
} video_ends[] = { { "", "%vr0", "", true },
	               { ".add", "%vr0", ", %vr3", true },
	               { ".min", "%vr0", ", %vr3", false },
	               { ".max", "%vr0", ", %vr3", false },
	               { "", "%vr0.b0", ", %vr3", true },
	               { "", "%vr0.b3", ", %vr3", true },
	               { "", "%vr0.h0", ", %vr3", true },
	               { "", "%vr0.h1", ", %vr3", false } };

/* The line is legal, and is executed or refused, as it should be. */
static void check_form(const char *line, bool loads, unsigned *seen)
{
	const batch b = { .target = "sm_90a" };
	char text[TRIED_LINE];
	cptx_error err = { 0 };

	snprintf(text, sizeof text, "\t{ .reg .b32 %%vr<4>; mov.b32 %%vr1, 1; mov.b32 %%vr2, 2; mov.b32 %%vr3, 3; %s }", line);
	const bool ok = load(&b, EMU_WRITTEN_FOR, &(const char *){ text }, 1, &err);
	ck_assert_msg(ok == loads, "%s: %s", line, ok ? "loaded" : err.text);
	ck_assert_msg(ok || strstr(err.text, "other results than the manual's formula for "), "%s: %s", line, err.text);
	++*seen;
}

START_TEST(video_of_one_part)
{
	static const char *const type[] = { ".u32", ".s32" };
	unsigned seen = 0;
	char line[128];

	for (unsigned i = 0; i < sizeof video / sizeof *video; i++)
		for (unsigned types = 0; types < 8; types++)
			for (unsigned end = 0; end < sizeof video_ends / sizeof *video_ends; end++)
				for (unsigned sat = 0; sat < 2; sat++) {
					const bool shifts = !strncmp(video[i].name, "vsh", 3), compares = !strcmp(video[i].name, "vset");
					const unsigned d = types & 1, a = types >> 1 & 1, second = types >> 2;
					if ((shifts && second) || (compares && (d || sat)))
						continue; /* there is no such form, or it was tried */
					const bool saturated =
						end == 0 && (video[i].saturates == ALWAYS || (video[i].saturates == ALIKE && d == a && a == second));
					snprintf(line, sizeof line, "%s%s%s%s%s%s%s %s, %%vr1, %%vr2%s;", video[i].name, compares ? "" : type[d],
					         type[a], type[second], sat ? ".sat" : "", video[i].mode, video_ends[end].op, video_ends[end].d,
					         video_ends[end].c);
					check_form(line, sat ? saturated : video_ends[end].loads, &seen);
				}
	ck_assert_uint_eq(seen, 5 * 8 * 8 * 2 + 2 * 4 * 8 * 2 + 4 * 8);
}
END_TEST

START_TEST(video_products)
{
	static const char *const scale[] = { "", ".shr7", ".shr15" };
	unsigned seen = 0;
	char line[128];

	for (unsigned is_signed = 0; is_signed < 2; is_signed++)
		for (unsigned by = 0; by < 3; by++)
			for (unsigned sat = 0; sat < 2; sat++) {
				const char *type = is_signed ? ".s32" : ".u32";
				snprintf(line, sizeof line, "vmad%s%s%s%s%s %%vr0, %%vr1, %%vr2, %%vr3;", type, type, type,
				         sat ? ".sat" : "", scale[by]);
				check_form(line, is_signed || (!by && !sat), &seen);
			}
	ck_assert_uint_eq(seen, 12);
}
END_TEST

START_TEST(each_has_a_line)
{
	for (unsigned op = 0; op < arch_nop; op++)
		ck_assert_msg(!emu_decode_of(op) != !emu_left_out(op), "%s: exec.def needs one line for it", arch_ops[op].name);
}
END_TEST

/* What exec.def says of modifiers is about such as there are. */
START_TEST(each_modifier_is_there)
{
#define LEFT_OUT(op, why)
#define NO_EFFECT(field, why) #field,
#define EXEC(op, decoder, reads, idle)
	static const char *const unread[] = {
#include "emu/exec/exec.def"
	};
#undef EXEC
#define EXEC(op, decoder, reads, idle) { CPTX_OP_##op, reads, idle },
#undef NO_EFFECT
#define NO_EFFECT(field, why)
	static const struct {
		unsigned op;
		const char *reads, *idle;
	} rows[] = {
#include "emu/exec/exec.def"
	};
	bool used[ARRAY_LEN(unread)] = { 0 };
	char list[256];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int idle = 0; idle < 2; idle++) {
			const arch_op *o = &arch_ops[rows[i].op];
			snprintf(list, sizeof list, "%s", idle ? rows[i].idle : rows[i].reads);
			for (char *end, *field = strtok_r(list, " ", &end); field; field = strtok_r(NULL, " ", &end)) {
				bool is_there = false;
				for (unsigned f = 0; f < o->nfield; f++)
					is_there |= !strcmp(o->field[f], field);
				for (unsigned f = 0; f < o->nform; f++)
					is_there |= strstr(arch_forms[o->form + f].text, field) != NULL;
				ck_assert_msg(is_there, "exec.def: %s has no modifier \"%s\"", o->name, field);
				ck_assert_msg(!idle || emu_no_effect(field), "exec.def: no NO_EFFECT line says why \"%s\" of %s has none",
				              field, o->name);
				for (size_t u = 0; idle && u < ARRAY_LEN(unread); u++)
					used[u] |= !strcmp(unread[u], field);
			}
		}
	for (size_t u = 0; u < ARRAY_LEN(unread); u++)
		ck_assert_msg(used[u], "exec.def: no instruction has the modifier \"%s\" of a NO_EFFECT line", unread[u]);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { each_form, video_of_one_part, video_products, each_has_a_line, each_modifier_is_there };
	Suite *s = suite_create("emu_forms");
	TCase *c = tcase_create("emu_forms");

	for (size_t i = 0; i < ARRAY_LEN(tests); i++)
		tcase_add_test(c, tests[i]);
	tcase_set_timeout(c, 0);
	suite_add_tcase(s, c);
	return test_main("emu_forms", s);
}
