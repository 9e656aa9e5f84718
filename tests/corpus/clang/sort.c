/* SPDX-License-Identifier: MIT */
// Plain C for the target: recursion, pointers to pointers, floats and a weak function.
// archs: 70 75
// ptxas: -c

static void swap(float *a, float *b)
{
	float t = *a;
	*a = *b;
	*b = t;
}

void quicksort(float *v, int n)
{
	if (n < 2)
		return;
	int last = 0;
	swap(v, v + n / 2);
	for (int i = 1; i < n; ++i)
		if (v[i] < v[0])
			swap(v + ++last, v + i);
	swap(v, v + last);
	quicksort(v, last);
	quicksort(v + last + 1, n - last - 1);
}

__attribute__((weak)) int compare(const float *a, const float *b) { return (*a > *b) - (*a < *b); }

float *greatest(float **rows, int n, int m)
{
	float *best = rows[0];
	for (int i = 0; i < n; ++i)
		for (int j = 0; j < m; ++j)
			if (compare(&rows[i][j], best) > 0)
				best = &rows[i][j];
	return best;
}
