# SPDX-License-Identifier: MIT
"""Runs the unittest cases of a script; the last line is "NAME: N passed, N failed, N skipped".  Skips are said, with what is missing."""

import functools
import importlib
import os
import sys
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "python"), *(os.path.join(ROOT, "examples", of) for of in ("python", "xla", "hosts"))]
SAXPY = os.path.join(ROOT, "examples", "python", "saxpy.ptx")
SIGNATURE = "x: f32[n] const, y: f32[n], a: f32, n: u32 = n"


def optional(name):
    """A module, or None where it is not installed."""
    try:
        return __import__(name)
    except ImportError as e:
        if e.name != name:
            print(f"{name} is there, but cannot be imported: {e}")
        return None


def operators_on_cpu(module):
    """Imports a module of custom operators, which then take tensors of the CPU: what they refuse can be seen without a GPU."""
    ops = importlib.import_module("cptx.ops")
    with mock.patch.object(ops, "define", functools.partial(ops.define, device="CPU")):
        importlib.import_module(module)


def saxpy(device, **options):
    return device.load_file(SAXPY).kernel("saxpy", SIGNATURE, **{"grid": "n / 256", "block": 256, **options})


class Result(unittest.TextTestResult):
    passed = 0  # testsRun counts some of the skipped tests, others not

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def main(name, cases):
    suite = unittest.TestSuite(unittest.defaultTestLoader.loadTestsFromTestCase(case) for case in cases)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)
    failed = len({str(t) for t, _ in result.failures + result.errors}) + len(result.unexpectedSuccesses)
    skipped = len(result.skipped)
    passed = result.passed
    for test, why in result.skipped:
        print(f"SKIP {test}: {why}")
    print(f"{name}: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return 1 if failed or not passed + skipped else 0
