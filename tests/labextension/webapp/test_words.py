"""What is said of a service that does not answer, for each way in which that comes about."""

from __future__ import annotations

import pytest

from pai_labextension.webapp.program import Command, ProgramPhase, WebProgram
from pai_labextension.webapp.serving import sentence_of, title_of


def program(state: ProgramPhase, code: int | None = None, reason: str = "", seconds: int = 60) -> WebProgram:
    made = WebProgram(Command("Board", ("board", "{port}"), "/pai-service", False, seconds))
    made.state, made.exit_code, made.reason = state, code, reason
    return made


@pytest.mark.parametrize(
    ("told", "title", "sentence"),
    [
        (program(ProgramPhase.STARTING), "Board is starting", "It is shown here as soon as it answers."),
        (program(ProgramPhase.FAILED, 3), "Board did not start", "It ended by itself, with exit code 3."),
        (
            program(ProgramPhase.FAILED, seconds=1),
            "Board did not start",
            "It did not answer within 1 second, and was ended.",
        ),
        (
            program(ProgramPhase.FAILED),
            "Board did not start",
            "It did not answer within 60 seconds, and was ended.",
        ),
        (program(ProgramPhase.FAILED, reason="no"), "Board did not start", "It cannot be started: no"),
        (program(ProgramPhase.ENDED, 0), "Board has ended", "It ended by itself, with exit code 0."),
        (program(ProgramPhase.ENDED, -15), "Board has ended", "It was ended by signal 15."),
        (
            program(ProgramPhase.ENDED, -9),
            "Board has ended",
            "It was ended by signal 9. Where nobody sent that, the memory was not enough: choose more at the "
            "server's next start.",
        ),
    ],
)
def test_its_page_says_what_happened(told: WebProgram, title: str, sentence: str) -> None:
    assert (str(title_of(told)), str(sentence_of(told))) == (title, sentence)
