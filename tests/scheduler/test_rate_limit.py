"""A guesser waits ever longer; a right token is let in, even while others guess."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from pai_scheduler.rate_limit import (
    ACCOUNT,
    ADDRESS,
    CHECKED_AT_ONCE,
    LONGEST_PAUSE,
    PAIR,
    GuessThrottle,
    PerAddressLimit,
    place,
)

HERE, THERE = "10.0.0.1", "10.0.0.2"
RIGHT = {"alice": "token-of-alice", "bob": "token-of-bob"}


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


class ThrottledService:
    """A throttle before a service that knows two tokens."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.throttle = GuessThrottle(self.clock, self.clock.sleep)
        self.asked = 0

    async def try_(self, address: str, account: str, token: str) -> tuple[str | None, float]:
        """Return who is let in, and the seconds until the answer."""

        async def ask() -> str | None:
            self.asked += 1
            return account if RIGHT.get(account) == token else None

        begun = self.clock.now
        return await self.throttle.check(address, account, token, ask), self.clock.now - begun

    async def guess(self, times: int, address: str = HERE, account: str = "bob") -> list[float]:
        return [(await self.try_(address, account, f"guess {number}"))[1] for number in range(times)]


@pytest.fixture
def service() -> ThrottledService:
    return ThrottledService()


async def test_a_few_wrong_ones_cost_nothing_and_then_each_answer_takes_longer(
    service: ThrottledService,
) -> None:
    waits = await service.guess(PAIR[0] + 20)
    assert not any(waits[: PAIR[0]])
    assert waits[PAIR[0] :] == pytest.approx(sorted(waits[PAIR[0] :]))
    assert waits[-1] == LONGEST_PAUSE
    # an hour of guessing is a few hundred guesses
    assert 3600 / LONGEST_PAUSE < 500


async def test_a_right_token_comes_in_after_any_number_of_wrong_ones_from_its_address(
    service: ThrottledService,
) -> None:
    await service.guess(500)
    assert await service.try_(HERE, "bob", "token-of-bob") == ("bob", LONGEST_PAUSE)
    # and from then on at once, whatever else is tried
    await service.guess(500)
    assert await service.try_(HERE, "bob", "token-of-bob") == ("bob", 0)


async def test_a_guesser_waits_equally_for_a_right_and_a_wrong_token(service: ThrottledService) -> None:
    await service.guess(100)
    _, wrong = await service.try_(HERE, "bob", "guess")
    _, right = await service.try_(HERE, "bob", "token-of-bob")
    assert wrong == right


async def test_other_accounts_and_other_addresses_do_not_wait(service: ThrottledService) -> None:
    await service.guess(20)
    assert await service.try_(THERE, "bob", "token-of-bob") == ("bob", 0)
    assert await service.try_(HERE, "alice", "token-of-alice") == ("alice", 0)


async def test_an_account_that_is_guessed_at_from_everywhere_is_braked_too(service: ThrottledService) -> None:
    waits = [(await service.guess(1, f"10.1.{number // 250}.{number % 250}"))[0] for number in range(300)]
    # as often as they are forgotten
    assert (waits[0], waits[-1]) == (0, pytest.approx(ACCOUNT[1], rel=0.3))
    who, wait = await service.try_(THERE, "bob", "token-of-bob")
    assert who == "bob"
    assert wait <= LONGEST_PAUSE


async def test_an_address_that_guesses_at_everybody_is_braked_too(service: ThrottledService) -> None:
    waits = [(await service.guess(1, HERE, f"user{number}"))[0] for number in range(500)]
    assert (waits[0], waits[-1]) == (0, pytest.approx(ADDRESS[1], rel=0.3))


async def test_it_is_forgotten_after_a_while(service: ThrottledService) -> None:
    await service.guess(1000)
    service.clock.now += 3600
    assert await service.guess(1) == [0]


async def test_what_was_right_and_is_no_more_is_a_wrong_one(
    service: ThrottledService, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.try_(HERE, "bob", "token-of-bob")
    await service.guess(50)
    monkeypatch.delitem(RIGHT, "bob")
    assert await service.try_(HERE, "bob", "token-of-bob") == (None, LONGEST_PAUSE)


async def test_a_service_that_cannot_be_asked_counts_as_no_wrong_token(service: ThrottledService) -> None:
    async def away() -> str | None:
        raise OSError

    for _ in range(100):
        with pytest.raises(OSError):  # noqa: PT011 - any
            await service.throttle.check(HERE, "bob", "token-of-bob", away)
    assert await service.try_(HERE, "bob", "token-of-bob") == ("bob", 0)


async def test_what_is_remembered_is_bounded_and_has_no_secrets(service: ThrottledService) -> None:
    for number in range(25_000):
        address = f"10.{number % 256}.{number // 256}.1"
        await service.throttle.check(address, str(number), "secret", _right)
        service.throttle._count(address, str(number))
    throttle = service.throttle
    counted = [len(counter._until) for counter in (throttle._pairs, throttle._accounts, throttle._addresses)]
    assert counted == [20_000] * 3
    assert len(throttle._known) == 20_000
    assert not any(b"secret" in digest for digest in throttle._known)
    assert not throttle._places._of


async def _right() -> str | None:
    return "somebody"


async def test_one_address_is_checked_a_few_at_once_and_another_does_not_wait() -> None:
    places, go, there = PerAddressLimit(), asyncio.Event(), 0

    def check(end: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
        async def check() -> None:
            nonlocal there
            there += 1
            await end()

        return check

    waiting = [asyncio.create_task(places.within(HERE, check(go.wait))) for _ in range(100)]
    await asyncio.sleep(0.01)
    await places.within(THERE, check(_right))
    assert there == CHECKED_AT_ONCE + 1
    go.set()
    await asyncio.gather(*waiting)
    assert there == 101
    assert not places._of


def test_a_network_of_somebodys_is_one_place() -> None:
    assert place("2001:db8::1") == place("2001:db8::2:1") != place("2001:db8:0:1::1")
    assert place("::ffff:10.0.0.1") == place("10.0.0.1") != place("10.0.0.2")
    assert place("fe80::1%eth0") == place("fe80::2%eth1")
    assert place("?") == "?"
