/* SPDX-License-Identifier: MIT */
/* Which part of a common work is this process's, and what the environment says of measuring. */
#include "base/base.h"

#include <cptx/tune.h>

#include <stdio.h>

/* A number from a variable; false, with ARG, if it is none. */
static bool read_number(const char *name, uint32_t *to, cptx_error *err)
{
	const char *text = getenv(name);
	uint64_t v = 0;
	const char *p = text;

	for (; p && *p >= '0' && *p <= '9' && v <= UINT32_MAX; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	if (!p || p == text || *p || v > UINT32_MAX)
		return error_set(err, CPTX_E_ARG, NOWHERE, "%s is \"%s\"; expected a number", name, text ? text : "");
	*to = (uint32_t)v;
	return true;
}

static bool is_set(const char *name) { return getenv(name) && *getenv(name); }

/* The rank among the processes that one command started. */
static bool rank_of(uint32_t *part, uint32_t *parts, cptx_error *err)
{
	static const char *const starters[][2] = { { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE" },
		                                       { "PMI_RANK", "PMI_SIZE" },
		                                       { "SLURM_PROCID", "SLURM_NTASKS" } };

	for (size_t i = 0; i < ARRAY_LEN(starters); i++)
		if (is_set(starters[i][0]) && is_set(starters[i][1]))
			return read_number(starters[i][0], part, err) && read_number(starters[i][1], parts, err);
	return true;
}

/* The task among those of a Slurm array. */
static bool task_of(uint32_t *part, uint32_t *parts, cptx_error *err)
{
	uint32_t least = 0, step = 1;

	if (!is_set("SLURM_ARRAY_TASK_ID") || !is_set("SLURM_ARRAY_TASK_COUNT"))
		return true;
	if (!read_number("SLURM_ARRAY_TASK_ID", part, err) || !read_number("SLURM_ARRAY_TASK_COUNT", parts, err) ||
	    (is_set("SLURM_ARRAY_TASK_MIN") && !read_number("SLURM_ARRAY_TASK_MIN", &least, err)) ||
	    (is_set("SLURM_ARRAY_TASK_STEP") && !read_number("SLURM_ARRAY_TASK_STEP", &step, err)))
		return false;
	*part = *part >= least && step ? (*part - least) / step : UINT32_MAX;
	return true;
}

static bool read_share(uint32_t *part, uint32_t *parts, cptx_error *err)
{
	const char *text = getenv("CPTX_SHARE");
	char end;

	return sscanf(text, "%u/%u%c", part, parts, &end) == 2 ||
	       error_set(err, CPTX_E_ARG, NOWHERE, "CPTX_SHARE is \"%s\"; expected a part and how many there are, as in 0/4",
	                 text);
}

bool cptx_tune_share(uint32_t *part, uint32_t *parts, cptx_error *err)
{
	cptx_error own = { .code = CPTX_OK };
	uint32_t rank = 0, ranks = 1, task = 0, tasks = 1;

	err = err ? err : &own;
	if (!IS_GIVEN(part, "place for the part", NOWHERE, err) || !IS_GIVEN(parts, "place for the parts", NOWHERE, err))
		return false;
	*part = 0, *parts = 1;
	if (is_set("CPTX_SHARE") ? !read_share(&rank, &ranks, err)
	                         : !rank_of(&rank, &ranks, err) || !task_of(&task, &tasks, err))
		return false;
	if (rank >= ranks || task >= tasks || (uint64_t)ranks * tasks > UINT32_MAX)
		return error_set(err, CPTX_E_ARG, NOWHERE, "the environment says part %u of %u, task %u of %u; parts count from 0",
		                 rank, ranks, task, tasks);
	*part = task * ranks + rank, *parts = tasks * ranks;
	return true;
}

enum cptx_tune_policy cptx_tune_policy_of(enum cptx_tune_policy given, cptx_error *err)
{
	static const char *const words[] = { [CPTX_TUNE_AS_SET] = "",
		                                 [CPTX_TUNE_OFF] = "off",
		                                 [CPTX_TUNE_NEVER] = "never",
		                                 [CPTX_TUNE_ONCE] = "once",
		                                 [CPTX_TUNE_ALWAYS] = "always" };
	const char *text = getenv("CPTX_TUNE");

	if (!may_go(err))
		return CPTX_TUNE_AS_SET;
	if (given != CPTX_TUNE_AS_SET || !text || !*text)
		return given == CPTX_TUNE_AS_SET ? CPTX_TUNE_NEVER : given;
	for (int i = CPTX_TUNE_OFF; i <= CPTX_TUNE_ALWAYS; i++)
		if (!strcmp(text, words[i]))
			return (enum cptx_tune_policy)i;
	error_set(err, CPTX_E_ARG, NOWHERE, "CPTX_TUNE is \"%s\"; it may be off, never, once or always", text);
	return CPTX_TUNE_AS_SET;
}
