"""Policies of `pai-scheduler simulate`: a word or a line of YAML, put in place of the file's orders."""

from __future__ import annotations

import pytest

from pai_scheduler.cluster.definition import LeastAttained, Order, ShortestRemaining, VirtualCluster
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.server.simulate import SimulatedPolicy, read_policy


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("fifo", Order()),
        ("shorterFirst", Order(shorter_first=10)),
        ("shorterFirst: 20", Order(shorter_first=20)),
        ("fairShare", Order(fair_share_hours=168)),
        ("leastAttained: {gpuHours: [1, 10]}", Order(least_attained=LeastAttained((1.0, 10.0)))),
        ("shortestRemaining", Order(shortest_remaining=ShortestRemaining())),
    ],
)
def test_a_policy_is_a_word_or_a_field_with_its_value(text: str, order: Order) -> None:
    assert read_policy(text) == SimulatedPolicy(text, order)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("lifo", "must be a mapping"),
        ("lifo: 1", "lifo is not known here"),
        ("{shorterFirst: 1, fairShare: {halfLifeHours: 1}}", "choose one of them"),
        ("shortestRemaining: {leastRunSeconds: soon}", "shortestRemaining.leastRunSeconds: This must be"),
        ("{}", "It says nothing"),
        ("shorterFirst: 0", "It says nothing"),
        ("[", "must be a mapping"),
    ],
)
def test_what_is_no_policy_is_refused_and_it_is_said_why(text: str, why: str) -> None:
    with pytest.raises(StartError) as refused:
        read_policy(text)
    assert str(refused.value).startswith(f"{text} is no policy: ")
    assert why in str(refused.value)


def test_a_policy_takes_the_place_of_the_files_order_and_leaves_the_shares() -> None:
    before = VirtualCluster("lab", 40.0, 60.0, gpus_per_user=4, shorter_first=5, spreads=True)
    (after,) = read_policy("shortestRemaining").applied([before])
    assert (after.shorter_first, after.shortest_remaining) == (0, ShortestRemaining())
    assert (after.capacity, after.max_capacity, after.gpus_per_user, after.spreads) == (40.0, 60.0, 4, True)


def test_without_a_policy_all_stays_as_the_file_says() -> None:
    before = VirtualCluster("lab", 40.0, shorter_first=5)
    assert SimulatedPolicy("").applied([before]) == [before]
