"""What one may write behind `%%pai`."""

from __future__ import annotations

import argparse
from pathlib import Path

from pai_scheduler.client.calls.demand import Demand
from pai_scheduler.job.dependencies import read_entry

from ..messages import msg

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


def demand_of(options: argparse.Namespace) -> Demand:
    """Return what the line asks for."""
    return Demand(
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
