/* SPDX-License-Identifier: MIT */
/* Shapes of launches are checked here against what is known about the kernel and the device. */
#include "ir/launch.h"

#include "ir/ir.h"

enum { MAX_CTA_THREADS = 1024, MAX_CTA_Z = 64, MAX_GRID_YZ = 65535, MAX_GRID_X = 0x7fffffff, MAX_CLUSTER = 16 };

bool launch_reject(const char *kernel, enum cptx_code code, cptx_site at, cptx_error *err, const char *format, ...)
{
	char text[1024], shown[NAME_SHOWN + 1];
	va_list ap;

	va_start(ap, format);
	text_message(text, sizeof text, format, ap);
	va_end(ap);
	return error_set(err, code, at, "kernel %s: %s", name_shown(kernel, shown), text);
}

uint64_t launch_volume(const uint32_t d[3])
{
	uint64_t area = (uint64_t)d[0] * d[1];

	return d[2] && area > UINT64_MAX / d[2] ? UINT64_MAX : area * d[2];
}

static bool dims(uint32_t out[3], const uint32_t in[3], const char *what, const cptx_kernel_info *k, cptx_site at,
                 cptx_error *err)
{
	if (!in[0] || (!in[1] && in[2])) {
		launch_reject(k->name, CPTX_E_ARG, at, err, "the %s is %u x %u x %u; x must not be 0, nor y before z", what,
		              (unsigned)in[0], (unsigned)in[1], (unsigned)in[2]);
		return false;
	}
	out[0] = in[0];
	out[1] = MAX(in[1], 1u);
	out[2] = MAX(in[2], 1u);
	return true;
}

bool launch_set_grid(launch_shape *s, const uint32_t grid[3], const cptx_kernel_info *k, cptx_site at, cptx_error *err)
{
	const uint32_t *c = s->cluster;
	uint32_t g[3];

	if (!dims(g, grid, "grid", k, at, err))
		return false;
	for (int i = 0; c[0] && k->grid_of_clusters && i < 3; i++)
		if ((uint64_t)g[i] * c[i] > (i ? MAX_GRID_YZ : MAX_GRID_X))
			return launch_reject(k->name, CPTX_E_LIMIT, at, err,
			                     "the grid is %u x %u x %u clusters of %u x %u x %u; the limit is %d x %d x %d CTAs", g[0],
			                     g[1], g[2], c[0], c[1], c[2], MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ);
	if (g[0] > MAX_GRID_X || g[1] > MAX_GRID_YZ || g[2] > MAX_GRID_YZ)
		return launch_reject(k->name, CPTX_E_LIMIT, at, err, "the grid is %u x %u x %u; the limit is %d x %d x %d", g[0],
		                     g[1], g[2], MAX_GRID_X, MAX_GRID_YZ, MAX_GRID_YZ);
	if (c[0] && !k->grid_of_clusters && (g[0] % c[0] || g[1] % c[1] || g[2] % c[2]))
		return launch_reject(k->name, CPTX_E_ARG, at, err,
		                     "the grid is %u x %u x %u, no multiple of the cluster, %u x %u x %u", g[0], g[1], g[2], c[0],
		                     c[1], c[2]);
	memcpy(s->grid, g, sizeof g);
	return true;
}

static bool set_block(launch_shape *s, const uint32_t block[3], const launch_limits *l, cptx_site at, cptx_error *err)
{
	const cptx_kernel_info *k = l->kernel;
	const uint32_t *want = k->bounds.block, *most = k->bounds.max_block;
	uint32_t b[3], exact[3];

	if (!block[0] && !block[1] && !block[2]) {
		if (!want[0])
			return launch_reject(k->name, CPTX_E_ARG, at, err,
			                     "no block is given, and the kernel has no .reqntid to take it from");
		block = want;
	}
	if (!dims(b, block, "block", k, at, err))
		return false;
	memcpy(s->block, b, sizeof b);
	if (want[0] && dims(exact, want, ".reqntid", k, at, err) && memcmp(exact, b, sizeof b))
		return launch_reject(k->name, CPTX_E_ARG, at, err, "the block is %u x %u x %u, but its .reqntid is %u x %u x %u",
		                     b[0], b[1], b[2], exact[0], exact[1], exact[2]);
	if (launch_volume(b) > MAX_CTA_THREADS || b[2] > MAX_CTA_Z)
		return launch_reject(k->name, CPTX_E_LIMIT, at, err,
		                     "a block of %u x %u x %u; the limit is %d threads, %d of them in z", b[0], b[1], b[2],
		                     MAX_CTA_THREADS, MAX_CTA_Z);
	if (most[0] && dims(exact, most, ".maxntid", k, at, err) && launch_volume(b) > launch_volume(exact))
		return launch_reject(k->name, CPTX_E_LIMIT, at, err, "a block of %llu threads, but its .maxntid allows %llu",
		                     (unsigned long long)launch_volume(b), (unsigned long long)launch_volume(exact));
	if (l->max_threads && launch_volume(b) > l->max_threads)
		return launch_reject(k->name, CPTX_E_LIMIT, at, err,
		                     "a block of %llu threads, but its %u registers per thread allow %u",
		                     (unsigned long long)launch_volume(b), l->regs, l->max_threads);
	return true;
}

static bool set_cluster(launch_shape *s, const uint32_t cluster[3], const launch_limits *l, cptx_site at, cptx_error *err)
{
	const cptx_kernel_info *k = l->kernel;
	const uint32_t *want = k->bounds.cluster;
	uint32_t c[3], exact[3], rank = k->bounds.max_cluster_rank;

	if (!cluster[0] && !cluster[1] && !cluster[2])
		cluster = want;
	if (!cluster[0] && !cluster[1] && !cluster[2])
		return true;
	if (!dims(c, cluster, "cluster", k, at, err))
		return false;
	if (want[0] && dims(exact, want, ".reqnctapercluster", k, at, err) && memcmp(exact, c, sizeof c))
		return launch_reject(k->name, CPTX_E_ARG, at, err,
		                     "the cluster is %u x %u x %u, but its .reqnctapercluster is %u x %u x %u", c[0], c[1], c[2],
		                     exact[0], exact[1], exact[2]);
	if (!l->clusters)
		return launch_reject(k->name, CPTX_E_TARGET, at, err,
		                     "%s and its driver have no clusters; they need compute capability 9.0 and "
		                     "a driver of CUDA 11.8",
		                     l->device);
	if (launch_volume(c) > (rank ? MIN(rank, (uint32_t)MAX_CLUSTER) : MAX_CLUSTER))
		return launch_reject(k->name, CPTX_E_LIMIT, at, err, "a cluster of %llu CTAs; the limit is %u%s",
		                     (unsigned long long)launch_volume(c), rank ? MIN(rank, (uint32_t)MAX_CLUSTER) : MAX_CLUSTER,
		                     rank && rank <= MAX_CLUSTER ? ", its .maxclusterrank" : "");
	memcpy(s->cluster, c, sizeof c);
	return true;
}

static bool set_smem(launch_shape *s, uint32_t bytes, const launch_limits *l, cptx_site at, cptx_error *err)
{
	const cptx_kernel_info *k = l->kernel;

	if (bytes && bytes < k->dyn_smem)
		return launch_reject(k->name, CPTX_E_ARG, at, err, "%u bytes of dynamic shared memory, but it laid out %u", bytes,
		                     k->dyn_smem);
	s->dyn_smem = bytes ? bytes : k->dyn_smem;
	if (s->dyn_smem <= l->smem_per_cta && l->static_smem <= l->smem_per_cta - s->dyn_smem)
		return true;
	return launch_reject(k->name, CPTX_E_LIMIT, at, err,
	                     "%u bytes of dynamic and %u of static shared memory, but a CTA of %s can have "
	                     "%u in all",
	                     s->dyn_smem, l->static_smem, l->device, l->smem_per_cta);
}

bool launch_set_shape(launch_shape *s, const launch_shape *want, const launch_limits *l, cptx_site at, cptx_error *err)
{
	*s = (launch_shape){ .cooperative = want->cooperative };
	return set_cluster(s, want->cluster, l, at, err) && launch_set_grid(s, want->grid, l->kernel, at, err) &&
	       set_block(s, want->block, l, at, err) && set_smem(s, want->dyn_smem, l, at, err);
}
