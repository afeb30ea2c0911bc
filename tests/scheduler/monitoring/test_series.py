"""The file of what a task has used: bounded, whole after a crash, and true to what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_scheduler.engine.protocol import Usage
from pai_scheduler.monitoring.series import FILE, MOST, NEWEST, OLDER, Point, append, merge, point_of, read

RECORD = 72


def make_point(time: int, cpu: float = 1.0, memory: float = 1.0, received: float | None = None) -> Point:
    return Point(time, 1, (cpu, memory, None, None, None, received, None))


def test_what_is_appended_is_read_again_with_what_is_not_known_left_out(tmp_path: Path) -> None:
    usage = Usage(1000, 50.5, 12.25, net_rx_bytes=2**52 + 1, gpu_percent=0.0)
    append(tmp_path, point_of(usage))
    append(tmp_path, point_of(Usage(2000, 1, 2)))
    first, second = read(tmp_path)
    assert first == Point(1000, 1, (50.5, 12.25, 0.0, None, None, 2.0**52 + 1, None))
    assert second.values == (1, 2, None, None, None, None, None)


def test_where_nothing_was_recorded_there_is_nothing(tmp_path: Path) -> None:
    assert read(tmp_path) == []


def test_nothing_is_made_anew_for_a_task_that_was_forgotten(tmp_path: Path) -> None:
    append(tmp_path / "gone", make_point(1))
    assert not (tmp_path / "gone").exists()


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    for number in range(MOST + 1):
        append(tmp_path, make_point(1 + number * 10_000))
        if number in (0, MOST):
            assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_ten_days_of_measurements_stay_small_and_keep_their_shape() -> None:
    all_of_them = 10 * 24 * 360
    # a task that was busy in the second of three parts of its life
    points = [
        make_point(10_000 * (number + 1), 100.0 if all_of_them // 3 <= number < 2 * all_of_them // 3 else 0.0)
        for number in range(all_of_them)
    ]
    kept: list[Point] = []
    for begin in range(0, all_of_them, NEWEST):
        kept = merge([*kept, *points[begin : begin + NEWEST]])
        assert len(kept) <= NEWEST + OLDER
    assert kept[-NEWEST:] == points[-NEWEST:]
    assert sum(point.count for point in kept) == all_of_them
    for point in kept:
        part = point.time / points[-1].time
        if not (0.32 < part < 0.35 or 0.65 < part < 0.68):
            assert point.values[0] == (100.0 if 0.34 < part < 0.66 else 0.0), part


def test_the_file_stays_within_its_limit_and_goes_on_after_it(tmp_path: Path) -> None:
    for number in range(2 * MOST):
        append(tmp_path, make_point(1 + number * 10_000, cpu=number))
        assert (tmp_path / FILE).stat().st_size <= MOST * RECORD
    points = read(tmp_path)
    assert [point.values[0] for point in points[-NEWEST:]] == list(range(2 * MOST - NEWEST, 2 * MOST))
    assert sum(point.count for point in points) == 2 * MOST
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_bucket_has_the_mean_of_a_share_the_highest_amount_and_the_last_count() -> None:
    minute = [make_point(60_000 + n, cpu=n, memory=10 - n, received=100 * n) for n in range(5)]
    newest = [make_point(10_000_000 + n) for n in range(NEWEST)]
    bucket = merge([*minute, *newest])[0]
    assert bucket == Point(60_004, 5, (2.0, 10, None, None, None, 400, None))


def test_a_bucket_of_buckets_weighs_each_by_its_measurements() -> None:
    newest = [make_point(10_000_000 + n) for n in range(NEWEST)]
    long, short = Point(60_001, 9, (10.0, *[None] * 6)), Point(60_002, 1, (0.0, *[None] * 6))
    assert merge([long, short, *newest])[0].values[0] == 9.0


@pytest.mark.parametrize("cut", [1, RECORD // 2, RECORD - 1])
def test_a_record_cut_in_two_costs_no_more_than_itself(tmp_path: Path, cut: int) -> None:
    for number in range(3):
        append(tmp_path, make_point(1000 + number))
    file = tmp_path / FILE
    file.write_bytes(file.read_bytes()[:-cut])
    assert [point.time for point in read(tmp_path)] == [1000, 1001]
    append(tmp_path, make_point(2000))
    assert [point.time for point in read(tmp_path)] == [1000, 1001, 2000]


def test_zeros_that_a_power_cut_left_are_no_measurement(tmp_path: Path) -> None:
    append(tmp_path, make_point(1000))
    with (tmp_path / FILE).open("ab") as file:
        file.write(bytes(RECORD))
    append(tmp_path, make_point(2000))
    assert [point.time for point in read(tmp_path)] == [1000, 2000]


def test_after_the_clock_was_set_back_times_still_increase_and_the_newest_counts(tmp_path: Path) -> None:
    for time in (1000, 9_000_000, 9_000_010, 2000, 3000):
        append(tmp_path, make_point(time))
    assert [point.time for point in read(tmp_path)] == [1000, 2000, 3000]
