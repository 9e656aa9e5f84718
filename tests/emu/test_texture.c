/* SPDX-License-Identifier: MIT */
/* Textures and surfaces: what coordinates read, against the formulas of "Texture Fetching" in CUDA's guide; and their
 * findings. */
#include "trial.h"

#include <math.h>

enum { THREADS = 32, TEXELS = 4096 /* bytes of a buffer of texels */ };

static cptx_device *dev;
static cptx_program *program;
static uint64_t coords_at, out_at, texels_at;
static cptx_error err;

/* Each thread reads 16 bytes of coordinates, x y z w, and writes 16 bytes that it read. */
#define KERNEL(name, statement)                                                                                             \
	".visible .entry " name "(.param .u64 t, .param .u64 c, .param .u64 o) {\n"                                             \
	".reg .b64 %rd<8>; .reg .b32 %r<8>, %i<8>; .reg .f32 %c<8>; .reg .b16 %h<8>; .reg .pred %p<4>;\n"                       \
	"ld.param.u64 %rd1, [t]; ld.param.u64 %rd2, [c]; ld.param.u64 %rd3, [o];\n"                                             \
	"mov.u32 %r1, %tid.x; mul.wide.u32 %rd4, %r1, 16; add.u64 %rd2, %rd2, %rd4; add.u64 %rd3, %rd3, %rd4;\n"                \
	"ld.global.v4.b32 {%i0, %i1, %i2, %i3}, [%rd2]; ld.global.v4.f32 {%c0, %c1, %c2, %c3}, [%rd2];\n"                       \
	"mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0; mov.b32 %r5, 0;\n" statement                                           \
	"\nst.global.v4.b32 [%rd3], {%r2, %r3, %r4, %r5}; ret; }\n"
#define TEX(geom, dtype, coords)                                                                                            \
	KERNEL("tex_" #geom "_" #dtype, "tex." #geom ".v4." #dtype ".f32 {%r2, %r3, %r4, %r5}, [%rd1, " coords "];")

static const char *const text[] = {
	".version 8.0\n.target sm_90\n.address_size 64\n",
	TEX(1d, f32, "{%c0}"),
	TEX(2d, f32, "{%c0, %c1}"),
	TEX(3d, f32, "{%c0, %c1, %c2, %c2}"),
	TEX(a1d, f32, "{%i3, %c0}"),
	TEX(a2d, f32, "{%i3, %c0, %c1, %c1}"),
	TEX(cube, f32, "{%c0, %c1, %c2, %c2}"),
	TEX(acube, f32, "{%i3, %c0, %c1, %c2}"),
	TEX(2d, u32, "{%c0, %c1}"),
	KERNEL("fetch", "tex.1d.v4.f32.s32 {%r2, %r3, %r4, %r5}, [%rd1, {%i0}];"),
	KERNEL("moved", "tex.2d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {%c0, %c1}], {%i2, %i3};"),
	KERNEL("level", "tex.level.2d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {%c0, %c1}], %c2;"),
	KERNEL("grad", "tex.grad.1d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {%c0}], {%c1}, {%c2};"),
	KERNEL("halves", "tex.2d.v2.f16x2.f32 {%r2, %r3}, [%rd1, {%c0, %c1}];"),
	KERNEL("gather", "tld4.g.2d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {%c0, %c1}];"),
	KERNEL("unknown", ".reg .f32 %u; tex.1d.v4.f32.f32 {%r2, %r3, %r4, %r5}, [%rd1, {%u}];"),
	KERNEL(
		"ask",
		"txq.width.b32 %r2, [%rd1]; txq.height.b32 %r3, [%rd1]; txq.depth.b32 %r4, [%rd1]; txq.array_size.b32 %r5, [%rd1];"),
	KERNEL("ask_surface", "suq.width.b32 %r2, [%rd1]; suq.height.b32 %r3, [%rd1];"),
	KERNEL("is", "istypep.texref %p1, %rd1; selp.b32 %r2, 1, 0, %p1; istypep.surfref %p1, %rd1; selp.b32 %r3, 1, 0, %p1;"),
	KERNEL("su_trap", "suld.b.2d.v2.b32.trap {%r2, %r3}, [%rd1, {%i0, %i1}];"),
	KERNEL("su_clamp", "suld.b.2d.b32.clamp %r2, [%rd1, {%i0, %i1}];"),
	KERNEL("su_zero", "suld.b.a2d.b16.zero %h1, [%rd1, {%i2, %i0, %i1, %i1}]; cvt.u32.u16 %r2, %h1;"),
	KERNEL("su_write", "sust.b.2d.b32.zero [%rd1, {%i0, %i1}], %i2; suld.b.2d.b32.zero %r2, [%rd1, {%i0, %i1}];"),
	KERNEL("su_write3", "sust.b.3d.b8.trap [%rd1, {%i0, %i1, %i2, %i2}], %i3;"),
};

static void open_all(void)
{
	err = (cptx_error){ .code = CPTX_OK };
	dev = cptx_emu_open("sm_90", NULL, &err);
	char all[1 << 15] = "";
	for (size_t i = 0, n = 0; i < sizeof text / sizeof *text; i++)
		n += (size_t)snprintf(all + n, sizeof all - n, "%s", text[i]);
	program = cptx_device_load_text(dev, all, strlen(all), NULL, &err);
	ck_assert_msg(program != NULL, "%s", err.text);
	coords_at = cptx_mem_alloc(dev, THREADS * 16, &err);
	out_at = cptx_mem_alloc(dev, THREADS * 16, &err);
	texels_at = cptx_mem_alloc(dev, TEXELS, &err);
	ck_assert(coords_at && out_at && texels_at);
}

static void close_all(void)
{
	cptx_program_destroy(program);
	cptx_device_close(dev);
}

typedef union lane {
	float f[4];
	int32_t i[4];
	uint32_t u[4];
} lane;

static uint64_t texture(cptx_emu_texture_opt opt, const void *texels, size_t size)
{
	opt.size = CPTX_OPT_SIZE(cptx_emu_texture_opt);
	opt.at = texels_at;
	ck_assert(cptx_mem_write(dev, texels_at, texels, size, &err));
	uint64_t t = cptx_emu_texture(dev, &opt, &err);
	ck_assert_msg(t != 0, "%s", err.text);
	return t;
}

static bool run(const char *kernel, uint64_t t, const lane *in, lane *out)
{
	const cptx_arg args[] = { CPTX_ARG(t), CPTX_ARG(coords_at), CPTX_ARG(out_at) };
	cptx_launch_opt opt = {
		.size = CPTX_OPT_SIZE(cptx_launch_opt), .grid = { 1 }, .block = { THREADS }, .nargs = 3, .args = args
	};

	err.code = CPTX_OK;
	ck_assert(cptx_mem_write(dev, coords_at, in, THREADS * sizeof *in, &err));
	cptx_launch *l = cptx_launch_new(program, kernel, &opt, &err);
	ck_assert_msg(l != NULL, "%s", err.text);
	bool ok = cptx_launch_run(l, NULL, &err);
	cptx_launch_destroy(l);
	cptx_emu_continue(dev);
	cptx_error read = { .code = CPTX_OK };
	ck_assert(cptx_mem_read(dev, out, out_at, THREADS * sizeof *out, &read));
	return ok;
}

/* What a launch says. */
static void finds(const char *kernel, uint64_t t, const lane *in, enum cptx_finding_code code, const char *says)
{
	lane out[THREADS];

	cptx_emu_clear(dev);
	ck_assert(!run(kernel, t, in, out));
	const cptx_emu_finding *f = cptx_emu_finding_at(dev, 0);
	ck_assert_msg(f && f->code == code && strstr(f->text, says), "%s", f ? f->text : "nothing");
	cptx_emu_clear(dev);
	err.code = CPTX_OK;
}

/* ---- references, as the guide has them ---- */

/* The number of the texel that stands for number i of n; -1: the border. */
static int index_of(int i, int n, enum cptx_emu_outside mode)
{
	switch (mode) {
	case CPTX_EMU_WRAP: return (i % n + n) % n;
	case CPTX_EMU_MIRROR: i = (i % (2 * n) + 2 * n) % (2 * n); return i < n ? i : 2 * n - 1 - i;
	case CPTX_EMU_BORDER: return i < 0 || i >= n ? -1 : i;
	default: return i < 0 ? 0 : i >= n ? n - 1 : i;
	}
}

static float seeded(unsigned i) { return (float)((i * 2654435761u >> 16) % 1000) / 8; }

/* Coordinates around a texture of n texels, in and beside it, by thread. */
static float spread(unsigned i, unsigned n)
{
	return (float)((int)((i * 37) % 96) - 32) * (float)n / 32 + (float)(i % 7) / 16;
}

START_TEST(nearest)
{
	enum { N = 8 };
	const enum cptx_emu_outside modes[] = { CPTX_EMU_WRAP, CPTX_EMU_CLAMP, CPTX_EMU_MIRROR, CPTX_EMU_BORDER };
	float texels[N];
	lane in[THREADS] = { 0 }, out[THREADS];

	for (unsigned i = 0; i < N; i++)
		texels[i] = seeded(i);
	for (unsigned m = 0; m < 8; m++) {
		bool normalized = m >= 4;
		enum cptx_emu_outside mode = modes[m % 4];
		uint64_t t = texture((cptx_emu_texture_opt){ .channel = CPTX_EMU_F32,
		                                             .channels = 1,
		                                             .width = N,
		                                             .outside = { mode },
		                                             .normalized = normalized,
		                                             .border = { -7 } },
		                     texels, sizeof texels);
		for (unsigned i = 0; i < THREADS; i++)
			in[i].f[0] = spread(i, N) / (normalized ? N : 1);
		ck_assert_msg(run("tex_1d_f32", t, in, out), "%s", err.text);
		for (unsigned i = 0; i < THREADS; i++) {
			int at = index_of((int)floorf(in[i].f[0] * (normalized ? N : 1)), N,
			                  normalized || mode == CPTX_EMU_BORDER ? mode : CPTX_EMU_CLAMP);
			ck_assert_float_eq(out[i].f[0], at < 0 ? -7 : texels[at]);
		}
		ck_assert(cptx_emu_texture_free(dev, t));
	}
}
END_TEST

/* Weights have 8 bits of fraction. */
static float weight(float x) { return floorf((x - 0.5f - floorf(x - 0.5f)) * 256 + 0.5f) / 256; }

START_TEST(weighted)
{
	enum { W = 5, H = 4, D = 3 };
	float texels[D][H][W];
	lane in[THREADS] = { 0 }, out[THREADS];

	for (unsigned i = 0; i < W * H * D; i++)
		(&texels[0][0][0])[i] = seeded(i);
	uint64_t t = texture((cptx_emu_texture_opt){ .channel = CPTX_EMU_F32,
	                                             .channels = 1,
	                                             .width = W,
	                                             .height = H,
	                                             .depth = D,
	                                             .outside = { CPTX_EMU_CLAMP, CPTX_EMU_CLAMP, CPTX_EMU_CLAMP },
	                                             .linear = true },
	                     texels, sizeof texels);
	for (unsigned i = 0; i < THREADS; i++)
		for (unsigned d = 0; d < 3; d++)
			in[i].f[d] = spread(i + d * 11, 4);
	ck_assert_msg(run("tex_3d_f32", t, in, out), "%s", err.text);
	for (unsigned i = 0; i < THREADS; i++) {
		const int n[3] = { W, H, D };
		double sum = 0;
		for (unsigned corner = 0; corner < 8; corner++) {
			double part = 1;
			int at[3];
			for (unsigned d = 0; d < 3; d++) {
				double w = weight(in[i].f[d]);
				part *= corner >> d & 1 ? w : 1 - w;
				at[d] = index_of((int)floorf(in[i].f[d] - 0.5f) + (int)(corner >> d & 1), n[d], CPTX_EMU_CLAMP);
			}
			sum += part * texels[at[2]][at[1]][at[0]];
		}
		ck_assert_float_eq_tol(out[i].f[0], (float)sum, 1e-4f);
	}
	cptx_emu_texture_free(dev, t);
}
END_TEST

/* Rows with a pitch; layers; a texel moved by an offset; components that tld4 gathers. */
START_TEST(rows_and_layers)
{
	enum { W = 4, H = 4, LAYERS = 3, PITCH = 8 };
	float texels[LAYERS][H][PITCH][2];
	lane in[THREADS], out[THREADS];
	cptx_emu_texture_opt opt = { .channel = CPTX_EMU_F32,
		                         .channels = 2,
		                         .width = W,
		                         .height = H,
		                         .pitch = PITCH * 8,
		                         .outside = { CPTX_EMU_CLAMP, CPTX_EMU_CLAMP } };

	for (unsigned i = 0; i < LAYERS * H * PITCH * 2; i++)
		(&texels[0][0][0][0])[i] = seeded(i);
	for (unsigned i = 0; i < THREADS; i++)
		in[i] = (lane){ .f = { (float)(i % W) + 0.25f, (float)(i / W % H) + 0.75f } };
	uint64_t t = texture(opt, texels, sizeof texels);
	for (unsigned i = 0; i < THREADS; i++)
		in[i].i[2] = 1, in[i].i[3] = -1;
	ck_assert_msg(run("moved", t, in, out), "%s", err.text);
	for (unsigned i = 0; i < THREADS; i++) {
		int x = index_of((int)(i % W) + 1, W, CPTX_EMU_CLAMP), y = index_of((int)(i / W % H) - 1, H, CPTX_EMU_CLAMP);
		ck_assert_float_eq(out[i].f[0], texels[0][y][x][0]);
		ck_assert_float_eq(out[i].f[1], texels[0][y][x][1]);
	}
	ck_assert_msg(run("gather", t, in, out), "%s", err.text);
	for (unsigned i = 0; i < THREADS; i++) {
		int x = (int)floorf(in[i].f[0] - 0.5f), y = (int)floorf(in[i].f[1] - 0.5f);
		int x0 = index_of(x, W, CPTX_EMU_CLAMP), x1 = index_of(x + 1, W, CPTX_EMU_CLAMP),
			y0 = index_of(y, H, CPTX_EMU_CLAMP), y1 = index_of(y + 1, H, CPTX_EMU_CLAMP);
		const float right[4] = { texels[0][y1][x0][1], texels[0][y1][x1][1], texels[0][y0][x1][1], texels[0][y0][x0][1] };
		ck_assert(!memcmp(out[i].f, right, sizeof right));
	}
	opt.layers = LAYERS;
	t = texture(opt, texels, sizeof texels);
	for (unsigned i = 0; i < THREADS; i++)
		in[i].i[3] = (int)(i % 5); /* beyond the last: the last */
	ck_assert_msg(run("tex_a2d_f32", t, in, out), "%s", err.text);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_float_eq(out[i].f[1], texels[i % 5 < LAYERS ? i % 5 : LAYERS - 1][i / W % H][i % W][1]);
	ck_assert(run("ask", t, in, out) && out[0].u[0] == W && out[0].u[1] == H && !out[0].u[2] && out[0].u[3] == LAYERS);
	opt = (cptx_emu_texture_opt){
		.channel = CPTX_EMU_F32, .channels = 1, .width = 4, .layers = 2, .outside = { CPTX_EMU_CLAMP }
	};
	t = texture(opt, texels, sizeof texels);
	ck_assert_msg(run("tex_a1d_f32", t, in, out), "%s", err.text);
	ck_assert_float_eq(out[6].f[0], (&texels[0][0][0][0])[1 * 4 + 2]);
}
END_TEST

/* Each face has texels of its own; in the middle of a quarter of a face a direction has components of 1 and 1/2. */
START_TEST(cubes)
{
	float texels[2][6][2][2];
	lane in[THREADS] = { 0 }, out[THREADS];
	cptx_emu_texture_opt opt = { .channel = CPTX_EMU_F32, .channels = 1, .width = 2, .height = 2, .cube = true };

	for (unsigned i = 0; i < 48; i++)
		(&texels[0][0][0][0])[i] = (float)i;
	uint64_t t = texture(opt, texels, sizeof texels / 2);
	/* direction, and s and t of the guide's table where they are positive */
	static const struct {
		float d[3];
		int face, s, t;
	} rows[] = {
		{ { 1, .5f, .25f }, 0, 0, 0 },  { { 1, -.5f, -.25f }, 0, 1, 1 },  { { -1, .5f, .25f }, 1, 1, 0 },
		{ { .5f, 1, .25f }, 2, 1, 1 },  { { .5f, -1, .25f }, 3, 1, 0 },   { { .5f, .25f, 1 }, 4, 1, 0 },
		{ { .5f, .25f, -2 }, 5, 0, 0 }, { { -.5f, -.25f, -2 }, 5, 1, 1 },
	};
	for (unsigned i = 0; i < THREADS; i++)
		memcpy(in[i].f, rows[i % 8].d, sizeof rows->d);
	ck_assert_msg(run("tex_cube_f32", t, in, out), "%s", err.text);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_float_eq(out[i].f[0], texels[0][rows[i].face][rows[i].t][rows[i].s]);
	opt.layers = 2;
	t = texture(opt, texels, sizeof texels);
	for (unsigned i = 0; i < THREADS; i++)
		in[i].i[3] = 1;
	ck_assert_msg(run("tex_acube_f32", t, in, out), "%s", err.text);
	for (unsigned i = 0; i < 8; i++)
		ck_assert_float_eq(out[i].f[0], texels[1][rows[i].face][rows[i].t][rows[i].s]);
}
END_TEST

START_TEST(formats)
{
	const uint8_t bytes[4] = { 0, 51, 128, 255 };
	const int16_t shorts[4] = { -32768, -32767, 16384, 32767 };
	const uint16_t halves[4] = { 0x3c00, 0xc000, 0x3555, 0 };
	lane in[THREADS], out[THREADS];
	cptx_emu_texture_opt opt = { .channel = CPTX_EMU_U8, .channels = 4, .width = 1, .height = 1 };

	for (unsigned i = 0; i < THREADS; i++)
		in[i] = (lane){ .f = { 0.5f, 0.5f } };
	uint64_t t = texture(opt, bytes, sizeof bytes);
	ck_assert(run("tex_2d_u32", t, in, out) && out[3].u[1] == 51 && out[3].u[3] == 255);
	opt.as_fraction = true;
	t = texture(opt, bytes, sizeof bytes);
	ck_assert(run("tex_2d_f32", t, in, out));
	ck_assert_float_eq(out[1].f[1], 0.2f);
	ck_assert_float_eq(out[1].f[3], 1);
	ck_assert(run("halves", t, in, out) && out[1].u[1] >> 16 == 0x3c00); /* 1.0 of f16 */
	opt.srgb = true;
	t = texture(opt, bytes, sizeof bytes);
	ck_assert(run("tex_2d_f32", t, in, out));
	ck_assert_float_eq_tol(out[0].f[2], 0.2158605f, 1e-6f);
	opt = (cptx_emu_texture_opt){ .channel = CPTX_EMU_S16, .channels = 4, .width = 1, .height = 1 };
	t = texture(opt, shorts, sizeof shorts);
	ck_assert(run("tex_2d_u32", t, in, out) && out[0].i[0] == -32768);
	opt.as_fraction = true;
	t = texture(opt, shorts, sizeof shorts);
	ck_assert(run("tex_2d_f32", t, in, out) && out[0].f[0] == -1 && out[0].f[1] == -1 && out[0].f[3] == 1);
	opt = (cptx_emu_texture_opt){ .channel = CPTX_EMU_F16, .channels = 4, .width = 1, .height = 1 };
	t = texture(opt, halves, sizeof halves);
	ck_assert(run("tex_2d_f32", t, in, out) && out[0].f[0] == 1 && out[0].f[1] == -2);
	ck_assert_float_eq_tol(out[0].f[2], 0.33325f, 1e-4f);
}
END_TEST

/* tex1Dfetch beside the memory gives 0, where the border says so; mipmap levels follow one another. */
START_TEST(fetches_and_levels)
{
	float texels[16 + 4 + 1];
	lane in[THREADS] = { 0 }, out[THREADS];

	for (unsigned i = 0; i < 21; i++)
		texels[i] = (float)i + 1;
	uint64_t t = texture(
		(cptx_emu_texture_opt){ .channel = CPTX_EMU_F32, .channels = 1, .width = 16, .outside = { CPTX_EMU_BORDER } },
		texels, sizeof texels);
	for (unsigned i = 0; i < THREADS; i++)
		in[i].i[0] = (int)i - 8;
	ck_assert(run("fetch", t, in, out));
	for (int i = 0; i < THREADS; i++)
		ck_assert_float_eq(out[i].f[0], i < 8 || i >= 24 ? 0 : texels[i - 8]);
	cptx_emu_texture_opt opt = { .channel = CPTX_EMU_F32,
		                         .channels = 1,
		                         .width = 4,
		                         .height = 4,
		                         .levels = 3,
		                         .outside = { CPTX_EMU_CLAMP, CPTX_EMU_CLAMP },
		                         .normalized = true };
	t = texture(opt, texels, sizeof texels);
	for (unsigned i = 0; i < THREADS; i++)
		in[i] = (lane){ .f = { 0.9f, 0.1f, (float)i / 8 - 0.5f } };
	ck_assert(run("level", t, in, out));
	ck_assert_float_eq(out[0].f[0], 4);   /* level -0.5: the first */
	ck_assert_float_eq(out[12].f[0], 18); /* 1 */
	ck_assert_float_eq(out[31].f[0], 21); /* 3.375: the last */
	opt.mip_least = -3;
	t = texture(opt, texels, sizeof texels);
	in[0].f[2] = -2, in[1].f[2] = NAN, in[2].f[2] = -INFINITY, in[3].f[2] = INFINITY;
	ck_assert(run("level", t, in, out));
	for (int i = 0; i < 4; i++)
		ck_assert_float_eq(out[i].f[0], i < 3 ? 4 : 21); /* there is none in front of the first */
	in[0].f[2] = -0.5f, opt.mip_least = 0;
	opt.mip_linear = true;
	t = texture(opt, texels, sizeof texels);
	ck_assert(run("level", t, in, out));
	ck_assert_float_eq(out[8].f[0], 11); /* 0.5: half of 4 and of 18 */
	opt = (cptx_emu_texture_opt){ .channel = CPTX_EMU_F32, .channels = 1, .width = 16, .levels = 2, .normalized = true };
	float row[24];
	for (unsigned i = 0; i < 24; i++)
		row[i] = (float)i;
	t = texture(opt, row, sizeof row);
	for (unsigned i = 0; i < THREADS; i++)
		in[i] = (lane){ .f = { 0, (float)(i % 2 + 1) / 16, 0 } }; /* one texel, or two, from a thread to the next */
	ck_assert(run("grad", t, in, out) && out[0].f[0] == 0 && out[1].f[0] == 16);
}
END_TEST

START_TEST(surfaces)
{
	uint32_t texels[4][8];
	uint8_t cells[3][2][4] = { 0 };
	lane in[THREADS], out[THREADS];
	cptx_emu_texture_opt opt = { .surface = true, .channel = CPTX_EMU_U32, .channels = 1, .width = 8, .height = 4 };

	for (unsigned i = 0; i < 32; i++)
		(&texels[0][0])[i] = i * 3 + 1;
	for (int i = 0; i < THREADS; i++)
		in[i] = (lane){ .i = { i % 4 * 8, i / 4 % 4 } };
	uint64_t t = texture(opt, texels, sizeof texels);
	ck_assert_msg(run("su_trap", t, in, out), "%s", err.text);
	ck_assert(out[7].u[0] == texels[1][6] && out[7].u[1] == texels[1][7]);
	ck_assert(run("ask_surface", t, in, out) && out[0].u[0] == 8 && out[0].u[1] == 4);
	ck_assert(run("is", t, in, out) && !out[0].u[0] && out[0].u[1]);
	in[3].i[0] = 32;
	finds("su_trap", t, in, CPTX_FIND_BOUNDS, "8 bytes at byte 32 of row 0, layer 0, of a surface of 32 bytes, 4 rows, 1");
	in[3].i[0] = 4;
	finds("su_trap", t, in, CPTX_FIND_MISALIGNED, "byte 4 of a surface's row must be a multiple of 8");
	in[3].i[0] = 36, in[3].i[1] = -2;
	ck_assert(run("su_clamp", t, in, out) && out[3].u[0] == texels[0][7]);
	opt.width = 3; /* a second row at 12 bytes, in which 8 of the 12 can be read at once */
	t = texture(opt, texels, sizeof texels);
	for (int i = 0; i < THREADS; i++)
		in[i] = (lane){ .i = { 0, 1 } };
	ck_assert_msg(run("su_trap", t, in, out), "%s", err.text);
	ck_assert(out[5].u[0] == texels[0][3] && out[5].u[1] == texels[0][4]);
	opt.width = 8;
	t = texture(opt, texels, sizeof texels);
	for (int i = 0; i < THREADS; i++)
		in[i] = (lane){ .i = { i % 8 * 4, i / 8 + 1, i + 500 } }; /* the last row is outside */
	ck_assert(run("su_write", t, in, out) && out[9].u[0] == 509 && out[31].u[0] == 0);
	ck_assert(cptx_mem_read(dev, texels, texels_at, sizeof texels, &err));
	ck_assert(texels[0][5] == 16 && texels[1][0] == 500 && texels[3][7] == 523);
	for (int i = 0; i < THREADS; i++)
		in[i] = (lane){ .i = { i % 4, i / 4 % 2, i / 8 % 3, i % 24 } };
	opt = (cptx_emu_texture_opt){
		.surface = true, .channel = CPTX_EMU_U8, .channels = 1, .width = 4, .height = 2, .depth = 3
	};
	t = texture(opt, cells, sizeof cells);
	ck_assert_msg(run("su_write3", t, in, out), "%s", err.text);
	ck_assert(cptx_mem_read(dev, cells, texels_at, sizeof cells, &err));
	for (unsigned i = 0; i < 24; i++)
		ck_assert_uint_eq((&cells[0][0][0])[i], i);
	for (int i = 0; i < THREADS; i++)
		in[i] = (lane){ .i = { 0, 0, 0, i } };
	finds("su_write3", t, in, CPTX_FIND_RACE, "which was written by sust.b.3d.b8.trap");
	opt = (cptx_emu_texture_opt){
		.surface = true, .channel = CPTX_EMU_U16, .channels = 1, .width = 8, .height = 2, .layers = 2
	};
	t = texture(opt, texels, sizeof texels);
	for (int i = 0; i < THREADS; i++)
		in[i] = (lane){ .i = { i % 8 * 2, i / 8 % 2, i / 16 + 1 } }; /* the second half is behind the last layer */
	ck_assert(run("su_zero", t, in, out));
	ck_assert_uint_eq(out[9].u[0], ((const uint16_t *)texels)[16 + 9]);
	ck_assert_uint_eq(out[20].u[0], 0);
}
END_TEST

START_TEST(what_is_wrong)
{
	float texels[64] = { 0 };
	lane in[THREADS] = { 0 }, out[THREADS];
	const cptx_emu_texture_opt good = { .channel = CPTX_EMU_F32, .channels = 1, .width = 8 };
	uint64_t t = texture(good, texels, sizeof texels), unwritten = cptx_mem_alloc(dev, 512, &err);

	finds("tex_2d_f32", t, in, CPTX_FIND_OPERAND, "it names 2 dimensions, and the texture has 1 dimension");
	finds("su_trap", t, in, CPTX_FIND_OPERAND, "is a texture; the handle of a surface is needed");
	finds("tex_1d_f32", t + 64, in, CPTX_FIND_OPERAND, "is no handle that is in use");
	finds("unknown", t, in, CPTX_FIND_UNDEFINED, "what is stored");
	ck_assert(cptx_emu_texture_free(dev, t) && !cptx_emu_texture_free(dev, t) && !cptx_emu_texture_free(dev, 7));
	finds("tex_1d_f32", t, in, CPTX_FIND_OPERAND, "is no handle that is in use");
	cptx_emu_texture_opt opt = good;
	opt.size = CPTX_OPT_SIZE(cptx_emu_texture_opt), opt.at = unwritten;
	t = cptx_emu_texture(dev, &opt, &err);
	finds("tex_1d_f32", t, in, CPTX_FIND_UNDEFINED, "it reads 4 bytes that nobody has written");
	cptx_mem_free(dev, unwritten);
	finds("tex_1d_f32", t, in, CPTX_FIND_USE_AFTER_FREE, "that was freed");
	ck_assert(run("is", 5, in, out) && !out[0].u[0] && !out[0].u[1]);
	static const struct {
		cptx_emu_texture_opt o;
		const char *says;
	} bad[] = {
		{ { .channels = 3, .width = 8 }, "1, 2 or 4 channels" },
		{ { .channel = CPTX_EMU_CHANNELS, .channels = 1, .width = 8 }, "1, 2 or 4 channels" },
		{ { .channels = 1 }, "width must be" },
		{ { .channels = 1, .width = 8, .depth = 2 }, "depth needs a height" },
		{ { .channels = 1, .width = 8, .height = 4, .cube = true }, "square" },
		{ { .channels = 1, .width = 8, .pitch = 4 }, "at least a row's bytes" },
		{ { .channels = 1, .width = 8, .levels = 5 }, "a single texel" },
		{ { .channels = 1, .width = 8, .mip_bias = NAN }, "must be numbers" },
		{ { .channels = 1, .width = 8, .linear = true }, "read as numbers with a fraction" },
		{ { .channel = CPTX_EMU_F32, .channels = 1, .width = 8, .as_fraction = true }, "8 and 16 bits" },
		{ { .channel = CPTX_EMU_F32, .channels = 4, .width = 8, .height = 512 }, "is 65536 bytes from device address" },
		{ { .channels = 1, .width = 8, .outside = { (enum cptx_emu_outside)9 } }, "value of cptx_emu_outside" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		opt = bad[i].o, opt.size = CPTX_OPT_SIZE(cptx_emu_texture_opt), opt.at = texels_at;
		err.code = CPTX_OK;
		ck_assert(!cptx_emu_texture(dev, &opt, &err) && err.code == CPTX_E_ARG);
		ck_assert_msg(strstr(err.text, bad[i].says) != NULL, "%s", err.text);
	}
	err.code = CPTX_OK;
	ck_assert(!cptx_emu_texture(NULL, &good, &err) && err.code == CPTX_E_ARG);
}
END_TEST

START_TEST(another_device_s_handle_names_nothing)
{
	const float texels[8] = { 1 };
	const cptx_emu_texture_opt good = { .channel = CPTX_EMU_F32, .channels = 1, .width = 8 };
	lane in[THREADS] = { 0 };
	uint64_t own = texture(good, texels, sizeof texels);
	cptx_device *other = cptx_emu_open("sm_90a", NULL, &err);
	cptx_emu_texture_opt opt = good;

	opt.size = CPTX_OPT_SIZE(cptx_emu_texture_opt), opt.at = cptx_mem_alloc(other, 32, &err);
	uint64_t its = cptx_emu_texture(other, &opt, &err);
	ck_assert(own && its && own != its);
	finds("tex_1d_f32", its, in, CPTX_FIND_OPERAND, "is no handle that is in use");
	ck_assert(!cptx_emu_texture_free(dev, its) && !cptx_emu_texture_free(other, own));
	ck_assert(cptx_emu_texture_free(dev, own) && cptx_emu_texture_free(other, its));
	cptx_device_close(other);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("emu_texture");
	TCase *c = test_case(s, "texture");

	tcase_add_checked_fixture(c, open_all, close_all);
	tcase_add_test(c, nearest);
	tcase_add_test(c, weighted);
	tcase_add_test(c, rows_and_layers);
	tcase_add_test(c, cubes);
	tcase_add_test(c, formats);
	tcase_add_test(c, fetches_and_levels);
	tcase_add_test(c, surfaces);
	tcase_add_test(c, what_is_wrong);
	tcase_add_test(c, another_device_s_handle_names_nothing);
	return test_main("emu_texture", s);
}
