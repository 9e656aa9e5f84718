# SPDX-License-Identifier: MIT
"""needed.py [--rest] BUILD SUITE...: the files of a Meson build that its tests need, but for those of these suites, one a line.
With --rest also all that is built by default and that no test needs: then only what those suites alone need is left out."""
import json
import os
import sys


def read(build, name):
    with open(os.path.join(build, "meson-info", f"intro-{name}.json"), encoding="utf-8") as file:
        return json.load(file)


def main():
    rest = sys.argv[1] == "--rest"
    arguments = sys.argv[2:] if rest else sys.argv[1:]
    build, without = os.path.abspath(arguments[0]), set(arguments[1:])
    targets, tests = read(build, "targets"), read(build, "tests")
    files = {target["id"]: target["filename"] for target in targets}
    wanted = {target for test in tests if not without & {suite.rsplit(":", 1)[-1] for suite in test["suite"]}
              for target in test["depends"]}
    if rest:
        wanted |= {target["id"] for target in targets if target["build_by_default"]} - {
            target for test in tests for target in test["depends"]}
    needed = {file for target in wanted for file in files[target]}
    print("\n".join(sorted(os.path.relpath(file, build) for file in needed)))


main()
