#!/bin/sh
# SPDX-License-Identifier: MIT
# Completion in bash: test_completion.sh PATH-OF-CPTX.  The last line is "completion: N passed, N failed, N skipped".
set -u
cptx=$1 name=completion
# shellcheck source=tests/cli/common.sh
. "$(dirname "$0")/common.sh"

usage "name the shell: bash" completion
usage "name the shell: bash" completion zsh
usage "name the shell: bash" completion bash bash
status 0 completion bash
cp "$out" "$dir/completion.bash"
# completes EXPECTED-WORD WORD...: with the cursor on the last word
completes() {
	expected=$1
	shift
	what="completion of: $*"
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _cptx; printf "%s\n" "${COMPREPLY[@]}"' - \
		"$dir/completion.bash" "$@" >"$out" 2>"$err"
	if grep -qxF -e "$expected" "$out"; then ok; else bad "$what: no '$expected'"; fi
	silent "$err"
}
if command -v bash >/dev/null 2>&1; then
	what="bash -n"
	holds bash -n "$dir/completion.bash"
	completes gemm cptx ""
	completes completion cptx com
	completes --version cptx --v
	completes --stages cptx gemm --st
	completes --help cptx gemm --
	completes sm_90a cptx gemm --arch sm_9
	completes sm_120a cptx gemm -a sm_12
	completes f16 cptx gemm --in ""
	completes 128x256x64 cptx gemm --tile 128
	completes "$dir/completion.bash" cptx gemm -o "$dir/comp"
	completes ldmatrix cptx insn ldm
	completes sm_75 cptx insn --arch sm_7
	completes sm_103a cptx arch sm_103
	completes insn cptx help ins
	completes bash cptx completion b
	completes nvjitlink cptx compile --compiler nv
	completes verify cptx cache ver
	completes cuda:0 cptx gemm --device ""
	completes "" cptx gemm --group z
	completes "" cptx nonsense x
else
	skip "bash, to complete with"
fi

summary
