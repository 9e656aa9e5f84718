#!/bin/sh
# SPDX-License-Identifier: MIT
# What cptx takes on the host: parsing, printing and building, by one or several builds in turns on one core.
#
#     bench/host.sh CORPUS FOLDER...
#
# CORPUS is tests/corpus/ptx; each FOLDER has bench_parse, bench_jit and bench_many of a build, or some of them.
# LD_LIBRARY_PATH is set to the folder, for their libcptx.  CORE: the core (default 2).  KERNELS: for bench_many.  PYPTX: a
# folder with the module pyptx, which is measured too.  Two minutes for two folders.
set -eu
corpus=$1
shift
core=${CORE:-2}
on() { # folder, program, arguments
	folder=$1 program=$2
	shift 2
	[ -x "$folder/$program" ] || return 0
	LD_LIBRARY_PATH=$folder taskset -c "$core" "$folder/$program" "$@"
}

grep -m1 'model name' /proc/cpuinfo
for turn in 1 2 3; do
	for folder in "$@"; do
		echo "== $(basename "$folder"), turn $turn: bench_parse -p 20"
		on "$folder" bench_parse -p -c "$corpus" 20 | sed -nE '/^  (parse|check|print|straight|100 GEMMs|memory: parsed )/p'
	done
done
for turn in 1 2; do
	for folder in "$@"; do
		echo "== $(basename "$folder"), turn $turn: bench_jit"
		on "$folder" bench_jit --rounds 61 10 100 1000 10000 | sed 's/build and check/build/; s/ of the printer.s speed//'
	done
done
for folder in "$@"; do
	echo "== $(basename "$folder"): bench_jit 100000, and the first kernel of ten processes"
	on "$folder" bench_jit --rounds 9 100000 | sed 's/build and check/build/; s/ of the printer.s speed//'
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		on "$folder" bench_jit --rounds 1 10 | sed -n 's/the first kernel.*: //p'
	done | tr '\n' ' '
	echo
done
for folder in "$@"; do
	echo "== $(basename "$folder"): bench_many"
	on "$folder" bench_many "${KERNELS:-1000000}" || echo "bench_many: status $?"
done
if [ -n "${PYPTX:-}" ]; then
	echo "== pyptx"
	PYTHONPATH=$PYPTX taskset -c "$core" python3 "$(dirname "$0")/jit_peer.py" 100 1000 10000 || echo "pyptx: status $?"
fi
