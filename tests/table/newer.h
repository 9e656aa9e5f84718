/* SPDX-License-Identifier: MIT */
/* The test that tells what the ptxas found could not judge: included by the programs that ask about versions it may not
 * read. */
#ifndef NEWER_H
#define NEWER_H

#include "judge.h"
#include "test.h"

START_TEST(newer_versions_are_judged)
{
	unsigned version, left = judge_left(&version);

	if (left && judge_newest() < ARCH_NEWEST) {
		skip("%u questions about PTX 9.1 and later need ptxas of CUDA %u.%u or later; CPTX_PTXAS=... names one", left,
		     version / 10 + 4, version % 10);
		return;
	}
	ck_assert_uint_eq(left, 0);
}
END_TEST

#endif
