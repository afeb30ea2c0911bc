"""Whatever administrators do: never more than 100 per cent, and nobody's guarantee but default's changes."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.config_fields import DefinitionError
from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.quota import NotEnoughError, assign, difference, overlay, remove

NAMES = ("a", "b", "c")
per_cents = st.decimals(0, 100, places=2).map(float) | st.sampled_from([0.0, 0.1, 33.333333, 100.0])
steps = st.lists(st.tuples(st.sampled_from(NAMES), st.none() | per_cents), max_size=12)


def clusters_of(**capacities: float) -> dict[str, VirtualCluster]:
    return {name: VirtualCluster(name, capacity) for name, capacity in capacities.items()}


def total(clusters: dict[str, VirtualCluster]) -> Decimal:
    return sum((Decimal(repr(cluster.capacity)) for cluster in clusters.values()), Decimal(0))


@given(default=per_cents, steps=steps)
def test_no_sequence_of_changes_takes_from_anybody_but_default(
    default: float, steps: list[tuple[str, float | None]]
) -> None:
    clusters = clusters_of(default=default)
    refused: list[NotEnoughError] = []
    for name, capacity in steps:
        before = clusters
        if capacity is None:
            if name not in clusters:
                continue
            clusters = remove(clusters, name)
            assert total(clusters) == total(before)
            assert name not in clusters
        else:
            wanted = VirtualCluster(name, capacity)
            try:
                clusters = assign(clusters, wanted)
            except NotEnoughError as error:
                # it is really not there
                others = total({k: c for k, c in before.items() if k not in (name, "default")})
                assert others + Decimal(repr(capacity)) > 100
                refused.append(error)
                continue
            assert clusters[name] == wanted
        assert total(clusters) <= 100
        assert clusters["default"].capacity >= 0
        for other in before.keys() & clusters.keys() - {name, "default"}:
            assert clusters[other] == before[other]
    assert all(error.wanted > error.free for error in refused)


def test_what_nobody_has_is_taken_first_then_defaults() -> None:
    clusters = clusters_of(default=50, vision=30)
    after = assign(clusters, VirtualCluster("speech", 25))
    assert {name: cluster.capacity for name, cluster in after.items()} == {
        "default": 45,
        "vision": 30,
        "speech": 25,
    }


def test_what_is_given_back_goes_to_default_to_the_last_digit() -> None:
    clusters = assign(clusters_of(default=60), VirtualCluster("x", 40.1))
    assert clusters["default"].capacity == 59.9
    assert remove(clusters, "x")["default"].capacity == 100
    assert assign(clusters, VirtualCluster("x", 0.1))["default"].capacity == 99.9


def test_default_may_always_use_what_it_is_guaranteed() -> None:
    clusters = {**clusters_of(x=60), "default": VirtualCluster("default", 40, 50)}
    assert remove(clusters, "x")["default"].max_capacity == 100


def test_too_much_is_refused_with_what_could_be_had() -> None:
    with pytest.raises(NotEnoughError) as refusal:
        assign(clusters_of(default=20, vision=70), VirtualCluster("speech", 31))
    assert (refusal.value.wanted, refusal.value.free) == (31, 30)


@given(file=st.dictionaries(st.sampled_from(NAMES), st.just(5.0)), steps=steps)
def test_what_was_changed_comes_back_over_the_same_file(
    file: dict[str, float], steps: list[tuple[str, float | None]]
) -> None:
    written = clusters_of(default=80, **file)
    now = written
    rows: dict[str, VirtualCluster | None] = {}
    for name, capacity in steps:
        try:
            if capacity is not None:
                later = assign(now, VirtualCluster(name, capacity, users=("alice",), stopped=True))
            elif name in now:
                later = remove(now, name)
            else:
                continue
        except NotEnoughError:
            continue
        rows |= difference(now, later)
        now = later
    assert overlay(written, rows) == now


def test_a_file_that_gives_more_than_is_left_takes_it_from_default() -> None:
    changes = {"default": VirtualCluster("default", 70), "vision": VirtualCluster("vision", 30)}
    now = overlay(clusters_of(default=60, speech=20), changes)
    assert {name: cluster.capacity for name, cluster in now.items()} == {
        "default": 50,
        "vision": 30,
        "speech": 20,
    }


def test_a_file_that_cannot_be_reconciled_is_refused() -> None:
    with pytest.raises(DefinitionError, match="add up to 110 per cent") as refusal:
        overlay(clusters_of(default=0, speech=80), {"vision": VirtualCluster("vision", 30)})
    assert refusal.value.path == "virtualClusters"


def test_only_what_changed_is_written_down() -> None:
    old = clusters_of(default=60, vision=40)
    assert difference(old, old) == {}
    assert difference(old, remove(old, "vision")) == {
        "vision": None,
        "default": VirtualCluster("default", 100),
    }
    stopped = {**old, "vision": replace(old["vision"], stopped=True)}
    assert difference(old, stopped) == {"vision": stopped["vision"]}
