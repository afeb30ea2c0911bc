"""A task's output as a terminal would show it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_labextension.widgets.log_text import LogText


def shown(*parts: bytes, kept: int = 10_000, block: int = 1000) -> str:
    text = LogText(kept, block)
    for part in parts:
        text.feed(part)
    return "".join(block for _, block in text.take_changes())


def test_lines_are_shown_as_they_are() -> None:
    assert shown(b"one\ntwo\n\tthree") == "one\ntwo\n\tthree"


def test_a_progress_bar_overwrites_its_line() -> None:
    assert shown(b"\r 10%\r 20%", b"\r100%", b"\nnext") == "100%\nnext"


def test_a_shorter_line_leaves_the_rest_unless_it_is_erased() -> None:
    assert shown(b"abcdef\rxy") == "xycdef"
    assert shown(b"abcdef\r\x1b[Kxy") == "xy"
    assert shown(b"abcdef\r\x1b[2Kxy") == "xy"


def test_windows_line_ends_are_line_ends() -> None:
    assert shown(b"one\r\ntwo\r", b"\nthree") == "one\ntwo\nthree"


def test_a_backspace_moves_the_cursor_back() -> None:
    assert shown(b"12%\b\b\b34%") == "34%"


def test_colours_titles_and_other_controls_are_not_shown() -> None:
    assert shown(b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b[3A\x00\x07y") == "red xy"


def test_a_sequence_or_character_that_comes_in_two_pieces_is_one() -> None:
    assert shown(b"a\x1b[1", b";31mb") == "ab"
    assert shown(b"\xe4\xbd", b"\xa0\xe5\xa5\xbd") == "你好"


def test_bytes_that_are_no_text_are_marked() -> None:
    assert shown(b"a\xffb") == "a\ufffdb"


def test_only_the_end_of_a_long_log_is_kept() -> None:
    text = LogText(kept=1000, block=100)
    for number in range(1000):
        text.feed(b"line %03d\n" % number)
    blocks = text.take_changes()
    joined = "".join(block for _, block in blocks)
    assert 800 < len(joined) <= 1200
    assert joined.endswith("line 999\n")
    assert blocks[0][0] == text.first > 0


def test_a_line_without_end_is_bounded_too() -> None:
    text = LogText(kept=1000, block=100)
    for _ in range(100):
        text.feed(b"x" * 1000)
    assert len("".join(block for _, block in text.take_changes())) <= 1200


def test_only_what_changed_is_given() -> None:
    text = LogText(kept=1000, block=10)
    text.feed(b"0123456\n")
    assert text.take_changes() == [(0, "0123456\n")]
    text.feed(b"next line\n")
    assert text.take_changes() == [(0, "0123456\n"), (1, "next line\n")]
    text.feed(b"!")
    assert text.take_changes() == [(1, "next line\n!")]


@given(st.lists(st.binary(max_size=30), max_size=10))
def test_how_the_bytes_are_cut_makes_no_difference(parts: list[bytes]) -> None:
    assert shown(*parts) == shown(b"".join(parts))
