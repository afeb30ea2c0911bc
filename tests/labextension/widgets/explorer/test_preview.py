"""What a file begins with is shown as what it is, and never runs."""

from __future__ import annotations

import pytest

from pai_labextension.widgets.explorer.preview import PICTURE_BYTES, TEXT_BYTES, Picture, Text, preview
from pai_labextension.widgets.explorer.preview import bytes_wanted as wanted
from pai_labextension.widgets.language import Language

SAY = Language("en")
PNG = b"\x89PNG\r\n\x1a\n rest"


def text(name: str, content: bytes, length: int | None = None) -> Text:
    shown = preview(SAY, name, content, len(content) if length is None else length)
    assert isinstance(shown, Text)
    return shown


def test_text_is_escaped() -> None:
    assert text("a.html", b"<img src=x onerror=alert(1)>").markup == (
        '<pre class="pai-preview">&lt;img src=x onerror=alert(1)&gt;</pre>'
    )


def test_chinese_that_is_cut_in_the_middle_of_a_character_is_still_text() -> None:
    whole = "数据" * 10
    for end in (57, 58, 59):
        shown = text("a.txt", whole.encode()[:end], 1000)
        assert shown.cut
        assert whole[:19] in shown.markup
    assert preview(SAY, "a.txt", whole.encode()[:58], 58) is None, "a whole file that is no UTF-8"


def test_what_is_neither_text_nor_picture_is_not_shown() -> None:
    assert preview(SAY, "a.txt", b"\0\1", 2) is None
    assert preview(SAY, "a.png", b"\xff\0 no picture", 12) is None


def test_a_table_shows_its_columns_and_leaves_out_half_a_line() -> None:
    shown = text("a.tsv", b"x\ty\n1\t2\n3\t", 1000)
    assert '<th scope="col">x</th>' in shown.markup
    assert "<td>1</td><td>2</td>" in shown.markup
    assert "<td>3</td>" not in shown.markup
    assert shown.cut


def test_a_long_or_wide_table_is_cut_and_says_so() -> None:
    rows = b"\n".join(b",".join(b"%d" % number for number in range(30)) for _ in range(80))
    shown = text("a.csv", rows)
    assert shown.cut
    assert "and more columns" in shown.markup
    assert shown.markup.count("<tr>") == 51


def test_an_empty_table_is_shown_as_text() -> None:
    assert text("a.csv", b"").markup.startswith("<pre")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [("a.png", PNG, "png"), ("a.JPG", b"\xff\xd8\xff..", "jpeg"), ("a.webp", b"RIFF1234WEBPVP8", "webp")],
)
def test_pictures_are_known_by_what_they_begin_with(name: str, content: bytes, kind: str) -> None:
    assert preview(SAY, name, content, len(content)) == Picture(kind, content)


def test_a_drawing_that_may_hold_a_program_is_shown_as_text() -> None:
    shown = text("a.svg", b"<svg onload='alert(1)'/>")
    assert "&lt;svg" in shown.markup


def test_no_more_is_read_than_is_shown() -> None:
    assert wanted("a.png") == PICTURE_BYTES
    assert wanted("png") == PICTURE_BYTES
    assert wanted("a.txt") == TEXT_BYTES
    assert preview(SAY, "a.png", PNG, 10 * PICTURE_BYTES) is None
