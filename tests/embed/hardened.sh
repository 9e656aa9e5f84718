#!/bin/sh
# SPDX-License-Identifier: MIT
# hardened.sh SOURCE CHECKED FILE...: what the linker and the compiler put into the library and the command so that a mistake is harder to
# exploit.  CHECKED: whether copies are (they are where the build optimizes).
# The last line is "hardened: N passed, N failed, N skipped".
set -u
source=$1 checked=$2
shift 2
suite=hardened
. "$source/tests/embed/common.sh"
have readelf || { skip "readelf is not installed"; finish; }
holds() { if grep -qE "$2" "$dir/log"; then ok; else bad "$file: $1"; fi; }
for file; do
	[ -e "$file" ] || { skip "there is no ${file##*/}"; continue; }
	readelf -lW "$file" >"$dir/log" 2>&1
	holds "tables of functions stay writable (no GNU_RELRO)" GNU_RELRO
	readelf -dW "$file" >"$dir/log" 2>&1
	holds "functions are looked up late (no BIND_NOW)" '(FLAGS).*BIND_NOW|\(BIND_NOW\)|(FLAGS_1).*NOW'
	case $file in *.so*) ;; *) holds "it is not position independent" '(FLAGS_1).*PIE' ;; esac
	readelf --dyn-syms -W "$file" >"$dir/log" 2>&1
	holds "stacks are not guarded" '__stack_chk_fail'
	if [ "$checked" = true ]; then holds "copies are not checked (_FORTIFY_SOURCE)" '__[a-z]*_chk(@|$)'; else skip "checked copies: this build does not optimize"; fi
done
finish
