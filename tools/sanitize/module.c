/* SPDX-License-Identifier: MIT */
/* Images of kernels, the kernels and variables in them, and what stands for these in the host program. */
#include "record.h"

#include <stdio.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- images ---- */

static san_module *module_new(const void *image)
{
	san_module *m = (san_module *)calloc(1, sizeof *m);

	if (!m)
		return NULL;
	m->image = image;
	m->next = san.modules;
	san.modules = m;
	return m;
}

/* Reads a text, which then knows the parameters of its kernels. */
static int read_text(san_module *m)
{
	if (*m->name) /* as it was recorded */
		san.texts++;
	else if (++san.texts == 1)
		snprintf(m->name, sizeof m->name, "program.ptx");
	else
		snprintf(m->name, sizeof m->name, "program.%u.ptx", san.texts);
	m->parsed = cptx_parse(m->text, m->size, CPTX_OPT(cptx_parse_opt, .name = m->name));
	if (!m->parsed)
		return SAN_MEMORY;
	const cptx_error *bad = cptx_module_error(m->parsed);
	if (bad) {
		san_say("%s", bad->text);
		return SAN_PTX;
	}
	/* what the emulator works out of the parameters is asked of a frozen module */
	return cptx_module_freeze(m->parsed) ? SAN_OK : SAN_PTX;
}

/* Puts a text, or those of all parts joined, onto the device. */
static int load(san_module *m)
{
	const cptx_site nowhere = { 0 }; /* no line of this library belongs into a message */
	cptx_error err = { .code = CPTX_OK };
	size_t n = 0;

	for (const san_module *part = m->part ? m->part : m; part; part = part->next_part)
		n++;
	cptx_link_input *in = (cptx_link_input *)calloc(n, sizeof *in);
	if (!in)
		return SAN_MEMORY;
	for (san_module *part = m->part ? m->part : m; part; part = part->next_part)
		in[--n] = (cptx_link_input){ .data = part->text, .size = part->size, .name = part->name };
	for (const san_module *part = m->part ? m->part : m; part; part = part->next_part)
		n++;
	m->program[san.device] =
		cptx_device_link_(nowhere, san.dev, in, n, CPTX_OPT(cptx_load_opt, .name = *m->name ? m->name : NULL), &err);
	free(in);
	return m->program[san.device] ? SAN_OK : san_failed("loading a program's PTX", &err);
}

/* The host program reaches a managed variable through a pointer, which gets the address when the image is loaded. */
static int place_managed(const san_module *m)
{
	int e = SAN_OK;

	for (san_var *v = san.vars; v && !e; v = v->next)
		if (v->module == m && v->managed && !(e = san_global(m, v->name, &v->at[san.device], NULL)))
			memcpy((void *)v->managed, &v->at[san.device], sizeof v->at[san.device]);
	return e;
}

/* Adds a text to those that a module is linked of, and takes it over.  Name NULL: the next one that is free. */
static int add_part(san_module *m, const char *name, char *text, size_t size)
{
	san_module *part = text ? module_new(NULL) : NULL;

	if (!part) {
		free(text);
		return SAN_MEMORY;
	}
	part->text = text, part->size = size;
	snprintf(part->name, sizeof part->name, "%s", name ? name : "");
	part->next_part = m->part;
	m->part = part;
	return read_text(part);
}

/* Makes a part of each object with PTX, of those that nvcc -rdc=true linked, or of each text of a linker's image. */
static int split(san_module *m)
{
	size_t size, at = 0;
	int e = SAN_OK;

	for (const void *const *object = m->objects; object && *object && !e; object++) {
		char *text = san_fatbin_ptx(*object, san.info, &size);
		e = text ? add_part(m, NULL, text, size) : SAN_OK;
	}
	for (const char *text; !e && m->linked && (text = san_linked_text(m->linked, &at, &size));)
		e = add_part(m, NULL, strndup(text, size), size);
	return e;
}

int san_module_add(san_module *m, const char *name, const char *text, size_t size, bool joined)
{
	char *copy = strndup(text, size);

	if (!copy || joined)
		return add_part(m, name, copy, size);
	snprintf(m->name, sizeof m->name, "%s", name);
	m->text = copy, m->size = size;
	return SAN_OK;
}

static int find_text(san_module *m)
{
	const char *arch = san.info->target + 3;
	int e = SAN_OK;

	if (m->linked || !(m->text = san_fatbin_ptx(m->image, san.info, &m->size)))
		e = split(m);
	if (e || m->text || m->part)
		return e;
	san_say("the program holds no PTX that an emulated %s runs, or machine code alone: build it with nvcc -gencode "
	        "arch=compute_%s,code=compute_%s",
	        san.info->target, arch, arch);
	return SAN_NO_IMAGE;
}

/* A managed variable is one and the same for all devices. */
static void place_again(const san_module *m)
{
	for (const san_var *v = san.vars; v; v = v->next)
		for (int d = 0; v->module == m && v->managed && d < san.ndevice; d++)
			if (v->at[d]) {
				cptx_emu_place(san.dev, v->name, v->at[d], NULL);
				break;
			}
}

int san_module_ready(san_module *m)
{
	if (m->program[san.device] || m->failed)
		return m->failed;
	if (!m->text && !m->part)
		m->failed = find_text(m);
	if (!m->failed && m->text && !m->parsed)
		m->failed = read_text(m);
	place_again(m);
	if (!m->failed)
		m->failed = load(m);
	if (!m->failed)
		m->failed = place_managed(m);
	if (m->failed)
		san_unchecked(SAN_UNCHECKED_MODULE, m->name, san_error_of(m->failed)->text);
	return m->failed;
}

int san_module_load(const void *image, san_module **out)
{
	if (!image || !out)
		return SAN_VALUE;
	if (san_forbidden())
		return SAN_CAPTURE;
	san_module *m = module_new(image);
	int e;

	*out = NULL;
	if (!m)
		return SAN_MEMORY;
	if (san_is_linked(image)) {
		m->linked = image;
	} else if (!san_is_fatbin(image)) {
		m->size = strncmp((const char *)image, "\177ELF", 4) ? strlen((const char *)image) : 0;
		if (!m->size) {
			san_say("machine code cannot be emulated: load PTX, as nvcc -ptx makes it");
			m->failed = SAN_NO_IMAGE;
			san_unchecked(SAN_UNCHECKED_MODULE, "", san_error_of(SAN_NO_IMAGE)->text);
		} else if ((m->text = (char *)malloc(m->size + 1))) {
			memcpy(m->text, image, m->size + 1);
		} else {
			m->failed = SAN_MEMORY;
		}
	}
	e = san_module_ready(m);
	m->linked = NULL; /* the program's, who may free it now */
	if (e)
		san_module_unload(m);
	else
		*out = m;
	return e;
}

/* Frees what belongs to a module in a list whose elements begin with a link. */
#define DROP(type, list, m)                                                                                                 \
	for (type **p = &(list); *p;) {                                                                                         \
		type *dropped = *p;                                                                                                 \
		if (dropped->module != (m)) {                                                                                       \
			p = &dropped->next;                                                                                             \
			continue;                                                                                                       \
		}                                                                                                                   \
		*p = dropped->next;                                                                                                 \
		free(dropped->name);                                                                                                \
		free(dropped);                                                                                                      \
	}

void san_module_unload(san_module *m)
{
	san_module **link = &san.modules;

	while (*link && *link != m)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = m->next;
	san_record_unloaded(m);
	while (m->part) {
		san_module *part = m->part;
		m->part = part->next_part;
		san_module_unload(part);
	}
	DROP(san_kernel, san.kernels, m)
	DROP(san_var, san.vars, m)
	for (int d = 0; d < SAN_DEVICES; d++)
		cptx_program_destroy(m->program[d]);
	cptx_module_destroy(m->parsed);
	san_lines_free(m);
	free(m->text);
	free(m);
}

/* ---- what stands for something in the host program ---- */

san_module *san_register(const void *image, const void *const *parts)
{
	san_module *m = module_new(image);

	if (m)
		m->objects = parts;
	return m;
}

static san_kernel *kernel_new(san_module *m, const void *host, const char *name)
{
	san_kernel *k = (san_kernel *)calloc(1, sizeof *k);

	if (!k || !(k->name = strdup(name))) {
		free(k);
		return NULL;
	}
	k->module = m;
	k->host = host;
	k->next = san.kernels;
	san.kernels = k;
	return k;
}

bool san_register_kernel(san_module *m, const void *host, const char *name) { return kernel_new(m, host, name) != NULL; }

bool san_register_var(san_module *m, const void *host, const char *name, size_t size, void **managed)
{
	san_var *v = (san_var *)calloc(1, sizeof *v);

	if (!v || !(v->name = strdup(name))) {
		free(v);
		return false;
	}
	v->module = m;
	v->host = host;
	v->size = size;
	v->managed = managed;
	v->next = san.vars;
	san.vars = v;
	return true;
}

/* ---- kernels ---- */

san_kernel *san_kernel_of(const void *handle)
{
	for (san_kernel *k = san.kernels; k && handle; k = k->next)
		if (k->host == handle || k == handle)
			return k;
	return NULL;
}

bool san_kernel_lives(const san_kernel *k)
{
	if (san_kernel_of(k) == k && k)
		return true;
	san_say(k ? "the kernel's module was unloaded, or it is no kernel" : "the kernel is NULL");
	return false;
}

int san_kernel_ready(san_kernel *k)
{
	int e = san_module_ready(k->module);

	if (e || k->found)
		return e;
	k->in = k->module->part ? k->module->part : k->module;
	while (k->in && !(k->found = cptx_module_kernel(k->in->parsed, k->name, &k->info)))
		k->in = k->in->next_part;
	return k->found ? SAN_OK : SAN_FUNCTION;
}

int san_kernel_named(san_module *m, const char *name, san_kernel **out)
{
	san_kernel *k = san.kernels;

	while (k && (k->module != m || strcmp(k->name, name)))
		k = k->next;
	if (!k && !(k = kernel_new(m, NULL, name)))
		return SAN_MEMORY;
	*out = k;
	return san_kernel_ready(k) ? SAN_NOT_FOUND : SAN_OK;
}

int san_resources(san_kernel *k, uint32_t threads, uint32_t smem, cptx_resources *out)
{
	cptx_error err = { .code = CPTX_OK };
	int e = san_kernel_ready(k);

	if (!e && !cptx_program_resources(k->module->program[san.device], k->name, threads, smem, out, &err))
		e = san_failed(k->name, &err);
	return e;
}

int san_occupancy(int *blocks, san_kernel *k, int threads, size_t smem)
{
	cptx_resources r;
	int e = threads < 1 ? SAN_VALUE : san_resources(k, (uint32_t)threads, (uint32_t)smem, &r);

	if (!e)
		*blocks = (int)r.ctas_per_sm;
	return e;
}

/* Groups of multiprocessors, whose borders clusters do not cross on a GPU, are not modelled. */
int san_active_clusters(int *clusters, san_kernel *k, const san_shape *shape)
{
	uint64_t threads = 1, ctas = 1;
	int blocks = 0;

	for (unsigned i = 0; i < 3; i++)
		threads *= shape->block[i], ctas *= shape->cluster[i] ? shape->cluster[i] : 1;
	int e = threads > INT_MAX || !san.info->clusters ? SAN_VALUE : san_occupancy(&blocks, k, (int)threads, shape->smem);
	if (!e)
		*clusters = (int)((uint64_t)blocks * san.info->sms / ctas);
	return e;
}

/* ---- variables ---- */

int san_global(const san_module *m, const char *name, uint64_t *at, size_t *size)
{
	cptx_error err = { .code = CPTX_OK };

	*at = cptx_program_global(m->program[san.device], name, size, &err);
	return *at ? SAN_OK : SAN_NOT_FOUND;
}

int san_var_at(const void *symbol, san_var **out)
{
	san_var *v = san.vars;
	size_t size;
	int e;

	while (v && v->host != symbol)
		v = v->next;
	if (!v)
		return SAN_SYMBOL;
	*out = v;
	if ((e = san_module_ready(v->module)))
		return e;
	uint64_t *at = &v->at[san.device];
	return *at || !san_global(v->module, v->name, at, &size) ? SAN_OK : SAN_SYMBOL;
}
