"""What users have used of virtual clusters is kept, on both databases, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

from pai_scheduler.cluster.fair_share import DecayedUsage
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.store.store import Store


def test_what_was_used_comes_back_as_it_was(store: Store, open_store: Callable[[], Store]) -> None:
    assert store.usages() == {}
    used = {
        ("vision", "alice"): DecayedUsage(0.1 + 0.2, 1_764_000_000_001),
        ("vision", "王"): DecayedUsage(1e300 / 3, 0),
        ("default", "alice"): DecayedUsage(0.0, 5),
    }
    store.commit(Outcome(usages=dict(used)), {})
    assert open_store().usages() == used


def test_the_last_change_counts_and_what_is_forgotten_is_gone(store: Store) -> None:
    alice, bob = ("vision", "alice"), ("vision", "bob")
    store.commit(Outcome(usages={alice: DecayedUsage(1.5, 1), bob: DecayedUsage(2.5, 1)}), {})
    store.commit(Outcome(usages={alice: DecayedUsage(3.5, 2), bob: None}), {})
    assert store.usages() == {alice: DecayedUsage(3.5, 2)}
