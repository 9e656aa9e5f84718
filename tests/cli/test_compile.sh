#!/bin/sh
# SPDX-License-Identifier: MIT
# cptx compile and cptx cache: test_compile.sh PATH-OF-CPTX.  The last line is "compile: N passed, N failed, N skipped".
set -u
cptx=$(realpath "$1") name=compile
# shellcheck source=tests/cli/common.sh
. "$(dirname "$0")/common.sh"

cat >"$dir/k.ptx" <<'EOT'
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .b64 %rd1;
	ld.param.u64 %rd1, [p];
	st.global.u32 [%rd1], 3;
	ret;
}
EOT
sed 's/st.global.u32/st.global.f99/' "$dir/k.ptx" >"$dir/broken.ptx"
usage "name a file" compile
usage "--compiler gcc: expected one of auto driver" compile -c gcc "$dir/k.ptx"
usage "--compiler gcc: expected one of auto driver" run --compiler gcc "$dir/k.ptx"
usage "--compiler gcc: expected one of auto driver" gemm --compiler gcc
usage "--opt-level 4: expected a number from 0 to 3" compile -O 4 "$dir/k.ptx"
usage "--limit 0: expected a number from 1 to 86400" compile --limit 0 "$dir/k.ptx"
fails "cannot read" compile "$dir/none.ptx"
: >"$dir/empty.ptx"
fails "$dir/empty.ptx is empty" compile "$dir/empty.ptx"
fails '"compute_90" is no target of machine code' compile -a compute_90 "$dir/k.ptx"
for nonsense in sm_1 sm_999; do # none of the future either
	fails "there is no target '$nonsense'; \`cptx arch\` lists them" compile -a $nonsense "$dir/k.ptx"
done
fails "there is no target 'sm_9o'; did you mean sm_90? \`cptx arch\` lists them" compile -a sm_9o "$dir/k.ptx"
fails "the driver's compiler needs a device" compile -c driver "$dir/k.ptx"
status 0 compile --list
says "ptxas  "
says "nvjitlink  "
with_ptxas /nonexistent/ptxas fails "CPTX_PTXAS names /nonexistent/ptxas" compile -c ptxas "$dir/k.ptx"
with_ptxas "$dir/accepts" status 0 compile -c ptxas "$dir/k.ptx" -o "$dir/k.cubin"
complains "Used 77 registers"
cp "$dir/k.cubin" "$dir/in.cubin"
for to in "$dir/in.cubin" "$dir/./in.cubin"; do
	fails "which is an input" compile -a sm_90 "$dir/in.cubin" -o "$to"
done
holds cmp "$dir/k.cubin" "$dir/in.cubin"
(cd "$dir" && "$cptx" compile -a sm_90 in.cubin >"$out" 2>"$err")
complains "the cubin would go to 'in.cubin', which is an input"
holds cmp "$dir/k.cubin" "$dir/in.cubin"
printf '\261C\142Frest' >"$dir/old.fatbin" # the magic of the other form of fat binaries
usage "what is linked needs --arch" compile "$dir/old.fatbin" -o "$dir/x.cubin"
with_ptxas "$dir/rejects" fails "which is: ld.param.u64 %rd1, [p];" compile -c ptxas "$dir/k.ptx"
status 0 cache
says "entries  1"
status 0 cache list
says "$dir/k.ptx for sm_90 by ptxas ($dir/accepts)"
status 0 cache verify
says "1 entries are sound, 0 damaged"
what="a damaged entry"
for entry in "$dir"/cache/*.entry; do printf x >>"$entry"; done
status 0 cache list # which changes nothing
says "entry  damaged"
status 0 cache list
says "entry  damaged"
status 1 cache verify
says "0 entries are sound, 1 damaged and removed"
status 0 cache path
says "$dir/cache"
with_ptxas "$dir/accepts" status 0 compile -c ptxas "$dir/k.ptx" -o "$dir/k.cubin"
status 0 cache clear
says "1 entries removed"
usage "there is no 'empty'" cache empty
usage "one thing at a time" cache stats list
export CPTX_CACHE=ro
fails "is only read" cache clear
export CPTX_CACHE=0
status 0 cache stats
says "state    off"
fails "the cache is off" cache list
with_ptxas "$dir/accepts" status 0 compile -c ptxas "$dir/k.ptx" -o -
unset CPTX_CACHE
export CPTX_CACHE_DIR="$dir/k.ptx" # which is no folder
for verb in stats list verify clear; do fails "there is no cache in '$dir/k.ptx'" cache $verb; done
export CPTX_CACHE_DIR="$dir/cache"
odd="$dir/two
lines.ptx"
cp "$dir/k.ptx" "$odd"
with_ptxas "$dir/accepts" status 0 compile -c ptxas "$odd" -o "$dir/k.cubin"
sed "s|kernel, line|\$3, line|; s/exit 3/exit 3/" "$dir/rejects" >"$dir/names"
chmod +x "$dir/names"
with_ptxas "$dir/names" fails "ptxas $dir/two?lines.ptx, line 7; error" compile -c ptxas -O 3 "$odd"
status 0 cache list
says "two?lines.ptx for sm_90 by"
if "$cptx" compile -c nvjitlink "$dir/k.ptx" -o "$dir/k.cubin" >"$out" 2>"$err"; then
	# Where the library is stands in the cache, too, until a folder changes in which another one may be.  Should something be
	# installed beside this test, so that another folder changes, what was counted meanwhile tells nothing and is counted again.
	# The folders may be links, and the time of change of what they lead to counts.  Tests have the folder of the build in
	# LD_LIBRARY_PATH, where others write.
	# shellcheck disable=SC2046 # words: the folders
	searched() { stat -L -c '%n %s %i %y %z' /etc/ld.so.cache /lib /lib/* /lib64 /usr/lib /usr/lib64 /usr/lib/*-linux-* /usr/local /usr/local/* /usr/local/cuda/lib* $(printf %s "${LD_LIBRARY_PATH:-}" | tr ":;" "  ") 2>/dev/null; }
	counted() { # prints how many entries there are after each of four runs; CUDA_HOME changes before the third
		"$cptx" cache clear >/dev/null
		rm -rf "${dir:?}/home"
		for run in 1 2 3 4; do
			[ $run != 3 ] || mkdir -p "$dir/home/lib64"
			"$cptx" compile -c nvjitlink "$dir/k.ptx" -o "$dir/k.cubin" || echo failed
			"$cptx" cache | sed -n 's/^entries  *//p'
		done | tr '\n' ' '
	}
	export CUDA_HOME="$dir/home"
	while
		before=$(searched)
		what="entries of a run, another, one after a folder was made, another: $(counted)"
		[ "$before" != "$(searched)" ]
	do :; done
	holds test "${what##*: }" = "2 2 3 3 "
	unset CUDA_HOME
else
	skip "nvJitLink, where it is"
fi
export CPTX_CACHE_SIZE=much
fails 'CPTX_CACHE_SIZE is "much"' cache
unset CPTX_CACHE_SIZE
if "$cptx" compile "$dir/k.ptx" -v -o "$dir/k.cubin" >"$out" 2>"$err"; then
	what="cptx compile"
	complains "registers"
	fails "which is: st.global.f99 [%rd1], 3;" compile "$dir/broken.ptx"
	fails "k.cubin is a cubin, machine code of its target already; --arch says" inspect --arch sm_90 "$dir/k.cubin"
else
	skip "a compiler, for compile"
fi

summary
