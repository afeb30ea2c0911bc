"""Options of `pai-scheduler`, on its command line and in a settings file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from pai_scheduler import logging_config
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import Message, msg

from . import engines, file_servers, notifications, ssh_gateway
from .components import UNREADABLE, explain

# Reads the scheduler's settings from a YAML file, each under the long name of its option.

#: What a file must not hold: it would be asked for again at every start.
FOR_ONE_START = ("start-empty", "new-keys")
_NO_SETTINGS = ("help", "config", *FOR_ONE_START)
#: The option that is a folder where it is no address.
_STORAGE = "storage"


class _WrongSetting(Exception):
    """A setting that cannot be used, and why."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


def parse_options(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse a command line; what it does not say comes from the file that its `--config` names.

    An option that may be given several times has what both say. Raises StartError with the file, the line
    and what to do where the file cannot be used, and SystemExit where the command line is wrong.
    """
    options = parser.parse_args(argv)
    if options.config is None:
        return options
    parser.set_defaults(**read_settings(options.config, parser))
    return parser.parse_args(argv)


def settings_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options that may stand in a settings file, by their names in it."""
    names = {
        action.option_strings[-1].removeprefix("--"): action
        for action in parser._actions
        if action.option_strings
    }
    return {name: action for name, action in names.items() if name not in _NO_SETTINGS}


def read_settings(path: Path, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Read a settings file; return its values by the names that the parser's options have in a program.

    A relative path in it begins at the file's own folder. Raises StartError.
    """
    folder = path.expanduser().absolute().parent
    line: int | None = None
    try:
        text = path.expanduser().read_text(encoding="utf-8")
        lines = _lines_of_keys(yaml.compose(text, Loader=yaml.SafeLoader))
        settings = settings_of(parser)
        values = {}
        for name, value in (yaml.safe_load(text) or {}).items():
            line = lines[str(name)]
            action = _find(settings, str(name))
            values[action.dest] = _value(str(name), action, value, folder)
        return values
    except UNREADABLE as error:
        reason: object = explain(error)
    except _WrongSetting as error:
        reason = error.message if line is None else msg("line {line}: {why}", line=line, why=error.message)
    raise StartError(msg("The settings file {file} cannot be used: {reason}", file=path, reason=reason))


def _lines_of_keys(root: yaml.Node | None) -> Mapping[str, int]:
    """Return in which line each key stands; refuses what is no mapping, and a key that stands there twice."""
    if root is None or root.tag == "tag:yaml.org,2002:null":
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise _WrongSetting(msg("it must hold settings, one a line: NAME: VALUE"))
    lines: dict[str, int] = {}
    for key, _ in root.value:
        name, line = str(key.value), key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
            raise _WrongSetting(msg("line {line}: the name of a setting must be text", line=line))
        if name in lines:
            raise _WrongSetting(
                msg(
                    "line {line}: {name} stands in line {first}, too", line=line, name=name, first=lines[name]
                )
            )
        lines[name] = line
    return lines


def _find(settings: Mapping[str, argparse.Action], name: str) -> argparse.Action:
    if name in settings:
        return settings[name]
    if name in FOR_ONE_START:
        raise _WrongSetting(
            msg("{name} is for one start only: give --{name} in the command line instead", name=name)
        )
    near = get_close_matches(name.replace("_", "-"), settings, n=1)
    if near:
        raise _WrongSetting(msg("there is no setting {name}. Is {near} meant?", name=name, near=near[0]))
    raise _WrongSetting(
        msg("there is no setting {name}. There are: {known}", name=name, known=", ".join(sorted(settings)))
    )


def _value(name: str, action: argparse.Action, given: object, folder: Path) -> object:
    """Return a setting's value as the parser would have it; raises _WrongSetting."""
    if action.nargs == 0:
        return _of_kind(name, given, (bool,), msg("true or false"))
    if isinstance(action.default, list):
        texts = _of_kind(name, given, (list,), msg("a list of texts"))
        return [_of_kind(name, one, (str,), msg("a list of texts")) for one in texts]
    if action.type is int:
        return _of_kind(name, given, (int,), msg("a whole number"))
    if action.type is float:
        return float(_of_kind(name, given, (int, float), msg("a number")))
    text = _of_kind(name, given, (str,), msg("text (numbers and the like between quotes)"))
    if action.choices is not None and text not in action.choices:
        raise _WrongSetting(
            msg(
                "{name} must be one of {choices}, not {given}",
                name=name,
                choices=", ".join(action.choices),
                given=text,
            )
        )
    if action.type is Path:
        return folder / Path(text).expanduser()
    if name == _STORAGE and text.strip() and not text.strip().startswith("file:") and "://" not in text:
        return str(folder / Path(text.strip()).expanduser())
    return text


def _of_kind(name: str, given: Any, kinds: tuple[type, ...], expected: Message) -> Any:
    # (True is an int to Python)
    if isinstance(given, kinds) and (isinstance(given, bool) <= (bool in kinds)):
        return given
    raise _WrongSetting(
        msg("{name} must be {expected}, not {given}", name=name, expected=expected, given=repr(given))
    )


# What `pai-scheduler` takes on its command line.

DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 9186


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line; the documentation is made from it too."""
    parser = argparse.ArgumentParser(
        prog="pai-scheduler",
        description="The scheduler of PAI for Jupyter. As a service of JupyterHub it reads the JUPYTERHUB_… "
        "variables that the Hub sets; alone it needs --tokens.",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="YAML with these options, each under its name without --; what the command line says wins",
    )
    parser.add_argument(
        "--engine",
        choices=("process", "docker", "swarm"),
        default="process",
        help="how tasks run (%(default)s); swarm: on the nodes of the Swarm that this machine manages",
    )
    engines.add_options(parser)
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        default=_default_data_dir(),
        help="what must survive (%(default)s)",
    )
    parser.add_argument(
        "--database",
        metavar="URL",
        help="a PostgreSQL, postgresql://USER@HOST:PORT/DATABASE, instead of a file in the data folder; "
        "one with a password in it goes into the environment variable PAI_DATABASE_URL",
    )
    parser.add_argument(
        "--start-empty",
        action="store_true",
        help="for one start only, where the database of a data folder that was in use is lost: begin with an "
        "empty one; every job is forgotten, and all tasks that run are ended",
    )
    parser.add_argument(
        "--new-keys",
        action="store_true",
        help="for one start only, where a key file of a data folder that was in use is lost: make another; "
        "the tasks that run lose the storage, and nobody can log into them",
    )
    parser.add_argument("--host", help=f"address to listen at ({DEFAULT_HOST}, or as the Hub says)")
    parser.add_argument("--port", type=int, help=f"port to listen at ({DEFAULT_PORT}, or as the Hub says)")
    parser.add_argument(
        "--cluster",
        type=Path,
        metavar="FILE",
        help="YAML with nodes and virtual clusters (default: this machine)",
    )
    parser.add_argument("--tokens", type=Path, metavar="FILE", help="JSON with the users and their tokens")
    parser.add_argument(
        "--admin-service",
        action="append",
        default=[],
        metavar="NAME",
        help="a service of the Hub that acts for users, as the spawner does; may be given several times",
    )
    parser.add_argument(
        "--front-door-port",
        type=int,
        metavar="N",
        help="with --engine docker: the port of this machine that containers may reach (default: the "
        "scheduler's own; with a Hub, its proxy's)",
    )
    ssh_gateway.add_options(parser)
    parser.add_argument(
        "--storage",
        metavar="WHERE",
        help="where users' files are: a folder, or the name nodes of an HDFS, http://HOST:9870[;http://OTHER:"
        "9870] (default: the folder storage within the data folder)",
    )
    parser.add_argument(
        "--storage-user",
        metavar="NAME",
        help="who the scheduler is to an HDFS; that account must be allowed to act for users (default: who "
        "runs it)",
    )
    parser.add_argument(
        "--storage-kerberos",
        action="store_true",
        help="the HDFS wants Kerberos: a ticket of the scheduler's account (kinit) proves who it is",
    )
    file_servers.add_options(parser)
    parser.add_argument(
        "--default-fs-uri",
        metavar="URI",
        help="what tasks get as PAI_DEFAULT_FS_URI (default: the scheduler's own WebHDFS)",
    )
    notifications.add_options(parser)
    parser.add_argument(
        "--console-url",
        metavar="URL",
        type=_console_url,
        default="",
        help="where people open the console, as https://hub.lab/services/pai-console/: notifications, the "
        "REST API and the command line then link to the pages of jobs (default: no links)",
    )
    parser.add_argument(
        "--metrics-token-file",
        type=Path,
        metavar="FILE",
        help="file with a token that opens /metrics and /readyz and nothing else, for Prometheus",
    )
    parser.add_argument(
        "--openpai-compat",
        action="store_true",
        help="for clients of OpenPAI: everybody who reaches this port reads all jobs, with what is in their "
        "environment, without a token; also answers under /rest-server/api/v1 and, with a token, "
        "/webhdfs/api/v1",
    )
    parser.add_argument(
        "--log-level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="what is not less than this is logged (%(default)s)",
    )
    parser.add_argument(
        "--log-format",
        choices=logging_config.FORMATS,
        default="text",
        help="json: one object per line, for programs (%(default)s)",
    )
    _add_commands(parser)
    return parser


def _add_commands(parser: argparse.ArgumentParser) -> None:
    """Add what is done instead of running the scheduler."""
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="instead of running the scheduler"
    )
    _add_doctor(commands)
    _add_node(commands)
    _add_maintenance(commands)
    _add_simulate(commands)
    _add_export_trace(commands)


_Commands = argparse._SubParsersAction  # (argparse has no public name for it)


def _add_doctor(commands: _Commands[argparse.ArgumentParser]) -> None:
    about = "check what jobs need, here and on every node, and say what to do"
    command = commands.add_parser(
        "doctor",
        help=about,
        description=f"{about}. The scheduler's own options come before the word doctor. Exit code 1: "
        "something is wrong",
    )
    command.add_argument("--node", metavar="NAME", help="only this node of the Swarm")


def _add_node(commands: _Commands[argparse.ArgumentParser]) -> None:
    about = "the machines of the Swarm that this one manages"
    node = commands.add_parser("node", help=about, description=about)
    actions = node.add_subparsers(dest="action", metavar="ACTION", required=True)
    about = "print the lines for a new machine, and watch it join"
    add = actions.add_parser("add", help=about, description=about)
    add.add_argument(
        "--manager",
        action="store_true",
        help="it manages the Swarm too (have three or five, on machines that stay)",
    )
    add.add_argument(
        "--wait",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="watch so long at most; 0: only print the lines (%(default)g)",
    )
    about = "bring an image to every node before a job asks for it"
    pull = actions.add_parser("pull", help=about, description=about)
    pull.add_argument(
        "image", metavar="IMAGE", help="as jobs name it; your login (docker login) is used for it"
    )
    pull.add_argument("--node", metavar="NAME", help="only to this node")
    pull.add_argument(
        "--wait", type=float, default=3600.0, metavar="SECONDS", help="at most so long (%(default)g)"
    )


def _add_maintenance(commands: _Commands[argparse.ArgumentParser]) -> None:
    for name, about, file in (
        (
            "backup",
            "copy the database to a file, also while the scheduler runs",
            "the file to make or replace",
        ),
        ("check", "read the whole database and say what is damaged, also while the scheduler runs", None),
        ("restore", "make a backup the database; the scheduler must not run", "what backup made"),
    ):
        command = commands.add_parser(name, help=about, description=about)
        if file is not None:
            command.add_argument("file", type=Path, metavar="FILE", help=file)
        _add_whose_database(command)


def _add_whose_database(command: argparse.ArgumentParser) -> None:
    _add_path(command, "--data-dir", "DIR", "the scheduler's data folder")
    command.add_argument(
        "--database", metavar="URL", default=argparse.SUPPRESS, help="the scheduler's PostgreSQL, if any"
    )


def _add_path(command: argparse.ArgumentParser, name: str, metavar: str, about: str) -> None:
    """Add an option of the scheduler's own to a command, so that it may stand before the command or after."""
    command.add_argument(name, type=Path, metavar=metavar, default=argparse.SUPPRESS, help=about)


def _add_simulate(commands: _Commands[argparse.ArgumentParser]) -> None:
    about = "replay recorded jobs on the machines of a cluster file: how long they wait, how full it gets"
    command = commands.add_parser("simulate", help=about, description=about)
    command.add_argument(
        "--trace", type=Path, metavar="FILE", required=True, help="CSV with the jobs; may be packed by gzip"
    )
    about = "the cluster file with the machines, virtual clusters and defaults to try"
    _add_path(command, "--cluster", "FILE", about)
    command.add_argument(
        "--policy",
        nargs="+",
        metavar="POLICY",
        default=(),
        help="whose turn it is in every virtual cluster, instead of what the file says: fifo, shorterFirst, "
        "fairShare, leastAttained, shortestRemaining, or one with its value, as 'shorterFirst: 20'; "
        "several are compared",
    )
    command.add_argument("--json", action="store_true", help="print the numbers as JSON, for programs")
    command.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw GPUs, waiting jobs and times as an SVG"
    )
    command.add_argument(
        "--jobs", type=Path, metavar="FILE", help="write when each job started and ended, as CSV"
    )
    command.add_argument(
        "--load",
        type=_factor,
        default=1.0,
        metavar="FACTOR",
        help="submit the jobs so many times as fast: an overloaded cluster",
    )
    command.add_argument(
        "--known-times",
        nargs="?",
        type=_factor,
        const=1.0,
        metavar="FACTOR",
        help="as if every job's time limit were so many times as long as it runs (without FACTOR: as long)",
    )
    command.add_argument(
        "--checkpoints",
        action="store_true",
        help="as if all jobs wrote checkpoints: who is stopped goes on where it was, and may be for its own",
    )
    command.add_argument(
        "--grace",
        type=_grace,
        metavar="SECONDS",
        help="for so long a job that is stopped keeps its place, where the trace does not say (column "
        "terminationGraceSeconds); without it as the cluster file has it, usually 10",
    )
    command.add_argument(
        "--estimates",
        action="store_true",
        help="estimate for each job that waits when it starts, and tell how true that was",
    )
    command.add_argument(
        "--without-ends",
        action="store_true",
        help="no job ends: how many of the GPUs are taken as more and more are asked for",
    )


def _add_export_trace(commands: _Commands[argparse.ArgumentParser]) -> None:
    about = "write the jobs in the database as a trace for simulate, also while the scheduler runs"
    command = commands.add_parser("export-trace", help=about, description=about)
    command.add_argument("file", type=Path, metavar="FILE", help="the CSV to make or replace")
    command.add_argument(
        "--from",
        dest="begin",
        type=moment,
        metavar="DATE",
        help="only jobs submitted since then, 2026-11-01 or 2026-11-01T08:00",
    )
    command.add_argument(
        "--to", dest="end", type=moment, metavar="DATE", help="only jobs submitted before then"
    )
    command.add_argument(
        "--anonymous", action="store_true", help="numbers in place of the names of jobs and users"
    )
    _add_whose_database(command)


def moment(text: str) -> int:
    """Read a date, perhaps with time and zone (none: this machine's); return ms since the epoch."""
    try:
        return round(1000 * datetime.fromisoformat(text).astimezone().timestamp())
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text} is no date: give for example 2026-11-01 or 2026-11-01T08:00"
        ) from None


def _default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base) / "pai-scheduler"


def _console_url(text: str) -> str:
    if not text:
        return ""
    if not text.startswith(("https://", "http://")):
        raise argparse.ArgumentTypeError(f"an address that begins with https:// is expected, not {text!r}")
    return text.rstrip("/") + "/"


def _grace(text: str) -> int:
    """Read for how many seconds a job keeps its place when it is stopped."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number, 0 or more, is expected, not {text!r}")
    return int(text)


def _factor(text: str) -> float:
    """Read by how much limits are more than what they limit."""
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 1 <= factor <= 1000:
        raise argparse.ArgumentTypeError(f"a number from 1 to 1000 is expected, not {text!r}")
    return factor
