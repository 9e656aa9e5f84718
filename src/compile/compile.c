/* SPDX-License-Identifier: MIT */
#include "base/options.h"
#include "compile/compile.h"

#include "arch/arch.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct cptx_cubin {
	void *data;
	size_t size;
	char *log, *note;
	enum cptx_compiler compiler;
	bool cached;
};

const compiler_kind compilers[] = {
	[CPTX_COMPILER_AUTO] = { .name = "auto", .spelled = "a compiler" },
	[CPTX_COMPILER_DRIVER] = { .name = "driver", .spelled = "the driver" },
	[CPTX_COMPILER_PTXAS] = { "ptxas", "ptxas", ptxas_run_job, ptxas_about, ptxas_where, "CPTX_PTXAS", NULL },
	[CPTX_COMPILER_NVJITLINK] = { "nvjitlink", "nvJitLink", nvjitlink_run_job, nvjitlink_about, nvjitlink_where,
	                              "CPTX_NVJITLINK", nvjitlink_loaded },
	[CPTX_COMPILER_NVPTXCOMPILER] = { "nvptxcompiler", "nvPTXCompiler", nvptx_run_job, nvptx_about, nvptx_where,
	                                  "CPTX_NVPTXCOMPILER", NULL },
};
enum { FIRST_ALONE = CPTX_COMPILER_PTXAS }; /* the first compiler that needs no device */

/* ---- names ---- */

const char *cptx_compiler_name(enum cptx_compiler c) { return (size_t)c < ARRAY_LEN(compilers) ? compilers[c].name : NULL; }

bool cptx_compiler_named(const char *name, enum cptx_compiler *c)
{
	for (size_t i = 0; name && i < ARRAY_LEN(compilers); i++)
		if (!strcmp(compilers[i].name, name)) {
			*c = (enum cptx_compiler)i;
			return true;
		}
	return false;
}

bool cptx_compiler_find(enum cptx_compiler c, char *text, size_t size)
{
	if (!text)
		size = 0;
	if (c == CPTX_COMPILER_AUTO) {
		for (size_t i = FIRST_ALONE; i < ARRAY_LEN(compilers); i++)
			if (compilers[i].find(text, size))
				return true;
		snprintf(text, size, "there is neither ptxas nor nvJitLink nor nvPTXCompiler");
		return false;
	}
	if ((size_t)c < ARRAY_LEN(compilers) && compilers[c].find)
		return compilers[c].find(text, size);
	snprintf(text, size,
	         c == CPTX_COMPILER_DRIVER ? "the driver's compiler needs a device: cptx_device_load()"
	                                   : "there is no such compiler");
	return false;
}

/* ---- what the compilers share ---- */

static bool option_add(option_list *l, const char *option, const char *value)
{
	size_t n = strlen(option), m = strlen(value);
	char *s = NEW_UNSET(char, n + m + 1);

	if (!s)
		return false;
	memcpy(s, option, n);
	memcpy(s + n, value, m + 1);
	l->at[l->n++] = s;
	return true;
}

bool options_make(option_list *l, const compile_job *job, bool nvjitlink)
{
	const cptx_compile_opt *o = job->opt;
	char regs[16];

	*l = (option_list){ .at = NEW_ARRAY(char *, MOST_OPTIONS + o->nflags) };
	bool ok = l->at && option_add(l, "-arch=", job->target);
	const char level[] = { (char)('0' + o->optimize - CPTX_OPT_0), 0 };
	if (o->optimize)
		ok = ok && option_add(l, nvjitlink && o->optimize != CPTX_OPT_0 ? "-Xptxas=-O" : "-O", level);
	snprintf(regs, sizeof regs, "%u", (unsigned)o->max_regs);
	if (o->max_regs)
		ok = ok && option_add(l, "-maxrregcount=", regs);
	if (o->line_info)
		ok = ok && option_add(l, "-lineinfo", "");
	if (o->debug)
		ok = ok && option_add(l, "-g", "");
	if (o->verbose)
		ok = ok && option_add(l, nvjitlink ? "-verbose" : "-v", "");
	if (o->relocatable)
		ok = ok && option_add(l, nvjitlink ? "-r" : "-c", "");
	for (size_t i = 0; i < o->nflags; i++)
		ok = ok && option_add(l, nvjitlink ? "-Xptxas=" : "", o->flags[i]);
	if (!ok)
		options_free(l);
	return ok;
}

void options_free(option_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->at[i]);
	free(l->at);
	*l = (option_list){ 0 };
}

bool log_says_too_old(const char *log)
{
	static const char *const phrases[] = { "Unsupported .version", "Unsupported .target",
		                                   "is not defined for option 'gpu-name'", "unrecognized architecture",
		                                   "unsupported architecture" };

	for (size_t i = 0; log && i < ARRAY_LEN(phrases); i++)
		if (strstr(log, phrases[i]))
			return true;
	return false;
}

/* ---- one compilation ---- */

static void job_forget(compile_job *job)
{
	free(job->cubin);
	free(job->log);
	job->cubin = NULL, job->log = NULL;
	job->ncubin = 0;
	job->why[0] = job->by[0] = 0;
	job->cached = false;
}

/* Whether an option names a file: then the result changes whenever that file does, and cannot be cached. */
static bool names_files(const cptx_compile_opt *o)
{
	char path[4096];

	for (size_t i = 0; i < o->nflags; i++) {
		const char *value = strchr(o->flags[i], '=');
		if (!strncmp(o->flags[i], "-optf", 5) || !strncmp(o->flags[i], "--options-file", 14))
			return true;
		for (value = value ? value + 1 : ""; *value; value += strcspn(value, ","), value += *value == ',') {
			snprintf(path, sizeof path, "%.*s", (int)strcspn(value, ","), value);
			if (!access(path, F_OK))
				return true;
		}
	}
	return false;
}

static const char *set_or(const char *variable) { return getenv(variable) ? getenv(variable) : ""; }

/* The folders in which the dynamic loader and library_open look, with their times of change, because a new file there may be
 * another library. */
static char *folders_identity(void)
{
	static const char *const usual[] = { "/lib64",
		                                 "/usr/lib64",
		                                 "/lib/x86_64-linux-gnu",
		                                 "/usr/lib/x86_64-linux-gnu",
		                                 "/lib",
		                                 "/usr/lib",
		                                 "/usr/local/cuda/lib64",
		                                 "/usr/local/cuda/lib",
		                                 "/etc/ld.so.cache" };
	const char *homes[] = { set_or("CUDA_HOME"), set_or("CUDA_PATH") };
	char path[4096], one[4200];
	buf b;

	buf_init(&b, NULL);
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		buf_printf(&b, "%s\n", file_identity(usual[i], one, sizeof one) ? one : usual[i]);
	for (size_t i = 0; i < 2 * ARRAY_LEN(homes); i++) {
		snprintf(path, sizeof path, "%s/%s", homes[i / 2], i % 2 ? "lib" : "lib64");
		buf_printf(&b, "%s\n", file_identity(path, one, sizeof one) ? one : path);
	}
	for (const char *p = set_or("LD_LIBRARY_PATH"); *p; p += *p == ':' || *p == ';') {
		size_t n = strcspn(p, ":;");
		snprintf(path, sizeof path, "%.*s", (int)n, n ? p : ".");
		buf_printf(&b, "%s\n", file_identity(path, one, sizeof one) ? one : path);
		p += n;
	}
	buf_put(&b, "", 1);
	char *text = b.failed ? NULL : strdup(b.p);
	buf_free(&b);
	return text;
}

/*
 * Finds the path of a library without opening it.  Opening one of a hundred megabytes takes longer than all else of a warm
 * start, so its path is kept in the cache too, for as long as everything that the dynamic loader depends on stays the same.
 */
static bool kept_where(const compile_job *job, enum cptx_compiler c, char *path, size_t size)
{
	char *folders = folders_identity(), about[64];
	const char *by[] = { "cptx where 2", compilers[c].name, set_or(compilers[c].variable), folders ? folders : "" };
	cptx_cache_part parts[ARRAY_LEN(by)];
	cptx_cache_entry e;

	for (size_t i = 0; i < ARRAY_LEN(by); i++)
		parts[i] = (cptx_cache_part){ by[i], strlen(by[i]) };
	cptx_cache_key key = cptx_cache_key_of(parts, ARRAY_LEN(parts));
	bool known = folders && cptx_cache_get(job->opt->cache, &key, &e);
	if (known) {
		known = e.size && e.size <= size && !((char *)e.data)[e.size - 1] && !access((char *)e.data, R_OK);
		if (known)
			memcpy(path, e.data, e.size);
		free(e.data);
	}
	if (!known && compilers[c].where(path, size)) {
		known = true;
		snprintf(about, sizeof about, "where %s is", compilers[c].spelled);
		if (folders)
			cptx_cache_put(job->opt->cache, &key,
			               CPTX_OPT_(cptx_cache_entry, .data = path, .size = strlen(path) + 1, .about = about));
	}
	free(folders);
	return known;
}

/* Identifies a compiler: by its file's path, size and time of change; a script also by the version that it prints. */
static bool identify(const compile_job *job, enum cptx_compiler c, char *text, size_t size)
{
	const compiler_kind *k = &compilers[c];
	char path[4096];

	bool there = k->loaded && !k->loaded() ? kept_where(job, c, path, sizeof path) : k->where(path, sizeof path);
	return there && file_identity(path, text, size) &&
	       (c != CPTX_COMPILER_PTXAS || ptxas_identity(path, job->opt->limit_ms, text, size));
}

/* Computes the cache key of a compiler's result; false: the compiler is not there. */
static bool job_key(const compile_job *job, enum cptx_compiler c, cptx_cache_key *key)
{
	char identity[4200];
	option_list list;

	if (names_files(job->opt) || !identify(job, c, identity, sizeof identity) ||
	    !options_make(&list, job, c == CPTX_COMPILER_NVJITLINK))
		return false;
	cptx_cache_part *parts = NEW_ARRAY(cptx_cache_part, list.n + 5 + 2 * job->npieces);
	if (parts) {
		size_t n = 0;
		const char *const strings[] = { "cptx compile 2", compilers[c].name, identity, job->name };
		for (; n < ARRAY_LEN(strings); n++)
			parts[n] = (cptx_cache_part){ strings[n], strlen(strings[n]) };
		for (size_t i = 0; i < list.n; i++)
			parts[n++] = (cptx_cache_part){ list.at[i], strlen(list.at[i]) };
		parts[n++] = (cptx_cache_part){ job->npieces ? "" : job->text, job->npieces ? 0 : job->size };
		for (size_t i = 0; i < job->npieces; i++) {
			parts[n++] = (cptx_cache_part){ job->pieces[i].name, strlen(job->pieces[i].name) };
			parts[n++] = (cptx_cache_part){ job->pieces[i].data, job->pieces[i].size };
		}
		*key = cptx_cache_key_of(parts, n);
	}
	options_free(&list);
	free(parts);
	return parts != NULL;
}

/* The start of an entry's line for people, in front of the compiler's name. */
enum { FRONT = 512 };
static size_t about_front(const compile_job *job, char text[FRONT])
{
	snprintf(text, FRONT, "%.400s for %s by ", job->name, job->target);
	return strlen(text);
}

static bool job_from_cache(compile_job *job, const cptx_cache_key *key)
{
	char front[FRONT];
	cptx_cache_entry e;

	if (!cptx_cache_get(job->opt->cache, key, &e))
		return false;
	job->log = strdup(e.log);
	if (!job->log || !elf_is_whole(e.data, e.size)) {
		free(e.data);
		free(job->log);
		job->log = NULL;
		return false;
	}
	size_t n = about_front(job, front);
	snprintf(job->by, sizeof job->by, "%s", e.about + (strncmp(e.about, front, n) ? 0 : n));
	job->cubin = e.data, job->ncubin = e.size;
	return job->cached = true;
}

/* Does a job by one compiler, or with what it made before. */
static outcome job_by(compile_job *job, enum cptx_compiler c)
{
	cptx_cache_key key;
	bool keyed = cptx_cache_can_read(job->opt->cache) && job_key(job, c, &key);
	char about[FRONT + sizeof job->by];

	if (keyed && job_from_cache(job, &key))
		return DONE;
	outcome how = compilers[c].run(job);
	if (how == DONE && keyed) {
		snprintf(about + about_front(job, about), sizeof job->by, "%s", job->by);
		cptx_cache_put(
			job->opt->cache, &key,
			CPTX_OPT_(cptx_cache_entry, .data = job->cubin, .size = job->ncubin, .log = job->log, .about = about));
	}
	return how;
}

/* Whether the compiler does not know the target and cptx does not either: then the target hardly exists, and the compiler is
 * not too old. */
static bool no_such_target(const compile_job *job)
{
	return !cptx_target_find(job->target) && !(job->log && strstr(job->log, "Unsupported .version"));
}

static const char *too_old_words(const compile_job *job)
{
	return no_such_target(job) ? "does not know the target" : "is too old for the program";
}

/* Sets the error of a job, the same for every compiler. */
static bool job_failed(const compile_job *job, outcome how, cptx_error *err)
{
	log_source src = { .text = job->text, .ptx = job->ptx };
	buf b;

	if (how == LACKING)
		return error_set(err, CPTX_E_MEMORY, job->at, "out of memory");
	if (how == ABSENT || how == BROKEN)
		return error_set(err, how == ABSENT ? CPTX_E_NO_COMPILER : CPTX_E_IO, job->at, "%s", job->why);
	buf_init(&b, NULL);
	cptx_site from = log_explain(&b, job->log ? job->log : "", &src);
	from = from.file ? from : job->at;
	if (how == TOO_OLD && no_such_target(job))
		error_set(err, CPTX_E_TARGET, from, "there is no target \"%s\" that %s or cptx knows:%.*s", job->target, job->by,
		          b.failed ? 0 : (int)b.n, b.n && !b.failed ? b.p : "");
	else
		error_set(err, how == TOO_OLD ? CPTX_E_NO_COMPILER : CPTX_E_COMPILE, from, "%s %s:%.*s", job->by,
		          how == TOO_OLD ? too_old_words(job) : "refuses the program", b.failed ? 0 : (int)b.n,
		          b.n && !b.failed ? b.p : "");
	buf_free(&b);
	return false;
}

/* Does a job by the first compiler that is there and new enough; `note` says which were skipped. */
static outcome job_auto(compile_job *job, enum cptx_compiler *used, buf *note)
{
	outcome how = ABSENT;
	char why[sizeof job->why];
	buf absent;

	buf_init(&absent, NULL);
	for (size_t i = FIRST_ALONE; i < ARRAY_LEN(compilers); i++) {
		job_forget(job);
		how = job_by(job, (enum cptx_compiler)i);
		*used = (enum cptx_compiler)i;
		if (how != ABSENT && how != TOO_OLD)
			break;
		if (how == ABSENT) {
			buf_printf(&absent, "%s%s", absent.n ? "; " : "", job->why);
			continue;
		}
		const char *log = job->log ? job->log : "";
		buf_printf(note, "%s%s %s (%.*s)", note->n ? "; " : "", job->by, too_old_words(job), (int)strcspn(log, "\n"), log);
	}
	if (how == ABSENT || how == TOO_OLD) {
		snprintf(why, sizeof why, "nothing here can compile the program: %.*s%s%.*s", (int)note->n, note->n ? note->p : "",
		         note->n && absent.n ? "; " : "", (int)absent.n, absent.n ? absent.p : "");
		memcpy(job->why, why, sizeof why);
		how = ABSENT;
	} else if (note->n && how == DONE) {
		buf_printf(note, "; compiled by %s", job->by);
	}
	buf_free(&absent);
	return how;
}

static cptx_cubin *cubin_of(compile_job *job, enum cptx_compiler by, const buf *note)
{
	cptx_cubin *c = NEW(cptx_cubin);
	char *text = NEW_ARRAY(char, note->n + 1);

	if (!c || !text) {
		free(c);
		free(text);
		return NULL;
	}
	if (note->n)
		memcpy(text, note->p, note->n);
	*c = (cptx_cubin){
		.data = job->cubin, .size = job->ncubin, .log = job->log, .note = text, .compiler = by, .cached = job->cached
	};
	job->cubin = NULL, job->log = NULL;
	return c;
}

static cptx_cubin *job_run(compile_job *job, cptx_error *err)
{
	enum cptx_compiler by = job->opt->compiler;
	cptx_cubin *c = NULL;
	buf note;

	buf_init(&note, NULL);
	outcome how = by == CPTX_COMPILER_AUTO ? job_auto(job, &by, &note) : job_by(job, by);
	if (how == DONE && (note.failed || !(c = cubin_of(job, by, &note))))
		how = LACKING;
	if (!c)
		job_failed(job, how, err);
	job_forget(job);
	buf_free(&note);
	return c;
}

/*
 * Whether a name that cptx does not know may be a newer target: it has the form of target names, and a plausible number.
 * (nvJitLink ends the process for some names.)
 */
static bool like_a_target(const char *name)
{
	enum { FIRST = 50, LAST = 199 };
	size_t digits = strspn(name + 3, "0123456789");
	const char *suffix = name + 3 + digits;
	int number = digits && digits < 4 ? atoi(name + 3) : 0;

	return number >= FIRST && number <= LAST && (!*suffix || !strcmp(suffix, "a") || !strcmp(suffix, "f"));
}

/* Chooses the target for options.  ptxas knows sm_101 by its new name in options, and by the old one in the text. */
static bool job_target(compile_job *job, cptx_error *err)
{
	const char *name = job->opt->target;
	size_t n = name ? strlen(name) : 0;

	if (!name)
		ptx_header(job->text, &name, &n);
	if (!n || n >= sizeof job->target - 1)
		return job->opt->target
		           ? error_set(err, CPTX_E_ARG, job->at, "the target is not one")
		           : error_set(err, CPTX_E_ARG, job->at, "%s has no .target, and the options name none", job->name);
	if (job->opt->target && strncmp(name, "sm_", 3))
		return error_set(err, CPTX_E_ARG, job->at, "\"%s\" is no target of machine code; those are called as sm_90a is",
		                 name);
	if (job->opt->target && !like_a_target(name))
		return arch_no_target(name, job->at, err);
	bool old = n >= 6 && !memcmp(name, "sm_101", 6);
	snprintf(job->target, sizeof job->target, "%s%.*s", old ? "sm_110" : "", (int)(old ? n - 6 : n), old ? name + 6 : name);
	return true;
}

static bool job_checked(const compile_job *job, cptx_error *err)
{
	const cptx_compile_opt *o = job->opt;

	if ((size_t)o->compiler >= ARRAY_LEN(compilers))
		return error_set(err, CPTX_E_ARG, job->at, "there is no compiler %d", (int)o->compiler);
	if (o->compiler == CPTX_COMPILER_DRIVER)
		return error_set(err, CPTX_E_ARG, job->at,
		                 "the driver's compiler needs a device: load the program there (cptx_device_load), or name another");
	if ((unsigned)o->optimize > CPTX_OPT_3)
		return error_set(err, CPTX_E_ARG, job->at, "there is no optimization level %d", (int)o->optimize);
	if (o->debug && o->optimize > CPTX_OPT_0)
		return error_set(err, CPTX_E_ARG, job->at,
		                 ".debug with .optimize = CPTX_OPT_%d; code for a debugger is not optimized: leave one of them away",
		                 (int)o->optimize - CPTX_OPT_0);
	for (size_t i = 0; i < o->nflags; i++)
		if (!o->flags || !o->flags[i] || o->flags[i][0] != '-')
			return error_set(err, CPTX_E_ARG, job->at, "flags[%zu], '%s', is no option: it begins with -", i,
			                 o->flags && o->flags[i] ? o->flags[i] : "(null)");
	return true;
}

cptx_cubin *job_compile(compile_job *job, const cptx_compile_opt *opt, cptx_error *err)
{
	cptx_compile_opt o;

	if (!OPTIONS_READ(cptx_compile_opt, &o, opt, job->at, err))
		return NULL;
	job->opt = &o;
	job->name = job->opt->name ? job->opt->name : job->npieces ? "linked" : "ptx";
	return job_checked(job, err) && job_target(job, err) ? job_run(job, err) : NULL;
}

/* ---- the calls ---- */

cptx_cubin *cptx_compile_(cptx_site at, const char *text, size_t size, const cptx_compile_opt *opt, cptx_error *err)
{
	compile_job job = { .at = at, .size = size };
	cptx_cubin *c = NULL;

	if (err && err->code != CPTX_OK)
		return NULL;
	if (text && !text_end(text, &size, opt ? opt->name : NULL, at, err))
		return NULL;
	if (!text || !size) {
		error_set(err, CPTX_E_ARG, at, "%s %s", opt && opt->name ? opt->name : "the text", !text ? "is NULL" : "is empty");
		return NULL;
	}
	job.size = size;
	char *copy = NEW_UNSET(char, size + 1); /* all compilers need a NUL behind the text */
	if (!copy) {
		error_set(err, CPTX_E_MEMORY, at, "out of memory");
		return NULL;
	}
	memcpy(copy, text, size);
	copy[size] = 0;
	job.text = copy;
	c = job_compile(&job, opt, err);
	free(copy);
	return c;
}

cptx_cubin *cptx_compile_ptx_(cptx_site at, const cptx_ptx *ptx, const cptx_compile_opt *opt, cptx_error *err)
{
	if (err && err->code != CPTX_OK)
		return NULL;
	if (!ptx) {
		error_set(err, CPTX_E_ARG, at, "the PTX is NULL");
		return NULL;
	}
	compile_job job = { .at = at, .text = cptx_ptx_text(ptx), .size = cptx_ptx_size(ptx), .ptx = ptx };
	return job_compile(&job, opt, err);
}

void cptx_cubin_destroy(cptx_cubin *c)
{
	if (!c)
		return;
	free(c->data);
	free(c->log);
	free(c->note);
	free(c);
}

const void *cptx_cubin_data(const cptx_cubin *c) { return c ? c->data : NULL; }
size_t cptx_cubin_size(const cptx_cubin *c) { return c ? c->size : 0; }
const char *cptx_cubin_log(const cptx_cubin *c) { return c && c->log ? c->log : ""; }
const char *cptx_cubin_note(const cptx_cubin *c) { return c && c->note ? c->note : ""; }
enum cptx_compiler cptx_cubin_compiler(const cptx_cubin *c) { return c ? c->compiler : CPTX_COMPILER_AUTO; }
bool cptx_cubin_cached(const cptx_cubin *c) { return c && c->cached; }
