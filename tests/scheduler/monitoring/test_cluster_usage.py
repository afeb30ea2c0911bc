"""The history of how many GPUs were taken: bounded, and there again after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pai_scheduler.monitoring.cluster_usage import FILE, MOST, GpuSample, UsageSampler

MINUTE = 60_000
NOON = 1_763_690_400_000


class Counted:
    """GPUs and a clock, as the test says."""

    def __init__(self, folder: Path | None = None) -> None:
        self.time, self.gpus = NOON, (1, 4)
        self.folder = folder

    def usage(self) -> UsageSampler:
        return UsageSampler(lambda: self.gpus, self.folder, lambda: self.time)

    async def sample(self, usage: UsageSampler, used: int) -> None:
        self.gpus = (used, 4)
        await usage.sample()
        self.time += MINUTE


async def test_each_sample_says_how_many_are_held_of_how_many() -> None:
    counted = Counted()
    usage = counted.usage()
    await counted.sample(usage, 1)
    await counted.sample(usage, 3)
    assert usage.last_day() == [GpuSample(NOON, 1, 4), GpuSample(NOON + MINUTE, 3, 4)]
    assert usage.last_day(after=NOON) == [GpuSample(NOON + MINUTE, 3, 4)]


async def test_sampling_begins_with_the_scheduler() -> None:
    sampled = asyncio.Event()

    def count() -> tuple[int, int]:
        sampled.set()
        return 2, 4

    usage = UsageSampler(count, None, lambda: NOON)
    await usage.start()
    await sampled.wait()
    assert usage.last_day() == [GpuSample(NOON, 2, 4)]
    await usage.close()


async def test_what_is_older_than_a_day_is_gone() -> None:
    counted = Counted()
    usage = counted.usage()
    await counted.sample(usage, 1)
    counted.time = NOON + (MOST + 1) * MINUTE
    await counted.sample(usage, 2)
    assert [sample.used for sample in usage.last_day()] == [2]


async def test_a_restart_leaves_no_gap_but_its_own(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    await counted.sample(counted.usage(), 2)
    counted.time += 10 * MINUTE
    after = counted.usage()
    await after.start()
    await after.close()
    assert after.last_day()[0] == GpuSample(NOON, 2, 4)


async def test_a_record_that_a_crash_cut_in_two_costs_nothing_else(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    usage = counted.usage()
    await counted.sample(usage, 2)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b"torn")
    await counted.sample(usage, 3)
    again = counted.usage()
    await again.start()
    await again.close()
    assert [sample.used for sample in again.last_day()][:2] == [2, 3]


async def test_the_file_does_not_grow_without_end(tmp_path: Path) -> None:
    counted = Counted(tmp_path)
    record = 16
    (tmp_path / FILE).write_bytes(b"\1" * (2 * MOST * record))
    usage = counted.usage()
    await counted.sample(usage, 1)
    assert (tmp_path / FILE).stat().st_size == record


async def test_a_folder_that_takes_nothing_costs_no_sample(tmp_path: Path) -> None:
    counted = Counted(tmp_path / "gone")
    usage = counted.usage()
    await counted.sample(usage, 1)
    assert len(usage.last_day()) == 1


async def test_after_a_clock_was_set_back_times_still_increase() -> None:
    counted = Counted()
    usage = counted.usage()
    await counted.sample(usage, 1)
    await counted.sample(usage, 2)
    counted.time = NOON + 1
    await counted.sample(usage, 3)
    assert [sample.used for sample in usage.last_day()] == [1, 3]
