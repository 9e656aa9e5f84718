#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""typed.py PYTHON: what mypy, which PYTHON has beside the installed module, says of the programs of docs/python.md, and of
wrong ones.  The last line is "typed: N passed, N failed, N skipped"."""
import pathlib, re, subprocess, sys, tempfile

guide = pathlib.Path(__file__).parents[2] / "docs/python.md"
programs = {m[1]: m[0] for m in re.finditer(r"(?<=```python\n)# (\w+\.py)\n.*?(?=```)", guide.read_text(), re.S)}
wrong = {  # the body of a kernel k with a value x, and what it is told
    'k.add(x, 1, rnd="rq")': '"rnd" to "add"',
    "k.ad(x, 1)": 'no attribute "ad"',
    "k.add(x)": 'Missing positional argument "b"',
    "k.add(x, 1, sft=True)": 'Unexpected keyword argument "sft"',
    "x.ofset(4)": 'no attribute "ofset"',
    "cptx.F33": 'no attribute "F33"',
}
passed = failed = 0


def check(what, ok, output):
    global passed, failed
    passed, failed = passed + ok, failed + (not ok)
    if not ok:
        print(f"FAIL: {what}\n{output}")


with tempfile.TemporaryDirectory() as folder:
    def mypy(*files):
        return subprocess.run([sys.argv[1], "-m", "mypy", "--cache-dir", f"{folder}/cache", *files], cwd=folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)

    for name, text in programs.items():
        pathlib.Path(folder, name).write_text(text)
    done = mypy("--ignore-missing-imports", *programs)
    check("the guide's programs", done.returncode == 0 and f"in {len(programs)} source files" in done.stdout and len(programs) >= 5, done.stdout)
    lines = ["import cptx", 'k = cptx.Module().kernel("k")', "x = k.tid_x()", *wrong]
    pathlib.Path(folder, "wrong_calls.py").write_text("\n".join(lines) + "\n")
    told = mypy("wrong_calls.py").stdout
    for number, (call, words) in enumerate(wrong.items(), 4):
        check(call, any(line.startswith(f"wrong_calls.py:{number}: error: ") and words in line for line in told.splitlines()), told)
print(f"typed: {passed} passed, {failed} failed, 0 skipped")
sys.exit(failed != 0)
