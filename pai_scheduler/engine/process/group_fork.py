"""Forks into a cgroup of version 2, which costs no more than a fork.

To move a process that is there already, the kernel waits until nobody on the machine is in the middle of a
fork or an exit: 10 ms and more. Only small modules are imported: every supervisor loads this one.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import struct

#: struct clone_args of Linux 5.7, which is the first to know the cgroup
_ARGUMENTS = struct.Struct("=11Q")
_CLONE_INTO_CGROUP = 0x200000000
#: a number that all machines share but for those that are not named here
_CLONE3, _MACHINES = 435, ("x86_64", "aarch64", "ppc64le", "riscv64", "s390x")

# keeps the interpreter's lock, which the child has to hold too
_libc_syscall = ctypes.PyDLL(None, use_errno=True).syscall
_libc_syscall.restype = ctypes.c_long


def fork_into(group: str) -> int:
    """Fork as `os.fork` does, the child in a group of version 2; OSError where that cannot be done here.

    Only for a process of one thread: nothing is done about the locks of others. What was registered with
    `os.register_at_fork` is not called.
    """
    if os.uname().machine not in _MACHINES:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), group)
    folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        arguments = _ARGUMENTS.pack(_CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, folder)
        pid: int = _libc_syscall(
            ctypes.c_long(_CLONE3),
            ctypes.create_string_buffer(arguments, _ARGUMENTS.size),
            ctypes.c_size_t(_ARGUMENTS.size),
        )
        if pid < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), group)
        return pid
    finally:
        os.close(folder)
