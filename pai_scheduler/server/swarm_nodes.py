"""The engine of a Swarm: its options, and the secrets by which its agents know this scheduler."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pai_scheduler.cluster.definition import Definition
from pai_scheduler.data_folder.secret_file import kept_secret
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.engine.swarm.connection import AGENT_PORT, PATIENCE_SECONDS
from pai_scheduler.i18n import msg
from pai_scheduler.workers.supervisor import ConnectionServers
from pai_scheduler.workers.tunnel_server.settings import TunnelSettings

from .startup import MOST_PROCESSES, check_range, near

if TYPE_CHECKING:
    from pai_scheduler.engine.swarm.certificates import Authority
    from pai_scheduler.engine.swarm.engine import SwarmEngine

_MOST_HOME_GB = 1_000_000
_SECRET, _CREDENTIALS = "agents.key", "agents"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `--engine swarm`."""
    parser.add_argument(
        "--agent-port",
        type=int,
        default=AGENT_PORT,
        metavar="N",
        help="with --engine swarm: the port at which each node's agent listens (%(default)s)",
    )
    parser.add_argument(
        "--agent-image",
        metavar="IMAGE",
        help="with --engine swarm: bring the agent to every node, by this image of your registry (default: "
        "the agents are started in another way)",
    )
    parser.add_argument(
        "--runtime-image",
        metavar="IMAGE",
        help="with --engine swarm: what tasks' SSH servers come from, in your registry (default: pai/runtime "
        "of this version, on every node)",
    )
    parser.add_argument(
        "--homes",
        type=Path,
        metavar="FOLDER",
        help="with --engine docker and swarm: a folder in which users' homes are; in a Swarm one that every "
        "node has at this path (NFS, CephFS …). Default: a volume of Docker's, on one node",
    )
    parser.add_argument(
        "--home-gb",
        type=int,
        metavar="N",
        help="with --engine docker: how many GB a user's home may hold, where it is a volume of Docker's "
        "that is made from now on; Docker's folder must be on an XFS with pquota (default: no limit)",
    )
    parser.add_argument(
        "--encrypt-networks",
        action="store_true",
        help="with --engine swarm: encrypt what the tasks of a job send from node to node",
    )
    parser.add_argument(
        "--tunnel-processes",
        type=int,
        metavar="N",
        help="with --engine swarm: processes that carry the bytes between this machine and tasks on other "
        "nodes, each of which fills one core at most (default: one for each core, 4 at most)",
    )
    parser.add_argument(
        "--node-patience",
        type=float,
        default=PATIENCE_SECONDS,
        metavar="SECONDS",
        help="with --engine swarm: after how long without an answer a node counts as lost, and its tasks are "
        "tried again elsewhere (%(default)g)",
    )


def check_options(options: argparse.Namespace) -> None:
    """Refuse what cannot be; StartError."""
    check_range("--tunnel-processes", options.tunnel_processes, 1, MOST_PROCESSES)
    check_range("--home-gb", options.home_gb, 1, _MOST_HOME_GB)
    if options.home_gb is not None and (options.engine != "docker" or options.homes is not None):
        raise StartError(
            msg(
                "Only homes that are volumes of one Docker can be limited (--home-gb): give --engine docker, "
                "and no --homes. A folder has the quotas of its own file system."
            )
        )


def tunnel_servers(
    credentials: Path | None, processes: int | None = None, **logging: str
) -> ConnectionServers:
    """Return the processes that carry connections to agents. `logging`: as in their settings."""
    settings = TunnelSettings(None if credentials is None else str(credentials), **logging)
    return ConnectionServers(
        "tunnel server", "pai_scheduler.workers.tunnel_server", settings.to_line(), processes
    )


def authority(data_dir: Path) -> Authority:
    """Return who signs the certificates of this scheduler and its agents; StartError."""
    from pai_scheduler.engine.swarm.certificates import Authority

    return Authority(kept_secret(data_dir / _SECRET))


def kept_credentials(data_dir: Path) -> Path | None:
    """Return what a scheduler of this data folder shows its agents (PEM); None where it never had any."""
    if not (data_dir / _SECRET).exists():
        return None
    return authority(data_dir).scheduler().write(data_dir / _CREDENTIALS)


def make_engine(
    options: argparse.Namespace,
    data_dir: Path,
    definition: Definition,
    front_door: int | None,
    ssh_port: int | None,
    term: int,
) -> SwarmEngine:
    """Return the engine; StartError, EngineError.

    `front_door`: as in `SwarmSettings`. `ssh_port`: of the gateway. `term`: the one in which this scheduler
    leads (`Lease.epoch`), or 0.
    """
    if options.homes is not None and not options.homes.is_absolute():
        raise StartError(
            msg("The folder of the homes must be a path from / on (--homes {folder}).", folder=options.homes)
        )
    # the other engines do not need these libraries
    from pai_scheduler.engine.docker.engine import instance_mark
    from pai_scheduler.engine.docker.runtime import image_of_this_version
    from pai_scheduler.engine.swarm.engine import SPARE_OVERLAYS, SwarmEngine, SwarmSettings
    from pai_scheduler.engine.swarm.protocol import Open
    from pai_scheduler.engine.swarm.tunnel import scheduler_tls

    own = authority(data_dir)
    runtime = options.runtime_image or image_of_this_version()
    if options.agent_image is not None:
        from pai_scheduler.engine.swarm.agent_deployment import AgentPlan, deploy

        deploy(
            AgentPlan(options.agent_image, runtime, options.agent_port, homes=str(options.homes or "")), own
        )
    credentials = own.scheduler().write(data_dir / _CREDENTIALS)
    return SwarmEngine(
        data_dir,
        scheduler_tls(credentials),
        tunnel_servers(
            credentials,
            options.tunnel_processes,
            log_level=options.log_level,
            log_format=options.log_format,
        ),
        Open(
            instance_mark(data_dir),
            definition.logs,
            tuple(definition.registries.patterns),
            generation=term,
            homes=options.homes,
            least_free_mb=definition.min_free_mb,
        ),
        SwarmSettings(
            agent_port=options.agent_port,
            patience=options.node_patience,
            encrypted=options.encrypt_networks,
            spare_networks=SPARE_OVERLAYS,
            runtime_image=runtime,
            front_door=front_door,
            ssh_gateway=None if ssh_port is None else (near(options.ssh_host), ssh_port),
        ),
    )
