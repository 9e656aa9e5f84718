#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every file that is a program, or a part of one, says under which licence it is.

    tests/house/spdx.py [--add] [ROOT]

Prints "file:1: what" for each of ours that has no SPDX line among its first three; --add writes it.  Files of others are in
third_party/.  Tables that are included many times have it, too; what is read as data (PTX, JSON, pages of tools/cptx) has none.
"""
import os
import re
import sys

FOLDERS = ["bench", "cmake", "docs", "examples", "include", "python", "src", "tests", "tools"]
SLASH = (".c", ".h", ".def", ".cc", ".cpp", ".cu", ".inc", ".js")
HASH = (".sh", ".py", ".awk", ".cmake", ".gp", "meson.build", "meson_options.txt", "CMakeLists.txt")
LINE = "SPDX-License-Identifier: MIT"


def comment(path, first):
    name = os.path.basename(path)
    if name.endswith(SLASH):
        return "/* %s */\n" % LINE
    if name.endswith(HASH) or re.match(r"#!.*\b(sh|bash|python3?|awk)\b", first):
        return "# %s\n" % LINE
    return None


def main():
    add = "--add" in sys.argv
    rest = [a for a in sys.argv[1:] if a != "--add"]
    os.chdir(rest[0] if rest else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    paths = [n for n in os.listdir(".") if os.path.isfile(n)]
    for folder in FOLDERS:
        for path, folders, names in os.walk(folder):
            folders[:] = [d for d in folders if d not in ("__pycache__", "cubins")]
            paths += [os.path.join(path, n) for n in names]
    bad = 0
    for path in sorted(paths):
        with open(path, "rb") as f:
            data = f.read()
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue
        lines = text.splitlines(keepends=True)
        want = comment(path, lines[0] if lines else "")
        if not want or any(LINE in line for line in lines[:3]):
            continue
        if add:
            at = 1 if lines and lines[0].startswith("#!") else 0
            with open(path, "w", encoding="utf-8", newline="") as f:
                f.write("".join(lines[:at]) + want + "".join(lines[at:]))
        else:
            bad += 1
            print("%s:1: no %s (tests/house/spdx.py --add writes it)" % (path, LINE))
    return 1 if bad else 0


sys.exit(main())
