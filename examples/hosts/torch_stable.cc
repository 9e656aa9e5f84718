/* SPDX-License-Identifier: MIT */
/*
 * x * sigmoid(x) * y as an operator of PyTorch, torch.ops.cptx_stable.silu_mul, by PyTorch's stable ABI: compiled once, it
 * loads into PyTorch 2.10 and every later one.  Tensors of a GPU are computed on PyTorch's current stream, those of the CPU
 * by the emulator.  torch_stable.py beside this file compiles and loads it.
 */
#define TORCH_TARGET_VERSION (((0ULL + 2) << 56) | ((0ULL + 10) << 48))
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include <cptx/cptx.hpp>
#include <cptx/dlpack.h>
#include <dlpack/dlpack.h>

#include <map>
#include <mutex>

using torch::stable::Tensor;

/* x * sigmoid(x) * y, of n numbers. */
static cptx::module with_kernel()
{
	constexpr float log2_e = 1.44269504f;
	cptx::module m;
	const cptx::kernel k = m.kernel("silu_mul", { 256 });
	const cptx::value x = k.param(CPTX_PTR, "x"), y = k.param(CPTX_PTR, "y"), out = k.param(CPTX_PTR, "out");
	const cptx::value n = k.param(CPTX_U32, "n"), i = k.ctaid_x() * 256 + k.tid_x();

	CPTX_IF(k, i < n) {
		const cptx::value at = k(cptx_mul_wide(k, i, 4));
		const cptx::value vx = k(cptx_ld(k, x + at, .space = CPTX_GLOBAL, .type = CPTX_F32));
		const cptx::value vy = k(cptx_ld(k, y + at, .space = CPTX_GLOBAL, .type = CPTX_F32));
		const cptx::value power = k(cptx_ex2(k, vx * -log2_e));
		const cptx::value gate = k(cptx_div(k, vx, power + 1.0f, .rnd = CPTX_RN));
		cptx_st(k, out + at, gate * vy, .space = CPTX_GLOBAL);
	}
	return m;
}

/* The kernel on one device.  A signature says which tensors it takes, and what the others see when they do not fit. */
struct loaded {
	cptx::device device;
	cptx::program program;
	cptx_tensor_launch *launch;

	explicit loaded(const std::string &name) : device(name.c_str()), program(device, with_kernel())
	{
		cptx_tensor_launch_opt opt = { sizeof opt };
		cptx_error err = { CPTX_OK };

		opt.signature = "x: f32[n] const, y: f32[n] const, out: f32[n], n: u32 = n";
		opt.grid = "n / 256";
		opt.block[0] = 256;
		launch = cptx_tensor_launch_new(program, "silu_mul", &opt, &err);
		if (!launch)
			throw cptx::error(err);
	}
	loaded(const loaded &) = delete;
	~loaded() { cptx_tensor_launch_destroy(launch); }
};

/* One of each device, made when it is first used, and kept: at the end of the process the driver may be gone already. */
static const loaded &on(const DLDevice &d)
{
	static std::mutex lock;
	static auto *all = new std::map<int, loaded>;
	const char *emulated = std::getenv("CPTX_DEVICE");
	const std::lock_guard<std::mutex> locked(lock);

	return all
	    ->try_emplace(d.device_type == kDLCPU ? -1 : d.device_id,
	                  d.device_type == kDLCPU ? emulated ? emulated : "emu:sm_90a" : "cuda:" + std::to_string(d.device_id))
	    .first->second;
}

/* A tensor of any shape without gaps, as a vector. */
struct vector {
	int64_t n;
	DLTensor dl = {};

	explicit vector(const Tensor &t) : n(t.numel())
	{
		STD_TORCH_CHECK(t.scalar_type() == torch::headeronly::ScalarType::Float, "silu_mul takes float32 tensors");
		STD_TORCH_CHECK(t.is_contiguous(), "silu_mul takes contiguous tensors");
		dl.data = t.data_ptr();
		dl.device = { t.is_cpu() ? kDLCPU : kDLCUDA, t.is_cpu() ? 0 : t.get_device_index() };
		dl.ndim = 1;
		dl.dtype = { kDLFloat, 32, 1 };
		dl.shape = &n;
	}
	vector(const vector &) = delete;
};

static void *stream_of(const DLDevice &device)
{
	void *stream = nullptr;

#ifdef USE_CUDA
	if (device.device_type == kDLCUDA)
		TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(device.device_id, &stream));
#endif
	(void)device;
	return stream;
}

static Tensor silu_mul(const Tensor &x, const Tensor &y)
{
	STD_TORCH_CHECK(x.dim() == y.dim(), "silu_mul takes tensors of one shape");
	for (int64_t i = 0; i < x.dim(); i++)
		STD_TORCH_CHECK(x.size(i) == y.size(i), "silu_mul takes tensors of one shape");
	const Tensor out = torch::stable::empty_like(x);
	const vector of[] = { vector(x), vector(y), vector(out) };
	cptx_tensor_arg args[3] = {};
	cptx_error err = { CPTX_OK };

	for (int i = 0; i < 3; i++) {
		args[i].kind = CPTX_TENSOR_DL;
		args[i].u.tensor = &of[i].dl;
	}
	const DLDevice device = of[0].dl.device;
	const bool ok = cptx_tensor_launch_run(on(device).launch, args, 3, nullptr, stream_of(device), &err);
	STD_TORCH_CHECK(ok, err.text);
	return out;
}

STABLE_TORCH_LIBRARY(cptx_stable, m) { m.def("silu_mul(Tensor x, Tensor y) -> Tensor"); }
STABLE_TORCH_LIBRARY_IMPL(cptx_stable, CPU, m) { m.impl("silu_mul", TORCH_BOX(&silu_mul)); }
#ifdef USE_CUDA
STABLE_TORCH_LIBRARY_IMPL(cptx_stable, CUDA, m) { m.impl("silu_mul", TORCH_BOX(&silu_mul)); }
#endif
