"""What is said of a service that does not answer, for each way in which that comes about."""

from __future__ import annotations

import pytest

from pai_labextension.webapp.program import Command, Program, State
from pai_labextension.webapp.serving import sentence_of, title_of


def program(state: State, code: int | None = None, reason: str = "", seconds: int = 60) -> Program:
    made = Program(Command("Board", ("board", "{port}"), "/pai-service", False, seconds))
    made.state, made.exit_code, made.reason = state, code, reason
    return made


@pytest.mark.parametrize(
    ("told", "title", "sentence"),
    [
        (program(State.STARTING), "Board is starting", "It is shown here as soon as it answers."),
        (program(State.FAILED, 3), "Board did not start", "It ended by itself, with exit code 3."),
        (
            program(State.FAILED, seconds=1),
            "Board did not start",
            "It did not answer within 1 second, and was ended.",
        ),
        (program(State.FAILED), "Board did not start", "It did not answer within 60 seconds, and was ended."),
        (program(State.FAILED, reason="no"), "Board did not start", "It cannot be started: no"),
        (program(State.ENDED, 0), "Board has ended", "It ended by itself, with exit code 0."),
        (program(State.ENDED, -15), "Board has ended", "It was ended by signal 15."),
        (
            program(State.ENDED, -9),
            "Board has ended",
            "It was ended by signal 9. Where nobody sent that, the memory was not enough: choose more at the "
            "server's next start.",
        ),
    ],
)
def test_its_page_says_what_happened(told: Program, title: str, sentence: str) -> None:
    assert (str(title_of(told)), str(sentence_of(told))) == (title, sentence)
