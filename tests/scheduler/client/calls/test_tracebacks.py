"""What is taken out of a task's output: the traceback that it has sent back, however it comes in."""

from __future__ import annotations

import pytest

from pai_scheduler.client.calls.packing import TracebackTaker

OWN = "Traceback (most recent call last):\n  File \"<cell>\", line 2\nKeyError: 'missing'\n"
LOGGED = "Traceback (most recent call last):\nValueError: only logged\n"


def parts(text: str, length: int) -> list[str]:
    return [text[at : at + length] for at in range(0, len(text), length)]


async def passed(text: str, length: int, sent: str) -> tuple[str, str]:
    """Return what is passed on of a text that comes in parts of a length, and what is taken."""

    async def answer() -> str:
        return sent

    taker = TracebackTaker(answer)
    told = "".join([await taker.pass_on(part) for part in parts(text, length)])
    return told + taker.rest(), taker.taken


@pytest.mark.parametrize("length", [1, 2, 7, 40, 1000])
async def test_a_traceback_is_taken_out_of_what_is_around_it_however_it_is_cut(length: int) -> None:
    assert await passed(f"one\n{LOGGED}{OWN}two\n", length, OWN) == (f"one\n{LOGGED}two\n", OWN)


@pytest.mark.parametrize("length", [1, 7, 1000])
async def test_nothing_is_lost_where_another_was_sent_or_none(length: int) -> None:
    assert await passed(f"one\n{LOGGED}T", length, OWN) == (f"one\n{LOGGED}T", "")
    assert await passed(f"one\n{LOGGED}T", length, "") == (f"one\n{LOGGED}T", "")


async def test_it_is_asked_what_was_sent_only_when_a_traceback_may_begin() -> None:
    asked = 0

    async def answer() -> str:
        nonlocal asked
        asked += 1
        return ""

    taker = TracebackTaker(answer)
    for text in ("step 1\n", "step 2\n", LOGGED, "step 3\n"):
        assert await taker.pass_on(text) == text, "a program that runs on is not held up"
    assert asked == 1
