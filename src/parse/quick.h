/* SPDX-License-Identifier: MIT */
/* A fast path for registers of ranges, which nearly all operands are. */
#ifndef CPTX_PARSE_QUICK_H
#define CPTX_PARSE_QUICK_H

#include "parse/parser.h"

static inline unsigned quick_slot(uint64_t key) { return (unsigned)(key * 0x9e3779b97f4a7c15u >> 60); }
_Static_assert(QUICK_RANGES == 1 << (64 - 60), "the hash has a slot for each");

#define EACH_BYTE (UINT64_MAX / 255) /* times a byte: eight copies of that byte */

/* A mask with the highest bit of each byte that is no digit, up to the first byte that is not ASCII. */
static inline uint64_t no_digits(uint64_t bytes)
{
	uint64_t from_0 = bytes ^ EACH_BYTE * '0';
	return ((from_0 + EACH_BYTE * (0x80 - 10)) | from_0) & EACH_BYTE * 0x80;
}

/* 8 times the number of bytes in front of the lowest bit of such a mask. */
static inline unsigned bits_before(uint64_t mask) { return (unsigned)__builtin_ctzll(mask) & ~7u; }

/* The value of 8 decimal digits, the first in the lowest byte. */
static inline uint32_t number_of_8(uint64_t digits)
{
	digits = (digits & EACH_BYTE * 15) * (10 * 256 + 1) >> 8;
	digits = (digits & UINT64_C(0x00ff00ff00ff00ff)) * (100 * 65536 + 1) >> 16;
	return (uint32_t)((digits & UINT64_C(0x0000ffff0000ffff)) * (10000 * (UINT64_C(1) << 32) + 1) >> 32);
}

/*
 * Reads a register of one of the remembered ranges if the operand ends behind it: skips it, and returns its number; else
 * IR_NONE.
 *
 * It works on 8 bytes at once: the lengths of prefix and number differ from register to register, so that branches on them
 * would be mispredicted again and again.
 */
static inline uint32_t names_quick(parser *p)
{
	uint64_t bytes;

	memcpy(&bytes, p->p, sizeof bytes);
	uint64_t others = no_digits(bytes), digits = ~others & EACH_BYTE * 0x80;
	if (!digits || p->names.numbers.in_range)
		return IR_NONE;
	unsigned prefix = bits_before(digits); /* these lengths are in bits */
	uint64_t key = bytes & ((UINT64_C(1) << prefix) - 1);
	const quick_range *q = &p->names.quick[quick_slot(key)];
	others = others >> prefix << prefix;
	if (!prefix || q->key != key || !others)
		return IR_NONE;
	unsigned behind = bits_before(others), length = behind - prefix;
	uint64_t text = bytes >> prefix; /* begins with the digits */
	uint32_t number = number_of_8(text << (64 - length));
	const char *s = p->p + behind / 8;
	bool ends = *s == ',' || *s == ';' || *s == ']' || *s == '}' || (*s == ' ' && parse_is_word[(unsigned char)s[1]]);
	if (!ends || (length > 8 && (text & 255) == '0') || number >= q->count)
		return IR_NONE;
	p->stop = s;
	p->p = s + (*s == ' ');
	return q->id + number;
}

#endif
