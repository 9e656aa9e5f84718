# SPDX-License-Identifier: MIT
"""Tests watch.py: its exit status, and that nothing outlives it, however it ends: test_watch.py WATCH"""
import os
import signal
import subprocess
import sys
import tempfile
import time

WATCH = [sys.executable, "-IS", sys.argv[1]]
# A command that starts a child in its own group, one in another session, and an orphan; each writes its number, and the
# command goes on when all have.
TREE = """
echo $$ >>"$1"
sh -c 'echo $$ >>"$1"; exec sleep 600' sh "$1" &
setsid sh -c 'echo $$ >>"$1"; exec sleep 600' sh "$1" &
(sh -c 'echo $$ >>"$1"; exec sleep 600' sh "$1" &)
until [ "$(wc -l <"$1")" -ge 4 ]; do sleep 0.02; done
"""
PROCESSES = 4
failed = 0
passed = 0


def check(holds, what):
    global failed, passed
    passed += bool(holds)
    failed += not holds
    if not holds:
        print(f"FAIL: {what}")


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def numbers(path):
    with open(path, encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def wait_for(condition, seconds=60):
    """The clock is only a bound for a test that fails: what holds is seen at once."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def outlives(name, ends, script, *options):
    """Runs the tree of processes, ends it, and looks which of them are left."""
    with tempfile.NamedTemporaryFile() as file:
        watcher = subprocess.Popen([*WATCH, *options, "sh", "-c", TREE + script, "sh", file.name], stderr=subprocess.PIPE,
                                   start_new_session=True)
        started = wait_for(lambda: len(numbers(file.name)) == PROCESSES)
        check(started, f"{name}: the command starts {PROCESSES} processes")
        if ends:
            check(all(map(is_alive, numbers(file.name))), f"{name}: they run until it is ended")
            ends(watcher)
        try:
            watcher.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            check(False, f"{name}: watch.py ends")
            os.killpg(watcher.pid, signal.SIGKILL)
        check(wait_for(lambda: not any(map(is_alive, numbers(file.name)))), f"{name}: a process outlives it")
        for pid in filter(is_alive, numbers(file.name)):
            os.kill(pid, signal.SIGKILL)
        return watcher.returncode


def send(number):
    return lambda watcher: watcher.send_signal(number)


def meson_timeout(watcher):
    """Meson ends a test by both signals, one behind the other, to the group that it started the test in."""
    os.killpg(watcher.pid, signal.SIGTERM)
    time.sleep(0.1)
    try:
        os.killpg(watcher.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def status(*command):
    return subprocess.run([*WATCH, *command], stderr=subprocess.DEVNULL, check=False).returncode


def main():
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        signal.signal(number, signal.SIG_DFL)  # ignored ones stay so in what is started
    os.environ.pop("CPTX_WHOLE", None)
    os.environ.pop("CPTX_TEST_TIMES", None)
    check(status("sh", "-c", "exit 7") == 7, "the exit status is that of the command")
    check(status("sh", "-c", "kill -9 $$") == -signal.SIGKILL, "a command that a signal ended")
    check(outlives("a command that ends", None, "exit 3") == 3, "the exit status of a command that leaves children behind")
    check(outlives("idle", None, "sleep 600", "--idle", "2") == 124, "the exit status of a command that hangs")
    check(outlives("busy", None, "while :; do :; done", "--cpu", "1") == 124, "the exit status of a command that goes on")
    for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
        check(outlives(number.name, send(number), "sleep 600") == 128 + signal.SIGTERM, f"the exit status after {number.name}")
    check(outlives("SIGKILL", send(signal.SIGKILL), "sleep 600") == -signal.SIGKILL, "the exit status after SIGKILL")
    outlives("a timeout of meson", meson_timeout, "sleep 600")
    print(f"watch: {passed} passed, {failed} failed, 0 skipped")
    sys.exit(failed != 0)


if os.path.exists("/proc/self/stat"):
    main()
else:
    print("watch: 0 passed, 0 failed, 1 skipped: there is no /proc")
    sys.exit(77)
