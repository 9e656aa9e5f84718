/* SPDX-License-Identifier: MIT */
/*
 * Where the matrices of a problem lie: how far rows and matrices are apart, which of them tensor maps and copies of 16 bytes
 * cannot take, and the copies of these in the workspace.
 *
 * The workspace: a barrier of the grid, the copy of A, that of B, and what stream_k needs, each at a multiple of 128 bytes.
 * The barrier is the first, so that it has one place for all sizes: launches of several share a workspace.
 */
#include "gemm/tma/tma.h"

#include <stdio.h>

enum { CHUNK = 16 /* bytes that kernels read and write at once */, APART = 128 };
#define MOST_LD (UINT64_C(1) << 31)
#define MOST_COPIED (UINT64_C(1) << 31) /* bytes of a row, of which places behind the end are counted in 32 bits too */

#define RULE(ok, ...) TMA_RULE(ok, "%s: " __VA_ARGS__)

static const char names[] = "abcd";

/* Whether the rows of all experts lie behind one another in a matrix: A, C and D, or of experts along K A and B. */
static bool is_of_all(const cptx_gemm_opt *o, enum gemm_which which)
{
	return o->experts == CPTX_GEMM_EXPERTS_K ? which <= GEMM_B : o->experts && which != GEMM_B;
}

gemm_stored tma_gemm_stored(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which)
{
	const cptx_gemm_opt *o = t->o;
	const bool across = which == GEMM_A ? o->a_m_major : which == GEMM_B && o->b_n_major;
	const uint64_t lds[] = { p->lda, p->ldb, p->ldc, p->ldd };
	const uint64_t strides[] = { p->stride_a, p->stride_b, p->stride_c, p->stride_d }, ats[] = { p->a, p->b, p->c, p->d };
	const uint64_t rows = which == GEMM_B ? p->n : p->m, cols = which >= GEMM_C                ? tma_gemm_columns(o, p->n)
	                                                            : which == GEMM_A && o->sparse ? cptx_gemm_sparse_cols(p->k)
	                                                                                           : p->k;
	gemm_stored s = { .at = ats[which], .rows = across ? cols : rows, .cols = across ? rows : cols };

	s.bits = tma_gemm_bits(which == GEMM_A ? o->a : which == GEMM_B ? o->b : o->out);
	const bool of_all = is_of_all(o, which);
	if (of_all && o->experts != CPTX_GEMM_EXPERTS_K)
		s.rows = tma_gemm_rows(o, p);
	s.ld = lds[which] == CPTX_GEMM_BROADCAST ? 0 : lds[which] ? lds[which] : s.cols;
	s.count = strides[which] == CPTX_GEMM_BROADCAST || of_all ? 1 : or_one(p->batch);
	s.stride = strides[which] == CPTX_GEMM_BROADCAST ? 0 : strides[which] ? strides[which] : s.rows * s.ld;
	return s;
}

uint64_t gemm_stored_bytes(const gemm_stored *s, uint64_t elements)
{
	return elements / 8 * s->bits + elements % 8 * s->bits / 8;
}

/* ---- the workspace ---- */

static uint64_t padded_row(const gemm_stored *s)
{
	return divide_up(gemm_stored_bytes(s, s->cols), GEMM_COPY_LINE) * GEMM_COPY_LINE;
}

static uint64_t copy_bytes(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which)
{
	const gemm_stored s = tma_gemm_stored(t, p, which);

	return tma_gemm_is_copied(t, which) ? divide_up(padded_row(&s) * s.rows * s.count, APART) * APART : 0;
}

static uint64_t copies_bytes(const tma_gemm *t, const cptx_gemm_problem *p)
{
	return copy_bytes(t, p, GEMM_A) + copy_bytes(t, p, GEMM_B);
}

uint64_t tma_gemm_sums_begin(const tma_gemm *t, const cptx_gemm_problem *p)
{
	return copies_bytes(t, p) ? copies_bytes(t, p) + APART : 0;
}

gemm_stored tma_gemm_read(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which)
{
	gemm_stored s = tma_gemm_stored(t, p, which);

	if (!tma_gemm_is_copied(t, which))
		return s;
	s.at = p->workspace + APART + (which == GEMM_B ? copy_bytes(t, p, GEMM_A) : 0);
	s.ld = padded_row(&s) * 8 / s.bits;
	s.stride = s.ld * s.rows;
	return s;
}

/* ---- rules ---- */

/* Rows, or matrices of a batch, begin at other places than multiples of 16 bytes. */
static bool rows_are_off(const gemm_stored *s)
{
	return gemm_stored_bytes(s, s->ld) % CHUNK || (s->count > 1 && gemm_stored_bytes(s, s->stride) % CHUNK);
}

uint32_t tma_gemm_unaligned(const tma_gemm *t, const cptx_gemm_problem *p)
{
	const gemm_stored c = tma_gemm_stored(t, p, GEMM_C), d = tma_gemm_stored(t, p, GEMM_D);
	const bool ends_off = gemm_stored_bytes(&d, d.cols) % CHUNK; /* several elements are stored at once */
	const bool off = (rows_are_off(&d) || ends_off || (t->o->beta && rows_are_off(&c))) && !t->any_row_of_d;
	uint32_t set = off || d.at % CHUNK || (t->o->beta && c.at % CHUNK) ? CPTX_GEMM_D : 0;

	for (enum gemm_which w = GEMM_A; w <= GEMM_B; w = (enum gemm_which)(w + 1)) {
		const gemm_stored s = tma_gemm_stored(t, p, w);
		if (s.bits >= 8 && (rows_are_off(&s) || s.at % CHUNK))
			set |= 1u << w;
	}
	return set;
}

static bool check_distances(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which, uint64_t ld,
                            uint64_t stride, cptx_error *err)
{
	const gemm_stored s = tma_gemm_stored(t, p, which);
	const char name = names[which];
	const bool broadcast = ld == CPTX_GEMM_BROADCAST;
	const uint64_t one = (t->o->experts == CPTX_GEMM_EXPERTS_MASKED ? p->m : s.rows) * s.ld; /* an expert's room for rows */

	RULE(!tma_gemm_is_copied(t, which) || gemm_stored_bytes(&s, s.cols) <= MOST_COPIED,
	     "rows of %c have %llu bytes, which the kernel copies (.unaligned); these are up to 2^31", t->target,
	     name - 'a' + 'A', (unsigned long long)gemm_stored_bytes(&s, s.cols));
	RULE((!ld && !stride) || tma_gemm_is_strided(t),
	     "the problem has ld%c or stride_%c, and the kernel dense matrices: say .strided in its options", t->target, name,
	     name);
	RULE(!broadcast || which == GEMM_C, "ld%c is CPTX_GEMM_BROADCAST, which only C has: one row for all", t->target, name);
	RULE(broadcast || (s.ld >= s.cols && s.ld < MOST_LD),
	     "ld%c = %llu; rows have %llu elements, so it is at least that, and less than 2^31", t->target, name,
	     (unsigned long long)s.ld, (unsigned long long)s.cols);
	RULE(s.ld * s.bits % 8 == 0 && s.stride * s.bits % 8 == 0,
	     "ld%c = %llu, stride_%c = %llu elements of %u bits; rows and matrices begin at whole bytes", t->target, name,
	     (unsigned long long)s.ld, name, (unsigned long long)s.stride, s.bits);
	RULE(!stride || stride == one || !is_of_all(t->o, which),
	     "stride_%c = %llu with experts (%s), whose rows lie behind one another in one matrix: it is 0 or %llu", t->target,
	     name, (unsigned long long)stride, cptx_gemm_experts_name(t->o->experts), (unsigned long long)one);
	RULE(which != GEMM_D || stride != CPTX_GEMM_BROADCAST, "stride_d is CPTX_GEMM_BROADCAST; each matrix has a D of its own",
	     t->target);
	RULE(which != GEMM_D || s.count == 1 || s.stride >= (s.rows - 1) * s.ld + s.cols ||
	         s.ld >= (s.count - 1) * s.stride + s.cols,
	     "stride_d = %llu; matrices of %llu rows, ldd = %llu apart, would lie over one another", t->target,
	     (unsigned long long)s.stride, (unsigned long long)s.rows, (unsigned long long)s.ld);
	return true;
}

bool tma_gemm_check_stored(const tma_gemm *t, const cptx_gemm_problem *p, cptx_error *err)
{
	return check_distances(t, p, GEMM_A, p->lda, p->stride_a, err) &&
	       check_distances(t, p, GEMM_B, p->ldb, p->stride_b, err) &&
	       check_distances(t, p, GEMM_C, p->ldc, p->stride_c, err) &&
	       check_distances(t, p, GEMM_D, p->ldd, p->stride_d, err);
}

bool tma_gemm_check_rows(const tma_gemm *t, const cptx_gemm_problem *p, enum gemm_which which, const cptx_tile *tile,
                         cptx_error *err)
{
	const gemm_stored s = tma_gemm_read(t, p, which);
	const char name = (char)(names[which] - 'a' + 'A');
	const uint32_t unit = tile->elem.padded ? 128 : CHUNK * 8 / s.bits;
	const uint64_t off = (tile->elem.padded || which >= GEMM_C) && s.cols % unit ? s.cols : s.ld;
	const bool few_bits = s.bits < 8;
	char instead[64] = "";

	if (t->any_rows && which <= GEMM_B && t->o->unaligned >> which & 1)
		return true;
	if (!t->o->grouped && !(t->o->gather && which == GEMM_A)) /* which have aligned rows always */
		snprintf(instead, sizeof instead, ", or the kernel made with CPTX_GEMM_%c in .unaligned", name == 'C' ? 'D' : name);
	RULE(off % unit == 0 || !tile->elem.padded,
	     "rows of %c have %llu elements of %u bits, which tensor maps pad in shared memory: they must be a multiple of %u "
	     "(pad to %llu)",
	     t->target, name, (unsigned long long)off, s.bits, unit, (unsigned long long)(divide_up(off, unit) * unit));
	RULE(off % unit == 0 || few_bits,
	     "rows of %c have %llu elements of %u bytes; they must be a multiple of 16 bytes (pad %sto %llu)%s", t->target, name,
	     (unsigned long long)off, s.bits / 8, which >= GEMM_C ? "N " : "", (unsigned long long)(divide_up(off, unit) * unit),
	     instead);
	RULE(off % unit == 0, "rows of %c have %llu elements of %u bits; they must be a multiple of 16 bytes (pad to %llu)",
	     t->target, name, (unsigned long long)off, s.bits, (unsigned long long)(divide_up(off, unit) * unit));
	RULE(s.count == 1 || gemm_stored_bytes(&s, s.stride) % CHUNK == 0,
	     "matrices of %c are %llu bytes apart; it must be a multiple of 16%s", t->target, name,
	     (unsigned long long)gemm_stored_bytes(&s, s.stride), instead);
	return true;
}
