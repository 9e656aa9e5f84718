#!/bin/sh
# SPDX-License-Identifier: MIT
# Attention beside its peers on the GPU of this machine, all arms of a case in one process and in turns:
#
#     bench/attention.sh BUILD-FOLDER OUT-FOLDER [ROUNDS]
#
# OUT-FOLDER/attention.md has the figures, with the geometric mean and the least ratio of each group, attention.svg the same
# drawn.  Needs PyTorch; with nvidia-cudnn-frontend cuDNN's attention of e4m3 is an arm, too.
set -eu
[ $# -ge 2 ] || { sed -n '3,8s/^# \{0,1\}//p' "$0"; exit 2; }
build=$(cd "$1" && pwd -P) here=$(cd "$(dirname "$0")" && pwd -P) rounds=${3:-7}
mkdir -p "$2"
out=$(cd "$2" && pwd -P)

# run NAME SCRIPT ARGUMENTS
run() {
	name=$1 script=$2
	shift 2
	CPTX_BENCH=$build/bench/bench_$script.so python3 "$here/$script.py" --rounds "$rounds" --json "$out/$name.json" "$@"
}

# cases PREFIX SUFFIXES: arguments
cases() {
	prefix=$1
	shift
	for suffix in "$@"; do printf ' --case %s:%s' "$prefix" "$suffix"; done
}

sizes=
for n in 2048 4096 8192 16384 32768; do sizes="$sizes $n:$n:causal $n:$n:full"; done
# shellcheck disable=SC2046,SC2086 # words are arguments
{
	run forward_128 attention $(cases 128:64:8:1 $sizes)
	run forward_64 attention $(cases 64:64:8:1 8192:8192:causal 8192:8192:full) $(cases 64:32:32:4 4096:4096:causal)
	run forward_256 attention $(cases 256:16:16:2 4096:4096:causal 4096:4096:full)
	run forward_e4m3 attention --shape fp8:0x0 $(cases 128:64:8:1 8192:8192:full 16384:16384:causal)
	run forward_sync attention --shape sync:0x0 --shape tma:0x0 $(cases 128:64:8:1 4096:4096:causal 4096:4096:full)
	run decode attention_decode $(cases 128:64:8 16:1:8192 64:1:4096) $(cases 576:16:1 64:1:8192 1:1:65536) --case 576:64:1:32:1:8192 --case 576:128:1:64:1:4096
	run backward_128 attention_backward --shape wgmma $(cases 128:16:16:2 4096:4096:causal 8192:8192:full)
	run backward_64 attention_backward --shape wgmma $(cases 64:16:16:2 4096:4096:causal) $(cases 64:32:32 8:2048:2048:causal 2:8192:8192:full)
}
python3 "$here/attention_table.py" "$out"
