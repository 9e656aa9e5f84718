/* SPDX-License-Identifier: MIT */
/*
 * Text of instructions, mutated at random: cptx_asm takes it or says why not, and what it takes prints.  The sanitizer
 * builds watch.  The seed is fixed; FUZZ_TURNS turns.
 */
#include "../sanitized.h"
#include "verify.h"

#define FUZZ_TURNS SAMPLE_OF(100000u, 6000u)

static uint64_t state = 88172645463325252u;

static unsigned roll(unsigned n)
{
	state ^= state << 13, state ^= state >> 7, state ^= state << 17;
	return (unsigned)((state >> 20) % n);
}

static const char *const seeds[] = {
	"add.u32 {}, {}, 1;",
	"@!{} ld.global.v4.f32 {}, [{}+16];",
	"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {}, {}, {}, {};",
	"setp.lt.and.f32 {}|{}, {}, 0f3F800000, !{};",
	"cp.async.cg.shared.global.L2::128B [{}], [{}-8], 16, {};",
	"st.shared.v2.b32 [{}+4], {{}, {}};",
	"mov.u64 {}, %clock64;",
	"shfl.sync.bfly.b32 {}|{}, {}, 0x10, 31, -1;",
	"bar.sync 0;",
};

/* Cuts, doubles, swaps and overwrites pieces. */
static void mutate(char text[512])
{
	static const char alphabet[] = "{}[]|,;.!@%+-_ \t:0123456789abcdefxrusp\"\\\x01\xff";
	size_t n = strlen(text), at = n ? roll((unsigned)n) : 0, len = n ? 1 + roll((unsigned)(n - at < 8 ? n - at : 8)) : 0;

	switch (roll(4)) {
	case 0: memmove(text + at, text + at + len, n - at - len + 1); break;
	case 1:
		if (n + len < 511) {
			memmove(text + at + len, text + at, n - at + 1);
		}
		break;
	case 2:
		if (n)
			text[at] = alphabet[roll(sizeof alphabet - 1)];
		break;
	default: {
		const char *other = seeds[roll(ARRAY_LEN(seeds))];
		size_t from = roll((unsigned)strlen(other)), more = strlen(other + from);
		if (at + more < 511)
			memcpy(text + at, other + from, more + 1);
	}
	}
}

START_TEST(mutated_text)
{
	unsigned taken = 0;

	for (unsigned i = 0; i < FUZZ_TURNS; i++) {
		char text[512];
		fresh();
		const cptx_val pool[] = { s.a,
			                      s.b,
			                      s.f,
			                      s.d,
			                      s.p,
			                      s.ptr,
			                      s.w,
			                      cptx_label(s.k),
			                      cptx_imm(7),
			                      cptx_immf(0.5),
			                      cptx_elem(s.w, roll(6)),
			                      cptx_offset(s.ptr, 8),
			                      s.func,
			                      s.foreign,
			                      { 0 } };
		cptx_val holes[8];
		unsigned n = roll(8);
		for (unsigned j = 0; j < n; j++)
			holes[j] = pool[roll(ARRAY_LEN(pool))];
		strcpy(text, seeds[roll(ARRAY_LEN(seeds))]);
		for (unsigned j = roll(4); j; j--)
			mutate(text);
		size_t before = cptx_module_size(s.m);
		cptx_asm_(s.k, CPTX_HERE, text, holes, n);
		const cptx_error *err = cptx_module_error(s.m);
		ck_assert_msg(!err || (err->code != CPTX_OK && strlen(err->text) > 10), "no words for: %s", text);
		ck_assert_uint_eq(cptx_module_size(s.m), before + !err);
		cptx_ptx *ptx = err ? NULL : cptx_emit(s.m, "sm_100a", NULL, NULL);
		taken += ptx != NULL;
		cptx_ptx_destroy(ptx);
		drop();
	}
	ck_assert_uint_gt(taken, FUZZ_TURNS / 1000); /* else nothing was tried in earnest */
}
END_TEST

int main(void)
{
	const TTest *const tests[] = { mutated_text };
	return verify_run("fuzz", tests, ARRAY_LEN(tests), false);
}
