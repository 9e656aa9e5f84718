/* SPDX-License-Identifier: MIT */
/* The emulated device itself: what it loads, its address space, what is freed, findings that other threads ask for, how it
 * ends, and requests that no machine has room for. */
#include "trial.h"

#include <pthread.h>
#include <sys/resource.h>

#define HEAD(version, target) ".version " version "\n.target " target "\n.address_size 64\n"
#define GIB ((uint64_t)1 << 30)

static long resident(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss; /* KiB */
}

static cptx_device *open_it(const char *target, uint32_t threads)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_emu_open(target, &(cptx_emu_opt){ .threads = threads }, &err);

	ck_assert_msg(dev != NULL, "%s", err.text);
	return dev;
}

static cptx_program *load(cptx_device *dev, const char *text)
{
	cptx_error err = { 0 };
	cptx_program *p = cptx_device_load_text(dev, text, strlen(text), &(cptx_load_opt){ .name = "k.ptx" }, &err);

	ck_assert_msg(p != NULL, "%s", err.text);
	return p;
}

static bool launch(cptx_program *p, uint64_t at, cptx_error *err)
{
	memset(err, 0, sizeof *err);
	return cptx_launch_once(p, NULL, &(cptx_launch_opt){ .grid = { 4 }, .block = { 32 }, CPTX_ARGS(at) }, NULL, err);
}

/* ---- loading ---- */

static void count(void *user, const cptx_error *e)
{
	(void)e;
	++*(unsigned *)user;
}

START_TEST(what_check_refuses_is_not_loaded)
{
	static const char *const refused[] = {
		HEAD("8.8", "sm_80") ".entry k()\n{\n.reg .b32 %r<3>; mov.u32 %r1, 0;\n"
							 "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];\nret;\n}\n",
		/* both kinds of instruction that others look at before they run */
		HEAD("8.8",
		     "sm_90a") ".entry k()\n{\n.reg .b32 %r<3>; .reg .b64 %d; .reg .f32 %f<4>; .reg .pred %p; mov.u32 %r1, 0;\n"
					   "mov.u64 %d, 0; setp.eq.u32 %p, %r1, 0; wgmma.fence.sync.aligned;\n"
					   "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %d, %d, %p, 1, 1, 0, 0;\n"
					   "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r1];\nret;\n}\n",
		HEAD("7.0", "sm_80") ".entry k()\n{\n.reg .b32 %r<3>; mov.u32 %r1, 1;\nredux.sync.add.s32 %r2, %r1, -1;\n"
							 "mov.u32 %r2, %cluster_ctarank;\nret;\n}\n",
		HEAD("8.8",
		     "sm_75") ".entry k()\n{\n.reg .b32 %r<3>; .reg .b64 %rd<3>;\n.shared .align 16 .b8 s[16]; mov.u32 %r1, s;\n"
					  "mov.u64 %rd1, 0; cp.async.ca.shared.global [%r1], [%rd1], 16;\nret;\n}\n",
		HEAD("8.8", "sm_80") ".shared .b8 a[2147483648]; .shared .b8 b[2147483648];\n.entry k()\n{\n.reg .b32 %r<3>;\n"
							 "mov.u32 %r1, a; mov.u32 %r2, b;\nret;\n}\n",
	};

	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		unsigned n = 0;
		cptx_module *m = cptx_parse(refused[i], strlen(refused[i]), NULL);
		cptx_check(m, NULL, count, &n);
		ck_assert_msg(n > 0, "%s", refused[i]);
		cptx_module_destroy(m);
		cptx_error err = { 0 };
		cptx_device *dev = open_it("sm_100a", 0);
		if (strstr(refused[i], "sm_90a"))
			cptx_device_close(dev), dev = open_it("sm_90a", 0);
		cptx_program *p =
			cptx_device_load_text(dev, refused[i], strlen(refused[i]), &(cptx_load_opt){ .name = "k.ptx" }, &err);
		ck_assert_msg(!p && !strncmp(err.text, "k.ptx:", 6) && strchr("123456789", err.text[6]), "%s: %s", refused[i],
		              err.text);
		cptx_device_close(dev);
	}
}
END_TEST

START_TEST(code_of_older_targets_is_loaded)
{
	static const char *const devices[] = { "sm_80", "sm_90a", "sm_100a", "sm_120a" };

	for (unsigned i = 0; i < 4; i++) {
		cptx_device *dev = open_it(devices[i], 0);
		cptx_error err = { 0 };
		cptx_program *p = load(dev, HEAD("7.0", "sm_80") ".entry k(.param .u64 p)\n{\n.reg .b32 %r<3>; mov.u32 %r1, 1;\n"
		                                                 "redux.sync.add.s32 %r2, %r1, -1;\nret;\n}\n");
		ck_assert_msg(launch(p, 0, &err), "%s", err.text);
		cptx_program_destroy(p);
		cptx_device_close(dev);
	}
}
END_TEST

/* ---- addresses ---- */

/* All state spaces, by generic addresses, too; adds up to 10 a thread in the word it is given. */
static const char spaces[] = HEAD(
	"8.8",
	"sm_80") ".entry k(.param .u64 p)\n{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .local .align 4 .b8 l[4]; .shared .align 4 .b8 "
			 "s[128];\n"
			 "ld.param.u64 %rd0, [p]; mov.u32 %r0, %tid.x; mov.u64 %rd1, l; cvta.local.u64 %rd2, %rd1; mov.u64 %rd3, s;\n"
			 "cvta.shared.u64 %rd4, %rd3; mul.wide.u32 %rd5, %r0, 4; add.u64 %rd4, %rd4, %rd5; st.u32 [%rd2], 3; st.u32 "
			 "[%rd4], 7;\n"
			 "ld.u32 %r1, [%rd2]; ld.u32 %r2, [%rd4]; add.u32 %r1, %r1, %r2; red.global.add.u32 [%rd0], %r1;\nret;\n}\n";
static const char reads[] = HEAD("8.8", "sm_80") ".global .align 4 .b8 word[4];\n.entry k(.param .u64 p)\n{\n.reg .b32 "
												 "%r<3>; .reg .b64 %rd<3>;\nld.param.u64 %rd0, [p]; "
												 "ld.global.u32 %r0, [%rd0];\nst.global.u32 [%rd0], %r0;\nret;\n}\n";

static void works(cptx_program *p, cptx_device *dev, uint64_t at)
{
	cptx_error err = { 0 };
	uint32_t x = 0;

	cptx_mem_write(dev, at, &x, 4, &err);
	ck_assert_msg(launch(p, at, &err) && cptx_mem_read(dev, &x, at, 4, &err), "0x%llx: %s", (unsigned long long)at,
	              err.text);
	ck_assert_uint_eq(x, 4 * 32 * 10);
}

/* qemu-user keeps notes on each page that a program maps: 28 GiB of them here. */
static bool pages_cost_memory(void)
{
	if (getenv("CPTX_TEST_QEMU"))
		skip("under qemu memory that nobody touches is not for free");
	return getenv("CPTX_TEST_QEMU") != NULL;
}

START_TEST(addresses_come_again)
{
	enum { LIVE = 8, TIMES = 4096 };
	if (pages_cost_memory())
		return;
	cptx_device *dev = open_it("sm_80", 0);
	cptx_program *p = load(dev, spaces);
	uint64_t live[LIVE], size[LIVE], first = 0, again = 0;
	cptx_error err = { 0 };
	long before = resident();

	for (unsigned i = 0; i < TIMES; i++) {
		uint64_t at = cptx_mem_alloc(dev, GIB, &err);
		ck_assert_msg(at != 0, "%u: %s", i, err.text);
		first = i ? first : at;
		again += i && at <= first;
		for (unsigned j = 0; j < LIVE && j < i; j++)
			ck_assert_msg(at >= live[j] + size[j] || at + GIB <= live[j], "%u: 0x%llx in 0x%llx", i, (unsigned long long)at,
			              (unsigned long long)live[j]);
		if (i < LIVE) { /* of other sizes, in between */
			size[i] = i % 2 ? 100 : 3 * GIB;
			ck_assert((live[i] = cptx_mem_alloc(dev, size[i], &err)) != 0);
		}
		if (i % 512 == 511)
			works(p, dev, at + GIB - 4), works(p, dev, live[i % LIVE]);
		cptx_mem_free(dev, at);
	}
	ck_assert_uint_ge(again, 2); /* the address space has gone round */
	for (unsigned i = 0; i < 30000; i++) {
		uint64_t at = cptx_mem_alloc(dev, 1 + i % 1000, &err);
		ck_assert_msg(at != 0, "%u: %s", i, err.text);
		if (i % 10000 == 0)
			works(p, dev, cptx_mem_alloc(dev, 4, &err));
		cptx_mem_free(dev, at);
	}
	ck_assert_ptr_null(cptx_emu_finding_at(dev, 0));
	ck_assert_int_lt(resident() - before, 200 << 10); /* what nobody touches costs nothing */
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

START_TEST(address_space_is_full)
{
	enum { MOST = 1100 };
	static uint64_t at[MOST];
	cptx_device *dev = open_it("sm_80", 0);
	cptx_program *p = load(dev, reads);
	cptx_error err = { 0 };
	unsigned n = 0;

	ck_assert(!cptx_mem_alloc(dev, SIZE_MAX, &err) && err.code == CPTX_E_MEMORY && strstr(err.text, "address space"));
	memset(&err, 0, sizeof err);
	ck_assert(!cptx_mem_alloc(dev, 1024 * GIB, &err) && strstr(err.text, "address space"));
	memset(&err, 0, sizeof err);
	while (n < MOST && (at[n] = cptx_mem_alloc(dev, GIB, &err)))
		n++;
	ck_assert_msg(err.code == CPTX_E_MEMORY && n < 1024, "%u: %s", n, err.text);
	if (!strstr(err.text, "address space")) {
		skip("this host gives %u GiB of memory that nobody touches, not 1023: %s", n, err.text);
	} else {
		memset(&err, 0, sizeof err);
		uint64_t gone = at[n / 2];
		cptx_mem_free(dev, gone);
		ck_assert(!launch(p, gone, &err) && cptx_emu_finding_at(dev, 0)->code == CPTX_FIND_USE_AFTER_FREE);
		memset(&err, 0, sizeof err);
		ck_assert(!cptx_mem_alloc(dev, GIB + 8192, &err) && strstr(err.text, "no gap of that size"));
		memset(&err, 0, sizeof err);
		ck_assert_msg(cptx_mem_alloc(dev, GIB, &err) == gone, "%s", err.text);
	}
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

START_TEST(requests_without_bounds)
{
	static char host[64];
	cptx_device *dev = open_it("sm_80", 100000);
	cptx_error err = { 0 };
	cptx_resources r;
	uint32_t word = 1;

	ck_assert(!cptx_emu_map(dev, host, SIZE_MAX, &err) && err.code == CPTX_E_ARG && strstr(err.text, "addresses"));
	memset(&err, 0, sizeof err);
	ck_assert(!cptx_emu_map(dev, host, SIZE_MAX - (uintptr_t)host, &err) && err.code == CPTX_E_MEMORY);
	memset(&err, 0, sizeof err);
	uint64_t at = cptx_emu_map(dev, host, sizeof host, &err);
	ck_assert(at && cptx_mem_write(dev, at + 60, &word, 4, &err) && host[60] == 1);
	cptx_program *p = load(dev, spaces);
	works(p, dev, at); /* with as many threads of the host as are of use */
	ck_assert(cptx_program_resources(p, "k", 32, UINT32_MAX - 1023 - 128, &r, &err) && r.ctas_per_sm == 0);
	ck_assert(cptx_program_resources(p, "k", 32, UINT32_MAX, &r, &err) && r.ctas_per_sm == 0);
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

START_TEST(large_variables)
{
	char text[8192] = HEAD("8.0", "sm_80");
	if (pages_cost_memory())
		return;
	cptx_device *dev = open_it("sm_80", 0);
	cptx_error err = { 0 };
	long before = resident();

	for (unsigned i = 0; i < 64; i++)
		sprintf(text + strlen(text), ".global .b8 a%u[2147483648]%s;\n", i, i % 2 ? " = {1}" : "");
	strcat(text, ".entry k(.param .u64 p)\n{\n.reg .b64 %rd<3>; .reg .b32 %r<3>;\nld.param.u64 %rd1, [p];\n"
	             "mov.u64 %rd2, a63; ld.global.u8 %r1, [%rd2]; ld.global.u8 %r2, [%rd2+2147483647]; add.u32 %r1, %r1, %r2;\n"
	             "red.global.add.u32 [%rd1], %r1;\nret;\n}\n");
	cptx_program *p = cptx_device_load_text(dev, text, strlen(text), NULL, &err);
	if (!p && err.code == CPTX_E_MEMORY && strstr(err.text, "2147483648 bytes of memory for variable")) {
		skip("this host does not give 128 GiB of memory that nobody touches: %s", err.text);
	} else {
		uint32_t sum = 0;
		ck_assert_msg(p != NULL, "%s", err.text);
		uint64_t at = cptx_mem_alloc(dev, 4, &err);
		ck_assert(cptx_mem_write(dev, at, &sum, 4, &err) && launch(p, at, &err) && cptx_mem_read(dev, &sum, at, 4, &err));
		ck_assert_uint_eq(sum, 128);
		ck_assert_int_lt(resident() - before, 100 << 10);
	}
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

START_TEST(large_local_variables)
{
	static const struct {
		const char *decls, *says;
	} bad[] = {
		{ ".local .b8 a[4294967294]; .local .b8 b[4096];", "k.ptx:6: kernel k: 4294967294 bytes of local memory" },
		{ ".local .b8 a[400000]; .local .b8 b[400000];", "800000 bytes of local memory of a thread with variable b" },
		{ ".param .b8 a[4294967294]; .local .b8 b[400];", "bytes of parameters with variable a; the limit is" },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char text[512];
		cptx_device *dev = open_it("sm_80", 0);
		cptx_error err = { 0 };
		snprintf(text, sizeof text,
		         HEAD("8.0", "sm_80") ".entry k(.param .u64 p)\n{\n%s\n.reg .b64 %%rd<3>; mov.u64 %%rd1, b;\nret;\n}\n",
		         bad[i].decls);
		cptx_program *p = load(dev, text);
		ck_assert_msg(!launch(p, 0, &err) && err.code == CPTX_E_LIMIT && strstr(err.text, bad[i].says), "%s", err.text);
		cptx_program_destroy(p);
		cptx_device_close(dev);
	}
}
END_TEST

/* As much local memory as a thread may have, in one variable or in many: what lies between them does not count. */
START_TEST(all_local_memory)
{
	static const struct {
		unsigned n, each;
	} good[] = { { 1, 524288 }, { 8192, 64 } };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		size_t room = 512 + good[i].n * 32, at = 0;
		char *text = malloc(room);
		cptx_device *dev = open_it("sm_80", 0);
		cptx_error err = { 0 };
		at += (size_t)snprintf(text, room, HEAD("8.0", "sm_80") ".entry k(.param .u64 p)\n{\n.reg .b32 %%r<2>;\n");
		for (unsigned v = 0; v < good[i].n; v++)
			at += (size_t)snprintf(text + at, room - at, ".local .b8 a%u[%u];\n", v, good[i].each);
		snprintf(text + at, room - at, "mov.u32 %%r1, 7; st.local.u8 [a%u+%u], %%r1;\nret;\n}\n", good[i].n - 1,
		         good[i].each - 1);
		cptx_program *p = load(dev, text);
		ck_assert_msg(launch(p, 0, &err), "%s", err.text);
		cptx_program_destroy(p);
		cptx_device_close(dev);
		free(text);
	}
}
END_TEST

/* ---- what is freed ---- */

static void finds(const cptx_device *dev, size_t i, enum cptx_finding_code code, const char *says)
{
	const cptx_emu_finding *f = cptx_emu_finding_at(dev, i);

	ck_assert_msg(f && f->code == code && strstr(f->text, says), "%s", f ? f->text : "nothing was found");
}

START_TEST(wrong_frees)
{
	cptx_device *dev = open_it("sm_80", 0);
	cptx_program *p = load(dev, reads);
	cptx_error err = { 0 };
	uint64_t a = cptx_mem_alloc(dev, 100, &err), b = cptx_mem_alloc(dev, 100, &err);
	uint32_t x[2] = { 1, 2 };

	cptx_mem_free(dev, a);
	ck_assert_ptr_null(cptx_emu_finding_at(dev, 0));
	cptx_mem_free(dev, 0);
	ck_assert_ptr_null(cptx_emu_finding_at(dev, 0));
	cptx_mem_free(dev, a);
	finds(dev, 0, CPTX_FIND_DOUBLE_FREE, "an allocation of 100 bytes, was freed already");
	cptx_mem_free(dev, a + 4);
	finds(dev, 1, CPTX_FIND_BAD_FREE, "within what was freed already");
	cptx_mem_free(dev, b + 4);
	finds(dev, 2, CPTX_FIND_BAD_FREE, "4 bytes behind the start of an allocation");
	cptx_mem_free(dev, 12345);
	finds(dev, 3, CPTX_FIND_BAD_FREE, "0x3039 was never allocated");
	cptx_mem_free(dev, UINT64_MAX);
	finds(dev, 4, CPTX_FIND_BAD_FREE, "was never allocated");
	ck_assert(!cptx_mem_write(dev, a, x, 8, &err) && strstr(err.text, "the allocation of 100 bytes there was freed"));
	memset(&err, 0, sizeof err);
	ck_assert(cptx_mem_write(dev, b, x, 8, &err) && launch(p, b, &err)); /* the device is none the worse */
	/* long afterwards */
	for (unsigned i = 0; i < 1000; i++)
		cptx_mem_free(dev, cptx_mem_alloc(dev, 100, &err));
	ck_assert(!launch(p, a, &err) && err.code == CPTX_E_FINDING);
	finds(dev, 5, CPTX_FIND_USE_AFTER_FREE, "0 bytes behind the start of an allocation of 100 bytes that was freed");
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

START_TEST(variables_are_not_freed)
{
	cptx_device *dev = open_it("sm_80", 0);
	cptx_error err = { 0 };
	cptx_program *p =
		load(dev, HEAD("8.0", "sm_80") ".visible .global .align 4 .b32 w[4];\n.entry k(.param .u64 p)\n{\nret;\n}\n");
	uint64_t at = cptx_program_global(p, "w", NULL, &err);
	uint32_t x = 5;

	cptx_mem_free(dev, at);
	finds(dev, 0, CPTX_FIND_BAD_FREE, "is in variable w, which is freed with its program");
	ck_assert(cptx_mem_write(dev, at, &x, 4, &err) && launch(p, 0, &err));
	cptx_program_destroy(p);
	ck_assert(!cptx_mem_write(dev, at, &x, 4, &err));
	cptx_device_close(dev);
}
END_TEST

/* The copy is done late: the memory is gone by then. */
START_TEST(freed_under_a_copy)
{
	static const char *const copies[] = {
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2], 16, [%r2];",
		"st.shared.u64 [%r1], 0; st.shared.u64 [%r1+8], 0; fence.proxy.async;"
		"cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r1], 16; cp.async.bulk.commit_group;",
	};
	static const char *const waits[] = { "", "cp.async.bulk.wait_group 0;" };

	for (unsigned i = 0; i < 2; i++) {
		char body[2048];
		uint32_t x[1] = { 0 };
		trial t = { .target = "sm_90a",
			        .block = { 1 },
			        .data = x,
			        .size = sizeof x,
			        .body = body,
			        .opt = { .schedule = CPTX_EMU_LATE },
			        .decls = ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n" };
		snprintf(
			body, sizeof body,
			".shared .align 16 .b8 s[64]; .shared .align 8 .b64 mb;"
			"{ .param .b64 n; .param .b64 back; st.param.b64 [n], 64; call.uni (back), malloc, (n); ld.param.b64 %%rd1, "
			"[back]; } st.u64 [%%rd1], 0; st.u64 [%%rd1+8], 1; mov.u32 %%r1, s; mov.u32 %%r2, mb;"
			"mbarrier.init.shared.b64 [%%r2], 1; fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [%%r2], 16;"
			"cvta.to.global.u64 %%rd2, %%rd1; %s"
			"{ .param .b64 q; st.param.b64 [q], %%rd1; call.uni free, (q); } %s",
			copies[i], waits[i]);
		trial_run(&t);
		ck_assert_msg(!t.ok && t.found[0] == CPTX_FIND_USE_AFTER_FREE, "%s%s", t.err.text, t.message);
	}
}
END_TEST

/* ---- findings and other threads ---- */

/* Every launch finds the same once more. */
static const char racy[] = HEAD(
	"8.8",
	"sm_80") ".entry k(.param .u64 p)\n{\n.reg .b32 %r<3>; .reg .b64 %rd<3>;\nld.param.u64 %rd0, [p]; mov.u32 %r0, %tid.x; "
			 "mov.u32 %r1, "
			 "%ctaid.x; mad.lo.u32 %r0, %r1, 32, %r0; st.global.u32 [%rd0], %r0;\nld.global.u32 %r1, [%rd0];\nret;\n}\n";

START_TEST(a_finding_stays_as_it_was)
{
	cptx_device *dev = open_it("sm_80", 0);
	cptx_program *p = load(dev, racy);
	cptx_error err = { 0 };
	uint64_t at = cptx_mem_alloc(dev, 4, &err);

	ck_assert(!launch(p, at, &err));
	const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);
	ck_assert_ptr_eq(cptx_emu_finding_at(dev, 0), f);
	uint64_t count = f->count;
	for (unsigned i = 0; i < 50; i++) /* and others, so that the list grows */
		launch(p, at, &err), cptx_mem_free(dev, 7);
	ck_assert_uint_eq(f->count, count);
	ck_assert_uint_gt(cptx_emu_finding_at(dev, 0)->count, count);
	ck_assert(!strcmp(cptx_emu_finding_at(dev, 0)->text, f->text));
	cptx_program_destroy(p);
	cptx_device_close(dev);
}
END_TEST

typedef struct asking {
	cptx_device *dev;
	pthread_mutex_t lock;
	bool over;
	uint64_t asked;
} asking;

static bool is_over(asking *a)
{
	pthread_mutex_lock(&a->lock);
	bool over = a->over;
	a->asked++;
	pthread_mutex_unlock(&a->lock);
	return over;
}

static void *ask(void *user)
{
	asking *a = user;
	uint64_t last = 0;

	while (!is_over(a)) {
		cptx_emu_counters n;
		cptx_emu_profile x;
		const cptx_emu_finding *f = cptx_emu_finding_at(a->dev, 0);
		ck_assert(cptx_emu_get_counters(a->dev, &n) && n.launches >= last);
		last = n.launches;
		if (f)
			ck_assert(f->count && strlen(f->text) > 10 && strlen(f->kernel) == 1);
		for (size_t i = 0; cptx_emu_get_profile(a->dev, i, &x); i++)
			ck_assert_uint_eq(strlen(x.kernel), 1);
	}
	return NULL;
}

START_TEST(others_may_ask_during_launches)
{
	enum { ASKERS = 3, LAUNCHES = 60 };
	asking a = { .dev = open_it("sm_80", 2) };
	cptx_program *p = load(a.dev, racy);
	cptx_error err = { 0 };
	uint64_t at = cptx_mem_alloc(a.dev, 4, &err);
	pthread_t thread[ASKERS];

	pthread_mutex_init(&a.lock, NULL);
	for (unsigned i = 0; i < ASKERS; i++)
		ck_assert(!pthread_create(&thread[i], NULL, ask, &a));
	for (unsigned i = 0; i < LAUNCHES; i++) {
		launch(p, at, &err);
		cptx_mem_free(a.dev, 1 + i);
	}
	pthread_mutex_lock(&a.lock);
	a.over = true;
	pthread_mutex_unlock(&a.lock);
	for (unsigned i = 0; i < ASKERS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_gt(a.asked, ASKERS);
	pthread_mutex_destroy(&a.lock);
	cptx_program_destroy(p);
	cptx_device_close(a.dev);
}
END_TEST

/* ---- going on, and the end ---- */

START_TEST(going_on_behind_a_finding)
{
	cptx_device *dev = open_it("sm_80", 0);
	cptx_program *bad = load(dev, reads), *good = load(dev, spaces);
	cptx_error err = { 0 };
	uint64_t at = cptx_mem_alloc(dev, 4, &err);

	ck_assert(!launch(bad, 64, &err) && err.code == CPTX_E_FINDING);
	ck_assert(!launch(good, at, &err) && err.code == CPTX_E_FINDING);
	ck_assert_msg(strstr(err.text, "cptx_emu_continue(dev)") != NULL, "%s", err.text);
	ck_assert(cptx_emu_continue(dev));
	works(good, dev, at);
	finds(dev, 0, CPTX_FIND_BOUNDS, "0x40");
	ck_assert(!cptx_emu_continue(NULL));
	cptx_program_destroy(bad);
	cptx_program_destroy(good);
	cptx_device_close(dev);
}
END_TEST

/* As callers do whose objects a collector frees: in any order. */
START_TEST(destroyed_in_any_order)
{
	for (unsigned order = 0; order < 120; order++) {
		cptx_device *dev = open_it("sm_80", 0);
		cptx_error err = { 0 };
		uint64_t at = cptx_mem_alloc(dev, 4, &err);
		uint32_t zero = 0;
		cptx_program *p = load(dev, spaces);
		cptx_event *e = cptx_event_new(dev, &err);
		cptx_stream *s = cptx_stream_new(dev, &err);
		cptx_launch *l = cptx_launch_new(p, "k", &(cptx_launch_opt){ .grid = { 4 }, .block = { 32 }, CPTX_ARGS(at) }, &err);
		ck_assert_msg(err.code == CPTX_OK && cptx_mem_write(dev, at, &zero, 4, &err), "%s", err.text);
		bool done[5] = { false };
		for (unsigned left = 5, k = order; left; k /= left, left--) {
			unsigned which = 0, n = k % left;
			while (done[which] || n--)
				which++;
			while (done[which])
				which++;
			done[which] = true;
			switch (which) {
			case 0: cptx_device_close(dev); break;
			case 1: cptx_program_destroy(p); break;
			case 2: cptx_event_destroy(e); break;
			case 3: cptx_stream_destroy(s); break;
			default: cptx_launch_destroy(l); break;
			}
			if (!done[2])
				ck_assert(cptx_event_record(e, done[3] ? NULL : s, &err));
			if (!done[4])
				ck_assert_msg(cptx_launch_run(l, NULL, &err), "%s", err.text);
		}
	}
}
END_TEST

TRIAL_MAIN("emu_device", what_check_refuses_is_not_loaded, code_of_older_targets_is_loaded, addresses_come_again,
           address_space_is_full, requests_without_bounds, large_variables, large_local_variables, all_local_memory,
           wrong_frees, variables_are_not_freed, freed_under_a_copy, a_finding_stays_as_it_was,
           others_may_ask_during_launches, going_on_behind_a_finding, destroyed_in_any_order)
