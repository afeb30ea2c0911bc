"""Shows what a job of Python code does and prints, as it comes, in this program's own output."""

from __future__ import annotations

import sys

from .job import Change, Task
from .progress import JobProgress


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
