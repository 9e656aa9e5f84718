/* SPDX-License-Identifier: MIT */
/* Tensor cores with memory of their own rules: wgmma, and tcgen05 from an allocation to its end. */
#include "fuzz_kernel.h"
#include "wgmma_forms.h"

#include <cptx/layout.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned op_of(const char *name)
{
	unsigned i = 0;

	while (i < arch_nop && strcmp(arch_ops[i].name, name) != 0)
		i++;
	return i;
}

/* Any spelling of a wgmma instruction; false: it was none. */
static bool any_spelling(fuzz_kernel *k, const char *name, char opcode[OPCODE])
{
	const arch_op *op = &arch_ops[op_of(name)];
	unsigned number = op->form + roll(&k->d, op->nform), n;
	spelling *all = spell_all(number, 8, &n);
	outcome o = { .ok = false };

	if (n) {
		spelling s = all[roll(&k->d, n)];
		trial t = trial_of(&s);
		trial_build(&t, BY_TEXT, cptx_target_find("sm_90a"), &o);
		spell(&s, opcode);
	}
	free(all);
	return o.ok;
}

/* ---- wgmma ---- */

static void put_wgmma(fuzz_kernel *k, fuzz_piece *p, const wg_form *w)
{
	uint64_t da, db;
	char call[8192];
	form_text t = { .p = call, .cap = sizeof call };

	if (!cptx_smem_desc_encode(&w->da, &da, NULL) || !cptx_smem_desc_encode(&w->db, &db, NULL))
		return;
	if (fuzz_wrong(k))
		da ^= UINT64_C(1) << roll(&k->d, 64);
	if (fuzz_wrong(k))
		db = fuzz_wide(&k->d);
	fuzz_put(p, "\tadd.u64 %%da, %%o, 0x%llx;\n\tadd.u64 %%db, %%o, 0x%llx;\n", (unsigned long long)da,
	         (unsigned long long)db);
	fuzz_put(p, "\tsetp.%s.u32 %%keep, %%k1, 0;\n", w->keep ? "ne" : "eq");
	if (!fuzz_wrong(k))
		fuzz_put(p, "\twgmma.fence.sync.aligned;\n");
	wg_put_call(&t, w);
	fuzz_put(p, "\t%s", call);
	if (roll(&k->d, 4))
		fuzz_put(p, "\twgmma.commit_group.sync.aligned;\n");
	if (roll(&k->d, 3))
		fuzz_put(p, "\twgmma.wait_group.sync.aligned %u;\n", roll(&k->d, 4) ? 0 : roll(&k->d, 8));
}

void fuzz_wgmma(fuzz_kernel *k)
{
	static const char *const names[] = { "wgmma_mma_async", "wgmma_mma_async", "wgmma_mma_async_sp", "wgmma_mma_async_b1" };
	char opcode[OPCODE];
	wg_form w;

	if ((k->cc != 90 && !fuzz_wrong(k)) || (k->threads % 128 && !fuzz_wrong(k)))
		return;
	for (unsigned tries = 0;; tries++) {
		if (tries == 50)
			return;
		if (any_spelling(k, names[roll(&k->d, ARRAY_LEN(names))], opcode) && wg_parse(&w, opcode, &k->d.state) &&
		    w.f.n <= 128)
			break;
	}
	fuzz_piece *p = fuzz_piece_new(k, "wgmma");
	if (!p)
		return;
	fuzz_put(p,
	         "\t.reg .%s %%d<128>;\n\t.reg .b32 %%a<4>, %%meta, %%x;\n\t.reg .b64 %%da, %%db, %%o;\n\t.reg .pred %%keep;\n",
	         form_reg_type(w.f.d));
	fuzz_put(p, "\tshr.u32 %%x, %%k1, 4;\n\tcvt.u64.u32 %%o, %%x;\n\tmov.b32 %%meta, 0x44444444;\n");
	for (unsigned i = 0; i < 4; i++)
		fuzz_put(p, "\tmov.b32 %%a%u, %%k0;\n", i);
	for (unsigned i = 0; i < w.f.fd.regs; i++)
		fuzz_put(p, "\tmov.b32 %%d%u, 0;\n", i);
	fuzz_put(p, "\tfence.proxy.async;\n\tbar.sync 0;\n");
	put_wgmma(k, p, &w);
	for (unsigned again = roll(&k->d, 3); again; again--)
		put_wgmma(k, p, &w);
	if (!fuzz_wrong(k))
		fuzz_put(p, "\twgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n");
	fuzz_put(p, "\tst.global.b32 [in_global], %%d0;\n");
}

/* ---- tcgen05: descriptors ---- */

typedef struct mma {
	cptx_insn_desc d;
	uint32_t word;
	uint64_t da, db;
	unsigned k, per_b;
	bool a_tmem;
} mma;

static enum cptx_type one_of(dice *d, const enum cptx_type *of, unsigned n) { return of[roll(d, n)]; }

static void choose_types(cptx_insn_desc *m, dice *d)
{
	static const enum cptx_type halves[] = { CPTX_F16, CPTX_BF16 }, bytes[] = { CPTX_S8, CPTX_U8 },
								small[] = { CPTX_E4M3, CPTX_E5M2, CPTX_E2M3, CPTX_E3M2, CPTX_E2M1 };

	m->d = CPTX_F32;
	m->a = m->b = CPTX_E2M1;
	switch (m->kind) {
	case CPTX_TCGEN05_F16:
		m->d = roll(d, 4) ? CPTX_F32 : CPTX_F16;
		m->a = m->b = m->d == CPTX_F16 ? CPTX_F16 : one_of(d, halves, 2);
		break;
	case CPTX_TCGEN05_TF32: m->a = m->b = CPTX_TF32; break;
	case CPTX_TCGEN05_I8: m->a = one_of(d, bytes, 2), m->b = one_of(d, bytes, 2), m->d = CPTX_S32; break;
	case CPTX_TCGEN05_F8F6F4:
	case CPTX_TCGEN05_MXF8F6F4:
		m->a = one_of(d, small, 5), m->b = one_of(d, small, 5);
		m->d = m->kind == CPTX_TCGEN05_F8F6F4 && !roll(d, 4) ? CPTX_F16 : CPTX_F32;
		break;
	default: break;
	}
}

static bool is_scaled(const cptx_insn_desc *m)
{
	return m->kind == CPTX_TCGEN05_MXF8F6F4 || m->kind == CPTX_TCGEN05_MXF4 || m->kind == CPTX_TCGEN05_MXF4NVF4;
}

/* Where rows x k elements lie from `start` on; false: no such layout, or not within the bytes. */
static bool describe(dice *d, const cptx_insn_desc *m, bool is_b, unsigned rows, unsigned k, uint32_t start, uint32_t bytes,
                     uint64_t *word)
{
	enum cptx_type type = is_b ? m->b : m->a;
	unsigned bits = type == CPTX_E2M1 ? 4 : type == CPTX_E2M3 || type == CPTX_E3M2 ? 6 : (unsigned)cptx_type_bits(type);
	bool mn = is_b ? m->b_mn_major : m->a_mn_major;
	cptx_smem_elem e = { .bits = (uint8_t)bits,
		                 .mn_major = mn,
		                 .padded = bits < 8 && m->kind != CPTX_TCGEN05_MXF4 && m->kind != CPTX_TCGEN05_MXF4NVF4 };
	unsigned per = e.padded ? 16 : 128u / bits;
	cptx_smem_desc s = { .arch = CPTX_DESC_TCGEN05, .swizzle = (enum cptx_swizzle)roll(d, 4) };
	unsigned span = cptx_swizzle_get(s.swizzle)->span;

	if (mn && bits == 32)
		s.swizzle = CPTX_SWIZZLE_128B_ATOM_32B, s.sbo = 512, s.lbo = 512 * (k / 4), span = 128;
	else if (mn && s.swizzle)
		s.sbo = 8 * span, s.lbo = 8 * span * (k / 8);
	else if (mn)
		s.sbo = 128, s.lbo = 128 * (rows / per);
	else if (s.swizzle)
		s.sbo = 8 * span;
	else
		s.lbo = 128, s.sbo = 128 * (k / per);
	if (mn ? s.swizzle && rows / per * 16 % span : s.swizzle && k / per * 16 > span)
		return false;
	for (unsigned i = 0; i < 4; i++)
		if (cptx_smem_desc_at(&s, e, i & 1 ? rows - 1 : 0, i & 2 ? k - 1 : 0).byte + 128u > bytes)
			return false;
	s.start = start;
	return cptx_smem_desc_encode(&s, word, NULL);
}

static bool choose_mma(fuzz_kernel *k, unsigned ctas, mma *out)
{
	static const uint16_t rows[] = { 32, 64, 128, 128, 256 };
	dice *d = &k->d;

	*out = (mma){ .k = 0 };
	cptx_insn_desc *m = &out->d;
	m->kind = (enum cptx_tcgen05_kind)roll(d, CPTX_TCGEN05_KINDS);
	if (m->kind == CPTX_TCGEN05_I8 && k->cc == 103)
		return false;
	choose_types(m, d);
	m->ctas = (uint8_t)ctas;
	m->ws = ctas == 1 && !is_scaled(m) && !roll(d, 4);
	m->sparse = !roll(d, 3);
	m->m = rows[roll(d, 5)];
	m->n = (uint16_t)(m->ws ? 64u << roll(d, 2) : 8 + roll(d, 16) * 8);
	m->a_mn_major = !roll(d, 4), m->b_mn_major = !roll(d, 4);
	m->a_negated = m->kind != CPTX_TCGEN05_I8 && !roll(d, 4);
	if (is_scaled(m)) {
		m->scale = m->kind == CPTX_TCGEN05_MXF4NVF4 && roll(d, 2) ? CPTX_UE4M3 : CPTX_UE8M0;
		m->k96 = k->cc == 103 && m->kind != CPTX_TCGEN05_MXF8F6F4 && !m->sparse && !roll(d, 3);
	}
	out->a_tmem = !roll(d, 3);
	if (out->a_tmem)
		m->a_mn_major = false;
	if (!cptx_insn_desc_encode(m, &out->word, NULL))
		return false;
	out->k = cptx_insn_desc_k(m);
	unsigned ka = m->sparse ? out->k / 2 : out->k;
	return describe(d, m, false, m->m / ctas, ka, 0, 16384, &out->da) &&
	       describe(d, m, true, m->n / ctas, out->k, 16384, FUZZ_SHARED - 16384, &out->db);
}

/* ---- tcgen05: what is done between allocation and end ---- */

static void put_ordered(fuzz_kernel *k, fuzz_piece *p, bool before)
{
	if (!fuzz_wrong(k))
		fuzz_put(p, before ? "\ttcgen05.fence::before_thread_sync;\n\tbar.sync 0;\n\ttcgen05.fence::after_thread_sync;\n"
		                   : "\ttcgen05.fence::after_thread_sync;\n");
}

static void put_leader(fuzz_piece *p, unsigned number) { fuzz_put(p, "\t@!%%lead bra BEHIND%u;\n", number); }

/* Commits what the leader has begun, and waits for it. */
static void put_commit(fuzz_kernel *k, fuzz_piece *p, unsigned ctas, unsigned number)
{
	if (ctas == 2)
		fuzz_put(
			p, "\ttcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [mb], %%both;\n");
	else
		fuzz_put(p, "\ttcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [mb];\n");
	fuzz_put(p, "BEHIND%u:\n", number);
	if (fuzz_wrong(k))
		return;
	fuzz_put(p,
	         "WAIT%u:\n\tmbarrier.try_wait.parity.shared::cta.b64 %%done, [mb], %%phase;\n\t@!%%done bra WAIT%u;\n\txor.b32 "
	         "%%phase, %%phase, 1;\n",
	         number, number);
	put_ordered(k, p, false);
}

static const char *column(fuzz_kernel *k, char to[32], unsigned columns, unsigned most)
{
	if (fuzz_wrong(k))
		snprintf(to, 32, "%%t+%u", (unsigned)fuzz_wide(&k->d) & 0xffffff);
	else
		snprintf(to, 32, "%%t+%u", most < columns ? roll(&k->d, columns - most + 1) : 0);
	return to;
}

static void put_vector(fuzz_piece *p, unsigned n)
{
	fuzz_put(p, "{");
	for (unsigned i = 0; i < n; i++)
		fuzz_put(p, "%s%%v%u", i ? ", " : "", i);
	fuzz_put(p, "}");
}

/* A load or store of a shape; the columns that it touches are the most of any shape. */
static void put_move(fuzz_kernel *k, fuzz_piece *p, unsigned columns)
{
	static const struct {
		const char *name;
		unsigned words, columns;
	} shapes[] = { { "32x32b", 1, 1 }, { "16x64b", 1, 2 }, { "16x128b", 2, 4 }, { "16x256b", 4, 8 }, { "16x32bx2", 1, 1 } };
	unsigned s = roll(&k->d, 5), num = 1u << roll(&k->d, 8), split = s == 4 ? roll(&k->d, 16) : 0;
	bool load = roll(&k->d, 2), red = load && k->cc == 103 && num > 1 && (s == 0 || s == 4) && roll(&k->d, 2);
	bool packed = !red && !roll(&k->d, 4);
	char where[32], more[16] = "";

	while (num * shapes[s].words > 128 || num * shapes[s].columns * 2 + split > columns)
		num /= 2;
	num += !num;
	if (num == 1)
		red = false;
	column(k, where, columns, num * shapes[s].columns * 2 + split);
	if (s == 4)
		snprintf(more, sizeof more, ", %u", split);
	if (load) {
		fuzz_put(p, "\ttcgen05.ld%s.sync.aligned.%s.x%u%s%s ", red ? ".red" : "", shapes[s].name, num,
		         red ? roll(&k->d, 2) ? ".min" : ".max" : "",
		         red      ? ".u32"
		         : packed ? ".pack::16b.b32"
		                  : ".b32");
		put_vector(p, num * shapes[s].words);
		fuzz_put(p, "%s, [%s]%s;\n", red ? ", %x" : "", where + 0, more);
	} else {
		fuzz_put(p, "\ttcgen05.st.sync.aligned.%s.x%u%s.b32 [%s]%s, ", shapes[s].name, num, packed ? ".unpack::16b" : "",
		         where, more);
		put_vector(p, num * shapes[s].words);
		fuzz_put(p, ";\n");
	}
	if (!fuzz_wrong(k))
		fuzz_put(p, "\ttcgen05.wait::%s.sync.aligned;\n", load ? "ld" : "st");
	if (load)
		fuzz_put(p, "\tst.global.b32 [in_global+512], %%v0;\n");
}

static void put_cp(fuzz_kernel *k, fuzz_piece *p, unsigned columns, unsigned ctas, unsigned number)
{
	static const char *const shapes[] = {
		"128x256b", "4x256b", "128x128b", "64x128b.warpx2::02_13", "64x128b.warpx2::01_23", "32x128b.warpx4"
	};
	static const char *const packed[] = { "", "", ".b8x16.b6x16_p32", ".b8x16.b4x16_p64" };
	cptx_smem_desc s = { .arch = CPTX_DESC_TCGEN05, .swizzle = (enum cptx_swizzle)roll(&k->d, 4), .lbo = 128, .sbo = 256 };
	uint64_t word;

	if (s.swizzle)
		s.lbo = 0, s.sbo = 8 * cptx_swizzle_get(s.swizzle)->span;
	if (!cptx_smem_desc_encode(&s, &word, NULL))
		return;
	if (fuzz_wrong(k))
		word ^= UINT64_C(1) << roll(&k->d, 64);
	put_ordered(k, p, true);
	put_leader(p, number);
	const char *shape = shapes[roll(&k->d, ARRAY_LEN(shapes))], *how = packed[roll(&k->d, ARRAY_LEN(packed))];
	fuzz_put(p, "\tadd.u64 %%db, %%o, 0x%llx;\n", (unsigned long long)word);
	fuzz_put(p, "\ttcgen05.cp.cta_group::%u.%s%s [%%base+%u], %%db;\n", ctas, shape, how,
	         columns > 32 ? roll(&k->d, columns / 32) * 16 : 0);
	put_commit(k, p, ctas, number);
}

static void put_shift(fuzz_kernel *k, fuzz_piece *p, unsigned columns, unsigned ctas, unsigned number)
{
	put_ordered(k, p, true);
	put_leader(p, number);
	unsigned step = roll(&k->d, 8) ? 8 : 1;
	fuzz_put(p, "\ttcgen05.shift.cta_group::%u.down [%%base+%u];\n", ctas, roll(&k->d, columns / 8) * step);
	put_commit(k, p, ctas, number);
}

/* Where an operand is in tensor memory, as an address; of a hostile kernel anywhere at times. */
static void put_tmem(fuzz_kernel *k, fuzz_piece *p, unsigned at)
{
	if (fuzz_wrong(k))
		fuzz_put(p, "[%%base+%u]", (unsigned)fuzz_any(&k->d));
	else
		fuzz_put(p, "[%%base+%u]", at);
}

static const char *scaled_by(fuzz_kernel *k, const cptx_insn_desc *d)
{
	return !is_scaled(d)                              ? ""
	       : d->kind != CPTX_TCGEN05_MXF4NVF4         ? ".block_scale"
	       : d->scale == CPTX_UE4M3 || roll(&k->d, 2) ? ".block_scale.block16"
	                                                  : ".block_scale.block32";
}

/* Accumulators from column 0 on, then A, factors and metadata: it takes all 512 columns. */
static void put_mma(fuzz_kernel *k, fuzz_piece *p, unsigned ctas, unsigned number)
{
	static const char *const collectors[] = { "", "", ".collector::a::fill", ".collector::a::discard" };
	mma m;
	unsigned tries = 0;

	while (!choose_mma(k, ctas, &m))
		if (++tries == 200)
			return;
	bool masked = !m.d.ws && !is_scaled(&m.d) && !roll(&k->d, 4);
	if (fuzz_wrong(k))
		m.word ^= 1u << roll(&k->d, 32);
	if (fuzz_wrong(k))
		m.da ^= UINT64_C(1) << roll(&k->d, 64);
	put_ordered(k, p, true);
	put_leader(p, number);
	fuzz_put(p, "\tadd.u64 %%da, %%o, 0x%llx;\n\tadd.u64 %%db, %%o, 0x%llx;\n\tmov.u32 %%x, 0x%x;\n",
	         (unsigned long long)m.da, (unsigned long long)m.db, m.word);
	fuzz_put(p, "\tsetp.%s.u32 %%done, %%k0, %%k0;\n", roll(&k->d, 2) ? "eq" : "ne");
	fuzz_put(p, "\tmov.b32 %%m, 0x%x;\n", (unsigned)fuzz_wide(&k->d));
	const char *scaled = scaled_by(k, &m.d), *collector = m.d.ws ? "" : collectors[roll(&k->d, 4)];
	fuzz_put(p, "\ttcgen05.mma%s%s.cta_group::%u.kind::%s%s%s ", m.d.ws ? ".ws" : "", m.d.sparse ? ".sp" : "", ctas,
	         cptx_tcgen05_kind_name(m.d.kind), scaled, collector);
	put_tmem(k, p, 0);
	fuzz_put(p, ", ");
	if (m.a_tmem)
		put_tmem(k, p, 256);
	fuzz_put(p, m.a_tmem ? ", %%db" : "%%da, %%db");
	if (m.d.sparse) {
		fuzz_put(p, ", ");
		put_tmem(k, p, 352);
	}
	fuzz_put(p, ", %%x");
	if (masked)
		fuzz_put(p, ctas == 2 ? ", {%%m, %%m, %%m, %%m, %%m, %%m, %%m, %%m}" : ", {%%m, %%m, %%m, %%m}");
	for (unsigned i = 0; is_scaled(&m.d) && i < 2; i++) {
		fuzz_put(p, ", ");
		put_tmem(k, p, 288 + i * 32);
	}
	fuzz_put(p, ", %%done%s;\n", m.d.ws && !roll(&k->d, 3) ? ", %zero" : "");
	put_commit(k, p, ctas, number);
}

static void put_fill(fuzz_piece *p, unsigned columns)
{
	unsigned step = columns < 128 ? columns : 128;

	fuzz_put(p, "\tmov.u32 %%x, %%t;\n\tmov.u32 %%m, 0;\nFILL:\n\ttcgen05.st.sync.aligned.32x32b.x%u.b32 [%%x], ", step);
	put_vector(p, step);
	fuzz_put(p,
	         ";\n\tadd.u32 %%x, %%x, %u;\n\tadd.u32 %%m, %%m, %u;\n\tsetp.lt.u32 %%done, %%m, %u;\n\t@%%done bra FILL;\n"
	         "\ttcgen05.wait::st.sync.aligned;\n",
	         step, step, columns);
}

static void put_middle(fuzz_kernel *k, fuzz_piece *p, unsigned columns, unsigned ctas)
{
	for (unsigned n = 1 + roll(&k->d, 5), i = 0; i < n; i++)
		switch (roll(&k->d, 8)) {
		case 0:
		case 1: put_cp(k, p, columns, ctas, i); break;
		case 2: put_shift(k, p, columns, ctas, i); break;
		case 3:
		case 4:
		case 5:
			if (columns == 512) {
				put_mma(k, p, ctas, i);
				break;
			}
			/* fallthrough */
		default: put_move(k, p, columns); break;
		}
}

static void put_meeting(fuzz_piece *p, bool cluster)
{
	fuzz_put(p, cluster ? "\tbarrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;\n"
	                    : "\tbar.sync 0;\n");
}

/* Allocates, and sets %base, %t (the lanes of the warp), %o (in_shared in a descriptor), %lead (who begins operations),
 * %both. */
static void put_allocation(fuzz_kernel *k, fuzz_piece *p, unsigned columns, unsigned ctas)
{
	uint64_t skip = roll(&k->d, 8), use = roll(&k->d, 8), zero = UINT64_C(1) << 39 | skip << 40 | use << 48;

	fuzz_put(p, "\t.reg .b32 %%v<128>, %%t, %%base, %%x, %%m, %%phase;\n\t.reg .b64 %%da, %%db, %%o, %%zero;\n\t.reg .b16 "
	            "%%both;\n");
	fuzz_put(p, "\t.reg .pred %%lead, %%done;\n\t.shared .align 8 .b64 mb;\n\t.shared .align 4 .b32 slot;\n");
	for (unsigned i = 0; i < 128; i++) /* the last ones become metadata: elements 0 and 1 of each four */
		fuzz_put(p, "\tmov.b32 %%v%u, %s;\n", i, i >= 96 ? "0x44444444" : roll(&k->d, 2) ? "%k0" : "0x38383838");
	fuzz_put(p, "\t@%%kp0 mbarrier.init.shared::cta.b64 [mb], 1;\n\tfence.mbarrier_init.release.cluster;\n");
	fuzz_put(p, "\t@!%%kp1 bra ALLOCATED;\n\tmov.u32 %%x, %u;\n", columns);
	fuzz_put(p,
	         "\ttcgen05.alloc.cta_group::%u.sync.aligned.shared::cta.b32 [slot], %%x;\nALLOCATED:\n\tfence.proxy.async;\n",
	         ctas);
	if (!roll(&k->d, 3))
		fuzz_put(p, "\t@!%%kp1 bra KEPT;\n\ttcgen05.relinquish_alloc_permit.cta_group::%u.sync.aligned;\nKEPT:\n", ctas);
	put_meeting(p, ctas == 2);
	fuzz_put(p, "\tld.shared.u32 %%base, [slot];\n\tand.b32 %%x, %%k0, 0x60;\n\tshl.b32 %%x, %%x, 16;\n\tadd.u32 %%t, %%x, "
	            "%%base;\n");
	fuzz_put(p, "\tshr.u32 %%x, %%k1, 4;\n\tcvt.u64.u32 %%o, %%x;\n\tmov.u32 %%phase, 0;\n\tmov.u64 %%zero, 0x%llx;\n",
	         (unsigned long long)(roll(&k->d, 2) ? 0 : zero));
	fuzz_put(p, "\tand.b32 %%x, %%k2, %u;\n\tadd.u32 %%x, %%x, %%k0;\n\tsetp.eq.u32 %%lead, %%x, 0;\n", ctas - 1);
	fuzz_put(p, "\tand.b32 %%x, %%k2, 14;\n\tmov.b32 %%m, 3;\n\tshl.b32 %%m, %%m, %%x;\n\tcvt.u16.u32 %%both, %%m;\n");
}

void fuzz_tcgen05(fuzz_kernel *k)
{
	unsigned ctas = k->cluster >= 2 && roll(&k->d, 2) ? 2 : 1, columns = roll(&k->d, 3) ? 512 : 32u << roll(&k->d, 5);

	if ((k->cc != 100 && k->cc != 103 && !fuzz_wrong(k)) || k->threads % 32 || (k->tmem && !fuzz_wrong(k)))
		return;
	fuzz_piece *p = fuzz_piece_new(k, "tcgen05");
	if (!p)
		return;
	k->tmem = true;
	if (fuzz_wrong(k))
		columns = roll(&k->d, 600);
	put_allocation(k, p, columns, ctas);
	if (columns >= 32 && columns <= 512 && roll(&k->d, 4))
		put_fill(p, columns);
	put_middle(k, p, columns < 32 ? 32 : columns, ctas);
	fuzz_put(p, "\ttcgen05.fence::before_thread_sync;\n");
	put_meeting(p, ctas == 2);
	fuzz_put(p, "\ttcgen05.fence::after_thread_sync;\n");
	if (!fuzz_wrong(k))
		fuzz_put(p, "\t@!%%kp1 bra FREED;\n\ttcgen05.dealloc.cta_group::%u.sync.aligned.b32 %%base, %u;\nFREED:\n", ctas,
		         columns);
}
