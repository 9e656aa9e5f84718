/* SPDX-License-Identifier: MIT */
/* Swizzles, and descriptors of matrices in shared memory: wgmma's and tcgen05's. */
#include "base/options.h"
#include "layout/layout.h"

/* ---- swizzles ---- */

static const cptx_swizzle_info swizzles[CPTX_SWIZZLE_COUNT] = {
	[CPTX_SWIZZLE_NONE] = { "none", 16, 0, 0, 0, 0 },
	[CPTX_SWIZZLE_32B] = { "32B", 32, 256, 7, 4, 1 },
	[CPTX_SWIZZLE_64B] = { "64B", 64, 512, 7, 4, 3 },
	[CPTX_SWIZZLE_128B] = { "128B", 128, 1024, 7, 4, 7 },
	[CPTX_SWIZZLE_128B_ATOM_32B] = { "128B_ATOM_32B", 128, 1024, 7, 5, 3 },
	[CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B] = { "128B_ATOM_32B_FLIP_8B", 128, 1024, 7, 5, 3 },
	[CPTX_SWIZZLE_128B_ATOM_64B] = { "128B_ATOM_64B", 128, 1024, 7, 6, 1 },
	[CPTX_SWIZZLE_96B] = { "96B", 96, 256, 7, 4, 1 },
};

const cptx_swizzle_info *cptx_swizzle_get(enum cptx_swizzle s)
{
	return (unsigned)s < CPTX_SWIZZLE_COUNT ? &swizzles[s] : NULL;
}

enum cptx_swizzle cptx_swizzle_find(const char *name)
{
	unsigned s = 0;

	while (name && s < CPTX_SWIZZLE_COUNT && strcmp(swizzles[s].name, name) != 0)
		s++;
	return name ? (enum cptx_swizzle)s : CPTX_SWIZZLE_COUNT;
}

/* The address bits that a swizzle flips, for the row of 128 bytes that has number address >> 7 of the pattern. */
static uint32_t swizzle_bits(enum cptx_swizzle s, uint32_t address)
{
	const cptx_swizzle_info *w = &swizzles[s];
	uint32_t flip = s == CPTX_SWIZZLE_128B_ATOM_32B_FLIP_8B ? (address >> 7 & 1) << 3 : 0;

	return (address >> w->from & w->mask) << w->to ^ flip;
}

uint32_t cptx_swizzle_address(enum cptx_swizzle s, uint32_t address)
{
	return (unsigned)s < CPTX_SWIZZLE_COUNT ? address ^ swizzle_bits(s, address) : address;
}

/* ---- the two forms of the word ---- */

enum field { FIELD_START, FIELD_LBO, FIELD_SBO, FIELD_VERSION, FIELD_BASE, FIELD_LBO_MODE, FIELD_SWIZZLE, FIELDS };

/* clang-format off */
#define ADDRESS_FIELDS \
	{ "start", "shared memory address", 0, 13, 16 }, \
	{ "lbo", "leading dimension byte offset", 16, 29, 16 }, \
	{ "sbo", "stride dimension byte offset", 32, 45, 16 }
#define BASE_FIELD { "base_offset", "rows of 128 bytes from the pattern's repeat to its start", 49, 51, 1 }
#define NO_FIELD { NULL, NULL, 0, 0, 0 }
/* clang-format on */

/* Rows follow enum cptx_desc_arch, fields enum field.  A field without a name does not exist in that form. */
static const struct form {
	const char *name;
	cptx_desc_field field[FIELDS];
	int8_t code[CPTX_SWIZZLE_COUNT]; /* code of each swizzle in the swizzle field; -1: it has none */
} forms[] = {
	[CPTX_DESC_WGMMA] = { "wgmma",
	                      { ADDRESS_FIELDS,
	                        NO_FIELD,
	                        BASE_FIELD,
	                        NO_FIELD,
	                        { "swizzle", "0 none, 1 128B, 2 64B, 3 32B", 62, 63, 0 } },
	                      { 0, 3, 2, 1, -1, -1, -1, -1 } },
	[CPTX_DESC_TCGEN05] = { "tcgen05",
	                        { ADDRESS_FIELDS,
	                          { "version", "always 1", 46, 48, 0 },
	                          BASE_FIELD,
	                          { "lbo_is_address", "0: lbo is an offset, 1: an address", 52, 52, 0 },
	                          { "swizzle", "0 none, 1 128B_ATOM_32B, 2 128B, 4 64B, 6 32B", 61, 63, 0 } },
	                        { 0, 6, 4, 2, 1, -1, -1, -1 } },
};
enum { ADDRESS_END = 1 << 18 };

#define RULE(ok, ...)                                                                                                       \
	do                                                                                                                      \
		if (!(ok))                                                                                                          \
			return error_set(err, CPTX_E_ARG, NOWHERE, __VA_ARGS__);                                                        \
	while (0)

bool cptx_smem_desc_field_(enum cptx_desc_arch arch, size_t i, cptx_desc_field *field, size_t size)
{
	if (!field || (arch != CPTX_DESC_WGMMA && arch != CPTX_DESC_TCGEN05))
		return false;
	for (size_t f = 0; f < FIELDS; f++)
		if (forms[arch].field[f].name && !i--) {
			RESULT_FILL(field, size, &forms[arch].field[f]);
			return true;
		}
	return false;
}

static bool field_fits(const char *name, const char *what, uint32_t v, cptx_error *err)
{
	RULE(v % 16 == 0, "%s descriptor: %s = %u is not a multiple of 16 bytes (nearest: %u)", name, what, v, v / 16 * 16);
	RULE(v < ADDRESS_END, "%s descriptor: %s = %u; it is below %u", name, what, v, ADDRESS_END);
	return true;
}

static bool check(const cptx_smem_desc *d, cptx_error *err)
{
	RULE(d->arch == CPTX_DESC_WGMMA || d->arch == CPTX_DESC_TCGEN05, "matrix descriptor: there is no kind %u",
	     (unsigned)d->arch);
	const struct form *f = &forms[d->arch];
	const cptx_swizzle_info *w = cptx_swizzle_get(d->swizzle);

	RULE(w && f->code[d->swizzle] >= 0, "%s descriptor: swizzle %s is not possible; there are none, 32B, 64B, 128B%s",
	     f->name, w ? w->name : "?", d->arch == CPTX_DESC_TCGEN05 ? " and 128B_ATOM_32B" : "");
	if (!field_fits(f->name, "start", d->start, err) || !field_fits(f->name, "lbo", d->lbo, err) ||
	    !field_fits(f->name, "sbo", d->sbo, err))
		return false;
	RULE(d->base_offset < 8, "%s descriptor: base offset %u; it has 3 bits", f->name, d->base_offset);
	RULE(!d->base_offset || d->swizzle, "%s descriptor: base offset %u without a swizzle; it must be 0", f->name,
	     d->base_offset);
	RULE(!d->lbo_is_address || d->arch == CPTX_DESC_TCGEN05, "wgmma descriptor: lbo cannot be an address");
	RULE(!d->lbo_is_address || (d->swizzle == CPTX_SWIZZLE_128B && !d->base_offset),
	     "tcgen05 descriptor: lbo is an address (bit 52) with swizzle %s and base offset %u; that needs 128B and 0", w->name,
	     d->base_offset);
	return true;
}

bool cptx_smem_desc_encode(const cptx_smem_desc *d, uint64_t *word, cptx_error *err)
{
	if (!IS_GIVEN(word, "word", NOWHERE, err) || !IS_GIVEN(d, "descriptor", NOWHERE, err))
		return false;
	*word = 0;
	if (!check(d, err))
		return false;
	const struct form *f = &forms[d->arch];
	const uint64_t value[FIELDS] = {
		d->start >> 4, d->lbo >> 4, d->sbo >> 4, 1, d->base_offset, d->lbo_is_address, (uint64_t)f->code[d->swizzle]
	};

	for (size_t i = 0; i < FIELDS; i++)
		if (f->field[i].name)
			*word |= field_put(value[i], &f->field[i]);
	return true;
}

/* Whether reserved bits, and the bits of the version, have their only legal value. */
static bool check_bits(const struct form *f, uint64_t word, cptx_error *err)
{
	uint64_t free_bits = 0, fixed = 0;

	for (size_t i = 0; i < FIELDS; i++)
		if (f->field[i].name && i == FIELD_VERSION)
			fixed = field_put(1, &f->field[i]);
		else if (f->field[i].name)
			free_bits |= field_mask(&f->field[i]);
	for (unsigned bit = 0; bit < 64; bit++)
		RULE(!((word ^ fixed) >> bit & 1) || (free_bits >> bit & 1), "%s descriptor: bit %u is %u; it must be %u", f->name,
		     bit, (unsigned)(word >> bit & 1), (unsigned)(fixed >> bit & 1));
	return true;
}

bool cptx_smem_desc_decode(enum cptx_desc_arch arch, uint64_t word, cptx_smem_desc *d, cptx_error *err)
{
	uint64_t value[FIELDS];
	unsigned swizzle = 0;

	if (!IS_GIVEN(d, "descriptor", NOWHERE, err))
		return false;
	*d = (cptx_smem_desc){ .arch = arch };
	RULE(arch == CPTX_DESC_WGMMA || arch == CPTX_DESC_TCGEN05, "matrix descriptor: there is no kind %u", (unsigned)arch);
	const struct form *f = &forms[arch];
	const cptx_desc_field *s = &f->field[FIELD_SWIZZLE];
	for (size_t i = 0; i < FIELDS; i++)
		value[i] = f->field[i].name ? field_get(word, &f->field[i]) : 0;
	d->start = (uint32_t)value[FIELD_START] << 4;
	d->lbo = (uint32_t)value[FIELD_LBO] << 4;
	d->sbo = (uint32_t)value[FIELD_SBO] << 4;
	d->base_offset = (uint8_t)value[FIELD_BASE];
	d->lbo_is_address = value[FIELD_LBO_MODE];
	while (swizzle < CPTX_SWIZZLE_COUNT && f->code[swizzle] != (int)value[FIELD_SWIZZLE])
		swizzle++;
	d->swizzle = swizzle < CPTX_SWIZZLE_COUNT ? (enum cptx_swizzle)swizzle : CPTX_SWIZZLE_NONE;
	RULE(swizzle < CPTX_SWIZZLE_COUNT, "%s descriptor: bits %u to %u are %u; the swizzles are %s", f->name, s->low, s->high,
	     (unsigned)value[FIELD_SWIZZLE], s->about);
	return check_bits(f, word, err) && check(d, err);
}

/* ---- members by name ---- */

bool layout_number(const char *what, const char *value, uint64_t most, uint32_t *v, cptx_error *err)
{
	uint64_t n = 0;
	unsigned base = 10;
	const char *p = value;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		base = 16, p += 2;
	bool ok = *p != 0;
	for (; *p && ok; p++) {
		unsigned digit = *p >= '0' && *p <= '9'   ? (unsigned)(*p - '0')
		                 : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
		                 : *p >= 'A' && *p <= 'F' ? (unsigned)(*p - 'A') + 10
		                                          : 99;
		n = n * base + digit;
		ok = digit < base && n <= most;
	}
	RULE(ok, "%s=%s: a number from 0 to %llu is needed", what, value, (unsigned long long)most);
	*v = (uint32_t)n;
	return true;
}

bool layout_flag(const char *what, const char *value, bool *v, cptx_error *err)
{
	*v = !strcmp(value, "yes") || !strcmp(value, "1");
	RULE(*v || !strcmp(value, "no") || !strcmp(value, "0"), "%s=%s: yes or no is needed", what, value);
	return true;
}

bool cptx_smem_desc_set(cptx_smem_desc *d, const char *name, const char *value, cptx_error *err)
{
	cptx_desc_field f = { .name = "" };
	uint32_t v = 0;

	if (!IS_GIVEN(d, "descriptor", NOWHERE, err) || !IS_GIVEN(name, "name", NOWHERE, err) ||
	    !IS_GIVEN(value, "value", NOWHERE, err))
		return false;
	for (size_t i = 0; cptx_smem_desc_field(d->arch, i, &f) && strcmp(f.name, name) != 0;)
		i++;
	RULE(*f.name && !strcmp(f.name, name) && strcmp(name, "version") != 0,
	     "there is no field '%s'; there are start, lbo, sbo, base_offset, swizzle%s", name,
	     d->arch == CPTX_DESC_TCGEN05 ? " and lbo_is_address" : "");
	if (!strcmp(name, "swizzle")) {
		char names[128] = "";
		for (unsigned i = 0; i < CPTX_SWIZZLE_COUNT; i++)
			strcat(strcat(names, " "), swizzles[i].name);
		RULE(cptx_swizzle_find(value) != CPTX_SWIZZLE_COUNT, "swizzle=%s: there is no such swizzle; there are%s", value,
		     names);
		d->swizzle = cptx_swizzle_find(value);
		return true;
	}
	if (!strcmp(name, "lbo_is_address"))
		return layout_flag(name, value, &d->lbo_is_address, err);
	if (!layout_number(name, value, UINT32_MAX, &v, err))
		return false;
	if (!strcmp(name, "base_offset"))
		d->base_offset = (uint8_t)MIN(v, 255u);
	else
		*(!strcmp(name, "start") ? &d->start : !strcmp(name, "lbo") ? &d->lbo : &d->sbo) = v;
	return true;
}

/* ---- addresses ---- */

/*
 * Elements are kept in chunks of 16 bytes along the contiguous dimension.  The hardware adds start, chunk and strides and
 * swizzles the sum: the pattern belongs to addresses, shifted by base_offset rows of 128 bytes where it does not begin at
 * its repeat.
 */
cptx_smem_place cptx_smem_desc_at(const cptx_smem_desc *d, cptx_smem_elem e, uint32_t row, uint32_t k)
{
	if (!d || !e.bits || e.bits > 128 || (unsigned)d->swizzle >= CPTX_SWIZZLE_COUNT)
		return (cptx_smem_place){ UINT32_MAX, 0 };
	uint32_t per_chunk = e.padded ? 16 : 128u / e.bits, along = e.mn_major ? row : k, across = e.mn_major ? k : row;
	uint32_t chunk = along / per_chunk, bit = along % per_chunk * e.bits, at = d->start;
	uint32_t span = swizzles[d->swizzle].span;
	uint32_t group = d->swizzle == CPTX_SWIZZLE_128B_ATOM_32B ? 4 : 8, groups = across / group, chunks = span / 16;

	if (d->lbo_is_address && d->start % 128 + chunk * 16 >= 128)
		at = d->lbo + d->start % 128 - 128;
	at += across % group * span;
	if (!d->swizzle)
		at += e.mn_major ? groups * d->lbo + chunk * d->sbo : groups * d->sbo + chunk * d->lbo;
	else if (e.mn_major)
		at += groups * d->sbo + chunk / chunks * d->lbo + chunk % chunks * 16;
	else
		at += groups * d->sbo + chunk * 16;
	at ^= swizzle_bits(d->swizzle, at - ((uint32_t)d->base_offset << 7));
	return (cptx_smem_place){ (at + bit / 8) % ADDRESS_END, bit % 8 };
}
