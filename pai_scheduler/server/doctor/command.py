"""`pai-scheduler doctor`: checks what jobs need, on this machine and on every node, and says what to do."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import sqlalchemy as sa
from docker import DockerClient
from sqlalchemy.exc import SQLAlchemyError

from pai_scheduler.cluster.shared_folders import SharedFolder
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.engine.docker.client import DEFAULT_HOST
from pai_scheduler.engine.docker.sync_client import ERRORS, docker_client
from pai_scheduler.engine.docker.volumes import PROBE, cannot_limit, size_options
from pai_scheduler.engine.hardware import find_gpus
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.engine.swarm.engine import check_manager
from pai_scheduler.i18n import msg
from pai_scheduler.server import engines
from pai_scheduler.server.components import database_url, make_storage, read_cluster, without_password
from pai_scheduler.storage.factory import folder_of
from pai_scheduler.storage.paths import StorageError, StoragePath
from pai_scheduler.store.database import open_database
from pai_scheduler.store.migrate import FIRST, is_known, is_outdated, revision
from pai_scheduler.store.store import DATABASE_FILE, StoreError
from pai_scheduler.store.tables import HEAD

from . import checks
from .checks import Agents, look_at_nodes
from .finding import Finding, Severity, good, lines, note, wrong
from .node_probe import look_at_machine

# What the doctor finds of shared folders: what this engine cannot give, and what is not on the machine.


def of_shared_folders(
    folders: Sequence[SharedFolder], engine: str, own: Sequence[Path | None], *, tasks_here: bool
) -> Iterator[Finding]:
    """Judge the shared folders of a cluster file. `own`: where the scheduler keeps what is not for everybody.

    `tasks_here`: all tasks run on this machine, so that the folders are to be on it.
    """
    refusals = list(engines.find_refusals(folders, engine, own))
    for refusal in refusals:
        yield wrong(refusal, msg("The scheduler does not start with it."))
    on_disk = [folder for folder in folders if folder.source]
    if refusals or not on_disk:
        return
    if not tasks_here:
        yield note(
            msg(
                "Tasks with shared folders ({names}) do not start on a machine that lacks these folders.",
                names=", ".join(folder.name for folder in on_disk),
            ),
            msg(
                "Look on each machine that runs tasks: {command}",
                command=f"ls -d {shlex.join(sorted({str(_known_part(folder)) for folder in on_disk}))}",
            ),
        )
        return
    found = [finding for folder in on_disk if (finding := _on_this_machine(folder)) is not None]
    yield from found
    if not found:
        names = ", ".join(folder.name for folder in on_disk)
        yield good(msg("The shared folders are on this machine: {names}.", names=names))


def _on_this_machine(folder: SharedFolder) -> Finding | None:
    """Judge one folder of this machine; None: it is there."""
    place = Path(_known_part(folder))
    try:
        mode = place.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return _missing(folder, place)
    except OSError as error:
        # Docker's own account is root, whoever asks
        return note(
            msg(
                "This account cannot see whether the shared folder {name} is there: {error}",
                name=folder.name,
                error=f"{place}: {error.strerror}",
            ),
            msg("Look as root: {command}", command=f"sudo ls -ld {shlex.quote(str(place))}"),
        )
    if stat.S_ISDIR(mode):
        return None
    return wrong(
        msg("The shared folder {name} is no folder: {place} is a file.", name=folder.name, place=place),
        msg("Name a folder as its source in the cluster file."),
    )


def _missing(folder: SharedFolder, place: Path) -> Finding:
    command = f"sudo mkdir -p {shlex.quote(str(place))}"
    return wrong(
        msg("The shared folder {name} has no {place} on this machine.", name=folder.name, place=place),
        msg(
            "Mount it or make it ({command}), or correct its source: until then tasks that have it do not "
            "start.",
            command=command,
        ),
    )


def _known_part(folder: SharedFolder) -> PurePosixPath:
    """Return what is to be there for everybody: the path in front of a name, and of what is made."""
    place = PurePosixPath(folder.source)
    fixed = PurePosixPath("/")
    for part in place.parts[1:]:
        if "{" in part:
            return fixed
        fixed /= part
    return fixed.parent if folder.create else fixed


# `pai-scheduler doctor`: checks what jobs need, on this machine and on every node, and says what to do.

_STORAGE_SECONDS = 20.0

_Show = Callable[[str, Iterator[Finding]], None]


def run(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Check, and print what was found; 1 where something is wrong. StartError: the options are."""
    data_dir: Path = options.data_dir.expanduser().absolute()
    host = environ.get("DOCKER_HOST") or DEFAULT_HOST
    verdicts: list[Severity] = []

    def show(place: str, findings: Iterator[Finding]) -> None:
        found = list(findings)
        verdicts.extend(finding.verdict for finding in found)
        print("\n".join(lines(place, found)), flush=True)

    if options.node is None:
        show(
            str(msg("This machine ({name})", name=socket.gethostname())),
            _here(options, data_dir, environ, host),
        )
    elif options.engine != "swarm":
        raise StartError(msg("Nodes have names in a Swarm: pai-scheduler --engine swarm doctor --node NAME."))
    if options.engine == "swarm":
        _show_nodes(options, data_dir, host, show)
    return int(Severity.WRONG in verdicts)


def _show_nodes(options: argparse.Namespace, data_dir: Path, host: str, show: _Show) -> None:
    agents = Agents(
        options.agent_image or "", options.agent_port, data_dir, engines.kept_credentials(data_dir)
    )
    try:
        with docker_client(host) as client:
            if client.info()["Swarm"].get("ControlAvailable"):
                for place, findings in look_at_nodes(client, agents, options.node):
                    show(place, findings)
    except ERRORS as error:
        reason = getattr(error, "explanation", None) or error
        raise StartError(msg("Docker refuses: {error}", error=reason)) from error


def _here(
    options: argparse.Namespace, data_dir: Path, environ: Mapping[str, str], host: str
) -> Iterator[Finding]:
    yield from _data_folder(data_dir)
    yield from _database(data_dir, database_url(options.database, environ))
    yield from _storage(options, data_dir)
    yield from _cluster_file(options, data_dir, host)
    if options.engine == "process":
        gpus = find_gpus()
        kinds = ", ".join(f"{gpu.index}: {gpu.type}" for gpu in gpus)
        yield good(msg("GPUs: {gpus}.", gpus=kinds)) if gpus else note(msg("NVML knows of no GPU here."))
        return
    try:
        with docker_client(host) as client:
            # a Swarm's nodes are looked at one by one, this one too
            if options.engine == "docker":
                yield from checks.of_machine(look_at_machine(client, gpu_image=options.agent_image or ""))
                yield from _homes(client, options.home_gb)
            else:
                yield from _manager(client, host)
    except EngineError as error:
        yield wrong(msg("Docker cannot be used."), error.message)


def _homes(client: DockerClient, gb: int | None) -> Iterator[Finding]:
    """Find out whether Docker limits homes, by a volume that is gone at once."""
    if gb is None:
        return
    try:
        client.volumes.create(f"{PROBE}-doctor", driver="local", driver_opts=dict(size_options(gb))).remove()
    except ERRORS as error:
        reason = str(getattr(error, "explanation", None) or error)
        yield wrong(
            msg("Homes cannot have a limit of {gb} GB.", gb=gb),
            cannot_limit(str(client.info().get("DockerRootDir")), reason),
        )
    else:
        yield good(msg("Homes that are made from now on hold {gb} GB at most.", gb=gb))


def _data_folder(data_dir: Path) -> Iterator[Finding]:
    there = next(folder for folder in (data_dir, *data_dir.parents) if folder.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        yield wrong(
            msg("The data folder {folder} cannot be written to.", folder=data_dir),
            msg("Give it to who runs the scheduler (chown), or choose another one with --data-dir."),
        )
        return
    if there != data_dir:
        yield note(msg("There is no data folder {folder} yet.", folder=data_dir))
    usage = shutil.disk_usage(there)
    yield checks.of_disk(usage.free / 2**30, usage.total / 2**30, str(data_dir))


def _database(data_dir: Path, url: str | None) -> Iterator[Finding]:
    if url is None:
        if (data_dir / DATABASE_FILE).exists():
            yield good(
                msg(
                    "The database is {file}. Look into it with: pai-scheduler check",
                    file=data_dir / DATABASE_FILE,
                )
            )
            # read only, and not at all while a scheduler has it for itself
            engine = sa.create_engine(f"sqlite:///file:{data_dir / DATABASE_FILE}?mode=ro&uri=true")
            try:
                yield from _version(revision(engine))
            except SQLAlchemyError:
                pass  # `check` says what is wrong with it
            finally:
                engine.dispose()
        return
    try:
        engine = open_database(url)
        try:
            found = revision(engine)
        finally:
            engine.dispose()
        yield good(msg("The database {url} answers.", url=without_password(url)))
        yield from _version(found)
    except (SQLAlchemyError, StoreError) as error:
        yield wrong(
            msg(
                "The database {url} does not answer: {error}",
                url=without_password(url),
                error=_first_line(error),
            ),
            msg("See that it runs, that this machine reaches it, and that the account may log in."),
        )


def _version(found: str | None) -> Iterator[Finding]:
    """Judge by which migration the database was made; None: by none yet."""
    if found is None or found == HEAD:
        return
    if is_outdated(found):
        yield wrong(
            msg(
                "The database was written before the first release ({version}), and the scheduler cannot "
                "bring it up to date.",
                version=found,
            ),
            msg(
                "Start it once with an earlier scheduler that brings it to version {first}, or give up its "
                "jobs and begin with an empty data folder (and an empty PostgreSQL, where it has one).",
                first=FIRST,
            ),
        )
    elif is_known(found):
        yield note(
            msg("The database is of an older version: the scheduler brings it up to date when it starts."),
            msg("Make a backup before: pai-scheduler backup"),
        )
    else:
        yield wrong(
            msg("The database was written by a newer scheduler ({version}).", version=found),
            msg("Install that version, or restore a backup of this one."),
        )


def _storage(options: argparse.Namespace, data_dir: Path) -> Iterator[Finding]:
    if not options.storage:
        return

    async def look() -> None:
        storage = make_storage(options, data_dir)
        async with asyncio.timeout(_STORAGE_SECONDS):
            await storage.start()
            try:
                await storage.status(StoragePath(), "")
            finally:
                await storage.close()

    try:
        asyncio.run(look())
        yield good(msg("The storage {where} answers.", where=options.storage))
    except (StorageError, StartError, TimeoutError, OSError) as error:
        yield wrong(
            msg(
                "The storage {where} does not answer: {error}",
                where=options.storage,
                error=_first_line(error),
            ),
            msg("See that its name nodes run and that this machine reaches them."),
        )


def _cluster_file(options: argparse.Namespace, data_dir: Path, host: str) -> Iterator[Finding]:
    if options.cluster is None:
        return
    try:
        definition = read_cluster(options.cluster)
    except StartError as error:
        yield wrong(error.message, msg("Correct it; the scheduler does not start with it."))
        return
    yield good(msg("The cluster file {file} can be read.", file=options.cluster))
    own = [data_dir, options.homes, folder_of(options.storage, data_dir)]
    here = options.engine == "docker" and host.startswith("unix:")
    yield from of_shared_folders(definition.shared_folders, options.engine, own, tasks_here=here)


def _manager(client: DockerClient, host: str) -> Iterator[Finding]:
    info = client.info()
    try:
        check_manager(host, info)
    except EngineError as error:
        yield wrong(msg("This machine manages no Swarm."), error.message)
        return
    swarm = info["Swarm"]
    yield good(
        msg(
            "It manages a Swarm of {nodes} nodes, {managers} of them managers.",
            nodes=swarm["Nodes"],
            managers=swarm["Managers"],
        )
    )
    if swarm["Managers"] % 2 == 0 or (swarm["Managers"] == 1 and swarm["Nodes"] > 1):
        yield note(
            msg("With one manager the Swarm does not outlive its loss.")
            if swarm["Managers"] == 1
            else msg(
                "With {managers} managers it outlives no more than with one fewer.",
                managers=swarm["Managers"],
            ),
            msg("Have three: {command}", command="docker node promote NAME"),
        )


def _first_line(error: Exception) -> Any:
    message = getattr(error, "message", None)
    return message if message is not None else (str(error) or type(error).__name__).splitlines()[0]
