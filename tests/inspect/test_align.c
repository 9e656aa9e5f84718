/* SPDX-License-Identifier: MIT */
/* Alignments of short random sequences have the most equal pairs that there can be; of long ones, they end. */
#include "inspect/align.h"

#include "../sanitized.h"
#include "../test.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 12 };
static uint32_t rng_state = 1;
static uint32_t rng(void) { return rng_state = rng_state * 1664525u + 1013904223u, rng_state >> 8; }

/* How many elements are aligned; both sequences are there whole and in order. */
static size_t aligned(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, bool *rough)
{
	size_t n, i = 0, j = 0, equal = 0;
	align_pair *p = align(a, na, b, nb, &n, rough);

	ck_assert(p);
	for (size_t at = 0; at < n; at++) {
		bool both = p[at].a != SIZE_MAX && p[at].b != SIZE_MAX;
		if (p[at].a != SIZE_MAX)
			SURE(p[at].a == i++, "element %zu", i);
		if (p[at].b != SIZE_MAX)
			SURE(p[at].b == j++, "element %zu", j);
		SURE(!both || a[p[at].a] == b[p[at].b], "%zu and %zu", i, j);
		equal += both;
	}
	free(p);
	SURE(i == na && j == nb, "%zu of %zu, %zu of %zu", i, na, j, nb);
	return equal;
}

START_TEST(shortest)
{
	for (unsigned turn = 0; turn < SAMPLE_OF(20000, 2000); turn++) {
		uint32_t a[MOST], b[MOST], na = rng() % (MOST + 1), nb = rng() % (MOST + 1), letters = 1 + rng() % 5;
		size_t most[MOST + 1][MOST + 1];
		bool rough = false;
		memset(most, 0, sizeof most);
		for (unsigned i = 0; i < MOST; i++)
			a[i] = rng() % letters, b[i] = rng() % letters;
		for (unsigned i = na; i-- > 0;)
			for (unsigned j = nb; j-- > 0;) {
				size_t down = most[i + 1][j], right = most[i][j + 1];
				most[i][j] = a[i] == b[j] ? most[i + 1][j + 1] + 1 : down > right ? down : right;
			}
		SURE(aligned(a, na, b, nb, &rough) == most[0][0] && !rough, "turn %u", turn);
	}
}
END_TEST

/* What has nothing in common takes the longest; that it was given up is told. */
START_TEST(given_up)
{
	enum { LONG = 60000 };

	if (SAMPLE_OF(false, true)) {
		skip("a build without sanitizers, which gives up in a second and not in half a minute");
		return;
	}
	uint32_t *a = malloc(LONG * sizeof *a), *b = malloc(LONG * sizeof *b);
	bool rough = false;

	for (uint32_t i = 0; i < LONG; i++)
		a[i] = 2 * i, b[i] = 2 * i + 1;
	a[0] = b[0], a[LONG - 1] = b[LONG - 1];
	ck_assert_uint_eq(aligned(a, LONG, b, LONG, &rough), 2);
	ck_assert(rough);
	free(a), free(b);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("align");
	TCase *t = tcase_create("align");

	tcase_set_timeout(t, 60);
	tcase_add_test(t, shortest);
	tcase_add_test(t, given_up);
	suite_add_tcase(s, t);
	return test_main("inspect_align", s);
}
