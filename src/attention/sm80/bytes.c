/* SPDX-License-Identifier: MIT */
/*
 * P * V with V in e4m3, by mma.sync of f16: P is rounded to f16, and V's numbers, all of which f16 has, become f16 on their
 * way from shared memory.  ldmatrix.trans takes pairs of columns for elements of 16 bits, so that a thread gets both columns
 * of a pair for two keys beside one another; prmt parts the columns, which is what the B of a product wants.  The even
 * columns of 16 are one product's, and the odd ones the next one's: of O a thread has four columns beside one another.
 */
#include "attention/sm80/forward.h"

#include <cptx/cptx.h>

enum { KEYS = 16 /* of a product */, COLUMNS = 16, CHUNK = 16 /* bytes */, EVEN_BYTES = 0x6420, ODD_BYTES = 0x7531 };

/* Two pairs of e4m3, as an instruction's B of f16: registers of two keys each. */
static cptx_val as_b(cptx_kernel *k, cptx_val pairs)
{
	const cptx_val half = cptx_regs(k, CPTX_B16, 2), b = cptx_regs(k, CPTX_B32, 2);

	cptx_mov(k, pairs, .type = CPTX_B32, .into = cptx_vec(k, cptx_elem(half, 0), cptx_elem(half, 1)));
	for (uint32_t i = 0; i < 2; i++)
		cptx_cvt(k, cptx_as(cptx_elem(half, i), CPTX_E4M3X2), .rnd = CPTX_RN, .dtype = CPTX_F16X2,
		         .into = cptx_as(cptx_elem(b, i), CPTX_F16X2));
	return b;
}

/* Columns of V times the P of a step, for all rows of the warp. */
static void multiply(cptx_kernel *k, const cptx_acc *o, cptx_val p, uint32_t step, uint32_t n, cptx_val pairs)
{
	const cptx_val b = as_b(k, pairs);

	for (uint32_t m = 0; m < o->atoms_m; m++) {
		const cptx_val d = cptx_slice(o->regs, (m * o->atoms_n + n) * 4, 4),
					   a = cptx_slice(p, (step * o->atoms_m + m) * 4, 4);
		cptx_mma(k, a, b, d, .into = d, .shape = CPTX_M16N8K16, .dtype = CPTX_F32, .atype = CPTX_F16);
	}
}

void attention_sm80_multiply_bytes(cptx_kernel *k, const shape80 *s, const cptx_acc *o, cptx_val p, cptx_val v,
                                   cptx_val lane)
{
	const uint32_t span = cptx_swizzle_get(s->v.swizzle)->span, chunks = span / CHUNK, keys = s->v.cols;
	/* lane i has the address of key i % 16, and lanes from 16 on that of the next columns */
	const cptx_val row = cptx_mul(k, cptx_and(k, lane, KEYS - 1), span, .mode = CPTX_LO);
	const cptx_val swizzled = cptx_xor(k, row, cptx_and(k, cptx_shr(k, row, 3), span - CHUNK));
	const cptx_val next = cptx_mul(k, cptx_shr(k, lane, 4), CHUNK, .mode = CPTX_LO);
	const cptx_val from = cptx_add(k, v, cptx_xor(k, swizzled, next));

	for (uint32_t chunk = 0; chunk < s->dim_v / COLUMNS; chunk += 2) {
		const cptx_val at = chunk % chunks ? cptx_xor(k, from, chunk % chunks * CHUNK) : from;
		for (uint32_t step = 0; step < keys / KEYS; step++) {
			const cptx_val in = cptx_ldmatrix(k, cptx_offset(at, (chunk / chunks * keys + step * KEYS) * span),
			                                  .num = CPTX_X4, .trans = true, .space = CPTX_SHARED);
			for (uint32_t i = 0; i < 4; i++) {
				const cptx_val low = cptx_elem(in, i / 2 * 2), high = cptx_elem(in, i / 2 * 2 + 1);
				multiply(k, o, p, step, chunk * 2 + i, cptx_prmt(k, low, high, i % 2 ? ODD_BYTES : EVEN_BYTES));
			}
		}
	}
}

void attention_sm80_store_bytes(cptx_kernel *k, const attention_in *in, const attention_tile *t, const cptx_acc *o,
                                cptx_val lane)
{
	const enum cptx_type type = attention_out(in->o);
	const uint32_t dim_v = attention_dim_v(in->o), bytes = cptx_type_bits(type) / 8;
	const cptx_val head = attention_rows_at(k, &in->out, t, t->q0, t->head);
	const cptx_val col = cptx_mul(k, cptx_and(k, lane, 3), ATTENTION_VECTOR, .mode = CPTX_LO);

	for (uint32_t m = 0; m < o->atoms_m; m++)
		for (uint32_t half = 0; half < 2; half++) {
			const uint32_t first = m * o->atoms_n * 4 + half * 2;
			const cptx_acc_elem e = cptx_acc_at(o, first);
			const cptx_val row = cptx_acc_row(k, o, &e, t->row0);
			const cptx_val there = cptx_setp(k, cptx_as(row, CPTX_U32), t->queries, .cmp = CPTX_LT);
			const cptx_val at =
				cptx_mad(k, cptx_cvt(k, cptx_as(row, CPTX_U32), .dtype = CPTX_U64), in->out.row, head, .mode = CPTX_LO);
			const cptx_val to = cptx_add(k, at, cptx_mul_wide(k, col, bytes));
			for (uint32_t c = 0; c * COLUMNS < dim_v; c++) {
				cptx_val v[ATTENTION_VECTOR], when = there;
				for (uint32_t i = 0; i < ATTENTION_VECTOR; i++)
					v[i] = cptx_elem(o->regs, first + (c * 2 + i % 2) * 4 + i / 2);
				if (c * COLUMNS + COLUMNS > dim_v)
					when = cptx_and(k, there, cptx_setp(k, col, dim_v - c * COLUMNS, .cmp = CPTX_LT), .type = CPTX_PRED);
				attention_store(k, type, v, ATTENTION_VECTOR, cptx_offset(to, c * COLUMNS * bytes), when);
			}
		}
}
