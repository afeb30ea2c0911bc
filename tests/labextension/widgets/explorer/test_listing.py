"""What is in a folder, in the order that a person asks for."""

from __future__ import annotations

from pai_labextension.widgets.explorer.listing import ROWS, Look, arrange, page_of
from pai_scheduler.client.storage.models import FileInfo


def entry(name: str, *, length: int = 0, modified: int = 0, is_folder: bool = False) -> FileInfo:
    return FileInfo(f"/a/{name}", is_folder, length, modified, 0o644, "alice", "")


def names(entries: list[FileInfo], look: Look) -> list[str]:
    return [entry.name for entry in arrange(entries, look)]


FILES = [
    entry("b.txt", length=5, modified=3),
    entry("A.txt", length=9, modified=1),
    entry("z", is_folder=True, modified=2),
    entry("c.py", length=5, modified=9),
]


def test_folders_come_first_and_capitals_do_not_count() -> None:
    assert names(FILES, Look()) == ["z", "A.txt", "b.txt", "c.py"]
    assert names(FILES, Look(descending=True)) == ["z", "c.py", "b.txt", "A.txt"]


def test_sizes_begin_with_the_largest_and_times_with_the_newest() -> None:
    by_size = Look().by("size")
    assert names(FILES, by_size) == ["z", "A.txt", "b.txt", "c.py"]
    assert names(FILES, by_size.by("size")) == ["z", "b.txt", "c.py", "A.txt"]
    assert names(FILES, Look().by("modified")) == ["z", "c.py", "b.txt", "A.txt"]


def test_another_column_begins_on_the_first_page() -> None:
    assert Look(page=3).by("size").page == 0


def test_a_part_of_a_name_is_found_in_whatever_capitals() -> None:
    assert names(FILES, Look(find=" TXT ")) == ["A.txt", "b.txt"]
    assert names(FILES, Look(find="nothing")) == []


def test_ten_thousand_files_are_shown_a_page_at_a_time() -> None:
    many = arrange([entry(f"{number:05}") for number in range(10_000)], Look())
    last = page_of(many, 10_000)
    assert (last.count, last.number, last.entries[-1].name) == (400, 399, "09999")
    second = page_of(many, 1)
    assert (second.first, len(second.entries), second.total) == (ROWS, ROWS, 10_000)


def test_an_empty_folder_has_one_page() -> None:
    page = page_of([], 5)
    assert (page.number, page.count, page.total) == (0, 1, 0)
