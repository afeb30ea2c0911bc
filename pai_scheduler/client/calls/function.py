"""`remote`: a function that runs as a job of the cluster each time it is called."""

from __future__ import annotations

import asyncio
import copy
import functools
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from pai_scheduler.client.blocking import Conversation, start
from pai_scheduler.i18n import choose_locale, msg
from pai_scheduler.job.dependencies import read_entries

from .demand import CallDemand
from .errors import NotSendableError
from .job import CallOutcome, Change, Task, run_job
from .output import OutputWriter
from .packing import pack_function
from .session import Access
from .sweep import Sweep

# In which language a remote function tells what happens, unless it is told one.


def environment_locale() -> str:
    """Choose the language by the environment: PAI_LOCALE, then as POSIX has it."""
    names = ("PAI_LOCALE", "LC_ALL", "LC_MESSAGES", "LANG")
    return choose_locale(next(filter(None, (os.environ.get(name) for name in names)), ""))


_source: Callable[[], str] = environment_locale


def default_locale() -> str:
    """Return the reader's language: "en" or "zh_CN"."""
    return _source()


def use_locale_of(source: Callable[[], str]) -> None:
    """Have `source` say the language from now on: JupyterLab knows more about its reader than we do."""
    global _source
    _source = source


# `remote`: a function that runs as a job of the cluster each time it is called.

P = ParamSpec("P")
R = TypeVar("R")
#: The only role of such a job.
ROLE = "main"


class RemoteFunction(Generic[P, R]):
    """A function that runs as a job. Called, it waits for the job and returns what the function returns.

    What the function prints appears here. An exception of the function is raised here, with the traceback of
    the job as its cause. Further raised: `NotSendableError` (nothing was submitted), `JobFailedError` (the
    job ended before the function), `CallError` (nothing usable came back), `ApiError`, `UnreachableError`.
    An interrupt (Ctrl-C) stops the job. Within a job a remote function is the plain function.
    """

    def __init__(self, function: Callable[P, R], demand: CallDemand, access: Access, *, output: bool) -> None:
        self._function, self._demand, self._access, self._output = function, demand, access, output
        functools.update_wrapper(self, function)

    def __set_name__(self, owner: type, name: str) -> None:
        """Refuse a method, when its class is made: a call would not get the object that it is called on."""
        if getattr(self._function, "__qualname__", "") == f"{owner.__qualname__}.{name}":
            raise NotSendableError(
                msg(
                    "{name} is a method of {owner}, and a method cannot be remote. Write a function that "
                    "takes the object as an argument, or put @staticmethod above @remote.",
                    name=name,
                    owner=owner.__name__,
                ),
                self._access.locale,
            )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the job, and wait for the value."""
        __tracebackhide__ = True  # IPython then shows the user's own frames
        program = pack_function(self._function, [(args, kwargs)], self._access.locale)
        writer = OutputWriter(self._access.locale)

        async def work(tell: Callable[[Change], None]) -> dict[Task, CallOutcome]:
            return await run_job(
                self._access, self._demand, self._job_name, {ROLE: 1}, program, tell,
                together=True, output=self._output,
            )  # fmt: skip

        talk = Conversation(work)
        try:
            outcomes = talk.listen(writer.hear)
        except BaseException:
            talk.cancel()
            writer.finish()
            raise
        writer.finish(raised=(ROLE, 0))
        return cast(R, outcomes[ROLE, 0].get())

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Start the job and return at once: a future of its value. Cancelling the future stops the job.

        Raises NotSendableError at once; everything else is in the future.
        """
        program = pack_function(self._function, [(args, kwargs)], self._access.locale)
        return start(self._run_one(program))

    def aio(self, *args: P.args, **kwargs: P.kwargs) -> Awaitable[R]:
        """Return the value to those who `await` it; the loop runs on meanwhile. Cancelling stops the job."""
        return asyncio.wrap_future(self.submit(*args, **kwargs))

    def map(self, *arguments: Iterable[Any]) -> Sweep[R]:
        """Call the function with each of these, as the built-in `map` does: the tasks of one job.

        Returns a `Sweep` at once, which gives the values in the order of the arguments as they come.
        """
        calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
            (args, {}) for args in zip(*arguments, strict=False)
        ]
        program = pack_function(self._function, calls, self._access.locale) if calls else b""
        sweep: Sweep[R] = Sweep(len(calls), self._access.locale)
        if calls:
            sweep.run(self._run_all(program, len(calls), sweep))
        return sweep

    def local(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the plain function here."""
        return self._function(*args, **kwargs)

    def options(self, **changes: Any) -> RemoteFunction[P, R]:
        """Return the same function with other options of `remote`, for example `f.options(gpus=2)(x)`."""
        demand, access, output = _read(changes, self._demand, self._access, self._output)
        return RemoteFunction(self._function, demand, access, output=output)

    def __repr__(self) -> str:
        return f"<remote {getattr(self._function, '__qualname__', self._function)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # in a job it is the function itself, which needs nothing of ours there: copy gives it as it is
        return copy.copy, (self._function,)

    @property
    def _job_name(self) -> str:
        return re.sub(r"[^A-Za-z0-9._~-]", "", getattr(self._function, "__name__", "")) or "call"

    async def _run_one(self, program: bytes) -> R:
        outcomes = await run_job(
            self._access, self._demand, self._job_name, {ROLE: 1}, program, None, together=True
        )
        return cast(R, outcomes[ROLE, 0].get())

    async def _run_all(self, program: bytes, count: int, sweep: Sweep[R]) -> None:
        outcomes = await run_job(
            self._access, self._demand, self._job_name, {ROLE: count}, program, sweep.hear, together=False
        )
        for (_, index), outcome in outcomes.items():
            sweep.settle(index, outcome)


@overload
def remote(function: Callable[P, R], /) -> RemoteFunction[P, R]: ...
@overload
def remote(
    *,
    gpus: int = ...,
    image: str = ...,
    gpu_type: str = ...,
    cpus: int | None = ...,
    memory_mb: int | None = ...,
    storage_gb: int | None = ...,
    shm_mb: int | None = ...,
    virtual_cluster: str = ...,
    name: str = ...,
    python: str = ...,
    code: Path | str | None = ...,
    env: Mapping[str, str] = ...,
    extras: Mapping[str, Any] = ...,
    after: str | Mapping[str, str] | Sequence[str | Mapping[str, str]] = ...,
    output: bool = ...,
    url: str | None = ...,
    token: str | None = ...,
    locale: str | None = ...,
) -> Callable[[Callable[P, R]], RemoteFunction[P, R]]: ...


def remote(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function run as a job each time it is called: `@remote(gpus=1)`.

    What each task gets: `gpus`, `gpu_type`, `cpus`, `memory_mb`, `shm_mb` (MB), `storage_gb` (GB of disk),
    `virtual_cluster`, `env` (variables) and `extras` (as in the job JSON); what is left out, the scheduler
    chooses. `image`: without one, that of the notebook server. It needs the same minor version of Python as
    here; `python` names that one in it. `code`: a folder whose code goes along and can be imported. `name`:
    what the job's name begins with. `after`: jobs of yours that must end before the call starts, each by its
    name (it must succeed) or as "NAME:ended" or "NAME:failed". `output`: whether a call shows what the
    function prints.
    `url`, `token`: as of `Client`. `locale`: "en" or "zh_CN", in which errors are told.
    """
    demand, access, output = _read(options, CallDemand(), Access(locale=default_locale()), True)

    def decorate(function: Callable[..., Any]) -> RemoteFunction[..., Any]:
        return RemoteFunction(function, demand, access, output=output)

    return decorate if function is None else decorate(function)


def _read(
    options: Mapping[str, Any], demand: CallDemand, access: Access, output: bool
) -> tuple[CallDemand, Access, bool]:
    """Take the options of `remote` apart; TypeError where there is no such option."""
    known = {field.name for of in (CallDemand, Access) for field in fields(of)} | {"output"}
    for name in options:
        if name not in known:
            raise TypeError(f"remote() has no option {name!r}; it has {', '.join(sorted(known))}")
    given = {name: value for name, value in options.items() if name != "locale" or value is not None}
    if given.get("code") is not None:
        given["code"] = Path(given["code"])
    if "after" in given:
        given["after"] = read_entries(given["after"])
    ways = {field.name: given.pop(field.name) for field in fields(Access) if field.name in given}
    output = bool(given.pop("output", output))
    return replace(demand, **given), replace(access, **ways), output
