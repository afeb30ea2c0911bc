"""What uploads and downloads have in common."""

from __future__ import annotations

import asyncio

import pytest

from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.client.storage.client import FilesError
from pai_scheduler.client.storage.transfer import (
    FileOutcome,
    LocalFileError,
    TransferProgress,
    TransferTally,
    Trials,
    amount,
    fingerprint,
    is_part_of,
    part_name,
    side_by_side,
)
from pai_scheduler.i18n import msg


def test_a_part_is_named_after_the_file_and_its_state() -> None:
    # the browser makes the same names: what is written here is what it expects
    assert fingerprint(3_000_000, 1_600_000_000_123) == "ab7691aa"
    assert part_name("data.bin", 3_000_000, 1_600_000_000_123) == ".data.bin.ab7691aa.part"
    assert part_name("x", 1, 2) != part_name("x", 1, 3) != part_name("x", 2, 2)
    assert len(part_name("é" * 127, 1, 1).encode()) <= 255


def test_only_parts_of_a_file_are_taken_for_such() -> None:
    assert is_part_of(part_name("a", 1, 1), "a")
    assert not is_part_of(part_name("a.b", 1, 1), "a")
    for other in (".a.part", ".a.0123456.part", ".a.0123456g.part", "a.01234567.part", ".a.01234567.partx"):
        assert not is_part_of(other, "a")


async def test_progress_adds_up_what_moved_and_may_fall_back() -> None:
    told: list[TransferProgress] = []
    tally = TransferTally(2, 30, told.append)
    tally.at("a", 8)
    tally.at("b", 5)
    tally.at("a", 2)
    await tally.count("a", "/a", 10, became("moved"))
    await tally.count("b", "/b", 20, became("same"))
    assert [(one.files_done, one.bytes_done, one.current) for one in told] == [
        *((0, 8, "a"), (0, 13, "b"), (0, 7, "a")),
        *((1, 15, "a"), (2, 30, "b")),
    ]
    assert (tally.result.files, tally.result.length, tally.result.same) == (1, 10, 1)


async def test_what_is_wrong_with_one_file_stands_in_the_result_and_what_concerns_all_ends_it() -> None:
    tally = TransferTally(3, 30, None)
    for error in (FilesError(403, "AccessControlException", "never"), LocalFileError(msg("gone"))):
        await tally.count("a", "/a", 10, became("moved", error))
    assert [(left.path, left.in_locale("en")) for left in tally.result.left_out] == [
        ("/a", "never"),
        ("/a", "gone"),
    ]
    assert not tally.result.complete
    with pytest.raises(FilesError, match="full"):
        await tally.count("a", "/a", 10, became("moved", FilesError(507, "DSQuotaExceededException", "full")))


async def became(outcome: FileOutcome, error: Exception | None = None) -> FileOutcome:
    """Transfer a file."""
    if error is not None:
        raise error
    return outcome


async def test_what_does_not_get_on_is_given_up_and_what_does_is_not() -> None:
    broken, trials = UnreachableError("gone"), Trials(pause=0)
    for _ in range(20):
        await trials.after(broken)
        trials.got_on()
    for _ in range(6):
        await trials.after(broken)
    with pytest.raises(UnreachableError):
        await trials.after(broken)
    await Trials(pause=0).after(FilesError(503, "RetriableException", "not now"))
    with pytest.raises(FilesError):
        await Trials(pause=0).after(FilesError(403, "AccessControlException", "never"))


async def test_several_are_done_at_once_but_not_more_and_the_first_error_ends_all() -> None:
    running = most = 0
    done: list[int] = []

    async def work(item: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        if item == 7:
            raise ValueError("seven")
        done.append(item)

    await side_by_side(range(7), work, 3)
    assert (most, sorted(done)) == (3, list(range(7)))
    with pytest.raises(ValueError, match="seven"):
        await side_by_side(range(1000), work, 3)
    assert len(done) < 30


@pytest.mark.parametrize(
    ("length", "text"),
    [
        *((0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (1500, "1.5 kB"), (9940, "9.9 kB"), (9960, "10 kB")),
        *((999_499, "999 kB"), (999_500, "1.0 MB"), (5 * 10**9, "5.0 GB"), (10**19, "10000 PB")),
    ],
)
def test_amounts_are_written_with_few_digits(length: int, text: str) -> None:
    assert amount(length) == text
