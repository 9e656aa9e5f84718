#!/bin/sh
# SPDX-License-Identifier: MIT
# The fuzzers with clang's sanitizers in a folder that runs on any machine with a C library that is not older:
#
#     tests/fuzz/pack.sh FOLDER [BUILD-FOLDER]
#     FOLDER/run.sh [JOBS [SECONDS [KERNELS [MODULES [SEED]]]]]
#
# They need the C library alone; the sanitizers are linked in.  The build stays in BUILD-FOLDER (build-fuzz-pack).
set -eu
[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
mkdir -p "$1"
to=$(cd "$1" && pwd -P)
root=$(cd "$(dirname "$0")/../.." && pwd -P)
build=${2:-$root/build-fuzz-pack}
if [ ! -f "$build/build.ninja" ]; then
	CC=clang LDFLAGS=-static-libgcc meson setup --buildtype debug -Doptimization=1 -Ddebug=true -Db_sanitize=address,undefined -Db_lundef=false \
		-Ddefault_library=static -Dtests=enabled -Dkernels=disabled -Dcli=disabled "$build" "$root"
fi
ninja -C "$build" tests/emu/fuzz_emu tests/emu/fuzz_modules
mkdir -p "$to/corpus/hand" "$to/corpus/ptx"
for f in hand ptx; do # fuzz_modules leaves out what is longer
	find "$root/tests/corpus/$f" -name '*.ptx' -size -40k -exec cp {} "$to/corpus/$f" \;
done
for f in fuzz_emu fuzz_modules; do # the names of functions stay: a report has them
	strip --strip-debug -o "$to/$f" "$build/tests/emu/$f"
done
cp "$root/tests/fuzz/run.sh" "$to/run.sh"
du -sh "$to"
