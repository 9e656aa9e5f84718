/* SPDX-License-Identifier: MIT */
// <cptx/cptx.hpp>: each operator makes the instruction that its table names, at the user's line; owners move; errors are thrown.
#include <cptx/cptx.hpp>

#include <iostream>

static int passed, failed;
static void is(bool good, const char *what, const std::string &had = "")
{
	good ? passed++ : failed++;
	if (!good)
		std::cout << "FAIL: " << what << "\n" << had << "\n";
}
static void has(const std::string &text, const char *part) { is(text.find(part) != std::string::npos, part, text); }

static std::string operators()
{
	const cptx::module m;
	const cptx::kernel k = m.kernel("k", { 32 });
	const cptx::value a = k.reg(CPTX_U32), s = k.reg(CPTX_S32), f = k.reg(CPTX_F32), d = k.reg(CPTX_F64), r = k.regs(CPTX_F32, 4);
	(void)(a + 1), (void)(7 - a), (void)(a * 3), (void)(a / 5), (void)(a % 6), (void)(a & 8), (void)(a | 9), (void)(a ^ 10);
	(void)(a << 11), (void)(a >> 12), (void)(s >> 13), (void)-s, (void)~a;
	(void)(f + 1.5f), (void)(f * f), (void)(f / f), (void)(d / 3.0), (void)-f, (void)(r[2] - r.slice(1, 2)[0]);
	const cptx::value p = a < 20u, q = f >= 2.0;
	(void)(p & q), (void)(p | !q), (void)(a == 1), (void)(a != 2), (void)(s <= -3), (void)(s > 4);
	cptx::value t = k.var(CPTX_U32, 40);
	t += 41, t *= 42, t &= a, t <<= 1;
	t.set(43);
	CPTX_IF (k, !p)
		t -= 44;
	return m.emit("sm_80");
}

static void errors()
{
	const cptx::module m;
	const cptx::kernel k = m.kernel("k");
	const cptx::value a = k.reg(CPTX_U32), b = k.reg(CPTX_U64);
	const unsigned line = __LINE__ + 1;
	const cptx::value wrong = a + b;
	is(wrong.is_none(), "a failed call gives nothing");
	try {
		(void)m.emit("sm_80");
		is(false, "an error is thrown");
	} catch (const cptx::error &e) {
		is(e.code() == CPTX_E_FORM && e.line() == line && e.file() == __FILE__, "the error is at its line", e.what());
		has(e.what(), "add");
	}
	try {
		cptx::device nowhere("tpu:0");
		is(false, "a device that is none");
	} catch (const cptx::error &e) {
		has(e.what(), "is no device name");
	}
	try {
		(void)cptx::module::parse("nonsense", "n.ptx");
		is(false, "text that is none");
	} catch (const cptx::error &e) {
		has(e.what(), "n.ptx:1");
	}
}

static void running()
{
	cptx::module first;
	const cptx::kernel k = first.kernel("fill", { 64 });
	const cptx::value to = k.param(CPTX_PTR, "to"), by = k.param(CPTX_U32, "by"), i = k.tid_x();
	cptx_st(k, to + k(cptx_mul_wide(k, i, 4)), i * by, .space = CPTX_GLOBAL);
	const cptx::module m = std::move(first);
	const cptx::device dev("emu:sm_80");
	const cptx::program p(dev, m);
	cptx::buffer<unsigned> one(dev, 64), two(dev, std::vector<unsigned>(3));
	std::swap(one, two);
	const cptx::buffer<unsigned> b = std::move(two);
	const cptx::stream s(dev);
	p.launch_on(s, "fill", { 1 }, b.address(), 3u);
	s.synchronize();
	const std::vector<unsigned> had = b.read();
	bool right = had.size() == 64;
	for (unsigned j = 0; right && j < 64; j++)
		right = had[j] == 3 * j;
	is(right, "a launch fills its buffer");
	try {
		p.launch("fill", { 1 }, b.address());
		is(false, "an argument is missing");
	} catch (const cptx::error &e) {
		is(e.code() == CPTX_E_ARG, "an argument is missing", e.what());
	}
}

int main()
{
	const std::string text = operators();
	for (const char *part :
	     { "add.u32 %r3, %r1, 1;", "sub.u32 %r4, 7, %r1;", "mul.lo.u32 %r5, %r1, 3;", "div.u32 %r6, %r1, 5;", "rem.u32 %r7, %r1, 6;",
	       "and.b32 %r8, %r1, 8;", "or.b32 %r9, %r1, 9;", "xor.b32 %r10, %r1, 10;", "shl.b32 %r11, %r1, 11;", "shr.u32 %r12, %r1, 12;",
	       "shr.s32 %r13, %r2, 13;", "neg.s32 %r14, %r2;", "not.b32 %r15, %r1;", "add.f32", "mul.f32", "div.rn.f32", "div.rn.f64",
	       "neg.f32", "sub.f32", "setp.lt.u32", "setp.ge.f32", "and.pred", "or.pred", "setp.eq.u32", "setp.ne.u32", "setp.le.s32",
	       "setp.gt.s32" })
		has(text, part);
	for (const char *part : { ", 41;", ", 42;", "mov.u32", ", 44;" })
		has(text, part);
	errors();
	running();
	std::cout << "operators: " << passed << " passed, " << failed << " failed\n";
	return failed != 0;
}
