/* SPDX-License-Identifier: MIT */
/* Conversion between types of PTX and of DLPack. */
#include "base/options.h"
#include "tensor/tensor.h"

#include <stdio.h>

/* Types that differ in more than signedness and size.  A plain b type stands for any type of its size. */
static const struct {
	enum cptx_type type;
	DLDataType dl;
} types[] = {
	{ CPTX_PRED, { kDLBool, 8, 1 } },
	{ CPTX_B8, { kDLUInt, 8, 1 } },
	{ CPTX_B16, { kDLUInt, 16, 1 } },
	{ CPTX_B32, { kDLUInt, 32, 1 } },
	{ CPTX_B64, { kDLUInt, 64, 1 } },
	{ CPTX_B128, { kDLComplex, 128, 1 } },
	{ CPTX_U8, { kDLUInt, 8, 1 } },
	{ CPTX_U16, { kDLUInt, 16, 1 } },
	{ CPTX_U32, { kDLUInt, 32, 1 } },
	{ CPTX_U64, { kDLUInt, 64, 1 } },
	{ CPTX_S8, { kDLInt, 8, 1 } },
	{ CPTX_S16, { kDLInt, 16, 1 } },
	{ CPTX_S32, { kDLInt, 32, 1 } },
	{ CPTX_S64, { kDLInt, 64, 1 } },
	{ CPTX_F16, { kDLFloat, 16, 1 } },
	{ CPTX_BF16, { kDLBfloat, 16, 1 } },
	{ CPTX_F32, { kDLFloat, 32, 1 } },
	{ CPTX_F64, { kDLFloat, 64, 1 } },
	{ CPTX_E4M3, { kDLFloat8_e4m3fn, 8, 1 } },
	{ CPTX_E5M2, { kDLFloat8_e5m2, 8, 1 } },
	{ CPTX_UE8M0, { kDLFloat8_e8m0fnu, 8, 1 } },
	{ CPTX_E2M1X2, { kDLFloat4_e2m1fn, 4, 2 } },
};

bool cptx_tensor_type_at_(size_t i, cptx_tensor_type_info *info, size_t size)
{
	if (i >= ARRAY_LEN(types) || !info)
		return false;
	const cptx_tensor_type_info x = { types[i].type, types[i].dl.code, types[i].dl.bits, types[i].dl.lanes };
	RESULT_FILL(info, size, &x);
	return true;
}

static bool same(DLDataType a, DLDataType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }

bool type_to_dl(enum cptx_type t, DLDataType *d)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (types[i].type == t) {
			*d = types[i].dl;
			return true;
		}
	return false;
}

bool type_fits(enum cptx_type t, DLDataType d)
{
	DLDataType want;

	if (t >= CPTX_B8 && t <= CPTX_B128)
		return (unsigned)d.bits * d.lanes == cptx_type_bits(t);
	return type_to_dl(t, &want) && same(want, d);
}

/* -1 is no u32, but any 64 bits are a b64. */
bool type_holds(enum cptx_type t, int64_t v)
{
	unsigned bits = cptx_type_bits(t);
	bool is_signed = t >= CPTX_S8 && t <= CPTX_S64, plain = t >= CPTX_B8 && t <= CPTX_B64;
	int64_t low = is_signed || plain ? INT64_MIN >> (64 - bits) : 0;
	int64_t high = bits == 64 ? INT64_MAX : (int64_t)(UINT64_MAX >> (64 - bits + is_signed));

	return v >= low && v <= high;
}

void type_text(DLDataType d, char *text, size_t size)
{
	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (same(types[i].dl, d) && (types[i].type < CPTX_B8 || types[i].type > CPTX_B128)) {
			snprintf(text, size, "%s", cptx_type_name(types[i].type));
			return;
		}
	if (d.code == kDLComplex)
		snprintf(text, size, "complex%u", d.bits);
	else
		snprintf(text, size, "DLPack type %u of %u bits x %u", d.code, d.bits, d.lanes);
}
