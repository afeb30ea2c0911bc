"""The supervisor of one task: a small process that outlives the service and knows how the command ended.

Started detached and never waited for. It alone holds the folder's lock, so a task runs once whatever dies
around it. It adopts whatever the command's processes leave behind (PR_SET_CHILD_SUBREAPER) and ends that with
the command; the command in turn does not outlive its supervisor (PR_SET_PDEATHSIG). Only small modules are
imported.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from pai_scheduler.engine.logs.writer import DEFAULT_LIMIT, TaskLogWriter

from . import procfs, ssh_server
from .task_cgroup import TaskGroup
from .task_folder import (
    DISK_ORDER,
    SSH_ORDER,
    Failure,
    LaunchSpec,
    TaskFolder,
    TaskPhase,
    TaskRecord,
    copy_folder,
    ring,
)

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36
_CHUNK = 256 * 1024
_LOCK_ATTEMPTS, _LOCK_PAUSE = 200, 0.01
_MAX_WAIT = 3600.0
_TITLE = ctypes.create_string_buffer(b"pai-task")
_libc_prctl = ctypes.CDLL(None).prctl
_libc_prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4


def supervise(folder: Path, doorbell: Path) -> None:
    """Run the task prepared in `folder` to its end, unless it ran or ended before; ring at each change."""
    os.setsid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        # at a shutdown the command gets them too; how it ends on them is what is to be written down
        signal.signal(number, signal.SIG_IGN)
    _prctl(_PR_SET_NAME, ctypes.addressof(_TITLE))
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    files = TaskFolder(folder)
    try:
        # before the lock: who finds it taken can be sure that what he writes here is read. For reading and
        # writing, or it would be at its end whenever a writer leaves
        control = os.open(files.control, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    if _lock_for_good(files) is None or not files.take():
        return
    _Task(files, doorbell, control).run()


def _lock_for_good(files: TaskFolder) -> int | None:
    """Take the lock; the service may have it for a moment, another supervisor of the same task for long."""
    for _ in range(_LOCK_ATTEMPTS):
        if (lock := files.lock()) is not None:
            return lock
        if files.read()[0] is not TaskPhase.PREPARED:
            return None
        time.sleep(_LOCK_PAUSE)
    return None


class _Task:
    def __init__(self, files: TaskFolder, doorbell: Path, control: int) -> None:
        self._files, self._doorbell, self._control = files, doorbell, control
        self._record: TaskRecord = {"supervisor": os.getpid()}
        self._pid = 0
        self._status: int | None = None  # of the command, as waitpid gives it
        self._kill_at: float | None = None  # on the monotonic clock, once asked to end the task
        self._over_storage = False  # that is why it was asked to
        self._pipes: dict[int, int] = {}  # descriptor: stream
        self._group = TaskGroup([])
        self._ssh_server = 0

    def run(self) -> None:
        try:
            spec = self._files.launch_spec()
            self._group = TaskGroup(spec["groups"])
            failure = self._start(spec)
        except Exception as error:
            failure = {
                "kind": "internal",
                "errno": getattr(error, "errno", 0) or 0,
                "detail": traceback.format_exc(),
            }
        if failure:
            self._end_tree()
            with contextlib.suppress(OSError):  # the disk may be what failed; the command has not run
                self._files.keep_taken()
            self._finish({"cause": "launch-failed", "exit_code": None, "failure": _short(failure)})
            return
        try:
            self._watch(lambda: self._status is not None)
            end = self._end(spec)
            if spec.get("hold") and end["exit_code"] and self._kill_at is None:
                self._hold(end)
                # it has come to its end: what happens from now on happens to what it left
                self._watch(lambda: self._kill_at is not None)
                end["cause"] = self._why_killed(spec, end)
            self._end_tree()
            self._drain()
        except Exception:
            self._end_tree()
            failure = {"kind": "internal", "errno": 0, "detail": traceback.format_exc()}
            self._finish({"cause": "lost", "exit_code": None, "failure": _short(failure)})
            return
        self._finish({**end, "dropped": self._log.dropped, "shortened": self._log.shortened})

    def _end(self, spec: LaunchSpec) -> TaskRecord:
        """Return how the command ended."""
        code = os.waitstatus_to_exitcode(self._status or 0)
        code = 128 - code if code < 0 else code
        end: TaskRecord = {"cause": "exited", "exit_code": code}
        if self._kill_at is not None:
            end["cause"] = self._why_killed(spec, end)
        if kills := self._group.oom_kills():
            end["oom_kills"], end["memory_mb"] = kills, spec["memory_mb"]
            if code and self._kill_at is None:
                end["cause"] = "oom"
        return end

    def _why_killed(self, spec: LaunchSpec, end: TaskRecord) -> str:
        if not self._over_storage:
            return "killed"
        end["storage_gb"] = spec.get("storage_gb") or 0
        return "disk"

    def _hold(self, end: TaskRecord) -> None:
        """Write that the command has failed and that the task stays."""
        self._record.update({"held": _now(), "held_cause": end["cause"], "exit_code": end["exit_code"]})
        if "memory_mb" in end:
            self._record["memory_mb"] = end["memory_mb"]
        self._files.note(self._record, durably=True)
        ring(self._doorbell, self._files.path.name)

    def _start(self, spec: LaunchSpec) -> Failure | None:
        try:
            self._group.make()
        except OSError as error:
            return {"kind": "limits", "errno": error.errno or 0, "detail": str(error.filename)}
        self._wakeup, wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        pipes = [os.pipe() for _ in range(2)]
        report, report_write = os.pipe()
        permission, permission_write = os.pipe()
        try:
            self._pid = self._group.fork()
        except OSError as error:
            return {"kind": "exec", "errno": error.errno or 0}
        if self._pid == 0:
            os.close(permission_write)
            outputs = [write for _, write in pipes]
            _become(spec, self._files.work, self._group, outputs, report_write, permission)
        os.close(report_write)
        os.close(permission)
        # meanwhile the child gets ready; what a user sees of the command comes after
        try:
            self._log = TaskLogWriter(self._files.log, spec.get("log_bytes", DEFAULT_LIMIT))
        except OSError as error:
            return {"kind": "log", "errno": error.errno or 0}
        self._files.keep_taken()
        with contextlib.suppress(BrokenPipeError):  # it has failed, and says why
            os.write(permission_write, b"\n")
        os.close(permission_write)
        self._record["started"] = _now()
        for stream, (read, write) in enumerate(pipes):
            os.close(write)
            os.set_blocking(read, False)
            self._pipes[read] = stream
        with open(report, "rb") as answers:
            answer = answers.read()
        if answer:
            failure: Failure = json.loads(answer)
            return failure
        self._record["pid"] = self._pid
        # a crash of the machine ends the command, and that it may have run is durable already
        self._files.note(self._record, durably=False)
        ring(self._doorbell, self._files.path.name)
        return None

    def _watch(self, over: Callable[[], bool]) -> None:
        """Pass output on and obey orders, until it is over."""
        poll = select.poll()
        for file in (self._control, self._wakeup, *self._pipes):
            poll.register(file, select.POLLIN)
        forced = False
        while not over():
            timeout = None
            if self._kill_at is not None and not forced:
                timeout = min(max(0.0, self._kill_at - time.monotonic()), _MAX_WAIT) * 1000
            for file, _ in poll.poll(timeout):
                if file in self._pipes:
                    if not self._pump(file):
                        poll.unregister(file)
                        os.close(file)
                        del self._pipes[file]
                elif file == self._control:
                    self._obey(os.read(self._control, 4096))
                else:
                    os.read(self._wakeup, 4096)
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self._signal(signal.SIGKILL)
                forced = True
            self._reap()

    def _obey(self, orders: bytes) -> None:
        """Start the SSH server, or end the task.

        A line is a grace in seconds then: SIGTERM now, SIGKILL when it is over; the shortest counts.

        A task beyond its storage has none. The first order says why the task ended.
        """
        for line in orders.decode().split():
            if line == SSH_ORDER:
                if not self._ssh_server:
                    with contextlib.suppress(OSError):  # no process to spare: the caller is told
                        self._ssh_server = ssh_server.start(self._files.path)
                continue
            asked_before = self._kill_at is not None
            if line == DISK_ORDER and not asked_before:
                self._over_storage = True
            grace = 0.0 if line == DISK_ORDER else float(line)
            until = time.monotonic() + grace
            self._kill_at = until if self._kill_at is None else min(self._kill_at, until)
            if not asked_before and grace > 0:
                self._signal(signal.SIGTERM)

    def _signal(self, number: signal.Signals) -> None:
        if self._status is not None:  # its number may be another's now
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getpgid(self._pid) != self._pid:  # it went into another group
                os.kill(self._pid, number)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._pid:
                self._status = status
            if pid == self._ssh_server:
                self._ssh_server = 0

    def _end_tree(self) -> None:
        """End all that is left: whose parent ends becomes our child, so in the end there is nobody."""
        if self._ssh_server:
            ssh_server.dismiss(self._ssh_server)
        if self._group.processes():
            self._group.end(patience=1.0)
        while True:
            for child in procfs.children(os.getpid()):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def _drain(self) -> None:
        """Pass on what is still in the pipes; nobody is left to write more."""
        for file in self._pipes:
            while self._pump(file, until_empty=True):
                pass

    def _pump(self, file: int, until_empty: bool = False) -> bool:
        """Pass one piece of output on; False at its end (or, on demand, when there is nothing now)."""
        try:
            data = os.read(file, _CHUNK)
        except BlockingIOError:
            return not until_empty
        self._log.append(self._pipes[file], data, time.time_ns())
        return bool(data)

    def _finish(self, end: TaskRecord) -> None:
        self._record.update(end)
        self._record["ended"] = _now()
        self._files.finish(self._record)
        self._group.remove()
        ring(self._doorbell, self._files.path.name)


def _become(
    spec: LaunchSpec, work: Path, group: TaskGroup, outputs: list[int], report: int, permission: int
) -> None:
    """Turn this forked process into the command; if that fails, report why and end.

    What a second launch would find of this one waits until a byte comes from `permission`; at its end,
    nothing is to run.
    """
    kind = "exec"
    try:
        parent = os.getppid()
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            if signal.getsignal(number) is not signal.SIG_DFL:
                with contextlib.suppress(OSError):
                    signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before it could be followed
            os._exit(1)
        kind = "limits"
        group.join()
        kind = "exec"
        environment = {_bytes(name): _bytes(value) for name, value in spec["env"].items()}
        if not os.read(permission, 1):
            os._exit(1)
        if source := spec.get("code"):
            kind = "code"
            copy_folder(source, work / os.path.basename(source))  # noqa: PTH119 - a name that is no text has none
            kind = "exec"
        for mounted, target in spec.get("mounts", ()):
            kind = "mount"
            (work / target).parent.mkdir(parents=True, exist_ok=True)
            (work / target).symlink_to(mounted)
            kind = "exec"
        for stream, file in enumerate(outputs, start=1):
            os.dup2(file, stream)
        os.chdir(work)
        os.execve(spec["argv"][0], [_bytes(argument) for argument in spec["argv"]], environment)  # noqa: S606
    except BaseException as error:
        code = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        os.write(report, json.dumps({"kind": kind, "errno": code, "detail": str(error)}).encode())
    os._exit(1)


def _prctl(option: int, value: int) -> None:
    _libc_prctl(option, value, 0, 0, 0)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _short(failure: Failure) -> Failure:
    """Cut a failure to what fits into the reserved space."""
    return {**failure, "detail": failure.get("detail", "")[-1000:]}


def _now() -> int:
    return time.time_ns() // 1_000_000
