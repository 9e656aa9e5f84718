#!/bin/sh
# SPDX-License-Identifier: MIT
# man.sh CPTX: the manual page has every command and option of --help, and mandoc finds nothing wrong in it.
# The last line is "man: N passed, N failed, N skipped".
set -u
passed=0 failed=0 skipped=0
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
page=$dir/cptx.1 # mandoc takes the section from the name
"$1" --man >"$page" || failed=1
for command in $("$1" --help | sed -n '/^commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
	for word in "cptx $command" $("$1" "$command" --help | sed -n 's/^  \(-[A-Za-z],\|   *\) *\(--[a-z-]*\).*/\2/p'); do
		if sed 's/\\-/-/g' "$page" | grep -qF -e "$word"; then
			passed=$((passed + 1))
		else
			failed=$((failed + 1))
			echo "FAIL: cptx.1 has no '$word'"
		fi
	done
done
[ "$passed" -gt 50 ] || { failed=$((failed + 1)); echo "FAIL: only $passed words were looked for"; }
if command -v mandoc >/dev/null 2>&1; then
	said=$(mandoc -T lint -W warning "$page" | grep -v 'missing date')
	if [ -z "$said" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL: $said"; fi
else
	skipped=$((skipped + 1))
	echo "SKIP man: mandoc is not installed"
fi
echo "man: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
