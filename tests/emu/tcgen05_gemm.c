/* SPDX-License-Identifier: MIT */
/* Whole kernels: a GEMM through tcgen05.mma, copies into tensor memory, shifts, reductions. */
#include "tcgen05_gemm.h"

/*
 * D = A * B^T, bf16, all N x N and K-major: each block makes 128 x 128 of D.  64 columns of A and B at a time go to shared
 * memory in the 128B swizzle; %r40: the mbarrier's parity.
 */
#define N "512"
static const char gemm[] =
	".shared .align 8 .b64 mb; .shared .b32 slot; .shared .align 1024 .b8 ta[16384]; .shared .align 1024 .b8 tb[16384];"
	".reg .b32 %d<32>; .reg .pred %enable; setp.eq.u32 %p0, %r0, 0; setp.lt.u32 %p1, %r0, 32; @!%p1 bra A;"
	"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 128; "
	"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"
	"@%p0 mbarrier.init.shared.b64 [mb], 1; A: tcgen05.fence::before_thread_sync; bar.sync 0; "
	"tcgen05.fence::after_thread_sync;"
	"ld.shared.u32 %r1, [slot];"
	/* %rd1, %rd2: the thread's row of A and B; %r4, %r5: in shared memory */
	"mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; shl.b32 %r2, %r2, 7; shl.b32 %r3, %r3, 7;"
	"add.u32 %r6, %r2, %r0; mul.wide.u32 %rd1, %r6, 1024; add.u64 %rd1, %rd0, %rd1;"
	"add.u32 %r7, %r3, %r0; mul.wide.u32 %rd2, %r7, 1024; add.u64 %rd2, %rd0, %rd2; add.u64 %rd2, %rd2, 524288;"
	"mov.u32 %r4, ta; mov.u32 %r5, tb; shl.b32 %r8, %r0, 7; and.b32 %r9, %r0, 7; shl.b32 %r9, %r9, 4;"
	"shr.u32 %r10, %r4, 4; shr.u32 %r11, %r5, 4; cvt.u64.u32 %rd3, %r10; cvt.u64.u32 %rd4, %r11;"
	"mov.u64 %rd5, 0x4000404000000000; or.b64 %rd3, %rd3, %rd5; or.b64 %rd4, %rd4, %rd5;"
	"mov.u32 %r12, 0x08200490; mov.u32 %r13, 0; mov.u32 %r40, 0; setp.ne.u32 %enable, %r0, %r0;"
	"K: mov.u32 %r14, 0;"
	"COPY: ld.global.v4.u32 {%r16, %r17, %r18, %r19}, [%rd1]; ld.global.v4.u32 {%r20, %r21, %r22, %r23}, [%rd2];"
	"xor.b32 %r15, %r14, %r9; add.u32 %r15, %r15, %r8; add.u32 %r24, %r15, %r4; add.u32 %r25, %r15, %r5;"
	"st.shared.v4.u32 [%r24], {%r16, %r17, %r18, %r19}; st.shared.v4.u32 [%r25], {%r20, %r21, %r22, %r23};"
	"add.u64 %rd1, %rd1, 16; add.u64 %rd2, %rd2, 16; add.u32 %r14, %r14, 16; setp.lt.u32 %p2, %r14, 128; @%p2 bra COPY;"
	"fence.proxy.async; bar.sync 0; @!%p0 bra WAIT; mov.u64 %rd6, %rd3; mov.u64 %rd7, %rd4; mov.u32 %r14, 0;"
	"MMA: tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd6, %rd7, %r12, %enable; setp.eq.u32 %enable, %r0, %r0;"
	"add.u64 %rd6, %rd6, 2; add.u64 %rd7, %rd7, 2; add.u32 %r14, %r14, 1; setp.lt.u32 %p2, %r14, 4; @%p2 bra MMA;"
	"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [mb];"
	"WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [mb], %r40; @!%p2 bra WAIT; xor.b32 %r40, %r40, 1;"
	"add.u32 %r13, %r13, 64; setp.lt.u32 %p2, %r13, " N "; @%p2 bra K; tcgen05.fence::after_thread_sync;"
	/* %rd8: row of D, from column %r3 on */
	"mul.wide.u32 %rd8, %r6, 2048; mul.wide.u32 %rd9, %r3, 4; add.u64 %rd8, %rd8, %rd9; add.u64 %rd8, %rd0, %rd8;"
	"add.u64 %rd8, %rd8, 1048576; and.b32 %r2, %r0, 0x60; shl.b32 %r2, %r2, 16; add.u32 %r2, %r2, %r1; mov.u32 %r14, 0;"
	"D: tcgen05.ld.sync.aligned.32x32b.x8.b32 {%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}, [%r2]; "
	"tcgen05.wait::ld.sync.aligned;"
	"st.global.v4.u32 [%rd8], {%d0, %d1, %d2, %d3}; st.global.v4.u32 [%rd8+16], {%d4, %d5, %d6, %d7};"
	"add.u64 %rd8, %rd8, 32; add.u32 %r2, %r2, 8; add.u32 %r14, %r14, 8; setp.lt.u32 %p2, %r14, 128; @%p2 bra D;"
	"tcgen05.fence::before_thread_sync; bar.sync 0; @!%p1 bra END;"
	"tcgen05.fence::after_thread_sync; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 128; END:";

void tcgen05_gemm(uint64_t seed)
{
	enum { SIZE = 512 };
	struct {
		uint16_t a[SIZE][SIZE], b[SIZE][SIZE];
		float d[SIZE][SIZE];
	} *x = calloc(1, sizeof *x);

	ck_assert_ptr_nonnull(x);
	for (unsigned i = 0; i < SIZE; i++)
		for (unsigned j = 0; j < SIZE; j++) {
			x->a[i][j] = (uint16_t)form_bits(CPTX_BF16, (double)((i * 3 + j * 5) % 7) - 3);
			x->b[i][j] = (uint16_t)form_bits(CPTX_BF16, (double)((i * 5 + j * 11) % 9) - 4);
		}
	trial t = {
		.target = "sm_100a", .block = { 128 }, .grid = { 4, 4 }, .body = gemm, .data = x, .size = sizeof *x, .opt.seed = seed
	};
	trial_run(&t);
	ck_assert_msg(t.ok && !t.found[0], "%s\n%s", t.err.text, t.message);
	ck_assert_uint_eq(t.counters.tensor_flops, 2ull * SIZE * SIZE * SIZE);
	for (unsigned i = 0; i < SIZE; i += 7)
		for (unsigned j = 0; j < SIZE; j += 5) {
			int sum = 0;
			for (int k = 0; k < SIZE; k++)
				sum += ((int)(i * 3 + (unsigned)k * 5) % 7 - 3) * ((int)(j * 5 + (unsigned)k * 11) % 9 - 4);
			ck_assert_msg(x->d[i][j] == (float)sum, "D[%u][%u] is %g, not %d", i, j, x->d[i][j], sum);
		}
	free(x);
}

/* ---- cp: 8 KB of shared memory from the buffer, then all of 64 columns to it ---- */

#define COPY_HEAD                                                                                                           \
	".shared .align 8 .b64 mb; .shared .b32 slot; .shared .align 1024 .b8 tile[4096]; setp.eq.u32 %p0, %r0, 0;"             \
	"setp.lt.u32 %p1, %r0, 32; @!%p1 bra A; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;"            \
	"@%p0 mbarrier.init.shared.b64 [mb], 1; A: mov.u32 %r10, tile; shl.b32 %r11, %r0, 2; add.u32 %r12, %r10, %r11;"         \
	"cvt.u64.u32 %rd1, %r11; add.u64 %rd1, %rd0, %rd1; mov.u64 %rd2, %rd1; mov.u32 %r13, 0;"                                \
	"F: ld.global.u32 %r14, [%rd2]; st.shared.u32 [%r12], %r14; add.u32 %r12, %r12, 512; add.u64 %rd2, %rd2, 512;"          \
	"add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, 8; @%p2 bra F; fence.proxy.async; bar.sync 0; ld.shared.u32 %r1, "       \
	"[slot];"                                                                                                               \
	"and.b32 %r2, %r0, 0x60; shl.b32 %r2, %r2, 16; add.u32 %r2, %r2, %r1; mov.b32 %r20, 0xeeeeeeee; mov.u32 %r13, 0;"       \
	"Z: add.u32 %r3, %r2, %r13; tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r20}; add.u32 %r13, %r13, 1;"                \
	"setp.lt.u32 %p2, %r13, 8; @%p2 bra Z; tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; bar.sync 0;"   \
	"tcgen05.fence::after_thread_sync; shr.u32 %r10, %r10, 4; cvt.u64.u32 %rd3, %r10; mov.u64 %rd4, 0x0000401000080000;"    \
	"or.b64 %rd3, %rd3, %rd4; @!%p0 bra W;"
#define COPY_TAIL                                                                                                           \
	"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [mb];"                                           \
	"W: mbarrier.try_wait.parity.shared.b64 %p2, [mb], 0; @!%p2 bra W; tcgen05.fence::after_thread_sync; mov.u32 %r13, 0;"  \
	"B: add.u32 %r3, %r2, %r13; tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r14}, [%r3]; tcgen05.wait::ld.sync.aligned;"        \
	"st.global.u32 [%rd1], %r14; add.u64 %rd1, %rd1, 512; add.u32 %r13, %r13, 1; setp.lt.u32 %p2, %r13, 8; @%p2 bra B;"     \
	"bar.sync 0; @!%p1 bra END; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32; END:"

/* Shared memory holds rows of 32 bytes, as K-major tiles without swizzle: chunks of 16 bytes 128 bytes apart, 8 rows 256. */
static const unsigned char *source(const unsigned char *smem, unsigned row, unsigned word)
{
	return smem + row / 8 * 256 + word / 4 * 128 + row % 8 * 16 + word % 4 * 4;
}

static const struct copy {
	const char *body;
	unsigned rows, words;
	uint8_t quarter[4];
	unsigned bits;
} copies[] = {
#define CP(shape) COPY_HEAD "tcgen05.cp.cta_group::1." shape " [%r1], %rd3;" COPY_TAIL
	{ CP("128x256b"), 128, 8, { 0, 1, 2, 3 }, 8 },
	{ CP("128x128b"), 128, 4, { 0, 1, 2, 3 }, 8 },
	{ CP("64x128b.warpx2::02_13"), 64, 4, { 0, 1, 0, 1 }, 8 },
	{ CP("64x128b.warpx2::01_23"), 64, 4, { 0, 0, 1, 1 }, 8 },
	{ CP("32x128b.warpx4"), 32, 4, { 0, 0, 0, 0 }, 8 },
	{ CP("128x256b.b8x16.b4x16_p64"), 128, 8, { 0, 1, 2, 3 }, 4 },
	{ CP("32x128b.warpx4.b8x16.b6x16_p32"), 32, 4, { 0, 0, 0, 0 }, 6 },
};

/* Word `word` of a row of bytes, each made of 4 or 6 bits; those of 4 bits stand in bits 2 to 5. */
static uint32_t widened(const unsigned char *smem, unsigned row, unsigned word, unsigned bits)
{
	const unsigned char *piece = source(smem, row, word / 4 * 4);
	uint32_t v = 0;

	for (unsigned i = 0; i < 4; i++) {
		unsigned bit = (word % 4 * 4 + i) * bits, element = 0;
		for (unsigned b = 0; b < bits; b++)
			element |= (unsigned)(piece[(bit + b) / 8] >> (bit + b) % 8 & 1) << b;
		v |= (uint32_t)(bits == 4 ? element << 2 : element) << 8 * i;
	}
	return v;
}

void tcgen05_copies(void)
{
	for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
		const struct copy *c = &copies[i];
		unsigned char smem[4096];
		uint32_t data[8][128];
		for (unsigned j = 0; j < sizeof smem; j++)
			smem[j] = (unsigned char)(j * 37 + j / 256);
		memcpy(data, smem, sizeof smem);
		trial t = {
			.target = "sm_100a", .block = { 128 }, .body = c->body, .data = data, .size = sizeof data, .opt.seed = i
		};
		trial_run(&t);
		ck_assert_msg(t.ok && !t.found[0], "%s\n%s", t.err.text, t.message);
		for (unsigned word = 0; word < 8; word++)
			for (unsigned lane = 0; lane < 128; lane++) {
				unsigned row = c->quarter[lane / 32] * 32u + lane % 32;
				uint32_t want = word < c->words ? widened(smem, row, word, c->bits) : 0xeeeeeeee;
				ck_assert_msg(data[word][lane] == want, "copy %u: column %u, lane %u: 0x%x, not 0x%x", (unsigned)i, word,
				              lane, data[word][lane], want);
			}
	}
}

/* A shift behind a copy needs no wait: lanes 32 to 63 move one on. */
void tcgen05_shift(void)
{
	uint32_t data[8][128], before[8][128];

	for (unsigned i = 0; i < 1024; i++)
		before[i / 128][i % 128] = data[i / 128][i % 128] = i * 2654435761u;
	trial t = { .target = "sm_100a", .block = { 128 }, .data = data, .size = sizeof data };
	t.body = COPY_HEAD "tcgen05.cp.cta_group::1.128x256b [%r1], %rd3; add.u32 %r3, %r1, 0x200000;"
					   "tcgen05.shift.cta_group::1.down [%r3];" COPY_TAIL;
	trial_run(&t);
	ck_assert_msg(t.ok && !t.found[0], "%s\n%s", t.err.text, t.message);
	for (unsigned word = 0; word < 8; word++)
		for (unsigned lane = 0; lane < 128; lane++) {
			unsigned row = lane > 32 && lane < 64 ? lane - 1 : lane;
			uint32_t want;
			memcpy(&want, source((unsigned char *)before, row, word), sizeof want);
			ck_assert_uint_eq(data[word][lane], want);
		}
}

/* The largest and the smallest of four columns of a lane. */
void tcgen05_reductions(void)
{
	float data[3][32];

	for (unsigned l = 0; l < 32; l++)
		data[0][l] = (float)l - 10;
	trial t = { .target = "sm_103a", .block = { 32 }, .data = data, .size = sizeof data };
	t.body = ".shared .b32 slot; tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32; bar.sync 0; "
			 "ld.shared.u32 %r1, [slot];"
			 "mul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd0, %rd1; ld.global.f32 %f0, [%rd1]; add.f32 %f1, %f0, 0f40000000;"
			 "mul.f32 %f2, %f0, 0fC0000000; mov.f32 %f3, 0f3f800000;"
			 "tcgen05.st.sync.aligned.32x32b.x4.b32 [%r1], {%f0, %f1, %f2, %f3}; tcgen05.wait::st.sync.aligned;"
			 "tcgen05.ld.red.sync.aligned.32x32b.x4.max.f32 {%f4, %f5, %f6, %f7}, %f8, [%r1];"
			 "tcgen05.ld.red.sync.aligned.32x32b.x4.min.abs.f32 {%f10, %f11, %f12, %f13}, %f14, [%r1];"
			 "tcgen05.wait::ld.sync.aligned; st.global.f32 [%rd1+128], %f8; st.global.f32 [%rd1+256], %f14;"
			 "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;";
	trial_run(&t);
	ck_assert_msg(t.ok && !t.found[0], "%s\n%s", t.err.text, t.message);
	for (int l = 0; l < 32; l++) {
		float v = (float)l - 10, four[4] = { v, v + 2, -2 * v, 1 }, most = v, least = 1;
		for (unsigned i = 0; i < 4; i++) {
			float mag = four[i] < 0 ? -four[i] : four[i];
			most = four[i] > most ? four[i] : most;
			least = mag < least ? mag : least;
		}
		ck_assert_msg(data[1][l] == most && data[2][l] == least, "lane %d: %g and %g, not %g and %g", l, data[1][l],
		              data[2][l], most, least);
	}
}
