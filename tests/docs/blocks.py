#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""blocks.py SOURCE BUILD CC [GUIDE.md...]: the blocks of README.md and docs/*.md, or of these guides, do what they say.

Every document is gone through from its top to its end, in an empty folder that looks like the source tree after ./bootstrap demo.

    ```c        whole programs, and what begins with /* NAME.c */, are written to a file (and built by the commands that follow);
                all else is compiled as the body of a function in which err, m, k, dev, p and opt are declared, and what an HTML
                comment in front of the block declares: <!-- c: cptx_val x, y; -->.  A line of three dots stands for code left out.
    ```ptx      what begins with // NAME.ptx is written to that file.
    ```sh       every line is run, with /bin/sh -e.
    ```console  the lines behind "$ " are run; the others are what they print, both streams together, lines joined by blanks so
                that long ones may be broken.  Three dots stand for anything.
                Behind <!-- numbers may differ --> a number stands for any: for what the generators and ptxas decide.
    ```python   what begins with # NAME.py is written to that file; all is read.  venv/bin/python is a Python that has the module of
                the source tree, or, with CPTX_VENV, a folder, the virtual environment there.
    ```cmake and blocks without a language are not looked at, and counted.

A command ends with status 0, or with the one its comment names: "# exit status 1".  One whose comment says what it needs, a
program ("needs nvdisasm", "needs ptxas 13.0 and nvdisasm") or a module of Python ("needs numpy.py"), is run only where that is there.  In a test there never is "a GPU" or
"root", and there are no "minutes".  The commands of the README write into build/ only.

The last line is "blocks: N passed, N failed, N skipped".
"""
import collections, functools, os, pathlib, re, shutil, subprocess, sys, tempfile

source, build, cc = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
passed, failed, skips, unread = 0, 0, collections.Counter(), collections.Counter()
never = ("a GPU", "root", "minutes")
context = """static cptx_error err; static cptx_module *m; static cptx_kernel *k; static cptx_device *dev; static cptx_program *p;
static cptx_stream *stream; static cptx_load_opt opt;
"""
fragments = []

Block = collections.namedtuple("Block", "where line language text declared loose")


def tell(where, what, output=""):
    global failed
    failed += 1
    print(f"FAIL {where}: {what}")
    for line in output.strip().splitlines()[-20:]:
        print("    " + line)


def blocks(document):
    found, declared, loose, language, start, text = [], "", False, None, 0, []
    for number, line in enumerate(document.read_text().splitlines(), 1):
        fence = re.match(r"```(\w*)", line)
        if language is None and fence:
            language, start, text = fence.group(1), number + 1, []
        elif language is not None and fence:
            found.append(Block(document.relative_to(source), start, language, "\n".join(text) + "\n", declared, loose))
            language, declared, loose = None, "", False
        elif language is not None:
            text.append(line)
        elif (comment := re.match(r"<!-- c: (.*) -->$", line)):
            declared = comment.group(1)
        elif line == "<!-- numbers may differ -->":
            loose = True
    if language is not None:
        tell(document, "a block has no end")
    return found


@functools.lru_cache
def version(tool):
    return subprocess.run([tool, "--version"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def there(need, env):
    """Whether this machine has what a command needs: a program, maybe of a version."""
    if need.endswith(".py"):
        return not subprocess.run([env["PYTHON"], "-c", f"import {need[:-3]}"], stderr=subprocess.DEVNULL).returncode
    tool, _, wanted = need.partition(" ")
    path = None if need in never else shutil.which(tool, path=env["PATH"])
    if tool == "nvdisasm" and not (build / "libcptx_cubin.so").exists():
        path = None  # without the reader of cubins, cptx does not look at machine code
    return path is not None and f"release {wanted}" in version(path) if wanted else path is not None


def run(block, number, command, expected, folder, env):
    """One command; whether the ones behind it make sense."""
    global passed
    where = f"{block.where}:{number}"
    comment = command.rpartition("#")[2] if "#" in command else ""
    status = int((re.search(r"exit status (\d)", comment) or [0, 0])[1])
    needs = re.search(r"needs ([^;)]*)", comment)
    for need in needs[1].split(" and ") if needs else []:
        if not there(need, env):
            skips[need] += 1
            return
    done = subprocess.run(["/bin/sh", "-ec", command], cwd=folder, env=env, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    if done.returncode != status:
        return tell(where, f"exit status {done.returncode}, not {status}: {command}", done.stdout)
    if expected is not None:
        wanted = re.escape(" ".join(expected.split())).replace(r"\.\.\.", ".*")
        if block.loose:
            wanted = re.sub(r"\d+", r"\\d+", wanted)
        printed = re.sub(r"(\.\./)+src/", "../src/", " ".join(done.stdout.split()))  # however deep the build folder lies
        if not re.fullmatch(wanted, printed):
            return tell(where, f"it prints something else: {command}", done.stdout)
    passed += 1


def commands(block):
    """(line, command, expected output or None)"""
    found = []
    for number, line in enumerate(block.text.splitlines(), block.line):
        if block.language == "console" and not line.startswith("$ "):
            found[-1][2] += line + "\n"
        elif found and found[-1][1].endswith("\\"):
            found[-1][1] = found[-1][1][:-1] + line
        elif line.strip() and not line.startswith("#"):
            found.append([number, line[2:] if block.language == "console" else line, "" if block.language == "console" else None])
    return found


def python(block):
    """It is read, since it may want a GPU and other programs' modules; commands run what has a name."""
    global passed
    try:
        compile("\n" * (block.line - 1) + block.text, str(block.where), "exec")
        passed += 1
    except SyntaxError as error:
        tell(f"{block.where}:{error.lineno}", f"this is no Python: {error.msg}")


def fragment(block):
    text = re.sub(r"^(\s*)\.\.\.$", r"\1;", block.text, flags=re.M)
    includes = "".join(f"{line}\n" for line in text.splitlines() if line.startswith("#include"))
    body = "".join(("" if line.startswith("#include") else line) + "\n" for line in text.splitlines())
    # a declaration that nobody uses is no fault of a fragment
    fragments.append((block, f"{includes}static void block_{len(fragments)}(void)\n{{\n{block.declared}\n"
                             f"#line {block.line} \"{block.where}\"\n{{\n#line {block.line}\n{body}}}\n}}\n"))


def check_fragments(folder):
    global passed
    headers = "".join(f"#include <cptx/{header.name}>\n" for header in sorted((source / "include/cptx").glob("*.h"))
                      if header.name != "cplusplus.h")
    unit = folder / "fragments.c"
    unit.write_text("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n" + headers + context + "".join(text for _, text in fragments))
    done = subprocess.run(cc.split() + ["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused", f"-I{source}/include",
                                        f"-I{build}/include", f"-I{source}/src/bundle/loader", str(unit)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    bad = set(re.findall(r"^(\S+\.md):(\d+):.*error", done.stdout, flags=re.M))
    if done.returncode and not bad:
        tell("fragments", "they cannot be compiled", done.stdout)
    for block, _ in fragments:
        lines = [int(line) for name, line in bad if name == str(block.where) and block.line <= int(line) <= block.line + block.text.count("\n")]
        if lines:
            tell(f"{block.where}:{min(lines)}", "this does not compile", "\n".join(
                line for line in done.stdout.splitlines() if line.startswith(f"{block.where}:{min(lines)}:")))
        else:
            passed += 1


def program(block, file):
    """A whole program: it compiles, and no compiler warns."""
    global passed
    done = subprocess.run(cc.split() + ["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{source}/include", f"-I{build}/include", file.name],
                          cwd=file.parent, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        return tell(f"{block.where}:{block.line}", "a compiler warns", done.stdout)
    passed += 1


def make_venv(folder, env):
    """The virtual environment that guides speak of."""
    if os.environ.get("CPTX_VENV"):
        (folder / "venv").symlink_to(os.environ["CPTX_VENV"])
    else:
        (folder / "venv/bin").mkdir(parents=True)
        wrapper = folder / "venv/bin/python"
        wrapper.write_text(f'#!/bin/sh\nCPTX_LIBRARY="{build}/libcptx.so" PYTHONPATH="{source}/python" PYTHONDONTWRITEBYTECODE=1 '
                           f'exec "{sys.executable}" "$@"\n')
        wrapper.chmod(0o755)
    env["PYTHON"] = str(folder / "venv/bin/python")


def document(path, folder):
    for name in ("examples", "include", "python", "src", "tests", "bench", "docs"):
        (folder / name).symlink_to(source / name)
    (folder / "build").symlink_to(build)
    env = {name: value for name, value in os.environ.items() if not name.startswith("CPTX_") or name == "CPTX_PTXAS"}
    env |= {"CPTX_CUDA_LIBRARY": "/nonexistent/libcuda.so.1", "CPTX_CACHE_DIR": str(folder) + ".cache",
            "CPTX_TUNE_DIR": str(folder) + ".tune", "LC_ALL": "C"}
    env["PATH"] += ":/usr/local/cuda/bin"
    make_venv(folder, env)
    for block in blocks(path):
        named = re.match(r"(?:/\* (\S+\.c) \*/|// (\S+\.ptx)|# (\S+\.py))$", block.text.splitlines()[0] if block.text.strip() else "")
        if named:
            (folder / (named[1] or named[2] or named[3])).write_text(block.text)
            if named[1]:
                program(block, folder / named[1])
            if named[3]:
                python(block)
        elif block.language == "c":
            fragment(block)
        elif block.language == "python":
            python(block)
        elif block.language in ("sh", "console"):
            for number, command, expected in commands(block):
                run(block, number, command, expected, folder, env)
        else:
            unread[block.language or "text"] += 1
    left = [p.name for p in folder.iterdir() if not p.is_symlink() and p.name != "venv"]
    if path.name == "README.md" and left:  # whoever follows it does so in the source tree
        tell(path.name, "its commands leave files outside of build/: " + " ".join(sorted(left)))


with tempfile.TemporaryDirectory() as scratch:
    if not (build / "libcptx.so").exists() or not (build / "cptx").exists():
        print("SKIP blocks: this build has no shared library, or no command\nblocks: 0 passed, 0 failed, 1 skipped")
        sys.exit(0)
    for path in [source / name for name in sys.argv[4:]] or [source / "README.md"] + sorted((source / "docs").glob("*.md")):
        if path.name == "instructions.md":  # made from the table, whose examples are assembled elsewhere
            continue
        if path == source / "docs" / "README.md":  # a list of the guides, without commands
            continue
        folder = pathlib.Path(scratch) / path.stem
        folder.mkdir()
        document(path, folder)
    check_fragments(pathlib.Path(scratch))
for why, n in skips.items():
    print(f"SKIP {n} commands: they need {why}")
print("not looked at: " + ", ".join(f"{n} blocks of {language}" for language, n in unread.items()))
print(f"blocks: {passed} passed, {failed} failed, {sum(skips.values())} skipped")
sys.exit(failed != 0)
