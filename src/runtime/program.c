/* Programs: what PTX text says about itself, and what a launch must know of its kernels. */
#include "runtime/runtime.h"

#include <stdlib.h>

/* ---- reading PTX text, as far as the loader needs ---- */

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}

/* Past white space and comments. */
static const char *skip_blank(const char *s)
{
	for (;;) {
		s += strspn(s, " \t\r\n\f\v");
		if (s[0] == '/' && s[1] == '/') {
			s += strcspn(s, "\n");
		} else if (s[0] == '/' && s[1] == '*') {
			const char *end = strstr(s + 2, "*/");
			s = end ? end + 2 : s + strlen(s);
		} else {
			return s;
		}
	}
}

/* Past one token: a word (with its dots), a string, or a character. */
static const char *skip_token(const char *s)
{
	if (*s == '"') {
		s += 1 + strcspn(s + 1, "\"\n");
		return *s ? s + 1 : s;
	}
	if (*s != '.' && !is_word(*s))
		return *s ? s + 1 : s;
	while (*s == '.' || is_word(*s))
		s++;
	return s;
}

static bool token_is(const char *s, const char *end, const char *what)
{
	return (size_t)(end - s) == strlen(what) && !memcmp(s, what, (size_t)(end - s));
}

unsigned ptx_header(const char *text, const char **target, size_t *target_len)
{
	unsigned version = 0;
	const char *end;

	*target = NULL;
	*target_len = 0;
	for (const char *s = skip_blank(text); *s; s = skip_blank(end)) {
		end = skip_token(s);
		if (token_is(s, end, ".version")) {
			char *dot;
			version = (unsigned)strtoul(skip_blank(end), &dot, 10) * 10;
			version += *dot == '.' ? (unsigned)strtoul(dot + 1, NULL, 10) : 0;
		} else if (token_is(s, end, ".target")) {
			*target = skip_blank(end);
			*target_len = (size_t)(skip_token(*target) - *target);
			break;
		}
	}
	return version;
}

/* ---- kernels ---- */

static bool learn_params(cptx_program *p, cptx_kernel_info *k)
{
	cptx_param_info *params = arena_alloc(&p->mem, (k->nparams + 1) * sizeof *params);

	if (!params)
		return false;
	for (size_t i = 0; i < k->nparams; i++) {
		params[i] = k->params[i];
		params[i].name = arena_strdup(&p->mem, k->params[i].name ? k->params[i].name : "");
	}
	k->params = params;
	return !p->mem.failed;
}

bool program_add_kernel(cptx_program *p, const char *name, size_t len, const cptx_module *m)
{
	cptx_kernel_info k = { 0 };
	char *copy = arena_alloc(&p->mem, len + 1);

	if (!copy || !arena_push(&p->mem, &p->kernels, p->nkernels, &p->kernels_cap, sizeof *p->kernels))
		return false;
	memcpy(copy, name, len);
	copy[len] = 0;
	if (m && (!cptx_module_kernel(m, copy, &k) || !learn_params(p, &k)))
		return false;
	k.name = copy;
	p->kernels[p->nkernels++] = k;
	return true;
}

bool program_learn(cptx_program *p, const char *text, const cptx_module *m)
{
	const char *end;

	for (const char *s = skip_blank(text); *s; s = skip_blank(end)) {
		end = skip_token(s);
		if (!token_is(s, end, ".entry"))
			continue;
		const char *name = skip_blank(end);
		end = skip_token(name);
		if (!program_add_kernel(p, name, (size_t)(end - name), m))
			return false;
	}
	return true;
}

static void list_kernels(const cptx_program *p, buf *b)
{
	enum { MOST = 20 };

	if (!p->nkernels)
		return;
	buf_str(b, p->nkernels == 1 ? "; it has the kernel " : "; it has the kernels ");
	for (size_t i = 0; i < p->nkernels && i < MOST; i++)
		buf_printf(b, "%s\"%s\"", i ? ", " : "", p->kernels[i].name);
	if (p->nkernels > MOST)
		buf_printf(b, " and %zu more", p->nkernels - MOST);
}

static bool not_found(const cptx_program *p, const char *name, cptx_site at, cptx_error *err)
{
	buf b;

	buf_init(&b, NULL);
	if (name)
		buf_printf(&b, "the program has no kernel \"%s\"", name);
	else
		buf_str(&b, "the name of the kernel is NULL, which stands for the only one of the program");
	list_kernels(p, &b);
	error_set(err, CPTX_E_ARG, at, "%.*s", b.failed ? 0 : (int)b.n, b.n ? b.p : "");
	buf_free(&b);
	return false;
}

bool program_find(const cptx_program *p, const char *name, kernel *k, cptx_site at, cptx_error *err)
{
	*k = (kernel){ .info.name = name };
	for (size_t i = 0; i < p->nkernels; i++)
		if (name ? !strcmp(p->kernels[i].name, name) : p->nkernels == 1) {
			k->info = p->kernels[i];
			return true;
		}
	/* The names in a cubin are the driver's to know. */
	return (name && !p->nkernels) || not_found(p, name, at, err);
}

void kernel_release(kernel *k)
{
	free(k->param_size);
	k->param_size = NULL;
}

/* ---- the compiler's log ---- */

static const char *text_line(const char *text, unsigned line, size_t *len)
{
	for (; text && line > 1; line--) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	*len = text ? strcspn(text, "\r\n") : 0;
	return text;
}

/* The number behind "line " in one line of a log, 0 if there is none. */
static unsigned named_line(const char *s, size_t n)
{
	for (const char *end = s + n; s + 5 < end; s++)
		if (!memcmp(s, "line ", 5) && s[5] >= '0' && s[5] <= '9')
			return (unsigned)strtoul(s + 5, NULL, 10);
	return 0;
}

cptx_site log_explain(buf *b, const char *log, const char *text, const cptx_ptx *ptx)
{
	cptx_site first = NOWHERE;

	for (size_t n; *log; log += n + (log[n] != 0)) {
		n = strcspn(log, "\n");
		if (!n)
			continue;
		buf_printf(b, "\n    %.*s", (int)n, log);
		unsigned line = named_line(log, n);
		size_t len = 0;
		const char *src = line ? text_line(text, line, &len) : NULL;
		if (!src)
			continue;
		cptx_site from = ptx ? cptx_ptx_origin(ptx, line) : NOWHERE;
		src += strspn(src, " \t"), len = strcspn(src, "\r\n");
		if (from.file)
			buf_printf(b, "\n        from %s:%u: %.*s", from.file, (unsigned)from.line, (int)len, src);
		else
			buf_printf(b, "\n        which is: %.*s", (int)len, src);
		if (!first.file)
			first = from;
	}
	return first;
}

/* ---- the calls ---- */

static cptx_program *program_load(cptx_device *dev, load_request *q, const cptx_load_opt *opt, cptx_error *err)
{
	cptx_program *p = calloc(1, sizeof *p);

	if (!p) {
		no_memory(err, q->at);
		return NULL;
	}
	if (opt)
		q->opt = *opt;
	p->dev = dev;
	p->log = "";
	arena_init(&p->mem, NULL);
	if (dev->ops->load(p, q, err))
		return p;
	cptx_program_destroy(p);
	return NULL;
}

cptx_program *cptx_device_load_(cptx_site at, cptx_device *dev, cptx_module *m, const cptx_load_opt *opt, cptx_error *err)
{
	load_request q = { .at = at, .module = m };
	const cptx_error *built = cptx_module_error(m);

	if (!may_go(err))
		return NULL;
	if (built && err)
		*err = *built;
	else if (!dev)
		error_set(err, CPTX_E_ARG, at, "the device is NULL");
	return built || !dev ? NULL : program_load(dev, &q, opt, err);
}

cptx_program *cptx_device_load_text_(cptx_site at, cptx_device *dev, const void *image, size_t size,
                                     const cptx_load_opt *opt, cptx_error *err)
{
	load_request q = { .at = at, .image = image, .size = size };

	if (!may_go(err))
		return NULL;
	if (!dev || !image || !size) {
		error_set(err, CPTX_E_ARG, at, "the %s", !dev ? "device is NULL" : !image ? "image is NULL" : "image has no bytes");
		return NULL;
	}
	return program_load(dev, &q, opt, err);
}

void cptx_program_destroy(cptx_program *p)
{
	if (!p)
		return;
	if (p->handle)
		p->dev->ops->unload(p);
	arena_free(&p->mem);
	free(p);
}

const char *cptx_program_log(const cptx_program *p) { return p ? p->log : ""; }

const char *cptx_program_target(const cptx_program *p) { return p ? p->target : NULL; }

unsigned cptx_program_version(const cptx_program *p) { return p ? p->version : 0; }

const char *cptx_program_kernel_at(const cptx_program *p, size_t i)
{
	return p && i < p->nkernels ? p->kernels[i].name : NULL;
}

void *cptx_program_handle(const cptx_program *p) { return p ? p->handle : NULL; }

uint64_t cptx_program_global(const cptx_program *p, const char *name, size_t *size, cptx_error *err)
{
	if (!may_go(err))
		return 0;
	if (!p || !name) {
		error_set(err, CPTX_E_ARG, NOWHERE, "the %s is NULL", p ? "name of the variable" : "program");
		return 0;
	}
	return p->dev->ops->global(p, name, size, err);
}
