# SPDX-License-Identifier: MIT
# What the tests of the command share: what they check with, a folder of their own, and programs that stand in for ptxas.
# shellcheck shell=sh disable=SC2034,SC2154 # the tests set $cptx and $name, and read the rest
passed=0 failed=0 skipped=0
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
out=$dir/out err=$dir/err
export TMPDIR="$dir/tmp"
mkdir "$TMPDIR"
unset CPTX_PTXAS CPTX_CACHE CPTX_CACHE_SIZE
export CPTX_CACHE_DIR="$dir/cache"
export CPTX_CUDA_LIBRARY=/nonexistent/libcuda.so.1 # no test here needs a GPU

ok() { passed=$((passed + 1)); }
bad() {
	failed=$((failed + 1))
	echo "FAIL: $*"
	sed 's/^/    out: /' "$out" | head -n 15
	sed 's/^/    err: /' "$err" | head -n 15
}
skip() { skipped=$((skipped + 1)); echo "SKIP $name: $*"; }

# status N ARGUMENT...: runs the command, which must end like that.
status() {
	want=$1
	shift
	what="cptx $*"
	"$cptx" "$@" >"$out" 2>"$err"
	got=$?
	if [ $got -eq "$want" ]; then ok; else bad "$what: status $got, not $want"; fi
}
# The text stands in the output, or the errors, of the last command.
says() { if grep -qF -e "$1" "$out"; then ok; else bad "$what: no '$1' in the output"; fi; }
complains() { if grep -qF -e "$1" "$err"; then ok; else bad "$what: no '$1' in the errors"; fi; }
silent() { if [ ! -s "$1" ]; then ok; else bad "$what: ${1##*/} is not empty"; fi; }
holds() { if "$@"; then ok; else bad "$what: not so: $*"; fi; }
# usage TEXT ARGUMENT...: wrong usage, also an option that asks for what cannot be, told on stderr together with where to look.
usage() {
	text=$1
	shift
	status 2 "$@"
	complains "$text"
	complains "--help'."
	silent "$out"
}
# fails TEXT ARGUMENT...: right usage, but this machine cannot do it, or what it finds is wrong.
fails() {
	text=$1
	shift
	status 1 "$@"
	complains "$text"
}


# ---- programs in place of ptxas ----
cat >"$dir/rejects" <<'S'
#!/bin/sh
echo "ptxas kernel, line 7; error : too pretty" >&2
exit 3
S
cat >"$dir/crashes" <<'S'
#!/bin/sh
echo "about to die"
kill -SEGV $$
S
cat >"$dir/accepts" <<'S'
#!/bin/sh
[ "$1" != --version ] || { echo "release 1.2, V1.2.3"; exit 0; }
for file; do [ ! -s "$file" ] || grep -q '^.target' "$file" || exit 9; done
case "$*" in *-arch=sm_101*) exit 8;; esac
{ printf '\177ELF\002\001'; head -c 58 /dev/zero; } >"$file"
echo "ptxas info : Used 77 registers"
S
chmod +x "$dir/rejects" "$dir/crashes" "$dir/accepts"
printf 'not a program' >"$dir/data"
chmod +x "$dir/data"
# with_ptxas PATH CHECK...: an assignment in front of a function call may outlive the call
with_ptxas() {
	export CPTX_PTXAS="$1"
	shift
	"$@"
	unset CPTX_PTXAS
}

summary() {
	echo "$name: $passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
}
