#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make.py SOURCE BUILD CPTX DOXYGEN: the site, in BUILD/site/html: the reference of the headers, the guides, and a gallery of pictures.

The pictures are made by the command itself, on the emulator: tiles with their banks, timelines of GEMMs, and, where there is
ptxas, the page of `cptx inspect`.  The build calls it: meson compile -C build site.
"""
import collections
import json
import pathlib
import re
import shutil
import subprocess
import sys
from html import escape, unescape
from urllib.parse import unquote

sys.dont_write_bytecode = True  # in the source tree
import search

source, build, cptx, doxygen = (pathlib.Path(p) for p in sys.argv[1:5])
folder = build / "site"
pictures = folder / "pictures"
# name of the picture, title, what it shows, and how the command makes it
TILES = [("tile_128B", "A tile with a swizzle", "64 x 64 elements of bf16, swizzled by 128 bytes, as mma reads A from it: no bank is asked twice.",
          ["--tile", "64x64", "--swizzle", "128B", "--read", "mma-a"]),
         ("tile_none", "The same tile without one", "Rows lie in the same banks, and eight reads wait for one another.",
          ["--tile", "64x64", "--swizzle", "none", "--read", "mma-a"]),
         ("tile_64B", "A narrower tile", "64 x 32 elements, swizzled by 64 bytes.", ["--tile", "64x32", "--swizzle", "64B", "--read", "mma-a"])]
TIMELINES = [("timeline_sm90", "A GEMM by wgmma", "Of sm_90a, 256 x 256 x 256: a warp of TMA feeds warpgroups of wgmma.", "sm_90a"),
             ("timeline_sm100", "A GEMM by tcgen05", "The same product, by tcgen05 of sm_100a.", "sm_100a")]
# Doxygen's headings have no room between their lines, and are as large as the page's title.
STYLE = """.contents h1, .contents h1.doxsection { font-size: 150%; line-height: 1.3; margin-top: 1.2em; }
.contents h2, .contents h2.doxsection { font-size: 125%; line-height: 1.3; }
.contents img { max-width: 100%; border: 1px solid #ccc; }
div.line, pre.fragment { line-height: 1.35; }
div.fragment, pre.fragment { padding: 6px 8px; overflow-x: auto; }
table.doxtable td { vertical-align: top; }
"""
COLORS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#edc948", "#76b7b2", "#9c755f"]
missing = []


def run(what, *command):
    """What a command prints; None, and a word in the gallery, where it fails."""
    done = subprocess.run([str(c) for c in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=source)
    if done.returncode:
        missing.append(f"{what}: {(done.stdout.strip().splitlines() or ['it failed'])[0]}")
        return None
    return done.stdout


def draw(events):
    """Spans of a trace, as chrome://tracing reads it, as a picture: a row for each thread of the first CTAs."""
    spans = [e for e in events if e.get("ph") == "X"]
    first_ctas = sorted({e["pid"] for e in spans})[:2]
    spans = [e for e in spans if e["pid"] in first_ctas]
    rows = sorted({(e["pid"], e["tid"]) for e in spans})
    names = {}  # of a row: "CTA 0, warp 4"
    for kind in "process_name", "thread_name":
        for e in (e for e in events if e.get("ph") == "M" and e["name"] == kind):
            names.setdefault((e["pid"], e["tid"]), []).append(e["args"]["name"])
    colors = {name: COLORS[i % len(COLORS)] for i, name in enumerate(sorted({e["name"] for e in spans}))}
    first, last = min(e["ts"] for e in spans), max(e["ts"] + e["dur"] for e in spans)
    left, width, height, top = 150, 900, 16, 30
    scale = width / ((last - first) or 1)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 10}" height="{top + len(rows) * height + 10}" font-family="sans-serif" '
           'font-size="10"><rect width="100%" height="100%" fill="white"/>']
    for i, (name, color) in enumerate(colors.items()):
        out.append(f'<rect x="{left + i * 140}" y="6" width="10" height="10" fill="{color}"/><text x="{left + 14 + i * 140}" y="15">{escape(name)}</text>')
    for i, row in enumerate(rows):
        out.append(f'<text x="4" y="{top + i * height + 11}">{escape(", ".join(names.get(row, [str(row)])))}</text>')
    for e in spans:
        x, w = left + (e["ts"] - first) * scale, max(0.5, e["dur"] * scale)
        y = top + rows.index((e["pid"], e["tid"])) * height
        out.append(f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{height - 3}" fill="{colors[e["name"]]}"><title>{escape(e["name"])}</title></rect>')
    return "\n".join(out + ["</svg>\n"])


def gallery():
    text = ["# A gallery {#gallery}\n", "Made by the command, on the emulator, when the site was built.\n"]
    figure = collections.namedtuple("figure", "file title about command")
    figures = []
    for name, title, about, options in TILES:
        if run(name, cptx, "layout", *options, "--svg", pictures / f"{name}.svg") is not None:
            figures.append(figure(f"{name}.svg", title, about, "cptx layout " + " ".join(options) + " --svg tile.svg"))
    for name, title, about, target in TIMELINES:
        trace = pictures / f"{name}.json"
        command = ["gemm", "--device", f"emu:{target}", "--run", "256x256x256", "--timeline", trace]
        if run(name, cptx, *command) is not None:
            events = json.loads(trace.read_text())
            (pictures / f"{name}.svg").write_text(draw(events["traceEvents"] if isinstance(events, dict) else events))
            figures.append(figure(f"{name}.svg", title, about, f"cptx gemm --device emu:{target} --run 256x256x256 --timeline trace.json"))
    for f in figures:
        text += [f"## {f.title}\n", f"{f.about}\n", f'\\htmlonly <img src="{f.file}" alt="{escape(f.about)}"/> \\endhtmlonly\n', f"`{f.command}`\n"]
    if run("inspect.html", cptx, "inspect", "--html", pictures / "inspect.html", "examples/turn.ptx") is not None:
        text += ["## What the GPU gets, line by line\n", '\\htmlonly <a href="inspect.html">the page of cptx inspect</a><br/>'
                 '<iframe src="inspect.html" style="width:100%;height:480px;border:1px solid #ccc"></iframe> \\endhtmlonly\n', "`cptx inspect --html inspect.html examples/turn.ptx`\n"]
    if missing:
        text += ["## Not here\n"] + [f"- {line}" for line in missing]
    (folder / "gallery.md").write_text("\n".join(text) + "\n")
    return len(figures)


def first_page():
    """The reference's first page behind the README's table of guides; returns the guides, in the order of that table, and the others."""
    readme = (source / "README.md").read_text()
    table = readme[readme.index("\n## Guides\n"):].split("\n## ", 2)[1].split("\n", 1)[1].strip()
    table = table.replace("| | |\n", "| guide | |\n", 1) + "\n| @ref gallery | tiles, timelines, and what the GPU gets of a kernel |"
    listed = [source / path for path in dict.fromkeys(re.findall(r"\((docs/\w+\.md)\)", table))]
    reference = (source / "docs/doxygen/main.md").read_text().split("\n", 1)[1].replace("are in the folder `docs` of the source tree, and on the site that "
                                                                                       "`meson compile -C build site` makes", "stand below")
    page = folder / "first.md"
    page.write_text(f"# cptx\n{reference}\n## Guides\n\n{table}\n")
    others = [p for p in sorted((source / "docs").glob("*.md")) if p not in listed and p.name != "README.md"]
    return page, listed + others + [source / "CHANGELOG.md"]


class Site:
    """The pages that doxygen made, and where their links lead."""

    def __init__(self, html):
        self.html, self.names = html, {}

    def has(self, page, link):
        """Whether a link of a page leads somewhere: outside of the site always, else to a file, and to a name in it."""
        link = unquote(unescape(link))
        if not link or re.match(r"[\w+.-]+:|//", link):
            return True
        file, _, name = link.partition("#")
        target = self.html / (file.split("?")[0] or page)
        if not target.exists():
            return False
        if not name or target.suffix != ".html":
            return True
        if target not in self.names:
            self.names[target] = set(re.findall(r'\b(?:id|name)="([^"]+)"', target.read_text(errors="replace")))
        return name in self.names[target]

    def unlink_what_is_not_here(self):
        """Files of the source tree that are no page, and fields without a word of doxygen: such a link becomes its text."""
        def kept(page, found):
            return found[0] if self.has(page, found[1]) else found[2]

        for page in self.html.glob("*.html"):
            text = page.read_text(errors="replace")
            # in listings doxygen puts what a field is behind the link, in a box of its own, whose link is the same
            plain = re.sub(r'<a (?:class="(?:el|code|line)[^"]*" )?href="([^"]*)">(.*?)</a>', lambda found: kept(page.name, found), text)
            if plain != text:
                page.write_text(plain)

    def broken(self):
        """"page: link" of all links, pictures, scripts and frames that lead nowhere, and how many there are in all."""
        links = [(page.name, link) for page in self.html.glob("*.html")
                 for link in re.findall(r'<[^<>]*\s(?:href|src)="([^"]*)"', page.read_text(errors="replace"))]
        return sorted({f"{page}: {link}" for page, link in links if not self.has(page, link)}), len(links)


pictures.mkdir(parents=True, exist_ok=True)
n = gallery()
first, guides = first_page()
guides.append(folder / "gallery.md")
(folder / "style.css").write_text(STYLE)
config = (build / "docs/doxygen/Doxyfile").read_text() + f"""
INPUT += {" ".join(map(str, [first, *guides]))}
USE_MDFILE_AS_MAINPAGE = {first}
EXCLUDE += {source / "docs/doxygen/main.md"}
FILE_PATTERNS = *.h *.hpp *.md
HTML_EXTRA_STYLESHEET = {folder / "style.css"}
TREEVIEW_WIDTH = 300
FILTER_PATTERNS += *.md=cat
OUTPUT_DIRECTORY = {folder}
HTML_EXTRA_FILES = {" ".join(map(str, sorted(pictures.iterdir())))}
GENERATE_TREEVIEW = YES
SEARCHENGINE = YES
TOC_INCLUDE_HEADINGS = 2
WARN_AS_ERROR = NO
WARNINGS = NO
WARN_IF_UNDOCUMENTED = NO
WARN_IF_DOC_ERROR = NO
"""
shutil.rmtree(folder / "html", ignore_errors=True)
subprocess.run([str(doxygen), "-"], input=config, text=True, check=True, cwd=source)
rows = search.extend(folder / "html/search", sorted((folder / "html").glob("md_*.html")))[1]
site = Site(folder / "html")
site.unlink_what_is_not_here()
broken, links = site.broken()
pages = list((folder / "html").glob("*.html"))
left_out = [g.name for g in guides if not any(g.stem in p.name or g.stem.replace("_", "__") in p.name for p in pages)]
if left_out or not (folder / "html/search").is_dir():
    sys.exit(f"site: these pages are missing: {left_out}, or the search")
for typed in "cptx_gemm_run", "gemm_run", "softmax", "retarget", "CPTX_TUNE_DIR":
    if not search.finds(rows, typed):
        sys.exit(f"site: the search does not find {typed}")
if broken or not links:
    sys.exit("site: these links lead nowhere:\n" + "\n".join(broken[:40]))
print(f"site: {folder / 'html/index.html'}: {len(pages)} pages, {len(guides)} guides, {n} pictures, {links} links, {len(rows)} rows to search")
