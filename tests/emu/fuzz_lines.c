/* SPDX-License-Identifier: MIT */
/* Instructions of the table, any spelling of any row, with operands of the pool; addresses point where the instruction may
 * go. */
#include "fuzz_kernel.h"

#include "emu/core/decode.h"
#include "ir/ir.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EACH = 24 /* registers of a class that get values */ };

static uint64_t descriptor(dice *d)
{
	uint64_t word = roll(d, 2048);

	word |= (uint64_t)roll(d, 64) << 16;
	word |= (uint64_t)roll(d, 64) << 32;
	word |= (uint64_t)roll(d, 4) << 62;
	return word | (uint64_t)(roll(d, 4) == 0) << 46;
}

static void put_wide(fuzz_piece *p, dice *d)
{
	switch (roll(d, 8)) {
	case 0: fuzz_put(p, "in_global"); break;
	case 1: fuzz_put(p, "in_const"); break;
	case 2: fuzz_put(p, "0x%llx", (unsigned long long)fuzz_wide(d)); break;
	case 3: fuzz_put(p, "0x%llx", (unsigned long long)descriptor(d)); break;
	case 4: fuzz_put(p, "in_shared"); break;
	default: fuzz_put(p, "%u", roll(d, 65)); break;
	}
}

static void put_narrow(fuzz_piece *p, dice *d)
{
	switch (roll(d, 7)) {
	case 0: fuzz_put(p, "0x%x", (unsigned)fuzz_wide(d)); break;
	case 1: fuzz_put(p, "%u", 0x400 + roll(d, 256) * 128); break;
	case 2: fuzz_put(p, "0x%x", 0x08000000 | roll(d, 1 << 25)); break; /* of tcgen05: an instruction descriptor */
	case 3: fuzz_put(p, "0xffffffff"); break;
	default: fuzz_put(p, "%u", roll(d, 5) * 16); break;
	}
}

static void put_values(fuzz_piece *p, dice *d)
{
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		for (unsigned i = 1; i <= EACH; i++) {
			const char *r = ir_classes[c].prefix;
			switch (c) {
			case CLASS_PRED: fuzz_put(p, "\tsetp.%s.u32 %s%u, 1, 2;\n", roll(d, 2) ? "lt" : "gt", r, i); break;
			case CLASS_B16: fuzz_put(p, "\tmov.b16 %s%u, %u;\n", r, i, (unsigned)(uint16_t)fuzz_any(d)); break;
			case CLASS_B32:
				fuzz_put(p, "\tmov.b32 %s%u, ", r, i);
				put_narrow(p, d);
				fuzz_put(p, ";\n");
				break;
			case CLASS_F32: fuzz_put(p, "\tmov.b32 %s%u, 0x%x;\n", r, i, (unsigned)fuzz_wide(d)); break;
			case CLASS_B64:
				fuzz_put(p, "\tmov.b64 %s%u, ", r, i);
				put_wide(p, d);
				fuzz_put(p, ";\n");
				break;
			case CLASS_F64: fuzz_put(p, "\tmov.b64 %s%u, 0x%llx;\n", r, i, (unsigned long long)fuzz_wide(d)); break;
			default: break; /* .b8 and .b128 stay unwritten: that is a finding, no crash */
			}
		}
}

/* The bits of a register by its name; 0: none of an address. */
static unsigned bits_of_register(const char *name)
{
	static const char *const wide[] = { "%rd", "%b64_", "%u64_", "%s64_" }, *const narrow[] = { "%r", "%b32_", "%u32_",
		                                                                                        "%s32_" };

	for (unsigned i = 0; i < ARRAY_LEN(wide); i++)
		if (!strncmp(name, wide[i], strlen(wide[i])) && isdigit((unsigned char)name[strlen(wide[i])]))
			return 64;
	for (unsigned i = 0; i < ARRAY_LEN(narrow); i++)
		if (!strncmp(name, narrow[i], strlen(narrow[i])) && isdigit((unsigned char)name[strlen(narrow[i])]))
			return 32;
	return 0;
}

/* Where the nth address of an instruction may point: a variable, and how far behind its begin. */
static const char *place_of(const char *opcode, unsigned bits, unsigned nth)
{
	bool shared = strstr(opcode, ".shared") != NULL;

	if (!strncmp(opcode, "mbarrier.", 9) || (nth && strstr(opcode, "complete_tx") && bits == 32) ||
	    strstr(opcode, "mbarrier::arrive"))
		return "line_mb";
	if (strstr(opcode, ".local"))
		return "line_local";
	if (strstr(opcode, ".const"))
		return "in_const";
	if (bits == 32 || (shared && !strstr(opcode, ".global")))
		return "in_shared";
	return "in_global";
}

static void aim(fuzz_kernel *k, fuzz_piece *p, const char *line)
{
	unsigned nth = 0;
	char opcode[OPCODE];

	while (isspace((unsigned char)*line))
		line++;
	snprintf(opcode, sizeof opcode, "%.*s", (int)strcspn(line, " \t;"), line);
	for (const char *s = line; (s = strchr(s, '[')); s++, nth++) {
		unsigned bits = bits_of_register(s + 1);
		int n = (int)strcspn(s + 1, "]+-,} ");
		const char *where = bits ? place_of(opcode, bits, nth) : "";
		if (!bits || fuzz_wrong(k))
			continue;
		unsigned step = !strcmp(where, "line_mb")                                    ? 0
		                : !strcmp(where, "in_shared") || !strcmp(where, "in_global") ? roll(&k->d, 64) * 128
		                                                                             : 0;
		fuzz_put(p, "\tmov.b%u %.*s, %s+%u;\n", bits, n, s + 1, where, step);
	}
}

/* A spelling of one of the forms from `first` on. */
static bool try_line(fuzz_kernel *k, unsigned first, unsigned nform, char line[TRIED_LINE], uint16_t *which)
{
	dice *d = &k->d;
	unsigned number = first + roll(d, nform), n;

	if (k->refused[number] || !emu_decode_of(arch_forms[number].op))
		return false;
	spelling *all = spell_all(number, 4, &n);
	if (!n) {
		free(all);
		return false;
	}
	spelling s = all[roll(d, n)];
	free(all);
	trial t = roll(d, 2) ? trial_of(&s) : trial_full(&s);
	if (k->hostile && !roll(d, 3) && arch_forms[number].noperand) {
		cptx_val other = pool_value(roll(d, pool_nvalue()));
		t = trial_with(&s, &t, roll(d, arch_forms[number].noperand), other);
	}
	outcome o;
	trial_build(&t, BY_TEXT, cptx_target_find(k->target), &o);
	*which = (uint16_t)number;
	if (!o.ok || o.version > EMU_WRITTEN_FOR)
		return false;
	snprintf(line, TRIED_LINE, "%s", o.line);
	return true;
}

static void add_line(fuzz_kernel *k, unsigned first, unsigned nform)
{
	char line[TRIED_LINE];
	uint16_t number;
	unsigned tries = 0;
	bool valued = false;

	while (!try_line(k, first, nform, line, &number))
		if (++tries == 50)
			return;
	/* Tensor memory that nobody has allocated, and descriptors of nothing, only end a kernel. */
	if (!k->hostile && (strstr(line, "tcgen05.") || strstr(line, "wgmma.mma")))
		return;
	for (unsigned i = 0; i < k->npiece; i++)
		valued |= !strcmp(k->piece[i].kind, "values");
	fuzz_piece *p = valued ? NULL : fuzz_piece_new(k, "values");
	if (p)
		put_values(p, &k->d);
	p = fuzz_piece_new(k, "line");
	if (!p)
		return;
	p->form = number;
	aim(k, p, line);
	fuzz_put(p, "%s\n", line);
}

void fuzz_line(fuzz_kernel *k) { add_line(k, 0, arch_nform); }

void fuzz_matrix(fuzz_kernel *k)
{
	static const char *const words[] = { "ldmatrix", "ldmatrix",  "stmatrix",   "movmatrix",
		                                 "mma",      "wmma_load", "wmma_store", "wmma_mma" };

	if (k->threads % 32)
		return;
	for (unsigned times = 1 + roll(&k->d, 3); times; times--) {
		const char *word = words[roll(&k->d, ARRAY_LEN(words))];
		unsigned which[32], n = 0;
		for (unsigned i = 0; i < arch_nop && n < ARRAY_LEN(which); i++)
			if (!strncmp(arch_ops[i].name, word, strlen(word)))
				which[n++] = i;
		const arch_op *op = &arch_ops[which[roll(&k->d, n)]];
		add_line(k, op->form, op->nform);
	}
}
