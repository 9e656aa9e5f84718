#!/bin/sh
# SPDX-License-Identifier: MIT
# host.sh PROGRAM: an example that uses the CUDA runtime API says that its result is right, or that there is no GPU.
said=$("$1" 2>&1)
status=$?
echo "$said"
name=${1##*/}
case $said in
*"0 of "*" elements are wrong"*) right=1 skips=0 ;;
"not run: "*) right=0 skips=1 ;;
*) right=0 skips=0 ;;
esac
[ "$status" -eq 0 ] && [ $((right + skips)) -eq 1 ] && failed=0 || failed=1
echo "$name: $right passed, $failed failed, $skips skipped"
exit "$failed"
