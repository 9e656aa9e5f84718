#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sm_90a GEMM of two builds beside each other, all 60 sizes of bench/gemm_sizes.h: is any slower than it was?

   bench/gemm_before.py BEFORE.so NOW.so [--seconds 200] [--jobs 16] [--top 3] [--rounds 9] [MxNxK ...]

BEFORE.so and NOW.so are bench/gemm_arm.c, compiled and linked with each build as its head says.  Both are loaded by this process, so
that the same operands and the same few milliseconds meet both kernels.  For each size the best --top choices of both models are
timed briefly with NOW's kernels; the two fastest and the first are then made by both builds and timed in bursts in turns, and each build
counts with its fastest.  D of both must be equal bit by bit, but where CTAs share a tile along K.  A line for each size: TFLOP/s of both,
the ratio (BEFORE's time / NOW's), the interquartile range of the ratios of its rounds, and the ratio of each model's first choice.  Sizes
below 0.995 are measured once more with three times the rounds, and that counts.  Exit status 1: an error, or D differs.
"""

import argparse
import ctypes
import math
import os
import re
import statistics
import subprocess
import sys
import time

import numpy

FIELDS = "bm bn stages group cluster_m cluster_n per_sm swap stream_k ctas".split()
DRAWN, SETS, ROTATED, FINALISTS = 1 << 24, 8, 160 << 20, 2
BURST_MS, BRIEF_MS, REST_NS, BOUND = 5.0, 1.5, 10_000_000, 0.995


class Choice(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in FIELDS]

    def key(self):
        return tuple(getattr(self, name) for name in FIELDS)

    def kernel(self):
        return self.key()[:-1]


class Build:
    """The GEMM of one build."""

    def __init__(self, path):
        self.lib = lib = ctypes.CDLL(os.path.abspath(path), mode=os.RTLD_LOCAL | os.RTLD_NOW)
        lib.arm_error.restype = ctypes.c_char_p
        lib.arm_new.restype = ctypes.c_void_p
        lib.arm_burst.restype = ctypes.c_double
        lib.arm_burst.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_long]
        lib.arm_free.argtypes = lib.arm_once.argtypes = [ctypes.c_void_p]
        lib.arm_alloc.restype = ctypes.c_uint64
        for name in ("arm_open", "arm_load", "arm_once", "arm_write", "arm_read", "arm_copy"):
            getattr(lib, name).restype = ctypes.c_bool
        self.do("arm_open")

    def do(self, name, *args):
        got = getattr(self.lib, name)(*args)
        error = self.lib.arm_error()
        if error:
            raise RuntimeError(error.decode())
        return got

    def choices(self, half, size, most):
        to = (Choice * most)()
        count = self.do("arm_choices", half, *map(ctypes.c_uint64, size), to, most)
        return [Choice(*to[i].key()) for i in range(count)]

    def alloc(self, size):
        return ctypes.c_uint64(self.do("arm_alloc", ctypes.c_uint64(size)))


def normal_numbers(half):
    """Normal numbers of 16 bits, as their bits."""
    x = numpy.random.default_rng(1).standard_normal(DRAWN, dtype=numpy.float32)
    return x.astype(numpy.float16).view(numpy.uint16) if half else (x.view(numpy.uint32) >> 16).astype(numpy.uint16)


class Operands:
    """Sets of operands, each from another place of the same random numbers; together more than L2 holds."""

    def __init__(self, build, drawn, size):
        m, n, k = size
        self.build, each = build, (m + n) * k * 2
        self.sets = min(SETS, ROTATED // each + 1)
        self.a = [self.fill(m * k, 2 * i + 1, drawn) for i in range(self.sets)]
        self.b = [self.fill(n * k, 2 * i + 2, drawn) for i in range(self.sets)]
        self.d, self.bytes = build.alloc(m * n * 2), m * n * 2

    def fill(self, count, seed, drawn):
        at, done, start = self.build.alloc(count * 2), 0, seed * 1048568 % DRAWN
        while done < count:
            some = min(count - done, DRAWN - start)
            self.build.do(
                "arm_copy", ctypes.c_uint64(at.value + done * 2), ctypes.c_uint64(drawn.value + start * 2), ctypes.c_uint64(some * 2)
            )
            done, start = done + some, 0
        return at

    def release(self):
        for at in [*self.a, *self.b, self.d]:
            self.build.do("arm_release", at)


class Arm:
    def __init__(self, build, half, choice, size, operands):
        n = operands.sets
        array = lambda v: (ctypes.c_uint64 * len(v))(*(x if isinstance(x, int) else x.value for x in v))
        self.build, self.choice, self.ms = build, choice, []
        self.x = build.do(
            "arm_new", half, ctypes.byref(choice), array(size), n, array(operands.a), array(operands.b), operands.d
        )

    def burst(self, runs, rest=REST_NS):
        return self.build.do("arm_burst", self.x, runs, rest)

    def free(self):
        self.build.do("arm_free", self.x)


def result(arm, operands):
    """D as the arm leaves it, at most 64 Mi elements of it, poisoned in front."""
    some = min(operands.bytes, 128 << 20)
    d = numpy.full(some // 2, 0xFFFF, numpy.uint16)
    arm.build.do("arm_write", operands.d, d.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(some))
    arm.build.do("arm_once", arm.x)
    arm.build.do("arm_read", d.ctypes.data_as(ctypes.c_void_p), operands.d, ctypes.c_uint64(some))
    return d


def differ(now, before, choice, operands):
    """How many elements of D the builds disagree on: any, or those more than rounding explains where CTAs share tiles."""
    x, y = result(now, operands), result(before, operands)
    if not choice.stream_k:
        return int((x != y).sum())
    ordered = lambda v: numpy.where(v & 0x8000, 0x8000 - (v & 0x7FFF).astype(numpy.int32), 0x8000 + v.astype(numpy.int32))
    far = numpy.abs(ordered(x) - ordered(y)) > 16
    small = ((x & 0x7FFF) < 0x4000) & ((y & 0x7FFF) < 0x4000)  # below 2, where K products of size 1 cancel
    return int((far & ~small).sum())


def runs_for(ms, target):
    return max(3, min(200, round(target / max(ms, 1e-4))))


def finalists(builds, half, size, operands, top):
    """The fastest choices by brief bursts of NOW's kernels, and both models' first ones."""
    first = [b.choices(half, size, top) for b in builds]
    seen = {c.key(): c for c in first[1] + first[0]}
    timed = []
    for c in seen.values():
        try:
            arm = Arm(builds[1], half, c, size, operands)
        except RuntimeError:
            continue  # a choice of the other model that this one refuses
        runs = runs_for(arm.burst(3, 0), BRIEF_MS)
        timed.append((min(arm.burst(runs, 0) for _ in range(3)), c))
        arm.free()
    timed.sort(key=lambda t: t[0])
    return timed[0][0], [c for _, c in timed[:FINALISTS]], [f[0] for f in first]


def measured(builds, half, size, operands, choices, ms, rounds):
    """Per choice and build, times in rounds of turns; and whether all D agree."""
    arms = {}
    wrong = 0
    for c in choices:
        pair = [None, None]
        for i, build in enumerate(builds):
            try:
                pair[i] = Arm(build, half, c, size, operands)
            except RuntimeError as e:
                print(f"    build {i} refuses {c.key()}: {e}")
        arms[c.key()] = pair
        if all(pair):
            wrong += differ(pair[1], pair[0], c, operands)
    runs = runs_for(ms, BURST_MS)
    flat = [a for pair in arms.values() for a in pair if a]
    for r in range(rounds):
        for a in flat if r % 2 else flat[::-1]:
            a.ms.append(a.burst(runs, max(REST_NS, int(1e6 * ms * (runs + 2)))))
    for a in flat:
        a.free()
    return arms, wrong


def verdict(arms, first):
    """(before, now, range of the ratios, ratio of the first choices) in ms, of the median of each build's fastest."""
    best = [min((statistics.median(p[i].ms), k) for k, p in arms.items() if p[i]) for i in (0, 1)]
    ratios = sorted(b / n for b, n in zip(arms[best[0][1]][0].ms, arms[best[1][1]][1].ms))
    q = statistics.quantiles(ratios, n=4)
    median = lambda i: statistics.median(arms[first[i].key()][i].ms)
    return best[0][0], best[1][0], statistics.median(ratios), q[0], q[2], median(0) / median(1), arms[best[1][1]][1].choice


def one(builds, half, size, drawn, a, again=False):
    operands = Operands(builds[1], drawn, size)
    ms, choices, first = finalists(builds, half, size, operands, a.top)
    have = {c.key() for c in choices}
    for c in first:
        if c.key() not in have:
            choices.append(c)
            have.add(c.key())
    arms, wrong = measured(builds, half, size, operands, choices, ms, a.rounds * (3 if again else 1))
    operands.release()
    before, now, ratio, low, high, of_first, choice = verdict(arms, first)
    flop = 2e-9 * math.prod(size)
    print(
        f"{'f16' if half else 'bf16'} {'x'.join(map(str, size)):>18} {flop / before:7.1f} {flop / now:7.1f} ratio {ratio:.4f} ({low:.4f} to"
        f" {high:.4f}) first {of_first:.4f} {choice.bm}x{choice.bn} c{choice.cluster_m}x{choice.cluster_n} s{choice.stages}"
        f"{' swap' if choice.swap else ''}{' stream-K' if choice.stream_k else ''}{' AGAIN' if again else ''}"
        f"{f' WRONG {wrong}' if wrong else ''}",
        flush=True,
    )
    return ratio, of_first, wrong


def sizes_of(header):
    return [tuple(map(int, s)) for s in re.findall(r'"(\d+)x(\d+)x(\d+)"', open(header, encoding="utf-8").read())]


def load(builds, sizes, a):
    """Compiles every --jobs-th kernel that will be timed, for the driver to keep; the first process starts the others."""
    kernels = sorted({(h, c.kernel()) for h in (0, 1) for s in sizes for b in builds for c in b.choices(h, s, a.top)})
    for i, (half, kernel) in enumerate(kernels):
        if i % a.jobs == a.part:
            for b in builds:
                try:
                    b.do("arm_load", half, ctypes.byref(Choice(*kernel, 0)))
                except RuntimeError:
                    pass  # said again where it is measured
    return len(kernels)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("before")
    p.add_argument("now")
    p.add_argument("sizes", nargs="*")
    p.add_argument("--seconds", type=float, default=200)
    p.add_argument("--jobs", type=int, default=16)
    p.add_argument("--top", type=int, default=3)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--part", type=int, default=-1, help=argparse.SUPPRESS)
    a = p.parse_intermixed_args()
    begin = time.time()
    builds = [Build(a.before), Build(a.now)]
    here = os.path.dirname(os.path.abspath(__file__))
    sizes = [tuple(map(int, s.split("x"))) for s in a.sizes] or sizes_of(os.path.join(here, "gemm_sizes.h"))
    if a.part >= 0:
        load(builds, sizes, a)
        return 0
    command = [sys.executable, *sys.argv]
    waiting = [subprocess.Popen([*command, "--part", str(i)]) for i in range(a.jobs)]
    if any(w.wait() for w in waiting):
        return 1
    print(f"compiled in {time.time() - begin:.1f} s", flush=True)
    wrong = 0
    for half in (0, 1):
        numbers = normal_numbers(half)
        drawn = builds[1].alloc(DRAWN * 2)
        builds[1].do("arm_write", drawn, numbers.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(DRAWN * 2))
        got = {}
        for size in sizes:
            if time.time() - begin > a.seconds:
                print(f"{size}: no time is left")
                continue
            got[size] = one(builds, half, size, drawn, a)
            wrong += got[size][2]
        for size, g in list(got.items()):
            if g[0] < BOUND and time.time() - begin < a.seconds:
                got[size] = one(builds, half, size, drawn, a, again=True)
        builds[1].do("arm_release", drawn)
        if not got:
            continue
        mean = lambda i: math.exp(sum(math.log(g[i]) for g in got.values()) / len(got))
        least = min(got, key=lambda s: got[s][0])
        print(
            f"{'f16' if half else 'bf16'}: {len(got)} sizes, now / before {mean(0):.4f} in geometric mean, least {got[least][0]:.4f} at"
            f" {'x'.join(map(str, least))}, below {BOUND}: {sum(g[0] < BOUND for g in got.values())}; of first choices {mean(1):.4f},"
            f" least {min(g[1] for g in got.values()):.4f}; {time.time() - begin:.0f} s",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
