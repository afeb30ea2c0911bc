"""Line charts of what a task uses."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from pai_labextension.widgets.charts import (
    HEIGHT,
    MOST_CORNERS,
    WIDTH,
    Chart,
    ChartLine,
    charts_of,
    draw,
    number,
    per_second,
    scale_top,
    thinned,
)
from pai_labextension.widgets.language import Language

EN = Language("en")
SVG = "{http://www.w3.org/2000/svg}"


def test_only_series_that_have_values_are_drawn() -> None:
    received = [(0, 1.0), (1000, 2.0)]
    series = {"cpuPercent": [(0, 5.0)], "memoryMB": [], "netRxBytes": received, "netTxBytes": []}
    charts = charts_of(EN, series)
    assert [chart.title for chart in charts] == ["CPU (100 % is one core)", "Network"]
    assert [line.name for line in charts[1].lines] == ["received"]
    assert charts_of(EN, {}) == []


def test_bytes_become_a_speed() -> None:
    assert per_second([(0, 0), (2000, 4_000_000), (3000, 4_000_000), (4000, 0)]) == [
        (2000, 2.0),
        (3000, 0.0),
        (4000, 0.0),
    ]


def corners(markup: str) -> list[tuple[float, float]]:
    root = ElementTree.fromstring(markup)  # noqa: S314 - our own
    line = next(node for node in root.iter() if node.tag == "polyline")
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.get("points", "").split())]


def test_a_line_goes_from_the_first_time_to_the_last_and_stays_inside() -> None:
    chart = Chart("Memory", "MB", (ChartLine("", [(0, 0.0), (5000, 400.0), (10000, 200.0)]),))
    points = corners(draw(EN, chart))
    xs, ys = [x for x, _ in points], [y for _, y in points]
    assert xs == sorted(xs)
    assert (xs[0] + xs[2]) / 2 == pytest.approx(xs[1], abs=0.1)
    assert all(0 <= x <= WIDTH for x in xs)
    assert all(0 <= y <= HEIGHT for y in ys)
    assert ys[1] < ys[2] < ys[0], "more is higher up"
    assert ys[2] == pytest.approx((ys[0] + ys[1]) / 2, abs=0.1)


def test_axes_have_numbers_units_and_times() -> None:
    chart = Chart("Memory", "MB", (ChartLine("", [(0, 10.0), (61_000, 400.0)]),))
    markup = draw(EN, chart)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", markup)
    assert texts[:3] == ["0", "200", "400 MB"]
    assert all(re.fullmatch(r"\d\d:\d\d:\d\d", text) for text in texts[3:])
    assert len(texts) == 5
    assert 'aria-label="Memory: 400 MB now, 400 MB at most"' in markup


def test_names_are_escaped_and_one_point_is_a_dot() -> None:
    markup = draw(EN, Chart("<b>", "MB", (ChartLine('"x"', [(0, 1.0)]),)))
    assert "<circle" in markup
    assert "<polyline" not in markup
    assert "<b><b>" not in markup
    assert 'aria-label="&lt;b&gt;: &quot;x&quot; 1 MB now' in markup


def test_a_long_course_is_thinned_but_ends_where_it_is_now() -> None:
    points = [(n * 1000, float(n % 7)) for n in range(1000)]
    few = thinned(points)
    assert MOST_CORNERS // 2 < len(few) <= MOST_CORNERS
    assert few[-1] == points[-1]
    assert [time for time, _ in few] == sorted(time for time, _ in few)
    assert thinned(points[:5]) == points[:5]


@pytest.mark.parametrize(
    ("highest", "whole", "top"),
    [
        (3, 100, 100),
        (130, 100, 200),
        (0, 0, 1),
        (0.03, 0, 0.04),
        (400, 0, 400),
        (401, 0, 500),
        (900, 0, 1000),
    ],
)
def test_a_scale_ends_at_a_round_number(highest: float, whole: float, top: float) -> None:
    assert scale_top(highest, whole) == pytest.approx(top)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.0312, "0.031"), (1.0, "1"), (12.34, "12.3"), (123456.7, "123,457")]
)
def test_a_number_has_as_many_digits_as_say_something(value: float, text: str) -> None:
    assert number(value) == text


def test_the_scale_of_gpu_memory_ends_at_what_the_gpus_have_where_that_is_known() -> None:
    series = {"gpuMemoryMB": [(0, 512.0)], "memoryMB": [(0, 512.0)]}
    memory, of_gpus = charts_of(EN, series, 81920)
    assert (memory.whole, of_gpus.whole) == (0, 81920)
    assert [chart.whole for chart in charts_of(EN, series)] == [0, 0]


def test_the_charts_speak_chinese() -> None:
    chinese = Language("zh_CN")
    markup = draw(chinese, charts_of(chinese, {"gpuMemoryMB": [(0, 5.0), (1, 6.0)]})[0])
    assert "显存" in markup
    assert "当前 6 MB，最高 6 MB" in markup
