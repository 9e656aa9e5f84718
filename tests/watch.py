# SPDX-License-Identifier: MIT
"""Runs a command and ends it if it hangs: watch.py [--cpu SECONDS] [--idle SECONDS] COMMAND...

A busy machine changes no verdict.  The command and all that it starts may use --cpu
seconds of processor time in all, and may go --idle seconds without using any (a deadlock, or a wait for something that
never comes).  Then the reason goes to standard error, and the exit status is 124.  Otherwise the exit status is the
command's own.  Nothing that the command started outlives it or this program, not even where SIGKILL ends this program.  Without /proc, and with CPTX_WHOLE set, it only runs the command.
CPTX_TEST_TIMES names a file to which it adds a line for each command: seconds of processor time, of the clock, the command.
"""
import os
import signal
import sys
import time

LOOKS = 0.5  # seconds between two looks at a command that runs for long
MOST_CPU, MOST_IDLE = 1200, 300
TICK = os.sysconf("SC_CLK_TCK")


def processes():
    """Parent and processor time of each process: its own, and that of its children that have ended."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    field = file.read().rpartition(")")[2].split()
            except OSError:
                continue  # it ended just now
            found[int(name)] = int(field[1]), sum(map(int, field[11:15])) / TICK
    return found


def below(root, table):
    children = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found = [root] if root in table else []
    for pid in found:
        found += children.get(pid, [])
    return found


PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
STOPS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]


def prctl(option, value):
    try:
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass


def reap():
    """Whether a child of this process is left, now that those that have ended are waited for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    except ChildProcessError:
        return False


def kill_all():
    """Kills all that descends from this process.  A process may start another one meanwhile, so this looks again."""
    for _ in range(200):
        if not reap():  # most commands leave nothing behind, and to read all of /proc takes a while
            return
        for pid in below(os.getpid(), processes())[1:]:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.01)


def handle(stop):
    """Handles the signals that are not ignored already, and lets those come that waited."""
    for number in STOPS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)


def end_as(status):
    """Ends as a process did whose wait status this is: who started this program sees the same."""
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) != signal.SIGKILL:
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    sys.exit(os.waitstatus_to_exitcode(status))


def watch(command, most_cpu, most_idle):
    """The exit status; None and why if it had to be ended."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # not earlier: the command would inherit it
    used, idle_since, looked = 0.0, time.monotonic(), time.monotonic()
    while True:
        pid, status = os.waitpid(command, os.WNOHANG)
        if pid:
            return status, None
        signal.sigtimedwait([signal.SIGCHLD], LOOKS)  # ends at once where the command does, or an orphan of it
        if time.monotonic() - looked < LOOKS:
            continue
        looked = time.monotonic()
        table = processes()
        tree = below(os.getpid(), table)[1:]
        ended = os.times()
        now = sum(table[pid][1] for pid in tree) + ended.children_user + ended.children_system
        if now != used:  # it falls where a process ends that nobody has waited for
            used, idle_since = now, time.monotonic()
        if used > most_cpu:
            return None, f"it used more than {most_cpu} s of processor time"
        if time.monotonic() - idle_since > most_idle:
            return None, f"nothing of it used the processor for {most_idle} s: it waits for something that does not come"


def run(arguments, most):
    """Runs and watches the command.  All of its orphans become children of this process, and so are seen and killed."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)

    def stop(number, _frame):
        kill_all()
        sys.exit(128 + number)

    handle(stop)
    begin = time.monotonic()
    # not by subprocess, which takes as long to load as all the rest; these two signals Python ignores
    command = os.posix_spawnp(arguments[0], arguments, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
    status, why = watch(command, most["--cpu"], most["--idle"])
    if os.environ.get("CPTX_TEST_TIMES"):
        used = os.times()
        with open(os.environ["CPTX_TEST_TIMES"], "a", encoding="utf-8") as file:
            took = used.children_user + used.children_system, time.monotonic() - begin
            file.write(f"{took[0]:.2f} {took[1]:.2f} {' '.join(arguments)}\n")
    kill_all()
    if why is None:
        end_as(status)
    print(f"watch.py: ended {' '.join(arguments)}: {why}.\n"
          "This is no matter of how busy the machine is: run the command alone under a debugger, or, if it is right and only "
          "long, move what is long behind CPTX_WHOLE.", file=sys.stderr)
    sys.exit(124)


def main():
    arguments, most = sys.argv[1:], {"--cpu": MOST_CPU, "--idle": MOST_IDLE}
    while len(arguments) > 2 and arguments[0] in most:
        most[arguments[0]] = int(arguments[1])
        arguments = arguments[2:]
    if not arguments:
        sys.exit(__doc__)
    if not os.path.exists("/proc/self/stat") or os.environ.get("CPTX_WHOLE"):
        os.execvp(arguments[0], arguments)
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # none may come before there is somebody to stop
    parent = os.getpid()
    watcher = os.fork()
    if not watcher:
        os.setpgid(0, 0)  # what kills the group of this program leaves time to end the command
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() == parent:
            run(arguments, most)
        sys.exit(1)
    handle(lambda number, _frame: os.kill(watcher, signal.SIGTERM))
    end_as(os.waitpid(watcher, 0)[1])


if __name__ == "__main__":
    main()
