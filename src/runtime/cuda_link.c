/* SPDX-License-Identifier: MIT */
/* Linking for a GPU: by the driver's linker, or by nvJitLink, whose result is then loaded. */
#include "compile/compile.h"
#include "runtime/cuda.h"

static const unsigned input_type[] = {
	[PIECE_PTX] = CU_INPUT_PTX,       [PIECE_CUBIN] = CU_INPUT_CUBIN,     [PIECE_FATBIN] = CU_INPUT_FATBIN,
	[PIECE_OBJECT] = CU_INPUT_OBJECT, [PIECE_LIBRARY] = CU_INPUT_LIBRARY,
};

static bool learn(cptx_program *p, const load_request *q, const link_piece *pieces)
{
	for (size_t i = 0; i < q->npieces; i++) {
		const char *target;
		size_t n;
		if (pieces[i].kind != PIECE_PTX) {
			p->more_kernels = true;
			continue;
		}
		const char *text = (const char *)pieces[i].data;
		p->version = MAX(p->version, ptx_header(text, &target, &n));
		if (!program_learn(p, text, q->pieces[i].module))
			return false;
	}
	return true;
}

static cu_result by_driver(cptx_program *p, const load_request *q, compile_job *job, jit *j, cptx_error *err)
{
	const driver *d = &cuda_of(p->dev)->drv;
	cu_link link = NULL;
	void *cubin = NULL;
	size_t size = 0;
	cu_result r = d->cuLinkCreate_v2(j->n, j->options, j->values, &link);

	for (size_t i = 0; i < job->npieces && r == CU_OK; i++) {
		const link_piece *at = &job->pieces[i];
		job->text = at->kind == PIECE_PTX ? (const char *)at->data : NULL, job->ptx = at->ptx;
		r = d->cuLinkAddData_v2(link, input_type[at->kind], (void *)at->data, at->size + (at->kind == PIECE_PTX), at->name,
		                        0, NULL, NULL);
	}
	if (r == CU_OK) {
		job->text = NULL, job->ptx = NULL;
		r = d->cuLinkComplete(link, &cubin, &size);
	}
	j->info[JIT_LOG - 1] = j->error[JIT_LOG - 1] = 0;
	p->log = arena_strdup(&p->mem, j->info);
	if (r == CU_OK && (p->log || no_memory(err, q->at)))
		cuda_load_image(p, q, cubin, err);
	if (link)
		d->cuLinkDestroy(link); /* the cubin lies in memory of the link, so this follows loading */
	return r;
}

bool cuda_link(cptx_program *p, const load_request *q, cptx_error *err)
{
	enum cptx_compiler by = q->opt.compiler;

	if (by != CPTX_COMPILER_AUTO && by != CPTX_COMPILER_DRIVER && by != CPTX_COMPILER_NVJITLINK) {
		const char *name = cptx_compiler_name(by);
		return error_set(err, CPTX_E_ARG, q->at, "%s does not link; the driver and nvJitLink do",
		                 name ? name : "what has no name");
	}
	p->target = cuda_choose_target(&p->dev->info, q, err);
	link_piece *pieces = p->target ? pieces_make(q->pieces, q->npieces, p->target, q->opt.emit, q->at, err) : NULL;
	compile_job job = { .at = q->at, .pieces = pieces, .npieces = q->npieces };
	bool ok = pieces && (learn(p, q, pieces) || no_memory(err, q->at));
	ok = ok && cuda_make(p, q, &job, CPTX_COMPILER_NVJITLINK, by_driver, err);
	pieces_free(pieces, q->npieces);
	return ok;
}
