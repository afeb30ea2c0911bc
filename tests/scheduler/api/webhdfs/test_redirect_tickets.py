"""A ticket is good for one request, for some minutes, and in one user's name; nobody's pile up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pai_scheduler.api.webhdfs.redirect_tickets import RedirectTickets, RequestScope
from pai_scheduler.principal import Principal
from pai_scheduler.storage.paths import StoragePath

ALICE, BOB = Principal("alice", groups=("vision",)), Principal("bob")
SCOPE = RequestScope("GET", "OPEN", StoragePath(("alice", "f")), frozenset({("op", "OPEN"), ("offset", "1")}))


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_ticket_speaks_for_who_got_it_as_often_as_it_is_shown() -> None:
    tickets = RedirectTickets()
    ticket = tickets.issue(ALICE, SCOPE)
    assert tickets.redeem(ticket, SCOPE) == tickets.redeem(ticket, SCOPE) == ALICE
    assert tickets.redeem(ticket[:-1], SCOPE) is None
    assert tickets.redeem("", SCOPE) is None


@pytest.mark.parametrize(
    "other",
    [
        {"method": "PUT"},
        {"operation": "ARCHIVE"},
        {"path": StoragePath(("alice", "g"))},
        {"parameters": frozenset({("op", "OPEN")})},
        {"parameters": frozenset({("op", "OPEN"), ("offset", "2")})},
    ],
)
def test_a_ticket_is_refused_for_another_request(other: dict[str, object]) -> None:
    tickets = RedirectTickets()
    assert tickets.redeem(tickets.issue(ALICE, SCOPE), replace(SCOPE, **other)) is None  # type: ignore[arg-type]


def test_a_ticket_expires_and_is_forgotten() -> None:
    clock = Clock()
    tickets = RedirectTickets(seconds=60, clock=clock)
    ticket = tickets.issue(ALICE, SCOPE)
    clock.now += 60
    assert tickets.redeem(ticket, SCOPE) == ALICE
    clock.now += 1
    assert tickets.redeem(ticket, SCOPE) is None
    tickets.issue(BOB, SCOPE)
    assert len(tickets._issued) == 1
    assert tickets._held.keys() == {"bob"}


def test_beyond_the_limit_a_users_own_oldest_ticket_is_dropped() -> None:
    tickets = RedirectTickets(most=3)
    bobs = tickets.issue(BOB, SCOPE)
    hers = [tickets.issue(ALICE, SCOPE) for _ in range(5)]
    assert [tickets.redeem(ticket, SCOPE) is not None for ticket in hers] == [False, False, True, True, True]
    assert tickets.redeem(bobs, SCOPE) == BOB
    assert len(tickets._issued) == 4
