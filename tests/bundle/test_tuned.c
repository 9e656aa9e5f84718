/* SPDX-License-Identifier: MIT */
/* Which records of the tuning database a bundle's GEMM takes: of today's version, the latest of each candidate, the fastest.
 */
#include "cptx_load.h"

#include "../tune/store.h"

#include <cptx/bundle.h>
#include <cptx/gemm.h>

static cptx_error err;
static const cptx_gemm_opt opt = { .mma = CPTX_GEMM_WGMMA, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 };

static void before(void)
{
	folder_make();
	err = (cptx_error){ 0 };
}

static bool copy_key(void *user, const cptx_tune_record *r)
{
	static char problem[CPTX_TUNE_TEXT];

	snprintf(problem, sizeof problem, "%s", r->key->problem);
	*(cptx_tune_key *)user = (cptx_tune_key){ .generator = "gemm",
		                                      .version = r->key->version,
		                                      .problem = problem,
		                                      .dims = { 64, 64, 64, 1 },
		                                      .device = "A device",
		                                      .sms = 132,
		                                      .driver = 13000,
		                                      .compiler = "driver" };
	return false;
}

/* The key that cptx gives such a GEMM: of a candidate that is measured on the emulator. */
static cptx_tune_key measured_key(void)
{
	cptx_tune_key k = { .version = 0 };
	cptx_device *dev = cptx_device_open("emu:sm_90a", &err);
	cptx_tune *db = open_place(&err);

	OK(err);
	ck_assert(cptx_gemm_measure(db, dev, &opt, &(cptx_gemm_problem){ .m = 64, .n = 64, .k = 64 },
	                            &(cptx_tune_use){ .candidates = 1 }, NULL, &err));
	cptx_tune_each(db, copy_key, &k, NULL, &err);
	OK(err);
	cptx_tune_close(db);
	cptx_device_close(dev);
	return k;
}

/* How the only variant of a bundle was chosen. */
static void note_of(cptx_tune *db, char note[1024])
{
	cptx_bundle *b = cptx_bundle_new(NULL, &err);
	size_t size;

	ck_assert(cptx_bundle_add_gemm(b,
	                               CPTX_OPT(cptx_bundle_gemm, .name = "g", .target = "sm_90a", .opt = &opt, .m = 64, .n = 64,
	                                        .k = 64, .db = db, .device = "A device"),
	                               &err));
	const char *data = cptx_bundle_finish(b, &size, &err);
	OK(err);
	const cptx_load_head *h = (const cptx_load_head *)data;
	const cptx_load_entry *e = (const cptx_load_entry *)(data + h->entries);
	const cptx_load_variant *v = (const cptx_load_variant *)(data + e->variants);
	snprintf(note, 1024, "%s", data + v->note);
	cptx_bundle_destroy(b);
}

START_TEST(the_latest_of_each_and_the_fastest)
{
	cptx_tune_key k = measured_key(), old = k;
	char note[1024];
	cptx_tune *db = open_place(&err);
	static const struct {
		const char *candidate;
		double time;
		bool old;
		const char *note; /* then */
	} steps[] = {
		{ "bm=64 bn=32 stages=2", 9, true, "model: " },
		{ "bm=64 bn=64 stages=2", 5, false, "measured on A device, 5 us: bm=64 bn=64 stages=2" },
		{ "bm=64 bn=32 stages=3", 3, false, "measured on A device, 3 us: bm=64 bn=32 stages=3" },
		{ "bm=64 bn=32 stages=3", 7, false, "measured on A device, 5 us: bm=64 bn=64 stages=2" },
		{ "bm=63 bn=32 stages=3", 1, false, "measured on A device, 5 us: bm=64 bn=64 stages=2" },
		{ "bm=64 bn=32 stages=3", 1, true, "measured on A device, 5 us: bm=64 bn=64 stages=2" },
	};

	old.version = k.version + 1;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
		ck_assert(put(db, steps[i].old ? &old : &k, steps[i].candidate, steps[i].time, &err));
		note_of(db, note);
		ck_assert_msg(!strncmp(note, steps[i].note, strlen(steps[i].note)), "step %zu: %s", i, note);
	}
	cptx_tune_close(db);
}
END_TEST

/* The arguments of a bundle of one GEMM, or the error. */
static void arguments_of(const cptx_gemm_opt *o, char *to, size_t room)
{
	cptx_bundle *b = cptx_bundle_new(NULL, &err);
	char said[CPTX_LOAD_ERROR];
	const char *name;
	size_t size;

	to[0] = '\0';
	if (!cptx_bundle_add_gemm(
			b, CPTX_OPT(cptx_bundle_gemm, .name = "g", .target = "sm_90a", .opt = o, .m = 128, .n = 128, .k = 128), &err)) {
		snprintf(to, room, "%.500s", err.text);
		cptx_bundle_destroy(b);
		return;
	}
	const void *data = cptx_bundle_finish(b, &size, &err);
	OK(err);
	cptx_load *l = cptx_load_memory(data, size, said);
	ck_assert_msg(l != NULL, "%s", said);
	for (uint32_t i = 0; (name = cptx_load_argument(l, 0, i, NULL)); i++)
		snprintf(to + strlen(to), room - strlen(to), " %s", name);
	cptx_load_close(l);
	cptx_bundle_destroy(b);
}

START_TEST(arguments_follow_the_options)
{
	cptx_gemm_opt o = opt;
	char all[600];

	arguments_of(&o, all, sizeof all);
	ck_assert_str_eq(all, " a b d");
	o.sparse = o.bias = true;
	arguments_of(&o, all, sizeof all);
	ck_assert_str_eq(all, " a b d bias meta");
	o.sparse = o.bias = false, o.out = CPTX_E4M3, o.scale_out = CPTX_F32;
	arguments_of(&o, all, sizeof all);
	ck_assert_str_eq(all, " a b d scale_d");
	o = opt, o.experts = CPTX_GEMM_EXPERTS_MASKED;
	arguments_of(&o, all, sizeof all);
	ck_assert_msg(strstr(all, "g: a kernel for experts, whose counts the device has, cannot be bundled"), "%s", all);
}
END_TEST

START_TEST(what_has_other_parameters_is_refused)
{
	const cptx_gemm_opt gemv = { .mma = CPTX_GEMM_GEMV, .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 };
	cptx_gemm_opt o = gemv;
	char all[600];

	arguments_of(&o, all, sizeof all);
	ck_assert_msg(strstr(all, "bundle: g: gemv cannot be bundled as a GEMM"), "%s", all);
	err = (cptx_error){ 0 };
	for (int i = 0; i < 4; i++) { /* both kernels of weights, with a shape and without one */
		o = gemv;
		o.mma = i & 1 ? CPTX_GEMM_WGMMA : CPTX_GEMM_GEMV, o.b = CPTX_U4, o.scale = CPTX_BF16, o.scale_k = 128,
		o.zeros = true;
		if (i & 2) {
			cptx_gemm_choice c;
			ck_assert_uint_eq(cptx_gemm_auto(&o, &(cptx_gemm_problem){ .m = 1, .n = 128, .k = 128 }, 132, &c, 1, &err), 1);
			o = c.opt;
		}
		arguments_of(&o, all, sizeof all);
		ck_assert_msg(strstr(all, "bundle: g: B of .u4 beside A of .bf16: weights of few bits cannot be bundled"), "%d: %s",
		              i, all);
		err = (cptx_error){ 0 };
	}
	o = opt, o.strided = true;
	arguments_of(&o, all, sizeof all);
	ck_assert_msg(strstr(all, "g: matrices at distances of their own (.strided) cannot be bundled"), "%s", all);
	err = (cptx_error){ 0 };
	o = opt, o.unaligned = true;
	arguments_of(&o, all, sizeof all);
	ck_assert_msg(strstr(all, "g: rows that are no multiples of 16 bytes cannot be bundled; pad them"), "%s", all);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("bundle_tuned");
	TCase *c = test_case(s, "bundle_tuned");

	tcase_add_checked_fixture(c, before, folder_remove);
	tcase_add_test(c, the_latest_of_each_and_the_fastest);
	tcase_add_test(c, arguments_follow_the_options);
	tcase_add_test(c, what_has_other_parameters_is_refused);
	return test_main("bundle_tuned", s);
}
