#!/bin/sh
# SPDX-License-Identifier: MIT
# subproject.sh SOURCE CC: examples/embed/meson with cptx as its subproject; CPTX_WHOLE links and runs it.  The last line is "subproject: N passed, ...".
set -u
source=$1 cc=$2
suite=subproject
. "$source/tests/embed/common.sh"
have meson || { skip "meson is not on PATH"; finish; }
cp -r "$source/examples/embed" "$dir/embed"
mkdir "$dir/embed/meson/subprojects"
ln -s "$source" "$dir/embed/meson/subprojects/cptx"
# not the one that may be installed; quick to compile, without parts that the program does not use
try "meson setup" env CC="$cc" meson setup --wrap-mode=forcefallback --werror -Doptimization=0 -Dcptx:kernels=disabled \
	-Dcptx:to_c=disabled -Dcptx:inspect=disabled "$dir/build" "$dir/embed/meson"
if [ -n "${CPTX_WHOLE:-}" ]; then
	try "ninja" ninja -C "$dir/build" embed
	run "$dir/build/embed"
else # the program is compiled against the headers that the subproject makes; to build the library once more takes a minute
	try "its headers" ninja -C "$dir/build" subprojects/cptx/include/cptx/insn.h subprojects/cptx/include/cptx/isa.h
	compile=$(ninja -C "$dir/build" -t commands embed.p/.._embed.c.o | tail -n 1)
	try "the program" sh -c "cd '$dir/build' && $compile"
	try "its object" test -s "$dir/build/embed.p/.._embed.c.o"
fi
targets=$(ninja -C "$dir/build" -t targets all 2>/dev/null)
case $targets in
*subprojects/cptx/libcptx.a:*) ok ;;
*) bad "the subproject has no static library" ;;
esac
case $targets in *subprojects/cptx/cptx:*) bad "the subproject has the command, which cli=disabled leaves out" ;; *) ok ;; esac
if [ ! -e "$dir/build/subprojects/cptx/cptx" ] && [ ! -d "$dir/build/subprojects/cptx/examples" ]; then ok; else bad "it builds more than the library"; fi
finish
