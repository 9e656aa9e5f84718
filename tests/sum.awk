# SPDX-License-Identifier: MIT
# Reads the log of `meson test`.  Prints each test's own last line "name: N passed, N failed, N skipped", the end of the
# output of those that failed, and the reasons of what was skipped; writes the three sums to the file `figures`.
# A test that ended badly without owning up to a failure, and one of the `listed` that is not in the log, is a failure.

function finish(	ok, i) {
	if (!section)
		return
	seen++
	ok = result == "exit status 0"
	if (line == "") { # no test program of ours, or one that died
		p = ok
		s = result == "exit status 77"
		f = !ok && !s
	} else {
		n = split(line, word, " ")
		p = word[n - 5]
		f = word[n - 3]
		s = word[n - 1]
		if (!ok && f == 0)
			f = 1
	}
	printf "%s %s: %d passed, %d failed, %d skipped, %s%s\n", f ? "FAIL" : "ok  ", name, p, f, s, duration, ok ? "" : ", " result
	if (f)
		for (i = lines > 80 ? lines - 80 : 0; i < lines; i++)
			print "    | " text[i]
	passed += p
	failed += f
	skipped += s
}

/^=+ [0-9]+\/[0-9]+ =+$/ { finish(); section = 1; header = 1; name = result = line = duration = ""; lines = 0; next }
!section { next }
/^-+ (stdout|stderr) -+$/ { header = 0 }
header && /^test: / { sub(/^test: *([^ ]*:)?/, ""); name = $0; next }
header && /^result: / { sub(/^result: */, ""); result = $0; next }
header && /^duration: / { sub(/^duration: */, ""); duration = $0; next }
header { next }
/: [0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { line = $0 }
/^SKIP [^:]*: / { reason = $0; sub(/^SKIP [^:]*: /, "", reason); reasons[reason]++ }
{ text[lines++] = $0 }

END {
	finish()
	for (reason in reasons)
		printf "skipped %d: %s\n", reasons[reason], reason
	if (seen < listed) {
		printf "FAIL %d of %d tests did not run\n", listed - seen, listed
		failed += listed - seen
	}
	print passed + 0, failed + 0, skipped + 0 > figures
}
