# SPDX-License-Identifier: MIT
"""needed.py BUILD SUITE...: the files of a Meson build that its tests need, but for those of these suites, one a line."""
import json
import os
import sys


def read(build, name):
    with open(os.path.join(build, "meson-info", f"intro-{name}.json"), encoding="utf-8") as file:
        return json.load(file)


def main():
    build, without = os.path.abspath(sys.argv[1]), set(sys.argv[2:])
    files = {target["id"]: target["filename"] for target in read(build, "targets")}
    needed = {file
              for test in read(build, "tests") if not without & {suite.rsplit(":", 1)[-1] for suite in test["suite"]}
              for target in test["depends"] for file in files[target]}
    print("\n".join(sorted(os.path.relpath(file, build) for file in needed)))


main()
