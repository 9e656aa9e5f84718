/* SPDX-License-Identifier: MIT */
/* Asynchronous copies and what they complete: tensor and bulk copies, cp.async, mbarriers, accesses to other CTAs. */
#include "fuzz_kernel.h"
#include "tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An mbarrier of one arrival; of a cluster, all CTAs know that it is there. */
static void put_mbarrier(fuzz_kernel *k, fuzz_piece *p, uint32_t count)
{
	fuzz_put(p, "\t.shared .align 8 .b64 mb;\n\t.reg .pred %%done;\n\t.reg .b32 %%to, %%from, %%size, %%turns;\n\t.reg .b64 "
	            "%%far, %%state;\n");
	fuzz_put(p, "\t@%%kp0 mbarrier.init.shared::cta.b64 [mb], %u;\n", count);
	if (k->cc >= 90)
		fuzz_put(p, "\tfence.mbarrier_init.release.cluster;\n\tfence.proxy.async;\n");
	fuzz_put(p, k->cluster > 1 ? "\tbarrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;\n" : "\tbar.sync 0;\n");
}

static void put_wait(fuzz_kernel *k, fuzz_piece *p)
{
	if (!fuzz_wrong(k))
		fuzz_put(p, "WAIT:\n\tmbarrier.%s.parity.shared::cta.b64 %%done, [mb], 0;\n\t@!%%done bra WAIT;\n",
		         k->cc >= 90 && roll(&k->d, 3) ? "try_wait" : "test_wait");
}

/* ---- tensor copies ---- */

static void declare_map(fuzz_kernel *k, fuzz_piece *p, const cptx_tensor_map_opt *o, unsigned number)
{
	uint64_t word[CPTX_TENSOR_MAP_BYTES / 8];
	cptx_tensor_map_opt m = *o;

	m.address = 0;
	cptx_tensor_map_pack(&m, (uint8_t *)word, NULL);
	if (fuzz_wrong(k)) {
		unsigned i = roll(&k->d, 16);
		word[i] ^= UINT64_C(1) << roll(&k->d, 64);
	}
	fuzz_declare(p, ".global .align 128 .u64 map%u[16] = {", number);
	for (unsigned i = 0; i < 16; i++)
		if (i == 2)
			fuzz_declare(p, ", in_global+%u", (unsigned)o->address);
		else
			fuzz_declare(p, "%s0x%llx", i ? ", " : "", (unsigned long long)word[i]);
	fuzz_declare(p, "};\n");
}

/* Where a copy is in its tensor, as operands: coordinates, and offsets of im2col with a comma in front. */
typedef struct place {
	char coords[100], offsets[100];
} place;

static place put_place(fuzz_kernel *k, fuzz_piece *p, const tensor_case *c)
{
	place at = { "", "" };
	char text[200], *out = at.coords, *next;
	unsigned number = 0;
	size_t n = 0;

	tensor_place(c, text, sizeof text);
	/* "{1, -2}, {3}": registers in place of numbers. */
	for (char *s = text; *s; s = next) {
		bool wrong = fuzz_wrong(k), second = out == at.offsets;
		long v = strtol(s, &next, 10);
		if (*s == ' ' || next == s) {
			next = s + 1;
			out[n++] = *s;
		} else {
			if (wrong)
				v = (long)roll(&k->d, 65536) - (second ? 0 : 32768);
			fuzz_put(p, second ? "\tmov.b16 %%h%u, %ld;\n" : "\tmov.b32 %%c%u, %ld;\n", number, v);
			n += (size_t)snprintf(out + n, sizeof at.coords - n, second ? "%%h%u" : "%%c%u", number++);
		}
		out[n] = 0;
		if (*s == '}')
			out = at.offsets, n = number = 0;
	}
	return at;
}

static void put_load(fuzz_kernel *k, fuzz_piece *p, const tensor_case *c, const place *at)
{
	bool cast = k->cluster > 1 && roll(&k->d, 2);
	uint32_t bytes = tensor_told(c);

	if (fuzz_wrong(k))
		bytes += (roll(&k->d, 9) - 4) * 16;
	fuzz_put(p, "\t@%%kp0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [mb], %u;\n", bytes);
	if (cast) {
		fuzz_put(p, "\tbarrier.cluster.arrive;\n\tbarrier.cluster.wait;\n\tsetp.eq.u32 %%one, %%k2, 0;\n\tand.pred %%one, "
		            "%%one, %%kp0;\n");
		fuzz_put(p, "\tmov.b16 %%h7, 0x%x;\n", fuzz_wrong(k) ? roll(&k->d, 65536) : (1u << k->cluster) - 1);
	} else {
		fuzz_put(p, "\tand.pred %%one, %%kp0, %%kp0;\n");
	}
	fuzz_put(p,
	         "\t@%%one cp.async.bulk.tensor.%ud.shared::%s.global.%s.mbarrier::complete_tx::bytes%s [%%to], [%%map, %s], "
	         "[mb]%s%s;\n",
	         c->map.rank, !cast && roll(&k->d, 2) ? "cta" : "cluster", c->mode, cast ? ".multicast::cluster" : "",
	         at->coords, at->offsets, cast ? ", %h7" : "");
	put_wait(k, p);
	fuzz_put(p, "\tld.shared.b32 %%from, [in_shared+%u];\n\tst.global.b32 [in_global+1024], %%from;\n", c->at);
}

static void put_store(fuzz_kernel *k, fuzz_piece *p, const tensor_case *c, const place *at)
{
	bool reduce = c->way == TENSOR_REDUCE;

	/* Each thread at times; what waits costs time by the square of what is under way in a cluster. */
	bool all = !roll(&k->d, 8) && k->threads * (k->cluster + 1) <= 256;
	fuzz_put(p, "\t%s cp.%sasync.bulk.tensor.%ud.global.shared::cta.%s%s%s.bulk_group [%%map, %s], [%%to];\n",
	         all ? "" : "@%kp0", reduce ? "reduce." : "", c->map.rank, reduce ? c->op : "", reduce ? "." : "", c->mode,
	         at->coords);
	fuzz_put(p, "\tcp.async.bulk.commit_group;\n");
	const char *read = roll(&k->d, 3) ? "" : ".read";
	if (!fuzz_wrong(k))
		fuzz_put(p, "\tcp.async.bulk.wait_group%s %u;\n", read, roll(&k->d, 5) ? 0 : roll(&k->d, 4));
}

static void put_replaced(fuzz_kernel *k, fuzz_piece *p)
{
	static const char *const fields[] = { "global_dim.global.b1024.b32 [%map], 0, 64",
		                                  "box_dim.global.b1024.b32 [%map], 0, 32",
		                                  "rank.global.b1024.b32 [%map], 1",
		                                  "swizzle_mode.global.b1024.b32 [%map], 2",
		                                  "elemtype.global.b1024.b32 [%map], 6",
		                                  "element_stride.global.b1024.b32 [%map], 0, 1",
		                                  "fill_mode.global.b1024.b32 [%map], 1",
		                                  "interleave_layout.global.b1024.b32 [%map], 0",
		                                  "global_stride.global.b1024.b64 [%map], 0, 256" };

	fuzz_put(p, "\t@%%kp0 tensormap.replace.tile.%s;\n", fields[roll(&k->d, ARRAY_LEN(fields))]);
	if (!fuzz_wrong(k))
		fuzz_put(
			p,
			"\tfence.proxy.tensormap::generic.release.gpu;\n\tfence.proxy.tensormap::generic.acquire.gpu [%%map], 128;\n");
}

void fuzz_tensor_copy(fuzz_kernel *k)
{
	static const enum tensor_way ways[] = { TENSOR_LOAD, TENSOR_LOAD, TENSOR_STORE, TENSOR_REDUCE };
	bool newer = k->cc == 100 || k->cc == 103, floats = !roll(&k->d, 3);
	tensor_case c;

	if (k->cc < 90)
		return;
	enum tensor_way way = ways[roll(&k->d, 4)];
	do
		c = way == TENSOR_REDUCE && floats ? tensor_random_float(&k->d.state, newer)
		                                   : tensor_random(&k->d.state, way, newer);
	while (c.size + c.map.address > FUZZ_GLOBAL);
	fuzz_piece *p = fuzz_piece_new(k, "tensor");
	if (!p)
		return;
	put_mbarrier(k, p, 1);
	declare_map(k, p, &c.map, k->npiece);
	fuzz_put(p,
	         "\t.reg .b32 %%c<8>;\n\t.reg .b16 %%h<8>;\n\t.reg .b64 %%map;\n\t.reg .pred %%one;\n\tmov.u64 %%map, "
	         "map%u;\n\tadd.u32 %%to, %%k1, %u;\n",
	         k->npiece, fuzz_wrong(k) ? roll(&k->d, 1u << (4 + roll(&k->d, 20))) : c.at);
	place at = put_place(k, p, &c);
	if (!roll(&k->d, 8))
		put_replaced(k, p);
	if (way == TENSOR_LOAD && !roll(&k->d, 6))
		fuzz_put(p, "\tcp.async.bulk.prefetch.tensor.%ud.L2.global.%s [%%map, %s]%s;\n", c.map.rank, c.mode, at.coords,
		         at.offsets);
	if (way == TENSOR_LOAD)
		put_load(k, p, &c, &at);
	else
		put_store(k, p, &c, &at);
}

/* ---- bulk copies ---- */

static uint32_t bulk_size(fuzz_kernel *k)
{
	uint32_t size = (1 + roll(&k->d, 1u << roll(&k->d, 9))) * 16;

	return fuzz_wrong(k) ? (uint32_t)fuzz_any(&k->d) : size;
}

static void put_bulk_out(fuzz_kernel *k, fuzz_piece *p, uint32_t size)
{
	static const char *const reductions[] = { "add.u32",       "add.s32",        "add.u64", "add.f32", "add.f64",
		                                      "add.noftz.f16", "add.noftz.bf16", "min.s32", "max.u64", "min.f16",
		                                      "max.bf16",      "inc.u32",        "dec.u32", "and.b32", "xor.b64" };

	switch (roll(&k->d, 4)) {
	case 0:
		if (k->cc >= 100) {
			fuzz_put(p,
			         "\t.reg .b16 %%mask;\n\tmov.b16 %%mask, 0x%x;\n\t@%%kp0 "
			         "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%%far], [%%to], %u, %%mask;\n",
			         roll(&k->d, 65536), size);
			break;
		}
		/* fallthrough */
	case 1: fuzz_put(p, "\t@%%kp0 cp.async.bulk.global.shared::cta.bulk_group [%%far], [%%to], %u;\n", size); break;
	default:
		fuzz_put(p, "\t@%%kp0 cp.reduce.async.bulk.global.shared::cta.bulk_group.%s [%%far], [%%to], %u;\n",
		         reductions[roll(&k->d, ARRAY_LEN(reductions))], size);
		break;
	}
	fuzz_put(p, "\tcp.async.bulk.commit_group;\n");
	if (!fuzz_wrong(k))
		fuzz_put(p, "\tcp.async.bulk.wait_group 0;\n");
}

void fuzz_bulk_copy(fuzz_kernel *k)
{
	static const char *const sums[] = { "add.u32", "min.s32", "max.u32", "inc.u32", "or.b32", "add.u64" };
	uint32_t size = bulk_size(k);
	fuzz_piece *p = k->cc >= 90 ? fuzz_piece_new(k, "bulk") : NULL;

	if (!p)
		return;
	put_mbarrier(k, p, 1);
	fuzz_put(p, "\tadd.u64 %%far, %%kd0, %u;\n", roll(&k->d, 64) * 16);
	fuzz_put(p, "\tadd.u32 %%to, %%k1, %u;\n", roll(&k->d, 64) * 16);
	fuzz_put(p, "\tadd.u32 %%from, %%k1, %u;\n", fuzz_wrong(k) ? roll(&k->d, 1 << 20) : 20480 + roll(&k->d, 64) * 16);
	if (roll(&k->d, 3) == 0) {
		put_bulk_out(k, p, size);
		return;
	}
	fuzz_put(p, "\t@%%kp0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [mb], %u;\n", size + (fuzz_wrong(k) ? 16 : 0));
	switch (roll(&k->d, 4)) {
	case 0: /* to shared memory of a neighbour, whose mbarrier counts */
		if (k->cluster > 1)
			fuzz_put(p, "\txor.b32 %%size, %%k2, 1;\n\tmapa.shared::cluster.u32 %%from, %%from, %%size;\n\tmov.u32 %%turns, "
			            "mb;\n\tmapa.shared::cluster.u32 %%turns, %%turns, %%size;\n"
			            "\tbarrier.cluster.arrive;\n\tbarrier.cluster.wait;\n");
		else
			fuzz_put(p, "\tmov.u32 %%turns, mb;\n");
		if (roll(&k->d, 2))
			fuzz_put(p,
			         "\t@%%kp0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%%from], [%%to], %u, "
			         "[%%turns];\n",
			         size);
		else
			fuzz_put(p,
			         "\t@%%kp0 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.%s [%%from], "
			         "[%%to], %u, [%%turns];\n",
			         sums[roll(&k->d, ARRAY_LEN(sums))], size);
		break;
	case 1:
		fuzz_put(p,
		         "\t.reg .b16 %%mask;\n\tmov.b16 %%mask, "
		         "0x%x;\n\tbarrier.cluster.arrive;\n\tbarrier.cluster.wait;\n\tsetp.eq.u32 %%done, %%k2, 0;\n\tand.pred "
		         "%%done, %%done, %%kp0;\n"
		         "\t@%%done cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%%to], "
		         "[%%far], %u, [mb], %%mask;\n",
		         fuzz_wrong(k) ? roll(&k->d, 65536) : (1u << (k->cluster ? k->cluster : 1)) - 1, size);
		break;
	default:
		fuzz_put(p, "\t@%%kp0 cp.async.bulk.shared::%s.global.mbarrier::complete_tx::bytes [%%to], [%%far], %u, [mb];\n",
		         roll(&k->d, 2) ? "cta" : "cluster", size);
		break;
	}
	put_wait(k, p);
	if (!roll(&k->d, 4))
		fuzz_put(p, "\tcp.async.bulk.prefetch.L2.global [%%far], %u;\n", size);
}

/* ---- cp.async ---- */

void fuzz_cp_async(fuzz_kernel *k)
{
	fuzz_piece *p = fuzz_piece_new(k, "cp_async");
	dice *d = &k->d;
	bool arrives = roll(d, 2);

	if (!p)
		return;
	put_mbarrier(k, p, k->threads);
	fuzz_put(p, "\tshl.b32 %%to, %%k0, 4;\n\tcvt.u64.u32 %%far, %%to;\n\tadd.u64 %%far, %%far, %%kd0;\n\tadd.u32 %%to, "
	            "%%to, %%k1;\n");
	for (unsigned n = 1 + roll(d, 4); n; n--) {
		unsigned bytes = 4u << roll(d, 3), at = roll(d, 16) * 16;
		if (fuzz_wrong(k))
			at = roll(d, 1u << 24);
		fuzz_put(p, "\tcp.async.%s.shared.global [%%to+%u], [%%far+%u], %u", bytes == 16 && roll(d, 2) ? "cg" : "ca", at, at,
		         bytes);
		if (!roll(d, 3))
			fuzz_put(p, ", %u", roll(d, bytes + 1));
		fuzz_put(p, ";\n");
		if (roll(d, 2))
			fuzz_put(p, "\tcp.async.commit_group;\n");
	}
	if (arrives) {
		bool counted = roll(d, 2);
		fuzz_put(p, "\tcp.async.mbarrier.arrive%s.shared.b64 [mb];\n", counted ? ".noinc" : "");
		if (!counted)
			fuzz_put(p, "\tmbarrier.arrive.shared.b64 %%state, [mb];\n");
		put_wait(k, p);
	} else {
		fuzz_put(p, roll(d, 2) ? "\tcp.async.wait_all;\n" : "\tcp.async.commit_group;\n\tcp.async.wait_group 0;\n");
	}
	if (fuzz_wrong(k))
		return;
	fuzz_put(p, "\tbar.sync 0;\n\tld.shared.b32 %%size, [%%to];\n\tst.global.b32 [%%far+8192], %%size;\n");
}

/* ---- mbarriers ---- */

void fuzz_mbarrier(fuzz_kernel *k)
{
	fuzz_piece *p = fuzz_piece_new(k, "mbarrier");
	dice *d = &k->d;
	unsigned turns = 1 + roll(d, 4), way = roll(d, k->cc >= 90 ? 5 : 3);

	if (!p)
		return;
	/* .noComplete must leave an arrival pending. */
	put_mbarrier(k, p, fuzz_wrong(k) ? 1 + roll(d, 1 << 20) : k->threads + (way == 1));
	fuzz_put(p, "\tmov.u32 %%turns, 0;\nTURN:\n");
	switch (way) {
	case 0: fuzz_put(p, "\tmbarrier.arrive.shared.b64 %%state, [mb];\n"); break;
	case 1:
		fuzz_put(p, "\tmbarrier.arrive.noComplete.shared.b64 %%state, [mb], %u;\n", fuzz_wrong(k) ? roll(d, 5) : 1);
		break;
	case 2: fuzz_put(p, "\tmbarrier.arrive_drop.shared.b64 %%state, [mb];\n"); break;
	case 3:
		fuzz_put(p,
		         "\tmbarrier.arrive.expect_tx.shared.b64 %%state, [mb], "
		         "16;\n\tmbarrier.complete_tx.relaxed.cta.shared::cta.b64 [mb], %u;\n",
		         fuzz_wrong(k) ? roll(d, 64) : 16);
		break;
	default:
		fuzz_put(
			p,
			"\tmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [mb], 32;\n\tmbarrier.complete_tx.relaxed.cta.shared::cta.b64 "
			"[mb], 32;\n\tmbarrier.arrive.release.cta.shared::cta.b64 %%state, [mb];\n");
		break;
	}
	if (way == 1)
		fuzz_put(p, "\tmbarrier.pending_count.b64 %%size, %%state;\n");
	else
		fuzz_put(p, "WAIT:\n\tmbarrier.test_wait.shared.b64 %%done, [mb], %%state;\n\t@!%%done bra WAIT;\n");
	if (way != 1 && way != 2)
		fuzz_put(p, "\tadd.u32 %%turns, %%turns, 1;\n\tsetp.lt.u32 %%done, %%turns, %u;\n\t@%%done bra TURN;\n", turns);
	if (!roll(d, 4))
		fuzz_put(p, "\tbar.sync 0;\n\t@%%kp0 mbarrier.inval.shared.b64 [mb];\n");
}

/* ---- other CTAs ---- */

void fuzz_remote(fuzz_kernel *k)
{
	static const char *const stores[] = {
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%to], %k0, [%turns]",
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%to], {%k0, %k1}, [%turns]",
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%to], {%k0, %k1, %k2, %k0}, [%turns]",
		"st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%to], %kd0, [%turns]",
		"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%to], %k0, [%turns]",
		"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.inc.u32 [%to], %k0, [%turns]",
		"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 [%to], %kd0, [%turns]"
	};
	static const unsigned bytes[] = { 4, 8, 16, 8, 4, 4, 8 };
	unsigned which = roll(&k->d, ARRAY_LEN(stores));
	fuzz_piece *p = k->cluster > 1 ? fuzz_piece_new(k, "remote") : NULL;

	if (!p)
		return;
	put_mbarrier(k, p, 1);
	fuzz_put(p, "\txor.b32 %%size, %%k2, %u;\n", fuzz_wrong(k) ? roll(&k->d, 64) : 1);
	fuzz_put(p,
	         "\tmov.u32 %%turns, mb;\n\tmapa.shared::cluster.u32 %%turns, %%turns, %%size;\n\tmapa.shared::cluster.u32 "
	         "%%from, %%k1, %%size;\n"
	         "\tshl.b32 %%to, %%k0, 4;\n\tadd.u32 %%to, %%to, %%from;\n\tld.shared::cluster.u32 %%size, [%%from+%u];\n",
	         fuzz_wrong(k) ? roll(&k->d, 1 << 20) : roll(&k->d, 1024) * 4);
	fuzz_put(p,
	         "\t@%%kp0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [mb], "
	         "%u;\n\tbarrier.cluster.arrive;\n\tbarrier.cluster.wait;\n",
	         bytes[which] * k->threads);
	fuzz_put(p, "\t%s;\n", stores[which]);
	put_wait(k, p);
	if (roll(&k->d, 2))
		fuzz_put(p, "\tatom.shared::cluster.add.u32 %%size, [%%from+16384], 1;\n\tmapa.u64 %%far, %%kd0, 0;\n");
	fuzz_put(p, "\tgetctarank.shared::cluster.u32 %%size, %%from;\n\tbarrier.cluster.arrive;\n\tbarrier.cluster.wait;\n");
}

/* ---- clusterlaunchcontrol ---- */

void fuzz_cancel(fuzz_kernel *k)
{
	fuzz_piece *p = k->cc >= 100 && k->cluster <= 1 ? fuzz_piece_new(k, "cancel") : NULL;

	if (!p)
		return;
	put_mbarrier(k, p, 1);
	fuzz_put(
		p, "\t.shared .align 16 .b8 answer[16];\n\t.reg .b128 %%answer;\n\tmov.u32 %%from, answer;\n\tmov.u32 %%turns, mb;\n"
		   "\t@%%kp0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [mb], 16;\n"
		   "\t@%%kp0 clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%%from], "
		   "[%%turns];\n");
	put_wait(k, p);
	fuzz_put(
		p,
		"\tld.shared.b128 %%answer, [%%from];\n\tclusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %%done, %%answer;\n"
		"\t@%%done clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %%size, %%answer;\n");
}
