"""What a notebook server and the runner in a kernel's task say to each other, through the SSH gateway."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import asyncssh

#: Seconds that the runner may take for an answer: to start a kernel is the longest.
_ANSWER_SECONDS = 60.0


class RunnerError(Exception):
    """The runner could not do what it was asked for."""


@dataclass(frozen=True, slots=True)
class RunnerState:
    """What the runner says of the kernel. `connection` empty: none was started; `code` None: it runs.

    `idle`: seconds since it was used; `limit`: seconds after which it then ends, 0: never.
    """

    connection: Mapping[str, Any]
    code: int | None
    oom: bool
    busy: bool
    idle: float
    limit: float

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> RunnerState:
        """Read it from an event; KeyError, TypeError, ValueError where that is none."""
        kernel = said["kernel"] or {"connection": {}, "code": None, "oom": False}
        return cls(
            dict(kernel["connection"]),
            None if kernel["code"] is None else int(kernel["code"]),
            bool(kernel["oom"]),
            bool(said["busy"]),
            float(said["idle"]),
            float(said["limit"]),
        )


#: Is told what happens: "hello" first, then "activity", "exited", "idle".
Heard = Callable[[str, RunnerState], None]


class RunnerLink:
    """One conversation with a runner. `run` holds it; requests raise ConnectionError when it is over."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes], heard: Heard) -> None:
        self._process, self._heard = process, heard
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}

    async def run(self) -> None:
        """Listen until the runner, or the way to it, is gone."""
        try:
            while line := await self._process.stdout.readline():
                self._take(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise RunnerError(f"what answers in the task is no runner: {error}") from error
        finally:
            for asked in self._asked.values():
                if not asked.done():
                    asked.set_exception(ConnectionError("the connection to the kernel's task broke off"))
            self._process.close()

    async def ask(self, what: str, **values: Any) -> Any:
        """Ask for something; RunnerError where it is refused, ConnectionError, TimeoutError."""
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self._process.stdin.write(json.dumps({"id": number, "do": what, **values}).encode() + b"\n")
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await answer
        except BrokenPipeError as error:
            raise ConnectionError(str(error)) from error
        finally:
            del self._asked[number]

    def _take(self, said: dict[str, Any]) -> None:
        if "event" in said:
            self._heard(said["event"], RunnerState.read(said))
            return
        asked = self._asked.get(said["id"])
        if asked is None or asked.done():
            return
        if "error" in said:
            asked.set_exception(RunnerError(said["error"]))
        else:
            asked.set_result(said.get("ok"))


async def attach(connection: asyncssh.SSHClientConnection, command: str, heard: Heard) -> RunnerLink:
    """Begin a conversation; asyncssh.Error, OSError."""
    process = await connection.create_process(command, encoding=None, stderr=asyncssh.DEVNULL)
    return RunnerLink(process, heard)
