/* SPDX-License-Identifier: MIT */
/* Which part of a common work is a process's, as MPI, Slurm and CPTX_SHARE say. */
#include "../test.h"
#include "../whole.h"

START_TEST(parts_of_a_common_work)
{
	static const struct {
		const char *set[8];
		uint32_t part, parts;
	} good[] = { { { NULL }, 0, 1 },
		         { { "OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "8" }, 3, 8 },
		         { { "PMI_RANK", "1", "PMI_SIZE", "2" }, 1, 2 },
		         { { "SLURM_PROCID", "1", "SLURM_NTASKS", "4" }, 1, 4 },
		         { { "SLURM_ARRAY_TASK_ID", "7", "SLURM_ARRAY_TASK_COUNT", "10", "SLURM_ARRAY_TASK_MIN", "5" }, 2, 10 },
		         { { "SLURM_ARRAY_TASK_ID", "1", "SLURM_ARRAY_TASK_COUNT", "2", "SLURM_PROCID", "2", "SLURM_NTASKS", "3" },
		           5,
		           6 },
		         { { "CPTX_SHARE", "5/6", "PMI_RANK", "1", "PMI_SIZE", "2" }, 5, 6 } },
	  bad[] = { { { "CPTX_SHARE", "6/6" }, 0, 0 },
		        { { "CPTX_SHARE", "one" }, 0, 0 },
		        { { "PMI_RANK", "-1", "PMI_SIZE", "2" }, 0, 0 },
		        { { "PMI_RANK", "2", "PMI_SIZE", "2" }, 0, 0 } };
	uint32_t part, parts;

	for (size_t i = 0; i < sizeof good / sizeof *good + sizeof bad / sizeof *bad; i++) {
		const bool is_good = i < sizeof good / sizeof *good;
		const char *const *set = is_good ? good[i].set : bad[i - sizeof good / sizeof *good].set;
		for (int j = 0; j < 8 && set[j]; j += 2)
			setenv(set[j], set[j + 1], 1);
		cptx_error e = { 0 };
		ck_assert_msg(cptx_tune_share(&part, &parts, &e) == is_good, "case %zu: %s", i, e.text);
		if (is_good)
			ck_assert_msg(part == good[i].part && parts == good[i].parts, "case %zu: %u of %u", i, part, parts);
		for (int j = 0; j < 8 && set[j]; j += 2)
			unsetenv(set[j]);
	}
}
END_TEST

/* What tests divide by: each piece of the work is of one process, and each process counts its own. */
START_TEST(pieces_are_tried_once)
{
	enum { PARTS = 3, FIRST = 7, PIECES = 100 };
	unsigned tried[FIRST + PIECES] = { 0 };

	setenv("CPTX_WHOLE", "1", 1);
	for (unsigned part = 0; part < PARTS; part++) {
		char share[8];
		uint64_t mine = 0;
		snprintf(share, sizeof share, "%u/%d", part, PARTS);
		setenv("CPTX_SHARE", share, 1);
		for (unsigned i = FIRST; i < FIRST + PIECES; i++) {
			ck_assert(is_my_part(i) == is_my_share(i) && is_tried(i, 50) == is_my_share(i));
			tried[i] += is_my_share(i), mine += is_my_share(i);
		}
		ck_assert_uint_eq(count_my_share(FIRST, PIECES), mine);
	}
	unsetenv("CPTX_WHOLE");
	for (unsigned i = FIRST; i < FIRST + PIECES; i++)
		ck_assert(tried[i] == 1 && is_my_part(i) && is_tried(i, 50) == (i % 50 == 0));
	unsetenv("CPTX_SHARE");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("tune_share");
	TCase *c = test_case(s, "tune_share");

	for (size_t i = 0; i < 8; i++) /* who runs this test may be a rank himself */
		unsetenv((const char *[]){ "CPTX_SHARE", "CPTX_WHOLE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID",
		                           "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_MIN" }[i]);
	tcase_add_test(c, parts_of_a_common_work);
	tcase_add_test(c, pieces_are_tried_once);
	return test_main("tune_share", s);
}
