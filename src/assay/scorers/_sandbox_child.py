"""Runs a stranger's code with tests. Started as a script by `_sandbox.py`, which sends the job as JSON on stdin.

Three processes: the outer one closes the system off and keeps the time; its child is the first process of a new
process namespace, so that all that the code starts ends with it; there the code runs. It imports nothing of Assay.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
MOUNT_SETATTR, AT_RECURSIVE, RDONLY = 442, 0x8000, 1
PR_SET_NO_NEW_PRIVS = 38
CAPABILITY_VERSION = 0x20080522
libc = ctypes.CDLL(None, use_errno=True)
getpid = os.getpid
Report = Callable[[dict[str, Any]], None]


def checked(result: int, what: str) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    texts = [text if text is None else text.encode() for text in (source, target, kind, options)]
    checked(libc.mount(*texts[:3], flags, texts[3]), f"mount {target}")


def split_off() -> None:
    """New namespaces: no network, an own table of processes and of mounts. Root needs no user namespace for that."""
    uid, gid = os.getuid(), os.getgid()
    checked(libc.unshare(NEWNS | NEWIPC | NEWPID | NEWNET | (NEWUSER if uid else 0)), "unshare")
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def close_off(folder: str, size: int) -> None:
    """The disk read-only but for a small folder in memory, an own /proc, and no rights to undo that."""
    uid = os.getuid() or 1_000_000_000 + folder_number(folder)  # a user of its own: its processes are counted alone
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    if not os.getuid():
        open_python()
    try:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
    except OSError:  # some containers forbid it; other processes are then seen, but not reached
        pass
    attributes = (ctypes.c_uint64 * 4)(RDONLY, 0, 0, 0)
    checked(libc.syscall(MOUNT_SETATTR, -1, b"/", AT_RECURSIVE, attributes, 32), "mount_setattr")
    owner = f",uid={uid},gid={uid}" if not os.getuid() else ""
    mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=0700,nr_inodes=1000{owner}")
    if not os.getuid():
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    checked(libc.capset(header, data), "capset")


def folder_number(folder: str) -> int:
    return os.stat(folder).st_ino % 1_000_000_000


def open_python() -> None:
    """Where only root can enter the folder that Python is in, show others that folder with nothing but Python in it."""
    for prefix in {os.path.realpath(sys.base_prefix), os.path.realpath(sys.prefix)}:
        parts = prefix.split("/")
        above = ["/".join(parts[: n + 1]) for n in range(1, len(parts))]
        closed = next((path for path in above if not os.stat(path).st_mode & 1), None)
        if closed is None:
            continue
        python = os.open(prefix, os.O_PATH | os.O_DIRECTORY)
        mount("tmpfs", closed, "tmpfs", MS_NOSUID | MS_NODEV, "size=64k,mode=0755")
        os.makedirs(prefix, exist_ok=True)
        mount(f"/proc/self/fd/{python}", prefix, None, MS_BIND | MS_REC)
        os.close(python)


def limit(job: dict[str, Any]) -> None:
    cpu = int(job["seconds"]) + 1
    for name, value in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, job["memory"]),
        (resource.RLIMIT_FSIZE, job["files"]),
        (resource.RLIMIT_NPROC, job["processes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def short(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def run(job: dict[str, Any], report: Report) -> None:
    """The code, then each test, in one set of names; every result is reported as it comes."""
    word, entry_point = job["word"], job["entry_point"]
    names: dict[str, Any] = {"__name__": "answer"}
    try:
        exec(compile(job["code"], "answer.py", "exec"), names)
    except BaseException as error:
        report({"word": word, "problem": "the code: " + short(error), "done": True})
        return
    for number, test in enumerate(job["tests"]):
        try:
            names.pop("check", None)
            exec(compile(test, f"test_{number + 1}.py", "exec"), names)
            if entry_point and "check" in names:
                names["check"](names[entry_point])
        except BaseException as error:
            report({"word": word, "problem": f"test {number + 1}: " + short(error)})
        else:
            report({"word": word, "test": number, "ok": True})
    report({"word": word, "done": True})


def inner(job: dict[str, Any], report: Report, split: bool) -> None:
    try:
        if split:
            close_off(job["folder"], job["files"])
    except OSError as error:
        if not job["allow_unsafe"]:
            report({"word": job["word"], "refused": str(error)})
            return
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(HOME=job["folder"], TMPDIR=job["folder"], PATH="/usr/bin:/bin", LANG="C.UTF-8")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    limit(job)
    run(job, report)


def wait(child: int, seconds: float) -> str:
    """How the child ended; it is killed when its time is over, and with it its whole namespace."""
    deadline = time.monotonic() + seconds
    pause = 0.001
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code in (-signal.SIGXCPU, -signal.SIGKILL):
                return "the code used up its CPU time or its memory"
            return f"the code ended its process early (exit code {code})"
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return f"the code took longer than {seconds:g} s"


def main(fd: int) -> None:
    write, dumps, own = os.write, json.dumps, {os.getpid()}

    def report(line: dict[str, Any]) -> None:
        if getpid() in own:  # a copy that the code made of itself has nothing to tell
            write(fd, dumps(line).encode() + b"\n")

    job = json.loads(sys.stdin.buffer.read())
    split = True
    try:
        split_off()
    except OSError as error:
        split = False
        if not job["allow_unsafe"]:
            report({"word": job["word"], "refused": str(error)})
            return
    child = os.fork()
    if child == 0:
        own.add(getpid())
        try:
            inner(job, report, split)
        finally:
            os._exit(0)
    report({"ended": wait(child, job["seconds"])})


if __name__ == "__main__":
    main(int(sys.argv[1]))
