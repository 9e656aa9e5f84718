#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What building an instruction costs from Python: CPTX_LIBRARY=build/libcptx.so python3 bench/bench_python.py

Processor time of the process for each instruction, the least of several rounds: arithmetic, mma, a function of 3000 lines that
runs once (each line is looked up for the first time), and the whole saxpy of docs/python.md with its module, parameters and block.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))
import cptx

N = 30000


def arithmetic():
    k = cptx.Module().kernel("k")
    a, b, c = k.reg("f32"), k.reg("f32"), k.var("f32", 0.0)
    start = time.process_time()
    for _ in range(N // 3):
        k.fma(a, b, c, rnd=cptx.RN, into=c)
        k.add(a, b)
        k.mul(a, b, rnd="rn", ftz=True)
    return time.process_time() - start, N


def mma():
    k = cptx.Module().kernel("k")
    a, b, c = k.regs("b32", 4), k.regs("b32", 2), k.regs("f32", 4)
    start = time.process_time()
    for _ in range(N):
        k.mma(a, b, c, shape=cptx.M16N8K16, dtype=cptx.F32, atype=cptx.BF16, into=c)
    return time.process_time() - start, N


def straight():
    names, lines = {}, 3000
    exec(compile("def build(k, a):\n" + "    k.add(a, a)\n" * lines, "straight", "exec"), names)
    k = cptx.Module().kernel("k")
    a = k.reg("u32")
    start = time.process_time()
    names["build"](k, a)
    return time.process_time() - start, lines


def saxpy():
    count, times = 0, 200
    start = time.process_time()
    for _ in range(times):
        m = cptx.Module()
        k = m.kernel("saxpy", block=256)
        x, y = k.param(cptx.PTR, "x"), k.param(cptx.PTR, "y")
        a, n = k.param(cptx.F32, "a"), k.param(cptx.U32, "n")
        i = k.mad(k.ctaid_x(), 256, k.tid_x(), mode=cptx.LO)
        with k.if_(k.setp(i, n, cmp=cptx.LT)):
            at = k.mul_wide(i, 4)
            px, py = k.add(x, at), k.add(y, at)
            vx = k.ld(px, space=cptx.GLOBAL, type=cptx.F32)
            vy = k.ld(py, space=cptx.GLOBAL, type=cptx.F32)
            k.st(py, k.fma(a, vx, vy, rnd=cptx.RN), space=cptx.GLOBAL)
        count += m.size
    return time.process_time() - start, count


for run in (arithmetic, mma, straight, saxpy):
    print(f"{run.__name__:10} {min(t / n for t, n in (run() for _ in range(7))) * 1e9:6.0f} ns for each instruction")
