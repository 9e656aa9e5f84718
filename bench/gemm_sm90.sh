#!/bin/sh
# SPDX-License-Identifier: MIT
# The sm_90a GEMM beside its peers: all sizes in bf16 and f16 beside cuBLAS, e4m3 beside cuBLASLt; a table and a plot of each.
#   bench/gemm_sm90.sh [BUILD [OUT]]           default: build, .
set -u
build=${1:-build}
out=${2:-.}
here=$(dirname "$0")
status=0
for type in bf16 f16 e4m3; do
	table=$out/gemm_sm90_$type.txt
	option=--$type
	[ $type = bf16 ] && option=
	"$build/bench/bench_gemm_sm90" $option --table "$table" || status=1
	if ! command -v gnuplot >/dev/null; then
		echo "no gnuplot: gemm_sm90_$type.svg is not drawn; later: gnuplot -e \"table='$table'\" bench/gemm_sm90.gp" >&2
	elif [ -s "$table" ]; then
		gnuplot -e "table='$table'" "$here/gemm_sm90.gp" >"$out/gemm_sm90_$type.svg" || status=1
	fi
done
exit $status
