"""Starts the scheduler (`pai-scheduler`): alone with a tokens file, or as a service of the Hub."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tornado.httpserver import HTTPServer

from pai_scheduler import logging_config
from pai_scheduler.api.app import make_app
from pai_scheduler.api.auth import Authenticator, MonitoringToken, TokensError, TokensFile
from pai_scheduler.api.base import HandlerContext
from pai_scheduler.api.http_server import STREAMED, serve
from pai_scheduler.api.limits import Streams
from pai_scheduler.api.standby import make_standby_app
from pai_scheduler.api.webhdfs.handover import TransferHandover
from pai_scheduler.cluster.config_fields import DefinitionError
from pai_scheduler.cluster.definition import Definition
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.engine.fencing import LeasedEngine
from pai_scheduler.engine.process.environment import STORAGE_ADDRESS
from pai_scheduler.engine.protocol import Engine, EngineError
from pai_scheduler.i18n import msg
from pai_scheduler.service.garbage import collect_in_small_steps, leave_out_what_is_there
from pai_scheduler.service.input_identity import JobIdentities
from pai_scheduler.service.service import Service, ServiceSettings
from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.ssh.task_files import own_server_files
from pai_scheduler.storage.factory import folder_of
from pai_scheduler.store.lease import Lease
from pai_scheduler.store.store import Store, StoreError

from . import backup, file_servers, ssh_gateway, swarm_nodes
from .data_folder import (
    POSTGRESQL,
    SQLITE,
    check_kept_files,
    lock_folder,
    refuse_other_kind,
    remember_kept_files,
)
from .leader import Candidate, kept_alive
from .notifications import open_notifications
from .options import DEFAULT_HOST, DEFAULT_PORT, make_parser, parse_options
from .shared_folders import check_shared_folders
from .startup import (
    STORAGE_FOLDER,
    database_url,
    is_loopback,
    listen,
    looked_through,
    make_storage,
    no_database,
    open_store,
    read_cluster,
    storage_account,
)

CANNOT_START, OVERTAKEN = 2, 3
#: What `systemctl reload` sends.
RENEW_GATEWAY = signal.SIGUSR1
#: For what a standby has been asked when it begins to lead: a connection that is closed before is an error.
_LAST_ANSWER_SECONDS = 0.2

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HubPlace:
    """Path prefix and address at which the Hub reaches this service."""

    prefix: str
    host: str | None
    port: int | None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scheduler until SIGTERM or ^C, or see to its database; return the exit code."""
    try:
        options = parse_options(make_parser(), argv)
        logging_config.set_up(options.log_level, options.log_format)
        if options.command is not None:
            return _command(options)
        asyncio.run(_run(options))
    except (StartError, TokensError, EngineError) as error:
        print(f"pai-scheduler: {error.message}", file=sys.stderr)
        return CANNOT_START
    return 0


def _command(options: argparse.Namespace) -> int:
    """Do something else than run the scheduler; return the exit code. StartError, EngineError."""
    # (the first two bring Docker's library, and a simulation is seldom asked for)
    match options.command:
        case "doctor":
            from .doctor import command

            return command.run(options, os.environ)
        case "node":
            from . import node_add, node_pull

            run = node_add.run if options.action == "add" else node_pull.run
            return run(options, os.environ)
        case "export-trace":
            from . import export_trace

            return export_trace.run(options, os.environ)
        case "simulate":
            from . import simulate

            return simulate.run(options)
    return backup.run(options, os.environ)


async def _run(options: argparse.Namespace) -> None:
    collect_in_small_steps()
    # so long a thread that comes back from the disk may wait for the event loop's: with Python's own 5 ms,
    # 8 and 16 clients had 3 to 8 % fewer submits a second
    sys.setswitchinterval(0.001)
    data_dir: Path = options.data_dir.expanduser().absolute()
    place = hub_place(os.environ)
    host = options.host or place.host or DEFAULT_HOST
    port = options.port if options.port is not None else place.port or DEFAULT_PORT
    if options.engine == "process" and not is_loopback(host):
        raise StartError(
            msg(
                "The process engine runs everybody's tasks as this user, so it listens on this machine only "
                "(--host 127.0.0.1). Use --engine docker to serve others."
            )
        )
    ssh_gateway.check_options(options)
    file_servers.check_options(options)
    swarm_nodes.check_options(options)
    authenticator = _authenticator(options)
    monitoring_token = _monitoring_token(options.metrics_token_file)
    notifications = open_notifications(options)
    definition = read_cluster(options.cluster) if options.cluster else Definition()
    url = database_url(options.database, os.environ)
    storage = make_storage(options, data_dir)
    with lock_folder(data_dir, shared=url is not None):
        refuse_other_kind(data_dir, SQLITE if url is None else POSTGRESQL)
        sockets = listen(host, port)
        port = _port(sockets)
        if options.engine == "process":
            sockets += listen(STORAGE_ADDRESS, port)
        address = f"http://{_reachable(host)}:{port}{place.prefix}"
        # containers reach what listens on loopback by a proxy only
        proxied_port = options.front_door_port or (port if is_loopback(host) else None)
        stopping = _on_signals()

        async def lead(make_engine: Callable[[Engine], Engine], store: Store, term: int) -> None:
            try:
                check_kept_files(data_dir, store, new_keys=options.new_keys)
            except StoreError as error:
                raise no_database(url or data_dir, error) from error
            keys = JobKeys.in_folder(data_dir)
            async with (
                looked_through(store) as looked,
                ssh_gateway.open_gateway(options, keys, address) as gateway,
            ):
                reached_at = None if is_loopback(host) else _reachable(host)
                ssh_port = gateway.where["port"] if gateway is not None else None
                engine = make_engine(
                    _engine(options, data_dir, definition, keys, proxied_port, reached_at, ssh_port, term)
                )
                await serve_with(engine, store, keys, gateway, looked)

        async def serve_with(
            engine: Engine,
            store: Store,
            keys: JobKeys,
            gateway: ssh_gateway.RunningGateway | None,
            looked: asyncio.Future[None],
        ) -> None:
            service = Service(
                engine,
                store,
                ServiceSettings(definition, data_dir, address, options.default_fs_uri or ""),
                job_files=JobIdentities(storage, data_dir, authenticator.find_now),
                keys=keys,
                find_user=authenticator.find_now,
                notifications=notifications,
            )
            try:
                remember_kept_files(data_dir, store)
                await service.start()
                # who asks for the scheduler's health learns of damage from the first answer on
                await looked
            except StoreError as error:
                raise no_database(url or data_dir, error) from error
            except DefinitionError as error:
                raise StartError(
                    msg("The virtual clusters cannot be used: {reason}", reason=error.message)
                ) from error
            if gateway is not None:
                await gateway.start(engine.bridge_address)
                asyncio.get_running_loop().add_signal_handler(RENEW_GATEWAY, gateway.renew)
            streams = Streams(definition.streams_per_user)
            context = HandlerContext(
                service,
                authenticator,
                place.prefix,
                monitoring_token,
                streams,
                options.openpai_compat,
                gateway.where if gateway is not None else None,
            )
            if context.openpai_compat:
                _log.warning(
                    "--openpai-compat: EVERYBODY WHO REACHES %s READS ALL JOBS, THEIR COMMANDS AND "
                    "ENVIRONMENT, WITHOUT A TOKEN",
                    address,
                )
            app = make_app(context)
            async with file_servers.open_file_servers(
                options, data_dir / STORAGE_FOLDER, storage_account(options), place.prefix, service.monitor
            ) as servers:
                handover = TransferHandover(context, app.settings[STREAMED], servers)
                server = serve(app, sockets, handover)
                leave_out_what_is_there()
                _log.info("ready at %s, engine %s, data in %s", address, options.engine, data_dir)
                await stopping.wait()
                _log.info("stopping; tasks run on")
                await _close(server)
            await service.close()

        if url is None:
            await lead(lambda engine: engine, open_store(data_dir, start_empty=options.start_empty), 0)
            return
        try:
            lease = Lease(url, f"{address} ({socket.gethostname()})", _stop_overtaken)
            if not await _wait_for(lease, sockets, place.prefix, stopping):
                return
            async with kept_alive(lease):
                store = await asyncio.to_thread(
                    open_store, data_dir, url, lease, start_empty=options.start_empty
                )
                await lead(lambda own: LeasedEngine(own, lambda: lease.assured), store, lease.epoch)
            lease.close()
        except StoreError as error:
            raise no_database(url, error) from error


async def _wait_for(
    lease: Lease, sockets: Sequence[socket.socket], prefix: str, stopping: asyncio.Event
) -> bool:
    """Answer as a standby until we lead (True), or are to stop."""
    candidate = Candidate(lease)
    # a server closes its sockets, and those who come while we change are to find somebody
    server = serve(make_standby_app(prefix, lambda: candidate.leader), [one.dup() for one in sockets])
    try:
        return await candidate.win(stopping)
    finally:
        server.stop()
        await asyncio.sleep(_LAST_ANSWER_SECONDS)
        await server.close_all_connections()


def _stop_overtaken() -> None:
    """End without any further step: whatever we did from now on, the other scheduler may be doing too."""
    _log.critical("another scheduler has taken the lead; this one stops at once, its tasks run on")
    os._exit(OVERTAKEN)


def hub_place(environ: Mapping[str, str]) -> HubPlace:
    """Read where the Hub put us; a place at `/` where we are no service of a Hub.

    A notebook server has some of the same variables, but no service name.
    """
    if not environ.get("JUPYTERHUB_SERVICE_NAME"):
        return HubPlace("/", None, None)
    prefix = environ.get("JUPYTERHUB_SERVICE_PREFIX", "/").strip("/")
    url = urlsplit(environ.get("JUPYTERHUB_SERVICE_URL", ""))
    return HubPlace(f"/{prefix}/" if prefix else "/", url.hostname, url.port)


def _authenticator(options: argparse.Namespace) -> Authenticator:
    if options.tokens is not None:
        return TokensFile(options.tokens)
    if os.environ.get("JUPYTERHUB_API_TOKEN") and os.environ.get("JUPYTERHUB_SERVICE_NAME"):
        try:
            from pai_scheduler.api.hub_auth import HubTokens  # brings half of JupyterHub
        except ModuleNotFoundError as error:
            raise StartError(
                msg(
                    "As a service of JupyterHub the scheduler needs the library {library}: "
                    "pip install '{package}'",
                    library=error.name,
                    package="pai-for-jupyter[hub]",
                )
            ) from error
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


def _engine(
    options: argparse.Namespace,
    data_dir: Path,
    definition: Definition,
    keys: JobKeys,
    front_door: int | None,
    reached_at: str | None,
    ssh_port: int | None,
    term: int,
) -> Engine:
    own = [data_dir, options.homes, folder_of(options.storage, data_dir)]
    check_shared_folders(definition.shared_folders, options.engine, own)
    # each engine brings libraries that the other does not need
    if options.engine == "docker":
        from pai_scheduler.engine.docker.engine import SPARE_NETWORKS, DockerEngine
        from pai_scheduler.engine.docker.settings import DockerSettings
        from pai_scheduler.engine.docker.volumes import size_options

        # the log of each running container is a connection and three files
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        settings = DockerSettings(
            logs=definition.logs,
            registries=definition.registries,
            homes=options.homes,
            home_options=size_options(options.home_gb) if options.home_gb is not None else None,
            publish_ssh=options.publish_ssh,
            spare_networks=SPARE_NETWORKS,
            front_door=front_door,
            proxy_needed=options.front_door_port is not None,
            reached_at=reached_at,
        )
        return DockerEngine(data_dir, settings)
    if options.engine == "swarm":
        return swarm_nodes.make_engine(options, data_dir, definition, front_door, ssh_port, term)
    from pai_scheduler.engine.process.engine import ProcessEngine

    return ProcessEngine(
        data_dir,
        logs=definition.logs,
        storage_host=STORAGE_ADDRESS,
        ssh_files=lambda task: own_server_files(keys.identity(task.job_id), keys.host(task.job_id)),
    )


def _on_signals() -> asyncio.Event:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    # it would end us as long as there is no gateway
    asyncio.get_running_loop().add_signal_handler(RENEW_GATEWAY, lambda: None)
    return stopping


async def _close(server: HTTPServer) -> None:
    """Take no more requests, cut the streams: their readers come back to the next service."""
    server.stop()
    await server.close_all_connections()


def _reachable(host: str) -> str:
    """Return an address of this machine for one that stands for all of them."""
    if host not in ("0.0.0.0", "::"):  # noqa: S104 - it is compared, not bound
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent by this; it only chooses the way out
        except OSError:
            return socket.gethostname()
        return str(probe.getsockname()[0])


def _port(sockets: Sequence[socket.socket]) -> int:
    return int(sockets[0].getsockname()[1])
