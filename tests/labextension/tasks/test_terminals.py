"""Shells that outlive their viewers, on a real sshd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from pathlib import Path

import asyncssh
import pytest

from pai_labextension.tasks.connections import KEPT, Terminal, Terminals
from tests.testbed.sshd import RunningSshd


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[RunningSshd]:
    running = RunningSshd(tmp_path)
    yield running
    running.close()


class Wires:
    """Opens connections, and remembers them."""

    def __init__(self, sshd: RunningSshd) -> None:
        self.opened: list[asyncssh.SSHClientConnection] = []
        self._sshd = sshd

    async def __call__(self) -> asyncssh.SSHClientConnection:
        connection = await self._sshd.connect()
        self.opened.append(connection)
        return connection


@pytest.fixture
def wires(sshd: RunningSshd) -> Wires:
    return Wires(sshd)


@pytest.fixture
async def terminals(wires: Wires) -> AsyncIterator[Terminals]:
    made = Terminals(wires)
    yield made
    await made.close()


async def sees(terminal: Terminal, text: str) -> str:
    """Look until a text has come; return all that was seen."""
    seen = ""
    async with asyncio.timeout(60):
        async with aclosing(terminal.view()) as pieces:
            async for piece in pieces:
                seen += piece
                if text in seen:
                    return seen
    raise AssertionError(f"the shell ended after {seen!r}")


async def to_the_end(terminal: Terminal) -> str:
    async with asyncio.timeout(60), aclosing(terminal.view()) as pieces:
        return "".join([piece async for piece in pieces])


async def test_a_shell_goes_on_while_nobody_looks_and_shows_what_it_said(terminals: Terminals) -> None:
    terminal = await terminals.create()
    await terminal.write("echo fir''st\r")
    await sees(terminal, "first")
    assert terminal.viewers == 0
    await terminal.write("echo sec''ond\r")
    seen = await sees(terminal, "second")
    assert "first" in seen


async def test_many_viewers_see_the_same(terminals: Terminals) -> None:
    terminal = await terminals.create()
    watching = [asyncio.create_task(sees(terminal, "to all")) for _ in range(5)]
    await terminal.write("echo to' 'all\r")
    await asyncio.gather(*watching)


async def test_a_terminal_has_the_size_it_was_given_and_ignores_impossible_ones(terminals: Terminals) -> None:
    terminal = await terminals.create()
    terminal.resize(132, 43)
    await terminal.write("stty size | sed s/^/size=/\r")
    await sees(terminal, "size=43 132")
    for wrong in ((0, 10), (10, -1), (100_000, 10)):
        terminal.resize(*wrong)
    await terminal.write("stty size | sed s/^/still=/\r")
    await sees(terminal, "still=43 132")


async def test_characters_are_whole_wherever_the_line_cuts_them(terminals: Terminals) -> None:
    terminal = await terminals.create()
    await terminal.write(r"printf 'a\346\261'; sleep 0.3; printf '\211b\n'" "\r")
    await sees(terminal, "a汉b")
    await terminal.write("echo 字''符 \udcff\r")
    await sees(terminal, "字符")


async def test_programs_take_what_is_typed_for_characters(terminals: Terminals) -> None:
    terminal = await terminals.create()
    await terminal.write("echo characters=$(printf 'ü好' | wc -m).\r")
    await sees(terminal, "characters=2.")


async def test_of_endless_output_a_part_is_kept_and_a_slow_viewer_skips(terminals: Terminals) -> None:
    terminal = await terminals.create()
    async with aclosing(terminal.view()) as slow:
        await terminal.write("seq -f 'line %.0f' 200000; echo en''d\r")
        first = await anext(slow)
        assert await sees(terminal, "end")
        rest = ""
        async for piece in slow:
            rest += piece
            if "end" in piece:
                break
    assert len(first) + len(rest) <= KEPT + 64 * 1024
    assert "line 200000" in rest


async def test_a_viewer_that_hangs_does_not_stop_the_shell(
    terminals: Terminals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_labextension.tasks.connections._VIEWERS_SECONDS", 0.1)
    terminal = await terminals.create()
    async with aclosing(terminal.view()) as hanging:
        await anext(hanging)
        await terminal.write("seq 100000; touch do''ne; exit\r")
        async with asyncio.timeout(120):
            await terminal.ended.wait()


async def test_a_shell_that_ends_is_gone_and_its_viewers_know(terminals: Terminals) -> None:
    terminal = await terminals.create()
    watching = asyncio.create_task(to_the_end(terminal))
    await terminal.write("echo last; exit 3\r")
    assert "last" in await watching
    assert terminal.farewell is None
    await comes_true(lambda: terminals.get(terminal.name) is None)


async def comes_true(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the other side tells nobody
            await asyncio.sleep(0.01)


async def test_closing_one_hangs_up_what_runs_on_it_and_no_other(terminals: Terminals) -> None:
    first, second = await terminals.create(), await terminals.create()
    await first.write("sleep 4711 & echo pid=$!.; sleep 4712\r")
    seen = await sees(first, ".\r\n")
    process = Path("/proc", seen.rpartition("pid=")[2].partition(".")[0])
    # (a child of bash that is no `sleep` yet has bash's own answer to a SIGHUP, and would outlive it)
    await comes_true(lambda: (process / "comm").read_text() == "sleep\n")
    await first.close()
    await comes_true(lambda: terminals.get(first.name) is None)
    await comes_true(lambda: not process.exists())
    await second.write("echo he''re\r")
    await sees(second, "here")
    assert [terminal.name for terminal in terminals.list()] == [second.name]


async def test_all_of_a_task_share_a_connection_and_a_broken_one_is_replaced(
    terminals: Terminals, wires: Wires
) -> None:
    several = [await terminals.create() for _ in range(3)]
    assert [terminal.name for terminal in several] == ["1", "2", "3"]
    (connection,) = wires.opened
    connection.abort()
    for terminal in several:
        await to_the_end(terminal)
        assert "connection to the task broke" in str(terminal.farewell)
    again = await terminals.create()
    await again.write("echo ba''ck\r")
    await sees(again, "back")
    assert len(wires.opened) == 2


async def test_a_name_that_is_there_is_the_same_shell(terminals: Terminals) -> None:
    one = await terminals.create("mine")
    assert await terminals.create("mine") is one
    assert (await terminals.create()).name == "1"


async def test_what_nobody_looks_at_is_closed_after_a_while_and_what_is_watched_is_not(wires: Wires) -> None:
    terminals = Terminals(wires, keep=0.2)
    watched, alone = await terminals.create(), await terminals.create()
    async with aclosing(watched.view()) as pieces:
        await anext(pieces)
        async with asyncio.timeout(10):
            await alone.ended.wait()
        assert not watched.ended.is_set()
    async with asyncio.timeout(10):
        await watched.ended.wait()
    await terminals.close()


async def test_a_task_that_cannot_be_reached_is_said_when_a_terminal_is_opened(
    terminals: Terminals, sshd
) -> None:
    sshd.close()
    with pytest.raises(ConnectionRefusedError):
        await terminals.create()
    assert terminals.list() == []
