"""The picture of a replay shows what was so when."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pai_scheduler.simulator.report import draw, means, span_text
from pai_scheduler.simulator.simulation import Span
from tests.scheduler.simulator.traces import make_job, run

SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_is_an_svg_with_what_it_shows_and_the_same_each_time() -> None:
    replay = run([make_job("a", 0, 10, 2), make_job("b", 1, 10, 2, tasks=2)])
    picture = draw(replay, "a & b <$x^2$>")
    root = ElementTree.fromstring(picture)  # noqa: S314 - made here
    assert root.tag == f"{SVG}svg"
    said = {text.text for text in root.iter(f"{SVG}text")}
    assert {"a & b <$x^2$>", "GPUs in use, of 4", "Jobs that wait"} <= said
    assert {"from submission to end", "of it waiting", "10 s", "1 s"} <= said
    assert draw(replay, "a & b <$x^2$>") == picture


def test_each_piece_of_time_has_its_mean() -> None:
    spans = [Span(0, 10, 4, 0, 0, False), Span(10, 15, 2, 0, 0, False), Span(15, 40, 0, 0, 0, False)]
    assert means(spans, lambda span: span.used, 4) == [4.0, 1.0, 0.0, 0.0]
    assert means(spans, lambda span: span.used, 1) == [50 / 40]


def test_nothing_is_drawn_as_nothing() -> None:
    assert means([], lambda span: span.used, 3) == [0.0, 0.0, 0.0]
    assert draw(run([make_job("never", 0, 1, 3)]), "empty").endswith("</svg>\n")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0 s"), (59.0, "59 s"), (90.0, "1.5 min"), (7200.0, "2 h"), (1e6, "11.6 d")]
)
def test_a_time_is_written_in_its_largest_unit(seconds: float, text: str) -> None:
    assert span_text(seconds) == text
