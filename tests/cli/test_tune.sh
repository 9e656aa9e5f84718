#!/bin/sh
# SPDX-License-Identifier: MIT
# cptx tune and cptx retarget: test_tune.sh PATH-OF-CPTX.  The last line is "tune: N passed, N failed, N skipped".
set -u
cptx=$(realpath "$1") name=tune
# shellcheck source=tests/cli/common.sh
. "$(dirname "$0")/common.sh"
unset CPTX_TUNE CPTX_SHARE
export CPTX_TUNE_DIR="$dir/tune" CPTX_TUNE_PATH=/nonexistent

usage "name sizes to measure, or --list" tune
usage "there is no family 'gem'" tune gem 64x64x64
usage "'64x64' is no size; expected MxNxK" tune 64x64 --device emu:sm_90a
usage "gemm: '64x64' is no size; expected MxNxK" tune --list gemm 64x64
usage "gemm: '64x64x' is no size" tune --plot 64x64x64 64x64x
usage "rows: '8' is no size; expected ROWSxCOLUMNS" tune --list rows 8
usage "\"tile=3\" is no option" tune 64x64x64 --device emu:sm_90a --options "tile=3"
usage "--budget soon: expected a number from 1 on" tune 64x64x64 --budget soon
usage "--since yesterday: expected a day" tune --prune --since yesterday
usage "--best goes with --prune" tune --list --best 3
fails "cannot open the CUDA driver library" tune 64x64x64
status 0 tune --list
says "no records in $dir/tune"
status 0 tune 64x64x64 --device emu:sm_90a --candidates 3 --plot
says "gemm 64x64x64: 3 measured, 0 known"
says " steps |"
status 0 tune gemm 64x64x64 --device emu:sm_90a --candidates 4
says "gemm 64x64x64: 1 measured, 3 known"
status 0 tune gemm 64x128x64 --folder "$dir/quantized" --device emu:sm_90a --candidates 1 --options "mma=wgmma a=bf16 b=bf16 out=e4m3 scale_out=f32"
says "gemm 64x128x64: 1 measured, 0 known"
status 0 tune rows 8x256 --device emu:sm_90a --candidates 1 --options "kernel=softmax in=f32"
status 0 tune --list rows
says "8x256  kernel=softmax in=f32"
status 0 tune --list gemm 64x64x64
says "64x64x64x1"
what="a list of one size"
holds test "$(wc -l <"$out")" -eq 4
status 0 tune --list rows
what="a list of one family"
holds test "$(wc -l <"$out")" -eq 1
CPTX_SHARE=1/2 status 0 tune 64x64x128 --device emu:sm_90a --candidates 4
says "1/2 gemm 64x64x128: 2 measured, 0 known, 2 left"
CPTX_SHARE=2/2 fails "parts count from 0" tune 64x64x128 --device emu:sm_90a
status 0 tune --export "$dir/all.seg"
says "7 records written to $dir/all.seg"
fails "cannot be written" tune --export "$dir/all.seg"
status 0 tune --import "$dir/all.seg" --folder "$dir/other"
says "7 records added"
status 0 tune --prune --best 1 --folder "$dir/other"
says "3 records kept, 4 removed; one file of 1"
echo nonsense >>"$dir/all.seg"
fails "nothing of it is taken" tune --import "$dir/all.seg"
fails "cannot be read" tune --import "$dir/none"
: >"$dir/file"
fails "$dir/file" tune 64x64x64 --device emu:sm_90a --folder "$dir/file"
fails "$dir/file/below cannot be read" tune --list --folder "$dir/file/below"
fails "$dir/file cannot be read" tune --list --folder "$dir/file"
status 0 tune --plot 64x64x64 64x64x128 --device emu:sm_90a --candidates 1
says "gemm 64x64x64x1,"
says "gemm 64x64x128x1,"
status 0 tune --plot rows
says "rows 8x256,"
what="a plot of one family"
holds test "$(grep -c ', on ' "$out")" -eq 1
status 0 tune --plot attention
says "no records"

sed 's/^\.version.*/.version 9.1/' "$(dirname "$0")/../../examples/turn.ptx" >"$dir/late.ptx"
status 0 retarget "$dir/late.ptx" --driver 12.8 --why
says ".version 6.3"
complains "sm_75: taken, .version 6.3"
status 0 retarget - -o "$dir/out.ptx" <"$dir/late.ptx"
what="only the version changes"
holds test "$(diff "$dir/late.ptx" "$dir/out.ptx" | grep -c '^[<>]')" -eq 2
usage "--driver new: expected a version of CUDA, as in 12.8" retarget "$dir/late.ptx" --driver new
usage "name a file" retarget
usage "one file at a time" retarget a b
usage "there is no target 'sm_9o'" retarget "$dir/late.ptx" --arch sm_9o
fails "cannot read" retarget "$dir/none.ptx"
fails "which is an input" retarget "$dir/late.ptx" -o "$dir/late.ptx"
sed 's/bar.sync 0;/tcgen05.fence::before_thread_sync;/' "$dir/late.ptx" >"$dir/new.ptx"
fails "tcgen05.fence" retarget "$dir/new.ptx" --driver 12.8
complains "$dir/new.ptx:"
summary
