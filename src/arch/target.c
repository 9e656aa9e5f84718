/* SPDX-License-Identifier: MIT */
#include "arch/arch.h"

const cptx_target arch_targets[] = {
#define TARGET(name, number, suffix, family, ptx, static_smem, smem_sm, smem_cta, threads, ctas, cluster, smem_unit,        \
               smem_reserved, cc, about)                                                                                    \
	{ name,    about,    number,  suffix, family,  ptx,       cc,           static_smem,                                    \
	  smem_sm, smem_cta, threads, ctas,   cluster, smem_unit, smem_reserved },
#include "arch/target.def"
#undef TARGET
};
/* Old targets stand behind those that cptx generates code for. */
enum {
#define TARGET(name, number, suffix, family, ptx, static_smem, smem_sm, smem_cta, threads, ctas, cluster, smem_unit,        \
               smem_reserved, cc, about)                                                                                    \
	+1
#define OLD_TARGET(name, number, ptx)
	GENERATED = 0
#include "arch/target.def"
#undef TARGET
};
const uint8_t arch_ntarget = GENERATED;
_Static_assert(ARRAY_LEN(arch_targets) <= ARCH_TARGETS, "ARCH_TARGETS is too small for target.def");

const arch_need arch_needs[] = {
#define DIRECTIVE(id, name, version, number, example) { name, version, number },
#include "arch/directive.def"
#undef DIRECTIVE
};

const cptx_target *cptx_target_find(const char *name)
{
	const cptx_target *t = arch_target_any(name);
	return t && t - arch_targets < GENERATED ? t : NULL;
}

const cptx_target *arch_target_any(const char *name)
{
	for (size_t i = 0; name && i < ARRAY_LEN(arch_targets); i++)
		if (!strcmp(arch_targets[i].name, name))
			return &arch_targets[i];
	return NULL;
}

const cptx_target *cptx_target_at(size_t i) { return i < GENERATED ? &arch_targets[i] : NULL; }

bool arch_no_target(const char *name, cptx_site at, cptx_error *err)
{
	static const char digits[] = "0123456789";
	const char *near = NULL;
	unsigned best = 4; /* near are names at distance 1, and names with the same number at a distance below 4 */

	if (!name)
		return error_set(err, CPTX_E_TARGET, at,
		                 "no target is named, and the module has none of its own: say one, \"sm_90a\"");
	for (size_t i = 0; cptx_target_at(i); i++) {
		const char *other = cptx_target_at(i)->name;
		unsigned d = text_distance(name, other);
		bool same = atoi(name + strcspn(name, digits)) == atoi(other + strcspn(other, digits));
		if ((d == 1 || same) &&
		    (d < best || (d == best && near && !strncmp(name, other, strlen(name)) && strncmp(name, near, strlen(name)))))
			best = d, near = other;
	}
	return error_set(err, CPTX_E_TARGET, at, "there is no target '%.64s'; %s%s%s`cptx arch` lists them", name,
	                 near ? "did you mean " : "", near ? near : "", near ? "? " : "");
}

const cptx_target *cptx_target_for_device(unsigned compute_capability)
{
	const cptx_target *best = NULL;

	for (size_t i = 0; i < GENERATED; i++) {
		const cptx_target *t = &arch_targets[i];
		bool exact = t->compute_capability == compute_capability;
		if (!exact && (t->suffix != ' ' || t->compute_capability > compute_capability))
			continue;
		/* The `a` target of the device itself, else the newest plain target that the device can run; sm_101 is an old name.
		 */
		bool better = !best || t->number > best->number || (t->number == best->number && t->suffix == 'a') ||
		              (t->number == best->number && t->suffix == best->suffix && t->ptx > best->ptx);
		if (better && !(best && best->suffix == 'a' && best->number >= t->number && t->suffix != 'a'))
			best = t;
	}
	return best;
}

/* The first of the plain targets if it and all behind it have the availability; else NULL. */
static const cptx_target *and_later(unsigned avail)
{
	const cptx_target *first = NULL;

	for (size_t i = 0; i < GENERATED && !first; i++)
		first = arch_avails[avail][i] && arch_targets[i].suffix == ' ' ? &arch_targets[i] : NULL;
	for (size_t i = 0; i < GENERATED && first; i++)
		if (!arch_avails[avail][i] != (arch_targets[i].number < first->number))
			return NULL;
	return first;
}

void arch_avail_targets(unsigned avail, buf *b)
{
	size_t start = b->n;
	const cptx_target *first = and_later(avail);

	if (first) {
		buf_printf(b, "%s and later", first->name);
		return;
	}
	for (size_t i = 0; i < GENERATED; i++) {
		const cptx_target *t = &arch_targets[i];
		if (!arch_avails[avail][i] || (t->number == 110 && t->ptx < 90)) /* messages do not offer old names */
			continue;
		if (b->n != start)
			buf_str(b, " ");
		buf_str(b, t->name);
	}
	if (b->n == start)
		buf_str(b, "none");
}

bool arch_is_version(unsigned version)
{
	static const unsigned char last[] = { 0, 5, 3, 2, 3, 1, 5, 8, 8, 5 }; /* the last minor version of each major version */
	return version >= 10 && version / 10 < ARRAY_LEN(last) && version % 10 <= last[version / 10];
}
