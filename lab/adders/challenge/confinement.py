"""Confines a process for good: it gives up all rights that a submission does not need, if the system lets it.

Seccomp (a list of the system calls that are allowed; all others fail): no file is opened for writing, made, moved or
deleted, no socket is opened, no program, process or thread started, no signal sent, no limit changed. Landlock, if the
kernel has it: no file is read outside Python's own folders, no other process's memory is looked at. Limits on memory
and processor time.

All this is applied after torch is imported, so a submission can still compute and import modules. Seccomp needs Linux
on x86-64 or 64-bit ARM; without it, a submission can do whatever its user can.
"""

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys
import sysconfig
from contextlib import suppress

# fmt: off
ALLOWED = {
    "x86_64": (
        0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 19, 20, 21, 23, 24, 25, 27, 28, 32, 35, 39, 60,
        63, 79, 89, 96, 97, 98, 99, 100, 102, 104, 107, 108, 110, 131, 186, 201, 202, 204, 217, 218,
        219, 228, 229, 230, 231, 262, 267, 269, 270, 271, 273, 281, 309, 318, 332, 334, 439,
    ),
    "aarch64": (
        17, 23, 48, 57, 61, 62, 63, 64, 65, 66, 67, 72, 73, 78, 79, 80, 93, 94, 96, 98, 99, 101, 113, 114,
        115, 123, 124, 132, 134, 135, 139, 153, 160, 163, 165, 168, 169, 172, 173, 174, 175, 176, 177,
        178, 179, 214, 215, 216, 222, 226, 232, 233, 278, 291, 293, 439,
    ),
}
# fmt: on
"""Reading, writing to open files, memory, time, locks of threads, and asking for the process's own identity and
folder."""

CLONE3 = 435
OPEN = {"x86_64": ((257, 2), (2, 1)), "aarch64": ((56, 2),)}
"""System calls that open files, and the place of the flags among their arguments."""
FCNTL = {"x86_64": 72, "aarch64": 25}
PRLIMIT = {"x86_64": 302, "aarch64": 261}
SECCOMP = {"x86_64": 317, "aarch64": 277}
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

OWNER = 0x8
"""The bit that is set in those commands of fcntl that have signals sent to another process."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | 0o20000000

ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
UNKNOWN = 0x00050000 | errno.ENOSYS
KILL = 0x80000000
LOAD, EQUAL, ANY_BIT, RETURN = 0x20, 0x15, 0x45, 0x06

LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
FILE_ACCESS = (1 << 13) - 1
"""All that Landlock's first version governs: running, reading, writing, listing, removing and making files."""
READING_A_FILE = 1 << 2
READING = READING_A_FILE | 1 << 3


def confinable() -> bool:
    """Whether this kernel filters system calls, for this kind of processor."""
    if sys.platform != "linux" or platform.machine() not in ALLOWED:
        return False
    asked = ctypes.c_uint32(ALLOW)
    get_action_available = 2
    return _libc().syscall(SECCOMP[platform.machine()], get_action_available, 0, ctypes.byref(asked)) == 0


def confine(memory: int, seconds: int, strictly: bool = True) -> None:
    """Confines this process and its threads.

    Args:
        memory: bytes of address space.
        seconds: seconds of processor time.
        strictly: raise OSError if limits or seccomp are not available. Landlock is left out if the kernel has none.
    """
    for limit, most in (("CORE", 0), ("FSIZE", 0), ("NPROC", 0), ("AS", memory), ("CPU", seconds)):
        with suppress(*(() if strictly else (OSError, ValueError))):
            resource.setrlimit(getattr(resource, f"RLIMIT_{limit}"), (most, most))
    if strictly or confinable():
        libc = _libc()
        _prctl(libc, 1, signal.SIGKILL)  # die with the process that started this one
        _prctl(libc, 38, 1)  # no new privileges: without this, the kernel allows neither of the two below
        _read_only_python(libc)
        _filter_calls(libc)


def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


def _prctl(libc: ctypes.CDLL, option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _read_only_python(libc: ctypes.CDLL) -> None:
    governed = struct.pack("Q", FILE_ACCESS)
    rules = libc.syscall(LANDLOCK_CREATE, governed, ctypes.c_size_t(len(governed)), 0)
    if rules < 0:
        return  # an older kernel; seccomp still keeps files from harm
    folders = {sys.prefix, sys.base_prefix, "/usr/lib", "/usr/share/zoneinfo", "/lib", "/lib64"}
    folders |= {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {"/proc/cpuinfo", "/sys/devices/system/cpu"}  # libraries read these to choose the fastest code
    for path in filter(os.path.exists, folders):
        rights = READING if os.path.isdir(path) else READING_A_FILE
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        libc.syscall(LANDLOCK_ADD, rules, 1, struct.pack("=Qi", rights, place), 0)
        os.close(place)
    if libc.syscall(LANDLOCK_RESTRICT, rules, 0):
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(rules)


def _filter_calls(libc: ctypes.CDLL) -> None:
    machine = platform.machine()
    number, architecture, arguments = 0, 4, range(16, 64, 8)  # where they are in what the filter sees of a call
    allow, refuse = (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)
    program = [(LOAD, 0, 0, architecture), (EQUAL, 1, 0, ARCHITECTURE[machine]), (RETURN, 0, 0, KILL)]
    program += [(LOAD, 0, 0, number)]
    for call in ALLOWED[machine]:
        program += _at(call, allow)
    program += _at(CLONE3, (RETURN, 0, 0, UNKNOWN))  # libc falls back to clone, which is refused
    for call, flags, bits in ((FCNTL[machine], 1, OWNER), *((*opening, WRITING) for opening in OPEN[machine])):
        program += _at(call, (LOAD, 0, 0, arguments[flags]), (ANY_BIT, 0, 1, bits), refuse, allow)
    # prlimit only for this process, 0, and without a new limit: both halves of its address are 0
    words = (arguments[0], arguments[2], arguments[2] + 4)
    checks = [step for word in words for step in ((LOAD, 0, 0, word), (EQUAL, 1, 0, 0), refuse)]
    program += [*_at(PRLIMIT[machine], *checks, allow), refuse]
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    kept = ctypes.create_string_buffer(code, len(code))
    whole = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(kept))
    all_threads = 1
    if libc.syscall(SECCOMP[machine], 1, all_threads, whole):
        raise OSError(ctypes.get_errno(), "seccomp")


def _at(call: int, *steps: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    """The filter's steps for one system call; any other call skips them."""
    return [(EQUAL, 0, len(steps), call), *steps]
