"""A process closes itself off: namespaces with a root of their own, Landlock, seccomp, limits, no rights.

`bubblewrap` has made namespaces and root before we run; `namespaces` makes them here; `weak` has none of them, and
relies on what the kernel offers to everybody.
"""

import ctypes
import os
import resource
import select
import signal
import struct
import time
from contextlib import suppress
from typing import Any

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000
NAMESPACES = 0x7E020080  # every flag of `clone` that makes one
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 4096, 16384, 1 << 18
MOUNT_SETATTR, AT_RECURSIVE, RDONLY, NOSUID, MNT_DETACH = 442, 0x8000, 1, 2, 2
DEATH, DUMPABLE, KEEP_CAPABILITIES, SECCOMP, SUBREAPER, NO_NEW_PRIVILEGES = 1, 4, 8, 22, 36, 38
CAPABILITY_VERSION, READ_ALL = 0x20080522, 1 << 2
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
# rights of Landlock's versions 1 to 5
READ, READ_WRITE, ALL_RIGHTS = (0b1101, 0b1111, (13, 14, 15, 15, 16))
FILE_RIGHTS = 0b1100000000000111
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
DENIED = {  # socket unshare setns mount ptrace process_vm_* kcmp bpf userfaultfd *key* perf open_by_handle ipc memfd
    "x86_64": (
        41,
        272,
        308,
        165,
        101,
        310,
        311,
        312,
        321,
        323,
        248,
        249,
        250,
        298,
        304,
        29,
        64,
        68,
        319,
    ),
    "aarch64": (
        198,
        97,
        268,
        40,
        117,
        270,
        271,
        272,
        280,
        282,
        217,
        218,
        219,
        241,
        265,
        194,
        190,
        186,
        279,
    ),
}
# pidfd_*, io_uring, new ways to mount
DENIED_EVERYWHERE = (424, 425, 426, 427, 428, 429, 430, 432, 438, 442)
DENIED_WEAK = {  # tkill rt_sigqueueinfo rt_tgsigqueueinfo setpriority sched_set* ioprio_set
    "x86_64": (200, 129, 297, 141, 142, 144, 203, 314, 251),
    "aarch64": (130, 138, 240, 140, 118, 119, 122, 274, 30),
}
IN_PART = {  # clone prlimit kill tgkill fcntl ioctl
    "x86_64": (56, 302, 62, 234, 72, 16),
    "aarch64": (220, 261, 129, 131, 25, 29),
}
CLONE3, NO_SUCH_CALL, NOT_PERMITTED = 435, 38, 1
SET_OWNER = ((4, 8), (4, 15), (5, 0x8901), (5, 0x8902))  # of fcntl and ioctl: who gets a signal
libc = ctypes.CDLL(None, use_errno=True)


def close(limits: dict[str, Any]) -> None:
    """Returns in a process that is closed off; the one that came here may stay outside and wait for it."""
    level, uid = limits["level"], limits["uid"]
    if level == "namespaces":
        unshare()
    prctl(DUMPABLE, 0)  # neither traced nor looked into by a process of the same user
    if level != "bubblewrap":
        fork_off(limits["life"], level)
    if level == "namespaces":
        new_root(limits)
    os.chdir(limits["folder"])
    os.environ.clear()
    os.environ.update(
        HOME=limits["folder"], TMPDIR=limits["folder"], PATH="/usr/bin:/bin", LANG="C.UTF-8"
    )
    limit(limits)
    prctl(NO_NEW_PRIVILEGES, 1)
    if level == "weak":
        landlock(limits)
    drop_rights(uid, READ_ALL if level == "weak" and limits["hidden"] else 0)
    if level != "bubblewrap":
        prctl(DEATH, signal.SIGKILL)
    seccomp(level == "weak")


def prctl(option: int, value: int) -> None:
    libc.prctl(option, value, 0, 0, 0)


def checked(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str | None = None
) -> None:
    texts = [text if text is None else text.encode() for text in (source, target, kind, options)]
    checked(libc.mount(*texts[:3], flags, texts[3]), f"mount {target}")


def unshare() -> None:
    """No network, an own table of processes and of mounts. Root needs no user namespace for that."""
    uid, gid = os.getuid(), os.getgid()
    checked(libc.unshare(NEWNS | NEWIPC | NEWPID | NEWNET | (NEWUSER if uid else 0)), "unshare")
    if uid:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)


def fork_off(life: int, level: str) -> None:
    """Go on in a child. The parent ends it, and all that it started, when it exits or when Assay lets go of `life`."""
    if level == "weak":
        prctl(SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        os.close(life)
        return
    os.closerange(0, life)
    os.closerange(life + 1, 256)
    ended, status = 0, 0
    while not ended and not select.select([life], [], [], 0.02)[0]:
        ended, status = os.waitpid(child, os.WNOHANG)
    if not ended:
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if level == "weak":
        end_all_below()
    os._exit(code if code >= 0 else 128 - code)


def end_all_below() -> None:
    """Kill what the code started until nothing is left: it falls to us when its parent ends."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        parents: dict[int, int] = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError), open(f"/proc/{name}/stat") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
        below = {os.getpid()}
        while more := {pid for pid, parent in parents.items() if parent in below} - below:
            below |= more
        if len(below) == 1:
            return
        for pid in below - {os.getpid()}:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def new_root(limits: dict[str, Any]) -> None:
    """A root that has nothing but what Python needs, read-only, and a small folder in memory."""
    sources = [(path, os.open(path, os.O_PATH | os.O_NOFOLLOW)) for path in limits["readable"]]
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID, "size=1m,mode=0755")
    os.umask(0o022)
    for name in ("/tmp/proc", "/tmp/tmp"):
        os.mkdir(name)
    mount(
        "tmpfs",
        "/tmp/tmp",
        "tmpfs",
        MS_NOSUID | MS_NODEV,
        f"size={limits['files']},mode=1777,nr_inodes=1000",
    )
    for path, source in sources:
        target = "/tmp" + path
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.islink(path):
            os.symlink(os.readlink(path), target)
            continue
        if os.path.isdir(f"/proc/self/fd/{source}"):
            os.makedirs(target, exist_ok=True)
        else:
            open(target, "w").close()
        mount(f"/proc/self/fd/{source}", target, None, MS_BIND | MS_REC)
        os.close(source)
    with suppress(OSError):  # some containers forbid it; then there is none
        mount("proc", "/tmp/proc", "proc", MS_NOSUID | MS_NODEV)
    for place, how, set_and_cleared in (
        (b"/tmp", AT_RECURSIVE, (RDONLY | NOSUID, 0)),
        (b"/tmp/tmp", 0, (0, RDONLY)),
    ):
        attributes = (ctypes.c_uint64 * 4)(*set_and_cleared)
        checked(libc.syscall(MOUNT_SETATTR, -1, place, how, attributes, 32), "mount_setattr")
    os.chdir("/tmp")
    checked(libc.pivot_root(b".", b"."), "pivot_root")
    checked(libc.umount2(b".", MNT_DETACH), "umount")


def limit(limits: dict[str, Any]) -> None:
    for name, value in (
        (resource.RLIMIT_CPU, int(limits["seconds"]) + 1),
        (resource.RLIMIT_AS, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["files"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(name)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (value, value))


def landlock(limits: dict[str, Any]) -> None:
    """Files: what Python needs can be read, our folder be written. No TCP, no signals to others. As far as it goes."""
    version = min(libc.syscall(CREATE_RULESET, None, 0, 1), 6)
    if version < 1:
        return
    every = (1 << ALL_RIGHTS[min(version, 5) - 1]) - 1
    handled = (ctypes.c_uint64 * 3)(every, 0b11, 0b11)
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = checked(libc.syscall(CREATE_RULESET, handled, size, 0), "landlock_create_ruleset")
    for path, rights in [
        (path, READ_WRITE if path == os.devnull else READ) for path in limits["readable"]
    ] + [(limits["folder"], every)]:
        place = os.open(path, os.O_PATH)
        rights &= every if os.path.isdir(path) else every & FILE_RIGHTS
        rule = struct.pack("=Qi", rights, place)
        checked(libc.syscall(ADD_RULE, rules, 1, rule, 0), f"landlock_add_rule {path}")
        os.close(place)
    checked(libc.syscall(RESTRICT_SELF, rules, 0), "landlock_restrict_self")
    os.close(rules)


def drop_rights(uid: int, kept: int) -> None:
    """Root becomes a user of its own, so that its processes are counted alone. Nobody keeps a capability."""
    if not os.getuid():
        prctl(KEEP_CAPABILITIES, 1)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header, data = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)(kept, kept)
    checked(libc.capset(header, data), "capset")


def seccomp(weak: bool) -> None:
    """No sockets, no new namespaces, no look into other processes, no memory beside the limits. `weak`: no signals."""
    machine = os.uname().machine
    if machine not in DENIED:
        return
    load, equal, any_bit, at_least, result = 0x20, 0x15, 0x45, 0x35, 0x06
    allow, refuse = (result, 0, 0, 0x7FFF0000), (result, 0, 0, 0x50000 | NOT_PERMITTED)
    number = (load, 0, 0, 0)
    program = [
        (load, 0, 0, 4),
        (equal, 1, 0, ARCHITECTURE[machine]),
        (result, 0, 0, 0x80000000),
        number,
    ]
    program += [(at_least, 0, 1, 0x40000000), refuse]
    program += [(equal, 0, 1, CLONE3), (result, 0, 0, 0x50000 | NO_SUCH_CALL)]
    for call in DENIED[machine] + DENIED_EVERYWHERE + (DENIED_WEAK[machine] if weak else ()):
        program += [(equal, 0, 1, call), refuse]
    clone, prlimit, kill, tgkill, *_ = IN_PART[machine]
    parts = [(clone, 0, (any_bit, 0, 1, NAMESPACES)), (prlimit, 0, (equal, 1, 0, 0))]
    if weak:
        parts += [(call, 0, (equal, 1, 0, os.getpid())) for call in (kill, tgkill)]
        parts += [
            (IN_PART[machine][which], 1, (equal, 0, 1, command)) for which, command in SET_OWNER
        ]
    for call, argument, condition in parts:
        program += [(equal, 0, 4, call), (load, 0, 0, 16 + 8 * argument), condition, refuse, number]
    code = b"".join(struct.pack("=HBBI", *step) for step in [*program, allow])
    text = ctypes.create_string_buffer(code, len(code))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program) + 1, ctypes.addressof(text)))
    checked(libc.prctl(SECCOMP, 2, head, 0, 0), "seccomp")
