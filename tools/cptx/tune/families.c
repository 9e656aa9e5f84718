/* SPDX-License-Identifier: MIT */
#include "reference/number.h"
#include "tune/tune.h"

#include <cptx/attention.h>
#include <cptx/gemm.h>
#include <cptx/rows.h>

#include <stdio.h>
#include <string.h>

static const cptx_target *target_of(const cptx_device *dev)
{
	const char *name = cptx_device_get_info(dev)->target;

	return name ? cptx_target_find(name) : NULL;
}

bool tune_family_dims(const tune_family *f, const char *sizes, uint64_t dims[TUNE_MOST_DIMS], cptx_error *err)
{
	for (uint32_t n = f->fewest; n <= f->most; n++)
		if (number_dims(sizes, dims, n, UINT32_MAX))
			return true;
	err->code = CPTX_E_ARG;
	snprintf(err->text, sizeof err->text, "%s: '%s' is no size; expected %s", f->name, sizes, f->sizes);
	return false;
}

static bool measure_gemm(cptx_tune *db, cptx_device *dev, const char *text, const char *sizes, const cptx_tune_use *use,
                         cptx_tune_done *done, cptx_error *err)
{
	cptx_gemm_opt o = { .mma = cptx_gemm_mma_of(target_of(dev)), .a = CPTX_BF16, .b = CPTX_BF16, .out = CPTX_F32 };
	uint64_t d[TUNE_MOST_DIMS] = { 0, 0, 0, 1 };

	if (!tune_family_dims(tune_family_find("gemm"), sizes, d, err))
		return false;
	if (text && !cptx_gemm_options_read(text, &o, err))
		return false;
	o.batched = o.batched || d[3] > 1;
	const cptx_gemm_problem p = { .m = d[0], .n = d[1], .k = d[2], .batch = (uint32_t)d[3] };
	return cptx_gemm_measure(db, dev, &o, &p, use, done, err);
}

static bool measure_attention(cptx_tune *db, cptx_device *dev, const char *text, const char *sizes, const cptx_tune_use *use,
                              cptx_tune_done *done, cptx_error *err)
{
	cptx_attention_opt o = { .mma = cptx_attention_mma_of(target_of(dev)), .in = CPTX_BF16, .dim = 128 };
	uint64_t d[TUNE_MOST_DIMS];

	if (!tune_family_dims(tune_family_find("attention"), sizes, d, err))
		return false;
	if (text && !cptx_attention_options_read(text, &o, err))
		return false;
	const cptx_attention_problem p = { .batch = (uint32_t)d[0],
		                               .heads = (uint32_t)d[1],
		                               .kv_heads = (uint32_t)d[2],
		                               .queries = (uint32_t)d[3],
		                               .keys = (uint32_t)d[4],
		                               .softcap = o.softcap ? 30 : 0 };
	return cptx_attention_measure(db, dev, &o, &p, use, done, err);
}

static bool measure_rows(cptx_tune *db, cptx_device *dev, const char *text, const char *sizes, const cptx_tune_use *use,
                         cptx_tune_done *done, cptx_error *err)
{
	cptx_rows_opt o = { .kernel = CPTX_ROWS_RMS_NORM, .in = CPTX_BF16 };
	uint64_t d[TUNE_MOST_DIMS];

	if (!tune_family_dims(tune_family_find("rows"), sizes, d, err))
		return false;
	if (text && !cptx_rows_options_read(text, &o, err))
		return false;
	o.n = (uint32_t)d[1];
	return cptx_rows_measure(db, dev, &o, (uint32_t)d[0], use, done, err);
}

const tune_family *tune_family_find(const char *name)
{
	static const tune_family families[] = {
		{ "gemm", "MxNxK or MxNxKxBATCH, as in 4096x4096x4096", 3, 4, measure_gemm },
		{ "attention", "BATCHxHEADSxKV_HEADSxQUERIESxKEYS, as in 1x64x8x4096x4096", 5, 5, measure_attention },
		{ "rows", "ROWSxCOLUMNS, as in 4096x8192", 2, 2, measure_rows },
	};

	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		if (!strcmp(families[i].name, name))
			return &families[i];
	return NULL;
}
