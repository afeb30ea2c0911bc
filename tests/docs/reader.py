"""A reader of a page: types what it says into a notebook and a terminal of a real server, and looks.

What a block is to its reader follows from the page alone, as for a person:

- `python` and `ipython` are cells of one notebook, `sh` and `console` (behind `$ `) lines of one terminal;
- what is introduced by a sentence that ends in a file's name, as "… `job.json`:", is saved under it;
- `text` directly behind cells or lines is what they show, where `…` stands for anything;
- `Ctrl-C` or `exit` in the comment of a line is how one leaves what it began;
- the rest is to be read. So is what `<!-- reader: only reads this, WHY -->` stands before; other such remarks
  are `an administrator`, `chooses the kernel NAME` and `submits the template NAME`.
"""

from __future__ import annotations

import asyncio
import os
import pty
import re
import struct
import subprocess
import termios
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from fcntl import ioctl
from pathlib import Path

import httpx

from tests.testbed.notebook import PATIENCE, Notebook, connected

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"<!-- reader: (.*?) -->\s*\Z", re.DOTALL)
_SAVED_AS = re.compile(r"`([\w./-]+\.\w+)`[:：]\s*\Z")
#: What ends a line's output: an operating system command that terminals pass over, with the exit code.
_PROMPT = re.compile(rb"\x1b\]133;D;(\d+)\x07")
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[=>])")
_TEMPLATE = "submits the template "
_CELLS, _LINES = ("python", "ipython"), ("sh", "console")
_KEYS = {"Ctrl-C": b"\x03", "exit": b"exit\n"}


@dataclass(frozen=True)
class Step:
    """A block of a page: what it is to its reader, and `shown`: what the page says comes of it."""

    page: Path
    line: int
    language: str
    text: str
    saved_as: str
    remark: str
    shown: str | None

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def is_done(self) -> bool:
        """Return whether the reader does something about it, and does not only read it."""
        done = bool(self.saved_as) or self.language in (*_CELLS, *_LINES)
        return done and not self.remark.startswith("only reads this")


def steps(page: Path) -> list[Step]:
    """Return the blocks of a page, top to bottom."""
    text = page.read_text(encoding="utf-8")
    found: list[Step] = []
    end = 0
    for match in _FENCE.finditer(text):
        before, end = text[end : match.start()], match.end()
        saved, remark = _SAVED_AS.search(before), _COMMENT.search(before)
        if match[1] == "text" and not before.strip() and found and found[-1].shown is None:
            found[-1] = replace(found[-1], shown=match[2])
            continue
        line = text[: match.start()].count("\n") + 1
        saved_as, said = saved[1] if saved else "", remark[1] if remark else ""
        found.append(Step(page, line, match[1], match[2], saved_as, said, None))
    return found


class Terminal:
    """A shell on a terminal of its own, as a person has it."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        self._descriptor, inner = pty.openpty()
        ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        attributes = termios.tcgetattr(inner)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(inner, termios.TCSANOW, attributes)
        mark = r"printf '\033]133;D;%s\007' $?"
        self._process = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--noediting", "-i"],
            cwd=folder,
            env={**environ, "TERM": "xterm", "PS1": "", "PS2": "", "PROMPT_COMMAND": mark},
            stdin=inner,
            stdout=inner,
            stderr=inner,
        )
        os.close(inner)
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._came = asyncio.Event()
        self._loop.add_reader(self._descriptor, self._read)

    async def begin(self) -> None:
        """Wait for the first prompt, and have it empty from then on."""
        await self._prompt("the shell")
        await self.run("PS1=")

    async def run(self, line: str, leave: bytes = b"") -> tuple[str, int]:
        """Type a line; return what it shows and its exit code. `leave`: typed when something is shown."""
        self._received.clear()
        os.write(self._descriptor, line.encode() + b"\n")
        return await self._prompt(line, leave)

    async def _prompt(self, line: str, leave: bytes = b"") -> tuple[str, int]:
        try:
            async with asyncio.timeout(PATIENCE):
                while (done := _PROMPT.search(self._received)) is None:
                    await self._came.wait()
                    self._came.clear()
                    if leave and plain(self._received.decode(errors="replace")).strip():
                        os.write(self._descriptor, leave)
                        leave = b""
        except TimeoutError:
            raise AssertionError(f"{line!r} does not end; it shows:\n{self._received.decode()}") from None
        return plain(self._received[: done.start()].decode()), int(done[1])

    def close(self) -> None:
        """Close the window: all that runs in it gets SIGHUP."""
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._process.wait(PATIENCE)

    def _read(self) -> None:
        try:
            self._received += os.read(self._descriptor, 65536)
        except OSError:
            self._loop.remove_reader(self._descriptor)
        self._came.set()


def plain(text: str) -> str:
    """Return what stands on a terminal in the end: without colours, and without what was written over."""
    lines = _CONTROL.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2].rstrip() for line in lines)


class Reader:
    """Somebody with a notebook server at `server`, logged in, in their home on it.

    `environ`: what that server's terminals have; `administrator`: the token that opens everything.
    """

    def __init__(
        self, server: str, authorization: str, home: Path, environ: Mapping[str, str], administrator: str
    ) -> None:
        self._server, self._authorization = server, authorization
        self._home, self._environ, self._administrator = home, environ, administrator

    async def read(self, page: Path) -> None:
        """Do what a page says, in a new notebook and a new terminal; AssertionError where it is not so."""
        notebooks: dict[str, Notebook] = {}
        async with AsyncExitStack() as stack:
            terminals = {}
            for name, more in (("", {}), ("an administrator", {"PAI_TOKEN": self._administrator})):
                terminals[name] = Terminal(self._home, {**self._environ, **more})
                stack.callback(terminals[name].close)
                await terminals[name].begin()
            for step in steps(page):
                if not step.is_done:
                    continue
                if step.remark.startswith(_TEMPLATE):
                    await self._submit(step.remark.removeprefix(_TEMPLATE))
                if step.saved_as:
                    file = self._home / step.saved_as
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(step.text, encoding="utf-8")
                elif step.language in _CELLS:
                    kernel = step.remark.removeprefix("chooses the kernel ")
                    if kernel not in notebooks:
                        notebooks[kernel] = await stack.enter_async_context(self._notebook(kernel))
                    _compare(step, await notebooks[kernel].shows(step.text.rstrip("\n")))
                else:
                    await _type(step, terminals.get(step.remark, terminals[""]))

    async def _submit(self, template: str) -> None:
        """Choose a template in *New PAI job*, and submit it as it is."""
        async with self._browser() as browser:
            templates = (await browser.get("/pai/job-editor")).json()["templates"]
            (config,) = (each["config"] for each in templates if each["title"] == template)
            answer = await browser.post("/pai/api/v1/jobs", json=config)
            assert answer.status_code == 202, answer.text

    def _browser(self) -> httpx.AsyncClient:
        headers = {"Authorization": self._authorization}
        return httpx.AsyncClient(base_url=self._server, headers=headers, timeout=PATIENCE, trust_env=False)

    @asynccontextmanager
    async def _notebook(self, kernel: str) -> AsyncIterator[Notebook]:
        """Open a new notebook, with the kernel of this title; empty: the one that JupyterLab proposes."""
        async with self._browser() as browser:
            # the ones with a GPU come when the scheduler has said what there is
            async with asyncio.timeout(PATIENCE):
                while True:
                    specs = (await browser.get("/api/kernelspecs")).json()
                    named = {each["spec"]["display_name"]: key for key, each in specs["kernelspecs"].items()}
                    named[""] = specs["default"]
                    if kernel in named:
                        break
                    await asyncio.sleep(0.2)
            name = f"{uuid.uuid4().hex}.ipynb"
            wanted = {"name": named[kernel]}
            answer = await browser.post(
                "/api/sessions", json={"path": name, "name": name, "type": "notebook", "kernel": wanted}
            )
            assert answer.status_code == 201, answer.text
            session = answer.json()
            async with connected(self._server, session["kernel"]["id"], self._authorization) as notebook:
                try:
                    yield notebook
                finally:
                    await browser.delete(f"/api/sessions/{session['id']}")


async def _type(step: Step, terminal: Terminal) -> None:
    """Type the lines of a block; compare what each shows, or all of them together."""
    together = ""
    text = step.text.replace("\\\n", "\\\r")
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:] if step.language == "console" else [text]:
        lines = part.split("\n")
        for line in lines[:1] if step.language == "console" else lines:
            typed, _, comment = line.replace("\\\r", "").partition("  #")
            if not typed.strip():
                continue
            leave = next((keys for name, keys in _KEYS.items() if name in comment), b"")
            shown, code = await terminal.run(line.replace("\\\r", "\\\n"), leave)
            assert code == 0 or leave, f"{step}: {typed}\nends with {code}:\n{shown}"
            together += shown
            if step.language == "console":
                assert matches("\n".join(lines[1:]), shown), f"{step}: {typed}\nshows:\n{shown}"
    _compare(step, together)


def _compare(step: Step, shown: str) -> None:
    """Compare with what the page says comes of a block."""
    if step.shown is not None:
        assert matches(step.shown, shown), f"{step}: the page says\n{step.shown}\nand it shows\n{shown}"


def matches(said: str, shown: str) -> bool:
    """Return whether a text is what a page says: `…` stands for anything, blanks for any number of blanks."""
    words = [" *\n *".join(map(_line, part.split("\n"))) for part in said.strip().split("…")]
    return re.fullmatch(r"(?:.|\n)*?".join(words), plain(shown).strip()) is not None


def _line(text: str) -> str:
    return " +".join(map(re.escape, re.split(" +", text)))
