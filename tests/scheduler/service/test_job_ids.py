"""No id is made twice, and each is higher than those before."""

from __future__ import annotations

import re

from pai_scheduler.service.admission import JobIds

NOON = 1_800_000_000_000


def test_ids_rise_within_one_ms_too() -> None:
    ids = JobIds()
    made = [ids.new(NOON + number // 100) for number in range(10_000)]
    assert made == sorted(set(made))


def test_an_id_is_higher_though_the_clock_was_set_back() -> None:
    ids = JobIds()
    assert ids.new(NOON) < ids.new(NOON - 3_600_000)


def test_an_id_stands_in_every_kind_of_name() -> None:
    assert re.fullmatch("[0-9a-v]{16}", JobIds().new(NOON))


def test_two_schedulers_make_different_ids_at_the_same_time() -> None:
    first, second = JobIds(), JobIds()
    assert not {first.new(NOON) for _ in range(100)} & {second.new(NOON) for _ in range(100)}
