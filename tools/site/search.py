# SPDX-License-Identifier: MIT
"""More for doxygen's search, which knows names by their beginning and guides by their titles alone.

Added to what it searches under "All": names without cptx_, and the words of the guides, a row for each section that has it.  A row of
search/all_N.js is ['KEY_NUMBER', ['shown', ['link', 1, 'behind it'], ...]]; N is the place of the key's first letter among those of
searchdata.js, in hexadecimal.
"""
import ast
import collections
import json
import re
from html import escape, unescape

MOST = 12  # a word of more sections says nothing about any of them
HEADING = re.compile(r'<h[1-4][^>]*><a class="anchor" id="([^"]+)"></a>(.*?)</h[1-4]>', re.S)


def text_of(html):
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def sections(page):
    """(link, heading, text) of a guide's page, whose title is the first."""
    html = page.read_text(errors="replace")
    title = text_of(re.search(r'<div class="title">(.*?)</div>', html, re.S)[1])
    body = html[html.index('<div class="contents">'):html.rindex("<!-- contents -->")]
    cut = [(m.start(), m[1], text_of(m[2])) for m in HEADING.finditer(body)]
    yield f"../{page.name}", title, f"{title} {text_of(body[:cut[0][0] if cut else None])}"
    for (start, anchor, heading), (end, *_) in zip(cut, cut[1:] + [(None,)]):
        yield f"../{page.name}#{anchor}", f"{title}: {heading}", text_of(body[start:end])


def rows_of_guides(pages):
    found = collections.defaultdict(dict)  # word -> link -> heading
    for page in pages:
        for link, heading, text in sections(page):
            for word in re.findall(r"[a-z][a-z0-9_]{2,}", text.lower()):
                found[word][link] = heading
    for word, places in sorted(found.items()):
        if len(places) <= MOST:
            for link, heading in places.items():
                yield word, [escape(heading), [link, 1, escape(word)]]


def key_of(name):
    """As search.js writes what is typed."""
    return "".join(c if re.match(r"[a-z0-9]", c) else f"_{ord(c):02x}" for c in name.lower())


def extend(folder, pages):
    """folder: search, of doxygen's HTML; pages: the guides' files.  Returns the rows that were there, and those that are."""
    old = [row for file in folder.glob("all_*.js") for row in ast.literal_eval(file.read_text().split("=", 1)[1].strip().rstrip(";"))]
    more = list(rows_of_guides(pages))
    more += [(unescape(entry[0])[5:], entry) for _, entry in old if entry[0].lower().startswith("cptx_")]
    rows = old + [[f"{key_of(name)}_g{i}", entry] for i, (name, entry) in enumerate(more) if name[:1].isalpha()]
    letters = collections.defaultdict(list)
    for row in rows:
        letters[row[0][0].lower()].append(row)
    frame = folder / "all_0.html"  # doxygen from 1.9.5 on has none
    html = frame.read_text() if frame.exists() else None
    for i, letter in enumerate(sorted(letters)):
        (folder / f"all_{i:x}.js").write_text("var searchData=" + json.dumps(sorted(letters[letter])) + ";\n")
        if html:
            (folder / f"all_{i:x}.html").write_text(html.replace("all_0.js", f"all_{i:x}.js"))
    data = folder / "searchdata.js"
    data.write_text(re.sub(r'(?m)^(\s*0: )"[^"]*"', lambda m: m[1] + json.dumps("".join(sorted(letters))), data.read_text(), count=1))
    return old, rows


def finds(rows, typed):
    return [entry for key, entry in rows if key.lower().startswith(key_of(typed))]
