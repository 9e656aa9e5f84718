/* SPDX-License-Identifier: MIT */
/*
 * Machine code as `cptx diff` compares it: up to the names of registers of all kinds and of labels.  Registers that are used
 * as one (R4 to R7 of a load of 128 bits) must be so in the other code, too: which ones an instruction has is known from the
 * cubin.  A kernel with an instruction of which that is not known is compared by letter.
 */
#include "inspect/diff.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of names; uniform registers come in fours, for nothing tells which an instruction uses behind the one it names. */
enum kind { KIND_R, KIND_P, KIND_UP, KIND_B, KIND_FOUR, KIND_LABEL, KINDS };
enum { FOUR = 4 };

static bool is_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$'; }

/* Instructions that use more uniform registers than four, or from an odd place. */
static bool uses_many(const char *line)
{
	static const char *const many[] = { "UTMA", "UBLK", "UTC", "GMMA", "SYNCS" };

	for (size_t i = 0; i < sizeof many / sizeof *many; i++)
		if (strstr(line, many[i]))
			return true;
	return false;
}

/* "R12", "UP3", ".L_x_4" at p, behind no other name: the kind and the number behind its n letters. */
static enum kind name_at(const char *line, const char *p, size_t *n)
{
	static const struct {
		const char *front;
		enum kind kind;
	} fronts[] = { { "UR", KIND_FOUR }, { "UP", KIND_UP }, { "R", KIND_R },
		           { "P", KIND_P },     { "B", KIND_B },   { ".L_x_", KIND_LABEL } };

	for (size_t i = 0; i < sizeof fronts / sizeof *fronts && (p == line || !is_name(p[-1])); i++) {
		*n = strlen(fronts[i].front);
		if (strncmp(p, fronts[i].front, *n) != 0 || !isdigit((unsigned char)p[*n]))
			continue;
		size_t digits = strspn(p + *n, "0123456789");
		if (!is_name(p[*n + digits])) /* else an operation: R2UR, P2R */
			return fronts[i].kind;
	}
	return KINDS;
}

static bool add_name(diff_line *l, size_t *cap, uint32_t name)
{
	if (l->nname == *cap) {
		*cap = 2 * *cap + 8;
		uint32_t *grown = realloc(l->name, *cap * sizeof *grown);
		if (!grown)
			return false;
		l->name = grown;
	}
	l->name[l->nname++] = name;
	return true;
}

/* The key, and the names in their order; by letter: all of the line is its key. */
static bool read_line(diff_line *l, const char *line, bool by_letter)
{
	size_t n, m = 0, cap = 0;
	bool fixed = uses_many(line);

	*l = (diff_line){ .text = line, .n = strlen(line), .key = malloc(strlen(line) + 1) };
	for (const char *p = line; l->key && *p;) {
		enum kind kind = by_letter ? KINDS : name_at(line, p, &n);
		if (kind == KINDS) {
			l->key[m++] = *p++;
			continue;
		}
		uint32_t number = (uint32_t)strtoul(p + n, NULL, 10), within = kind == KIND_FOUR ? number % FOUR : 0;
		size_t digits = strspn(p + n, "0123456789");
		memcpy(l->key + m, p, n);
		m += n;
		if (kind == KIND_FOUR && fixed) { /* as it is */
			memcpy(l->key + m, p + n, digits);
			m += digits;
		} else if (kind == KIND_FOUR) {
			l->key[m++] = (char)('0' + within);
		}
		if (!add_name(l, &cap, (kind == KIND_FOUR ? number / FOUR : number) * KINDS + (uint32_t)kind)) {
			free(l->key), free(l->name);
			return false;
		}
		p += n + digits;
	}
	if (l->key)
		l->key[m] = 0;
	return l->key != NULL;
}

bool diff_code_known(const inspect_kernel *k)
{
	for (size_t i = 0; i < k->nsass; i++)
		if (k->sass[i].text && strcmp(k->sass[i].text, "NOP") != 0 && !k->sass[i].known)
			return false;
	return true;
}

bool diff_code(diff_lines *l, const inspect_kernel *k, bool by_letter)
{
	for (size_t i = 0; i < k->nsass; i++) {
		const sass_line *s = &k->sass[i];
		diff_line line;
		if (s->label && (!read_line(&line, s->label, by_letter) || !diff_add(l, line)))
			return false;
		if (!s->text || !strcmp(s->text, "NOP"))
			continue;
		if (!read_line(&line, s->text, by_letter))
			return false;
		if (!by_letter)
			memcpy(line.registers, s->registers, sizeof line.registers);
		if (!diff_add(l, line))
			return false;
	}
	return true;
}

/* ---- the same registers ---- */

static bool has(const uint64_t *set, uint32_t i) { return i < 256 && set[i / 64] >> i % 64 & 1; }

static bool maps(diff_renaming *r, uint32_t a, uint32_t b, bool *trouble)
{
	return diff_maps(r, a * KINDS + KIND_R, b * KINDS + KIND_R, trouble);
}

/* All that both use of the register file, whose first ones the texts name: those behind a named one go with it. */
bool diff_same_registers(diff_renaming *r, const diff_line *a, const diff_line *b, bool *trouble)
{
	for (size_t i = 0; i < a->nname; i++) {
		uint32_t x = a->name[i] / KINDS, y = b->name[i] / KINDS;
		for (uint32_t j = 1; a->name[i] % KINDS == KIND_R && has(a->registers, x + j) && has(b->registers, y + j); j++) {
			bool named = false; /* by itself, further on */
			for (size_t k = 0; k < a->nname; k++)
				named |= a->name[k] == (x + j) * KINDS + KIND_R || b->name[k] == (y + j) * KINDS + KIND_R;
			if (!named && !maps(r, x + j, y + j, trouble))
				return false;
		}
	}
	size_t na = 0, nb = 0;
	for (uint32_t i = 0; i < 256; i++) {
		na += has(a->registers, i), nb += has(b->registers, i);
		uint32_t to = has(a->registers, i) ? diff_image(r, i * KINDS + KIND_R) : 0;
		if (has(a->registers, i) && (!to || !has(b->registers, (to - 1) / KINDS)))
			return false;
	}
	return na == nb;
}
