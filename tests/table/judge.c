/* SPDX-License-Identifier: MIT */
#include "judge.h"
#include "../ask.h"

#include "cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * What takes more than these seconds of CPU hangs (ptxas 13.0 does, over a predicate where cp.async.bulk.tensor has an
 * address): its slowest instructions take 10 ms each.  One that waits for something is ended by watch.py, and the test with
 * it.
 */
enum { SECONDS = 5, IN_A_SECOND = 30 };
enum { CHUNK = 2000, PER_KERNEL = 125, PIECES = 8, MOST_PROCESSES = 8, OPTION = 64 };

typedef struct question {
	const cptx_target *target;
	unsigned version;
	char *line;
	uint32_t at; /* line in the file of the current run, 0: not in it */
	verdict v;
	bool asked; /* takes part in the next run */
	bool pair;  /* as judge_pair */
} question;

typedef struct job {
	unsigned first, n; /* in judge.order */
	unsigned from;     /* what stands in front of it was read without a complaint, in a run that a later line ended */
	size_t bytes;      /* the longest jobs go first */
	pid_t pid;
	bool done;
	unsigned round;
} job;

struct judge {
	question *q;
	unsigned n, cap, *order, runs;
	uint32_t *slot, nslot; /* 1 + the number of a question, by hash; 0: none */
	job *jobs;
	unsigned njob;
	char dir[64];
};

unsigned judge_newest(void) { return MIN(test_ptxas_version(), (unsigned)ARCH_NEWEST); }

static unsigned left, left_version;

bool judge_reads(unsigned version)
{
	if (version <= judge_newest())
		return true;
	left++;
	left_version = MAX(left_version, version);
	return false;
}

unsigned judge_left(unsigned *version)
{
	*version = left_version;
	return left;
}

judge *judge_new(void)
{
	judge *j = calloc(1, sizeof *j);
	must(j != NULL, "calloc");
	strcpy(j->dir, "/tmp/cptx_table_XXXXXX");
	must(mkdtemp(j->dir) != NULL, "mkdtemp");
	return j;
}

void judge_free(judge *j)
{
	for (unsigned i = 0; i < j->n; i++)
		free(j->q[i].line);
	rmdir(j->dir);
	free(j->slot);
	free(j->q);
	free(j->order);
	free(j->jobs);
	free(j);
}

bool judge_pair(const char *text) { return strstr(text, ".cta_group::2") != NULL; }

/* What is stored to is no parameter of the kernel, which ptxas keeps read-only, but a variable for what a call passes. */
static char *copy_of(const char *line)
{
	char *copy = strdup(line);
	must(copy != NULL, "strdup");
	char *at = !strncmp(copy, "\tst.", 4) ? strstr(copy, "[in_param") : NULL;
	if (at)
		memcpy(at + 1, "to", 2);
	return copy;
}

/* Where the question is, or belongs. */
static uint32_t *slot_of(const judge *j, const cptx_target *target, unsigned version, const char *line)
{
	uint32_t i = (uint32_t)(spell_hash(line) + version * 31 + (uintptr_t)target) & (j->nslot - 1);

	for (; j->slot[i]; i = (i + 1) & (j->nslot - 1)) {
		const question *q = &j->q[j->slot[i] - 1];
		if (q->target == target && q->version == version && !strcmp(q->line, line))
			break;
	}
	return &j->slot[i];
}

static void make_room(judge *j)
{
	if (j->n < j->cap)
		return;
	j->cap = j->cap ? 2 * j->cap : 1024;
	j->nslot = 2 * j->cap;
	j->q = realloc(j->q, j->cap * sizeof *j->q);
	free(j->slot);
	j->slot = calloc(j->nslot, sizeof *j->slot);
	must(j->q && j->slot, "realloc");
	for (unsigned i = 0; i < j->n; i++)
		*slot_of(j, j->q[i].target, j->q[i].version, j->q[i].line) = i + 1;
}

unsigned judge_ask(judge *j, const cptx_target *target, unsigned version, const char *line)
{
	char *copy = copy_of(line);

	make_room(j);
	uint32_t *slot = slot_of(j, target, version, copy);
	if (*slot) {
		free(copy);
		return *slot - 1;
	}
	j->q[j->n] = (question){ .target = target, .version = version, .line = copy, .asked = true, .pair = judge_pair(line) };
	*slot = ++j->n;
	return j->n - 1;
}

const verdict *judge_said(const judge *j, unsigned number) { return &j->q[number].v; }
unsigned judge_runs(const judge *j) { return j->runs; }

/* ---- one run ---- */

/* -O1 leaves out code that has no result, and with it most of the time: of all questions it has the verdicts of -O0. */
static pid_t start(const char *source, const char *messages, const char *target, unsigned lines)
{
	char arch[OPTION];
	/* sm_101 is the old name of sm_110, in .target only */
	bool old = !strncmp(target, "sm_101", 6);
	snprintf(arch, sizeof arch, "-arch=%s%s", old ? "sm_110" : target, old ? target + 6 : "");
	fflush(stdout);
	pid_t pid = fork();
	must(pid >= 0, "fork");
	if (pid)
		return pid;
	/* ptxas 13.0 reads fresh memory where the descriptor of a wgmma is a constant, and may crash by what it finds there.
	 * meson fills such memory with a number drawn anew for each run: no verdict may depend on it. */
	unsetenv("MALLOC_PERTURB_");
	rlim_t seconds = SECONDS + lines / IN_A_SECOND;
	setrlimit(RLIMIT_CPU, &(struct rlimit){ seconds, seconds }); /* the end by a signal counts as a crash */
	if (!freopen(messages, "w", stderr) || !freopen("/dev/null", "w", stdout))
		_exit(127);
	execl(test_ptxas(), "ptxas", spell_whole() ? "-O0" : "-O1", "-w", arch, source, "-o", "/dev/null", (char *)NULL);
	_exit(127);
}

static void file_names(const judge *j, const job *w, char source[128], char messages[128])
{
	unsigned i = (unsigned)(w - j->jobs);
	snprintf(source, 128, "%s/%u.ptx", j->dir, i);
	snprintf(messages, 128, "%s/%u.txt", j->dir, i);
}

static unsigned count_lines(const char *s)
{
	unsigned n = 0;
	for (; *s; s++)
		n += *s == '\n';
	return n;
}

char *judge_text(const cptx_target *target, unsigned version, const char *line)
{
	char *file = pool_file_head(target->name, version, pool_names_sampler(line)),
		 *kernel = pool_kernel_head(0, version, line);
	size_t n = strlen(file) + strlen(kernel) + strlen(line) + 16;
	char *text = malloc(n), *stored = copy_of(line);

	must(text != NULL, "malloc");
	snprintf(text, n, "%s%s%s\n\tret;\n}\n", file, kernel, stored);
	free(file);
	free(kernel);
	free(stored);
	return text;
}

static unsigned left_from(const judge *j, const job *w, unsigned from)
{
	unsigned n = 0;
	for (unsigned i = from; i < w->n; i++)
		n += j->q[j->order[w->first + i]].asked;
	return n;
}

static void begin_round(judge *j, job *w)
{
	char source[128], messages[128];
	const question *head = &j->q[j->order[w->first]];
	uint32_t line = 1;
	unsigned in = 0;

	if (!left_from(j, w, w->from))
		w->from = 0;
	file_names(j, w, source, messages);
	FILE *f = fopen(source, "w");
	must(f != NULL, source);
	char *text = pool_file_head(head->target->name, head->version, pool_names_sampler(head->line));
	fputs(text, f);
	line += count_lines(text);
	free(text);
	for (unsigned i = 0; i < w->n; i++) {
		question *q = &j->q[j->order[w->first + i]];
		q->at = 0;
		if (!q->asked || i < w->from)
			continue;
		if (in % PER_KERNEL == 0) {
			text = pool_kernel_head(in, head->version, NULL);
			fprintf(f, "%s%s", in ? "\tret;\n}\n" : "", text);
			line += count_lines(text) + (in ? 2 : 0);
			free(text);
		}
		in++;
		q->at = line++;
		fprintf(f, "%s\n", q->line);
	}
	fputs("\tret;\n}\n", f);
	fclose(f);
	j->runs++;
	w->round++;
	w->pid = start(source, messages, head->target->name, in);
}

/* w->n if it is none. */
static unsigned index_at(const judge *j, const job *w, uint32_t line)
{
	unsigned i = 0;
	while (i < w->n && j->q[j->order[w->first + i]].at != line)
		i++;
	return i;
}

/* Behind a line that ends the run, lines are still unread; those in front need not be read again before these were. */
static unsigned read_messages(judge *j, job *w, const char *source, const char *path)
{
	char text[1024];
	unsigned found = 0;
	FILE *f = fopen(path, "r");

	must(f != NULL, path);
	w->from = 0;
	while (fgets(text, sizeof text, f)) {
		/* Messages about the text of its own that ptxas puts in wmma's place name another file. */
		bool ours = !strncmp(text, "ptxas ", 6) && !strncmp(text + 6, source, strlen(source));
		const char *p = ours && (strstr(text, "; error") || strstr(text, "; fatal")) ? strstr(text, ", line ") : NULL;
		unsigned i = p ? index_at(j, w, (uint32_t)strtoul(p + 7, NULL, 10)) : w->n;
		question *q = i < w->n ? &j->q[j->order[w->first + i]] : NULL;
		if (q)
			w->from = strstr(text, "; fatal") ? i + 1 : 0;
		if (!q || !q->asked)
			continue;
		q->asked = false;
		q->v.ok = false;
		p = strchr(p, ';');
		snprintf(q->v.why, sizeof q->v.why, "%.*s", (int)strcspn(p ? p + 2 : text, "\n"), p ? p + 2 : text);
		found++;
	}
	fclose(f);
	return found;
}

static void add_job(judge *j, unsigned first, unsigned n)
{
	size_t bytes = 0;
	for (unsigned i = first; i < first + n; i++)
		bytes += strlen(j->q[j->order[i]].line);
	j->jobs = realloc(j->jobs, (j->njob + 1) * sizeof *j->jobs);
	must(j->jobs != NULL, "realloc");
	j->jobs[j->njob++] = (job){ .first = first, .n = n, .bytes = bytes };
}

/* Cuts a job into pieces with as many questions each; what stands in front of w->from stays with the first. */
static void cut(judge *j, unsigned index, unsigned in)
{
	unsigned first = j->jobs[index].first, n = j->jobs[index].n, pieces = MIN(in, (unsigned)PIECES), seen = 0, begin = 0;

	for (unsigned i = j->jobs[index].from, piece = 1; i < n; i++) {
		seen += j->q[j->order[first + i]].asked;
		if (seen < in * piece / pieces)
			continue;
		unsigned end = piece == pieces ? n : i + 1;
		if (piece == 1)
			j->jobs[index].n = end;
		else
			add_job(j, first + begin, end - begin);
		begin = end;
		if (piece++ == pieces)
			return;
	}
}

/*
 * The run told no line: a crash, a hang or an error of code generation.  The culprit is in one of the pieces; a single line
 * is the culprit itself.
 */
static void blame(judge *j, unsigned index, const char *path)
{
	const job *w = &j->jobs[index];
	unsigned in = left_from(j, w, w->from), i = w->from;

	if (in > 1) {
		cut(j, index, in);
		return;
	}
	while (!j->q[j->order[w->first + i]].asked)
		i++;
	question *last = &j->q[j->order[w->first + i]];
	last->asked = false;
	FILE *f = fopen(path, "r");
	if (!f || !fgets(last->v.why, sizeof last->v.why, f))
		strcpy(last->v.why, "ptxas crashed or did not end");
	if (f)
		fclose(f);
}

static void end_round(judge *j, unsigned index, int status)
{
	char source[128], messages[128];
	job *w = &j->jobs[index];

	file_names(j, w, source, messages);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		for (unsigned i = w->from; i < w->n; i++) {
			question *q = &j->q[j->order[w->first + i]];
			q->v.ok |= q->asked;
			q->asked = false;
		}
	} else {
		unsigned from = w->from;
		if (!read_messages(j, w, source, messages)) {
			w->from = from;
			blame(j, index, messages);
		}
	}
	unlink(source);
	unlink(messages);
	j->jobs[index].pid = 0;
	j->jobs[index].done = !left_from(j, &j->jobs[index], 0);
}

/* ---- all of them ---- */

static const judge *sorting;

static int by_group(const void *a, const void *b)
{
	unsigned i = *(const unsigned *)a, k = *(const unsigned *)b;
	const question *x = &sorting->q[i], *y = &sorting->q[k];
	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	if (x->version != y->version)
		return x->version < y->version ? -1 : 1;
	if (pool_names_sampler(x->line) != pool_names_sampler(y->line))
		return pool_names_sampler(x->line) ? 1 : -1;
	if (x->pair != y->pair)
		return x->pair < y->pair ? -1 : 1;
	return i < k ? -1 : 1;
}

static int by_length(const void *a, const void *b)
{
	const job *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return x->first < y->first ? -1 : 1;
}

static void make_jobs(judge *j)
{
	unsigned m = 0;

	j->order = realloc(j->order, (j->n + 1) * sizeof *j->order);
	must(j->order != NULL, "realloc");
	for (unsigned i = 0; i < j->n; i++)
		if (j->q[i].asked)
			j->order[m++] = i;
	sorting = j;
	qsort(j->order, m, sizeof *j->order, by_group);
	j->njob = 0;
	for (unsigned i = 0, n; i < m; i += n) {
		const question *head = &j->q[j->order[i]];
		for (n = 1; i + n < m && n < CHUNK; n++) {
			const question *q = &j->q[j->order[i + n]];
			if (q->target != head->target || q->version != head->version || q->pair != head->pair ||
			    pool_names_sampler(q->line) != pool_names_sampler(head->line))
				break;
		}
		add_job(j, i, n);
	}
	qsort(j->jobs, j->njob, sizeof *j->jobs, by_length);
}

static unsigned processes(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN) / (long)spell_shards();
	return cores < 1 ? 1 : cores > MOST_PROCESSES ? MOST_PROCESSES : (unsigned)cores;
}

void judge_run(judge *j)
{
	unsigned most = processes(), busy = 0;

	make_jobs(j);
	for (;;) {
		for (unsigned i = 0; i < j->njob && busy < most; i++)
			if (!j->jobs[i].done && !j->jobs[i].pid) {
				begin_round(j, &j->jobs[i]);
				busy++;
			}
		if (!busy)
			return;
		int status;
		pid_t pid = wait(&status);
		for (unsigned i = 0; i < j->njob; i++)
			if (j->jobs[i].pid == pid) {
				end_round(j, i, status);
				busy--;
				break;
			}
	}
}

/* ---- whole files ---- */

static void file_begins(const char *dir, unsigned i, judged_file *f)
{
	char source[128], out[128];

	snprintf(source, sizeof source, "%s/%u.ptx", dir, i);
	snprintf(out, sizeof out, "%s/%u.txt", dir, i);
	FILE *to = fopen(source, "w");
	must(to != NULL, source);
	fputs(f->text, to);
	fclose(to);
	f->pid = start(source, out, f->target->name, count_lines(f->text));
}

static void file_ends(const char *dir, unsigned i, judged_file *f, int status)
{
	char source[128], out[128];

	snprintf(source, sizeof source, "%s/%u.ptx", dir, i);
	snprintf(out, sizeof out, "%s/%u.txt", dir, i);
	FILE *from = fopen(out, "r");
	must(from != NULL, out);
	f->message[fread(f->message, 1, sizeof f->message - 1, from)] = 0;
	fclose(from);
	f->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	unlink(source);
	unlink(out);
}

void judge_files(judged_file *f, unsigned n)
{
	char dir[] = "/tmp/cptx_table_XXXXXX";
	unsigned begun = 0, most = processes();
	int status;

	must(mkdtemp(dir) != NULL, "mkdtemp");
	for (unsigned ended = 0; ended < n; ended++) {
		for (; begun < n && begun - ended < most; begun++)
			file_begins(dir, begun, &f[begun]);
		pid_t pid = wait(&status);
		must(pid > 0, "wait");
		for (unsigned i = 0; i < begun; i++)
			if (f[i].pid == pid)
				file_ends(dir, i, &f[i], status);
	}
	rmdir(dir);
}
