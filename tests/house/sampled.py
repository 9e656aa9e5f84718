# SPDX-License-Identifier: MIT
"""sampled.py BUILD: tests of suite "sanitized" run under sanitizers alone, so none of them may try only a sample there."""
import json
import os
import sys


def read(build, name):
    with open(os.path.join(build, "meson-info", f"intro-{name}.json"), encoding="utf-8") as file:
        return json.load(file)


def samples(target):
    """The sources of a target, or those beside them that they include, that say SAMPLE_OF."""
    found = []
    for source in target["target_sources"]:
        for path in source.get("sources", []):
            if path.endswith(".c") and "/tests/" in path and os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    if "SAMPLE_OF(" in file.read():
                        found.append(path)
    return found


def main():
    build = sys.argv[1]
    targets = {target["id"]: target for target in read(build, "targets")}
    passed = failed = 0
    for test in read(build, "tests"):
        if "sanitized" not in {suite.rsplit(":", 1)[-1] for suite in test["suite"]}:
            continue
        told = [path for depends in test["depends"] if depends in targets for path in samples(targets[depends])]
        passed, failed = passed + (not told), failed + bool(told)
        for path in told:
            print(f"FAIL: {test['name']} is of suite sanitized, and {path} tries a sample there: the rest runs nowhere")
    print(f"sampled: {passed} passed, {failed} failed, 0 skipped")
    return failed != 0 or not passed


sys.exit(main())
