"""End of a job, as a value: its state, with the exit code and the reason beside it."""

from __future__ import annotations

from pai_scheduler.rest.models import JobDetail


class JobEnd(str):
    """The state in which a job ended: the text "SUCCEEDED", "FAILED" or "STOPPED", which knows why.

    `exit_code`: of the task that decided, None where none did; `reason`: a sentence, empty where there is
    nothing to say.
    """

    __slots__ = ("exit_code", "reason")

    exit_code: int | None
    reason: str

    def __new__(cls, state: str, exit_code: int | None = None, reason: str = "") -> JobEnd:
        """Make an end; a text is complete when it is made, so there is no `__init__`."""
        made = super().__new__(cls, state)
        made.exit_code, made.reason = exit_code, reason
        return made

    def __repr__(self) -> str:
        facts = [repr(str(self))]
        facts += [] if self.exit_code is None else [f"exit_code={self.exit_code}"]
        facts += [f"reason={self.reason!r}"] if self.reason else []
        return f"JobEnd({', '.join(facts)})"


def end_of(detail: JobDetail) -> JobEnd:
    """Read the end of a job that has ended."""
    status = detail["jobStatus"]
    return JobEnd(status["state"], status["appExitCode"], status["appExitDiagnostics"] or "")
