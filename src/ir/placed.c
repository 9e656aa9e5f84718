/* SPDX-License-Identifier: MIT */
/*
 * The bodies of a module in the order of its text.  Once some were removed, sums over runs of places (a binary indexed tree)
 * find the i-th remaining body, so that removing and finding take a logarithmic number of steps.
 */
#include "ir/ir.h"

static size_t lowest_bit(size_t j) { return j & (~j + 1); }

/* Entry j of the tree, from 1 on: the number of remaining bodies among the lowest_bit(j) bodies up to number j. */
static uint32_t sum_of(const cptx_module *m, size_t j)
{
	uint32_t n = m->placed[j - 1] != NULL;

	for (size_t i = j - 1, from = j - lowest_bit(j); i > from; i -= lowest_bit(i))
		n += m->left[i - 1];
	return n;
}

static bool plant(cptx_module *m)
{
	if (!arena_reserve(&m->a, &m->left, 0, &m->cap_left, sizeof *m->left, m->nplaced))
		return false;
	for (m->nleft = 0; m->nleft < m->nplaced; m->nleft++)
		m->left[m->nleft] = sum_of(m, m->nleft + 1);
	return true;
}

bool ir_place(cptx_module *m, cptx_kernel *k)
{
	k->place = (uint32_t)m->nplaced;
	m->placed[m->nplaced++] = k; /* ir_body_new reserved the room */
	if (!m->nleft)
		return true;
	if (!arena_push(&m->a, &m->left, m->nleft, &m->cap_left, sizeof *m->left))
		return false;
	m->left[m->nleft] = sum_of(m, m->nleft + 1);
	m->nleft++;
	return true;
}

bool ir_unplace(cptx_module *m, const cptx_kernel *k)
{
	if (!m->nleft && !plant(m))
		return false;
	m->placed[k->place] = NULL;
	for (size_t j = (size_t)k->place + 1; j <= m->nleft; j += lowest_bit(j))
		m->left[j - 1]--;
	return true;
}

cptx_kernel *cptx_module_body_at(const cptx_module *m, size_t i)
{
	size_t at = 0, step = 1;

	if (!m || !m->nleft)
		return m && i < m->nplaced ? m->placed[i] : NULL;
	while (2 * step <= m->nleft)
		step *= 2;
	for (; step; step /= 2)
		if (at + step <= m->nleft && m->left[at + step - 1] <= i) {
			at += step;
			i -= m->left[at - 1];
		}
	return at < m->nplaced ? m->placed[at] : NULL;
}
