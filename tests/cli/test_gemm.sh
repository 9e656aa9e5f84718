#!/bin/sh
# SPDX-License-Identifier: MIT
# cptx gemm, from the outside: test_gemm.sh PATH-OF-CPTX.  The last line is "gemm: N passed, N failed, N skipped".
set -u
cptx=$1 name=gemm
# shellcheck source=tests/cli/common.sh
. "$(dirname "$0")/common.sh"

# ---- gemm: values ----
for value in 0x0x0 128x256 128x256x64x2 axbxc 128x256x64a 2048x64x32 -1x64x32 "" 128X256X64 99999999999999999999x1x1; do
	usage "--tile $value: expected three numbers from 1 to 1024, as in 128x256x64" gemm --tile "$value"
done
for value in 2 0x2 2x33 2x2x2 2x x; do
	usage "--warps $value: expected two numbers from 1 to 32, as in 2x4" gemm --warps "$value"
done
for value in 0 a 3x3 1025 -3 "" 1 17; do
	usage "--stages $value: expected a number of stages, 2 to 16" gemm --stages "$value"
done
for value in 0 a 3x3 1025 -3 ""; do
	usage "--group $value: expected a number of rows of tiles, 1 to 1024" gemm --group "$value"
done
for value in float "e4m3," ",e4m3" "e4m3,e2m1,e2m1" "" bf16x2bf16x2bf16x2bf16x2; do
	usage "--in $value: expected one of bf16 f16 tf32 f64 e4m3 e5m2 e2m3 e3m2 e2m1 s8 u8 u4, or two of them" gemm --in "$value"
done
usage "--out float: expected f32, bf16, f16, e4m3, e5m2, s32 or f64" gemm --out float
usage "--run 4096" gemm --run 4096
usage "--run 0x1x8" gemm --run 0x1x8
usage "there is no target 'sm_90b'" gemm --arch sm_90b
usage "cptx arch" gemm --arch ""
usage "what is 'left'?" gemm left over

# ---- gemm: shapes ----
usage "A is .f32 and B .f32; both must be bf16, both f16, both tf32" gemm --mma sync --in f32
usage "A is .f32 and B .f32; both must be bf16, both f16, both tf32, or each e4m3 or e5m2, or each s8 or u8" gemm --in f32
usage "output type .s8; it must be f32, bf16, f16, e4m3 or e5m2" gemm --out s8
usage "tile K = 48; the swizzle is made for 32, 64 and 128" gemm -M sync --tile 128x128x48
usage "bytes of shared memory; a CTA of sm_86 has at most 101376" gemm --arch sm_86 --tile 128x256x64 --stages 4
usage "not available on sm_75; targets from sm_80 on have them" gemm --arch sm_75
usage "tile M = 100 is not divisible into 2 warps" gemm -M sync --tile 100x128x32 --warps 2x2
usage "registers per thread are needed" gemm -M sync --tile 256x256x32 --warps 2x2
usage "CTA has 1 to 32" gemm -M sync --warps 8x8
usage "rows of A have 101 elements of 2 bytes; they must be a multiple of 16 bytes (pad to 104)" gemm --tile 64x64x64 --unaligned b --run 64x64x101
usage "rows of A have 101 elements of 2 bytes; they must be a multiple of 16 bytes (pad to 104)" gemm --tile 64x64x64 --unaligned B --run 64x64x101
usage "A of .e2m1 is unaligned; that is for types from 8 bits on" gemm -a sm_100a --in e2m1 --unaligned a
usage "--unaligned abc: expected some of the letters a, b and d" gemm --unaligned abc

# ---- gemm: rows of any length ----
for of in "sm_80" "sm_90a" "sm_90a --tile 64x32x64" "sm_90a --mma sync --bias" "sm_100a --batch 2"; do
	# shellcheck disable=SC2086 # words
	status 0 gemm --device emu:$of --run 33x65x67
	says "A and B copied to aligned rows"
	says "right; largest error"
done
status 0 gemm -a sm_90a --explain 4096x4096x4097
says "A and B copied to aligned rows"

# ---- gemm: few rows, weights of few bits ----
for of in "--run 5x70x203" "--in bf16,u4 --scale bf16 --scale-k 128 --zeros --run 3x40x384" "--in f16,e2m1 --run 2x24x256" "--layout tn --run 9x72x96"; do
	# shellcheck disable=SC2086 # words
	status 0 gemm --device emu:sm_80 --mma gemv $of
	says "by gemv"
	says "right; largest error"
done
status 0 gemm --device emu:sm_90a --mma wgmma --swap --tile 64x16x64 --stages 4 --in bf16,u4 --scale bf16 --scale-k 128 --zeros --run 13x136x416
says "tile 64x16x64 swapped"
says "right; largest error"
status 0 gemm -a sm_80 --explain 1x4096x4097
says "by gemv, 8 warps along K, 1 along N, any rows"
usage "--stages is an option of" gemm --mma gemv --stages 3
# which kernel was the faster one when both were measured (bench/RESULTS.md)
for of in "1x8192x8192 u4" "1x28672x8192 u4" "16x8192x8192 u4" "16x28672x8192 u4" "64x8192x8192 u4" "16x8192x8192 e2m1" "16x28672x8192 e2m1" \
	"1x8192x8192 e4m3" "1x28672x8192 e4m3" "16x8192x8192 e4m3" "16x28672x8192 e4m3"; do
	# shellcheck disable=SC2086 # words
	set -- $of
	zeros=
	[ "$2" = u4 ] && zeros=--zeros
	# shellcheck disable=SC2086 # none or one
	status 0 gemm -a sm_90a --in "bf16,$2" --scale bf16 --scale-k 128 $zeros --explain "$1"
	sed -n 3p "$out" >"$out.first" && mv "$out.first" "$out"
	says "swapped, cluster"
done
# what wgmma cannot do, gemv does unless another kernel is asked for
for of in "--in bf16,u4 --scale bf16 --scale-k 128 --run 7x97x256" "--in bf16,e4m3 --run 7x96x256" "--in bf16,e4m3 --run 70x96x256"; do
	# shellcheck disable=SC2086 # words
	status 0 gemm --device emu:sm_90a $of
	says "by gemv"
	says "right; largest error"
	# shellcheck disable=SC2086 # words
	status 2 gemm --device emu:sm_90a --mma wgmma $of
done
usage "B of .e4m3 without scale factors; by wgmma it has these, of the type of A (.scale = .bf16)" gemm --device emu:sm_90a --mma wgmma --in bf16,e4m3 --run 7x96x256
usage "scale_rows with B of .u4" gemm --device emu:sm_90a --in bf16,u4 --scale bf16 --mma wgmma --scale-rows --run 200x96x256
usage "K is a multiple of 32" gemm --device emu:sm_90a --in bf16,u4 --scale bf16 --run 7x96x65
usage "so K is a multiple of 16" gemm --device emu:sm_90a --in f16,e5m2 --scale f16 --run 300x1000x520

# ---- gemm: what multiplies ----
usage "--mma tensor: expected tcgen05, wgmma, sync or gemv" gemm --mma tensor
usage "--kind wgmma: expected f16, tf32, f8f6f4, i8, mxf8f6f4, mxf4 or mxf4nvf4" gemm --kind wgmma
# the target decides, whatever else is asked for
for of in "sm_80 mma.sync" "sm_90 mma.sync" "sm_90a wgmma" "sm_100 mma.sync" "sm_100a tcgen05.mma" "sm_103a tcgen05.mma" "sm_120a mma.sync"; do
	for option in "" "--tile 128x128x64" "--stages 3"; do
		# shellcheck disable=SC2086 # an option and its value
		status 0 gemm --arch "${of% *}" $option
		says "${of#* }"
	done
done
says "mma.sync.aligned.m16n8k16"
status 0 gemm --arch sm_100a --mma sync
says "mma.sync.aligned.m16n8k16"
usage "sm_100a has no wgmma; sm_90a has. Instead: tcgen05" gemm --mma wgmma --arch sm_100a
usage "sm_90a has no tcgen05; sm_100a and sm_103a have. Instead: wgmma" gemm --mma tcgen05
usage "sm_100 has no tcgen05; sm_100a and sm_103a have. Instead: sm_100a" gemm --arch sm_100 --mma tcgen05
usage "sm_120 has no mma.sync with scale factors; sm_120a and sm_121a have. Instead: sm_120a" gemm --arch sm_120 --kind mxf4
usage "or each s8 or u8; sm_100a has tcgen05" gemm --arch sm_100 --in e2m1
usage "or each s8 or u8; sm_90a has wgmma" gemm --arch sm_90 --in e2m1
usage "device emu:sm_80 cannot run it: gemm for sm_90a: sm_80 has no wgmma" gemm --arch sm_90a --run 64x64x64 --device emu:sm_80
# options that the kernel does not have
both="--mma sync and of --mma sync with --scale" tma="--mma sync with --scale and of --mma wgmma and of --mma tcgen05"
usage "--warps is an option of $both and of --mma gemv; this kernel is by --mma wgmma, by --arch sm_90a" gemm --warps 2x4
usage "--kind is an option of --mma sync with --scale and of --mma tcgen05; this kernel is by --mma sync, by --arch sm_100; sm_100a has tcgen05" gemm --arch sm_100 --kind f16
usage "gemm for sm_90a: scale factors of type .ue8m0; here they are f32" gemm --scale ue8m0
usage "--cluster is an option of --mma wgmma and of --mma tcgen05; this kernel is by --mma sync" gemm --mma sync --cluster 2x1
usage "--swap is an option of --mma wgmma and of --mma tcgen05; this kernel is by --mma sync with --scale" gemm -a sm_120a -k mxf4 --tile 64x64x256 --swap
usage "--per-sm is an option of $tma; this kernel" gemm -a sm_80 --tile 128x64x64 --per-sm 2
usage "--a-tmem is an option of --mma tcgen05; this kernel" gemm --a-tmem
for option in "--alpha 2" "--beta 2" --bias --stream-k "--layout tn" "--batch 2" --grouped; do
	# shellcheck disable=SC2086 # two words
	status 0 gemm -a sm_80 $option
	# shellcheck disable=SC2086
	status 0 gemm -a sm_90a --mma sync $option
	says "cp.async.bulk.tensor"
done
# those of a kernel by mma.sync, and of one with scale factors, run together
for device in emu:sm_80 emu:sm_90a; do
	status 0 gemm --device $device --mma sync --tile 64x64x32 --stream-k --layout nn --alpha 2 --bias --timeline "$dir/line.json" --run 64x72x272
done
status 0 gemm --device emu:sm_120a --kind mxf8f6f4 --stream-k --layout nn --timeline "$dir/line.json" --run 64x64x272
# options that only count with another one
usage "--timeline is of a run: say --run MxNxK too" gemm -a sm_100a --timeline "$dir/line.json"
usage "--device is of a run: say --run MxNxK too" gemm --device emu:sm_90a
usage "--compiler is of a run: say --run MxNxK too" gemm --compiler ptxas
usage "--lines is of PTX, and --explain prints none: say -o FILE too" gemm --lines --explain 64x64x64
usage "--swap goes with --tile; without, the model picks it" gemm --swap
# without --tile the best shape that has what is asked for
status 0 gemm --stages 16 -o "$dir/some.ptx"
says "16 stages"
says "launch   256 threads, "
status 0 gemm --cluster 1x8 --out bf16 -o "$dir/some.ptx"
says "cluster 1x8"
status 0 gemm --stream-k -o "$dir/some.ptx"
says "stream-K"

# the options that are printed make the same kernel
for of in "-a sm_80" "-a sm_80 --in f16 --out f16 -t 64x64x32 -w 2x2 -g 8" "--in e4m3,e5m2 --batch 3" "--layout nt --stream-k --cluster 2x1" \
	"--alpha 0.3 --beta -2 --bias -t 64x256x64 --swap --per-sm 1 -s 3" "-a sm_100a --kind tf32" "-a sm_100a --a-tmem" \
	"-a sm_100a --in e2m1 --scale ue4m3 --grouped" "-a sm_120a --kind mxf8f6f4 --in e4m3,e2m1 -t 64x128x128 -w 2x2 --stream-k" \
	"-a sm_120a --kind mxf4 --bias --per-sm 2 -t 64x64x256" "-a sm_89 --in e4m3,e5m2 --out e4m3 -t 64x64x128 -w 2x2" "--in s8,u8 --out s32" \
	"--experts masked,3 --gather --scatter" "--swiglu --out e4m3 --scale-out f32"; do
	# shellcheck disable=SC2086 # words
	status 0 gemm $of -o "$dir/first.ptx"
	again=$(sed -n 's/^options //p' "$out")
	holds test -n "$again"
	arch=$(sed -n 's/^\.target //p' "$dir/first.ptx")
	# shellcheck disable=SC2086 # words
	status 0 gemm -a "${arch%%,*}" $again -o "$dir/second.ptx"
	holds cmp "$dir/first.ptx" "$dir/second.ptx"
	holds test "$again" = "$(sed -n 's/^options //p' "$out")"
done

# ---- gemm: wgmma ----
usage "--layout tx: expected tt, tn, nt or nn" gemm --layout tx
usage "--cluster 2: expected two numbers from 1 to 16, as in 2x1" gemm --cluster 2
usage "--batch 0: expected a number of matrices, 1 to 65535" gemm --batch 0
usage "tile K = 32; with .bf16 it is 64, 128 bytes" gemm --tile 128x256x32
usage "tile M = 100; 64, 128, 192 and 256 are possible" gemm --tile 100x256x64
usage "one side must be 1" gemm --cluster 2x2
for option in "--stages 3" "--cluster 2x1" --stream-k "--tile 128x64x64"; do
	# shellcheck disable=SC2086 # an option and its value
	usage "--explain tells how a shape is picked, all of it; leave ${option%% *} away" gemm --explain 64x64x64 $option
done
# as many CTAs as the device holds, two on a multiprocessor at most, or as there are tiles
for of in "132 sm_90a" "148 sm_100a" "148 sm_103a --kind mxf4" "170 sm_120a --kind mxf8f6f4" "108 sm_80" "82 sm_86" "128 sm_89" \
	"132 sm_90a --mma sync" "170 sm_120"; do
	# shellcheck disable=SC2086 # words
	set -- $of
	most=$1
	shift
	status 0 gemm --arch "$@" --explain 4096x4096x4096
	holds test "$(awk -v most="$most" 'NR > 2 && $1 > 20 && $6 > most / 2 && $6 <= 2 * most && $7' "$out" | wc -l)" -eq 5
	holds grep -q "^model: .*; $most multiprocessors" "$out"
	holds sort -c -s -n "$out"
	status 0 gemm --arch "$@" --explain 64x64x128
	holds test "$(awk 'NR > 2 && $6 <= 16' "$out" | wc -l)" -eq 5
done
status 0 gemm --explain 4096x4096x4096
says "128x256x64"
says "model: H200, fitted to measured times"
holds test "$(wc -l <"$out")" -eq 7
status 0 gemm --tile 128x128x128 --in e4m3 --out bf16 --stages 4 --cluster 1x2 --stream-k
says "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"
says ".reqnctapercluster 2"
status 0 gemm --layout nn
says "wgmma.mma_async.sync.aligned"

# ---- gemm: tcgen05 ----
usage "--scale e4m3: expected ue8m0 or ue4m3" gemm --scale e4m3
usage "sm_103a has no tcgen05.mma of kind i8; sm_100a has" gemm --arch sm_103a --in s8
usage "tile K = 64; with kind f8f6f4 it is 128" gemm --arch sm_100a --in e4m3 --tile 128x128x64
for in in bf16 tf32 e4m3 e2m3 e2m1 s8 "e5m2 --scale ue8m0" "e2m1 --scale ue8m0" "e2m1 --scale ue4m3" "bf16 --layout nn" "f16 --a-tmem"; do
	# shellcheck disable=SC2086 # several words
	status 0 gemm --arch sm_100a --out bf16 --in $in
	says "tcgen05.mma.cta_group::2"
done
status 0 gemm --arch sm_100a --tile 128x64x64 --run 136x72x136 --device emu:sm_100a --timeline "$dir/line.json"
says "right; largest error"
holds grep -q '"name":"multiply"' "$dir/line.json"
status 0 gemm --arch sm_100a --tile 128x64x64 --stream-k --run 136x72x264 --device emu:sm_100a -o "$dir/shared.ptx"
says "2 accumulators, stream-K"
says "all 9792 elements right"
holds grep -q "ld.acquire.gpu.global" "$dir/shared.ptx"
status 0 gemm --arch sm_103a --kind mxf4 --grouped
says ".param .u64 groups"
usage "a list of problems cannot be shared along K" gemm --arch sm_100a --grouped --stream-k

# ---- gemm: kinds of PTX ----
for arch in sm_100a sm_120a; do
	status 0 gemm --arch $arch --kind mxf8f6f4 --out bf16
	says ".kind::mxf8f6f4.block_scale"
	status 0 gemm --arch $arch --kind mxf4 --out bf16
	says ".kind::mxf4.block_scale"
	status 0 gemm --arch $arch --kind mxf4nvf4 --out bf16
	says ".kind::mxf4nvf4.block_scale"
done
status 0 gemm --arch sm_120a --kind mxf8f6f4 --in e2m1,e5m2 --tile 128x64x128 --warps 2x1 --stages 3 -o "$dir/mixed.ptx"
says "kind mxf8f6f4, tile 128x64x128, 2x1 warps, 3 stages"
says "A[M][K] e2m1 * B[N][K]^T e5m2, kind mxf8f6f4"
holds grep -q "f32.e2m1.e5m2.f32.ue8m0" "$dir/mixed.ptx"
for of in "f16 f16" "tf32 tf32" "f8f6f4 e4m3,e2m1" "f8f6f4 e3m2,e5m2" "i8 u8,s8" "mxf8f6f4 e2m3,e4m3" "mxf4 e2m1" "mxf4nvf4 e2m1"; do
	# shellcheck disable=SC2086 # words
	set -- $of
	status 0 gemm --device emu:sm_100a --kind "$1" --in "$2" --run 24x32x128
	says "all 768 elements right"
	case $1 in mx*) ;; *) continue ;; esac
	status 0 gemm --device emu:sm_120a --kind "$1" --in "$2" --run 24x32x128
	says "all 768 elements right"
done
usage "kind mxf8f6f4 of mma.sync does not take .e2m1 and .e2m1 by .ue8m0; these are kind mxf4" gemm -a sm_120a -k mxf8f6f4 -i e2m1
usage "tile K = 128; with kind mxf4 it is 256" gemm --arch sm_121a --kind mxf4 --tile 128x128x128
usage "A is .bf16 and B .f16; both must be bf16, both f16, both tf32, both f64, or each e4m3 or e5m2, or each s8 or u8" gemm --arch sm_80 --in bf16,f16

# ---- gemm --run: layouts, batches, lists ----
for layout in nn nt tn tt; do
	status 0 gemm --device emu:sm_90a --layout $layout --tile 64x64x64 --run 40x72x72
	says "all 2880 elements right"
done
# a device that is named is not replaced by the emulator
status 1 gemm --device cuda:99 --run 64x64x64
# sums beyond what D holds are infinities
status 0 gemm --device emu:sm_100a --in u8 --out f16 --run 24x32x128
status 0 gemm --device emu:sm_100a --in f16 --out f16 --alpha 1e6 --run 24x32x64
# what f32 cannot hold is infinite from there on
for type in f32 bf16 f16; do
	status 0 gemm --device emu:sm_90a --alpha 3e38 --beta -3e38 --out $type --run 64x64x64
done
status 0 gemm --device emu:sm_100a --layout nt --tile 128x64x64 --run 40x72x72
says "A[K][M]^T bf16 * B[N][K]^T bf16"
says "all 2880 elements right"
status 0 gemm --device emu:sm_100a --kind mxf8f6f4 --layout nn --batch 2 --tile 128x128x128 --run 32x128x96
says "all 8192 elements of 2 matrices right"
status 0 gemm --device emu:sm_90a --in e4m3,e5m2 --batch 3 --tile 64x64x128 --run 20x24x144
says "all 1440 elements of 3 matrices right"
status 0 gemm --device emu:sm_120a --kind mxf4nvf4 --batch 2 --tile 64x64x256 --run 20x24x96
says "all 960 elements of 2 matrices right"
status 0 gemm --device emu:sm_90a --grouped --layout tn --tile 64x64x64 --run 70x72x72
says "all 9648 elements of 3 matrices right"
status 0 gemm --device emu:sm_100a --grouped --kind mxf4 --tile 128x64x256 --run 70x72x96
says "all 9648 elements of 3 matrices right"
# ---- gemm --run: what is behind the sums ----
for of in "sm_90a" "sm_100a --tile 128x16x64 --swap --per-sm 2" "sm_120a --kind mxf8f6f4 --batch 2" "sm_100a --kind i8 --grouped"; do
	# shellcheck disable=SC2086 # words
	status 0 gemm --device emu:$of --alpha -0.75 --beta 2 --bias --run 24x32x128
	says "right; largest error"
	says "alpha, beta, bias"
done
for value in "" 1x nan 1e99 " 1"; do
	usage "--alpha $value: expected a number, as in 0.5" gemm --alpha "$value"
done
usage "--beta x: expected a number, as in 0.5" gemm --beta x
usage "output type .s32 with alpha, beta, bias or an epilogue" gemm -a sm_100a --kind i8 --out s32 --beta 1
status 0 gemm --device emu:sm_90a --layout nn --run 64x64x77
says "right; largest error"

# ---- gemm --run: factors of D, also of each expert's own D ----
for of in "--experts along-k,3 --layout nn --tile 64x128x64 --run 64x128x96" "--tile 64x128x64 --cluster 1x2 --run 64x128x64"; do
	# shellcheck disable=SC2086 # words
	status 0 gemm --device emu:sm_90a --scale-out f32 --out e4m3 $of
	says "right; largest error"
done

# ---- gemm: where the text goes ----
status 0 gemm --arch sm_80
says ".target sm_80"
silent "$err"
cp "$out" "$dir/plain"
status 0 gemm -a sm_80 -o -
holds cmp -s "$out" "$dir/plain"
status 0 gemm -a sm_80 -o "$dir/file.ptx"
holds cmp -s "$dir/file.ptx" "$dir/plain"
says "tile 128x256x64, 2x4 warps, 3 stages"
says "$dir/file.ptx, $(wc -c <"$dir/plain") bytes"
status 0 gemm --arch=sm_80 --lines
says ".loc 1 "
status 0 gemm -asm_90a -Msync -t64x64x32 -w2x2 -s3 -if16 -uf16 -g8
says "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
says ".target sm_90a"

cannot="cannot write '"
# a file that cannot be written whole stays as it was
what="gemm -o FILE, with a limit of the size of files"
(trap '' XFSZ; ulimit -f 1; exec "$cptx" gemm -a sm_80 -t 64x64x32 -o "$dir/file.ptx") >"$out" 2>"$err"
if [ $? -eq 1 ]; then ok; else bad "$what"; fi
complains "$cannot$dir/file.ptx': File too large"
holds cmp -s "$dir/file.ptx" "$dir/plain"
holds test "$(echo "$dir"/file.ptx*)" = "$dir/file.ptx"
usage "would both go to '$dir/both'" gemm -a sm_90a --run 64x64x64 -o "$dir/both" --timeline "$dir/both"
fails "$cannot$dir/no/such/file': No such file or directory" gemm -o "$dir/no/such/file"
fails "$cannot$dir': Is a directory" gemm -o "$dir"
fails "cannot write" gemm -o ""
if [ "$(id -u)" -eq 0 ]; then
	skip "a user other than root, whom a directory can refuse"
else
	mkdir "$dir/locked" && chmod a-w "$dir/locked"
	fails "$cannot$dir/locked/file': Permission denied" gemm -o "$dir/locked/file"
fi
if [ -c /dev/full ]; then
	fails "$cannot/dev/full': No space left on device" gemm -o /dev/full
	holds test -c /dev/full
	ln -s /dev/full "$dir/link"
	fails "$cannot$dir/link'" gemm -o "$dir/link"
	holds test -c /dev/full
	for arguments in gemm "gemm -o -" "gemm --help" arch "arch sm_90" insn "insn ldmatrix" "completion bash" \
		--help --version; do
		what="cptx $arguments >/dev/full"
		# shellcheck disable=SC2086 # words
		"$cptx" $arguments >/dev/full 2>"$err"
		got=$?
		if [ $got -eq 1 ]; then ok; else bad "$what: status $got, not 1"; fi
		complains "cannot write to standard output: No space left on device"
	done
	# to a file, while what is told beside it cannot be
	"$cptx" gemm -o "$dir/kept.ptx" >/dev/full 2>"$err"
	if [ $? -eq 1 ]; then ok; else bad "gemm -o FILE >/dev/full"; fi
else
	skip "/dev/full"
fi

# ---- gemm --run without a GPU ----
emulated() { # SAYS-OR-COMPLAINS ELEMENTS: the emulator ran the last command's GEMM, and found every element right
	"$1" "device   emulated sm_"
	"$1" "check    all $2 elements right"
}

with_ptxas /nonexistent/ptxas status 0 gemm --run 256x256x64
says "device   none: "
says "/nonexistent/libcuda.so.1"
says "ptxas    none: there is no ptxas: CPTX_PTXAS names /nonexistent/ptxas"
emulated says 65536
with_ptxas /nonexistent/ptxas status 0 gemm --mma sync --tile 64x64x32 --run 8x600x8
says "emulator 8x600x8 is too much for it: each is cut to 512"
emulated says 4096
with_ptxas "$dir/accepts" status 0 gemm --run 256x256x64
says "ptxas    accepted"
says "Used 77 registers"
emulated says 65536
status 0 gemm --device emu:sm_80 --tile 64x64x32 --run 64x64x64
emulated says 4096
if grep -q TFLOP "$out"; then bad "$what: an emulator's time is no speed"; else ok; fi
usage 'there is no target "sm_91" to emulate' gemm --device emu:sm_91 --run 64x64x64
with_ptxas "$dir/accepts" status 0 gemm --arch sm_101a --run 256x256x64
says "ptxas    accepted"
with_ptxas "$dir/accepts" status 0 gemm --run 256x256x64 -o -
says ".version"
emulated complains 65536
if grep -q "emulated" "$out"; then bad "$what: the PTX is not clean"; else ok; fi
with_ptxas "$dir/accepts" status 0 gemm --run 256x256x64 -o "$dir/run.ptx"
says "$dir/run.ptx"
emulated says 65536
with_ptxas "$dir/rejects" fails "ptxas ($dir/rejects) refuses the program:" gemm --run 256x256x64
complains "line 7; error : too pretty"
with_ptxas "$dir/crashes" fails "ptxas ($dir/crashes) crashed on the program (signal 11)" gemm --run 256x256x64
with_ptxas "$dir/data" fails "ptxas ($dir/data) cannot be run: " gemm --run 256x256x64
TMPDIR=$dir/no
with_ptxas "$dir/accepts" status 0 gemm --run 256x256x64 # no file with a name is needed
says "ptxas    accepted"
TMPDIR=$dir/tmp
if PATH=$PATH:/usr/local/cuda/bin command -v ptxas >/dev/null; then
	status 0 gemm --run 256x256x64 --in f16 --out bf16
	says "ptxas    accepted"
	says " 0 bytes spill stores"
	emulated says 65536
else
	skip "ptxas"
fi
what="files left behind"
holds test -z "$(ls "$TMPDIR")"

summary
