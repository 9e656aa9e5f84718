/* SPDX-License-Identifier: MIT */
#include "fuzz_kernel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- text ---- */

static void put_more(form_text *t, const char *format, va_list ap)
{
	va_list again;

	va_copy(again, ap);
	size_t need = (size_t)vsnprintf(NULL, 0, format, again) + 1;
	va_end(again);
	if (t->n + need > t->cap) {
		t->cap = (t->n + need) * 2;
		t->p = realloc(t->p, t->cap);
		if (!t->p)
			abort();
	}
	t->n += (size_t)vsnprintf(t->p + t->n, need, format, ap);
}

void fuzz_put(fuzz_piece *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	put_more(&p->body, format, ap);
	va_end(ap);
}

void fuzz_declare(fuzz_piece *p, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	put_more(&p->decls, format, ap);
	va_end(ap);
}

static void put(form_text *t, const char *format, ...) CPTX_PRINTF_(2, 3);
static void put(form_text *t, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	put_more(t, format, ap);
	va_end(ap);
}

/* ---- pieces ---- */

bool fuzz_wrong(fuzz_kernel *k) { return k->hostile && !roll(&k->d, 12); }

uint64_t fuzz_wide(dice *d)
{
	uint64_t high = roll(d, 1u << 31), middle = roll(d, 1u << 31);

	return high << 33 ^ middle << 11 ^ roll(d, 2048);
}

uint64_t fuzz_any(dice *d)
{
	uint64_t wide = fuzz_wide(d);

	return wide >> roll(d, 64);
}

fuzz_piece *fuzz_piece_new(fuzz_kernel *k, const char *kind)
{
	if (k->npiece == FUZZ_PIECES)
		return NULL;
	fuzz_piece *p = &k->piece[k->npiece++];
	*p = (fuzz_piece){ .kind = kind };
	return p;
}

static void free_piece(fuzz_piece *p)
{
	free(p->decls.p);
	free(p->body.p);
}

void fuzz_free(fuzz_kernel *k)
{
	for (unsigned i = 0; i < k->npiece; i++)
		free_piece(&k->piece[i]);
	k->npiece = 0;
}

static unsigned lines_of(const form_text *t)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += t->p[i] == '\n';
	return n;
}

/* ---- the whole ---- */

static void choose_shape(fuzz_kernel *k, bool warpgroups)
{
	static const uint32_t blocks[] = { 1, 32, 33, 64, 128, 128, 128, 128, 256, 384 };
	static const uint32_t dynamic[] = { 0, 0, 0, 16, 1024, 40000, 65536 };
	dice *d = &k->d;
	uint32_t n = warpgroups ? 128u << roll(d, 2) : blocks[roll(d, ARRAY_LEN(blocks))];

	k->threads = n;
	for (unsigned i = 0; i < 3; i++)
		k->block[i] = k->grid[i] = 1;
	if (n >= 32 && n % 32 == 0 && !roll(d, 6))
		k->block[0] = n / 4, k->block[1] = 2, k->block[2] = 2;
	else
		k->block[0] = n;
	unsigned along = roll(d, 3);
	k->grid[along] = 1 + roll(d, 3);
	k->dyn_smem = dynamic[roll(d, ARRAY_LEN(dynamic) - (k->cc == 120))];
	if (fuzz_wrong(k))
		k->dyn_smem = (uint32_t)fuzz_wide(d);
	k->cluster = 0;
	if (k->cc >= 90 && roll(d, 2)) {
		k->cluster = k->cc == 120 ? 1 : 1u << roll(d, 4);
		k->grid[0] *= k->cluster;
	}
}

static const struct kind {
	void (*make)(fuzz_kernel *k);
	unsigned often;
} kinds[] = { { fuzz_line, 6 },        { fuzz_matrix, 2 },    { fuzz_wgmma, 3 },    { fuzz_tcgen05, 3 },
	          { fuzz_tensor_copy, 4 }, { fuzz_bulk_copy, 3 }, { fuzz_cp_async, 2 }, { fuzz_mbarrier, 2 },
	          { fuzz_remote, 2 },      { fuzz_cancel, 1 },    { fuzz_printf, 3 },   { fuzz_heap, 3 },
	          { fuzz_handed, 2 },      { fuzz_local, 2 },     { fuzz_indirect, 2 }, { fuzz_registers, 1 },
	          { fuzz_atomics, 2 },     { fuzz_barriers, 2 } };

static void add_any(fuzz_kernel *k)
{
	unsigned all = 0, i = 0;

	for (unsigned j = 0; j < ARRAY_LEN(kinds); j++)
		all += kinds[j].often;
	for (unsigned at = roll(&k->d, all); at >= kinds[i].often; i++)
		at -= kinds[i].often;
	kinds[i].make(k);
}

/* Tensor cores, a tensor copy, printf and memory in one kernel, with others between them, in any order. */
static void make_mixed(fuzz_kernel *k)
{
	void (*all[8])(fuzz_kernel *) = {
		k->cc == 90 ? fuzz_wgmma : fuzz_tcgen05, fuzz_tensor_copy, fuzz_printf, fuzz_heap, add_any, add_any, add_any, add_any
	};
	unsigned n = 4 + roll(&k->d, 5);

	for (unsigned i = n - 1; i; i--) {
		unsigned j = roll(&k->d, i + 1);
		void (*other)(fuzz_kernel *) = all[i];
		all[i] = all[j], all[j] = other;
	}
	for (unsigned i = 0; i < n; i++)
		all[i](k);
}

void fuzz_make(fuzz_kernel *k, uint64_t seed)
{
	static const char *const targets[] = { "sm_90a", "sm_90a", "sm_100a", "sm_100a", "sm_103a", "sm_120a", "sm_80" };
	dice first = { seed * UINT64_C(0x9e3779b97f4a7c15) + 1 };

	memset(k, 0, sizeof *k);
	k->d = first;
	for (unsigned i = 0; i < 3; i++)
		roll(&k->d, 2);
	bool mixed = !roll(&k->d, 3);
	k->target = targets[roll(&k->d, mixed ? 5 : ARRAY_LEN(targets))]; /* with tensor cores of their own rules */
	k->cc = cptx_target_find(k->target)->compute_capability;
	k->hostile = !roll(&k->d, mixed ? 4 : 3);
	choose_shape(k, mixed);
	if (mixed) {
		make_mixed(k);
		return;
	}
	unsigned want = 1 + roll(&k->d, 10);
	/* Some kernels are as they were before there were pieces: instructions of the table only, in any order. */
	bool lines = !roll(&k->d, 8);
	for (unsigned tries = 0; k->npiece < want && tries < 100; tries++)
		lines ? fuzz_line(k) : add_any(k);
}

/* Registers that every piece knows, and shared memory with something in it. */
static void put_prologue(fuzz_kernel *k, form_text *t)
{
	put(t, "\t.reg .b32 %%k<8>;\n\t.reg .b64 %%kd<4>;\n\t.reg .pred %%kp<4>;\n\t.shared .align 8 .b64 line_mb;\n"
	       "\t.local .align 16 .b8 line_local[256];\n");
	put(t,
	    "\tmov.u32 %%k4, %%tid.z;\n\tmov.u32 %%k5, %%ntid.y;\n\tmov.u32 %%k6, %%tid.y;\n\tmad.lo.u32 %%k4, %%k4, %%k5, "
	    "%%k6;\n"
	    "\tmov.u32 %%k5, %%ntid.x;\n\tmov.u32 %%k6, %%tid.x;\n\tmad.lo.u32 %%k0, %%k4, %%k5, %%k6;\n"
	    "\tmov.u32 %%k1, in_shared;\n\tmov.u64 %%kd0, in_global;\n\tmov.u32 %%k3, %%dynamic_smem_size;\n\tmov.u32 %%k2, "
	    "%s;\n"
	    "\tsetp.eq.u32 %%kp0, %%k0, 0;\n\tsetp.lt.u32 %%kp1, %%k0, 32;\n",
	    k->cc >= 90 ? "%cluster_ctarank" : "0");
	if (k->threads >= 32 && k->threads % 32 == 0) {
		put(t, "\tmov.u32 %%k4, 0x3c003c00;\n\tshl.b32 %%k5, %%k0, 4;\n\tadd.u32 %%k5, %%k5, %%k1;\n\tmov.u32 %%k6, %u;\n",
		    FUZZ_SHARED / 16);
		put(t,
		    "\tsub.u32 %%k6, %%k6, %%k0;\nFILL_SHARED:\n\tst.shared.v4.b32 [%%k5], {%%k4, %%k4, %%k4, %%k4};\n\tadd.u32 "
		    "%%k5, %%k5, %u;\n"
		    "\tsub.s32 %%k6, %%k6, %u;\n\tsetp.gt.s32 %%kp2, %%k6, 0;\n\t@%%kp2 bra FILL_SHARED;\n",
		    k->threads * 16, k->threads);
	}
	put(t, "\t@%%kp0 mbarrier.init.shared.b64 [line_mb], 1;\n%s\tbar.sync 0;\n",
	    k->cc >= 90 ? "\tfence.mbarrier_init.release.cluster;\n\tfence.proxy.async;\n" : "");
}

static void replace(char *text, const char *from, const char *to)
{
	char *p = strstr(text, from);

	if (!p)
		return;
	memmove(p + strlen(to), p + strlen(from), strlen(p + strlen(from)) + 1);
	memcpy(p, to, strlen(to));
}

static void put_replaced(form_text *t, char *text, const char *from, const char *to)
{
	char *larger = malloc(strlen(text) + strlen(to) + 1);

	if (!larger)
		abort();
	strcpy(larger, text);
	replace(larger, from, to);
	put(t, "%s", larger);
	free(larger);
	free(text);
}

static char *head(fuzz_kernel *k)
{
	form_text t = { .p = NULL };
	char limits[200], size[80];

	snprintf(size, sizeof size, ".align 1024 .b8 in_global[%d]", FUZZ_GLOBAL);
	put_replaced(&t, pool_file_head(k->target, 93, false), ".align 16 .b8 in_global[256]", size);
	put(&t,
	    ".global .align 8 .u64 handed[%d];\n.extern .shared .align 1024 .b8 in_dynamic[];\n"
	    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
	    ".extern .func (.param .b64 r) malloc (.param .b64 n);\n.extern .func free (.param .b64 p);\n"
	    ".extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);\n",
	    FUZZ_HANDED);
	for (unsigned i = 0; i < k->npiece; i++)
		put(&t, "%s", k->piece[i].decls.p ? k->piece[i].decls.p : "");
	form_text inner = { .p = NULL };
	snprintf(size, sizeof size, ".shared .align 1024 .b8 in_shared[%d]", FUZZ_SHARED);
	put_replaced(&inner, pool_kernel_head(0, 93, NULL), ".shared .align 16 .b8 in_shared[256]", size);
	snprintf(limits, sizeof limits, ")\n.maxntid %u, %u, %u\n{\n", k->block[0], k->block[1], k->block[2]);
	put_replaced(&t, inner.p, ")\n{\n", k->registers ? limits : ")\n{\n");
	put_prologue(k, &t);
	return t.p;
}

char *fuzz_text(fuzz_kernel *k)
{
	form_text t = { .p = NULL };
	char *first = head(k);

	put(&t, "%s", first);
	free(first);
	for (unsigned i = 0; i < k->npiece; i++)
		put(&t, "// %s\n\t{\n%s\t}\n", k->piece[i].kind, k->piece[i].body.p ? k->piece[i].body.p : "");
	if (k->cluster > 1)
		put(&t, "\tbarrier.cluster.arrive;\n\tbarrier.cluster.wait;\n");
	put(&t, "\tret;\n}\n");
	return t.p;
}

bool fuzz_drop(fuzz_kernel *k, unsigned line)
{
	char *first = head(k);
	form_text t = { .p = first, .n = strlen(first) };
	unsigned at = lines_of(&t), i;

	free(first);
	for (i = 0; i < k->npiece; i++) {
		at += 3 + lines_of(&k->piece[i].body);
		if (line <= at)
			break;
	}
	if (i == k->npiece)
		return false;
	if (line > at - 3 - lines_of(&k->piece[i].body) && !strcmp(k->piece[i].kind, "line"))
		k->refused[k->piece[i].form] = true;
	free_piece(&k->piece[i]);
	memmove(&k->piece[i], &k->piece[i + 1], (k->npiece - i - 1) * sizeof *k->piece);
	k->npiece--;
	return true;
}
