/* SPDX-License-Identifier: MIT */
/* What kernels ask of the system and of one another: printf, memory, calls, local arrays, registers, atomics, barriers. */
#include "fuzz_kernel.h"

#include <stdio.h>
#include <string.h>

/* ---- printf ---- */

static void put_format(fuzz_kernel *k, char *out, size_t size)
{
	static const char *const parts[] = { "%d", "%u", "%5d", "%-8x|", "%+lld",  "%hhd", "%c",  "%f",  "%.3e",
		                                 "%g", "%a", "%p",  "%%",    "plain ", "\\n",  "%*d", "%.*f" };
	static const char *const odd[] = { "%n",       "%hhn",   "%lln",   "%s",      "%99s",    "%.0s",   "%y",
		                               "%",        "%-",     "%0",     "%1$d",    "%2$*1$d", "%ls",    "%lc",
		                               "%Lf",      "%hf",    "%zd",    "%jd",     "%td",     "%qd",    "%-+ #0123.45lld",
		                               "%.99999d", "%4000d", "%0*.*f", "%llllld", "%hhhhd",  "%\\001", "\\377\\200" };
	size_t n = 0;

	for (unsigned i = roll(&k->d, 6) + 1; i; i--) {
		bool wrong = fuzz_wrong(k) || (k->hostile && !roll(&k->d, 3));
		n += (size_t)snprintf(out + n, size - n, "%s",
		                      wrong ? odd[roll(&k->d, ARRAY_LEN(odd))] : parts[roll(&k->d, ARRAY_LEN(parts))]);
	}
}

void fuzz_printf(fuzz_kernel *k)
{
	char format[200];
	unsigned number = k->npiece;
	fuzz_piece *p = fuzz_piece_new(k, "printf");
	dice *d = &k->d;

	if (!p)
		return;
	put_format(k, format, sizeof format);
	bool ends = !fuzz_wrong(k);
	fuzz_declare(p, ".global .align 1 .b8 format%u[] = {", number);
	for (const char *s = format; *s; s++)
		fuzz_declare(p, "%s%u", s == format ? "" : ", ", (unsigned)(unsigned char)*s);
	fuzz_declare(p, "%s};\n", ends ? ", 0" : "");
	fuzz_put(p, "\t.local .align 8 .b8 args[64];\n\t.reg .b64 %%f, %%a, %%l, %%v;\n\t.reg .b32 %%back, %%n;\n\t.param .b64 "
	            "p0;\n\t.param .b64 p1;\n\t.param .b32 r0;\n");
	if (roll(d, 4))
		fuzz_put(p, "\t@!%%kp0 bra BEHIND;\n");
	fuzz_put(p, "\tmov.u64 %%l, args;\n\tcvta.local.u64 %%a, %%l;\n\tmov.u64 %%f, format%u;\n\tcvta.global.u64 %%f, %%f;\n",
	         number);
	for (unsigned i = 0; i < 8; i++)
		switch (roll(d, 5)) {
		case 0: fuzz_put(p, "\tcvt.u64.u32 %%v, %%k0;\n\tst.local.u64 [%%l+%u], %%v;\n", i * 8); break;
		case 1: fuzz_put(p, "\tst.local.u64 [%%l+%u], 0x%llx;\n", i * 8, (unsigned long long)fuzz_any(d)); break;
		case 2: fuzz_put(p, "\tst.local.f64 [%%l+%u], 0d400921FB54442D18;\n", i * 8); break;
		case 3: fuzz_put(p, "\tst.local.u64 [%%l+%u], %%f;\n", i * 8); break;
		default: fuzz_put(p, "\tst.local.u64 [%%l+%u], %u;\n", i * 8, roll(d, 20)); break;
		}
	if (fuzz_wrong(k))
		fuzz_put(p, "\tmov.u64 %%a, 0x%llx;\n", (unsigned long long)fuzz_wide(d));
	fuzz_put(p, "\tst.param.b64 [p0], %%f;\n\tst.param.b64 [p1], %%a;\n\tcall.uni (r0), vprintf, (p0, p1);\n\tld.param.b32 "
	            "%%back, [r0];\nBEHIND:\n");
	if (fuzz_wrong(k))
		fuzz_put(p,
		         "\t.param .b64 m;\n\t.param .b64 fi;\n\t.param .b32 li;\n\t.param .b64 fu;\n\t.param .b64 c;\n\tmov.u64 "
		         "%%f, format%u;\n\tst.param.b64 [m], %%f;\n\tst.param.b64 [fi], %%f;\n"
		         "\tst.param.b32 [li], 7;\n\tst.param.b64 [fu], %%f;\n\tst.param.b64 [c], 1;\n\tcall.uni __assertfail, (m, "
		         "fi, li, fu, c);\n",
		         number);
}

/* ---- memory ---- */

void fuzz_heap(fuzz_kernel *k)
{
	static const uint64_t sizes[] = {
		0, 1, 8, 24, 256, 4096, 100000, 9000000, UINT64_C(1) << 31, UINT64_C(1) << 40, UINT64_MAX, UINT64_MAX - 15
	};
	fuzz_piece *p = fuzz_piece_new(k, "heap");
	dice *d = &k->d;
	unsigned turns = 1 + roll(d, 4);
	uint64_t size = sizes[roll(d, k->hostile ? ARRAY_LEN(sizes) : 7)];

	if (!p)
		return;
	fuzz_put(p, "\t.param .b64 n;\n\t.param .b64 back;\n\t.param .b64 old;\n\t.reg .b64 %%p, %%n;\n\t.reg .pred "
	            "%%null;\n\t.reg .b32 %%turns, %%v;\n\tmov.u32 %%turns, 0;\n");
	if (roll(d, 3))
		fuzz_put(p, "\t@!%%kp%u bra BEHIND;\n", roll(d, 2));
	fuzz_put(p,
	         "AGAIN:\n\tst.param.b64 [n], %llu;\n\tcall.uni (back), malloc, (n);\n\tld.param.b64 %%p, "
	         "[back];\n\tsetp.eq.u64 %%null, %%p, 0;\n\t@%%null bra NOTHING;\n",
	         (unsigned long long)size);
	if (size >= 8)
		fuzz_put(p, "\tst.u32 [%%p+%u], %%k0;\n\tst.u32 [%%p], %%k1;\n\tld.u32 %%v, [%%p];\n\tatom.add.u32 %%v, [%%p], 1;\n",
		         fuzz_wrong(k) ? roll(d, 1 << 20) : (unsigned)(size > 4096 ? 4096 : size - 4) & ~3u);
	if (fuzz_wrong(k))
		fuzz_put(p, "\tadd.u64 %%p, %%p, %u;\n", roll(d, 64));
	bool twice = fuzz_wrong(k);
	if (roll(d, 5))
		for (unsigned i = 0; i <= twice; i++)
			fuzz_put(p, "\tst.param.b64 [old], %%p;\n\tcall.uni free, (old);\n");
	if (fuzz_wrong(k))
		fuzz_put(p, "\tld.u32 %%v, [%%p];\n\tst.u32 [%%p], 1;\n");
	fuzz_put(p,
	         "NOTHING:\n\tadd.u32 %%turns, %%turns, 1;\n\tsetp.lt.u32 %%null, %%turns, %u;\n\t@%%null bra AGAIN;\nBEHIND:\n",
	         turns);
}

/* What the host has allocated, mapped, freed. */
void fuzz_handed(fuzz_kernel *k)
{
	fuzz_piece *p = fuzz_piece_new(k, "handed");
	dice *d = &k->d;

	if (!p)
		return;
	fuzz_put(p,
	         "\t.reg .b64 %%p;\n\t.reg .b32 %%v;\n\t.reg .pred %%null;\n\tld.global.u64 %%p, [handed+%u];\n\tsetp.eq.u64 "
	         "%%null, %%p, 0;\n\t@%%null bra NOTHING;\n",
	         8 * (k->hostile ? roll(d, FUZZ_HANDED) : roll(d, FUZZ_HANDED / 2)));
	fuzz_put(p,
	         "\tld.global.u32 %%v, [%%p];\n\tst.global.u32 [%%p+%u], %%v;\n\tatom.global.add.u32 %%v, [%%p], "
	         "%%k0;\n\tred.add.u32 [%%p+4], 1;\n",
	         fuzz_wrong(k) ? roll(d, 1 << 24) : 8);
	if (k->cc >= 90 && roll(d, 2))
		fuzz_put(p, "\t@%%kp0 cp.async.bulk.global.shared::cta.bulk_group [%%p], [%%k1], "
		            "16;\n\tcp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;\n");
	fuzz_put(p, "NOTHING:\n");
}

void fuzz_local(fuzz_kernel *k)
{
	fuzz_piece *p = fuzz_piece_new(k, "local");
	dice *d = &k->d;
	unsigned size = 16u << roll(d, 8), turns = 1 + roll(d, 6);

	if (!p)
		return;
	fuzz_put(p,
	         "\t.local .align 16 .b8 array[%u];\n\t.reg .b64 %%p, %%l, %%saved, %%i;\n\t.reg .b32 %%v, %%n, %%w;\n\t.reg "
	         ".pred %%more;\n\tmov.u64 %%l, array;\n\tcvta.local.u64 %%p, %%l;\n",
	         size);
	fuzz_put(p,
	         "\tand.b32 %%v, %%k0, %u;\n\tcvt.u64.u32 %%i, %%v;\n\tadd.u64 %%i, %%i, %%l;\n\tst.local.u32 [%%i%s], "
	         "%%k0;\n\tst.local.v4.u32 [%%l], {%%k0, %%k1, %%k2, %%k3};\n\tld.u32 %%v, [%%p];\n",
	         (size - 1) & ~3u, fuzz_wrong(k) ? "+1000000" : "");
	if (roll(d, 2))
		return;
	uint64_t bytes = fuzz_wrong(k) ? fuzz_wide(d) : 16u << roll(d, 8);
	unsigned align = fuzz_wrong(k) ? 1u << roll(d, 20) : 16;
	fuzz_put(p,
	         "\tstacksave.u64 %%saved;\n\tmov.u32 %%n, 0;\nMORE:\n\tmov.u64 %%i, %llu;\n\talloca.u64 %%l, %%i, "
	         "%u;\n\tst.local.u32 [%%l], %%n;\n\tld.local.u32 %%v, [%%l];\n"
	         "\tadd.u32 %%n, %%n, 1;\n\tsetp.lt.u32 %%more, %%n, %u;\n\t@%%more bra MORE;\n",
	         (unsigned long long)bytes, align, turns);
	fuzz_put(p, "\tstackrestore.u64 %%%s;\n", fuzz_wrong(k) ? "p" : "saved");
}

/* ---- calls ---- */

void fuzz_indirect(fuzz_kernel *k)
{
	unsigned number = k->npiece, deep = fuzz_wrong(k) ? 1 + roll(&k->d, 100000) : roll(&k->d, 6);
	fuzz_piece *p = fuzz_piece_new(k, "indirect");

	if (!p)
		return;
	fuzz_declare(p,
	             ".func (.param .b32 r) down%u (.param .b32 n) {\n\t.reg .b32 %%n, %%v;\n\t.reg .pred %%p;\n\t.local .align "
	             "4 .b8 own[%u];\n\tld.param.b32 %%n, [n];\n"
	             "\tmov.u32 %%v, 1;\n\tst.local.u32 [own], %%n;\n\tsetp.eq.u32 %%p, %%n, 0;\n\t@%%p bra OUT;\n\tsub.u32 "
	             "%%n, %%n, 1;\n\t{\n\t.param .b32 a;\n\t.param .b32 b;\n"
	             "\tst.param.b32 [a], %%n;\n\tcall (b), down%u, (a);\n\tld.param.b32 %%v, [b];\n\t}\nOUT:\n\tadd.u32 %%v, "
	             "%%v, 1;\n\tst.param.b32 [r], %%v;\n\tret;\n}\n",
	             number, 4u << roll(&k->d, 8), number);
	fuzz_declare(p,
	             ".func (.param .b32 r) twice%u (.param .b32 n) {\n\t.reg .b32 %%n;\n\tld.param.b32 %%n, [n];\n\tadd.u32 "
	             "%%n, %%n, %%n;\n\tst.param.b32 [r], %%n;\n\tret;\n}\n",
	             number);
	fuzz_put(p,
	         "\t.reg .b64 %%f, %%g;\n\t.reg .b32 %%v, %%odd;\n\t.reg .pred %%p;\n\t.param .b32 a;\n\t.param .b32 "
	         "b;\n\tmov.u64 %%f, down%u;\n\tmov.u64 %%g, twice%u;\n"
	         "\tand.b32 %%odd, %%k0, 1;\n\tsetp.eq.u32 %%p, %%odd, 0;\n\tselp.b64 %%f, %%f, %%g, %%p;\n",
	         number, number);
	if (fuzz_wrong(k))
		fuzz_put(p, "\tmov.u64 %%f, %s;\n", roll(&k->d, 2) ? "%kd0" : "0x123456789");
	fuzz_put(p,
	         "PROTO: .callprototype (.param .b32 _) _ (.param .b32 _);\n\tst.param.b32 [a], %u;\n\tcall (b), %%f, (a), "
	         "PROTO;\n\tld.param.b32 %%v, [b];\n\tst.global.b32 [in_global+2048], %%v;\n",
	         deep);
	fuzz_put(p,
	         "\t.reg .b32 %%which;\n\tand.b32 %%which, %%k0, %u;\nTABLE: .branchtargets T0, T1, T2;\n\tbrx.idx %%which, "
	         "TABLE;\nT0:\n\tadd.u32 %%v, %%v, 1;\nT1:\n\tadd.u32 %%v, %%v, 2;\nT2:\n",
	         fuzz_wrong(k) ? 3 : 1);
}

/* ---- registers, and launches in a row ---- */

void fuzz_registers(fuzz_kernel *k)
{
	bool whole = k->cc >= 90 && k->threads % 128 == 0 && !k->registers;
	fuzz_piece *p = k->cc >= 90 ? fuzz_piece_new(k, "registers") : NULL;

	if (!p)
		return;
	fuzz_put(p, "\tgriddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;\n");
	if (!whole && !fuzz_wrong(k))
		return;
	k->registers = true;
	unsigned few = 24 + roll(&k->d, 8) * 8, many = fuzz_wrong(k) ? 24 + roll(&k->d, 30) * 8 : 168 + roll(&k->d, 5) * 8;
	fuzz_put(p,
	         "\t.reg .pred %%few;\n\tsetp.lt.u32 %%few, %%k0, 128;\n\t@%%few bra FEW;\n\tsetmaxnreg.inc.sync.aligned.u32 "
	         "%u;\n\tbra.uni OUT;\nFEW:\n\tsetmaxnreg.%s.sync.aligned.u32 %u;\nOUT:\n",
	         many, fuzz_wrong(k) ? "inc" : "dec", few);
}

/* ---- atomics and barriers ---- */

void fuzz_atomics(fuzz_kernel *k)
{
	static const struct {
		const char *front, *back; /* of the space */
	} ops[] = { { "atom", ".add.u32 %v, [%p], %k0" },
		        { "atom", ".max.s64 %l, [%p], %kd0" },
		        { "atom", ".cas.b32 %v, [%p], 0, %k0" },
		        { "atom", ".exch.b64 %l, [%p], %kd0" },
		        { "atom", ".inc.u32 %v, [%p], 77" },
		        { "atom", ".add.f64 %x, [%p], 0d3ff0000000000000" },
		        { "atom.acq_rel.gpu", ".add.u32 %v, [%p], 1" },
		        { "red", ".add.f32 [%p], 0f3f800000" },
		        { "red", ".and.b32 [%p], %k0" },
		        { "red", ".add.noftz.f16x2 [%p], %k0" },
		        { "ld.acquire.gpu", ".u32 %v, [%p]" },
		        { "ld.volatile", ".u32 %v, [%p]" },
		        { "st.release.gpu", ".u32 [%p], %k0" } };
	fuzz_piece *p = fuzz_piece_new(k, "atomics");
	dice *d = &k->d;

	if (!p)
		return;
	fuzz_put(p, "\t.reg .b64 %%p, %%l;\n\t.reg .b32 %%v;\n\t.reg .f64 %%x;\n");
	for (unsigned n = 1 + roll(d, 5); n; n--) {
		bool shared = roll(d, 2);
		unsigned i = roll(d, ARRAY_LEN(ops));
		fuzz_put(p, "\tmov.u64 %%p, %s+%u;\n", shared ? "in_shared" : "in_global",
		         fuzz_wrong(k) ? roll(d, 1 << 20) : 4096 + roll(d, 32) * 8);
		fuzz_put(p, "\t%s%s%s;\n", ops[i].front, shared ? ".shared" : ".global", ops[i].back);
	}
	if (!roll(d, 3))
		fuzz_put(p, "\tfence.acq_rel.gpu;\n\tmembar.gl;\n");
}

void fuzz_barriers(fuzz_kernel *k)
{
	fuzz_piece *p = fuzz_piece_new(k, "barriers");
	dice *d = &k->d;

	if (!p)
		return;
	fuzz_put(p, "\t.reg .b32 %%v, %%mask;\n\t.reg .pred %%one;\n\tmov.b32 %%mask, %s;\n", fuzz_wrong(k) ? "0x123" : "-1");
	for (unsigned n = 1 + roll(d, 5); n; n--)
		switch (roll(d, 9)) {
		case 0: fuzz_put(p, "\tbar.sync %u;\n", fuzz_wrong(k) ? roll(d, 16) : 0); break;
		case 1: fuzz_put(p, "\tbar.red.popc.u32 %%v, %u, %%kp0;\n", roll(d, 4)); break;
		case 2:
			if (k->cc >= 90)
				fuzz_put(p, "\tbarrier.cluster.arrive%s;\n\tbarrier.cluster.wait;\n", roll(d, 2) ? ".relaxed" : "");
			break;
		case 3:
			if (k->cc >= 90 && k->threads % 32 == 0)
				fuzz_put(p, "\telect.sync %%v|%%one, %%mask;\n\t@%%one st.global.b32 [in_global+4], %%v;\n");
			break;
		case 4:
			if (k->threads % 32 == 0)
				fuzz_put(p,
				         "\tshfl.sync.bfly.b32 %%v, %%k0, %u, 31, %%mask;\n\tmatch.any.sync.b32 %%v, %%k0, "
				         "%%mask;\n\tvote.sync.ballot.b32 %%v, %%kp0, %%mask;\n\tredux.sync.add.s32 %%v, %%k0, %%mask;\n",
				         roll(d, 32));
			break;
		case 5: fuzz_put(p, "\tnanosleep.u32 %u;\n", roll(d, 100)); break;
		case 6:
			if (k->threads % 32 == 0)
				fuzz_put(p, "\tbar.warp.sync %%mask;\n");
			break;
		case 7:
			if (fuzz_wrong(k)) {
				unsigned number = roll(d, 16);
				fuzz_put(p, "\t@%%kp0 bra APART;\n\tbar.arrive %u, %u;\nAPART:\n", number, roll(d, 40) * 16);
			}
			break;
		default: fuzz_put(p, "\tactivemask.b32 %%v;\n\tst.global.b32 [in_global+8], %%v;\n"); break;
		}
}
