"""Who guesses, who stands in line, who is known: with a clock of our own."""

from __future__ import annotations

import logging

import pytest

from pai_scheduler.gateway.guard import AT_ONCE, GUESSES_AT_ONCE, PER_SECOND, Guard, Turns, place, shown

HERE, THERE = "10.0.0.1", "10.0.0.2"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def guard(clock: Clock) -> Guard:
    return Guard(clock)


def test_what_was_refused_is_refused_again_without_asking_for_a_while(guard: Guard, clock: Clock) -> None:
    token, key = ("alice", "password", "wrong"), ("alice", "publickey", "ssh-ed25519 AAAA")
    for credential in (token, key):
        assert not guard.refuses(HERE, credential)
        guard.refused(HERE, credential, asked=True)
        assert guard.refuses(THERE, credential)
    clock.now += 4
    assert guard.refuses(HERE, token)
    assert not guard.refuses(HERE, key), "it may have been registered meanwhile"
    clock.now += 60
    assert not guard.refuses(HERE, token)


def test_who_guesses_tokens_of_one_name_is_not_asked_about_for_a_while(guard: Guard, clock: Clock) -> None:
    asked = 0
    for number in range(1000):
        credential = ("alice", "password", f"guess {number}")
        if not guard.refuses(HERE, credential):
            asked += 1
            guard.refused(HERE, credential, asked=True)
    assert asked <= GUESSES_AT_ONCE + 1
    fresh = ("alice", "password", "token-of-alice")
    assert guard.refuses(HERE, fresh)
    # elsewhere, with a key, under another name at the same address: nobody minds
    assert not guard.refuses(THERE, fresh)
    assert not guard.refuses(HERE, ("alice", "publickey", "ssh-ed25519 AAAA"))
    assert not guard.refuses(HERE, ("bob", "password", "token-of-bob"))
    clock.now += 10
    assert not guard.refuses(HERE, fresh)


def test_a_token_that_was_right_before_is_asked_about_whoever_guesses_beside_it(guard: Guard) -> None:
    right = ("alice", "password", "token-of-alice")
    guard.let_in(right)
    for number in range(100):
        guard.refused(HERE, ("alice", "password", f"guess {number}"), asked=True)
    assert not guard.refuses(HERE, right)
    assert guard.wait(HERE, right) == 0
    # until the service says no
    guard.refused(HERE, right, asked=True)
    assert guard.refuses(HERE, right)


def test_newcomers_of_one_address_take_turns_and_other_addresses_do_not_wait(guard: Guard) -> None:
    waits = [guard.wait(HERE, (f"user{number}", "password", "x")) for number in range(AT_ONCE + 20)]
    assert waits == sorted(waits)
    assert waits[AT_ONCE - 1] == pytest.approx(0)
    assert waits[-1] == pytest.approx(20 / PER_SECOND)
    assert guard.wait(THERE, ("alice", "password", "x")) == 0


def test_turns_come_back(clock: Clock) -> None:
    turns = Turns(per_second=2, at_once=4)
    assert [turns.wait("x", clock.now) for _ in range(6)] == [0, 0, 0, 0, 0.5, 1.0]
    assert turns.wait("x", clock.now + 100) == 0


def test_the_log_has_a_few_lines_and_then_a_sum(
    guard: Guard, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for number in range(1000):
        guard.refused(HERE, ("alice\n", "password", f"secret {number}"), asked=False)
    assert len(caplog.records) == 5
    assert caplog.records[0].message == "login refused from 10.0.0.1: password for 'alice\\n'"
    guard.sum_up()
    assert len(caplog.records) == 5
    clock.now += 61
    guard.sum_up()
    assert caplog.records[-1].message == "995 more logins refused from 10.0.0.1 in 61 s"
    assert "secret" not in caplog.text


def test_what_is_remembered_is_bounded_and_has_no_secrets(guard: Guard) -> None:
    for number in range(50_000):
        guard.refused(f"10.{number % 256}.{number // 256}.1", (str(number), "password", "secret"), asked=True)
    assert len(guard._wrong) == len(guard._lines) == len(guard._guesses._next) == 20_000
    assert not any(b"secret" in digest for digest in guard._wrong)


def test_a_network_of_somebodys_is_one_place() -> None:
    assert place("2001:db8::1") == place("2001:db8::2:1") != place("2001:db8:0:1::1")
    assert place("::ffff:10.0.0.1") == place("10.0.0.1") != place("10.0.0.2")
    assert place("fe80::1%eth0") == place("fe80::2%eth1")
    assert place("?") == "?"


def test_names_are_logged_as_they_can_be_read() -> None:
    assert shown("alice+train") == "'alice+train'"
    assert shown("a\x1b[2J\n张") == "'a\\x1b[2J\\n\\u5f20'"
    assert len(shown("x" * 5000)) < 100
