#!/bin/sh
# SPDX-License-Identifier: MIT
# PTX of the CUDA kernels that the ladder of examples/hgemm.h follows, for bench_hgemm -p:
#   bench/hgemm_twins.sh CHECKOUT OUT.ptx
# CHECKOUT is https://github.com/WingEdge777/vitamin-cuda (kernels/hgemm_sm120).  Needs nvcc.  Only the kernels are compiled, for
# bf16 and sm_90; what binds them to PyTorch is left out.
set -eu
[ $# = 2 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
from=$1/kernels/hgemm_sm120

sed -e '/#include <ATen/d' -e '/#include <torch/d' -e '/^#define CHECK_T/,$d' "$from/hgemm_sm120.cu" >"$work/twins.cu"
cat >>"$work/twins.cu" <<'END'
using T_ = __nv_bfloat16;
template __global__ void hgemm_bcf_dbf_rw_kernel<128, 128, 32, T_>(T_ *, T_ *, T_ *, int, int, int);
template __global__ void hgemm_k_stages_kernel<128, 128, 32, 3, T_>(T_ *, T_ *, T_ *, int, int, int);
#define MAP_ const __grid_constant__ CUtensorMap
template __global__ void hgemm_tma_r_k_stages_kernel<128, 128, 64, 3, T_>(MAP_, MAP_, T_ *, int, int, int);
template __global__ void hgemm_tma_r_k_stages_kernel<128, 128, 32, 3, T_>(MAP_, MAP_, T_ *, int, int, int);
END
"$nvcc" -std=c++17 -O3 -ptx -arch=sm_90 -I "$from" -o "$work/twins.ptx" "$work/twins.cu"
rename() { printf 's/_Z[0-9]+%s[A-Za-z0-9_]*(_param_[0-9]+)/%s\\1/g;s/_Z[0-9]+%s[A-Za-z0-9_]*/%s/g;' "$1" "$2" "$1" "$2"; }
sed -E "$(rename hgemm_bcf_dbf_rw_kernel bcf_dbf_rw)$(rename hgemm_k_stages_kernel k_stages)$(
	rename hgemm_tma_r_k_stages_kernelILi128ELi128ELi64E tma_r_64)$(rename hgemm_tma_r_k_stages_kernelILi128ELi128ELi32E tma_r_32)" \
	"$work/twins.ptx" >"$2"
