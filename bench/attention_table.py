#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tables and a drawing of what bench/attention.sh measured: python3 bench/attention_table.py FOLDER.

Reads FOLDER/*.json, writes FOLDER/attention.md and attention.svg.  A group's ratio is that of the fastest arm of cptx to
cuDNN's, of e4m3 to cuDNN's of e4m3, or for decoding to the copy.
"""

import glob
import html
import json
import math
import os
import sys

BAR, GAP, LABEL, WIDTH = 14, 8, 230, 420


def peer_of(arms):
    return next(name for name in ("cudnn fp8", "copy", "cudnn", "flash") if name in arms)


def figure(arm):
    return arm.get("tflops") or arm["gbs"]


def read(folder):
    """(group, device, [(case, {arm: figure}, peer, ratio)])"""
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as f:
            data = json.load(f)
        rows = []
        for case, arms in data["results"].items():
            figures, peer = {name: figure(arm) for name, arm in arms.items()}, peer_of(arms)
            rows.append((case, figures, peer, max(v for name, v in figures.items() if name.startswith("cptx")) / figures[peer]))
        yield os.path.basename(path)[:-5], data["device"], rows


def table(groups):
    lines = []
    for name, device, rows in groups:
        arms = list(dict.fromkeys(arm for row in rows for arm in row[1]))
        mean = math.exp(sum(math.log(row[3]) for row in rows) / len(rows))
        lines += [f"### {name}, {device}", "", f"cptx / {rows[0][2]}: {mean:.3f} in geometric mean, least {min(r[3] for r in rows):.3f}.", ""]
        lines += ["| case | " + " | ".join(arms) + " | ratio |", "|---" * (len(arms) + 2) + "|"]
        for case, figures, _, ratio in rows:
            cells = (f"{figures[a]:.1f}" if a in figures else "" for a in arms)
            lines.append(f"| {case} | " + " | ".join(cells) + f" | {ratio:.3f} |")
        lines.append("")
    return "\n".join(lines)


def drawing(groups):
    """Bars of the ratios, with a line at 1."""
    bars = [(f"{name} {case}", ratio) for name, _, rows in groups for case, _, _, ratio in rows]
    most = max([1.0] + [ratio for _, ratio in bars])
    height = len(bars) * (BAR + GAP) + 2 * GAP
    at = lambda ratio: LABEL + ratio / most * WIDTH
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL + WIDTH + 60}" height="{height}" font-family="sans-serif" font-size="10">']
    for i, (text, ratio) in enumerate(bars):
        y = GAP + i * (BAR + GAP)
        parts.append(f'<text x="{LABEL - 6}" y="{y + 11}" text-anchor="end">{html.escape(text)}</text>')
        parts.append(f'<rect x="{LABEL}" y="{y}" width="{at(ratio) - LABEL:.1f}" height="{BAR}" fill="{"#4a7" if ratio >= 1 else "#c85"}"/>')
        parts.append(f'<text x="{at(ratio) + 4:.1f}" y="{y + 11}">{ratio:.3f}</text>')
    parts.append(f'<line x1="{at(1):.1f}" y1="0" x2="{at(1):.1f}" y2="{height}" stroke="#000"/></svg>')
    return "\n".join(parts)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    groups = list(read(sys.argv[1]))
    for name, text in (("attention.md", table(groups)), ("attention.svg", drawing(groups))):
        with open(os.path.join(sys.argv[1], name), "w", encoding="utf-8") as f:
            f.write(text)
    print(table(groups))


if __name__ == "__main__":
    main()
