/* SPDX-License-Identifier: MIT */
/* Printing: the IR as PTX text for one target, with the lowest .version that has all, and the map from its lines to the
 * user's. */
#include "base/options.h"
#include "emit/emit.h"

#include <stdio.h>

static void put_line(emitter *e, const char *text)
{
	buf_str(&e->out->text, text);
	buf_put(&e->out->text, "\n", 1);
	e->line++;
}

/* ---- bodies ---- */

static bool check_bounds(emitter *e, const cptx_target *t)
{
	const cptx_kernel_opt *o = &e->k->opt;
	const uint32_t *block = o->block[0] ? o->block : o->max_block;
	uint32_t threads = block[0] * block[1] * block[2];

	if (!e->m->parsed &&
	    (o->min_ctas > t->ctas_per_sm || o->min_ctas * threads > t->threads_per_sm)) /* ptxas would ignore .minnctapersm */
		return error_set(
			e->err, CPTX_E_LIMIT, e->k->at,
			"kernel %s: launch bounds: %u CTAs of %u threads; a multiprocessor of %s holds at most %u threads and %u CTAs",
			e->k->name, o->min_ctas, threads, t->name, t->threads_per_sm, t->ctas_per_sm);
	if (e->k->param_bytes > 4352)
		e->version = MAX(e->version, 81u);
	return (!o->cluster[0] || emit_needs(e, DIR_REQNCTAPERCLUSTER)) &&
	       (!o->max_cluster_rank || emit_needs(e, DIR_MAXCLUSTERRANK));
}

static bool check_extra(emitter *e)
{
	const cptx_kernel *k = e->k;

	for (size_t i = 0; i < k->nextra; i++)
		if (!emit_text_needs(e, k->extra[i]))
			return false;
	return !k->attribute || emit_text_needs(e, k->attribute);
}

static bool check_smem(emitter *e, const cptx_target *t)
{
	const cptx_kernel *k = e->k;

	if (k->reached_smem > t->static_smem)
		return error_set(e->err, CPTX_E_LIMIT, k->at,
		                 "kernel %s: %u bytes of static shared memory; %s allows %u. Use cptx_shared_dyn for more", k->name,
		                 k->reached_smem, t->name, t->static_smem);
	if (k->reached_smem + k->dyn_smem > t->smem_per_cta)
		return error_set(e->err, CPTX_E_LIMIT, k->at,
		                 "kernel %s: %u bytes of shared memory (%u static, %u dynamic); a CTA of %s has at most %u", k->name,
		                 k->reached_smem + k->dyn_smem, k->reached_smem, k->dyn_smem, t->name, t->smem_per_cta);
	return true;
}

bool emit_limits(emitter *e, const cptx_target *t) { return check_smem(e, t) && check_bounds(e, t) && check_extra(e); }

void emit_head_of(emitter *e, const cptx_kernel *k)
{
	buf_str(&e->out->text, "\n");
	buf_str(&e->out->text, ir_linkages[k->linkage]);
	e->line++;
	emit_signature(e, k);
	emit_bounds(e, k);
}

bool emit_has_made(const cptx_kernel *k)
{
	bool any = false;

	for (unsigned c = 0; c < CLASS_COUNT && k->ndecl; c++)
		any |= k->decl[c].count != 0;
	return any;
}

void emit_made_registers(emitter *e)
{
	const cptx_kernel *k = e->k;

	if (k->ndecl && k->decl[CLASS_B128].count)
		e->version = MAX(e->version, arch_needs[DIR_B128].version);
	for (unsigned c = 0; c < CLASS_COUNT && k->ndecl; c++)
		if (k->decl[c].count)
			emit_registers(e, c, 1);
}

static void emit_body_head(emitter *e)
{
	emit_head_of(e, e->k);
	put_line(e, "\n{");
	e->line++;
	if (!e->hash || !e->hash->any_registers)
		emit_made_registers(e);
}

static bool emit_body(emitter *e, const cptx_kernel *k)
{
	e->k = k;
	e->run = (line_entry){ 0 };
	e->loc_file = 0;
	if (!emit_limits(e, e->out->target) || !emit_name_registers(e))
		return false;
	emit_body_head(e);
	for (const ir_item *it = k->first; it; it = it->next) {
		bool failed = false;
		if (it->kind == ITEM_INSN && !(it = emit_lines(e, it, &failed)))
			break;
		if (failed || !emit_item(e, it))
			return false;
	}
	put_line(e, "}");
	emit_no_origin(e);
	return true;
}

/* ---- the module ---- */

static void emit_head(emitter *e)
{
	buf *b = &e->out->text;

	if (!e->m->parsed) {
		buf_str(b, "// cptx ");
		put_line(e, CPTX_VERSION);
	}
	if (e->hash) { /* emit_hash_end hashes what the lines below say; where they stand is marked */
		put_line(e, ".version");
		return;
	}
	buf_str(b, ".version ");
	e->version_at = b->n;
	buf_str(b, "0.0\n.target ");
	buf_str(b, e->out->target->name);
	buf_str(b, e->m->target_more);
	e->target_end = b->n;
	put_line(e, "\n.address_size 64");
	e->line += 2; /* the texts above contain two line ends */
	for (size_t i = 0; e->locs && i < e->m->nfile; i++) {
		buf_printf(b, ".file %zu \"", i + 1);
		for (const char *p = e->m->file[i]; *p; p++) /* ptxas takes ASCII only */
			buf_put(b, *p == '"' || *p == '\\' || *p < ' ' || *p > '~' ? "_" : p, 1);
		put_line(e, "\"");
	}
}

/* Whether the target has what a variable of a module that was built needs. */
static bool variable_needs(emitter *e, const ir_sym *s)
{
	bool masks = false;

	for (uint32_t i = 0; i < s->nreloc; i++)
		masks |= s->reloc[i].mask != 0;
	return (!masks || emit_needs(e, DIR_MASK)) &&
	       (!s->attribute || ir_is_opaque(s->space) || emit_text_needs(e, s->attribute));
}

static bool emit_module_variable(emitter *e, const ir_sym *s)
{
	e->k = NULL;
	if (s->space == CPTX_SAMPLERREF)
		e->texmode = TEXMODE_INDEPENDENT;
	if (!e->m->parsed && !variable_needs(e, s))
		return false;
	emit_variable(e, s);
	put_line(e, ";");
	return true;
}

bool emit_top(emitter *e, const ir_top *t)
{
	buf *b = &e->out->text;

	switch (t->kind) {
	case TOP_HEAD: emit_head(e); break;
	case TOP_VAR: return emit_module_variable(e, e->m->sym[t->sym - MODULE_SYM]);
	case TOP_PROTO:
		e->k = t->k;
		emit_head_of(e, t->k);
		put_line(e, ";");
		break;
	case TOP_BODY: return emit_body(e, t->k);
	case TOP_TEXT:
		e->k = NULL;
		if (!e->m->parsed && !emit_text_needs(e, t->text))
			return false;
		for (const char *p = t->text; *p; p++)
			e->line += *p == '\n';
		put_line(e, t->text);
		break;
	case TOP_COMMENT:
		buf_str(b, *t->text ? "// " : "//");
		put_line(e, t->text);
		break;
	}
	return true;
}

/*
 * Asks for the memory of the bodies to come, which small ones spend most of their time on: of the next one what its entry
 * points to, of the one behind it the entry itself.
 */
static void fetch_ahead(const ir_top *t)
{
	enum { LINE = 64, DECLS = 4 * LINE };
	const ir_top *next = t->next, *behind = next ? next->next : NULL;

	if (behind)
		__builtin_prefetch(behind->next);
	for (size_t i = 0; behind && behind->k && i < sizeof *behind->k; i += LINE)
		__builtin_prefetch((const char *)behind->k + i);
	if (!next || !next->k)
		return;
	const cptx_kernel *k = next->k;
	for (size_t i = 0; i < MIN(k->ndecl * sizeof *k->decl, (size_t)DECLS); i += LINE)
		__builtin_prefetch((const char *)k->decl + i);
	__builtin_prefetch(k->name);
	__builtin_prefetch(k->arg);
	__builtin_prefetch(k->sym);
	__builtin_prefetch(k->label);
	__builtin_prefetch(k->first);
}

static bool emit_all(emitter *e)
{
	for (const ir_top *t = e->m->top_first; t; t = t->next) {
		fetch_ahead(t);
		if (!emit_top(e, t))
			return false;
		if (e->hash)
			emit_hash_text(e);
	}
	return true;
}

/* Inserts text at a place that is known only when all is printed. */
static void insert(buf *b, size_t at, const char *s)
{
	size_t n = strlen(s);

	if (!buf_reserve(b, n))
		return;
	memmove(b->p + at + n, b->p + at, b->n - at);
	memcpy(b->p + at, s, n);
	b->n += n;
}

/* Writes .version and .target in place of those in the kept text. */
static bool put_kept_version(emitter *e)
{
	buf *b = &e->out->text;
	size_t at = e->kept_version_at, behind = at + e->m->version_src.len;
	char text[16];
	size_t n = (size_t)snprintf(text, sizeof text, "%u.%u", e->out->version / 10, e->out->version % 10);

	if (!buf_reserve(b, n + 1))
		return error_set(e->err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
	memmove(b->p + at + n, b->p + behind, b->n + 1 - behind); /* with the NUL */
	memcpy(b->p + at, text, n);
	b->n = b->n + n - e->m->version_src.len;
	return true;
}

/* Whether the .target line needs another word, for samplers that have names of their own. */
static bool adds_texmode(const emitter *e)
{
	return e->texmode == TEXMODE_INDEPENDENT && !e->m->parsed && !strstr(e->m->target_more, "texmode_");
}

static bool emit_module(emitter *e)
{
	if (e->opt->min_version && !arch_is_version(e->opt->min_version))
		return error_set(e->err, CPTX_E_ARG, NOWHERE,
		                 "min_version = %u: there is no such PTX version (versions are given times ten: 78 for 7.8)",
		                 e->opt->min_version);
	if (e->opt->keep && !e->m->source)
		return error_set(e->err, CPTX_E_ARG, NOWHERE, "only what cptx_parse read with .keep can be printed as it stood");
	emit_begin_shapes(e);
	if (!(e->opt->keep ? emit_kept(e) : emit_all(e)))
		return false;
	for (size_t i = 0; i < e->m->nfile; i++)
		buf_put(&e->out->files, e->m->file[i], strlen(e->m->file[i]) + 1);
	if (!e->hash && adds_texmode(e))
		insert(&e->out->text, e->target_end, ", texmode_independent");
	buf_put(&e->out->text, "", 1);
	if (e->out->text.failed || e->out->map.failed || e->out->files.failed)
		return error_set(e->err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
	e->out->text.n--;
	e->out->version = MAX(e->version, e->opt->min_version);
	if (!emit_still_there(e, e->out->version))
		return false;
	if (e->opt->keep && e->out->version != e->m->text_version && !put_kept_version(e))
		return false;
	if (e->version_at) {
		e->out->text.p[e->version_at] = (char)('0' + e->out->version / 10);
		e->out->text.p[e->version_at + 2] = (char)('0' + e->out->version % 10);
	}
	return true;
}

static void begin(cptx_ptx *out, const cptx_allocator *hook, const cptx_target *t)
{
	*out = (cptx_ptx){ .hook = *hook, .target = t };
	buf_init(&out->text, &out->hook);
	buf_init(&out->own, &out->hook);
	buf_init(&out->map, &out->hook);
	buf_init(&out->files, &out->hook);
	buf_init(&out->spelled, &out->hook);
	emit_work_begin(out);
}

cptx_ptx *emit_new(cptx_module *m, const cptx_target *t)
{
	cptx_ptx *out = HEAP_ARRAY(&m->a.hook, cptx_ptx, NULL, 1);

	if (out)
		begin(out, &m->a.hook, t);
	return out;
}

cptx_ptx *cptx_ptx_new(const cptx_allocator *allocator)
{
	const cptx_allocator *hook = allocator && allocator->realloc_fn ? allocator : &heap_default;
	cptx_ptx *out = HEAP_ARRAY(hook, cptx_ptx, NULL, 1);

	if (out)
		begin(out, hook, NULL);
	return out;
}

static void empty(buf *b)
{
	b->n = 0;
	b->failed = false;
}

/* Makes an earlier result ready for a text, which goes to the caller's buffer if there is one. */
static void begin_text(cptx_ptx *out, const cptx_target *t, const cptx_emit_opt *o)
{
	if (out->text.foreign)
		out->text = out->own;
	else /* the last text outgrew a buffer, and has memory of its own beside this */
		buf_free(&out->own);
	buf_init(&out->own, &out->hook);
	out->target = t;
	out->version = 0;
	empty(&out->text), empty(&out->map), empty(&out->files), empty(&out->spelled);
	if (!o || !o->buffer)
		return;
	out->own = out->text;
	out->text = (buf){ .hook = &out->hook, .p = o->buffer, .cap = o->buffer_size, .foreign = true };
}

/* Leaves no text, or half of one. */
static void no_text(cptx_ptx *out)
{
	begin_text(out, NULL, NULL);
	buf_put(&out->text, "", 1);
	out->text.n = 0;
}

/* Puts a text that took more room while it was printed, but fits now, into the caller's buffer. */
static bool end_text(cptx_ptx *out, const cptx_emit_opt *o, cptx_error *err)
{
	size_t n = out->text.n;

	if (!o->buffer || out->text.foreign)
		return true;
	if (n >= o->buffer_size)
		return error_set(err, CPTX_E_LIMIT, NOWHERE, "the text takes %zu bytes with its NUL; .buffer_size is %zu", n + 1,
		                 o->buffer_size);
	memcpy(o->buffer, out->text.p, n + 1);
	buf_free(&out->own);
	out->own = out->text;
	out->text = (buf){ .hook = &out->hook, .p = o->buffer, .n = n, .cap = o->buffer_size, .foreign = true };
	return true;
}

/* The bytes of the module's text, about. */
static size_t about_as_long(const cptx_module *m)
{
	enum { LINE = 40, MANY = 64 };

	if (m->parsed && m->nbody > MANY) /* counting the items of all bodies would take longer: 3 bytes come of one of text */
		return m->a.total / 3;
	return cptx_module_size(m) * LINE;
}

/* Prints the module; with `hash`, hashes it instead, to *to. */
static bool print(cptx_ptx *out, cptx_module *m, const cptx_emit_opt *o, emit_hash_state *hash, cptx_hash *to,
                  cptx_error *err)
{
	emitter e = { .m = m,
		          .out = out,
		          .err = err,
		          .opt = o,
		          .hash = hash,
		          .target = arch_target_index(out->target),
		          .version = MAX(out->target->ptx, m->version),
		          .line = 1,
		          .locs = o->lines && !m->parsed };
	enum { MORE = 12 << 10 }; /* bytes of what lines are kept room for */

	size_t about = about_as_long(m);
	emit_work_for(out, about);
	buf_reserve(&out->text, (hash ? 0 : about) + MORE);
	if (emit_module(&e) && end_text(out, o, err)) {
		if (hash)
			emit_hash_end(&e, adds_texmode(&e), to);
		if (!out->text.failed)
			return true;
	}
	if (err->code == CPTX_OK)
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
	return false;
}

/* The caller's error, or one that nobody reads, whose texts are not cleared: they are set with its code. */
static cptx_error *err_or(cptx_error *err, cptx_error *ignored)
{
	ignored->code = CPTX_OK;
	return err ? err : ignored;
}

/* Checks what a caller gives; the target, or NULL, with an error. */
static const cptx_target *wanted(cptx_module *m, const char *target, const cptx_emit_opt *opt, cptx_emit_opt *o,
                                 cptx_error *err)
{
	const cptx_target *t = target || !m ? cptx_target_find(target) : m->target;

	if (!OPTIONS_READ(cptx_emit_opt, o, opt, NOWHERE, err))
		return NULL;
	if (!m || !cptx_module_freeze(m)) {
		*err = *cptx_module_error(m);
		return NULL;
	}
	if (!t)
		arch_no_target(target, NOWHERE, err);
	return t;
}

cptx_ptx *cptx_emit(cptx_module *m, const char *target, const cptx_emit_opt *opt, cptx_error *err)
{
	cptx_error ignored;
	cptx_emit_opt o;

	err = err_or(err, &ignored);
	const cptx_target *t = wanted(m, target, opt, &o, err);
	if (!t)
		return NULL;
	cptx_ptx *out = emit_new(m, t);
	if (!out) {
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
		return NULL;
	}
	begin_text(out, t, &o);
	out->once = true;
	bool ok = print(out, m, &o, NULL, NULL, err);
	out->once = false;
	emit_done(out);
	if (ok)
		return out;
	cptx_ptx_destroy(out);
	return NULL;
}

bool cptx_emit_again(cptx_ptx *ptx, cptx_module *m, const char *target, const cptx_emit_opt *opt, cptx_error *err)
{
	cptx_error ignored;
	cptx_emit_opt o;

	err = err_or(err, &ignored);
	if (!IS_GIVEN(ptx, "text", NOWHERE, err))
		return false;
	const cptx_target *t = wanted(m, target, opt, &o, err);
	begin_text(ptx, t, t ? &o : NULL);
	if (t && print(ptx, m, &o, NULL, NULL, err))
		return true;
	no_text(ptx);
	return false;
}

bool cptx_module_hash(cptx_module *m, const char *target, const cptx_hash_opt *opt, cptx_hash *hash, cptx_error *err)
{
	cptx_error ignored;
	cptx_emit_opt plain;
	cptx_hash_opt o;
	emit_hash_state state;

	err = err_or(err, &ignored);
	if (!IS_GIVEN(hash, "place for the hash", NOWHERE, err))
		return false;
	*hash = (cptx_hash){ { 0, 0 } };
	const cptx_target *t = wanted(m, target, NULL, &plain, err);
	if (!t || !OPTIONS_READ(cptx_hash_opt, &o, opt, NOWHERE, err))
		return false;
	cptx_ptx *out = o.scratch ? o.scratch : emit_new(m, t);
	if (!out)
		return error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory while hashing");
	begin_text(out, t, NULL);
	emit_hash_begin(&state, o.any_registers);
	bool ok = print(out, m, &plain, &state, hash, err);
	if (o.scratch)
		no_text(out);
	else
		cptx_ptx_destroy(out);
	return ok;
}
