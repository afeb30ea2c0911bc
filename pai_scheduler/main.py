"""Starts the scheduler (`pai-scheduler`): alone with a tokens file, or as a service of the Hub."""

from __future__ import annotations

import argparse
import asyncio
import errno
import fcntl
import ipaddress
import logging
import os
import resource
import signal
import socket
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import yaml
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from . import journal
from .api.app import make_app
from .api.auth import Authenticator, MonitoringToken, TokensError, TokensFile
from .api.desk import Desk
from .api.server import serve
from .cluster.definition import Definition, DefinitionError, parse_definition
from .engine.protocol import Engine, EngineError
from .job.messages import Message, msg
from .service import Service
from .store.store import Store, StoreError

CANNOT_START = 2
DEFAULT_HOST, DEFAULT_PORT = "127.0.0.1", 9186

_log = logging.getLogger(__name__)


class StartError(Exception):
    """The scheduler cannot start; `message` says why and what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


@dataclass(frozen=True, slots=True)
class HubPlace:
    """Where the Hub put us: under which path and at which address it looks for us."""

    prefix: str
    host: str | None
    port: int | None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scheduler until SIGTERM or ^C; give the exit code."""
    options = make_parser().parse_args(argv)
    journal.set_up(options.log_level, options.log_format)
    try:
        asyncio.run(_run(options))
    except (StartError, TokensError, EngineError) as error:
        print(f"pai-scheduler: {error.message}", file=sys.stderr)
        return CANNOT_START
    return 0


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the command line; the documentation is made from it too."""
    parser = argparse.ArgumentParser(
        prog="pai-scheduler",
        description="The scheduler of PAI for Jupyter. As a service of JupyterHub it reads the JUPYTERHUB_… "
        "variables that the Hub sets; alone it needs --tokens.",
    )
    parser.add_argument(
        "--engine", choices=("process", "docker"), default="process", help="how tasks run (%(default)s)"
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        default=_default_data_dir(),
        help="what must survive (%(default)s)",
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
        help="with --engine docker: the port of this machine (the Hub's proxy) that containers may reach",
    )
    parser.add_argument(
        "--default-fs-uri",
        metavar="URI",
        help="what tasks get as PAI_DEFAULT_FS_URI (default: the folder storage within the data folder)",
    )
    parser.add_argument(
        "--metrics-token-file",
        type=Path,
        metavar="FILE",
        help="file with a token that opens /metrics and /readyz and nothing else, for Prometheus",
    )
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    parser.add_argument(
        "--log-format",
        choices=journal.FORMATS,
        default="text",
        help="json: one object per line, for programs (%(default)s)",
    )
    return parser


async def _run(options: argparse.Namespace) -> None:
    data_dir: Path = options.data_dir.expanduser().absolute()
    place = hub_place(os.environ)
    host = options.host or place.host or DEFAULT_HOST
    port = options.port if options.port is not None else place.port or DEFAULT_PORT
    if options.engine == "process" and not _is_loopback(host):
        raise StartError(
            msg(
                "The process engine runs everybody's tasks as this user, so it listens on this machine only "
                "(--host 127.0.0.1). Use --engine docker to serve others."
            )
        )
    authenticator = _authenticator(options)
    monitoring_token = _monitoring_token(options.metrics_token_file)
    definition = read_cluster(options.cluster) if options.cluster else Definition()
    with lock_folder(data_dir):
        sockets = listen(host, port)
        service = Service(
            _engine(options, data_dir),
            _open_store(data_dir),
            definition,
            default_fs_uri=options.default_fs_uri or _local_storage(data_dir),
            # another scheduler on this machine has another folder, so their tasks seldom want the same ports
            first_port=zlib.crc32(os.fsencode(data_dir)),
        )
        stopping = _on_signals()
        try:
            await service.start()
        except StoreError as error:
            raise StartError(_no_store(data_dir, error.reason)) from error
        server = serve(make_app(Desk(service, authenticator, place.prefix, monitoring_token)), sockets)
        _log.info(
            "ready at http://%s:%d%s, engine %s, data in %s",
            host,
            _port(sockets),
            place.prefix,
            options.engine,
            data_dir,
        )
        await stopping.wait()
        _log.info("stopping; tasks run on")
        await _shut_down(server, service)


def hub_place(environ: Mapping[str, str]) -> HubPlace:
    """Read where the Hub put us; a place at `/` where we are no service of a Hub.

    A notebook server has some of the same variables, but no service name.
    """
    if not environ.get("JUPYTERHUB_SERVICE_NAME"):
        return HubPlace("/", None, None)
    prefix = environ.get("JUPYTERHUB_SERVICE_PREFIX", "/").strip("/")
    url = urlsplit(environ.get("JUPYTERHUB_SERVICE_URL", ""))
    return HubPlace(f"/{prefix}/" if prefix else "/", url.hostname, url.port)


def read_cluster(path: Path) -> Definition:
    """Read a cluster file; StartError with file and place where it is wrong."""
    try:
        return parse_definition(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        reason: object = error.strerror
    except UnicodeDecodeError:
        reason = msg("it is not UTF-8 text")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        reason = msg(
            "line {line}, column {column}: {problem}", line=line, column=column, problem=error.problem
        )
    except yaml.YAMLError as error:
        reason = error
    except DefinitionError as error:
        reason = msg("{path}: {reason}", path=error.path, reason=error.message)
    raise StartError(msg("The cluster file {file} cannot be used: {reason}", file=path, reason=reason))


def lock_folder(folder: Path) -> IO[str]:
    """Take the data folder for ourselves, until the file that this gives is closed."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = open(folder / "lock", "a+", encoding="utf-8")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        message = msg(
            "The data folder {folder} cannot be used: {reason}.", folder=folder, reason=error.strerror
        )
        raise StartError(message) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip() or "?"
        lock.close()
        message = msg(
            "Another scheduler (process {pid}) uses the data folder {folder}. "
            "End it, or choose another --data-dir.",
            pid=owner,
            folder=folder,
        )
        raise StartError(message) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def listen(host: str, port: int) -> list[socket.socket]:
    """Open the port; StartError with one sentence where that is impossible."""
    try:
        return bind_sockets(port, host)
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            message = msg(
                "Port {port} of {host} is taken. Choose another one with --port.", port=port, host=host
            )
        else:
            message = msg(
                "Listening at {host}, port {port}, is impossible: {reason}.",
                host=host,
                port=port,
                reason=error,
            )
        raise StartError(message) from None


def _authenticator(options: argparse.Namespace) -> Authenticator:
    if options.tokens is not None:
        return TokensFile(options.tokens)
    if os.environ.get("JUPYTERHUB_API_TOKEN") and os.environ.get("JUPYTERHUB_SERVICE_NAME"):
        from .api.hub import HubTokens  # brings half of JupyterHub

        return HubTokens.from_environment(options.admin_service)
    raise StartError(
        msg(
            "Who may use the scheduler? Give --tokens FILE, or start it as a service of JupyterHub. "
            "A file with one administrator is made by: {command}",
            command="""python3 -c 'import json, secrets, getpass as g; print(json.dumps("""
            """{secrets.token_hex(16): {"name": g.getuser(), "admin": True}}))' > tokens.json""",
        )
    )


def _monitoring_token(path: Path | None) -> MonitoringToken | None:
    if path is None:
        return None
    token = MonitoringToken(path)
    token.read()
    return token


def _engine(options: argparse.Namespace, data_dir: Path) -> Engine:
    # each engine brings libraries that the other does not need
    if options.engine == "docker":
        from .engine.docker import DockerEngine

        # the log of each running container is a connection and three files
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        return DockerEngine(data_dir, front_door=options.front_door_port)
    from .engine.process import ProcessEngine

    return ProcessEngine(data_dir)


def _open_store(data_dir: Path) -> Store:
    try:
        return Store.in_folder(data_dir)
    except OSError as error:
        raise StartError(_no_store(data_dir, str(error))) from error
    except StoreError as error:
        raise StartError(_no_store(data_dir, error.reason)) from error


def _no_store(data_dir: Path, reason: str | Message) -> Message:
    return msg("The database in {folder} cannot be used: {reason}.", folder=data_dir, reason=reason)


def _local_storage(data_dir: Path) -> str:
    folder = data_dir / "storage"
    folder.mkdir(exist_ok=True)
    return folder.as_uri()


def _on_signals() -> asyncio.Event:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


async def _shut_down(server: HTTPServer, service: Service) -> None:
    """Take no more requests, cut the streams (their readers come back to the next service), let go."""
    server.stop()
    await server.close_all_connections()
    await service.close()


def _default_data_dir() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base) / "pai-scheduler"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _port(sockets: Sequence[socket.socket]) -> int:
    return int(sockets[0].getsockname()[1])
