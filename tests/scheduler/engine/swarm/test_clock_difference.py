"""How far another machine's clock is ahead."""

from __future__ import annotations

import logging

import pytest

from pai_scheduler.engine.swarm.session import ClockDifference

MINUTE = 60_000


class Way:
    """Questions to another machine, whose clock is `ahead`; ms."""

    def __init__(self, ahead: int) -> None:
        self.now, self.ahead = 1_000_000_000, ahead
        self.difference = ClockDifference("node-b", lambda: self.now)

    def ask(self, there: int, back: int) -> None:
        """Ask; question and answer take so long on their way."""
        theirs = self.now + there + self.ahead
        self.now += there + back
        self.difference.learn(theirs, (there + back) / 1000)


@pytest.mark.parametrize("ahead", [MINUTE, -MINUTE, 30])
def test_it_is_known_as_exactly_as_an_answer_is_fast(ahead: int) -> None:
    way = Way(ahead)
    way.ask(40, 5)
    assert abs(way.difference.ahead - ahead) <= 45
    way.ask(1, 1)
    assert abs(way.difference.ahead - ahead) <= 2
    assert abs(way.difference.here(way.now + ahead) - way.now) <= 2


def test_an_answer_that_takes_long_makes_nothing_less_exact() -> None:
    way = Way(MINUTE)
    way.ask(1, 1)
    before = way.difference.ahead
    way.ask(5000, 3000)
    assert way.difference.ahead == before


def test_equal_clocks_are_never_corrected_however_slow_the_way() -> None:
    way = Way(0)
    for there, back in ((0, 0), (5000, 0), (0, 5000), (3, 700)):
        way.ask(there, back)
    assert way.difference.ahead == 0


def test_a_clock_that_was_set_is_followed() -> None:
    way = Way(MINUTE)
    way.ask(1, 1)
    way.ahead = 0
    way.ask(1, 1)
    assert abs(way.difference.ahead) <= 2


def test_clocks_far_apart_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    way = Way(-MINUTE)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            way.ask(1, 1)
    assert caplog.messages == ["the clock of node-b is 60.0 s behind; its times are corrected"]
