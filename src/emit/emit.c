/* IR -> PTX text for one target, with the lowest .version that serves, and the map from its lines to the user's. */
#include "emit/emit.h"

#include <stdio.h>

void emit_line(emitter *e, const char *format, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	buf_str(&e->out->text, text);
	for (const char *p = text; *p; p++)
		e->line += *p == '\n';
}
/* ---- bodies ---- */

static void emit_params(emitter *e)
{
	const cptx_kernel *k = e->k;

	for (size_t i = 0; i < k->nparam; i++) {
		const cptx_param_info *p = &k->param[i];
		emit_line(e, "%s\n\t.param ", i ? "," : "(");
		if (k->is_func)
			emit_line(e, ".%s ", ir_classes[k->reg[k->param_val[i].id].cls].type);
		else if (p->type == CPTX_B8 && (p->size > 1 || p->align > 1))
			emit_line(e, ".align %u .b8 ", p->align);
		else
			emit_line(e, ".%s ",
			          arch_types[p->type].cls == 'X' || (arch_types[p->type].cls == 'F' && p->size == 2)
			              ? (p->size == 2   ? "b16"
			                 : p->size == 4 ? "b32"
			                                : "b64")
			              : arch_mods[p->type].name);
		buf_str(&e->out->text, p->name);
		if (!k->is_func && p->type == CPTX_B8 && (p->size > 1 || p->align > 1))
			emit_line(e, "[%u]", p->size);
	}
	emit_line(e, k->nparam ? "\n)\n" : k->is_func ? "\n" : "()\n");
}

static bool emit_bounds(emitter *e)
{
	const cptx_kernel_opt *o = &e->k->opt;
	const cptx_target *t = e->out->target;

	if (o->block[0])
		emit_line(e, ".reqntid %u, %u, %u\n", o->block[0], o->block[1], o->block[2]);
	if (o->max_block[0])
		emit_line(e, ".maxntid %u, %u, %u\n", o->max_block[0], o->max_block[1], o->max_block[2]);
	if (o->min_ctas)
		emit_line(e, ".minnctapersm %u\n", o->min_ctas);
	if (o->max_regs)
		emit_line(e, ".maxnreg %u\n", o->max_regs);
	const uint32_t *block = o->block[0] ? o->block : o->max_block;
	uint32_t threads = block[0] * block[1] * block[2];
	if (o->min_ctas > t->ctas_per_sm || o->min_ctas * threads > t->threads_per_sm) /* ptxas would ignore it */
		return error_set(
			e->err, CPTX_E_LIMIT, e->k->at,
			"kernel %s: launch bounds: %u CTAs of %u threads; a multiprocessor of %s holds at most %u threads and %u CTAs",
			e->k->name, o->min_ctas, threads, t->name, t->threads_per_sm, t->ctas_per_sm);
	if (e->k->param_bytes > 4352)
		e->version = MAX(e->version, 81u);
	if (!o->cluster[0] && !o->max_cluster_rank)
		return true;
	if (!t->cluster)
		return error_set(e->err, CPTX_E_TARGET, e->k->at,
		                 "kernel %s: cluster dimensions are not available on %s; clusters need sm_90 or later", e->k->name,
		                 t->name);
	e->version = MAX(e->version, 78u);
	if (o->cluster[0])
		emit_line(e, ".reqnctapercluster %u, %u, %u\n", o->cluster[0], o->cluster[1], o->cluster[2]);
	else
		emit_line(e, ".maxclusterrank %u\n", o->max_cluster_rank);
	return true;
}

static bool check_smem(emitter *e)
{
	const cptx_kernel *k = e->k;
	const cptx_target *t = e->out->target;

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

static void emit_declarations(emitter *e)
{
	const cptx_kernel *k = e->k;

	if (k->class_count[CLASS_B128])
		e->version = MAX(e->version, 83u);
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		if (k->class_count[c])
			emit_line(e, "\t.reg .%s %s<%u>;\n", ir_classes[c].type, ir_classes[c].prefix, k->class_count[c] + 1);
	for (size_t i = 0; i < k->nsym; i++) {
		const ir_sym *s = k->sym[i];
		if ((int)i == k->dyn_sym)
			continue;
		emit_line(e, "\t.shared .align %u .b8 ", s->align);
		buf_str(&e->out->text, s->name);
		emit_line(e, "[%u];\n", s->size);
	}
	for (size_t i = 0; k->is_func && i < k->nparam; i++) {
		char r[16];
		emit_line(e, "\tld.param.%s %s, [", ir_classes[k->reg[k->param_val[i].id].cls].type,
		          emit_reg_text(e, k->param_val[i].id, r));
		buf_str(&e->out->text, k->param[i].name);
		emit_line(e, "];\n");
	}
}

static void emit_signature(emitter *e)
{
	const cptx_kernel *k = e->k;

	emit_line(e, k->is_func ? "\n.func " : "\n.visible .entry ");
	if (k->ret.kind)
		emit_line(e, "(.param .%s " IR_PREFIX "_result) ", ir_classes[k->reg[k->ret.id].cls].type);
	buf_str(&e->out->text, k->name);
	emit_params(e);
}

static bool emit_body(emitter *e, const cptx_kernel *k)
{
	e->k = k;
	e->file = 0;
	e->user_line = 0;
	e->loc_file = 0;
	if (!check_smem(e) || !emit_name_registers(e))
		return false;
	emit_signature(e);
	if (!emit_bounds(e))
		return false;
	emit_line(e, "{\n");
	emit_declarations(e);
	for (const ir_item *it = k->first; it; it = it->next)
		if (!emit_item(e, it))
			return false;
	emit_line(e, "}\n");
	line_entry end = { e->line, 0, 0 };
	buf_put(&e->out->map, (const char *)&end, sizeof end);
	return true;
}

/* ---- the module ---- */

static void emit_variable(emitter *e, const ir_sym *s)
{
	static const char digits[] = "0123456789";
	const unsigned char *bytes = s->init;

	if (s->space == CPTX_SAMPLERREF)
		e->texmode = TEXMODE_INDEPENDENT;
	if (s->space == CPTX_TEXREF || s->space == CPTX_SAMPLERREF || s->space == CPTX_SURFREF) {
		emit_line(e, "%s.global .%s ", s->exported ? ".visible " : "", arch_mods[s->space].name);
		buf_str(&e->out->text, s->name);
		emit_line(e, ";\n");
		return;
	}
	emit_line(e, "%s.%s .align %u .b8 ", s->exported ? ".visible " : "", arch_mods[s->space].name, s->align);
	buf_str(&e->out->text, s->name);
	emit_line(e, "[%u]", s->size);
	for (uint32_t i = 0; bytes && i < s->size; i++) {
		char b[8], *p = b;
		*p++ = i ? ',' : '=';
		*p++ = i ? ' ' : '{';
		if (bytes[i] >= 100)
			*p++ = digits[bytes[i] / 100];
		if (bytes[i] >= 10)
			*p++ = digits[bytes[i] / 10 % 10];
		*p++ = digits[bytes[i] % 10];
		buf_put(&e->out->text, b, (size_t)(p - b));
	}
	emit_line(e, bytes ? "};\n" : ";\n");
}

static void emit_head(emitter *e, size_t *version_at, size_t *target_end)
{
	uint32_t dyn_align = 0;

	emit_line(e, "// cptx %s\n.version ", CPTX_VERSION);
	*version_at = e->out->text.n;
	emit_line(e, "0.0\n.target %s", e->out->target->name);
	*target_end = e->out->text.n;
	emit_line(e, "\n.address_size 64\n");
	for (size_t i = 0; e->opt->lines && i < e->m->nfile; i++) {
		emit_line(e, ".file %zu \"", i + 1);
		for (const char *p = e->m->file[i]; *p; p++)
			buf_put(&e->out->text, *p == '"' || *p == '\\' || *p < ' ' || *p > '~' ? "_" : p,
			        1); /* ptxas takes ASCII only */
		emit_line(e, "\"\n");
	}
	for (size_t i = 0; i < e->m->nsym; i++)
		emit_variable(e, e->m->sym[i]);
	for (const cptx_kernel *k = e->m->first; k; k = k->next)
		if (k->dyn_sym >= 0)
			dyn_align = MAX(dyn_align, k->sym[k->dyn_sym]->align);
	if (dyn_align)
		emit_line(e, ".extern .shared .align %u .b8 " IR_PREFIX "_smem[];\n", dyn_align);
}

/* The PTX versions that exist, times ten: the last minor version of each major one. */
static bool is_version(unsigned version)
{
	static const unsigned char last[] = { [1] = 5, [2] = 3, [3] = 2, [4] = 3, [5] = 1, [6] = 5, [7] = 8, [8] = 8, [9] = 2 };
	return version >= 10 && version / 10 < ARRAY_LEN(last) && version % 10 <= last[version / 10];
}

/* Known only when all is printed. */
static void insert(buf *b, size_t at, const char *s)
{
	size_t n = strlen(s);

	if (!buf_reserve(b, n))
		return;
	memmove(b->p + at + n, b->p + at, b->n - at);
	memcpy(b->p + at, s, n);
	b->n += n;
}

static bool emit_module(emitter *e)
{
	size_t version_at = 0, target_end = 0;

	emit_head(e, &version_at, &target_end);
	for (const cptx_kernel *f = e->m->first; f; f = f->next) { /* declared before anything calls them */
		if (!f->is_func)
			continue;
		e->k = f;
		emit_signature(e);
		emit_line(e, ";\n");
	}
	for (const cptx_kernel *k = e->m->first; k; k = k->next)
		if (!emit_body(e, k))
			return false;
	for (size_t i = 0; i < e->m->nfile; i++)
		buf_put(&e->out->files, e->m->file[i], strlen(e->m->file[i]) + 1);
	if (e->texmode == TEXMODE_INDEPENDENT)
		insert(&e->out->text, target_end, ", texmode_independent");
	buf_put(&e->out->text, "", 1);
	if (e->out->text.failed || e->out->map.failed || e->out->files.failed)
		return error_set(e->err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
	e->out->text.n--;
	e->out->version = MAX(e->version, e->opt->min_version);
	if (!emit_still_there(e, e->out->version))
		return false;
	if (e->opt->min_version && !is_version(e->opt->min_version))
		return error_set(e->err, CPTX_E_ARG, NOWHERE,
		                 "min_version = %u: there is no such PTX version (versions are given times ten: 78 for 7.8)",
		                 e->opt->min_version);
	e->out->text.p[version_at] = (char)('0' + e->out->version / 10);
	e->out->text.p[version_at + 2] = (char)('0' + e->out->version % 10);
	return true;
}

cptx_ptx *cptx_emit(cptx_module *m, const char *target, const cptx_emit_opt *opt, cptx_error *err)
{
	static const cptx_emit_opt defaults;
	const cptx_target *t = cptx_target_find(target);
	cptx_error ignored;

	if (!err)
		err = &ignored;
	*err = (cptx_error){ 0 };
	if (!m || !cptx_module_freeze(m)) {
		*err = *cptx_module_error(m);
		return NULL;
	}
	if (!t) {
		emit_unknown_target(target, err);
		return NULL;
	}
	const cptx_allocator *hook = &m->a.hook;
	cptx_ptx *out = heap_realloc(hook, NULL, sizeof *out);
	if (!out) {
		error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
		return NULL;
	}
	*out = (cptx_ptx){ .hook = *hook, .target = t };
	buf_init(&out->text, &out->hook);
	buf_init(&out->map, &out->hook);
	buf_init(&out->files, &out->hook);
	emitter e = { .m = m,
		          .out = out,
		          .err = err,
		          .opt = opt ? opt : &defaults,
		          .target = arch_target_index(t),
		          .version = t->ptx,
		          .line = 1 };
	buf_reserve(&out->text, cptx_module_size(m) * 64 + 4096); /* about what it takes; it grows if need be */
	buf_reserve(&out->map, cptx_module_size(m) * sizeof(line_entry) + 256);
	bool ok = emit_module(&e);
	if (e.names)
		heap_realloc(&out->hook, e.names, 0);
	if (!ok) {
		if (err->code == CPTX_OK)
			error_set(err, CPTX_E_MEMORY, NOWHERE, "out of memory while printing");
		cptx_ptx_destroy(out);
		return NULL;
	}
	return out;
}

void emit_unknown_target(const char *target, cptx_error *err)
{
	const char *near = NULL;
	unsigned best = 4;

	for (size_t i = 0; target && cptx_target_at(i); i++) {
		unsigned d = text_distance(target, cptx_target_at(i)->name);
		if (d < best)
			best = d, near = cptx_target_at(i)->name;
	}
	error_set(err, CPTX_E_TARGET, NOWHERE, "there is no target '%.64s'%s%s%s; `cptx arch` lists them",
	          target ? target : "(null)", near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}
