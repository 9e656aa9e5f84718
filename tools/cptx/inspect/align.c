/* SPDX-License-Identifier: MIT */
/*
 * The shortest edit script in linear space (E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", 1986): search
 * from both ends until the two meet, then both halves.  Element i of one and j of the other lie on diagonal i - j.
 */
#include "inspect/align.h"

#include <stdlib.h>

static const uint64_t most_steps = UINT64_C(1) << 28; /* a few seconds */

typedef struct search {
	const uint32_t *a, *b;
	ptrdiff_t *ahead, *back; /* how far each diagonal got, from both ends */
	uint64_t steps;
	bool rough;
	bool *in_a, *in_b; /* elements that have an equal */
} search;

typedef struct box {
	ptrdiff_t a, na, b, nb; /* from, behind */
} box;

/* Where both searches meet: the point (*x, *y) that an optimal path passes.  False: too many steps. */
static bool middle(search *s, box q, ptrdiff_t *x, ptrdiff_t *y)
{
	ptrdiff_t n = q.na - q.a, m = q.nb - q.b, delta = n - m, most = (n + m + 1) / 2;
	ptrdiff_t *f = s->ahead + m + 1, *r = s->back + m + 1; /* diagonals -m - 1 to n + 1 */

	f[1] = 0, r[delta - 1] = n;
	for (ptrdiff_t d = 0; d <= most; d++) {
		ptrdiff_t low = d > m ? -(2 * m - d) : -d, high = d > n ? 2 * n - d : d;
		for (ptrdiff_t k = low; k <= high; k += 2) {
			ptrdiff_t i = k == -d || (k != d && f[k - 1] < f[k + 1]) ? f[k + 1] : f[k - 1] + 1, j = i - k;
			while (i < n && j < m && s->a[q.a + i] == s->b[q.b + j])
				i++, j++, s->steps++;
			f[k] = i;
			if (delta % 2 && k >= delta - (d - 1) && k <= delta + (d - 1) && f[k] >= r[k]) {
				*x = q.a + i, *y = q.b + j;
				return true;
			}
		}
		low = d > n ? delta - (2 * n - d) : delta - d, high = d > m ? delta + 2 * m - d : delta + d;
		for (ptrdiff_t k = low; k <= high; k += 2) {
			ptrdiff_t i = k == delta + d || (k != delta - d && r[k - 1] < r[k + 1]) ? r[k - 1] : r[k + 1] - 1, j = i - k;
			while (i > 0 && j > 0 && s->a[q.a + i - 1] == s->b[q.b + j - 1])
				i--, j--, s->steps++;
			r[k] = i;
			if (delta % 2 == 0 && k >= -d && k <= d && f[k] >= r[k]) {
				*x = q.a + i, *y = q.b + j;
				return true;
			}
		}
		s->steps += (uint64_t)d;
		if (s->steps > most_steps)
			return false;
	}
	return false;
}

static void compare(search *s, box q)
{
	ptrdiff_t x, y;

	while (q.a < q.na && q.b < q.nb && s->a[q.a] == s->b[q.b])
		s->in_a[q.a++] = s->in_b[q.b++] = true;
	while (q.a < q.na && q.b < q.nb && s->a[q.na - 1] == s->b[q.nb - 1])
		s->in_a[--q.na] = s->in_b[--q.nb] = true;
	if (q.a == q.na || q.b == q.nb)
		return;
	if (s->steps > most_steps || !middle(s, q, &x, &y)) {
		s->rough = true;
		return;
	}
	compare(s, (box){ q.a, x, q.b, y });
	compare(s, (box){ x, q.na, y, q.nb });
}

align_pair *align(const uint32_t *a, size_t na, const uint32_t *b, size_t nb, size_t *n, bool *rough)
{
	size_t diagonals = na + nb + 5, i = 0, j = 0;
	search s = { .a = a, .b = b };
	align_pair *p = malloc((na + nb + 1) * sizeof *p);

	s.ahead = calloc(diagonals, sizeof *s.ahead), s.back = calloc(diagonals, sizeof *s.back);
	s.in_a = calloc(na + 1, 1), s.in_b = calloc(nb + 1, 1);
	*n = 0;
	if (p && s.ahead && s.back && s.in_a && s.in_b) {
		compare(&s, (box){ 0, (ptrdiff_t)na, 0, (ptrdiff_t)nb });
		while (i < na || j < nb) {
			if (i < na && !s.in_a[i])
				p[(*n)++] = (align_pair){ i++, SIZE_MAX };
			else if (j < nb && !s.in_b[j])
				p[(*n)++] = (align_pair){ SIZE_MAX, j++ };
			else
				p[(*n)++] = (align_pair){ i++, j++ };
		}
		*rough |= s.rough;
	} else {
		free(p);
		p = NULL;
	}
	free(s.ahead), free(s.back), free(s.in_a), free(s.in_b);
	return p;
}
