/* SPDX-License-Identifier: MIT */
/* Comparison and selection. */
#include "emu/exec/scalar.h"

static uint32_t combined(unsigned boolop, uint32_t t, uint32_t c)
{
	switch (boolop) {
	case CPTX_AND: return t & c;
	case CPTX_OR: return t | c;
	case CPTX_XOR: return t ^ c;
	default: return t;
	}
}

/* ---- setp ---- */

/* Writes p and q for the lanes of the mask; t has what the comparison says, u that of q. */
static enum emu_step answer(emu_warp *w, const emu_op *op, uint32_t mask, uint32_t t, uint32_t u)
{
	const emu_arg *q = &op->arg[1];
	uint32_t c = op->m.boolop ? emu_pred(w, &op->arg[4]) : 0;

	if (op->arg[0].kind == ARG_REG)
		emu_set_pred(w, op->arg[0].slot, mask, combined(op->m.boolop, t, c));
	if (q->kind == ARG_REG)
		emu_set_pred(w, q->slot, mask, combined(op->m.boolop, u, c));
	return STEP_NEXT;
}

/* Bytes of 0 and 1 as bits. */
static uint32_t bits_of(const uint8_t *t)
{
	uint32_t p = 0;

	for (unsigned i = 0; i < WARP; i += 8) {
		uint64_t eight;
		memcpy(&eight, t + i, sizeof eight);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		eight = __builtin_bswap64(eight);
#endif
		p |= (uint32_t)(eight * UINT64_C(0x0102040810204080) >> 56) << i;
	}
	return p;
}

/* Of whole warps, whatever the mask: comparing does no harm. */
#define COMPARE(expr)                                                                                                       \
	for (unsigned l = 0; l < WARP; l++) {                                                                                   \
		const type a = LOAD(pa[l]), b = LOAD(pb[l]);                                                                        \
		t[l] = (expr);                                                                                                      \
	}                                                                                                                       \
	break
#define SETP_HEAD(name, reg)                                                                                                \
	static enum emu_step name(emu_warp *w, const emu_op *op, uint32_t mask)                                                 \
	{                                                                                                                       \
		const reg *pa = LANE_REG(reg, w, op, 2), *pb = LANE_REG(reg, w, op, 3);                                             \
		uint8_t t[WARP];                                                                                                    \
		switch (op->m.cmp) {
#define SETP_TAIL                                                                                                           \
	}                                                                                                                       \
	uint32_t p = bits_of(t);                                                                                                \
	return answer(w, op, mask, p, ~p);                                                                                      \
	}
#define SETP_INT(name)                                                                                                      \
	SETP_HEAD(name, type)                                                                                                   \
	case CPTX_EQ: COMPARE(a == b);                                                                                          \
	case CPTX_NE: COMPARE(a != b);                                                                                          \
	case CPTX_LO:                                                                                                           \
	case CPTX_LT: COMPARE(a < b);                                                                                           \
	case CPTX_LS:                                                                                                           \
	case CPTX_LE: COMPARE(a <= b);                                                                                          \
	case CPTX_HI:                                                                                                           \
	case CPTX_GT: COMPARE(a > b);                                                                                           \
	default:                                                                                                                \
		COMPARE(a >= b);                                                                                                    \
		SETP_TAIL
#define SETP_FLOAT(name, reg)                                                                                               \
	SETP_HEAD(name, reg)                                                                                                    \
	case CPTX_EQ: COMPARE(a == b);                                                                                          \
	case CPTX_NE: COMPARE((a < b) | (a > b));                                                                               \
	case CPTX_LT: COMPARE(a < b);                                                                                           \
	case CPTX_LE: COMPARE(a <= b);                                                                                          \
	case CPTX_GT: COMPARE(a > b);                                                                                           \
	case CPTX_GE: COMPARE(a >= b);                                                                                          \
	case CPTX_EQU: COMPARE(!((a < b) | (a > b)));                                                                           \
	case CPTX_NEU: COMPARE(a != b);                                                                                         \
	case CPTX_LTU: COMPARE(!(a >= b));                                                                                      \
	case CPTX_LEU: COMPARE(!(a > b));                                                                                       \
	case CPTX_GTU: COMPARE(!(a <= b));                                                                                      \
	case CPTX_GEU: COMPARE(!(a < b));                                                                                       \
	case CPTX_NUM: COMPARE((a == a) & (b == b));                                                                            \
	default:                                                                                                                \
		COMPARE((a != a) | (b != b));                                                                                       \
		SETP_TAIL

#define LOAD(x) x
#define type uint32_t
SETP_INT(setp_u32)
#undef type
#define type int32_t
SETP_INT(setp_s32)
#undef type
#define type uint64_t
SETP_INT(setp_u64)
#undef type
#define type int64_t
SETP_INT(setp_s64)
#undef type
#undef LOAD
#define LOAD(x) num_f32(x)
#define type float
SETP_FLOAT(setp_f32, uint32_t)
#undef LOAD
#define LOAD(x) num_f32(num_f32_ftz(x))
SETP_FLOAT(setp_f32z, uint32_t)
#undef LOAD
#undef type
#define LOAD(x) num_f64(x)
#define type double
SETP_FLOAT(setp_f64, uint64_t)
#undef LOAD
#undef type

static enum emu_step setp(emu_warp *w, const emu_op *op, uint32_t mask)
{
	uint32_t t = 0;

	EACH_LANE(l, mask)
		t |= (uint32_t)num_cmp(op->m.type, op->m.cmp, emu_get(w, &op->arg[2], l), emu_get(w, &op->arg[3], l), op->m.ftz)
		     << l;
	return answer(w, op, mask, t, ~t);
}

/* Two halves: p is about the lower ones, q about the upper ones. */
static enum emu_step setp_x2(emu_warp *w, const emu_op *op, uint32_t mask)
{
	struct num_packing pack = num_packing(op->m.type);
	uint32_t t[2] = { 0 };

	EACH_LANE(l, mask)
		for (unsigned i = 0; i < 2; i++)
			t[i] |= (uint32_t)num_cmp(pack.type, op->m.cmp, emu_get(w, &op->arg[2], l) >> 16 * i & 0xffff,
			                          emu_get(w, &op->arg[3], l) >> 16 * i & 0xffff, op->m.ftz)
			        << l;
	return answer(w, op, mask, t[0], t[1]);
}

bool decode_setp(emu_decoder *d, emu_op *op)
{
	static const struct fast rows[] = { { FAST_U32 | FAST_U16, setp_u32 },
		                                { FAST_S32, setp_s32 },
		                                { FAST_U64, setp_u64 },
		                                { FAST_S64, setp_s64 },
		                                { FAST_F32, setp_f32 },
		                                { FAST_F32Z, setp_f32z },
		                                { FAST_F64, setp_f64 },
		                                { 0 } };

	(void)d;
	op->flags = OP_PURE;
	if (!fast_decode(op, rows))
		op->fn = num_packing(op->m.type).count > 1 ? setp_x2 : setp;
	return true;
}

/* ---- set ---- */

static uint64_t truth(const emu_op *op, uint64_t a, uint64_t b, uint64_t c)
{
	struct num_packing pack = num_packing(op->m.stype), to = num_packing(op->m.dtype);
	unsigned dtype = to.count > 1 ? to.type : pack.count > 1 ? CPTX_U16 : op->m.dtype;
	uint64_t mask = pack.count > 1 ? 0xffff : UINT64_MAX, d = 0;

	for (unsigned i = 0; i < pack.count; i++) {
		uint32_t t = num_cmp(pack.type, op->m.cmp, a >> 16 * i & mask, b >> 16 * i & mask, op->m.ftz);
		d |= num_truth(dtype, combined(op->m.boolop, t, (uint32_t)c)) << 16 * i;
	}
	return d;
}
SCALAR(set, truth(op, v[0], v[1], op->m.boolop ? v[2] : 0))

/* ---- selp, slct ---- */

static const uint32_t lane_bit[WARP] = {
#define FOUR(n) UINT32_C(1) << n, UINT32_C(2) << n, UINT32_C(4) << n, UINT32_C(8) << n
	FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24), FOUR(28),
#undef FOUR
};

#define SELECT(name, type)                                                                                                  \
	static enum emu_step name(emu_warp *w, const emu_op *op, uint32_t mask)                                                 \
	{                                                                                                                       \
		type *d = LANE_REG(type, w, op, 0);                                                                                 \
		const type *pa = LANE_REG(type, w, op, 1), *pb = LANE_REG(type, w, op, 2);                                          \
		uint32_t c = emu_pred(w, &op->arg[3]);                                                                              \
		LANES(l, mask, type a = pa[l]; type b = pb[l]; d[l] = c & lane_bit[l] ? a : b);                                     \
		return STEP_NEXT;                                                                                                   \
	}
SELECT(selp_32, uint32_t)
SELECT(selp_64, uint64_t)

bool decode_selp(emu_decoder *d, emu_op *op)
{
	(void)d;
	op->flags = OP_PURE;
	op->fn = arch_types[op->m.type].bits == 64 ? selp_64 : selp_32;
	return true;
}

SCALAR(slct, num_cmp(op->m.ctype, CPTX_GE, v[2], 0, op->m.ftz) ? v[0] : v[1])
