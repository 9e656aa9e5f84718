/* SPDX-License-Identifier: MIT */
/* Printing declarations: variables with their initialisers, registers, the heads of kernels and functions. */
#include "emit/emit.h"

const char *const ir_linkages[LINK_COUNT] = { "", ".extern ", ".visible ", ".weak ", ".common " };

static char hex_digit(unsigned v) { return "0123456789ABCDEF"[v & 15]; }

static void put_u64(buf *b, uint64_t v)
{
	char text[24];
	buf_put(b, text, (size_t)(text_u64(text, v) - text));
}

static uint64_t element_bits(const ir_sym *s, uint32_t i)
{
	unsigned n = arch_types[s->type].bits / 8;
	uint64_t v = 0;

	for (unsigned j = n; j-- > 0;) /* host and device store bytes in little-endian order */
		v = v << 8 | s->init[(size_t)i * n + j];
	return v;
}

static void put_address(emitter *e, const ir_reloc *r)
{
	buf *b = &e->out->text;

	if (r->mask) {
		unsigned shift = 60;
		buf_str(b, "0x");
		while (shift && !(r->mask >> shift & 15))
			shift -= 4;
		for (;; shift -= 4) {
			char c = hex_digit((unsigned)(r->mask >> shift));
			buf_put(b, &c, 1);
			if (!shift)
				break;
		}
		buf_str(b, "(");
	}
	if (r->generic)
		buf_str(b, "generic(");
	buf_str(b, r->to.kind == CPTX_VAL_FUNC ? e->m->body[r->to.id - 1]->name : e->m->sym[r->to.id - MODULE_SYM]->name);
	if (r->generic)
		buf_str(b, ")");
	if (r->to.kind == CPTX_VAL_SYM && r->to.offset) {
		buf_str(b, r->to.offset < 0 ? "+-" : "+");
		put_u64(b, r->to.offset < 0 ? 0 - (uint64_t)(int64_t)r->to.offset : (uint64_t)r->to.offset);
	}
	if (r->mask)
		buf_str(b, ")");
}

static void put_element(emitter *e, const ir_sym *s, uint32_t i, uint32_t *reloc)
{
	arch_type t = arch_types[s->type];
	buf *b = &e->out->text;

	if (*reloc < s->nreloc && s->reloc[*reloc].index == i) {
		put_address(e, &s->reloc[(*reloc)++]);
		return;
	}
	uint64_t v = element_bits(s, i);
	if (t.cls == 'F' && t.bits >= 32) {
		buf_str(b, t.bits == 64 ? "0d" : "0f");
		for (unsigned shift = t.bits; shift;) {
			char c = hex_digit((unsigned)(v >> (shift -= 4)));
			buf_put(b, &c, 1);
		}
	} else if (t.cls == 'S' && v >> (t.bits - 1)) {
		buf_str(b, "-");
		put_u64(b, (t.bits == 64 ? 0 : (uint64_t)1 << t.bits) - v);
	} else {
		put_u64(b, v);
	}
}

/* Prints the elements of an initialiser from i on, in braces for the `depth`-th dimension; returns how many. */
static uint32_t put_elements(emitter *e, const ir_sym *s, unsigned depth, uint32_t i, uint32_t *reloc)
{
	unsigned depths = s->ndim + (s->vec > 1);
	uint64_t stride = 1;
	buf *b = &e->out->text;

	if (depth == depths) {
		put_element(e, s, i, reloc);
		return i + 1;
	}
	for (unsigned d = depth + 1; d < depths; d++)
		stride = MIN(stride * (d < s->ndim ? s->dim[d] : s->vec), (uint64_t)UINT32_MAX);
	uint64_t length = depth < s->ndim ? s->dim[depth] : s->vec, end = i + length * stride;
	if (depth == 0 || end > s->ninit)
		end = s->ninit;
	buf_str(b, "{");
	for (bool more = false; i < end; more = true) {
		if (more)
			buf_str(b, ", ");
		i = put_elements(e, s, depth + 1, i, reloc);
	}
	buf_str(b, "}");
	return i;
}

/* Prints a variable, ".global .align 4 .u32 name[2]", with its initialiser. */
void emit_variable(emitter *e, const ir_sym *s)
{
	buf *b = &e->out->text;

	buf_str(b, ir_linkages[s->linkage]);
	if (ir_is_opaque(s->space)) {
		buf_str(b, s->is_param ? ".param" : ".global");
	} else {
		buf_str(b, ".");
		buf_str(b, arch_mods[s->space].name);
	}
	if (s->attribute && !ir_is_opaque(s->space)) {
		buf_str(b, " .attribute(");
		buf_str(b, s->attribute);
		buf_str(b, ")");
	}
	if (s->align_given && !s->is_ptr) {
		buf_str(b, " .align ");
		put_u64(b, s->align);
	}
	if (s->vec)
		buf_str(b, s->vec == 2 ? " .v2" : s->vec == 4 ? " .v4" : " .v8");
	buf_str(b, " .");
	buf_str(b, arch_mods[ir_is_opaque(s->space) ? s->space : s->type].name);
	if (s->is_ptr) {
		buf_str(b, " .ptr");
		if (s->ptr_space) {
			buf_str(b, " .");
			buf_str(b, arch_mods[s->ptr_space].name);
		}
		if (s->ptr_align) {
			buf_str(b, " .align ");
			put_u64(b, s->ptr_align);
		}
	}
	buf_str(b, " ");
	buf_str(b, s->name);
	for (unsigned i = 0; i < s->ndim; i++) {
		buf_str(b, "[");
		if (s->dim[i])
			put_u64(b, s->dim[i]);
		buf_str(b, "]");
	}
	if (s->attribute && ir_is_opaque(s->space)) {
		buf_str(b, "=");
		buf_str(b, s->attribute);
	} else if (s->init) {
		uint32_t reloc = 0;
		buf_str(b, "=");
		put_elements(e, s, 0, 0, &reloc);
	}
}

/* ---- registers ---- */

void emit_registers(emitter *e, uint32_t first, uint32_t n)
{
	const ir_decl *d = &e->k->decl[first];
	buf *b = &e->out->text;

	buf_str(b, "\t.reg ");
	if (d->form == DECL_VECTOR)
		buf_str(b, d->count == 2 ? ".v2 " : ".v4 ");
	buf_str(b, ".");
	buf_str(b, arch_mods[d->type].name);
	for (uint32_t i = 0; i < n; i++, d++) {
		buf_str(b, i ? ", " : " ");
		buf_str(b, d->name);
		if (d->form != DECL_RANGE)
			continue;
		buf_str(b, "<");
		put_u64(b, d->count + (first + i < CLASS_COUNT)); /* the builder's registers are numbered from 1 */
		buf_str(b, ">");
	}
	buf_str(b, ";\n");
	e->line++;
}

/* ---- kernels and functions ---- */

static void put_arg(emitter *e, const cptx_kernel *k, const ir_arg *a)
{
	if (a->sym != IR_NONE) {
		emit_variable(e, k->sym[a->sym]);
		return;
	}
	const ir_decl *d = &k->decl[ir_decl_of(k, a->reg)];
	buf_str(&e->out->text, ".reg .");
	buf_str(&e->out->text, arch_mods[d->type].name);
	buf_str(&e->out->text, " ");
	buf_str(&e->out->text, e->hash && e->hash->any_registers ? "_" : d->name);
}

void emit_signature(emitter *e, const cptx_kernel *k)
{
	buf *b = &e->out->text;

	if (k->is_proto)
		buf_str(b, ".callprototype ");
	else
		buf_str(b, k->is_func ? ".func " : ".entry ");
	if (k->attribute) {
		buf_str(b, ".attribute(");
		buf_str(b, k->attribute);
		buf_str(b, ") ");
	}
	if (k->nresult) {
		buf_str(b, "(");
		for (size_t i = 0; i < k->nresult; i++) {
			buf_str(b, i ? ", " : "");
			put_arg(e, k, &k->result[i]);
		}
		buf_str(b, ") ");
	}
	buf_str(b, k->is_proto ? "_" : k->name);
	buf_str(b, "(");
	for (size_t i = 0; i < k->narg; i++) {
		buf_str(b, i ? ",\n\t" : "\n\t");
		put_arg(e, k, &k->arg[i]);
	}
	buf_str(b, k->narg ? "\n)" : ")");
	e->line += k->narg ? (uint32_t)k->narg + 1 : 0;
}

static void put_bound(buf *b, const char *name, const uint32_t *v, unsigned n)
{
	if (!v[0])
		return;
	buf_str(b, name);
	for (unsigned i = 0; i < n; i++) {
		buf_str(b, i ? ", " : " ");
		put_u64(b, v[i]);
	}
}

void emit_bounds(emitter *e, const cptx_kernel *k)
{
	const cptx_kernel_opt *o = &k->opt;
	buf *b = &e->out->text;
	size_t from = b->n;

	put_bound(b, "\n.reqntid", o->block, 3);
	put_bound(b, "\n.maxntid", o->max_block, 3);
	put_bound(b, "\n.minnctapersm", &o->min_ctas, 1);
	put_bound(b, "\n.maxnreg", &o->max_regs, 1);
	put_bound(b, "\n.reqnctapercluster", o->cluster, 3);
	put_bound(b, "\n.maxclusterrank", &o->max_cluster_rank, 1);
	for (size_t i = 0; i < k->nextra; i++) {
		buf_str(b, "\n");
		buf_str(b, k->extra[i]);
	}
	for (size_t i = from; i < b->n; i++)
		e->line += b->p[i] == '\n';
}
