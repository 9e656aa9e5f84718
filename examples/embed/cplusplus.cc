/* SPDX-License-Identifier: MIT */
/*
 * C++17: y = a * x + y with operators, on a GPU or the emulator.
 *
 *   c++ -std=c++17 -Wall -Wextra -Wpedantic -Iinclude -Ibuild/include examples/embed/cplusplus.cc -o build/cplusplus -Lbuild \
 *       -lcptx -Wl,-rpath,$PWD/build
 *   CPTX_DEVICE=emu:sm_90a build/cplusplus
 */
#include <cptx/cptx.hpp>

#include <cstdlib>
#include <iostream>

static void build_saxpy(const cptx::module &m)
{
	const cptx::kernel k = m.kernel("saxpy", { 256 });
	const cptx::value x = k.param(CPTX_PTR, "x"), y = k.param(CPTX_PTR, "y");
	const cptx::value a = k.param(CPTX_F32, "a"), n = k.param(CPTX_U32, "n");
	const cptx::value i = k.ctaid_x() * 256 + k.tid_x();

	CPTX_IF (k, i < n) {
		const cptx::value at = k(cptx_mul_wide(k, i, 4)), px = x + at, py = y + at;
		const cptx::value vx = k(cptx_ld(k, px, .space = CPTX_GLOBAL, .type = CPTX_F32));
		const cptx::value vy = k(cptx_ld(k, py, .space = CPTX_GLOBAL, .type = CPTX_F32));
		cptx_st(k, py, cptx_fma(k, a, vx, vy, .rnd = CPTX_RN), .space = CPTX_GLOBAL);
	}
}

int main()
{
	try {
		constexpr unsigned n = 1000;
		const char *name = std::getenv("CPTX_DEVICE");
		const cptx::module m;
		build_saxpy(m);

		const cptx::device device(name ? name : "cuda");
		const cptx::program program(device, m);
		std::vector<float> x(n), y(n, 1.0f);
		for (unsigned i = 0; i < n; i++)
			x[i] = static_cast<float>(i);
		const cptx::buffer<float> dx(device, x), dy(device, y);
		program.launch("saxpy", { (n + 255) / 256 }, dx.address(), dy.address(), 2.0f, n);
		device.synchronize();

		unsigned wrong = 0;
		y = dy.read();
		for (unsigned i = 0; i < n; i++)
			wrong += y[i] != 2.0f * static_cast<float>(i) + 1.0f;
		std::cout << device.info().name << ": " << wrong << " of " << n << " are wrong\n";
		return wrong != 0;
	} catch (const cptx::error &e) {
		std::cerr << e.what() << '\n';
		return 1;
	}
}
