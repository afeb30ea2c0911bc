"""The log as the browser gets it."""

from __future__ import annotations

import asyncio

from pai_labextension.widgets.log_view import LogView
from tests.labextension.widgets.waiting import until


async def test_output_is_escaped() -> None:
    view = LogView("nothing yet")
    view.feed(b"<script>alert('x')</script> & more\n")
    view.paint()
    assert "<script>" not in view.inside.children[0].value
    assert view.text == "<script>alert('x')</script> & more\n"


async def test_a_blank_log_says_so_until_something_comes() -> None:
    view = LogView("nothing yet")
    assert "nothing yet" in view.inside.children[0].value
    view.feed(b"x")
    view.paint()
    assert "nothing yet" not in "".join(child.value for child in view.inside.children)
    view.clear()
    assert view.text == ""
    assert "nothing yet" in view.inside.children[0].value


async def test_a_new_line_changes_the_last_block_only() -> None:
    view = LogView("")
    view.feed(b"a" * 70 + b"\n")
    for _ in range(1000):
        view.feed(b"b" * 70 + b"\n")
    view.paint()
    changed: list[object] = []
    for block in view.inside.children:
        block.observe(lambda change: changed.append(change["owner"]), "value")
    view.feed(b"the last line")
    view.paint()
    assert changed == [view.inside.children[-1]]


async def test_the_browser_keeps_about_a_megabyte() -> None:
    view = LogView("")
    for number in range(40_000):
        view.feed(b"line %06d %s\n" % (number, b"x" * 40))
        if number % 1000 == 0:
            view.paint()
    view.paint()
    assert 900_000 < len(view.text) < 1_100_000
    assert view.text.endswith("x\n")
    assert "line 039999" in view.text


async def test_the_log_view_paints_by_itself() -> None:
    view = LogView("")
    task = asyncio.create_task(view.run())
    view.feed(b"hello")
    await until(lambda: view.text == "hello")
    view.feed(b" world")
    await until(lambda: view.text == "hello world")
    task.cancel()
