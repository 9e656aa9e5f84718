/* SPDX-License-Identifier: MIT */
/* What is found wrong with tcgen05: kernels with a mistake, and their repaired twins. */
#include "tcgen05_found.h"

#include "../sanitized.h"

#define ALLOC(n)                                                                                                            \
	".shared .align 8 .b64 mb; .shared .b32 slot; .shared .align 1024 .b8 tile[8192]; setp.eq.u32 %p0, %r0, 0;"             \
	"setp.lt.u32 %p1, %r0, 32; @!%p1 bra A; mov.u32 %r40, " n ";"                                                           \
	"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], %r40; @%p0 mbarrier.init.shared.b64 [mb], 1;"          \
	"A: bar.sync 0; ld.shared.u32 %r1, [slot]; and.b32 %r2, %r0, 0x60; shl.b32 %r2, %r2, 16; add.u32 %r2, %r2, %r1;"
#define FREE(at, n) "bar.sync 0; @!%p1 bra D; tcgen05.dealloc.cta_group::1.sync.aligned.b32 " at ", " n "; D:"
#define ALL(middle) ALLOC("64") middle FREE("%r1", "64")
#define ST "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r0};"
#define LD "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r3}, [%r2];"
#define WAIT_ST "tcgen05.wait::st.sync.aligned;"
#define WAIT_LD "tcgen05.wait::ld.sync.aligned;"
#define OUT "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; st.global.u32 [%rd1], %r3;"
/* Ones in shared memory; %rd2: descriptor of A and B without a swizzle; %r4: bf16, m128n8. */
#define TILE                                                                                                                \
	"mov.u32 %r10, tile; shl.b32 %r11, %r0, 2; add.u32 %r11, %r10, %r11; mov.u32 %r12, 0x3f803f80; mov.u32 %r13, 0;"        \
	"F: st.shared.u32 [%r11], %r12; add.u32 %r11, %r11, 512; add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, 16; @%p2 bra F;" \
	"fence.proxy.async; bar.sync 0; shr.u32 %r10, %r10, 4; cvt.u64.u32 %rd2, %r10; mov.u64 %rd3, 0x0000401000080000;"       \
	"or.b64 %rd2, %rd2, %rd3; mov.u32 %r4, 0x08020490; setp.ne.u32 %p3, %r0, %r0;"
#define MMA "@!%p0 bra M; tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd2, %rd2, %r4, %p3;" COMMIT " M:"
#define MMA_ALONE "@!%p0 bra M; tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd2, %rd2, %r4, %p3; M:"
/* m128n64, columns shifted by up to 8. */
#define MMA_WS(mask)                                                                                                        \
	"mov.u32 %r4, 0x48100490; mov.u64 %rd4, " mask "; @!%p0 bra M;"                                                         \
	"tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %rd2, %rd2, %r4, %p3, %rd4;" COMMIT " M:"
#define COMMIT "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [mb];"
#define WAIT_MMA "W: mbarrier.try_wait.parity.shared.b64 %p4, [mb], 0; @!%p4 bra W;"
#define AFTER "tcgen05.fence::after_thread_sync;"
#define BEFORE "tcgen05.fence::before_thread_sync;"

static const struct found {
	const char *what;
	enum cptx_finding_code code;
	unsigned block;
	const char *bad, *good;
} all[] = {
	{ "columns that are no power of two", CPTX_FIND_TMEM_ALLOC, 32, ALLOC("96") FREE("%r1", "64"), ALL("") },
	{ "too many columns", CPTX_FIND_TMEM_ALLOC, 32, ALLOC("1024") FREE("%r1", "64"), ALL("") },
	{ "allocation after relinquishing", CPTX_FIND_TMEM_ALLOC, 32,
	  "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ALL(""),
	  ALL("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;") },
	{ "freed twice", CPTX_FIND_TMEM_FREE, 32, ALL("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;"), ALL("") },
	{ "freed with another size", CPTX_FIND_TMEM_FREE, 32, ALLOC("64") FREE("%r1", "32"), ALL("") },
	{ "freed at another address", CPTX_FIND_TMEM_FREE, 32, ALLOC("64") "add.u32 %r1, %r1, 32;" FREE("%r1", "64"), ALL("") },
	{ "never freed", CPTX_FIND_TMEM_LEAK, 32, ALLOC("64"), ALL("") },
	{ "more than there is", CPTX_FIND_DEADLOCK, 32,
	  ALLOC("512") "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;" FREE("%r1", "512"),
	  ALLOC("512") FREE("%r1", "512") },
	{ "lanes of another warp", CPTX_FIND_TMEM_LANES, 64, ALL("mov.u32 %r2, %r1;" ST WAIT_ST), ALL(ST WAIT_ST) },
	{ "columns of nobody", CPTX_FIND_TMEM_LANES, 32, ALL("add.u32 %r2, %r2, 64;" ST WAIT_ST),
	  ALL("add.u32 %r2, %r2, 63;" ST WAIT_ST) },
	{ "more columns than are allocated", CPTX_FIND_TMEM_LANES, 32,
	  ALL("add.u32 %r2, %r2, 63; tcgen05.st.sync.aligned.32x32b.x2.b32 [%r2], {%r0, %r0};" WAIT_ST),
	  ALL("add.u32 %r2, %r2, 62; tcgen05.st.sync.aligned.32x32b.x2.b32 [%r2], {%r0, %r0};" WAIT_ST) },
	{ "what was never written", CPTX_FIND_UNDEFINED, 32, ALL(LD WAIT_LD OUT), ALL(ST WAIT_ST LD WAIT_LD OUT) },
	{ "no wait for a load", CPTX_FIND_EARLY_READ, 32, ALL(ST WAIT_ST LD OUT WAIT_LD), ALL(ST WAIT_ST LD WAIT_LD OUT) },
	{ "no wait for a store", CPTX_FIND_ASYNC_WAIT, 32, ALL(ST LD WAIT_LD OUT WAIT_ST), ALL(ST WAIT_ST LD WAIT_LD OUT) },
	{ "no wait for mma", CPTX_FIND_ASYNC_WAIT, 128, ALL(TILE MMA LD WAIT_LD WAIT_MMA AFTER),
	  ALL(TILE MMA WAIT_MMA AFTER LD WAIT_LD OUT) },
	{ "no fence behind the wait", CPTX_FIND_TMEM_FENCE, 128, ALL(TILE MMA WAIT_MMA LD WAIT_LD OUT AFTER),
	  ALL(TILE MMA WAIT_MMA AFTER LD WAIT_LD OUT) },
	{ "mma over what is being loaded", CPTX_FIND_ASYNC_WAIT, 128, ALL(ST WAIT_ST TILE LD MMA WAIT_MMA AFTER WAIT_LD OUT),
	  ALL(ST WAIT_ST TILE LD WAIT_LD OUT BEFORE "bar.sync 0;" AFTER MMA WAIT_MMA AFTER) },
	{ "no fence behind loads, in front of the barrier", CPTX_FIND_TMEM_FENCE, 128,
	  ALL(ST WAIT_ST TILE LD WAIT_LD OUT "bar.sync 0;" AFTER MMA WAIT_MMA AFTER),
	  ALL(ST WAIT_ST TILE LD WAIT_LD OUT BEFORE "bar.sync 0;" AFTER MMA WAIT_MMA AFTER) },
	{ "no fence in front of mma over what was loaded", CPTX_FIND_TMEM_FENCE, 128,
	  ALL(ST WAIT_ST TILE LD WAIT_LD OUT BEFORE "bar.sync 0;" MMA WAIT_MMA AFTER),
	  ALL(ST WAIT_ST TILE LD WAIT_LD OUT BEFORE "bar.sync 0;" AFTER MMA WAIT_MMA AFTER) },
	{ "no fence behind stores, in front of the barrier", CPTX_FIND_TMEM_FENCE, 128,
	  ALL(TILE ST WAIT_ST "bar.sync 0;" AFTER MMA WAIT_MMA AFTER),
	  ALL(TILE ST WAIT_ST BEFORE "bar.sync 0;" AFTER MMA WAIT_MMA AFTER) },
	{ "mma over stores under way", CPTX_FIND_ASYNC_WAIT, 128, ALL(TILE ST MMA WAIT_MMA AFTER WAIT_ST),
	  ALL(TILE ST WAIT_ST BEFORE "bar.sync 0;" AFTER MMA WAIT_MMA AFTER) },
	{ "freed while mma is under way", CPTX_FIND_ASYNC_WAIT, 128, ALL(TILE MMA), ALL(TILE MMA WAIT_MMA AFTER) },
	{ "a commit in front", CPTX_FIND_ASYNC_WAIT, 128, ALL(TILE "@%p0 " COMMIT MMA_ALONE WAIT_MMA AFTER LD WAIT_LD OUT),
	  ALL(TILE MMA WAIT_MMA AFTER LD WAIT_LD OUT) },
	{ "no proxy fence", CPTX_FIND_PROXY, 128, ALL(TILE "@%p0 st.shared.u32 [tile], %r13; bar.sync 0;" MMA WAIT_MMA AFTER),
	  ALL(TILE "@%p0 st.shared.u32 [tile], %r13; fence.proxy.async; bar.sync 0;" MMA WAIT_MMA AFTER) },
	{ "A overwritten too soon", CPTX_FIND_ASYNC_WAIT, 128, ALL(TILE MMA "@%p0 st.shared.u32 [tile], %r13;" WAIT_MMA AFTER),
	  ALL(TILE MMA WAIT_MMA AFTER "@%p0 st.shared.u32 [tile], %r13;") },
	{ "an instruction descriptor with a reserved bit", CPTX_FIND_DESCRIPTOR, 128,
	  ALL(TILE "or.b32 %r4, %r4, 64;" MMA WAIT_MMA AFTER), ALL(TILE MMA WAIT_MMA AFTER) },
	{ "a shape that is none", CPTX_FIND_DESCRIPTOR, 128, ALL(TILE "mov.u32 %r4, 0x06020490;" MMA WAIT_MMA AFTER),
	  ALL(TILE MMA WAIT_MMA AFTER) },
	{ "a matrix descriptor of wgmma", CPTX_FIND_DESCRIPTOR, 128,
	  ALL(TILE "and.b64 %rd2, %rd2, 0xffffffff;" MMA WAIT_MMA AFTER), ALL(TILE MMA WAIT_MMA AFTER) },
	{ "rows past their swizzle", CPTX_FIND_DESCRIPTOR, 128,
	  ALL(TILE "or.b64 %rd2, %rd2, 0x4000000000000007;" MMA WAIT_MMA AFTER),
	  ALL(TILE "or.b64 %rd2, %rd2, 0x4000000000000006;" MMA WAIT_MMA AFTER) },
	{ "a matrix behind shared memory", CPTX_FIND_DESCRIPTOR, 128, ALL(TILE "add.u64 %rd2, %rd2, 0x300;" MMA WAIT_MMA AFTER),
	  ALL(TILE MMA WAIT_MMA AFTER) },
	{ "columns shifted too far", CPTX_FIND_DESCRIPTOR, 128, ALL(TILE MMA_WS("0x0900000000000000") WAIT_MMA AFTER),
	  ALL(TILE MMA_WS("0x0800000000000000") WAIT_MMA AFTER) },
	{ "a start count past the first run", CPTX_FIND_DESCRIPTOR, 128, ALL(TILE MMA_WS("0x0003028000000004") WAIT_MMA AFTER),
	  ALL(TILE MMA_WS("0x0003028000000003") WAIT_MMA AFTER) },
	{ "96 elements where there are 64", CPTX_FIND_DESCRIPTOR, 128,
	  ALL(TILE "mov.u32 %r4, 0x88820480; @!%p0 bra M;"
	           "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r1], %rd2, %rd2, %r4, [%r1], [%r1], %p3; M:"),
	  ALL(TILE MMA WAIT_MMA AFTER) },
	{ "a third column of metadata", CPTX_FIND_DESCRIPTOR, 128,
	  ALL(TILE "mov.u32 %r4, 0x08020496; @!%p0 bra M;"
	           "tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd2, %rd2, [%r1], %r4, %p3; M:"),
	  ALL(TILE MMA WAIT_MMA AFTER) },
	{ "accumulators in the wrong lanes", CPTX_FIND_TMEM_LANES, 128,
	  ALL(TILE "add.u32 %r1, %r1, 0x100000;" MMA WAIT_MMA AFTER), ALL(TILE MMA WAIT_MMA AFTER) },
	{ "accumulators in lanes that are not there", CPTX_FIND_TMEM_LANES, 128,
	  ALL(TILE "add.u32 %r1, %r1, 0xffff0000;" MMA WAIT_MMA AFTER), ALL(TILE MMA WAIT_MMA AFTER) },
};

static bool is_lenient(enum cptx_finding_code code) { return code == CPTX_FIND_TMEM_FENCE || code == CPTX_FIND_EARLY_READ; }

static void run(const struct found *f, bool bad, uint64_t seed)
{
	uint32_t data[128] = { 0 };
	trial t = { .target = "sm_100a",
		        .block = { f->block },
		        .body = bad ? f->bad : f->good,
		        .data = data,
		        .size = sizeof data,
		        .opt.seed = seed };

	t.opt.pedantic = is_lenient(f->code);
	trial_run(&t);
	if (bad)
		ck_assert_msg(trial_found(&t, f->code), "%s, seed %u: not found; %s\n%s", f->what, (unsigned)seed, t.err.text,
		              t.message);
	else
		ck_assert_msg(t.ok && !t.found[0], "%s, repaired, seed %u: %s\n%s", f->what, (unsigned)seed, t.err.text, t.message);
}

/* Who is not pedantic is warned, and gets what the repaired twin gives. */
static void warned(const struct found *f, uint64_t seed)
{
	uint32_t data[2][128] = { { 0 } };

	for (unsigned good = 0; good < 2; good++) {
		trial t = { .target = "sm_100a",
			        .block = { f->block },
			        .body = good ? f->good : f->bad,
			        .data = data[good],
			        .size = sizeof *data,
			        .opt.seed = seed };
		trial_run(&t);
		ck_assert_msg(t.ok && good == !trial_found(&t, f->code), "%s, seed %u: %s\n%s", f->what, (unsigned)seed, t.err.text,
		              t.message);
	}
	ck_assert_mem_eq(data[0], data[1], sizeof *data);
}

void tcgen05_findings(void)
{
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (uint64_t seed = 0; seed < SAMPLE_OF(20, 4); seed++) {
			run(&all[i], true, seed);
			run(&all[i], false, seed);
			if (is_lenient(all[i].code))
				warned(&all[i], seed);
		}
}
