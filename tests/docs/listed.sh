#!/bin/sh
# SPDX-License-Identifier: MIT
# listed.sh CPTX: the documents have every command, public header, folder, example and finding, and name none that is not there.
# shellcheck disable=SC2013,SC2016 # no blank is in any of these words; ` is meant as it is
# The last line is "listed: N passed, N failed, N skipped".
set -u
cptx=$(realpath "$1")
cd "$(dirname "$0")/../.." || exit 1
passed=0 failed=0

# has FILE TEXT: it stands there
has() {
	if grep -qF -e "$2" "$1"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL: $1 has no '$2'"
	fi
}
exists() {
	if [ -e "$2" ]; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL: $1 names $2, which is not there"
	fi
}

commands=$("$cptx" --help | sed -n '/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
[ -n "$commands" ] || { echo "FAIL: no commands in cptx --help"; failed=1; }
for command in $commands; do has README.md "cptx $command"; done
for header in include/cptx/*.h; do
	has include/README.md "\`${header##*/}\`"
	has include/cptx/meson.build "${header##*/}"
done
for folder in src/*/; do has docs/architecture.md "| [\`${folder%/}\`]"; done
# Every folder says what it has: where a README.md is to be, it names the files that are there, and that above it names the folder.
for folder in src/*/ src/emu/*/ src/gemm/*/ tools/cptx/ tools/cptx/*/; do
	above=$(dirname "$folder")
	exists "$above" "${folder}README.md"
	has "$above/README.md" "\`$(basename "$folder")\`"
	for file in "$folder"*.c; do [ ! -e "$file" ] || has "${folder}README.md" "\`${file##*/}\`"; done
done
for folder in tests/*/; do [ "$folder" = tests/__pycache__/ ] || has tests/README.md "\`$(basename "$folder")\`"; done
for document in */README.md src/*/README.md src/*/*/README.md tools/*/README.md tools/*/*/README.md; do
	[ -e "$document" ] || continue
	for name in $(grep -oE '`[a-z_0-9/]+\.(c|h|def|sh|py|md|css|js|html)`' "$document" | tr -d '`' | sort -u); do
		[ -e "$name" ] || [ -e "include/$name" ] || [ -e "src/$name" ] || [ "$document" = include/README.md ] || exists "$document" "$(dirname "$document")/$name"
	done
done
for finding in $(sed -n 's/^CPTX_FINDING_([^"]*"\([^"]*\)".*/\1/p' include/cptx/findings.def); do has docs/write_a_kernel.md "\`$finding\`"; done
for warning in $(sed -n 's/^CPTX_LENIENT_([^"]*"\([^"]*\)".*/\1/p' include/cptx/findings.def); do has docs/emulator.md "\`$warning\`"; done
parts=$(sed -n 's/^	{ CPTX_FIND_[A-Z_]*, "\(.*\)" },$/\1/p' tests/emu/test_bugs.c)
[ -n "$parts" ] || { echo "FAIL: tests/emu/test_bugs.c has no parts of findings"; failed=1; }
for part in $parts; do has docs/emulator.md "\`$part\`"; done
for guide in docs/*.md; do
	case $guide in docs/architecture.md | docs/README.md) ;; *) false ;; esac || has README.md "]($guide)"
	for link in $(grep -oE '\]\([^):]*\)' "$guide" | tr -d ']()'); do exists "$guide" "docs/${link%#*}"; done
done
for link in $(grep -oE '\]\([^):]*\)' README.md | tr -d ']()'); do exists README.md "${link%#*}"; done
for document in README.md CONTRIBUTING.md docs/*.md; do
	[ "$document" != docs/instructions.md ] || continue
	for path in $(grep -oE '`(src|tests|examples|docs|include|tools|bench)/[A-Za-z0-9_./-]*`' "$document" | tr -d '`' | grep -v NAME | sort -u); do
		exists "$document" "$path"
	done
done
for command in $(grep -oE 'build/cptx [a-z][a-z-]*' README.md | cut -d' ' -f2 | sort -u); do
	if printf '%s\n' "$commands" | grep -qx -e "$command"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		echo "FAIL: README.md has cptx $command, which there is not"
	fi
done
echo "listed: $passed passed, $failed failed, 0 skipped"
[ "$failed" -eq 0 ]
