"""What the benchmark of containers makes of Docker's events: a wrong outcome is found."""

from __future__ import annotations

import pytest

from .containers import Seen


def _hear(seen: Seen, *told: tuple[str, str, int]) -> Seen:
    for name, action, second in told:
        about = {"name": name, "exitCode": "0" if name != "failed" else "1"}
        seen.hear({"Action": action, "timeNano": second * 10**9, "Actor": {"Attributes": about}})
    return seen


def _life(name: str, begin: int) -> list[tuple[str, str, int]]:
    return [(name, action, begin + n) for n, action in enumerate(("create", "start", "die", "destroy"))]


def test_the_time_is_from_the_first_made_to_the_last_removed() -> None:
    seen = _hear(Seen(), ("before", "die", 1), *_life("a", 2), *_life("b", 7))
    seen.check(containers=2, at_once=1)
    assert seen.seconds == 8


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        (_life("a", 1), "1 containers were made, not 2"),
        ([*_life("a", 1), *_life("b", 1)[:-1]], "not heard of all: {'b'}"),
        ([*_life("a", 1), *_life("failed", 5)], "exit codes"),
        ([*_life("a", 1), *_life("b", 1)], "2 ran at once, where 1 had room"),
    ],
)
def test_what_did_not_go_as_it_should_is_an_error(told: list[tuple[str, str, int]], wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        _hear(Seen(), *told).check(containers=2, at_once=1)
