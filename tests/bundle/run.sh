#!/bin/sh
# SPDX-License-Identifier: MIT
# A bundle of GEMMs for five targets, made by the command, run on each by a program that links no cptx.
# run.sh CPTX APP EMU_CUDA SOURCE CC [SERVER SANITIZE].  CPTX_WHOLE=1: 60 GEMMs.  SANITIZE is the libcuda of cptx sanitize.
set -u
cptx=$(realpath "$1") app=$(realpath "$2") emu=$(realpath "$3") source=$4 cc=$5 server=${6:-} sanitize=${7:-}
passed=0 failed=0 skipped=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export CPTX_CACHE_DIR="$dir/cache" CPTX_TUNE_PATH=/nonexistent CPTX_TUNE_DIR="$dir/tune" CPTX_CUDA_LIBRARY="$emu"
targets=sm_80,sm_90,sm_90a,sm_100a,sm_120a

check() {
	what=$1
	shift
	if "$@" >"$dir/out" 2>"$dir/err"; then passed=$((passed + 1)); else
		failed=$((failed + 1))
		echo "FAIL: $what"
		head -n 5 "$dir/out" "$dir/err"
	fi
}
says() { if grep -qF -e "$1" "$dir/out" "$dir/err"; then passed=$((passed + 1)); else
	failed=$((failed + 1))
	echo "FAIL: $what: no '$1'"
	head -n 5 "$dir/out" "$dir/err"
fi; }
refuses() { what=$1; shift; if "$@" >"$dir/out" 2>"$dir/err"; then
	failed=$((failed + 1))
	echo "FAIL: $what: it succeeds"
else passed=$((passed + 1)); fi; }

cat >"$dir/list" <<'EOT'
# NAME gemm SIZES OPTIONS
plain gemm 64x96x64 out=bf16
f32   gemm 72x64x128
more  gemm 64x64x64x2 out=f32 alpha=1 beta=1 bias=1 # all that an epilogue has
EOT
count=3
if [ "${CPTX_WHOLE:-}" ]; then
	i=0
	while [ $i -lt 57 ]; do
		echo "g$i gemm $((16 + i % 7 * 24))x$((32 + i % 5 * 40))x$((64 + i % 4 * 32)) out=$([ $((i % 2)) = 0 ] && echo bf16 || echo f32)$([ $((i % 3)) = 0 ] && echo ' bias=1')"
		i=$((i + 1))
	done >>"$dir/list"
	count=60
fi
check "making a bundle" "$cptx" bundle "$dir/list" --targets $targets --machine-code none -o "$dir/b.bundle"
says "$count kernels for 5 targets"
check "listing it" "$cptx" bundle --list "$dir/b.bundle"
says "more(a, b, d, c, bias, f32 alpha, f32 beta)  gemm 64x64x64x2, bf16 * bf16 -> f32, layout tt"
says "  sm_100a, PTX 8.6"
says "from $dir/list"
for target in sm_80 sm_90 sm_90a sm_100a sm_120a; do
	export CPTX_TEST_EMU_TARGET=$target
	check "running it on $target" "$app" "$dir/b.bundle"
	says "$count of $count kernels right"
done
check "contexts of other threads" "$app" --contexts "$dir/b.bundle" plain
says "none: launched"
says "another: plain was loaded in another context; ask cptx_load_get in this one"
# what is chosen: older devices of the family, older drivers
CPTX_TEST_EMU_TARGET=sm_86 check "on a device between two" "$app" "$dir/b.bundle" plain
says "plain: sm_80: PTX"
CPTX_TEST_EMU_TARGET=sm_103a check "on another device of the family" "$app" "$dir/b.bundle" plain
says "plain: sm_90: PTX"
export CPTX_TEST_EMU_TARGET=sm_90a
CPTX_TEST_EMU_DRIVER=11080 check "with an old driver" "$app" "$dir/b.bundle" plain
says "sm_90a: its PTX is of version 8.0, and the driver takes 7.8; sm_90: its PTX is of version"
says "sm_80: PTX"
CPTX_TEST_EMU_TARGET=sm_75 refuses "on a device that is too old" "$app" "$dir/b.bundle" plain
says "kernel 'plain' has no build for compute capability 7.5 and a driver of CUDA 13.0"
refuses "a kernel that is not there" "$app" "$dir/b.bundle" --time nothing
# machine code, which this driver refuses, comes first, and PTX second
if "$cptx" compile --list 2>/dev/null | grep -q '^ptxas  .*[0-9]'; then
	check "with machine code" "$cptx" bundle "$dir/list" --targets sm_90a --machine-code sm_90a -o "$dir/c.bundle"
	check "which is tried first" "$app" "$dir/c.bundle" plain
	says "plain: sm_90a: the driver refuses its machine code (209); sm_90a: PTX"
else
	skipped=$((skipped + 1))
	echo "SKIP bundle: ptxas"
fi
# linked in
check "C source" "$cptx" bundle "$dir/list" --targets sm_90a --machine-code none --c kernels -o "$dir/kernels.c"
cat >"$dir/main.c" <<'EOT'
#include "cptx_load.h"
#include <stdio.h>
extern const uint64_t kernels[];
extern const size_t kernels_size;
int main(void)
{
	char err[CPTX_LOAD_ERROR] = "";
	cptx_load *b = cptx_load_memory(kernels, kernels_size, err);
	cptx_load_kernel *k = b ? cptx_load_get(b, "plain", err) : NULL;
	printf("%u kernels, %s%s\n", cptx_load_count(b), cptx_load_why(k), err);
	cptx_load_close(b);
	return !k;
}
EOT
# shellcheck disable=SC2086 # the compiler may be several words
check "compiling it" $cc -std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -I"$source/src/bundle/loader" "$dir/main.c" "$dir/kernels.c" \
	"$source/src/bundle/loader/cptx_load.c" -o "$dir/main" -ldl
check "running what was linked" "$dir/main"
says "$count kernels, sm_90a: PTX"
lines=$(wc -l <"$source/src/bundle/loader/cptx_load.c")
check "the loader has at most 600 lines, not $lines" [ "$lines" -le 600 ]
# a server of two threads, which is an example
if [ -n "$server" ]; then
	check "the server's bundle" "$cptx" bundle "$source/examples/hosts/kernels.txt" --targets sm_80,sm_90a --machine-code none -o "$dir/s.bundle"
	check "the server" env CPTX_CUDA_LIBRARY="$sanitize" "$server" "$dir/s.bundle"
	says "40 requests served, 40 of 40 answers right"
	says "project: sm_90a: PTX"
	refuses "the server with another bundle" env CPTX_CUDA_LIBRARY="$sanitize" "$server" "$dir/b.bundle"
	says "no kernel"
	refuses "the server without a driver" env CPTX_CUDA_LIBRARY=/nonexistent/libcuda.so.1 "$server" "$dir/s.bundle"
	says "/nonexistent/libcuda.so.1: cannot open"
fi
# what was measured
check "tuning" "$cptx" tune 64x96x64 --options "out=bf16" --device emu:sm_90a --candidates 2 --folder "$dir/tune"
check "a bundle of what was measured" "$cptx" bundle "$dir/list" --targets sm_90a --machine-code none --tuned-for "emulated sm_90a" \
	-o "$dir/t.bundle"
check "listing it" "$cptx" bundle --list "$dir/t.bundle"
says "measured on emulated sm_90a, "
says "model: H200"
check "running it" "$app" "$dir/t.bundle"
# mistakes
refuses "a list with a mistake" sh -c "echo 'a gemm 64x64' | '$cptx' bundle - -o '$dir/x'"
says "'64x64' is no size"
refuses "an option that is none" sh -c "echo 'a gemm 64x64x64 oit=f32' | '$cptx' bundle - -o '$dir/x'"
says "did you mean out=?"
refuses "a name twice" sh -c "printf 'a gemm 64x64x64\na gemm 64x64x64\n' | '$cptx' bundle - -m none -o '$dir/x'"
says "a has a variant for sm_80 already"
check "nothing was written" [ ! -e "$dir/x" ]
refuses "what is no bundle" "$cptx" bundle --list "$dir/list"
says "is no bundle of cptx"
echo "bundle: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
