#!/bin/sh
# SPDX-License-Identifier: MIT
# Compiles the corpus to PTX and has ptxas judge it.  `build.sh -h` says how.
set -eu
stage=/tmp/cptx-corpus # compilers hash and write down the folder they run in, so it is the same on every machine
jobs=2

usage() {
	cat <<'END'
usage: build.sh [-j N] [build [NAME...]]
       build.sh check [FILE...]
       build.sh -h

build   compiles every source of cuda/ and clang/ (or those named, without folder and suffix) into ptx/, as
        NAME.sm_ARCH.O3.ptx, .O0.ptx, .G.ptx (-G) and .lineinfo.ptx; those of clang are called clang_NAME.
        Those of programs/ are compiled into the same folder, as O3 and what else their heads name
check   runs ptxas on every file of ptx/, programs/ and hand/ (or on those named), with the options in the file's line
        "// ptxas: ..."; ends with a count, and with status 1 if ptxas rejects one

-j N    N compilers at a time (2)

A source says in its head what it is for:
    // archs: 75 90a      the targets, sm_75 and sm_90a
    // flags: -rdc=true   more options of the compiler
    // variants: G        more builds beside O3 and, but for programs/, O0: G, lineinfo
    // ptxas: -c          more options of ptxas

nvcc and ptxas come from $CUDA_HOME/bin if that is set, else from PATH; clang is $CLANG or clang.
END
}

# head_line KEY FILE: what the source says after "// KEY: "
head_line() { sed -n "s,^// $1: ,,p;/^[^\/]/q" "$2"; }

# in_order: sorts neighbouring one-byte variables without a value: libcu++ has many, and nvcc's order differs from run to run
in_order() {
	awk '
	/^\.global \.align 1 \.b8 [A-Za-z0-9_]+\[1\];$/ {
		for (i = n++; i > 0 && line[i - 1] > $0; i--) line[i] = line[i - 1]
		line[i] = $0
		next
	}
	{
		for (i = 0; i < n; i++) print line[i]
		n = 0
		print
	}'
}

# finish SOURCE HOW PTXAS-OPTIONS: names the source and the way to assemble it; drops the banner; makes paths relative
finish() {
	printf '// from: %s %s\n// ptxas: %s\n\n' "$1" "$2" "$3"
	sed -n -e '/^\.version/,$p' |
		sed -e "/^[[:space:]]*\.file/s,\"$stage/,\"," -e '/^[[:space:]]*\.file/s,"[^"]*/include/,"include/,' |
		in_order
}

# variant_options VARIANT: the options of nvcc
variant_options() {
	case $1 in
	O3) echo '-O3' ;;
	O0) echo '-Xcicc -O0 -Xptxas -O0' ;;
	G) echo '-G' ;;
	lineinfo) echo '-lineinfo' ;;
	*) echo "build.sh: unknown variant $1" >&2 && return 1 ;;
	esac
}

# cuda SOURCE ARCH VARIANT
cuda() {
	name=$(basename "$1" .cu) folder=$(dirname "$1")
	out=${folder#cuda}
	out=${out:-ptx}/$name.sm_$2.$3
	flags=$(head_line flags "$1") assemble="-arch=sm_$2"
	case $flags in *-rdc=true*) assemble="$assemble -c" ;; esac
	how="$flags $(variant_options "$3")"
	# shellcheck disable=SC2086 # words
	(cd "$stage" && "$nvcc" -ptx -arch="sm_$2" $how -o "$name.$2.$3" "$name.cu") &&
		finish "$1" "nvcc -arch=sm_$2 ${how# }" "$assemble" <"$stage/$name.$2.$3" >"$out.ptx"
}

# by_clang SOURCE ARCH VARIANT
by_clang() {
	base=$(basename "$1") assemble="-arch=sm_75 $(head_line ptxas "$1")"
	name=${base%.*}
	features="-Xclang -target-feature -Xclang +ptx63"
	case $base in
	*.cu) how="-x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_$2 $features -$3" ;;
	*) how="-target nvptx64-nvidia-cuda -march=sm_$2 $features -$3" ;;
	esac
	# shellcheck disable=SC2086 # words
	(cd "$stage/clang" && "$clang" -Wno-unknown-cuda-version $how -S -o "$name.$2.$3" "$base") &&
		finish "$1" "clang $how" "${assemble% }" <"$stage/clang/$name.$2.$3" >"ptx/clang_$name.sm_$2.$3.ptx"
}

# run COMMAND...: in the background, $jobs at a time
running=0
run() {
	("$@" || echo "$2 $3 $4" >>"$stage/failed") &
	running=$((running + 1))
	[ $running -lt "$jobs" ] || { wait && running=0; }
}

wanted() { # wanted NAME NAMES...
	name=$1
	shift
	[ $# -gt 0 ] || return 0
	for one; do [ "$one" != "$name" ] || return 0; done
	return 1
}

build() {
	mkdir "$stage" || { echo "build.sh: remove $stage first, or wait for the other build" >&2 && exit 2; }
	trap 'rm -rf "$stage"' EXIT
	trap 'exit 2' HUP INT PIPE TERM
	cp cuda/*.cu programs/*.cu programs/*.cuh "$stage"
	cp -R clang "$stage/clang"
	mkdir -p ptx
	for source in cuda/*.cu; do
		wanted "$(basename "$source" .cu)" "$@" || continue
		for arch in $(head_line archs "$source"); do
			for variant in O3 O0 $(head_line variants "$source"); do run cuda "$source" "$arch" "$variant"; done
		done
	done
	for source in programs/*.cu; do
		wanted "$(basename "$source" .cu)" "$@" || continue
		for arch in $(head_line archs "$source"); do
			for variant in O3 $(head_line variants "$source"); do run cuda "$source" "$arch" "$variant"; done
		done
	done
	for source in clang/*.cu clang/*.cl clang/*.c; do
		base=$(basename "$source")
		wanted "clang_${base%.*}" "$@" || continue
		for arch in $(head_line archs "$source"); do
			for variant in O3 O0; do run by_clang "$source" "$arch" "$variant"; done
		done
	done
	wait
	[ ! -s "$stage/failed" ] || { echo "build.sh: not compiled:" >&2 && cat "$stage/failed" >&2 && exit 1; }
}

check() {
	[ $# -gt 0 ] || { cd "$(dirname "$0")" && set -- ptx/*.ptx programs/*.ptx hand/*.ptx; }
	passed=0 failed=0
	for file; do
		options=$(tr -d '\r' <"$file" | sed -n '1,5s,^// ptxas: ,,p')
		# shellcheck disable=SC2086 # words
		if [ -n "$options" ] && message=$("$ptxas" $options "$file" -o /dev/null 2>&1); then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "FAIL $file: ${options:-no line \"// ptxas:\" in its head}"
			[ -z "$options" ] || printf '%s\n' "$message" | head -5
		fi
	done
	echo "corpus: $passed accepted, $failed rejected"
	[ $failed -eq 0 ]
}

tool() { # tool NAME: its path, or an error
	path=${CUDA_HOME:+$CUDA_HOME/bin/}$1
	command -v "$path" || { echo "build.sh: no $path; set CUDA_HOME or PATH" >&2 && return 1; }
}

while getopts j:h option; do
	case $option in
	j) jobs=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
verb=${1:-build}
[ $# -eq 0 ] || shift
case $verb in
check) ptxas=$(tool ptxas) && check "$@" ;;
build)
	nvcc=$(tool nvcc)
	clang=${CLANG:-clang}
	cd "$(dirname "$0")" && build "$@"
	;;
*) usage >&2 && exit 2 ;;
esac
