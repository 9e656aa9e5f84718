/* SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "compile/link.h"
#include "compile/compile.h"

#include <stdio.h>
#include <stdlib.h>

static bool piece_text(link_piece *piece, const cptx_link_input *in, cptx_site at, cptx_error *err)
{
	const char *text = (const char *)in->data;

	piece->size = in->size;
	if (!text_end(text, &piece->size, piece->name, at, err))
		return false;
	piece->data = piece->copy = NEW_UNSET(char, piece->size + 1);
	if (!piece->copy)
		return error_set(err, CPTX_E_MEMORY, at, "out of memory");
	memcpy(piece->copy, in->data, piece->size);
	piece->copy[piece->size] = 0;
	return true;
}

static bool piece_make(link_piece *piece, const cptx_link_input *in, size_t i, const char *target, const cptx_emit_opt *emit,
                       cptx_site at, cptx_error *err)
{
	snprintf(piece->own_name, sizeof piece->own_name, "input %zu", i + 1);
	piece->name = in->name ? in->name : piece->own_name;
	if (in->module && in->data)
		return error_set(err, CPTX_E_ARG, at, "%s has a module and data, too; an input is one of them", piece->name);
	if (in->module) {
		piece->ptx = piece->printed = cptx_emit(in->module, target, emit, err);
		if (!piece->ptx)
			return error_set(err, CPTX_E_MEMORY, at, "out of memory");
		piece->kind = PIECE_PTX;
		piece->data = cptx_ptx_text(piece->ptx), piece->size = cptx_ptx_size(piece->ptx);
		return true;
	}
	if (!in->data || !in->size)
		return error_set(err, CPTX_E_ARG, at, "%s has neither a module nor data", piece->name);
	piece->kind = piece_kind(in->data, in->size);
	piece->data = in->data, piece->size = in->size;
	if ((piece->kind == PIECE_CUBIN || piece->kind == PIECE_OBJECT) && !elf_is_whole(in->data, in->size))
		return error_set(err, CPTX_E_ARG, at, "%s is damaged or cut short: it begins as an ELF file and is not one",
		                 piece->name);
	if (piece->kind == PIECE_CUBIN && !elf_is_object(in->data))
		return error_set(err, CPTX_E_ARG, at,
		                 "%s is a program, which nothing can be linked to; compile it as an object (.relocatable, --object; "
		                 "nvcc -rdc=true)",
		                 piece->name);
	return piece->kind != PIECE_PTX || piece_text(piece, in, at, err);
}

link_piece *pieces_make(const cptx_link_input *inputs, size_t n, const char *target, const cptx_emit_opt *emit, cptx_site at,
                        cptx_error *err)
{
	link_piece *pieces = NEW_ARRAY(link_piece, n);
	bool ok = pieces || error_set(err, CPTX_E_MEMORY, at, "out of memory");

	for (size_t i = 0; i < n && ok; i++)
		ok = piece_make(&pieces[i], &inputs[i], i, target, emit, at, err);
	if (ok)
		return pieces;
	pieces_free(pieces, n);
	return NULL;
}

void pieces_free(link_piece *pieces, size_t n)
{
	for (size_t i = 0; pieces && i < n; i++) {
		free(pieces[i].copy);
		cptx_ptx_destroy(pieces[i].printed);
	}
	free(pieces);
}

cptx_cubin *cptx_link_(cptx_site at, const cptx_link_input *inputs, size_t n, const cptx_compile_opt *opt, cptx_error *err)
{
	cptx_compile_opt by;

	if ((err && err->code != CPTX_OK) || !OPTIONS_READ(cptx_compile_opt, &by, opt, at, err))
		return NULL;
	if (!inputs || !n || !by.target) {
		error_set(err, CPTX_E_ARG, at, "%s",
		          !inputs || !n ? "there is nothing to link" : "linking needs the option .target");
		return NULL;
	}
	if (by.compiler != CPTX_COMPILER_AUTO && by.compiler != CPTX_COMPILER_NVJITLINK) {
		const char *name = cptx_compiler_name(by.compiler);
		error_set(err, CPTX_E_ARG, at, "%s does not link without a device; nvJitLink does",
		          name ? name : "what has no name");
		return NULL;
	}
	by.compiler = CPTX_COMPILER_NVJITLINK;
	link_piece *pieces = pieces_make(inputs, n, by.target, NULL, at, err);
	compile_job job = { .at = at, .pieces = pieces, .npieces = n };
	cptx_cubin *c = pieces ? job_compile(&job, &by, err) : NULL;
	pieces_free(pieces, n);
	return c;
}
