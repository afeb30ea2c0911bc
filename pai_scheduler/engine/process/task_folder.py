"""A task's folder on disk: what the service and the task's supervisor tell each other; it outlives both."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import shutil
import threading
import time
from collections import deque
from collections.abc import Mapping
from enum import IntEnum
from pathlib import Path
from typing import NotRequired, TypedDict

from pai_scheduler.engine.logs.writer import TaskLogWriter

# Copies a job's code into a task's working folder, for the task to change.
#
# Only small modules are imported: every supervisor loads this one.

_PIECE = 2**20


def copy_folder(source: str | Path, target: Path) -> None:
    """Copy a folder of plain files and folders; OSError. The owner may write to the copy.

    Files that may be run stay so. What is neither a file nor a folder is left out.
    """
    target.mkdir(mode=0o755)
    with os.scandir(source) as entries:
        for entry in entries:
            here = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                copy_folder(entry.path, here)
            elif entry.is_file(follow_symlinks=False):
                _copy_file(entry.path, here, 0o755 if entry.stat().st_mode & 0o111 else 0o644)


def _copy_file(source: str, target: Path, mode: int) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            while os.sendfile(writing, reading, None, _PIECE):
                pass
        finally:
            os.close(writing)
    finally:
        os.close(reading)


# A task's folder on disk: what the service and the task's supervisor tell each other; it outlives both.
#
# One small file, never longer than what was reserved for it, changes its name as the task goes on:
# `prepared` → `launched` (the command may run from now on, and never again) → `exit.json`. So the exit code
# is kept on a full disk too. A process that changes that file holds the folder's `lock`; the supervisor
# holds it for as long as the task runs, or is held after the failure of its command. Only small modules are
# imported: every supervisor loads this one.

#: Bytes reserved for the record before the start.
RECORD_SIZE = 4096

#: Marks a task's processes in their environment, for those that no cgroup holds.
COOKIE = "PAI_PROCESS_ENGINE_TASK"


#: What the supervisor is told through `control`, a line each: the seconds that the task has for its end, or
#: that it is ended at once because it wrote more than it may, or that its SSH server is wanted (this one only
#: where the launch has an `ssh_port`: supervisors that an earlier version started do not know it).
DISK_ORDER, SSH_ORDER = "disk", "ssh"

#: Says of a task that was ended for its disk that it kept within its limit, and the disk itself was full.
FULL_DISK = "full-disk"

#: Where a supervisor that fails before it takes the task says why.
SUPERVISOR_ERROR = "supervisor-error"


class TaskPhase(IntEnum):
    """Phase that a task has reached."""

    NOTHING = 0
    PREPARED = 1
    LAUNCHED = 2
    ENDED = 3


#: What is to run; and the small file of above before it has its first name.
_LAUNCH, _NEW = "launch.json", "prepared.new"
_FILES = {TaskPhase.PREPARED: "prepared", TaskPhase.LAUNCHED: "launched", TaskPhase.ENDED: "exit.json"}


class Failure(TypedDict, total=False):
    """Failure to start a command: `kind` is exec, limits, log or internal."""

    kind: str
    errno: int
    detail: str


class TaskRecord(TypedDict, total=False):
    """Record of a task. Times in ms since the epoch; `pid`: the command, `supervisor`: its watcher.

    `disk_was_full`: it was ended for that, and not for its own limit.

    `held`: when its command failed, of a task that stays then, and `held_cause` why; `exit_code` is set too.
    `dropped`: bytes of output that a full disk lost; `shortened`: more was printed than is kept.
    `memory_mb`, `storage_gb`: the limit that ended it.
    `oom_kills`: how many of its processes were killed for its memory.
    """

    supervisor: int
    pid: int
    started: int
    held: int
    held_cause: str
    ended: int
    cause: str
    exit_code: int | None
    dropped: int
    shortened: bool
    oom_kills: int
    memory_mb: int
    storage_gb: int
    disk_was_full: bool
    failure: Failure


class GroupSpec(TypedDict):
    """A cgroup to make and join, and what to write into its files, in this order."""

    path: str
    files: list[tuple[str, str]]


class LaunchSpec(TypedDict):
    """Launch specification for the supervisor; `memory_mb` only for the sentence about an OOM kill.

    `hold`: stay when the command fails. `log_bytes`: most bytes of the log. `storage_gb`: who measures the
    working folder gives the order to end a task that wrote more. `gpus`: the UUIDs of its real ones.
    `code`: the folder that is copied into the working folder. `mounts`: folders, and the names by which the
    working folder has links to them. `home`: where the task wants its user's home, if it does. `ports`: those
    that it was given. `ssh_port`: where its SSH server is to listen, if it is to have one.
    """

    argv: list[str]
    env: dict[str, str]
    groups: list[GroupSpec]
    memory_mb: int
    hold: NotRequired[bool]
    log_bytes: NotRequired[int]
    storage_gb: NotRequired[int | None]
    gpus: NotRequired[list[str]]
    code: NotRequired[str | None]
    mounts: NotRequired[list[tuple[str, str]]]
    home: NotRequired[str]
    ports: NotRequired[list[int]]
    ssh_port: NotRequired[int | None]


class TaskFolder:
    """The files of one task below `path`."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def work(self) -> Path:
        """Return the task's working folder."""
        return self.path / "work"

    @property
    def private(self) -> Path:
        """Return the folder of the small files that the task alone may read."""
        return self.path / "private"

    @property
    def log(self) -> Path:
        """Return the folder of the task's log."""
        return self.path / "log"

    @property
    def control(self) -> Path:
        """Return the FIFO through which the supervisor is asked to end the task."""
        return self.path / "control"

    def lock(self) -> int | None:
        """Take the lock; None where another process has it. Closing the descriptor gives it back."""
        file = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return None
        return file

    def read(self) -> tuple[TaskPhase, TaskRecord]:
        """Return how far the task is. In the order of the renames, so that none is missed on the way."""
        for phase, name in _FILES.items():
            try:
                content = (self.path / name).read_bytes()
            except FileNotFoundError:
                continue
            record = _parse(content)
            if phase is TaskPhase.ENDED and "ended" not in record:  # spoilt by a crash of the machine
                return phase, {"cause": "lost", "exit_code": None, "ended": time.time_ns() // 1_000_000}
            if record.get("cause") == "disk" and (self.path / FULL_DISK).exists():
                record["disk_was_full"] = True
            return phase, record
        return TaskPhase.NOTHING, {}

    def make_ahead(self) -> None:
        """Make what `prepare` would make, before it is known what is to run."""
        self._make()
        for name in (_LAUNCH, _NEW):
            _write(self.path / name, b"")

    def prepare(self, spec: LaunchSpec, files: Mapping[str, bytes] | None = None) -> None:
        """Write down what to run, with the task's own small files, and reserve the space for how it ends.

        The caller holds the lock.
        """
        self._make()
        if files:
            self.private.mkdir(mode=0o700, exist_ok=True)
        for name, content in (files or {}).items():
            _write(self.private / name, content)
        _write(self.path / _LAUNCH, json.dumps(spec).encode())
        self._reserve()

    def give(self, files: Mapping[str, bytes]) -> None:
        """Give a task that runs some more small files of its own, each as a whole or not at all."""
        if files:
            self.private.mkdir(mode=0o700, exist_ok=True)
        for name, content in files.items():
            fresh = self.private / f"{name}.new"
            fresh.unlink(missing_ok=True)  # of a service that was killed here
            _write(fresh, content)
            fresh.rename(self.private / name)

    def launch_spec(self) -> LaunchSpec:
        """Read what `prepare` wrote."""
        spec: LaunchSpec = json.loads((self.path / _LAUNCH).read_bytes())
        return spec

    def take(self) -> bool:
        """Mark the task as launched; False where it is not to be. The caller holds the lock.

        A crash of the machine may undo it until `keep_taken` has returned: the command may not run before.
        """
        if self.read()[0] is not TaskPhase.PREPARED:
            return False
        (self.path / _FILES[TaskPhase.PREPARED]).rename(self.path / _FILES[TaskPhase.LAUNCHED])
        return True

    def keep_taken(self) -> None:
        """Wait until it is durable that the task is marked as launched; OSError."""
        with open(self.path / _FILES[TaskPhase.LAUNCHED], "rb") as file:
            os.fsync(file.fileno())
        self._sync_folders()

    def note(self, record: TaskRecord, *, durably: bool) -> None:
        """Write down what is known of a launched task. The caller holds the lock.

        Not `durably`: a crash of the machine may undo it.
        """
        _overwrite(self.path / _FILES[TaskPhase.LAUNCHED], record, durably=durably)

    def finish(self, record: TaskRecord) -> None:
        """Write down how the task ended, or that it never will run. The caller holds the lock."""
        phase, _ = self.read()
        if phase is TaskPhase.NOTHING:
            self._reserve()
            phase = TaskPhase.PREPARED
        name = _FILES[TaskPhase.LAUNCHED if (self.path / _FILES[TaskPhase.LAUNCHED]).exists() else phase]
        _overwrite(self.path / name, record, durably=True)
        (self.path / name).rename(self.path / _FILES[TaskPhase.ENDED])
        if phase is TaskPhase.PREPARED:
            self._sync_folders()

    def _make(self) -> None:
        self.work.mkdir(exist_ok=True)
        self.log.mkdir(exist_ok=True)
        if not self.control.exists():
            os.mkfifo(self.control, 0o600)

    def _reserve(self) -> None:
        prepared = self.path / _FILES[TaskPhase.PREPARED]
        prepared.unlink(missing_ok=True)
        _write(self.path / _NEW, b" " * RECORD_SIZE)
        (self.path / _NEW).rename(prepared)

    def _sync_folders(self) -> None:
        for folder in (self.path, self.path.parent):
            file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(file)
            finally:
                os.close(file)


def ring(doorbell: Path, line: str) -> bool:
    """Write a line to a FIFO that somebody may be reading; never wait. False where nobody reads."""
    try:
        bell = os.open(doorbell, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.ENXIO:
            return False
        raise
    try:
        os.write(bell, line.encode() + b"\n")
    except (BlockingIOError, BrokenPipeError):
        return False
    finally:
        os.close(bell)
    return True


def _parse(content: bytes) -> TaskRecord:
    try:
        record: TaskRecord = json.loads(content.strip() or b"{}")
    except ValueError:  # read while it was being written
        return {}
    return record


def _write(path: Path, content: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(file, view) :]
    finally:
        os.close(file)


def _overwrite(path: Path, record: TaskRecord, *, durably: bool) -> None:
    """Write a record into the space that was reserved for it, in one piece."""
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(file, json.dumps(record).encode().ljust(RECORD_SIZE), 0)
        if durably:
            os.fdatasync(file)
    finally:
        os.close(file)


# Task folders made ahead: no start waits for the ten files that a task has, each of which may take 0.5 ms.
#
# Blocking: the engine calls it in its threads.


class SpareFolders:
    """Keeps up to `count` of them below `path`, on the disk of the tasks' folders."""

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._count = path, count
        self._ready: deque[Path] = deque()
        self._numbers = itertools.count()
        self._filling = threading.Lock()

    def open(self) -> None:
        """Begin with none, whatever a service that ran before has left; OSError."""
        shutil.rmtree(self._path, ignore_errors=True)
        self._path.mkdir(mode=0o700, exist_ok=True)

    def give(self, folder: Path) -> None:
        """Make one of them a task's `folder`, if that is not there; nothing happens where there is none."""
        if not self._ready or os.path.lexists(folder):
            return
        with contextlib.suppress(
            IndexError, OSError
        ):  # another thread has the last; another service wiped it
            self._ready.popleft().rename(folder)

    def fill(self) -> None:
        """Make as many as there should be, as far as the disk has room."""
        if not self._filling.acquire(blocking=False):  # somebody is at it
            return
        try:
            while len(self._ready) < self._count:
                # (that of another service on this data folder has another name)
                made = self._path / f"{os.getpid()}-{id(self)}-{next(self._numbers)}"
                _make(TaskFolder(made))
                self._ready.append(made)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
        finally:
            self._filling.release()


def _make(folder: TaskFolder) -> None:
    folder.path.mkdir()
    if (lock := folder.lock()) is not None:
        os.close(lock)
    folder.make_ahead()
    TaskLogWriter(folder.log).close()
