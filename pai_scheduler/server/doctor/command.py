"""`pai-scheduler doctor`: checks what jobs need, on this machine and on every node, and says what to do."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from docker import DockerClient
from sqlalchemy.exc import SQLAlchemyError

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.engine.docker.client import DEFAULT_HOST
from pai_scheduler.engine.docker.sync_client import ERRORS, docker_client
from pai_scheduler.engine.docker.volumes import PROBE, cannot_limit, size_options
from pai_scheduler.engine.hardware import find_gpus
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.engine.swarm.engine import check_manager
from pai_scheduler.i18n import msg
from pai_scheduler.server import swarm_nodes
from pai_scheduler.server.configuration import make_storage, read_cluster
from pai_scheduler.server.startup import database_url, without_password
from pai_scheduler.storage.factory import folder_of
from pai_scheduler.storage.paths import StorageError, StoragePath
from pai_scheduler.store.database import open_database
from pai_scheduler.store.migrate import is_known, revision
from pai_scheduler.store.store import DATABASE_FILE, StoreError
from pai_scheduler.store.tables import HEAD

from . import judge
from .finding import Finding, Verdict, good, lines, note, wrong
from .machine_report import look_at_machine
from .shared_folders import of_shared_folders
from .swarm import Agents, look_at_nodes

_STORAGE_SECONDS = 20.0

_Show = Callable[[str, Iterator[Finding]], None]


def run(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Check, and print what was found; 1 where something is wrong. StartError: the options are."""
    data_dir: Path = options.data_dir.expanduser().absolute()
    host = environ.get("DOCKER_HOST") or DEFAULT_HOST
    verdicts: list[Verdict] = []

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
    return int(Verdict.WRONG in verdicts)


def _show_nodes(options: argparse.Namespace, data_dir: Path, host: str, show: _Show) -> None:
    agents = Agents(
        options.agent_image or "", options.agent_port, data_dir, swarm_nodes.kept_credentials(data_dir)
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
                yield from judge.of_machine(look_at_machine(client, gpu_image=options.agent_image or ""))
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
    yield judge.of_disk(usage.free / 2**30, usage.total / 2**30, str(data_dir))


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
    if is_known(found):
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
