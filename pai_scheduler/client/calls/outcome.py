"""Reads what a task that runs Python code has sent back."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from typing import Any

from pai_scheduler.client.storage.transfer import amount
from pai_scheduler.i18n import Message, msg

from .errors import CallError, RemoteTraceback


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one task: a value, or an error with the traceback that it has there."""

    value: Any = None
    error: BaseException | None = None

    def get(self) -> Any:
        """Return the value, or raise the error."""
        __tracebackhide__ = True  # IPython then shows the user's own frames
        if self.error is not None:
            raise self.error
        return self.value


def read_outcome(data: bytes, task: str, locale: str = "en") -> Outcome:
    """Read a task's file. The pickle in it was written by the user's own code, with the user's own rights."""
    line, _, body = data.partition(b"\n")
    head: dict[str, Any] = json.loads(line)
    if "problem" in head:
        return Outcome(error=CallError(_problem(head, task), locale))
    found: Any = None
    reason: BaseException | None = None
    try:
        found = pickle.loads(body) if body else None  # noqa: S301 - see above
    except (
        Exception,
        SystemExit,
        KeyboardInterrupt,
    ) as error:
        # (what reading it runs is the user's, too)
        reason = error
    if head.get("ok"):
        if reason is None:
            return Outcome(found)
        unread = msg("What {task} returned cannot be read here: {reason}.", task=task, reason=repr(reason))
        return Outcome(error=CallError(unread, locale))
    if not isinstance(found, BaseException) or isinstance(found, StopIteration):
        # (a StopIteration ends whatever iterates, and no future may have one)
        # the exception itself cannot travel: its words do
        found = CallError(msg("{task}: {error}", task=task, error=head["error"]), locale)
    found.__cause__ = RemoteTraceback(head["traceback"], task)
    return Outcome(error=found)


def _problem(head: dict[str, Any], task: str) -> Message:
    match head["problem"]:
        case "python":
            return msg(
                "The job has Python {here}, but the code was sent by Python {there}, and functions cannot go "
                "from one to the other. Choose an image with Python {there} (image=…), or name that Python "
                "in it (python=…).",
                here=_version(head["here"]),
                there=_version(head["there"]),
            )
        case "import":
            return msg(
                "{reason}: the job has no module {module}. Choose an image that has it, or send the folder "
                "that it is in along (code=…).",
                reason=head["reason"],
                module=head["module"],
            )
        case "size":
            return msg(
                "What {task} returns has {length}, of {most} at most. Write it into the job's PAI_OUTPUT_DIR "
                "instead.",
                task=task,
                length=amount(head["length"]),
                most=amount(head["most"]),
            )
        case "value":
            return msg("What {task} returns cannot be sent back: {reason}.", task=task, reason=head["reason"])
        case "exit":
            return msg("{task} has ended by itself (sys.exit), so nothing came back.", task=task)
        case _:
            return msg(
                "What was sent to {task} cannot be read there: {reason}.", task=task, reason=head["reason"]
            )


def _version(version: list[int]) -> str:
    return ".".join(map(str, version))
