"""A service's program: real processes that answer, die, are silent, or are not there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest

from pai_labextension.webapp.program import Command, ProgramPhase, WebProgram

PREFIX = "/user/a%40b/pai-service"
#: Says its words, then answers on its port or socket until it is told to die.
SERVER = """
import socketserver, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Tell(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(404)
        self.end_headers()
        self.wfile.write(self.path.encode())
    def address_string(self): return ""
class Unix(socketserver.UnixStreamServer):
    pass
print("\\x1b[31mserving\\x1b[0m", *sys.argv[2:])
place = sys.argv[1]
server = HTTPServer(("127.0.0.1", int(place)), Tell) if place.isdigit() else Unix(place, Tell)
server.serve_forever()
"""
Run = Callable[..., WebProgram]


@pytest.fixture
async def run() -> AsyncIterator[Run]:
    programs: list[WebProgram] = []

    def run(*words: str, seconds: int = 30, keeps_prefix: bool = False) -> WebProgram:
        program = WebProgram(Command("Board", words, PREFIX, keeps_prefix, seconds))
        programs.append(program)
        program.start()
        return program

    yield run
    for program in programs:
        await program.close()


async def until(program: WebProgram, *states: ProgramPhase) -> None:
    async with asyncio.timeout(30):
        while program.state not in states:  # noqa: ASYNC110 - as whoever asks does
            await asyncio.sleep(0.02)


def python(code: str, *words: str) -> list[str]:
    return [sys.executable, "-uc", code, *words]


async def test_it_answers_when_its_port_gives_any_answer(
    run: Run, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    program = run(*python(SERVER, "{port}", "{base_url}", "{prefix}", '{"a": {b}}'))
    assert program.state is ProgramPhase.STARTING
    await until(program, ProgramPhase.ANSWERS)
    async with (
        aiohttp.ClientSession() as http,
        http.get(f"http://localhost:{program.port}/somewhere") as answer,
    ):
        assert await answer.text() == "/somewhere"
    assert program.log.splitlines()[0] == f'serving {PREFIX}/ {PREFIX} {{"a": {{b}}}}'
    # the log of the job has it as it is
    assert b"\x1b[31mserving" in capfdbinary.readouterr().out


async def test_one_that_keeps_its_prefix_is_asked_there(run: Run) -> None:
    program = run(*python(SERVER, "{port}"), keeps_prefix=True)
    await until(program, ProgramPhase.ANSWERS)
    await asyncio.sleep(0.1)
    assert f'"GET {PREFIX}/ HTTP/1.1" 404' in program.log


async def test_it_may_listen_on_a_socket_that_goes_with_it(run: Run) -> None:
    program = run(*python(SERVER, "{unix_socket}"))
    await until(program, ProgramPhase.ANSWERS)
    assert program.port == 0
    folder = Path(program.unix_socket or "").parent
    assert folder.stat().st_mode & 0o777 == 0o700
    await program.close()
    assert not folder.exists()


async def test_one_that_ends_before_it_answers_has_failed_and_its_last_lines_are_kept(run: Run) -> None:
    lines = "for n in range(100): print('line', n, 'x' * 1000)\nraise SystemExit(3)"
    program = run(*python(lines, "{port}"))
    await until(program, ProgramPhase.FAILED)
    assert program.exit_code == 3
    assert [line.split()[1] for line in program.log.splitlines()] == [str(n) for n in range(88, 100)]
    assert max(map(len, program.log.splitlines())) == 500


async def test_one_that_is_silent_for_too_long_is_ended(run: Run) -> None:
    program = run(*python("import os, time; print(os.getpid()); time.sleep(600)", "{port}"), seconds=1)
    await until(program, ProgramPhase.FAILED)
    assert (program.exit_code, program.reason) == (None, "")
    assert program.told["startSeconds"] == 1
    with pytest.raises(ProcessLookupError):
        os.kill(int(program.log), 0)


async def test_one_that_is_not_there_says_so(run: Run) -> None:
    program = run("no-such-program", "{port}")
    await until(program, ProgramPhase.FAILED)
    assert program.reason == "[Errno 2] No such file or directory: 'no-such-program'"


async def test_one_that_dies_has_ended_and_is_started_again(run: Run) -> None:
    program = run(*python("import os; print('pid', os.getpid())\n" + SERVER, "{port}"))
    await until(program, ProgramPhase.ANSWERS)
    program.start()  # it is there: nothing happens
    first = int(program.log.splitlines()[0].split()[1])
    assert not await program.ended_within(0)
    os.kill(first, signal.SIGKILL)
    assert await program.ended_within(10)
    assert (program.state, program.exit_code) == (ProgramPhase.ENDED, -signal.SIGKILL)

    program.start()
    assert (program.state, program.exit_code, program.log) == (ProgramPhase.STARTING, None, "")
    await until(program, ProgramPhase.ANSWERS)
    assert int(program.log.splitlines()[0].split()[1]) != first


async def test_one_that_is_closed_ends_also_where_it_hears_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_labextension.webapp.program._END_SECONDS", 0.2)
    deaf = "import os, signal; signal.signal(15, signal.SIG_IGN); print('pid', os.getpid())\n"
    program = run(*python(deaf + SERVER, "{port}"))
    await until(program, ProgramPhase.ANSWERS)
    pid = int(program.log.splitlines()[0].split()[1])
    await program.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
