/* SPDX-License-Identifier: MIT */
/*
 * Measures when each warp reaches a barrier, and when it goes on.  Reads PTX text (a file, or a small kernel of its own) and
 * puts a %globaltimer stamp in front of and behind every wait of every kernel: bar and barrier, and loops around an
 * mbarrier's test_wait or try_wait.  The stamps (.u64, nanoseconds) go to a buffer that each kernel gets as its last
 * parameter: stamps[block][warp][2 * wait + (0 before, 1 behind)], stored by the first thread of each warp.  The rest of the
 * text stays as it is.  Waits in device functions get no stamps.
 */
#include "examples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first and last item of a wait. */
typedef struct wait {
	cptx_item *from, *to;
} wait;

static cptx_item_info look(const cptx_kernel *k, const cptx_item *it)
{
	cptx_item_info info = { .kind = CPTX_ITEM_COMMENT };
	cptx_item_look(k, it, &info);
	return info;
}

static int is_wait(const cptx_item *it)
{
	static const char *const waits[] = { "bar.sync",           "bar.red",          "bar.cta.sync",
		                                 "bar.cta.red",        "barrier.sync",     "barrier.red",
		                                 "barrier.cta.sync",   "barrier.cta.red",  "barrier.cluster.wait",
		                                 "mbarrier.test_wait", "mbarrier.try_wait" };
	char name[256];

	cptx_item_spelling(it, name, sizeof name);
	for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
		if (!strncmp(name, waits[i], strlen(waits[i])))
			return *waits[i] == 'm' ? 2 : 1; /* 2: a test that a loop repeats */
	return 0;
}

/* The label that a branch goes to, or NONE. */
static cptx_val goal(const cptx_kernel *k, const cptx_item *it)
{
	return look(k, it).kind == CPTX_ITEM_INSN && look(k, it).op == CPTX_OP_BRA ? cptx_item_operand(it, 0) : (cptx_val){ 0 };
}

/* Finds the loop around an mbarrier's wait: from the nearest label above it to which a branch below it goes back. */
static wait loop_around(const cptx_kernel *k, cptx_item *it)
{
	enum { NEAR = 12 }; /* the branch is at most that many items away */
	wait w = { it, it };
	cptx_item *top = it, *end = it;

	for (int i = 0; top && i < NEAR && look(k, top).kind != CPTX_ITEM_LABEL; i++)
		top = cptx_item_prev(top);
	if (!top || look(k, top).kind != CPTX_ITEM_LABEL)
		return w;
	cptx_val label = cptx_item_operand(top, 0), out = { 0 };
	for (int i = 0; end && i < NEAR; i++, end = cptx_item_next(end)) {
		cptx_val to = goal(k, end);
		if (to.kind == CPTX_VAL_LABEL && to.id != label.id)
			out = to;
		if (to.kind != CPTX_VAL_LABEL || to.id != label.id)
			continue;
		w = (wait){ top, end };
		if (!look(k, end).guard.kind && out.kind) /* the branch out of the loop is the other one */
			w.to = cptx_item_declaring(k, out);
		return w;
	}
	return w;
}

/* Returns the number of waits of a kernel; puts them into `waits`, if that is not NULL. */
static size_t find_waits(const cptx_kernel *k, wait *waits)
{
	size_t n = 0;

	for (cptx_item *it = cptx_item_first(k); it; it = cptx_item_next(it)) {
		int kind = is_wait(it);
		if (kind && !waits)
			n++;
		else if (kind)
			waits[n++] = kind == 2 ? loop_around(k, it) : (wait){ it, it };
	}
	return n;
}

size_t stamp_waits(cptx_kernel *k)
{
	size_t n = find_waits(k, NULL);
	wait *waits = n ? malloc(n * sizeof *waits) : NULL;

	if (!waits)
		return 0;
	find_waits(k, waits);
	cptx_edit_before(k, cptx_item_first(k));
	cptx_val stamps = cptx_param(k, CPTX_PTR, "stamps");
	cptx_val yz = cptx_mad(k, cptx_tid_z(k), cptx_ntid_y(k), cptx_tid_y(k), .mode = CPTX_LO);
	cptx_val thread = cptx_mad(k, yz, cptx_ntid_x(k), cptx_tid_x(k), .mode = CPTX_LO);
	cptx_val threads =
		cptx_mul(k, cptx_mul(k, cptx_ntid_x(k), cptx_ntid_y(k), .mode = CPTX_LO), cptx_ntid_z(k), .mode = CPTX_LO);
	cptx_val warps = cptx_shr(k, cptx_add(k, threads, 31), 5);
	yz = cptx_mad(k, cptx_ctaid_z(k), cptx_nctaid_y(k), cptx_ctaid_y(k), .mode = CPTX_LO);
	cptx_val block = cptx_mad(k, yz, cptx_nctaid_x(k), cptx_ctaid_x(k), .mode = CPTX_LO);
	cptx_val warp = cptx_mad(k, block, warps, cptx_shr(k, thread, 5), .mode = CPTX_LO);
	cptx_val mine = cptx_add(k, stamps, cptx_mul_wide(k, warp, (int)(n * 16)));
	cptx_val first = cptx_setp(k, cptx_and(k, thread, 31), 0, .cmp = CPTX_EQ);
	for (size_t i = 0; i < n; i++) {
		cptx_edit_before(k, waits[i].from);
		cptx_st(k, cptx_offset(mine, (int64_t)i * 16), cptx_globaltimer(k), .space = CPTX_GLOBAL, .when = first);
		cptx_edit_after(k, waits[i].to);
		cptx_st(k, cptx_offset(mine, (int64_t)i * 16 + 8), cptx_globaltimer(k), .space = CPTX_GLOBAL, .when = first);
	}
	free(waits);
	return n;
}

#ifndef EXAMPLES_NO_MAIN
#include <cptx/device.h>

static const char turn[] = ".version 8.0\n"
						   ".target sm_75\n"
						   ".address_size 64\n"
						   "// Turns 64 numbers around.\n"
						   ".visible .entry turn(.param .u64 numbers)\n"
						   ".reqntid 64\n"
						   "{\n"
						   "\t.reg .b32 %r<5>;\n"
						   "\t.reg .b64 %rd<5>;\n"
						   "\t.shared .b32 kept[64];\n"
						   "\tld.param.u64 %rd1, [numbers];\n"
						   "\tcvta.to.global.u64 %rd1, %rd1;\n"
						   "\tmov.u32 %r1, %tid.x;\n"
						   "\tmul.wide.u32 %rd2, %r1, 4;\n"
						   "\tadd.u64 %rd2, %rd1, %rd2;\n"
						   "\tld.global.u32 %r2, [%rd2];\n"
						   "\tshl.b32 %r3, %r1, 2;\n"
						   "\tmov.u32 %r4, kept;\n"
						   "\tadd.u32 %r3, %r4, %r3;\n"
						   "\tst.shared.u32 [%r3], %r2;\n"
						   "\tbar.sync 0; // all have stored\n"
						   "\tshl.b32 %r3, %r1, 2;\n"
						   "\tsub.u32 %r3, %r4, %r3;\n"
						   "\tld.shared.u32 %r2, [%r3+252];\n"
						   "\tst.global.u32 [%rd2], %r2;\n"
						   "\tret;\n"
						   "}\n";

/* Runs the kernel above, one block of two warps, on the device that CPTX_DEVICE names, else on a GPU.  Returns false if that
 * failed. */
static bool run(cptx_module *m)
{
	cptx_error err = { 0 };
	cptx_device *dev = cptx_device_open(getenv("CPTX_DEVICE"), &err);
	uint32_t numbers[64];
	uint64_t stamps[2][2];

	if (!dev) {
		fprintf(stderr, "not run: %s\n", err.text);
		return err.code == CPTX_E_NO_DRIVER || err.code == CPTX_E_NO_DEVICE;
	}
	for (uint32_t i = 0; i < 64; i++)
		numbers[i] = i;
	uint64_t x = cptx_mem_alloc(dev, sizeof numbers, &err), s = cptx_mem_alloc(dev, sizeof stamps, &err);
	cptx_mem_write(dev, x, numbers, sizeof numbers, &err);
	cptx_program *p = cptx_device_load(dev, m, NULL, &err);
	cptx_launch_once(p, "turn", &(cptx_launch_opt){ .grid = { 1 }, .block = { 64 }, CPTX_ARGS(x, s) }, NULL, &err);
	cptx_mem_read(dev, numbers, x, sizeof numbers, &err);
	cptx_mem_read(dev, stamps, s, sizeof stamps, &err);
	bool right = err.code == CPTX_OK;
	if (!right)
		fprintf(stderr, "%s\n", err.text);
	for (int w = 0; w < 2 && right; w++)
		fprintf(stderr, "warp %d waited %llu ns (numbers[%d] = %u)\n", w, (unsigned long long)(stamps[w][1] - stamps[w][0]),
		        w, (unsigned)numbers[w]);
	for (uint32_t i = 0; i < 64 && right; i++)
		if (numbers[i] != 63 - i || stamps[i / 32][1] < stamps[i / 32][0]) {
			fprintf(stderr, "numbers[%u] = %u, or the stamps of its warp, are wrong\n", (unsigned)i, (unsigned)numbers[i]);
			right = false;
		}
	cptx_program_destroy(p);
	cptx_mem_free(dev, x);
	cptx_mem_free(dev, s);
	cptx_device_close(dev);
	return right;
}

static char *read_file(const char *path, size_t *size)
{
	enum { MOST = 64 << 20 };
	FILE *f = fopen(path, "rb");
	char *text = f ? malloc(MOST) : NULL;

	*size = text ? fread(text, 1, MOST, f) : 0;
	if (f)
		fclose(f);
	return text;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "turn.ptx";
	size_t size = sizeof turn - 1;
	char *text = argc > 1 ? read_file(name, &size) : NULL;

	if (argc > 1 && !text)
		return fprintf(stderr, "%s: cannot be read\n", name), 1;
	cptx_module *m = cptx_parse(text ? text : turn, size, &(cptx_parse_opt){ .name = name, .keep = true });
	free(text);
	cptx_kernel *k;
	for (size_t i = 0; (k = cptx_module_body_at(m, i)); i++) {
		size_t n = cptx_body_is_func(k) || cptx_module_error(m) ? 0 : stamp_waits(k);
		if (n)
			fprintf(stderr, "%s: %zu waits, %zu stamps a warp\n", cptx_body_name(k), n, 2 * n);
	}
	cptx_error err = { 0 };
	cptx_ptx *ptx = cptx_emit(m, NULL, &(cptx_emit_opt){ .keep = true }, &err);
	if (ptx)
		fputs(cptx_ptx_text(ptx), stdout);
	else
		fprintf(stderr, "%s\n", err.text);
	cptx_ptx_destroy(ptx);
	bool ok = ptx && (argc > 1 || run(m));
	cptx_module_destroy(m);
	return !ok;
}
#endif
