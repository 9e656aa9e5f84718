/* Linking for a GPU: by the driver's linker, or by nvJitLink and then loading. */
#include "compile/compile.h"
#include "runtime/cuda.h"

static const unsigned input_type[] = {
	[PIECE_PTX] = CU_INPUT_PTX,       [PIECE_CUBIN] = CU_INPUT_CUBIN,     [PIECE_FATBIN] = CU_INPUT_FATBIN,
	[PIECE_OBJECT] = CU_INPUT_OBJECT, [PIECE_LIBRARY] = CU_INPUT_LIBRARY,
};

static bool learn(cptx_program *p, const load_request *q, const link_piece *pieces)
{
	for (size_t i = 0; i < q->npieces; i++) {
		if (pieces[i].kind != PIECE_PTX)
			p->more_kernels = true;
		else if (!program_learn(p, pieces[i].data, q->pieces[i].module))
			return false;
	}
	return true;
}

static bool by_driver(cptx_program *p, const load_request *q, const link_piece *pieces, cptx_error *err)
{
	cuda *c = cuda_of(p->dev);
	const link_piece *at = NULL;
	cuda_scope scope;
	cu_link link = NULL;
	void *cubin = NULL;
	size_t size = 0;
	jit j;

	if (!jit_begin(&j, q, err))
		return false;
	bool ok = cuda_enter(c, &scope, err);
	if (ok) {
		cu_result r = c->drv.cuLinkCreate_v2(j.n, j.options, j.values, &link);
		for (size_t i = 0; i < q->npieces && r == CU_OK; i++) {
			at = &pieces[i];
			r = c->drv.cuLinkAddData_v2(link, input_type[at->kind], (void *)at->data, at->size + (at->kind == PIECE_PTX),
			                            at->name, 0, NULL, NULL);
		}
		if (r == CU_OK) {
			at = NULL;
			r = c->drv.cuLinkComplete(link, &cubin, &size);
		}
		j.info[JIT_LOG - 1] = 0;
		p->log = arena_strdup(&p->mem, j.info);
		ok = r == CU_OK && p->log && cuda_load_image(p, q, cubin, err);
		if (r != CU_OK)
			jit_refused(c, r, &j, q, at && at->kind == PIECE_PTX ? at->data : NULL, at ? at->ptx : NULL, err);
		if (link)
			c->drv.cuLinkDestroy(link); /* the cubin is its own, so behind loading */
		cuda_leave(&scope);
	}
	jit_end(&j);
	return ok;
}

static bool by_nvjitlink(cptx_program *p, const load_request *q, const link_piece *pieces, cptx_error *err)
{
	cptx_compile_opt opt = { .compiler = CPTX_COMPILER_NVJITLINK,
		                     .target = p->target,
		                     .max_regs = q->opt.max_regs,
		                     .line_info = q->opt.line_info,
		                     .debug = q->opt.debug,
		                     .verbose = q->opt.verbose,
		                     .cache = q->opt.cache };
	compile_job job = { .at = q->at, .pieces = pieces, .npieces = q->npieces };
	cptx_cubin *c = job_compile(&job, &opt, err);

	if (!c)
		return false;
	p->log = arena_strdup(&p->mem, cptx_cubin_log(c));
	bool ok = (p->log || no_memory(err, q->at)) && cuda_load_image(p, q, cptx_cubin_data(c), err);
	cptx_cubin_destroy(c);
	return ok;
}

bool cuda_link(cptx_program *p, const load_request *q, cptx_error *err)
{
	enum cptx_compiler by = q->opt.compiler;

	if (by != CPTX_COMPILER_AUTO && by != CPTX_COMPILER_DRIVER && by != CPTX_COMPILER_NVJITLINK)
		return error_set(err, CPTX_E_ARG, q->at, "%s does not link; the driver and nvJitLink do", compilers[by].spelled);
	p->target = cuda_choose_target(&p->dev->info, q, err);
	link_piece *pieces = p->target ? pieces_make(q->pieces, q->npieces, p->target, &q->opt.emit, q->at, err) : NULL;
	bool ok = pieces && (learn(p, q, pieces) || no_memory(err, q->at));
	ok = ok && (by == CPTX_COMPILER_NVJITLINK ? by_nvjitlink : by_driver)(p, q, pieces, err);
	pieces_free(pieces, q->npieces);
	return ok;
}
