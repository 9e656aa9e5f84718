/* SPDX-License-Identifier: MIT */
/* Warp roles: who comes where, with which registers. */
#include "../test.h"
#include "../verify/assemble.h"
#include "cli/ptxas.h"

#include <cptx/cptx.h>
#include <cptx/device.h>
#include <cptx/emu.h>
#include <cptx/roles.h>

enum { THREADS = 384, MARK = 1000, BEHIND = 10000000 };

static cptx_error err;

#define RIGHT(what)                                                                                                         \
	do {                                                                                                                    \
		bool right_ = (what);                                                                                               \
		SURE(right_ &&err.code == CPTX_OK, "%s", err.text);                                                                 \
	} while (0)

/* Each thread of role n adds MARK * (n + 1) + its number in the role + 1, and 100000 * its warp's, at its place. */
static void mark(cptx_kernel *k, const cptx_roles *r, cptx_val out, uint32_t n)
{
	cptx_val at = cptx_add(k, out, cptx_mul_wide(k, r->tid, 4));
	cptx_val number = cptx_add(k, cptx_role_thread(k, r), MARK * (n + 1) + 1);
	cptx_val v = cptx_mad(k, cptx_role_warp(k, r), 100000, number, .mode = CPTX_LO);

	cptx_red(k, at, v, .space = CPTX_GLOBAL, .op = CPTX_ADD, .type = CPTX_U32);
}

/* Roles of 4 (one thread; they end), 1 (one thread), 2, 1 and, if not `some`, 4 warps; the last with registers.  Who comes
 * behind all of them adds BEHIND. */
static void build(cptx_module *m, const char *target, bool some)
{
	cptx_kernel *k = cptx_kernel_begin(m, "roles", .block = { THREADS }, .min_ctas = 1);
	cptx_val out = cptx_param(k, CPTX_PTR, "out");
	cptx_roles r;

	cptx_roles_begin(k, &r, .threads = THREADS, .target = target);
	CPTX_ROLE(k, &r, .warps = 4, .regs = 24, .elect = true, .exits = true) {
		mark(k, &r, out, 0);
	}
	CPTX_ROLE(k, &r, .warps = 1, .elect = true) {
		mark(k, &r, out, 1);
	}
	CPTX_ROLE(k, &r, .warps = 2) {
		mark(k, &r, out, 2);
	}
	CPTX_ROLE(k, &r, .warps = 1) {
		mark(k, &r, out, 3);
	}
	if (!some)
		CPTX_ROLE(k, &r, .warps = 4, .regs = 232) {
			mark(k, &r, out, 4);
		}
	cptx_red(k, cptx_add(k, out, cptx_mul_wide(k, r.tid, 4)), BEHIND, .space = CPTX_GLOBAL, .op = CPTX_ADD,
	         .type = CPTX_U32);
}

static uint32_t right_of(uint32_t t, bool some)
{
	static const uint32_t first[] = { 0, 4, 5, 7, 8, 12 };
	uint32_t warp = t / 32, n = 0;

	while (warp >= first[n + 1])
		n++;
	const uint32_t behind = n ? BEHIND : 0;
	if ((n < 2 && t != first[n] * 32) || (n == 4 && some))
		return behind;
	return behind + MARK * (n + 1) + 1 + (t - first[n] * 32) + 100000 * (warp - first[n]);
}

static void run(const char *target, bool some, uint64_t seed)
{
	cptx_module *m = cptx_module_new(NULL);
	uint32_t out[THREADS];

	err = (cptx_error){ .code = CPTX_OK };
	build(m, target, some);
	SURE(!cptx_module_error(m), "%s", cptx_module_error(m) ? cptx_module_error(m)->text : "");
	cptx_device *dev = cptx_emu_open(target, &(cptx_emu_opt){ .seed = seed }, &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	uint64_t to = cptx_mem_alloc(dev, sizeof out, &err);
	RIGHT(p && cptx_mem_fill8(dev, to, 0, sizeof out, &err));
	RIGHT(cptx_launch_once(p, NULL, CPTX_LAUNCH(.grid = { 1 }, CPTX_ARGS(to)), NULL, &err));
	RIGHT(cptx_mem_read(dev, out, to, sizeof out, &err));
	for (uint32_t t = 0; t < THREADS; t++)
		SURE(out[t] == right_of(t, some), "%s: thread %u has %u, not %u", target, t, out[t], right_of(t, some));
	cptx_program_destroy(p);
	cptx_mem_free(dev, to);
	cptx_device_close(dev);
	cptx_module_destroy(m);
}

static const char *const targets[] = { "sm_80", "sm_90", "sm_90a", "sm_100a", "sm_120a" };
enum { TARGETS = sizeof targets / sizeof *targets };

START_TEST(who_is_who)
{
	for (uint32_t i = 0; i < 3 * TARGETS; i++)
		run(targets[i % TARGETS], i & 1, i);
}
END_TEST

static uint32_t count(const char *text, const char *word)
{
	uint32_t n = 0;

	for (const char *p = text; (p = strstr(p, word)); p++)
		n++;
	return n;
}

/* What the target lacks is left out; ptxas accepts the rest. */
START_TEST(targets_and_registers)
{
	static const uint32_t moves[] = { 0, 0, 1, 1, 1 }, elects[] = { 0, 2, 2, 2, 2 };
	char path[4096];
	bool judged = ptxas_find(path, sizeof path);

	for (uint32_t i = 0; i < TARGETS; i++) {
		cptx_module *m = cptx_module_new(NULL);
		cptx_error e = { .code = CPTX_OK };
		build(m, targets[i], false);
		cptx_ptx *ptx = cptx_emit(m, targets[i], NULL, &e);
		SURE(ptx != NULL, "%s", e.text);
		const char *text = cptx_ptx_text(ptx);
		ck_assert_uint_eq(count(text, "setmaxnreg.dec.sync.aligned.u32 24;"), moves[i]);
		ck_assert_uint_eq(count(text, "setmaxnreg.inc.sync.aligned.u32 232;"), moves[i]);
		ck_assert_uint_eq(count(text, "elect.sync"), elects[i]);
		assembly job = { .target = targets[i], .ptx = text };
		if (judged) {
			assemble(&job, 1);
			SURE(!job.status, "%s: %s", targets[i], job.said);
			ck_assert_msg(!strstr(job.said, "setmaxnreg"), "%s: %s", targets[i], job.said); /* ignored, else */
			assemble_free(&job, 1);
		}
		cptx_ptx_destroy(ptx);
		cptx_module_destroy(m);
	}
	if (!judged)
		skip("ptxas, to judge the roles");
}
END_TEST

static void wrong(cptx_roles_opt o, const cptx_role_opt *role, uint32_t n, const char *words)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .max_regs = 168);
	cptx_roles r;

	cptx_roles_begin_(k, CPTX_HERE, &r, &o);
	for (uint32_t i = 0; i < n; i++) {
		cptx_role_begin_(k, CPTX_HERE, &r, &role[i]);
		cptx_role_end_(k, CPTX_HERE, &r);
	}
	SURE(cptx_module_error(m) && strstr(cptx_module_error(m)->text, words), "%s\nlacks: %s",
	     cptx_module_error(m) ? cptx_module_error(m)->text : "no error", words);
	ck_assert_ptr_nonnull(strstr(cptx_module_error(m)->text, "test_roles.c:"));
	cptx_module_destroy(m);
}

START_TEST(errors)
{
	const cptx_role_opt none = { .warps = 0 }, odd = { .warps = 4, .regs = 100 }, low = { .warps = 4, .regs = 16 };
	const cptx_role_opt high = { .warps = 4, .regs = 264 }, three = { .warps = 3, .regs = 24 };
	const cptx_role_opt too_many[] = { { .warps = 8 }, { .warps = 5 } };
	const cptx_role_opt too_large[] = { { .warps = 4, .regs = 40 }, { .warps = 8, .regs = 240 } };
	const cptx_role_opt aside[] = { { .warps = 1 }, { .warps = 4, .regs = 24 } };
	const cptx_roles_opt cta = { .threads = 384 };

	wrong((cptx_roles_opt){ .threads = 0 }, NULL, 0, "roles of 0 threads");
	wrong((cptx_roles_opt){ .threads = 100 }, NULL, 0, "roles of 100 threads; a CTA has 32 to 1024, a multiple of 32");
	wrong((cptx_roles_opt){ .threads = 384, .target = "sm_1" }, NULL, 0, "target 'sm_1', which does not exist");
	wrong((cptx_roles_opt){ .threads = 1024, .ctas = 9 }, NULL, 0, "roles of 9 CTAs of 1024 threads");
	wrong(cta, &none, 1, "a role of 0 warps");
	wrong(cta, &odd, 1, "a role with 100 registers a thread; setmaxnreg has 24 to 256, a multiple of 8");
	wrong(cta, &low, 1, "a role with 16 registers");
	wrong(cta, &high, 1, "a role with 264 registers");
	wrong(cta, &three, 1, "a role of warps 0 to 2 with registers of its own");
	wrong(cta, aside, 2, "a role of warps 1 to 4 with registers of its own");
	wrong(cta, too_many, 2, "a role of 5 warps, where 4 of 12 are left: the CTA has 384 threads");
	wrong(cta, too_large, 2, "the roles have 66560 registers then, and a CTA 65536");
}
END_TEST

START_TEST(nested_and_open)
{
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k");
	cptx_roles r;

	cptx_roles_begin(k, &r, .threads = 64);
	CPTX_ROLE(k, &r, .warps = 1) {
		CPTX_ROLE(k, &r, .warps = 1) {
			cptx_bar_warp_sync(k, -1);
		}
	}
	ck_assert(cptx_module_error(m) && strstr(cptx_module_error(m)->text, "a role inside of another one"));
	cptx_module_destroy(m);
	m = cptx_module_new(NULL), k = cptx_kernel_begin(m, "k");
	cptx_roles_begin(k, &r, .threads = 64);
	CPTX_ROLE(k, &r, .warps = 1)
		break;
	ck_assert(!cptx_module_freeze(m));
	SURE(strstr(cptx_module_error(m)->text, "test_roles.c:") != NULL, "%s", cptx_module_error(m)->text);
	cptx_module_destroy(m);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("kit");
	TCase *c = test_case(s, "roles");

	tcase_add_test(c, who_is_who);
	tcase_add_test(c, targets_and_registers);
	tcase_add_test(c, errors);
	tcase_add_test(c, nested_and_open);
	return test_main("kit roles", s);
}
