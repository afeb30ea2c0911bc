"""How far a transfer is, in words, as often as can be seen."""

from __future__ import annotations

from pai_labextension.widgets.explorer.progress_bar import ProgressBar
from pai_labextension.widgets.language import Language
from pai_scheduler.client.storage.transfer import TransferProgress


def progress(done: int, total: int = 1000, files: int = 0) -> TransferProgress:
    return TransferProgress(files, 2, done, total, "a<b>.bin")


async def test_it_says_how_much_how_many_and_how_fast() -> None:
    now = [100.0]
    bar = ProgressBar(Language("en"), lambda: None, lambda: now[0])
    bar.begin("Uploading …")
    assert bar.text.value == "Uploading …"
    bar.tell(progress(200))
    assert bar.text.value == "200 B of 1.0 kB, files: 0 of 2 · a&lt;b&gt;.bin"
    now[0] += 2
    bar.tell(progress(600, files=1))
    assert bar.bar.value == 0.6
    assert "600 B of 1.0 kB, files: 1 of 2 · 200 B per second" in bar.text.value


async def test_it_is_not_painted_more_often_than_can_be_seen_but_for_the_end() -> None:
    bar = ProgressBar(Language("en"), lambda: None, lambda: 100.0)
    bar.begin("")
    bar.tell(progress(1))
    bar.tell(progress(500))
    assert bar.bar.value == 0.001
    bar.tell(progress(1000, files=2))
    assert bar.bar.value == 1


async def test_files_without_a_byte_count_too() -> None:
    bar = ProgressBar(Language("en"), lambda: None, lambda: 100.0)
    bar.begin("")
    bar.tell(progress(0, total=0, files=1))
    assert bar.bar.value == 0.5
