/* SPDX-License-Identifier: MIT */
/* PTX for older drivers and other devices: which rung of the ladder, which .version, and which line stands in the way. */
#include "harness.h"

#include <cptx/retarget.h>

#include <dirent.h>

static cptx_error err;
static char why[16384];

#define HEAD ".version 9.1\n.target %s\n.address_size 64\n// a comment\n.visible .entry k(.param .u64 p)\n{\n"
#define BEGIN "\t.reg .b64 %%rd<3>;\n\t.reg .b32 %%r<9>;\n\tld.param.u64 %%rd1, [p];\n"
#define END "\tst.global.u32 [%%rd1], %%r1;\n\tret;\n}\n"

static const char *text_for(const char *target, const char *line)
{
	static char text[2048];

	snprintf(text, sizeof text, HEAD BEGIN "\t%s\n" END, target, line);
	return text;
}

static cptx_ptx *retarget(const char *text, uint32_t driver, uint16_t cc, const char *target)
{
	memset(&err, 0, sizeof err);
	return cptx_retarget(
		text, strlen(text),
		&(cptx_retarget_opt){ .name = "k.ptx", .driver = driver, .compute_capability = cc, .target = target }, why,
		sizeof why, &err);
}

static const char add[] = "add.u32 %r1, %r2, %r3;", wide[] = "ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1];",
				  elect[] = "{ .reg .pred %e; elect.sync _|%e, 0xffffffff; }",
				  setmax[] = "setmaxnreg.inc.sync.aligned.u32 160;";

START_TEST(the_first_rung_that_serves)
{
	static const struct {
		const char *target, *line;
		uint32_t driver;
		uint16_t cc;
		const char *wanted;
		const char *got;
		unsigned version;
	} cases[] = {
		{ "sm_75", add, 12080, 0, NULL, "sm_75", 63 }, /* its own, the lowest version */
		{ "sm_90a", add, 12080, 90, NULL, "sm_90a", 80 },
		{ "sm_90a", setmax, 12000, 90, NULL, "sm_90a", 80 },
		{ "sm_90a", add, 11080, 90, NULL, "sm_90", 78 },    /* the driver knows no sm_90a */
		{ "sm_90a", add, 12080, 100, NULL, "sm_100a", 86 }, /* not its own device */
		{ "sm_90a", add, 13000, 103, NULL, "sm_103a", 88 },
		{ "sm_90a", add, 12080, 103, NULL, "sm_100", 86 }, /* older devices of the family: an a target is of its own alone */
		{ "sm_100a", add, 12060, 100, NULL, "sm_90", 78 },
		{ "sm_120a", add, 12080, 120, NULL, "sm_120a", 87 },
		{ "sm_120a", add, 12060, 0, NULL, "sm_90", 78 },
		{ "sm_80", add, 13000, 120, NULL, "sm_80", 70 }, /* what runs there stays as it is */
		{ "sm_90a", elect, 12080, 90, "sm_90", "sm_90", 80 },
		{ "sm_100a", wide, 12090, 0, NULL, "sm_100a", 88 },
		{ "sm_50", add, 13000, 90, NULL, "sm_90a", 80 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		const char *text = text_for(cases[i].target, cases[i].line);
		cptx_ptx *ptx = retarget(text, cases[i].driver, cases[i].cc, cases[i].wanted);
		char taken[64];
		ck_assert_msg(ptx != NULL, "case %zu: %s\n%s", i, err.text, why);
		ck_assert_msg(!strcmp(cptx_ptx_target(ptx)->name, cases[i].got) && cptx_ptx_version(ptx) == cases[i].version,
		              "case %zu: %s, %u\n%s", i, cptx_ptx_target(ptx)->name, cptx_ptx_version(ptx), why);
		snprintf(taken, sizeof taken, "%s: taken, .version %u.%u\n", cases[i].got, cases[i].version / 10,
		         cases[i].version % 10);
		ck_assert_ptr_nonnull(strstr(why, taken));
		/* all else is as it was */
		const char *now = cptx_ptx_text(ptx), *rest = strstr(now, ".address_size");
		ck_assert_ptr_nonnull(rest);
		ck_assert_str_eq(rest, strstr(text, ".address_size"));
		cptx_ptx_destroy(ptx);
	}
}
END_TEST

START_TEST(the_line_that_prevents_it)
{
	ck_assert_ptr_null(retarget(text_for("sm_100a", wide), 12080, 100, NULL));
	FAILS(err, CPTX_E_TARGET,
	      "k.ptx:10:2: error: ld.global.v8.b32 needs .version 8.8 on sm_100a; the driver takes up to 8.7");
	ck_assert_ptr_nonnull(strstr(why, "sm_100f: the driver takes .version 8.7, and sm_100f came with 8.8"));
	ck_assert_ptr_nonnull(strstr(why, "sm_90: k.ptx:10:2: error: "));
	ck_assert_ptr_null(retarget(text_for("sm_90a", setmax), 13000, 80, NULL));
	FAILS(err, CPTX_E_TARGET, "k.ptx:10:2: error: setmaxnreg");
	ck_assert_ptr_null(retarget(text_for("sm_90a", setmax), 11080, 0, NULL));
	FAILS(err, CPTX_E_TARGET, "setmaxnreg");
	ck_assert_ptr_null(retarget(text_for("sm_80", "add.u33 %r1, %r2, %r3;"), 0, 0, NULL));
	ck_assert_int_ne(err.code, CPTX_E_TARGET);
	ck_assert_ptr_nonnull(strstr(err.text, "k.ptx:10:"));
	ck_assert_ptr_null(retarget(text_for("sm_80", add), 0, 0, "sm_9"));
	FAILS(err, CPTX_E_ARG, "there is no target \"sm_9\"");
	ck_assert_ptr_null(retarget(text_for("sm_80", add), 0, 60, NULL));
	FAILS(err, CPTX_E_TARGET, "runs on compute capability 6.0");
	ck_assert_ptr_null(cptx_retarget(NULL, 0, NULL, NULL, 0, &err));
	FAILS(err, CPTX_E_ARG, "cptx_retarget: the text is NULL");
}
END_TEST

static void count_error(void *user, const cptx_error *e)
{
	(void)e;
	++*(unsigned *)user;
}

/* From the release notes of CUDA, and NVIDIA's table of PTX versions. */
START_TEST(versions_of_drivers)
{
	static const uint32_t of[][2] = { { 10020, 65 }, { 11000, 70 }, { 11080, 78 }, { 12000, 80 }, { 12050, 85 },
		                              { 12060, 85 }, { 12080, 87 }, { 12090, 88 }, { 13000, 90 }, { 13010, 91 } };

	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		ck_assert_uint_eq(cptx_driver_ptx(of[i][0]), of[i][1]);
}
END_TEST

/* Texts of the corpus, as if of a toolkit of tomorrow: what comes out is right for the driver, as a check of its own says.
 */
START_TEST(others_texts)
{
	static char text[1 << 20];
	static const uint32_t drivers[] = { 11080, 12000, 12080, 13000 };
	unsigned tried = 0, served = 0, at = 0;
	DIR *d = opendir(CORPUS);

	ck_assert_ptr_nonnull(d);
	for (struct dirent *e; (e = readdir(d)) && tried < 240;) {
		char path[1024];
		snprintf(path, sizeof path, "%s/%s", CORPUS, e->d_name);
		FILE *f = strstr(e->d_name, ".ptx") && at++ % 8 == 0 ? fopen(path, "r") : NULL;
		const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
		if (f)
			fclose(f);
		text[n] = 0;
		char *version = strstr(text, ".version ");
		if (!n || n > 100000 || !version)
			continue;
		memcpy(version + 9, "9.1", 3);
		for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++) {
			const unsigned most = cptx_driver_ptx(drivers[i]);
			cptx_ptx *ptx = retarget(text, drivers[i], 0, NULL);
			tried++;
			ck_assert_msg(ptx || err.code != CPTX_OK, "%s", path);
			if (!ptx)
				continue;
			ck_assert_uint_le(cptx_ptx_version(ptx), most);
			cptx_module *m = cptx_parse(cptx_ptx_text(ptx), cptx_ptx_size(ptx), NULL);
			unsigned wrong = 0;
			ck_assert_msg(cptx_check(m, NULL, count_error, &wrong) == 0, "%s for %u: %u errors", path, drivers[i], wrong);
			cptx_module_destroy(m);
			cptx_ptx_destroy(ptx);
			served++;
		}
	}
	closedir(d);
	printf("%u of %u served\n", served, tried);
	ck_assert_uint_ge(served, 40);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("retarget");
	TCase *c = test_case(s, "retarget");

	tcase_add_test(c, the_first_rung_that_serves);
	tcase_add_test(c, the_line_that_prevents_it);
	tcase_add_test(c, versions_of_drivers);
	tcase_add_test(c, others_texts);
	return test_main("retarget", s);
}
