/*
 * Random kernels on the emulator: legal instructions of all rows that it executes, in any order, on registers that hold
 * numbers, addresses, descriptors and tensor maps, right and wrong ones.  Whatever they do, the emulator must neither crash
 * nor hang, and runs of one seed must find the same.  For builds with sanitizers.
 *
 *     fuzz_emu [--seed N] [--seconds N] [--kernels N] [--jobs N] [--show 1]
 *
 * --seed: of the first kernel (1), the next has the next; --seconds: of CPU time of a process (5); --kernels: at most so
 * many; --jobs: processes (1), of N each takes every N-th seed; --show 1: prints the text of each kernel before it runs.
 *
 * A seed says all of its kernel, so `fuzz_emu --seed S --kernels 1 --show 1` runs a failure again.  One that ends its
 * process is named on standard output, and the seeds behind it go on in a new one.
 */
#include "../table/cases.h"

#include "emu/emu.h"
#include "ir/ir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_JOBS = 256, MOST_WALL = 300 /* seconds for a kernel, before it counts as hung */ };
enum { LINES = 14, TEXT = 131072, EACH = 24 /* registers of a class that get values */, STEPS = 20000, MAPS = 4 };

typedef struct tally {
	unsigned kernels, refused, ended, found;
	uint64_t instructions;
	bool same; /* two runs agreed so far */
} tally;

static const char *const targets[] = { "sm_90a", "sm_100a", "sm_103a", "sm_120a", "sm_80" };
static bool
	refused[4096]; /* forms that this kernel cannot have: the emulator does not execute them as the pool spells them */

static char *put(char *at, const char *format, ...) CPTX_PRINTF_(2, 3);
static char *put(char *at, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	at += vsprintf(at, format, ap);
	va_end(ap);
	return at;
}

static uint64_t wide(dice *d)
{
	return (uint64_t)roll(d, 1u << 31) << 33 ^ (uint64_t)roll(d, 1u << 31) << 11 ^ roll(d, 2048);
}

/* ---- values ---- */

/* A descriptor whose fields are likely to mean something. */
static uint64_t descriptor(dice *d)
{
	uint64_t swizzle = roll(d, 4);

	return roll(d, 2048) | (uint64_t)roll(d, 64) << 16 | (uint64_t)roll(d, 64) << 32 | swizzle << 62 |
	       (uint64_t)(roll(d, 4) == 0) << 46;
}

static void put_map(char **at, dice *d, unsigned number)
{
	cptx_tensor_map_opt o = { .type = (enum cptx_tensor_type)roll(d, CPTX_TENSOR_TYPES), .rank = 1 + roll(d, 5) };
	uint64_t word[CPTX_TENSOR_MAP_BYTES / 8];

	o.mode = roll(d, 3) ? CPTX_TENSOR_TILED : (enum cptx_tensor_mode)roll(d, CPTX_TENSOR_MODES);
	o.swizzle = (enum cptx_swizzle)roll(d, CPTX_SWIZZLE_COUNT);
	o.interleave = roll(d, 4) ? 0 : 16 << roll(d, 2);
	o.nan_fill = !roll(d, 4), o.channels = 16u << roll(d, 3), o.pixels = 1 + roll(d, 40);
	for (unsigned i = 0; i < o.rank; i++) {
		o.dim[i] = i ? 1 + roll(d, 5) : 16 + roll(d, 64);
		o.stride[i] = i ? 256u << i : 0;
		o.box[i] = i ? 1 + roll(d, 4) : 16u << roll(d, 3);
		o.element_stride[i] = 1 + !roll(d, 5);
	}
	cptx_tensor_map_pack(&o, (uint8_t *)word, NULL);
	*at = put(*at, ".global .align 128 .u64 map%u[16] = {", number);
	for (unsigned i = 0; i < 16; i++)
		*at = i == 2 ? put(*at, ", in_global") : put(*at, "%s0x%llx", i ? ", " : "", (unsigned long long)word[i]);
	*at = put(*at, "};\n");
}

static char *put_wide(char *at, dice *d)
{
	switch (roll(d, 9)) {
	case 0: return put(at, "in_global");
	case 1: return put(at, "map%u", roll(d, MAPS));
	case 2: return put(at, "in_const");
	case 3: return put(at, "0x%llx", (unsigned long long)wide(d));
	case 4: return put(at, "0x%llx", (unsigned long long)descriptor(d));
	case 5: return put(at, "in_shared");
	default: return put(at, "%u", roll(d, 65));
	}
}

static char *put_narrow(char *at, dice *d)
{
	switch (roll(d, 7)) {
	case 0: return put(at, "0x%x", (unsigned)wide(d));
	case 1:
	case 2: return put(at, "%u", 0x400 + roll(d, 256) * 128);
	case 3: return put(at, "0x%x", 0x08000000 | roll(d, 1 << 25)); /* of tcgen05: an instruction descriptor */
	case 4: return put(at, "0xffffffff");
	default: return put(at, "%u", roll(d, 40));
	}
}

static char *put_values(char *at, dice *d)
{
	static const char *const halves[] = { "%u", "0x%x" };

	for (unsigned c = 0; c < CLASS_COUNT; c++)
		for (unsigned i = 1; i <= EACH; i++) {
			const char *r = ir_classes[c].prefix;
			switch (c) {
			case CLASS_PRED: at = put(at, "\tsetp.%s.u32 %s%u, 1, 2;\n", roll(d, 2) ? "lt" : "gt", r, i); break;
			case CLASS_B16:
				at = put(put(at, "\tmov.b16 %s%u, ", r, i), halves[roll(d, 2)], roll(d, 65536) >> roll(d, 16));
				at = put(at, ";\n");
				break;
			case CLASS_B32: at = put(put_narrow(put(at, "\tmov.b32 %s%u, ", r, i), d), ";\n"); break;
			case CLASS_F32: at = put(at, "\tmov.b32 %s%u, 0x%x;\n", r, i, (unsigned)wide(d)); break;
			case CLASS_B64: at = put(put_wide(put(at, "\tmov.b64 %s%u, ", r, i), d), ";\n"); break;
			case CLASS_F64: at = put(at, "\tmov.b64 %s%u, 0x%llx;\n", r, i, (unsigned long long)wide(d)); break;
			default: break; /* .b8 and .b128 stay unwritten: that is a finding, no crash */
			}
		}
	return at;
}

/* ---- kernels ---- */

typedef struct kernel {
	const char *target;
	char text[TEXT];
	uint16_t form[LINES];
	char line[LINES][TRIED_LINE];
	unsigned nline;
} kernel;

static bool random_line(kernel *k, dice *d)
{
	unsigned form = roll(d, arch_nform), n;
	const cptx_target *target = cptx_target_find(k->target);

	if (refused[form] || !emu_decode_of(arch_forms[form].op))
		return false;
	spelling *all = spell_all(form, 4, &n);
	if (!n) {
		free(all);
		return false;
	}
	spelling s = all[roll(d, n)];
	free(all);
	trial t = roll(d, 2) ? trial_of(&s) : trial_full(&s);
	if (!roll(d, 3) && arch_forms[form].noperand)
		t = trial_with(&s, &t, roll(d, arch_forms[form].noperand), pool_value(roll(d, pool_nvalue())));
	outcome o;
	trial_build(&t, BY_TEXT, target, &o);
	if (!o.ok)
		return false;
	k->form[k->nline] = (uint16_t)form;
	snprintf(k->line[k->nline++], TRIED_LINE, "%s", o.line);
	return true;
}

static void replace(char *text, const char *from, const char *to)
{
	char *p = strstr(text, from);

	if (!p)
		return;
	memmove(p + strlen(to), p + strlen(from), strlen(p + strlen(from)) + 1);
	memcpy(p, to, strlen(to));
}

static void write_kernel(kernel *k, dice d)
{
	char *file = pool_file_head(k->target, 93, false), *head = pool_kernel_head(0, 93), *at = k->text;
	bool barrier = roll(&d, 2);

	at = put(at, "%s", file);
	for (unsigned i = 0; i < MAPS; i++)
		put_map(&at, &d, i);
	char *body = at;
	at = put(at, "%s", head);
	replace(body, ".shared .align 16 .b8 in_shared[256]", ".shared .align 1024 .b8 in_shared[36864]");
	replace(k->text, ".global .align 16 .b8 in_global[256]", ".global .align 1024 .b8 in_global[65536]");
	at = k->text + strlen(k->text);
	at = put_values(at, &d);
	if (barrier)
		at = put(at, "\t{ .reg .pred %%one; .reg .b32 %%t; mov.u32 %%t, %%tid.x; setp.eq.u32 %%one, %%t, 0;\n"
		             "\t@%%one mbarrier.init.shared.b64 [in_shared], 1; bar.sync 0; }\n");
	for (unsigned i = 0; i < k->nline; i++)
		at = put(at, "%s\n", k->line[i]);
	put(at, "\tret;\n}\n");
	free(file);
	free(head);
}

/* Takes out the line that the message names; false: it names none. */
static bool drop_line(kernel *k, const char *message)
{
	const char *p = strstr(message, "fuzz:");
	unsigned wrong = p ? (unsigned)atoi(p + 5) : 0, n = 1, i = 0;

	for (const char *s = k->text; wrong && *s && n < wrong; s++)
		n += *s == '\n';
	unsigned lines = 0;
	for (const char *s = k->text; *s; s++)
		lines += *s == '\n';
	unsigned first = lines - 2 - k->nline; /* lines in front of the first instruction */
	if (wrong <= first || wrong > first + k->nline)
		return false;
	i = wrong - first - 1;
	refused[k->form[i]] = true;
	memmove(&k->line[i], &k->line[i + 1], (k->nline - i - 1) * sizeof *k->line);
	memmove(&k->form[i], &k->form[i + 1], (k->nline - i - 1) * sizeof *k->form);
	k->nline--;
	return true;
}

/* ---- running ---- */

static cptx_program *load(kernel *k, dice d, cptx_device *dev)
{
	for (;;) {
		cptx_error err = { 0 };
		write_kernel(k, d);
		cptx_program *p = cptx_device_load_text(dev, k->text, strlen(k->text), &(cptx_load_opt){ .name = "fuzz" }, &err);
		if (p || !k->nline)
			return p;
		if (!drop_line(k, err.text))
			return NULL;
	}
}

/* What was found, as a number. */
static uint64_t run(kernel *k, dice d, uint32_t threads, tally *t)
{
	static const uint32_t blocks[] = { 1, 32, 33, 128, 256 };
	cptx_emu_opt opt = { .seed = d.state, .step_limit = STEPS, .threads = threads, .schedule = roll(&d, 3) };
	cptx_device *dev = cptx_emu_open(k->target, &opt, NULL);
	uint64_t hash = 1, param[8] = { 0 };
	cptx_error err = { 0 };
	cptx_emu_counters count = { 0 };

	cptx_program *p = dev ? load(k, d, dev) : NULL;
	cptx_launch_opt o = { .grid = { 1 + roll(&d, 3) },
		                  .block = { blocks[roll(&d, 5)] },
		                  CPTX_ARGS(CPTX_ARG_BYTES(param, 64)) };
	if (cptx_target_find(k->target)->compute_capability >= 90 && !roll(&d, 3))
		o.cluster[0] = 2, o.grid[0] *= 2;
	if (p && cptx_launch_once(p, NULL, &o, NULL, &err))
		t->ended++;
	t->refused += !p;
	const cptx_emu_finding *f;
	for (size_t i = 0; dev && (f = cptx_emu_finding_at(dev, i)); i++)
		for (const char *c = f->text; *c; c++)
			hash = hash * 31 + (unsigned char)*c;
	t->found += hash != 1;
	if (dev)
		cptx_emu_get_counters(dev, &count);
	t->instructions += count.warp_instructions;
	cptx_program_destroy(p);
	cptx_device_close(dev);
	return hash * 31 + count.warp_instructions;
}

static void one(uint64_t seed, bool show, tally *t)
{
	static kernel k;
	dice d = { seed * UINT64_C(0x9e3779b97f4a7c15) + 1 };

	memset(refused, 0, sizeof refused);
	k.nline = 0;
	k.target = targets[roll(&d, sizeof targets / sizeof *targets)];
	for (unsigned want = 1 + roll(&d, LINES), tries = 0; k.nline < want && tries < 200; tries++)
		random_line(&k, &d);
	if (show) {
		write_kernel(&k, d);
		printf("seed %llu:\n%s", (unsigned long long)seed, k.text);
		fflush(stdout);
	}
	t->kernels++;
	uint64_t first = run(&k, d, 2, t);
	if (seed % 8 == 0 && run(&k, d, 1, t) != first) {
		printf("fuzz_emu: seed %llu: two runs differ\n", (unsigned long long)seed);
		t->same = false;
	}
}

/* ---- processes ---- */

/* What a process has done, in memory that it shares with the one that started it. */
typedef struct job {
	uint64_t seed; /* that it is at */
	tally t;
	unsigned failed; /* seeds */
	double seconds;  /* of CPU time, of processes that have ended */
	pid_t pid;
} job;

typedef struct request {
	uint64_t seed;
	unsigned seconds, most, jobs;
	bool show;
} request;

static double cpu(void) { return (double)clock() / CLOCKS_PER_SEC; }

static void work(job *j, const request *q)
{
	pool_init();
	for (double before = j->seconds; j->t.kernels < q->most && before + cpu() < q->seconds; j->seed += q->jobs) {
		alarm(MOST_WALL);
		j->t.same = true;
		one(j->seed, q->show, &j->t);
		j->failed += !j->t.same;
		j->seconds = before + cpu();
	}
}

static bool start(job *j, const request *q)
{
	fflush(NULL);
	pid_t pid = fork(); /* not into *j at once, which both share */
	if (pid == 0) {
		work(j, q);
		fflush(NULL);
		_exit(0);
	}
	j->pid = pid;
	return pid > 0;
}

/* One process has ended; false: none is left. */
static bool next(job *all, const request *q)
{
	int status;
	pid_t pid = wait(&status);

	if (pid < 0)
		return errno == EINTR;
	for (job *j = all; j < all + q->jobs; j++) {
		if (j->pid != pid || (WIFEXITED(status) && !WEXITSTATUS(status)))
			continue;
		printf("fuzz_emu: seed %llu: %s %d\n", (unsigned long long)j->seed,
		       WIFSIGNALED(status) ? "its process ended by signal" : "its process ended with status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		j->failed++;
		j->seed += q->jobs;
		if (j->failed < 100)
			start(j, q);
	}
	return true;
}

static int report(const job *all, unsigned jobs)
{
	tally t = { 0 };
	unsigned failed = 0;
	double seconds = 0;

	for (const job *j = all; j < all + jobs; j++) {
		t.kernels += j->t.kernels, t.instructions += j->t.instructions, t.ended += j->t.ended;
		t.found += j->t.found, t.refused += j->t.refused;
		failed += j->failed, seconds += j->seconds;
	}
	printf(
		"%u kernels in %.0f s of CPU, %llu instructions of warps: %u came to their end, %u with findings, %u not loaded\n",
		t.kernels, seconds, (unsigned long long)t.instructions, t.ended, t.found, t.refused);
	printf("fuzz_emu: %u passed, %u failed, 0 skipped\n", t.kernels - (failed < t.kernels ? failed : t.kernels), failed);
	return failed || (t.kernels > 100 && (!t.ended || !t.found));
}

static bool read_options(int argc, char **argv, request *q)
{
	for (int i = 1; i < argc; i += 2) {
		uint64_t n = i + 1 < argc ? strtoull(argv[i + 1], NULL, 0) : 0;
		if (i + 1 == argc)
			return false;
		if (!strcmp(argv[i], "--seed"))
			q->seed = n;
		else if (!strcmp(argv[i], "--seconds"))
			q->seconds = (unsigned)n;
		else if (!strcmp(argv[i], "--kernels"))
			q->most = (unsigned)n;
		else if (!strcmp(argv[i], "--jobs"))
			q->jobs = (unsigned)n;
		else if (!strcmp(argv[i], "--show"))
			q->show = n != 0;
		else
			return false;
	}
	return q->jobs && q->jobs <= MOST_JOBS;
}

int main(int argc, char **argv)
{
	request q = { .seed = 1, .seconds = 5, .most = ~0u, .jobs = 1 };

	if (!read_options(argc, argv, &q))
		return fprintf(stderr, "usage: fuzz_emu [--seed N] [--seconds N] [--kernels N] [--jobs N] [--show 1]\n"), 2;
	job *all = mmap(NULL, q.jobs * sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return fprintf(stderr, "fuzz_emu: no memory for %u jobs\n", q.jobs), 1;
	for (unsigned i = 0; i < q.jobs; i++) {
		all[i].seed = q.seed + i;
		if (!start(&all[i], &q))
			return fprintf(stderr, "fuzz_emu: no process %u\n", i), 1;
	}
	while (next(all, &q))
		;
	return report(all, q.jobs);
}
