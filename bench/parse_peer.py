# SPDX-License-Identifier: MIT
"""The peer of bench_parse: pyptx's parser over the files named on standard input, CPU time, best of three each."""
import sys
import time

from pyptx.parser import parse


def main():
    files = size = 0
    total = 0.0
    rejected = []
    for path in sys.stdin.read().split("\n"):
        if not path:
            continue
        with open(path) as f:
            text = f.read()
        try:
            best = 1e9
            for _ in range(3):
                start = time.process_time()
                parse(text)
                best = min(best, time.process_time() - start)
        except Exception as e:
            rejected.append(f"{path}: {e}")
            continue
        files, size, total = files + 1, size + len(text.encode()), total + best
    if files:
        print(f"  {'pyptx parse':28s} {total * 1e3:9.1f} ms {size / total * 1e-6:8.2f} MB/s, {files} files")
    for r in rejected:
        print(f"  pyptx rejects {r[-150:]}")


main()
