"""Who is slowed at the gateway, and what is logged of those who are refused: with a clock of our own."""

from __future__ import annotations

import logging

import pytest

from pai_scheduler.rate_limit import LONGEST_PAUSE, GuessThrottle
from pai_scheduler.ssh.gateway.client_session import LoginThrottle, shown

HERE = "10.0.0.1"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> LoginThrottle:
    return LoginThrottle(clock, GuessThrottle(clock, clock.sleep))


async def _wrong() -> str | None:
    return None


async def _right() -> str | None:
    return "alice"


async def test_keys_are_never_slowed_and_never_slow(guard: LoginThrottle, clock: Clock) -> None:
    for number in range(1000):
        assert await guard.check(HERE, ("alice", "publickey", f"ssh-ed25519 {number}"), _wrong) is None
    assert clock.now == 1000
    for number in range(100):
        await guard.check(HERE, ("alice", "password", f"guess {number}"), _wrong)
    begun = clock.now
    assert await guard.check(HERE, ("alice", "publickey", "ssh-ed25519 AAAA"), _right) == "alice"
    assert clock.now == begun


async def test_a_right_token_comes_in_beside_wrong_ones_for_the_same_name(
    guard: LoginThrottle, clock: Clock
) -> None:
    for number in range(60):
        await guard.check(HERE, ("bob", "password", f"guess {number}"), _wrong)
    begun = clock.now
    assert await guard.check(HERE, ("bob", "password", "token-of-bob"), _right) == "alice"
    assert clock.now - begun <= LONGEST_PAUSE


async def test_the_log_has_a_few_lines_and_then_a_sum(
    guard: LoginThrottle, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for number in range(1000):
        await guard.check(HERE, ("alice\n", "publickey", f"secret {number}"), _wrong)
    assert len(caplog.records) == 5
    assert caplog.records[0].message == "login refused from 10.0.0.1: publickey for 'alice\\n'"
    guard.sum_up()
    assert len(caplog.records) == 5
    clock.now += 61
    guard.sum_up()
    assert caplog.records[-1].message == "995 more logins refused from 10.0.0.1 in 61 s"
    assert "secret" not in caplog.text


def test_what_is_remembered_for_the_log_is_bounded(guard: LoginThrottle) -> None:
    for number in range(25_000):
        guard.report(f"10.{number % 256}.{number // 256}.1", "x")
    assert len(guard._lines) == 20_000


def test_names_are_logged_as_they_can_be_read() -> None:
    assert shown("alice+train") == "'alice+train'"
    assert shown("a\x1b[2J\n张") == "'a\\x1b[2J\\n\\u5f20'"
    assert len(shown("x" * 5000)) < 100
