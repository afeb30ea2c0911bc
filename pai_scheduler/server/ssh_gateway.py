"""The SSH gateway as the scheduler starts it: its options, where it listens, how others are told of it."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import msg
from pai_scheduler.rest.models import SshGateway
from pai_scheduler.ssh.gateway.protocol import GatewaySettings
from pai_scheduler.ssh.gateway.supervisor import GatewaySupervisor, PortTakenError
from pai_scheduler.ssh.keys import JobKeys

from .components import MOST_PROCESSES, check_range, is_loopback

DEFAULT_PORT = 2222


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what an administrator may say about SSH."""
    parser.add_argument(
        "--ssh-port",
        type=int,
        metavar="N",
        help="port of the SSH gateway, through which users log into their tasks "
        f"({DEFAULT_PORT}, or a free one where that is taken; 0: no gateway)",
    )
    parser.add_argument(
        "--ssh-host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address at which the SSH gateway listens (%(default)s; 0.0.0.0: wherever this machine is "
        "reached)",
    )
    parser.add_argument(
        "--ssh-public-host",
        metavar="NAME",
        help="name of this machine in what users are told about SSH (default: as they reached the scheduler)",
    )
    parser.add_argument(
        "--ssh-processes",
        type=int,
        metavar="N",
        help="processes of the SSH gateway, each of which fills one core at most (default: one for each "
        "core, 4 at most)",
    )
    parser.add_argument(
        "--publish-ssh",
        metavar="ADDRESS",
        help="with --engine docker: publish the SSH port of each task at this address of this machine, so "
        "that ssh -i KEY -p PORT root@ADDRESS works without the gateway",
    )


def check_options(options: argparse.Namespace) -> None:
    """Refuse what would let strangers in, or cannot be; StartError."""
    if options.engine == "process" and not is_loopback(options.ssh_host):
        raise StartError(
            msg(
                "The process engine runs everybody's tasks as this user, so its SSH gateway listens on this "
                "machine only (--ssh-host 127.0.0.1). Use --engine docker to serve others."
            )
        )
    if options.engine == "process" and options.publish_ssh is not None:
        raise StartError(
            msg("--publish-ssh is for --engine docker: no other tasks have an SSH port of their own.")
        )
    check_range("--ssh-port", options.ssh_port, 0, 65535)
    check_range("--ssh-processes", options.ssh_processes, 1, MOST_PROCESSES)


@dataclass(frozen=True, slots=True)
class RunningGateway:
    """The gateway, which has its port. `where`: what others are told of it."""

    where: SshGateway
    _supervisor: GatewaySupervisor

    async def start(self, bridge: str | None) -> None:
        """Start the gateway. `bridge`: where containers reach what listens on this machine's loopback.

        It listens there itself: what containers have open, as the terminals of JupyterLab, is not to pass
        through the scheduler, nor to end with it.
        """
        await self._supervisor.start(bridge if is_loopback(self._supervisor.host) else None)

    def renew(self) -> None:
        """Replace the gateway's processes by new ones; what is open goes on in those before."""
        self._supervisor.renew()


@asynccontextmanager
async def open_gateway(
    options: argparse.Namespace, keys: JobKeys, service_url: str
) -> AsyncIterator[RunningGateway | None]:
    """Take the gateway's port until the end; None: there is to be none. StartError: not at that address.

    Its processes ask the service at `service_url`, which may begin to answer later.
    """
    if options.ssh_port == 0:
        yield None
        return
    pair = keys.gateway_host()
    settings = GatewaySettings(
        service_url,
        keys.gateway_token(),
        pair.private.decode(),
        log_level=options.log_level,
        log_format=options.log_format,
    )
    supervisor = GatewaySupervisor(
        settings,
        options.ssh_host,
        DEFAULT_PORT if options.ssh_port is None else options.ssh_port,
        asked=options.ssh_port is not None,
        processes=options.ssh_processes,
    )
    try:
        await supervisor.listen()
    except (PortTakenError, OSError) as error:
        reason = msg("it is taken") if isinstance(error, PortTakenError) else error.strerror or str(error)
        raise StartError(
            msg(
                "The SSH gateway cannot listen at {host}, port {port}: {reason}. Choose another with "
                "--ssh-port and --ssh-host, or none with --ssh-port 0.",
                host=options.ssh_host,
                port=supervisor.port,
                reason=reason,
            )
        ) from error
    try:
        yield RunningGateway(
            {"host": options.ssh_public_host, "port": supervisor.port, "hostKey": pair.public}, supervisor
        )
    finally:
        await supervisor.close()
