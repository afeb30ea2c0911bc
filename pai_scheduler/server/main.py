"""Starts the scheduler (`pai-scheduler`): alone with a tokens file, or as a service of the Hub."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tornado.httpserver import HTTPServer

from pai_scheduler import logging_config
from pai_scheduler.api.app import make_app
from pai_scheduler.api.auth import TokensError
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
from pai_scheduler.store.lease import Lease
from pai_scheduler.store.store import Store, StoreError

from . import backup, engines, file_servers, ssh_gateway
from .components import (
    STORAGE_FOLDER,
    database_url,
    hub_place,
    is_loopback,
    listen,
    looked_through,
    make_authenticator,
    make_storage,
    no_database,
    open_store,
    read_cluster,
    read_monitoring_token,
    storage_account,
)
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

CANNOT_START, OVERTAKEN = 2, 3
#: What `systemctl reload` sends.
RENEW_GATEWAY = signal.SIGUSR1
#: For what a standby has been asked when it begins to lead: a connection that is closed before is an error.
_LAST_ANSWER_SECONDS = 0.2

_log = logging.getLogger(__name__)


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
    await _Run(options).until_stopped()


class _Run:
    """One run of the scheduler, from its options to its end: what comes after what.

    Made without a look at anything but files that the options name; StartError, TokensError.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._data_dir: Path = options.data_dir.expanduser().absolute()
        self._place = hub_place(os.environ)
        self._host = options.host or self._place.host or DEFAULT_HOST
        if options.engine == "process" and not is_loopback(self._host):
            raise StartError(
                msg(
                    "The process engine runs everybody's tasks as this user, so it listens on this machine "
                    "only (--host 127.0.0.1). Use --engine docker to serve others."
                )
            )
        ssh_gateway.check_options(options)
        file_servers.check_options(options)
        engines.check_options(options)
        self._authenticator = make_authenticator(options)
        self._monitoring_token = read_monitoring_token(options.metrics_token_file)
        self._notifications = open_notifications(options)
        self._definition = read_cluster(options.cluster) if options.cluster else Definition()
        self._database = database_url(options.database, os.environ)
        self._storage = make_storage(options, self._data_dir)

    async def until_stopped(self) -> None:
        """Take the data folder and the port, lead, and serve; StartError, EngineError."""
        shared = self._database is not None
        with lock_folder(self._data_dir, shared=shared):
            refuse_other_kind(self._data_dir, POSTGRESQL if shared else SQLITE)
            self._listen()
            self._stopping = _on_signals()
            if self._database is None:
                store = open_store(self._data_dir, start_empty=self._options.start_empty)
                await self._lead(store, lambda engine: engine)
            else:
                await self._lead_in_turn(self._database)

    def _listen(self) -> None:
        given = self._options.port
        port = given if given is not None else self._place.port or DEFAULT_PORT
        self._sockets = listen(self._host, port)
        self._port = int(self._sockets[0].getsockname()[1])
        if self._options.engine == "process":
            self._sockets += listen(STORAGE_ADDRESS, self._port)
        self._address = f"http://{_reachable(self._host)}:{self._port}{self._place.prefix}"

    async def _lead_in_turn(self, database: str) -> None:
        """Answer as a standby until no other scheduler leads, then lead."""
        lease = Lease(database, f"{self._address} ({socket.gethostname()})", _stop_overtaken)
        try:
            if not await self._win(lease):
                return
            async with kept_alive(lease):
                store = await asyncio.to_thread(
                    open_store, self._data_dir, database, lease, start_empty=self._options.start_empty
                )
                await self._lead(store, lambda own: LeasedEngine(own, lambda: lease.assured), lease.epoch)
            lease.close()
        except StoreError as error:
            raise no_database(database, error) from error

    async def _win(self, lease: Lease) -> bool:
        """Answer as a standby until we lead (True), or are to stop."""
        candidate = Candidate(lease)
        # a server closes its sockets, and those who come while we change are to find somebody
        app = make_standby_app(self._place.prefix, lambda: candidate.leader)
        server = serve(app, [one.dup() for one in self._sockets])
        try:
            return await candidate.win(self._stopping)
        finally:
            server.stop()
            await asyncio.sleep(_LAST_ANSWER_SECONDS)
            await server.close_all_connections()

    async def _lead(self, store: Store, fenced: Callable[[Engine], Engine], term: int = 0) -> None:
        """Open the gateway and the engine beside a store, serve with them. `term`: as in `Surroundings`."""
        options = self._options
        try:
            check_kept_files(self._data_dir, store, new_keys=options.new_keys)
        except StoreError as error:
            raise self._no_database(error) from error
        keys = JobKeys.in_folder(self._data_dir)
        local = is_loopback(self._host)
        async with (
            looked_through(store) as looked,
            ssh_gateway.open_gateway(options, keys, self._address) as gateway,
        ):
            around = engines.Surroundings(
                self._definition,
                keys,
                # containers reach what listens on loopback by a proxy only
                front_door=options.front_door_port or (self._port if local else None),
                reached_at=None if local else _reachable(self._host),
                ssh_port=gateway.where["port"] if gateway is not None else None,
                term=term,
            )
            engine = fenced(engines.make_engine(options, self._data_dir, around))
            service = Service(
                engine,
                store,
                ServiceSettings(
                    self._definition, self._data_dir, self._address, options.default_fs_uri or ""
                ),
                job_files=JobIdentities(self._storage, self._data_dir, self._authenticator.find_now),
                keys=keys,
                find_user=self._authenticator.find_now,
                notifications=self._notifications,
            )
            await self._start(service, store, looked)
            if gateway is not None:
                await gateway.start(engine.bridge_address)
                asyncio.get_running_loop().add_signal_handler(RENEW_GATEWAY, gateway.renew)
            await self._serve(service, gateway)
            await service.close()

    async def _start(self, service: Service, store: Store, looked: asyncio.Future[None]) -> None:
        try:
            remember_kept_files(self._data_dir, store)
            await service.start()
            # who asks for the scheduler's health learns of damage from the first answer on
            await looked
        except StoreError as error:
            raise self._no_database(error) from error
        except DefinitionError as error:
            raise StartError(
                msg("The virtual clusters cannot be used: {reason}", reason=error.message)
            ) from error

    async def _serve(self, service: Service, gateway: ssh_gateway.RunningGateway | None) -> None:
        """Answer requests until we are to stop."""
        options, prefix = self._options, self._place.prefix
        context = HandlerContext(
            service,
            self._authenticator,
            prefix,
            self._monitoring_token,
            Streams(self._definition.streams_per_user),
            options.openpai_compat,
            gateway.where if gateway is not None else None,
            console_url=options.console_url,
        )
        if context.openpai_compat:
            _log.warning(
                "--openpai-compat: EVERYBODY WHO REACHES %s READS ALL JOBS, THEIR COMMANDS AND "
                "ENVIRONMENT, WITHOUT A TOKEN",
                self._address,
            )
        app = make_app(context)
        folder = self._data_dir / STORAGE_FOLDER
        async with file_servers.open_file_servers(
            options, folder, storage_account(options), prefix, service.monitor
        ) as servers:
            server = serve(app, self._sockets, TransferHandover(context, app.settings[STREAMED], servers))
            leave_out_what_is_there()
            _log.info("ready at %s, engine %s, data in %s", self._address, options.engine, self._data_dir)
            await self._stopping.wait()
            _log.info("stopping; tasks run on")
            await _close(server)

    def _no_database(self, error: StoreError) -> StartError:
        return no_database(self._database or self._data_dir, error)


def _stop_overtaken() -> None:
    """End without any further step: whatever we did from now on, the other scheduler may be doing too."""
    _log.critical("another scheduler has taken the lead; this one stops at once, its tasks run on")
    os._exit(OVERTAKEN)


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
