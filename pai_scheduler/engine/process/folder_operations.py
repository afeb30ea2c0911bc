"""Blocking operations on task folders, each short, for the engine's threads.

Each takes the folder's lock for itself, so none can disturb a supervisor; a lock that is taken means that the
task runs.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from pai_scheduler.core.events import EndCause
from pai_scheduler.engine.disk_usage import filled_the_disk
from pai_scheduler.engine.hardware import taken_port
from pai_scheduler.i18n import Message, msg

from . import procfs, ssh_server
from .task_cgroup import TaskGroup
from .task_folder import (
    COOKIE,
    DISK_ORDER,
    FULL_DISK,
    SUPERVISOR_ERROR,
    Failure,
    LaunchSpec,
    TaskFolder,
    TaskPhase,
    TaskRecord,
    ring,
)

_log = logging.getLogger(__name__)

_RING_ATTEMPTS, _RING_PAUSE = 200, 0.01
_END_PATIENCE = 5.0


class TaskObservation(NamedTuple):
    """Observed state of a task; `running`: its supervisor has the lock."""

    phase: TaskPhase
    record: TaskRecord
    running: bool = False


def cookie(folder: TaskFolder) -> str:
    """Return what marks a task's processes in their environment."""
    return str(folder.path)


def look(folder: TaskFolder) -> TaskObservation:
    """See how a task is. One whose supervisor is gone is ended first, then it is lost."""
    return _with_lock(folder, lambda: _settle(folder))


def prepare(
    folder: TaskFolder, spec: LaunchSpec, ports: Iterable[int], files: Mapping[str, bytes] | None = None
) -> TaskObservation:
    """Make a task ready for its supervisor, unless it runs or is over; what hinders it is its end."""
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return TaskObservation(TaskPhase.ENDED, _failed("folder", error.errno))

    def step() -> TaskObservation:
        sight = _settle(folder)
        if sight.phase > TaskPhase.PREPARED:
            return sight
        if (port := taken_port(ports)) is not None:
            return _refuse(folder, {**_failed("port", port), "cause": "port-conflict"})
        if absolute := [target for _, target in spec.get("mounts", ()) if target.startswith("/")]:
            return _refuse(folder, _failed("mount", None, absolute[0]))
        if home := spec.get("home"):
            return _refuse(folder, _failed("home", None, home))
        try:
            folder.prepare(spec, files)
        except (OSError, ValueError) as error:
            return _refuse(folder, _failed("folder", getattr(error, "errno", None)))
        return TaskObservation(TaskPhase.PREPARED, {})

    return _with_lock(folder, step)


def refuse(folder: TaskFolder, detail: str) -> TaskObservation:
    """Record that a task cannot be started, unless it was."""

    def step() -> TaskObservation:
        sight = _settle(folder)
        if sight.phase > TaskPhase.PREPARED:
            return sight
        return _refuse(folder, _failed("internal", None, detail))

    return _with_lock(folder, step)


def kill(folder: TaskFolder, grace_seconds: float) -> TaskObservation:
    """Ask for a task's end; one that was never launched is over with this, and never will be."""
    with contextlib.suppress(OSError):  # a full disk: then it is only not remembered
        folder.path.mkdir(parents=True, exist_ok=True)

    def step() -> TaskObservation:
        sight = _settle(folder)
        if sight.phase > TaskPhase.PREPARED:
            return sight
        return _refuse(folder, {"cause": "killed", "exit_code": None, "ended": _now()})

    for _ in range(_RING_ATTEMPTS):
        sight = _with_lock(folder, step)
        # a supervisor that has the lock listens; else it was somebody's short look
        if sight.phase is TaskPhase.ENDED or (
            sight.running and ring(folder.control, repr(float(grace_seconds)))
        ):
            break
        time.sleep(_RING_PAUSE)
    return sight


def end_for_disk(folder: TaskFolder, *, disk_is_full: bool = False) -> None:
    """Have a task ended that wrote more than it may, or than there is room for."""
    if disk_is_full:
        with contextlib.suppress(OSError):  # then only the reason is said less exactly
            (folder.path / FULL_DISK).touch()
    ring(folder.control, DISK_ORDER)


def release(folder: TaskFolder, ended: Path) -> bool:
    """Remove what an ended task left, but not its log nor how it ended: these move to the folder `ended`.

    False: it still runs. The move is one step, so a task is at one place or the other, and those that are
    over cost nothing where the others are looked through.
    """
    if not folder.path.exists():
        return True
    sight = look(folder)
    if sight.phase is TaskPhase.LAUNCHED:
        return False
    group(folder).remove()
    for name in ("launch.json", "control", SUPERVISOR_ERROR, "prepared", ssh_server.FILE):
        (folder.path / name).unlink(missing_ok=True)
    for tree in (folder.work, folder.private):
        _remove_tree(tree)
    os.utime(folder.path)  # from now on its age counts
    folder.path.rename(ended / folder.path.name)
    return True


def group(folder: TaskFolder) -> TaskGroup:
    """Return the cgroups that a task was launched into."""
    try:
        return TaskGroup(folder.launch_spec()["groups"])
    except (OSError, ValueError):
        return TaskGroup([])


def without_supervisor(folders: Iterable[TaskFolder]) -> list[int]:
    """Go through folders of tasks under way; return the numbers of those that have something new to tell."""
    found = []
    for number, folder in enumerate(folders):
        try:
            lock = folder.lock()
        except OSError:
            continue
        if lock is not None:
            os.close(lock)
            found.append(number)
    return found


def _with_lock(folder: TaskFolder, step: Callable[[], TaskObservation]) -> TaskObservation:
    try:
        lock = folder.lock()
    except FileNotFoundError:  # there is no folder: nothing was ever done
        return step()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):  # it never had a lock: again, nothing was done
            return step()
        raise
    if lock is None:
        return TaskObservation(*folder.read(), running=True)
    try:
        return step()
    finally:
        os.close(lock)


def _settle(folder: TaskFolder) -> TaskObservation:
    """Find how a task without a supervisor stands, the lock being ours."""
    phase, record = folder.read()
    error = folder.path / SUPERVISOR_ERROR
    if phase is TaskPhase.PREPARED and error.exists():
        return _refuse(folder, _failed("internal", None, error.read_text()[-1000:]))
    if phase is not TaskPhase.LAUNCHED:
        return TaskObservation(phase, record)
    if not _end_orphans(folder):
        _log.warning("processes of %s cannot be ended; trying on", folder.path.name)
        return TaskObservation(phase, record)
    if "ended" not in record:  # else its supervisor was killed between writing that and the rename
        if "held" in record:  # how the command ended is known, only its hold was cut short
            record.update({"cause": record["held_cause"], "ended": _now()})
        else:
            record.update({"cause": "lost", "exit_code": None, "ended": _now()})
    folder.finish(record)
    return TaskObservation(TaskPhase.ENDED, record)


def _end_orphans(folder: TaskFolder) -> bool:
    """End every process of a task whose supervisor is dead: by its cgroups, and by its mark."""
    groups = group(folder)
    if not groups.end(_END_PATIENCE):
        return False
    groups.remove()
    deadline = time.monotonic() + _END_PATIENCE
    while left := procfs.with_variable(COOKIE, cookie(folder)):
        if time.monotonic() > deadline:
            return False
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
    return True


def _refuse(folder: TaskFolder, record: TaskRecord) -> TaskObservation:
    try:
        folder.finish(record)
    except OSError:
        _log.warning("that %s will not run cannot be written down", folder.path.name, exc_info=True)
    return TaskObservation(TaskPhase.ENDED, record)


def _failed(kind: str, number: int | None, detail: str = "") -> TaskRecord:
    failure: Failure = {"kind": kind, "errno": number or 0, "detail": detail}
    return {"cause": "launch-failed", "exit_code": None, "ended": _now(), "failure": failure}


def _remove_tree(folder: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        try:
            # most short tasks leave nothing, and to look for it costs more than this
            with contextlib.suppress(OSError):
                return folder.rmdir()
            # (its task may have put something else in its place, and what a link leads to is not ours)
            if folder.is_symlink() or folder.is_file():
                return folder.unlink()
            shutil.rmtree(folder)
        except PermissionError:  # the task took its owner's rights from folders
            folder.chmod(0o700)
            for above, names, _ in os.walk(folder):
                for inner in (Path(above, name) for name in names):
                    if not inner.is_symlink():
                        inner.chmod(0o700)
            shutil.rmtree(folder)


def _now() -> int:
    return time.time_ns() // 1_000_000


# Exit reasons of tasks that did not end by themselves, as sentences.


def port_taken(port: int) -> Message:
    """Return a sentence that says that another program has a task's port."""
    return msg(
        "Port {port} of this machine is taken by another program. Where the job names it, give another "
        "beginAt, or 0; one that was chosen is another one at the next try.",
        port=port,
    )


def cause_and_reason(record: TaskRecord) -> tuple[EndCause, Message | None]:
    """Return why a task ended, by its record, and what there is to say about that."""
    cause = EndCause(record.get("cause", EndCause.LOST))
    failure = record.get("failure")
    reason: Message | None = None
    if cause is EndCause.LOST:
        reason = _lost(failure)
    elif cause is EndCause.OOM:
        reason = msg(
            "The task used more than its {memory} MB of memory, and was ended. Ask for more, or use less.",
            memory=record.get("memory_mb"),
        )
    elif cause is EndCause.DISK and record.get("disk_was_full"):
        reason = filled_the_disk()
    elif cause is EndCause.DISK:
        reason = msg(
            "The task wrote more than its {storage} GB to its working folder, and was ended. Raise "
            "storageGB, or write less.",
            storage=record.get("storage_gb"),
        )
    elif failure and cause is EndCause.LAUNCH_FAILED:
        cause, reason = _launch_failed(failure)
    elif failure and cause is EndCause.PORT_CONFLICT:
        reason = port_taken(failure.get("errno", 0))
    if dropped := record.get("dropped"):
        lost = msg("The disk for logs is full: the last {bytes} bytes of its output are lost.", bytes=dropped)
        reason = msg("{first} {second}", first=reason, second=lost) if reason else lost
    return cause, reason


def _lost(failure: Failure | None) -> Message:
    if failure:
        return msg(
            "The process that watched over the task failed, so the task was ended: {problem}",
            problem=failure.get("detail", "").strip().rpartition("\n")[2],
        )
    return msg(
        "The process that watched over the task was ended (or the machine was), so how the task ended is not "
        "known."
    )


def _launch_failed(failure: Failure) -> tuple[EndCause, Message]:
    number = failure.get("errno", 0)
    problem = os.strerror(number) if number else failure.get("detail", "")
    match failure.get("kind"), number:
        case "exec", errno.E2BIG:
            return EndCause.REFUSED, msg(
                "The command or one of its environment variables is too long for this machine: each must be "
                "shorter than 128 KB, and all together shorter than a fourth of the stack limit."
            )
        case "exec", errno.EINVAL:
            return EndCause.REFUSED, msg(
                "The command or one of its environment variables holds a character that no program can be "
                "given (such as NUL)."
            )
        case "exec", _:
            return EndCause.LAUNCH_FAILED, msg("The command could not be started: {problem}", problem=problem)
        case "limits", _:
            return EndCause.LAUNCH_FAILED, msg(
                "The task's limits could not be set ({file}): {problem}",
                file=failure.get("detail", ""),
                problem=problem,
            )
        case "code", _:
            return EndCause.LAUNCH_FAILED, msg(
                "The code could not be copied into the task's working folder: {problem}", problem=problem
            )
        case "mount", 0:
            return EndCause.REFUSED, msg(
                "The process engine mounts data in the working folder only: give a target without a slash "
                "before it, instead of {target}.",
                target=failure.get("detail", ""),
            )
        case "home", _:
            return EndCause.REFUSED, msg(
                "The process engine has no homes, as nothing can be mounted at {place} for one task alone: "
                "leave extras.home out, and keep what is to stay in the storage.",
                place=failure.get("detail", ""),
            )
        case "mount", _:
            return EndCause.LAUNCH_FAILED, msg("The data could not be mounted: {problem}", problem=problem)
        case (("log" | "folder"), (errno.ENOSPC | errno.EDQUOT)):
            return EndCause.LAUNCH_FAILED, msg(
                "There is no room on the scheduler's disk for the task's folder."
            )
        case (("log" | "folder"), _):
            return EndCause.LAUNCH_FAILED, msg(
                "The task's folder could not be made: {problem}", problem=problem
            )
        case _:
            detail = failure.get("detail", "").strip().rpartition("\n")[2]
            return EndCause.LAUNCH_FAILED, msg("The task could not be started: {problem}", problem=detail)
