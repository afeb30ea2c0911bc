"""The magic `%%pai`: a cell that runs as a job."""

from __future__ import annotations

import argparse
import io
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from pai_scheduler.client.blocking import Conversation
from pai_scheduler.client.calls.demand import CallDemand
from pai_scheduler.client.calls.errors import CallError, JobFailedError, RemoteTraceback
from pai_scheduler.client.calls.job import CallOutcome, Change, Task, Watching, run_job
from pai_scheduler.client.calls.output import OutputWriter
from pai_scheduler.client.calls.packing import check_cell, pack_cell
from pai_scheduler.client.calls.session import Access
from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.storage.client import FilesError
from pai_scheduler.client.storage.code import CodeError
from pai_scheduler.job.dependencies import read_entry

from ..messages import msg

# What ends a cell whose magic did not do what was wanted: a line, without a traceback of ours.


class CommandError(Exception):
    """A magic did not do what was wanted; the sentence says why."""

    def _render_traceback_(self) -> list[str]:
        # IPython asks for this: where in our code it was raised helps nobody
        return [str(self)]


def parse(parser: argparse.ArgumentParser, line: str, locale: str) -> argparse.Namespace | None:
    """Take a magic's line apart; None: it asked for help, which is printed. CommandError if it is wrong."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise CommandError(
            msg("The line cannot be read: {reason}.", reason=error).in_locale(locale)
        ) from None
    said = io.StringIO()
    try:
        with redirect_stdout(said), redirect_stderr(said):
            return parser.parse_args(words)
    except SystemExit as leaving:
        if leaving.code:
            raise CommandError(said.getvalue().rstrip()) from None
    print(said.getvalue(), end="")
    return None


# What one may write behind `%%pai`.

#: The role of a cell that names none.
ROLE = "main"


def make_parser(locale: str) -> argparse.ArgumentParser:
    """Make the parser, with its explanations in `locale`."""
    parser = argparse.ArgumentParser(
        prog="%%pai", description=msg("Run this cell as a job.").in_locale(locale), allow_abbrev=False
    )
    for option, metavar, kind, about in (
        ("--gpus", "N", int, msg("GPUs of each task (default: 0)")),
        ("--gpu-type", "TYPE", str, msg("type of the GPUs (default: any)")),
        ("--image", "IMAGE", str, msg("the image (default: that of this notebook server)")),
        ("--cpus", "N", int, msg("CPUs of each task")),
        ("--memory", "MB", int, msg("memory of each task")),
        ("--storage", "GB", int, msg("disk of each task")),
        ("--name", "NAME", str, msg("what the job's name begins with")),
        ("--vc", "NAME", str, msg("virtual cluster (default: default)")),
        ("--python", "PATH", str, msg("the Python of the image that runs the cell")),
        ("--code", "DIR", Path, msg("a folder whose code goes along and can be imported")),
    ):
        parser.add_argument(option, metavar=metavar, type=kind, help=about.in_locale(locale))
    parser.add_argument(
        "--role",
        metavar="NAME=N",
        action="append",
        type=_role,
        help=msg("so many tasks, each of which runs the cell (default: main=1)").in_locale(locale),
    )
    parser.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        type=_variable,
        help=msg("a variable of the environment; may be given several times").in_locale(locale),
    )
    parser.add_argument(
        "--after",
        metavar="JOB[:ON]",
        action="append",
        type=read_entry,
        help=msg(
            "start once this job of yours has succeeded, or ended as ON says: succeeded, ended or failed; "
            "may be given several times"
        ).in_locale(locale),
    )
    for option, about in (
        ("--send", msg("variables of this notebook that the cell needs: x,y")),
        ("--get", msg("variables that come back from it; of several tasks, a list of each one's")),
    ):
        parser.add_argument(option, metavar="X,Y", type=_names, default=[], help=about.in_locale(locale))
    return parser


def demand_of(options: argparse.Namespace) -> CallDemand:
    """Return what the line asks for."""
    return CallDemand(
        gpus=options.gpus or 0,
        image=options.image or "",
        gpu_type=options.gpu_type or "",
        cpus=options.cpus,
        memory_mb=options.memory,
        storage_gb=options.storage,
        virtual_cluster=options.vc or "",
        name=options.name or "",
        python=options.python or "",
        code=options.code,
        env=dict(options.env or ()),
        after=options.after or (),
    )


def roles_of(options: argparse.Namespace) -> dict[str, int]:
    """Return how many tasks of each role run the cell."""
    return dict(options.role or [(ROLE, 1)])


def _role(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or not (number or "1").isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} ≠ NAME=N")
    return name, int(number or 1)


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} ≠ NAME=VALUE")
    return name, value


def _names(text: str) -> list[str]:
    return [name for name in text.replace(" ", "").split(",") if name]


# `%%pai`: a cell that runs as a job, with its output below it and its variables back in the notebook.

#: What a job's name begins with where the line names none.
_NAME = "cell"
#: Answers to the question whether to stop the job that mean yes.
_STOP = frozenset({"s", "stop", "停", "停止"})


def run_cell(line: str, cell: str, variables: Mapping[str, Any], locale: str) -> dict[str, Any]:
    """Run a cell as a job, and wait for it; return the variables that come back.

    An exception of the cell is raised here, with the job's traceback as its cause. CommandError where nothing
    ran, or nobody waits any more.
    """
    __tracebackhide__ = True
    options = parse(make_parser(locale), line, locale)
    if options is None:
        return {}
    for name in options.send:
        if name not in variables:
            raise CommandError(msg("There is no variable {name} to send.", name=name).in_locale(locale))
    _check(cell, locale)
    roles = roles_of(options)
    try:
        sent = {name: variables[name] for name in options.send}
        program = pack_cell(cell, sent, options.get, locale)
        outcomes = _watch(demand_of(options), roles, program, locale)
    except JobFailedError as error:
        raise CommandError(str(error)) from None
    except CodeError as error:
        raise CommandError(error.message.in_locale(locale)) from None
    except FilesError as error:
        raise CommandError(error.in_locale(locale)) from None
    except (CallError, ApiError, UnreachableError) as error:
        raise CommandError(str(error)) from None
    if (failed := _first_failed(outcomes)) is not None:
        _raise(outcomes[failed].error)
    tasks = [(role, index) for role, count in roles.items() for index in range(count)]
    return _values(options.get, [outcomes[task].value for task in tasks])


def _check(cell: str, locale: str) -> None:
    """Raise SyntaxError where a cell is no Python, and CommandError where it is IPython's."""
    try:
        check_cell(cell)
    except SyntaxError as error:
        place = error.lineno or 1
        text = cell.splitlines()[place - 1].strip() if place <= len(cell.splitlines()) else ""
        if not text.startswith(("!", "%", "?")) and "= !" not in text and "= %" not in text:
            raise
        raise CommandError(
            msg(
                "Line {number} of the cell is a command of IPython, and a job runs plain Python: {line}. "
                "For a program, write: import subprocess; subprocess.run(..., check=True). "
                "Nothing was submitted.",
                number=place,
                line=text,
            ).in_locale(locale)
        ) from None


def _watch(demand: Any, roles: Mapping[str, int], program: bytes, locale: str) -> dict[Task, CallOutcome]:
    __tracebackhide__ = True
    watching = Watching()

    async def work(tell: Callable[[Change], None]) -> dict[Task, CallOutcome]:
        return await run_job(
            Access(locale=locale), demand, _NAME, roles, program, tell,
            together=True, output=True, watching=watching,
        )  # fmt: skip

    writer = OutputWriter(locale, sum(roles.values()))
    talk = Conversation(work)
    raised: Task | None = None
    try:
        outcomes = talk.listen(writer.hear)
        raised = _first_failed(outcomes)
        return outcomes
    except KeyboardInterrupt:
        watching.leave = bool(writer.job) and not _wants_stop(writer.job, locale)
        talk.cancel()
        words = (
            msg(
                "Job {name} runs on: %pai logs -f {name} shows it, %pai stop {name} ends it.", name=writer.job
            )
            if watching.leave
            else msg("Job {name} is stopped.", name=writer.job)
            if writer.job
            else msg("Interrupted; nothing was submitted.")
        )
        raise CommandError(words.in_locale(locale)) from None
    finally:
        writer.finish(raised)


def _wants_stop(job: str, locale: str) -> bool:
    """Ask; where nobody can answer, or interrupts again, the job runs on: that can be mended."""
    question = msg("Job {name}: stop it (s), or only stop watching (w)? ", name=job).in_locale(locale)
    try:
        return input(question).strip().lower() in _STOP
    except (EOFError, KeyboardInterrupt, RuntimeError, NotImplementedError):
        # a notebook that runs without a person has no input (ipykernel's StdinNotImplementedError)
        return False


def _first_failed(outcomes: Mapping[Task, CallOutcome]) -> Task | None:
    """Return the task that failed first (they are in that order), not one that was ended for another."""
    failed = [task for task, outcome in outcomes.items() if outcome.error is not None]
    own = [task for task in failed if not isinstance(outcomes[task].error, JobFailedError)]
    return next(iter(own or failed), None)


def _raise(error: BaseException | None) -> None:
    """Raise what went wrong in a task."""
    __tracebackhide__ = True
    if error is None:
        return
    if isinstance(error, CallError) and error.__cause__ is None:
        raise CommandError(str(error)) from None
    if isinstance(error.__cause__, RemoteTraceback):
        shown = [str(error.__cause__).rstrip()]
        # IPython asks for this: the cell has no frames here, and ours help nobody
        error._render_traceback_ = lambda: shown  # type: ignore[attr-defined]
    raise error


def _values(names: Sequence[str], values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if len(values) == 1:
        return dict(values[0])
    return {name: [found[name] for found in values] for name in names}
