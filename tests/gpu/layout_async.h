/* SPDX-License-Identifier: MIT */
/* A part of test_layout.c: wgmma through descriptors, tensor maps. */

/* ---- wgmma: operands in shared memory where cptx_smem_desc_at says ---- */

enum { IMAGE = 32768, HALF = IMAGE / 2, WG_M = 64 };

typedef struct wgmma_case {
	const char *text; /* up to the type */
	enum number ab, cd;
	uint16_t n, k;
	cptx_smem_desc a, b;
	bool mn_a, mn_b, immediates /* scales, and transposition with 16 bits */;
} wgmma_case;

static void fill(uint8_t *image, const cptx_smem_desc *d, const wgmma_case *c, bool is_b)
{
	cptx_smem_elem e = { .bits = bits_of[c->ab], .mn_major = is_b ? c->mn_b : c->mn_a };
	static uint8_t used[IMAGE];

	memset(used, 0, sizeof used);

	for (uint32_t row = 0; row < (is_b ? c->n : WG_M); row++)
		for (uint32_t k = 0; k < c->k; k++) {
			int v = small(c->ab);
			cptx_smem_place p = cptx_smem_desc_at(d, e, row, k);
			ck_assert_uint_ge(p.byte, is_b ? HALF : 0);
			ck_assert_uint_lt(p.byte, is_b ? IMAGE : HALF);
			ck_assert_msg(!used[p.byte]++, "row %u, k %u: two elements in byte %u", row, k, p.byte);
			*(is_b ? &host_b[k * c->n + row] : &host_a[row * c->k + k]) = v;
			put_bits(image, p.byte * 8 + p.bit, e.bits, encode(c->ab, v));
		}
}

/* Copies the image to shared memory; its address, aligned to 1024. */
static cptx_val image_in_shared(cptx_kernel *k, cptx_val tid)
{
	cptx_val image = cptx_param(k, CPTX_PTR, "image"), i = cptx_var(k, CPTX_U32, cptx_shl(k, tid, 2));
	cptx_val smem = cptx_var(k, CPTX_U32, cptx_shared_named(k, CPTX_B8, IMAGE, 1024, "smem"));

	CPTX_FOR(k, i, IMAGE, 128 * 4) {
		cptx_val v =
			cptx_ld(k, cptx_add(k, image, cptx_cvt(k, i, .dtype = CPTX_U64)), .space = CPTX_GLOBAL, .type = CPTX_B32);
		cptx_st(k, cptx_add(k, smem, i), v, .space = CPTX_SHARED);
	}
	cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
	cptx_bar_sync(k, 0);
	return smem;
}

/* Descriptors speak of addresses from 0 on; the image may lie elsewhere. */
static cptx_val moved(cptx_kernel *k, const cptx_smem_desc *d, cptx_val smem)
{
	uint64_t word;

	ck_assert_msg(cptx_smem_desc_encode(d, &word, &err), "%s", err.text);
	return cptx_add(k, cptx_cvt(k, cptx_shr(k, smem, 4), .dtype = CPTX_U64), cptx_imm((int64_t)word));
}

static void wgmma_around(cptx_kernel *k, const char *text, cptx_val d, cptx_val a, cptx_val b, cptx_val meta)
{
	cptx_val none = cptx_setp(k, cptx_tid_x(k), 1000, .cmp = CPTX_GT);

	cptx_wgmma_fence(k);
	if (meta.kind == CPTX_VAL_NONE)
		cptx_asm(k, text, d, a, b, none);
	else
		cptx_asm(k, text, d, a, b, meta, none);
	cptx_wgmma_commit_group(k);
	cptx_wgmma_wait_group(k, 0);
}

static bool compare_wgmma(const words *d, const wgmma_case *c)
{
	for (uint32_t row = 0; row < WG_M; row++)
		for (uint32_t col = 0; col < c->n; col++) {
			int sum = 0;
			for (uint32_t i = 0; i < c->k; i++)
				sum += host_a[row * c->k + i] * host_b[i * c->n + col];
			uint64_t want = c->cd == S32 ? (uint32_t)sum : encode(c->cd, sum), got = get(d, row, col);
			if (c->cd != S32 && !sum)
				got &= 0x7fffffff;
			ck_assert_msg(
				got == want,
				"%s A %s start %u lbo %u sbo %u base %u swizzle %d, B %s start %u lbo %u sbo %u base %u swizzle %d: row %u "
				"column %u is 0x%llx, not 0x%llx",
				c->text, c->mn_a ? "MN" : "K", c->a.start, c->a.lbo, c->a.sbo, c->a.base_offset, c->a.swizzle,
				c->mn_b ? "MN" : "K", c->b.start, c->b.lbo, c->b.sbo, c->b.base_offset, c->b.swizzle, row, col,
				(unsigned long long)got, (unsigned long long)want);
		}
	return true;
}

static cptx_frag d_of(const wgmma_case *c)
{
	return (cptx_frag){ .kind = CPTX_FRAG_WGMMA_D, .m = WG_M, .n = c->n, .k = c->k, .bits = bits_of[c->cd] };
}

static bool run_wgmma(const wgmma_case *c)
{
	static words d;
	static uint8_t image[IMAGE];
	char text[200];

	memset(image, 0x77, sizeof image);
	lay_out(&d, d_of(c));
	fill(image, &c->a, c, false), fill(image, &c->b, c, true);
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 128 });
	cptx_val tid = cptx_tid_x(k), smem = image_in_shared(k, tid);
	cptx_val rd = cptx_regs(k, c->cd == F32 ? CPTX_F32 : CPTX_S32, d.map.regs);
	for (uint16_t r = 0; r < d.map.regs; r++)
		cptx_mov(k, c->cd == F32 ? cptx_immf(0) : cptx_imm(0), .into = cptx_elem(rd, r));
	snprintf(text, sizeof text, "wgmma.mma_async.sync.aligned.m64n%uk%u.%s {}, {}, {}, {}%s;", c->n, c->k, c->text,
	         !c->immediates         ? ""
	         : bits_of[c->ab] != 16 ? ", 1, 1"
	         : c->mn_a              ? (c->mn_b ? ", 1, 1, 1, 1" : ", 1, 1, 1, 0")
	                                : (c->mn_b ? ", 1, 1, 0, 1" : ", 1, 1, 0, 0"));
	cptx_val a = moved(k, &c->a, smem), b = moved(k, &c->b, smem);
	wgmma_around(k, text, rd, a, b, (cptx_val){ 0 });
	store_words(k, "d", tid, &d.map, rd);
	return run(dev, m, 128, (void *const[]){ image, d.bytes }, (const size_t[]){ IMAGE, size_of(&d) }, 2, NULL) &&
	       compare_wgmma(&d, c);
}

/* Descriptors of operands, strange but legal: without a swizzle (no base), with one (sbo 0: dense). */
static const struct {
	uint16_t start;
	struct {
		uint16_t lbo, sbo;
	} none, swizzled;
	uint8_t base;
} operands[2][4] = {
	/* K-major */
	{ { 0, { 1024, 128 }, { 16, 0 }, 0 },
	  { 1024, { 128, 256 }, { 16, 1024 }, 0 },
	  { 32, { 3200, 384 }, { 16, 1536 }, 0 },   /* a step along k inside of the span */
	  { 128, { 144, 288 }, { 16, 1024 }, 1 } }, /* the pattern begins off its repeat */
	/* MN-major */
	{ { 0, { 128, 512 }, { 2048, 0 }, 0 },
	  { 1024, { 256, 768 }, { 3072, 1024 }, 0 },
	  { 2048, { 1024, 128 }, { 1024, 4096 }, 0 },
	  { 128, { 144, 288 }, { 2048, 1024 }, 1 } },
};

/* The n-th with every swizzle; false behind the last.  `at`: its half of the image. */
static bool operand(uint32_t n, bool mn, uint32_t at, cptx_smem_desc *d)
{
	static const enum cptx_swizzle modes[] = { CPTX_SWIZZLE_NONE, CPTX_SWIZZLE_32B, CPTX_SWIZZLE_64B, CPTX_SWIZZLE_128B };
	uint32_t s = n % 4, variant = n / 4, start;

	if (variant >= ARRAY_LEN(operands[mn]))
		return false;
	start = operands[mn][variant].start;
	if (s && start % 128 && s < 2)
		start = 0; /* a span of 32 bytes has no second step */
	*d = (cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .swizzle = modes[s], .start = at + start };
	d->lbo = s ? operands[mn][variant].swizzled.lbo : operands[mn][variant].none.lbo;
	d->sbo = s ? operands[mn][variant].swizzled.sbo : operands[mn][variant].none.sbo;
	if (s && !d->sbo)
		d->sbo = 128u << s;
	d->base_offset = s ? operands[mn][variant].base : 0;
	return true;
}

START_TEST(wgmma_descriptors)
{
	static const wgmma_case types[] = {
		{ .text = "f32.bf16.bf16", .ab = BF16, .cd = F32, .n = 16, .k = 16, .immediates = true },
		{ .text = "f32.tf32.tf32", .ab = TF32, .cd = F32, .n = 24, .k = 8, .immediates = true },
		{ .text = "f32.e4m3.e4m3", .ab = E4M3, .cd = F32, .n = 8, .k = 32, .immediates = true },
		{ .text = "s32.s8.s8", .ab = S8, .cd = S32, .n = 32, .k = 32 },
	};
	size_t ran = 0;

	name = devices[_i];
	if (!open_device())
		SKIP("%s: %s", name, why_not);
	for (size_t t = 0; t < ARRAY_LEN(types); t++)
		for (int major = 0; major < (bits_of[types[t].ab] == 16 ? 4 : 1); major++) {
			wgmma_case c = types[t];
			cptx_smem_desc plain_a, plain_b;
			c.mn_a = major & 1, c.mn_b = major & 2;
			ck_assert(operand(3, c.mn_a, 0, &plain_a) && operand(3, c.mn_b, HALF, &plain_b));
			for (uint32_t i = 0; operand(i, c.mn_a, 0, &c.a); i++)
				c.b = plain_b, ran += run_wgmma(&c);
			for (uint32_t i = 0; operand(i, c.mn_b, HALF, &c.b); i++)
				c.a = plain_a, ran += run_wgmma(&c);
		}
	printf("wgmma on %s: %zu descriptors\n", cptx_device_get_info(dev)->name, ran);
	if (!ran)
		skip("%s does not execute wgmma", name);
	cptx_device_close(dev);
}
END_TEST

/* A in registers with its metadata. */
static bool run_wgmma_sparse(const wgmma_case *c, uint8_t selector)
{
	static words a, d, meta;
	static uint8_t image[IMAGE];
	cptx_frag f = { .kind = CPTX_FRAG_WGMMA_A,
		            .m = WG_M,
		            .n = c->n,
		            .k = c->k,
		            .bits = bits_of[c->ab],
		            .sparse = true,
		            .select = selector };
	mma_case shape = { .m = WG_M, .n = c->n, .k = c->k, .ab = c->ab };
	char text[200];

	memset(host_a, 0, sizeof host_a);
	memset(image, 0, sizeof image);
	lay_out(&d, d_of(c)), lay_out(&a, f);
	f.kind = CPTX_FRAG_WGMMA_META;
	lay_out(&meta, f);
	sparse_a(&shape, &a, &meta);
	fill(image, &c->b, c, true);
	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 128 });
	cptx_val tid = cptx_tid_x(k), smem_at = image_in_shared(k, tid), ra = load_words(k, "a", tid, &a.map);
	cptx_val rm = load_words(k, "meta", tid, &meta.map), rd = cptx_regs(k, c->cd == F32 ? CPTX_F32 : CPTX_S32, d.map.regs);
	for (uint16_t r = 0; r < d.map.regs; r++)
		cptx_mov(k, c->cd == F32 ? cptx_immf(0) : cptx_imm(0), .into = cptx_elem(rd, r));
	snprintf(text, sizeof text, "wgmma.mma_async.sp.sync.aligned.m64n%uk%u.%s {}, {}, {}, {}, %u, {}%s;", c->n, c->k,
	         c->text, selector,
	         !c->immediates         ? ""
	         : bits_of[c->ab] == 16 ? ", 1, 1, 0"
	                                : ", 1, 1");
	wgmma_around(k, text, rd, ra, moved(k, &c->b, smem_at), cptx_elem(rm, 0));
	store_words(k, "d", tid, &d.map, rd);
	return run(dev, m, 128, (void *const[]){ image, a.bytes, meta.bytes, d.bytes },
	           (const size_t[]){ IMAGE, size_of(&a), size_of(&meta), size_of(&d) }, 4, NULL) &&
	       compare_wgmma(&d, c);
}

START_TEST(wgmma_sparse)
{
	/* B: rows of 64 bytes along k, two 16-bit steps */
	wgmma_case f16 = { .text = "f32.f16.f16", .ab = F16, .cd = F32, .n = 16, .k = 32, .immediates = true };
	wgmma_case tf32 = { .text = "f32.tf32.tf32", .ab = TF32, .cd = F32, .n = 16, .k = 16, .immediates = true };
	wgmma_case s8 = { .text = "s32.s8.s8", .ab = S8, .cd = S32, .n = 16, .k = 64 };
	size_t ran = 0;

	name = devices[_i];
	if (!open_device())
		SKIP("%s: %s", name, why_not);
	f16.b = tf32.b = s8.b =
		(cptx_smem_desc){ .arch = CPTX_DESC_WGMMA, .swizzle = CPTX_SWIZZLE_64B, .start = HALF, .lbo = 16, .sbo = 512 };
	for (uint8_t s = 0; s < 2; s++)
		ran += run_wgmma_sparse(&f16, s) + run_wgmma_sparse(&tf32, s);
	ran += run_wgmma_sparse(&s8, 0);
	printf("wgmma.sp on %s: %zu forms\n", cptx_device_get_info(dev)->name, ran);
	if (!ran)
		skip("%s does not execute wgmma", name);
	cptx_device_close(dev);
}
END_TEST

/* ---- tensor maps: the bytes in shared memory are those of the tile ---- */

enum { ROWS = 100, COLS = 160 }; /* of the matrix, bf16 or so; tiles stick out */

static uint64_t element(uint32_t row, uint32_t col) { return row * 1009 + col * 31 + 1; }

static bool run_tile(cptx_tile t, enum cptx_tensor_type type, uint32_t row0, uint32_t col0)
{
	static uint8_t matrix[ROWS * COLS * 8], image[IMAGE];
	uint32_t bits = t.elem.bits, pitch = t.elem.mn_major ? ROWS : COLS;
	uint64_t mask = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
	cptx_tile_boxes boxes;
	cptx_tensor_map_opt o;
	cptx_tensor_map map;

	pitch = (pitch * bits / 8 + 15) / 16 * 16;
	for (uint32_t row = 0; row < ROWS; row++)
		for (uint32_t col = 0; col < COLS; col++)
			put_bits(matrix, (t.elem.mn_major ? col : row) * pitch * 8 + (t.elem.mn_major ? row : col) * bits, bits,
			         element(row, col));
	uint64_t at = cptx_mem_alloc(dev, sizeof matrix, &err);
	cptx_mem_write(dev, at, matrix, sizeof matrix, &err);
	ck_assert_msg(cptx_tile_get_boxes(&t, &boxes, &err) && cptx_tile_tensor_map(&t, type, at, ROWS, COLS, pitch, &o, &err) &&
	                  cptx_tensor_map_make(dev, &o, &map, &err),
	              "%s", err.text);

	cptx_module *m = cptx_module_new(NULL);
	cptx_kernel *k = cptx_kernel_begin(m, "k", .block = { 128 });
	cptx_val out = cptx_param(k, CPTX_PTR, "out"),
			 pm = cptx_param_bytes(k, CPTX_TENSOR_MAP_BYTES, CPTX_TENSOR_MAP_ALIGN, "map");
	cptx_val smem_at = cptx_var(k, CPTX_U32, cptx_shared_named(k, CPTX_B8, IMAGE, 1024, "smem"));
	cptx_val bar = cptx_var(k, CPTX_U32, cptx_shared(k, CPTX_B64, 1)), tid = cptx_tid_x(k);
	cptx_val generic = cptx_cvta(k, cptx_mov(k, pm, .type = CPTX_U64), .space = CPTX_PARAM);
	CPTX_IF(k, cptx_setp(k, tid, 0, .cmp = CPTX_EQ)) {
		cptx_mbarrier_init(k, bar, 1, .space = CPTX_SHARED);
		cptx_fence_mbarrier_init(k);
		cptx_fence_proxy(k, .proxy = CPTX_ASYNC, .space = CPTX_SHARED_CTA);
		cptx_mbarrier_arrive_expect_tx(k, bar, cptx_tile_bytes(&t), .into = cptx_sink(), .space = CPTX_SHARED_CTA);
		for (uint32_t i = 0; i < boxes.count[0] * boxes.count[1]; i++) {
			uint32_t inner = i % boxes.count[0] * boxes.box[0], outer = i / boxes.count[0] * boxes.box[1];
			int x = (int)((t.elem.mn_major ? row0 : col0) + inner), y = (int)((t.elem.mn_major ? col0 : row0) + outer);
			cptx_val coord = cptx_regs(k, CPTX_S32, 2);
			cptx_mov(k, x, .into = cptx_elem(coord, 0)), cptx_mov(k, y, .into = cptx_elem(coord, 1));
			cptx_cp_async_bulk_tensor_load(k, cptx_add(k, smem_at, i * boxes.bytes), generic, coord, bar, .dim = CPTX_DIM_2D,
			                               .dst = CPTX_SHARED_CLUSTER);
		}
	}
	cptx_bar_sync(k, 0);
	cptx_mbarrier_wait(k, CPTX_WAIT_DONE, cptx_mbarrier_try_wait_parity(k, bar, 0, .space = CPTX_SHARED_CTA));
	cptx_val i = cptx_var(k, CPTX_U32, cptx_shl(k, tid, 2));
	CPTX_FOR(k, i, cptx_tile_bytes(&t), 128 * 4)
		cptx_st(k, cptx_add(k, out, cptx_cvt(k, i, .dtype = CPTX_U64)),
		        cptx_ld(k, cptx_add(k, smem_at, i), .space = CPTX_SHARED, .type = CPTX_B32), .space = CPTX_GLOBAL);
	cptx_arg arg = CPTX_ARG_BYTES(map.bytes, sizeof map.bytes);
	bool ran = run(dev, m, 128, (void *const[]){ image }, (const size_t[]){ IMAGE }, 1, &arg);
	for (uint32_t row = 0; ran && row < t.rows; row++)
		for (uint32_t col = 0; col < t.cols; col++) {
			cptx_smem_place p = cptx_tile_at(&t, row, col);
			bool inside = row0 + row < ROWS && col0 + col < COLS;
			uint64_t want = inside ? element(row0 + row, col0 + col) & mask : 0,
					 got = get_bits(image, p.byte * 8 + p.bit, bits);
			ck_assert_msg(got == want, "%u bits, %s-major, swizzle %d: row %u column %u is 0x%llx, not 0x%llx", bits,
			              t.elem.mn_major ? "MN" : "K", t.swizzle, row, col, (unsigned long long)got,
			              (unsigned long long)want);
		}
	cptx_mem_free(dev, at);
	return ran;
}

START_TEST(tensor_maps)
{
	static const enum cptx_tensor_type types[] = { CPTX_TENSOR_U8, CPTX_TENSOR_U16, CPTX_TENSOR_U32, CPTX_TENSOR_U64 };
	size_t ran = 0;

	name = devices[_i];
	if (!open_device())
		SKIP("%s: %s", name, why_not);
	for (size_t y = 0; y < ARRAY_LEN(types); y++) {
		uint32_t bits = cptx_tensor_type_bits(types[y]), n = 2048 / bits; /* 256 bytes */
		for (int s = CPTX_SWIZZLE_NONE; s <= CPTX_SWIZZLE_128B; s++)
			for (int mn = 0; mn < 2; mn++) {
				cptx_tile t = {
					.rows = mn ? n : 40, .cols = mn ? 40 : n, .elem.bits = (uint8_t)bits, .swizzle = (enum cptx_swizzle)s
				};
				t.elem.mn_major = mn;
				ran += run_tile(t, types[y], mn ? 16 : 80, mn ? 130 : 32);
			}
		cptx_tile whole = { .rows = 24, .cols = n / 2, .elem.bits = (uint8_t)bits, .pitch = 128 };
		ran += run_tile(whole, types[y], 3, 0);
	}
	printf("tensor maps on %s: %zu\n", cptx_device_get_info(dev)->name, ran);
	if (!ran)
		skip("%s does not execute cp.async.bulk.tensor", name);
	cptx_device_close(dev);
}
END_TEST
