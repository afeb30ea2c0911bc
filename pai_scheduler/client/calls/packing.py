"""Packing of a function and its arguments, or of a cell, as the program of a job; its tracebacks."""

from __future__ import annotations

import ast
import inspect
import io
import json
import linecache
import sys
import zipfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cloudpickle

from pai_scheduler.client.storage.code_settings import LARGEST_MB
from pai_scheduler.client.storage.transfer import amount
from pai_scheduler.i18n import msg

from . import runner
from .errors import NotSendableError

# Takes the traceback of an exception that will be raised here out of what its task writes.

#: With which lines a traceback begins.
_BEGINNINGS = ("Traceback (most recent call last)", "  + Exception Group Traceback (most recent call last)")


class TracebackTaker:
    """Passes on what a task writes, but for the traceback that it sent back before it wrote it.

    `sent`: returns that traceback, empty where none has come yet. It is asked only when one may begin.
    """

    def __init__(self, sent: Callable[[], Awaitable[str]]) -> None:
        self._sent = sent
        self._expected = self._held = ""
        #: The traceback, once all of it has been written.
        self.taken = ""

    async def pass_on(self, text: str) -> str:
        """Return what of the text so far is no part of the traceback."""
        if self.taken:
            return text
        self._held += text
        if not self._expected and _may_begin(self._held):
            self._expected = await self._sent()
        if not self._expected:
            return self._release(len(self._held))
        before, found, after = self._held.partition(self._expected)
        if found:
            self.taken, self._held = found, ""
            return before + after
        return self._release(_overlap(self._held, self._expected))

    def rest(self) -> str:
        """Return what is still held when the task writes no more."""
        return self._release(len(self._held))

    def _release(self, length: int) -> str:
        released, self._held = self._held[:length], self._held[length:]
        return released


def _may_begin(text: str) -> bool:
    last = text.rpartition("\n")[2]
    return any(beginning in text or (last and beginning.startswith(last)) for beginning in _BEGINNINGS)


def _overlap(text: str, expected: str) -> int:
    """Return where in the text the expected one may have begun; its length where it has not."""
    at = max(0, len(text) - len(expected))
    while not expected.startswith(text[at:]):
        at += 1
    return at


# Makes of a function and its arguments, or of a cell and its variables, the program that a job runs.

#: Our own files within the code: a program that Python runs as it is.
PROGRAM = ".pai-call.zip"
#: Bytes that may come back of each task; more belongs into the job's outputDir.
MOST_RETURNED = 500 * 10**6

#: Positional and keyword arguments of one call.
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def pack_function(function: Callable[..., Any], calls: Sequence[Arguments], locale: str = "en") -> bytes:
    """Return the program of a job whose task i calls `function` with `calls[i]`.

    NotSendableError where something cannot go there; TypeError where the function takes no such arguments.
    """
    name = getattr(function, "__qualname__", repr(function))
    for args, kwargs in calls:
        _check_arguments(function, args, kwargs)
    files = {"function.pkl": _pickled_function(function, name, locale)}
    for index, (args, kwargs) in enumerate(calls):
        files[f"arguments-{index}.pkl"] = _pickled_arguments(function, args, kwargs, locale)
    return _program(files, "function", _sources(function), (), locale)


def pack_cell(
    source: str, values: Mapping[str, Any], returns: Sequence[str] = (), locale: str = "en"
) -> bytes:
    """Return the program of a job whose tasks run a cell with `values`, and send those of `returns` back.

    NotSendableError where a value cannot go there.
    """
    for name, value in values.items():
        _pickled(name, value, locale)
    files = {"cell.py": source.encode(), "values.pkl": cloudpickle.dumps(dict(values))}
    lines = {runner.CELL: source.splitlines(keepends=True)}
    return _program(files, "cell", lines, returns, locale)


def check_cell(source: str) -> None:
    """Raise SyntaxError where a cell is no Python: IPython's own commands are none."""
    compile(source, runner.CELL, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def _program(
    files: dict[str, bytes],
    kind: str,
    sources: Mapping[str, Sequence[str]],
    returns: Sequence[str],
    locale: str,
) -> bytes:
    length = sum(map(len, files.values()))
    if length > LARGEST_MB * 10**6:
        largest = max(files, key=lambda name: len(files[name]))
        raise NotSendableError(
            msg(
                "What would go along with the job has {length}, of {limit} MB at most ({largest} has the "
                "most). Put data into the storage (pai fs put), and read it in the job.",
                length=amount(length),
                limit=LARGEST_MB,
                largest=largest,
            ),
            locale,
        )
    about = {
        "kind": kind,
        "python": list(sys.version_info[:2]),
        "sources": sources,
        "returns": list(returns),
        "most": MOST_RETURNED,
    }
    files["call.json"] = json.dumps(about).encode()
    program = io.BytesIO()
    program.write(_runner())
    with zipfile.ZipFile(program, "a") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return program.getvalue()


@cache
def _runner() -> bytes:
    """Return a program of the runner and cloudpickle, as they are installed here.

    Nothing is compressed: the Python of some image might not have zlib.
    """
    program = io.BytesIO()
    with zipfile.ZipFile(program, "w") as archive:
        archive.write(runner.__file__, "__main__.py")
        for file in Path(cloudpickle.__file__).parent.glob("*.py"):
            archive.write(file, f"cloudpickle/{file.name}")
    return program.getvalue()


def _check_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise TypeError where the function takes no such arguments, as a call here would."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # one that is written in C, and says nothing of them
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{getattr(function, '__name__', function)}(): {error}") from None


def _sources(function: Callable[..., Any]) -> dict[str, list[str]]:
    """Return the text of the file or cell that a function stands in, for its tracebacks in the job."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return {}
    lines = linecache.getlines(code.co_filename)
    return {code.co_filename: lines} if lines else {}


def _pickled(name: str, value: Any, locale: str) -> bytes:
    try:
        data: bytes = cloudpickle.dumps(value)
    except Exception as error:
        raise NotSendableError(
            msg(
                "{name} cannot be sent to a job: {reason}. Nothing was submitted. Make it in the job, or "
                "send what it is made of.",
                name=name,
                reason=_reason(error),
            ),
            locale,
        ) from error
    return data


def _pickled_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], locale: str
) -> bytes:
    try:
        data: bytes = cloudpickle.dumps((args, kwargs))
    except Exception:
        # which one?
        for name, value in _named(function, args, kwargs):
            _pickled(name, value, locale)
        raise
    return data


def _named(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[str, Any]]:
    try:
        return list(inspect.signature(function).bind(*args, **kwargs).arguments.items())
    except (TypeError, ValueError):
        return [*((f"args[{index}]", value) for index, value in enumerate(args)), *kwargs.items()]


def _pickled_function(function: Callable[..., Any], name: str, locale: str) -> bytes:
    try:
        data: bytes = cloudpickle.dumps(function)
    except Exception as error:
        try:
            used = inspect.getclosurevars(inspect.unwrap(function))
        except TypeError:
            used = inspect.ClosureVars({}, {}, {}, set())
        for variable, value in {**used.globals, **used.nonlocals}.items():
            if value is function:
                continue
            try:
                cloudpickle.dumps(value)
            except Exception as cause:
                raise NotSendableError(
                    msg(
                        "{variable}, which {function} uses, cannot be sent to a job: {reason}. Nothing was "
                        "submitted. Make it within the function, or send what it is made of.",
                        variable=variable,
                        function=name,
                        reason=_reason(cause),
                    ),
                    locale,
                ) from cause
        raise NotSendableError(
            msg(
                "{name} cannot be sent to a job: {reason}. Nothing was submitted.",
                name=name,
                reason=_reason(error),
            ),
            locale,
        ) from error
    return data


def _reason(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__
