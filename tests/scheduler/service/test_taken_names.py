"""A name that is taken is never thought free; hardly a free one is asked for."""

from __future__ import annotations

from pai_scheduler.service.admission import TakenNames

NAMES = [(f"user-{number % 7}", f"job-{number}") for number in range(20_000)]


def test_every_name_that_was_added_may_be_taken() -> None:
    names = TakenNames()
    names.add("alice", "early")
    names.add_all(NAMES)
    assert all(names.may_be_taken(user, name) for user, name in [*NAMES, ("alice", "early")])


def test_hardly_any_other_name_may_be() -> None:
    names = TakenNames()
    names.add_all(NAMES)
    others = [(user, f"other-{name}") for user, name in NAMES]
    assert sum(names.may_be_taken(user, name) for user, name in others) < 20


def test_until_all_are_known_each_may_be_taken() -> None:
    names = TakenNames()
    assert names.may_be_taken("alice", "new")
    names.add_all(())
    assert not names.may_be_taken("alice", "new")
