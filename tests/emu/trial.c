/* SPDX-License-Identifier: MIT */
#include "trial.h"

static char *whole_text(const trial *t)
{
	static const char head[] =
		".version %s\n.target %s\n.address_size 64\n%s\n.visible .entry k(.param .u64 p)\n{\n"
		".reg .b32 %%r<64>;\n.reg .b64 %%rd<64>;\n.reg .f32 %%f<64>;\n.reg .f64 %%fd<16>;\n.reg .b16 %%h<32>;\n"
		"%s.reg .pred %%p<16>;\nld.param.u64 %%rd0, [p];\nmov.u32 %%r0, %%tid.x;\n%s\nret;\n}\n";
	size_t size = sizeof head + strlen(t->body) + (t->decls ? strlen(t->decls) : 0) + 200;
	char *s = malloc(size);
	bool wide = atoi(t->target + 3) >= 70 && (!t->version || atof(t->version) >= 8.3);

	ck_assert_ptr_nonnull(s);
	snprintf(s, size, head, t->version ? t->version : "9.0", t->target, t->decls ? t->decls : "",
	         wide ? ".reg .b128 %q<8>;\n" : "", t->body);
	return s;
}

static void collect(trial *t, const cptx_device *dev)
{
	const cptx_emu_finding *f;
	size_t n = 0;

	for (size_t i = 0; (f = cptx_emu_finding_at(dev, i)); i++) {
		if (i < sizeof t->found / sizeof *t->found)
			t->found[i] = f->code;
		n += (size_t)snprintf(t->message + n, sizeof t->message - n, "%s\n", f->text);
		n = n < sizeof t->message ? n : sizeof t->message - 1;
	}
	cptx_emu_get_counters(dev, &t->counters);
}

void trial_run(trial *t)
{
	char *text = t->text ? NULL : whole_text(t);
	const char *all = t->text ? t->text : text;
	cptx_device *dev = cptx_emu_open(t->target, &t->opt, &t->err);
	cptx_program *p = dev ? cptx_device_load_text(dev, all, strlen(all), NULL, &t->err) : NULL;
	uint64_t at = p && t->size ? cptx_mem_alloc(dev, t->size, &t->err) : 0;
	cptx_launch_opt opt = { .dyn_smem = t->dyn_smem, CPTX_ARGS(at) };
	cptx_error err = { 0 };

	memcpy(opt.grid, t->grid, sizeof opt.grid);
	memcpy(opt.block, t->block, sizeof opt.block);
	memcpy(opt.cluster, t->cluster, sizeof opt.cluster);
	opt.grid[0] += !opt.grid[0];
	opt.block[0] = opt.block[0] ? opt.block[0] : 32;
	if (at)
		cptx_mem_write(dev, at, t->data, t->size, &t->err);
	t->ok = p && cptx_launch_once(p, NULL, &opt, NULL, &t->err);
	if (at)
		cptx_mem_read(dev, t->data, at, t->size, &err);
	if (dev)
		collect(t, dev);
	cptx_program_destroy(p);
	cptx_device_close(dev);
	free(text);
}

bool trial_found(const trial *t, enum cptx_finding_code code)
{
	for (size_t i = 0; i < sizeof t->found / sizeof *t->found; i++)
		if (t->found[i] == code)
			return true;
	return false;
}

Suite *trial_tests(const char *name, const TTest *const *tests, size_t n)
{
	Suite *s = suite_create(name);

	for (size_t i = 0; i < n; i++) { /* each can be run alone: CK_RUN_CASE=NAME */
		TCase *c = tcase_create(tests[i]->name);
		tcase_add_test(c, tests[i]);
		tcase_set_timeout(c, 0);
		suite_add_tcase(s, c);
	}
	return s;
}
