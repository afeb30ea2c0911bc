"""Output of a job of Python code, as it comes, beside a progress bar of tqdm's."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, NoReturn, TextIO

from pai_scheduler.i18n import msg

from .job import Change, Task

if TYPE_CHECKING:
    from tqdm.auto import tqdm


# The progress bar of a job of Python code, as tqdm draws it in notebooks, terminals and logs.


class JobProgress:
    """Hears what happens to a job of `total` tasks and shows it; a task is done when its value is here.

    `hear` may be called on any thread; the others on the one whose output the bar belongs to.
    """

    def __init__(self, total: int, locale: str) -> None:
        self._total, self._locale = total, locale
        #: The job's name, once it is submitted.
        self.job = ""
        self._note = ""
        self._running: set[Task] = set()
        self._ended: dict[Task, bool] = {}
        self._bar: tqdm[NoReturn] | None = None
        self._drawn: tuple[int, str] | None = None
        self._drawn_at = 0.0
        self._line_begins = True

    def hear(self, change: Change) -> None:
        """Note something that happened."""
        task = change.task
        if change.kind == "name":
            self.job, self._note = change.message, ""
        elif change.kind in ("waiting", "retry"):
            self._note = change.message
        elif change.kind == "task-started" and task is not None:
            self._running.add(task)
            self._ended.pop(task, None)
            self._note = ""
        elif change.kind == "task-ended" and task is not None:
            self._running.discard(task)
            self._ended[task] = change.outcome is not None and change.outcome.error is None

    @property
    def shown(self) -> bool:
        """Return whether the bar shows what is known."""
        return not (self.job or self._note) or self._drawn == self._state()

    def draw(self, pause: float = 0.0) -> None:
        """Show the job, or what it waits for, `pause` seconds after the last time at the soonest."""
        if self.shown or not self._line_begins or time.monotonic() - self._drawn_at < pause:
            return
        if self._bar is not None:
            self._refresh(self._bar)
            return
        from tqdm.auto import tqdm  # not for programs that show nothing

        self._bar = tqdm(total=self._total, desc=self.job, dynamic_ncols=True)
        self._drawn = 0, ""
        if not self.shown:
            self._refresh(self._bar)

    def write(self, text: str, stream: TextIO) -> None:
        """Write something to the stream, where it does not mix with the bar."""
        if self._bar is not None and self._line_begins:
            self._bar.clear()
        stream.write(text)
        stream.flush()
        self._line_begins = text.endswith("\n")
        if self._bar is not None and self._line_begins:
            self._refresh(self._bar)

    def close(self) -> None:
        """Show what is known, and leave it there."""
        if self._bar is None:
            return
        if not self._line_begins and self._bar.fp.isatty():
            self._bar.fp.write("\n")
        self._line_begins = True
        self._update(self._bar)
        self._bar.close()
        self._bar = None

    def _refresh(self, bar: tqdm[NoReturn]) -> None:
        self._update(bar)
        bar.refresh()
        self._drawn_at = time.monotonic()

    def _update(self, bar: tqdm[NoReturn]) -> None:
        bar.n, words = self._drawn = self._state()
        bar.set_description_str(self.job, refresh=False)
        bar.set_postfix_str(words, refresh=False)

    def _state(self) -> tuple[int, str]:
        done = sum(self._ended.values())
        counts = (
            (len(self._running), msg("{count} running", count=len(self._running))),
            (len(self._ended) - done, msg("{count} failed", count=len(self._ended) - done)),
        )
        words = [text.in_locale(self._locale) for count, text in counts if count]
        return done, ", ".join([*words, self._note] if self._note else words)


# Shows what a job of Python code does and prints, as it comes, in this program's own output.


class OutputWriter:
    """Hears a job of `total` tasks: what it prints goes to the standard output, beside a progress bar.

    Where there are several, each line begins with the name of the task that wrote it.
    """

    def __init__(self, locale: str, total: int = 1) -> None:
        self._several = total > 1
        self._progress = JobProgress(total, locale)
        self._begun: dict[Task, str] = {}
        self._tracebacks: dict[Task, str] = {}

    @property
    def job(self) -> str:
        """Return the job's name; empty before it is submitted."""
        return self._progress.job

    def hear(self, change: Change) -> None:
        """Show something that happened."""
        if change.kind == "output" and change.task is not None:
            self._write(change.task, change.message)
        elif change.kind == "traceback" and change.task is not None:
            self._tracebacks[change.task] = change.message
        else:
            self._progress.hear(change)
            self._progress.draw()

    def finish(self, raised: Task | None = None) -> None:
        """Write the lines that have no end, and the tracebacks but that of the task whose error is raised."""
        for task, text in self._tracebacks.items():
            if task != raised:
                self._write(task, text)
        self._tracebacks.clear()
        for task, rest in self._begun.items():
            if rest:
                self._progress.write(f"{task[0]}-{task[1]} | {rest}\n", sys.stdout)
        self._begun.clear()
        self._progress.close()

    def _write(self, task: Task, text: str) -> None:
        if not self._several:
            self._progress.write(text, sys.stdout)
            return
        # whole lines, so that those of different tasks do not mix
        *lines, self._begun[task] = (self._begun.get(task, "") + text).split("\n")
        if lines:
            named = "".join(f"{task[0]}-{task[1]} | {line}\n" for line in lines)
            self._progress.write(named, sys.stdout)
