"""Writes what a job of Python code does and prints, as it comes, to this program's own output."""

from __future__ import annotations

import sys

from pai_scheduler.job.messages import msg

from .job import Change, Task

#: What is told of a job besides what it prints.
_TOLD = frozenset({"waiting", "retry"})


class OutputWriter:
    """Hears a job: its output goes to the standard output, what is said about it to the standard error.

    `several`: each line begins with the name of the task that wrote it.
    """

    def __init__(self, locale: str, *, several: bool = False) -> None:
        self._locale, self._several = locale, several
        self._begun: dict[Task, str] = {}
        self._tracebacks: dict[Task, str] = {}
        #: The job's name, once it is submitted.
        self.job = ""

    def hear(self, change: Change) -> None:
        """Write what is to be said of something that happened."""
        if change.kind == "output" and change.task is not None:
            self._write(change.task, change.message)
        elif change.kind == "traceback" and change.task is not None:
            self._tracebacks[change.task] = change.message
        elif change.kind == "name":
            self.job = change.message
            self._say(msg("Job {name} is submitted.", name=self.job).in_locale(self._locale))
        elif change.kind in _TOLD:
            self._say(change.message)

    def finish(self, raised: Task | None = None) -> None:
        """Write the lines that have no end, and the tracebacks but that of the task whose error is raised."""
        for task, text in self._tracebacks.items():
            if task != raised:
                self._write(task, text)
        self._tracebacks.clear()
        for task, rest in self._begun.items():
            if rest:
                print(f"{task[0]}-{task[1]} | {rest}", flush=True)
        self._begun.clear()

    def _write(self, task: Task, text: str) -> None:
        if not self._several:
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        # whole lines, so that those of different tasks do not mix
        *lines, self._begun[task] = (self._begun.get(task, "") + text).split("\n")
        sys.stdout.write("".join(f"{task[0]}-{task[1]} | {line}\n" for line in lines))
        sys.stdout.flush()

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)
