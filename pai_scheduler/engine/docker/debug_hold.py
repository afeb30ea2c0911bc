"""The hold of a debugged task whose command failed: a pipe that outlives the service.

In the container a wrapper waits for the command. After a failure it writes one line to a named pipe on this
machine, which is all of it that the container sees: nothing is stored there, and nobody has to ask again and
again. While no service listens, the wrapper waits in opening the pipe, so that what happened meanwhile is
told to the next one. What was heard is written down, and the pipe is opened no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from pai_scheduler.core.events import EndCause
from pai_scheduler.job.task import TaskRef

#: Where the container sees the pipe: in no folder that Docker would have to make for it, as that would not
#: be root's in the container where the daemon maps users.
PIPE = "/pai-held"

#: Becomes the user's command, which is "$1" and so never read by this text. What follows it are variables
#: whose names no shell variable can have: a plain sh leaves them out of what it starts, bash hands them on.
RUN = """\
if command -v bash >/dev/null 2>&1; then
  if [ $# = 1 ] || ! command -v env >/dev/null 2>&1; then exec bash -c "$1"; fi
  set -- "$@" bash -c "$1"
  shift
  exec env -- "$@"
fi
exec sh -c "$1"
"""

#: Runs the user's command, which is "$1" and so never read by this text. The wrapper gets the signals that
#: are meant for the command's process group too: it goes on, and so knows how the command took them. Its own
#: stderr is closed, as shells say there what became of a child; the command has the real one.
ENTRY = f"""\
trap : HUP INT QUIT PIPE ALRM TERM USR1 USR2
exec 3>&2 2>/dev/null
(exec 2>&3 3>&-
{RUN})
code=$?
[ "$code" = 0 ] && exit 0
oom=0
for file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  if [ -r "$file" ]; then
    while read -r key value; do if [ "$key" = oom_kill ]; then oom=$value; fi; done <"$file"
  fi
done
uptime=0
read -r uptime rest </proc/uptime
trap - HUP INT QUIT ALRM TERM USR1 USR2
trap '' PIPE
while :; do
  echo "$code $oom $uptime" >{PIPE}
  sleep 1
done
"""

#: exit code, processes ended for their memory limit, seconds since the machine's start
_REPORT = re.compile(rb"([1-9]\d{0,2}) (\d{1,9}) (\d{1,12}(?:\.\d{1,9})?)\n")
_LONGEST_REPORT = 64
#: How long not to listen to a pipe into which something else than a report is written.
_NONSENSE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class HoldReport:
    """Outcome of a held task's command, and the time of its end (ms since the epoch)."""

    time: int
    cause: EndCause
    exit_code: int


class Holds:
    """The pipes of the tasks that may be held, and what was heard, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def make(self, task: TaskRef) -> Path:
        """Make a task's pipe, unless it is there; anybody may write to it, as any user can be the image's."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        pipe = self.pipe(task)
        with contextlib.suppress(FileExistsError):
            os.mkfifo(pipe)
        pipe.chmod(0o622)
        return pipe

    def may_hold(self, task: TaskRef) -> bool:
        """Return whether a task was launched with a pipe."""
        return self.pipe(task).exists()

    async def heard(self, task: TaskRef) -> HoldReport:
        """Wait until a task's command has failed."""
        if (known := self._read(task)) is not None:
            return known
        # for reading and writing: with no wrapper at the other end it is not at its end
        pipe = os.open(self.pipe(task), os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            while True:
                await _readable(pipe)
                try:
                    line = os.read(pipe, _LONGEST_REPORT)
                except BlockingIOError:  # the task read it away itself: the wrapper says it again
                    continue
                if found := _REPORT.match(line):
                    report = _report(int(found[1]), int(found[2]) > 0, float(found[3]))
                    self._write(task, report)
                    return report
                await asyncio.sleep(_NONSENSE_SECONDS)
        finally:
            os.close(pipe)

    def forget(self, task: TaskRef) -> None:
        """Remove what there is of a task."""
        self.pipe(task).unlink(missing_ok=True)
        self._record(task).unlink(missing_ok=True)
        self._fresh(task).unlink(missing_ok=True)

    def pipe(self, task: TaskRef) -> Path:
        """Return the place of a task's pipe."""
        return self.folder / task.name

    def _record(self, task: TaskRef) -> Path:
        return self.folder / f"{task.name}.held"

    def _fresh(self, task: TaskRef) -> Path:
        return self.folder / f"{task.name}.new"

    def _read(self, task: TaskRef) -> HoldReport | None:
        try:
            when, cause, code = self._record(task).read_text().split()
        except FileNotFoundError:
            return None
        return HoldReport(int(when), EndCause(cause), int(code))

    def _write(self, task: TaskRef, report: HoldReport) -> None:
        """Keep a report. On a full disk it is not: the wrapper says it once more to the next life."""
        fresh = self._fresh(task)
        with contextlib.suppress(OSError):
            fresh.write_text(f"{report.time} {report.cause} {report.exit_code}\n")
            fresh.rename(self._record(task))


def _report(code: int, oom: bool, uptime: float) -> HoldReport:
    """Turn the wrapper's words into a report; a clock that makes no sense is not believed."""
    ago = time.clock_gettime(time.CLOCK_BOOTTIME) - uptime
    when = time.time() - (ago if uptime and ago > 0 else 0)
    return HoldReport(int(when * 1000), EndCause.OOM if oom else EndCause.EXITED, min(code, 255))


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, wake)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
