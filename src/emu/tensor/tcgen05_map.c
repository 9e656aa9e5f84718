/* SPDX-License-Identifier: MIT */
/* Operands of tcgen05 in tensor memory, and in shared memory through descriptors. */
#include "emu/core/finding.h"
#include "emu/memory/memory.h"
#include "emu/tensor/tcgen05_mma.h"

/* ---- tensor memory ---- */

static void steps(const cptx_frag_step *step, unsigned n, uint16_t *row, uint16_t *col)
{
	*row = *col = 0;
	for (; n; n >>= 1, step++)
		if (n & 1)
			*row = (uint16_t)(*row + step->row), *col = (uint16_t)(*col + step->col);
}

bool tmem_map_make(tmem_map *m, const cptx_frag *what, unsigned cta, cptx_error *err)
{
	cptx_frag_map f;

	if (!cptx_frag_resolve(what, &f, err))
		return false;
	if (f.regs > ARRAY_LEN(m->reg_row) || f.slots > ARRAY_LEN(m->slot_row))
		return false;
	*m = (tmem_map){ .mask = f.mask, .value = f.value, .nreg = f.regs, .cols = f.cols };
	m->nslot = f.slots, m->first = f.first, m->bits = f.bits;
	cta = f.lanes > TMEM_LANES ? cta : 0;
	m->rows = f.lanes > TMEM_LANES ? f.rows / 2 : f.rows;
	for (unsigned l = 0; l < TMEM_LANES; l++) {
		steps(f.lane, l + cta * TMEM_LANES, &m->lane_row[l], &m->lane_col[l]);
		m->lane_row[l] = (uint16_t)(m->lane_row[l] - cta * m->rows);
		if ((l & m->mask) == m->value)
			m->bands |= 1u << l / TMEM_BAND;
	}
	for (unsigned i = 0; i < m->nreg; i++)
		steps(f.reg, i, &m->reg_row[i], &m->reg_col[i]);
	for (unsigned i = 0; i < m->nslot; i++)
		steps(f.slot, i, &m->slot_row[i], &m->slot_col[i]);
	return true;
}

static void read_word(const tmem_map *m, uint32_t v, unsigned row, unsigned col, uint32_t *to)
{
	uint32_t element = m->bits == 32 ? ALL_LANES : (UINT32_C(1) << m->bits) - 1;

	for (unsigned s = 0; s < m->nslot; s++) {
		unsigned r = row + m->slot_row[s], c = col + m->slot_col[s];
		if (r < m->rows && c < m->cols)
			to[r * m->cols + c] = v >> (m->first + s) * m->bits & element;
	}
}

static void note_bad(const tmem_map *m, unsigned row, unsigned col, uint8_t *bad, bool by_row)
{
	for (unsigned s = 0; s < m->nslot; s++) {
		unsigned r = row + m->slot_row[s], c = col + m->slot_col[s];
		if (r < m->rows && c < m->cols)
			bad[by_row ? r : r * m->cols + c] = 1;
	}
}

void tmem_map_read(const tmem_map *m, const emu_tmem *t, tmem_place at, uint32_t *to, uint8_t *bad, bool by_row, bool *any)
{
	for (unsigned i = 0; i < m->nreg; i++) {
		const uint32_t *word = t->v[at.column + i], *defined = t->defined[at.column + i];
		for (unsigned l = 0; l < TMEM_LANES; l++) {
			unsigned lane = l + at.lane, row = (unsigned)m->lane_row[l] + m->reg_row[i],
					 col = (unsigned)m->lane_col[l] + m->reg_col[i];
			if ((l & m->mask) != m->value)
				continue;
			if (m->nslot == 1 && m->bits == 32)
				to[row * m->cols + col] = word[lane];
			else
				read_word(m, word[lane], row, col, to);
			if (!(defined[lane / WARP] >> lane % WARP & 1))
				note_bad(m, row, col, bad, by_row), *any = true;
		}
	}
}

void tmem_map_write(const tmem_map *m, emu_tmem *t, tmem_place at, const uint32_t *from, const uint8_t *bad,
                    const uint32_t off[4])
{
	for (unsigned l = 0; l < TMEM_LANES; l++) {
		unsigned lane = l + at.lane;
		if ((l & m->mask) != m->value || off[lane / WARP] >> lane % WARP & 1)
			continue;
		for (unsigned i = 0; i < m->nreg; i++) {
			unsigned n = ((unsigned)m->lane_row[l] + m->reg_row[i]) * m->cols + m->lane_col[l] + m->reg_col[i];
			t->v[at.column + i][lane] = from[n];
			tmem_define(t, at.column + i, lane, !bad || !bad[n]);
		}
	}
}

/* ---- shared memory ---- */

smem_side smem_side_of(const char *what, cptx_smem_elem elem, unsigned first, unsigned rows, unsigned k)
{
	smem_side s = { .what = what, .elem = elem, .rows = rows, .k = k, .first = first };

	s.per = elem.padded ? 16 : SMEM_PIECE * 8u / elem.bits;
	if (elem.mn_major) { /* whole pieces */
		s.first = first / s.per * s.per;
		s.rows = (first + rows + s.per - 1) / s.per * s.per - s.first;
	}
	s.n = s.rows * k / s.per;
	return s;
}

void smem_piece(const smem_side *s, unsigned i, unsigned *row, unsigned *k)
{
	unsigned n = (s->elem.mn_major ? s->rows : s->k) / s->per; /* pieces of a line */

	*row = s->first + (s->elem.mn_major ? i % n * s->per : i / n);
	*k = s->elem.mn_major ? i / n : i % n * s->per;
}

bool smem_side_open(smem_side *s, emu_warp *w, const emu_op *op, emu_cta *const *cta, unsigned ncta,
                    const cptx_smem_desc *desc, uint32_t late)
{
	emu_place p;
	char near[EMU_NEAR];

	if (!frag_in_span(w, op, s->what, desc, s->elem, s->k))
		return false;
	for (unsigned i = 0; i < s->n; i++) {
		unsigned row, k;
		smem_piece(s, i, &row, &k);
		s->at[i] = cptx_smem_desc_at(desc, s->elem, row, k).byte;
		for (unsigned j = 0; j < ncta; j++) {
			if (!emu_locate(w->cluster, cta[j], SPACE_SHARED, s->at[i] | cta[j]->rank << SHARED_RANK, SMEM_PIECE, &p)) {
				emu_find(w, op, EMU_ALL, CPTX_FIND_DESCRIPTOR,
				         "of %s: start 0x%x, lbo %u, sbo %u, swizzle %s: element (%u, %u) of block %u of the cluster is at "
				         "0x%x, %s",
				         s->what, desc->start, desc->lbo, desc->sbo, cptx_swizzle_get(desc->swizzle)->name, row, k,
				         cta[j]->rank, s->at[i], emu_near_shared(cta[j], s->at[i], SMEM_PIECE, near));
				return false;
			}
			race_async_touch(w, late, &p, SMEM_PIECE, ACCESS_READ | ACCESS_ASYNC);
		}
	}
	return true;
}

static uint64_t bits_at(const unsigned char *p, unsigned bit, unsigned bits)
{
	uint32_t v = p[bit / 8] | (uint32_t)p[bit / 8 + (bit % 8 + bits > 8)] << 8;

	return v >> bit % 8 & ((1u << bits) - 1);
}

uint32_t smem_piece_read(const smem_side *s, const emu_cta *cta, unsigned i, uint32_t *to)
{
	uint32_t at = s->at[i] - SHARED_FIRST, bad = 0;
	const unsigned char *p = cta->shared + at;
	uint32_t defined = cta->shared_defined[at / 8] | (uint32_t)cta->shared_defined[at / 8 + 1] << 8;

	for (unsigned j = 0; j < s->per; j++) {
		unsigned bit = j * s->elem.bits;
		if (s->elem.bits < 8)
			to[j] = (uint32_t)bits_at(p, bit, s->elem.bits);
		else
			to[j] = (uint32_t)emu_bytes(p + bit / 8, s->elem.bits / 8);
		bad |= (uint32_t) !(defined >> bit / 8 & 1) << j;
	}
	return bad;
}
