"""Engines: their options, how one is made of them, and the secrets by which agents of a Swarm know us."""

from __future__ import annotations

import argparse
import resource
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pai_scheduler.cluster.definition import Definition
from pai_scheduler.cluster.shared_folders import SharedFolder
from pai_scheduler.data_folder.secret_file import kept_secret
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.engine.process.environment import STORAGE_ADDRESS
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.engine.swarm.connection import AGENT_PORT, PATIENCE_SECONDS
from pai_scheduler.i18n import Message, msg
from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.ssh.task_files import own_server_files
from pai_scheduler.storage.factory import folder_of
from pai_scheduler.workers.supervisor import ConnectionServers
from pai_scheduler.workers.tunnel_server.settings import TunnelSettings

from .components import MOST_PROCESSES, check_range, near

if TYPE_CHECKING:
    from pai_scheduler.engine.swarm.certificates import Authority
    from pai_scheduler.engine.swarm.engine import SwarmEngine

_MOST_HOME_GB = 1_000_000
_SECRET, _CREDENTIALS = "agents.key", "agents"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what an administrator may say about the Docker engine and that of a Swarm."""
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


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A scheduler, as an engine that works for it sees it.

    `front_door`: the port of this machine at which containers reach the scheduler by a proxy of the engine's;
    `reached_at`: the host at which they reach it without one. `ssh_port`: of the gateway. `term`: the one in
    which this scheduler leads (`Lease.epoch`), or 0.
    """

    definition: Definition
    keys: JobKeys
    front_door: int | None = None
    reached_at: str | None = None
    ssh_port: int | None = None
    term: int = 0


def make_engine(options: argparse.Namespace, data_dir: Path, around: Surroundings) -> Engine:
    """Return the engine that the options name; StartError, EngineError."""
    own = [data_dir, options.homes, folder_of(options.storage, data_dir)]
    check_shared_folders(around.definition.shared_folders, options.engine, own)
    # each engine brings libraries that the others do not need
    if options.engine == "docker":
        return _docker_engine(options, data_dir, around)
    if options.engine == "swarm":
        return _swarm_engine(options, data_dir, around)
    from pai_scheduler.engine.process.engine import ProcessEngine

    keys = around.keys
    return ProcessEngine(
        data_dir,
        logs=around.definition.logs,
        storage_host=STORAGE_ADDRESS,
        ssh_files=lambda task: own_server_files(keys.identity(task.job_id), keys.host(task.job_id)),
    )


def _docker_engine(options: argparse.Namespace, data_dir: Path, around: Surroundings) -> Engine:
    from pai_scheduler.engine.docker.engine import SPARE_NETWORKS, DockerEngine
    from pai_scheduler.engine.docker.settings import DockerSettings
    from pai_scheduler.engine.docker.volumes import size_options

    # the log of each running container is a connection and three files
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    settings = DockerSettings(
        logs=around.definition.logs,
        registries=around.definition.registries,
        homes=options.homes,
        home_options=size_options(options.home_gb) if options.home_gb is not None else None,
        publish_ssh=options.publish_ssh,
        spare_networks=SPARE_NETWORKS,
        front_door=around.front_door,
        proxy_needed=options.front_door_port is not None,
        reached_at=around.reached_at,
    )
    return DockerEngine(data_dir, settings)


def _swarm_engine(options: argparse.Namespace, data_dir: Path, around: Surroundings) -> SwarmEngine:
    if options.homes is not None and not options.homes.is_absolute():
        raise StartError(
            msg("The folder of the homes must be a path from / on (--homes {folder}).", folder=options.homes)
        )
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
            around.definition.logs,
            tuple(around.definition.registries.patterns),
            generation=around.term,
            homes=options.homes,
            least_free_mb=around.definition.min_free_mb,
        ),
        SwarmSettings(
            agent_port=options.agent_port,
            patience=options.node_patience,
            encrypted=options.encrypt_networks,
            spare_networks=SPARE_OVERLAYS,
            runtime_image=runtime,
            front_door=around.front_door,
            ssh_gateway=None if around.ssh_port is None else (near(options.ssh_host), around.ssh_port),
        ),
    )


def check_shared_folders(folders: Sequence[SharedFolder], engine: str, own: Sequence[Path | None]) -> None:
    """Refuse what cannot be; StartError. `own`: where the scheduler keeps what is not for everybody."""
    for refusal in find_refusals(folders, engine, own):
        raise StartError(refusal)


def find_refusals(
    folders: Sequence[SharedFolder], engine: str, own: Sequence[Path | None]
) -> Iterator[Message]:
    """Find each reason for which a scheduler does not start with these folders."""
    if folders and engine == "process":
        yield msg(
            "The process engine has no shared folders (sharedFolders in the cluster file): its tasks all "
            "run as one account of this machine, and see the same files. Use --engine docker."
        )
        return
    for folder in folders:
        if folder.create and engine == "swarm":
            yield msg(
                "In a Swarm no folder is made on the machines: make that of the shared folder {name} on "
                "each of them, and leave create out.",
                name=folder.name,
            )
        for place in own:
            if place is not None and folder.meets(str(place.expanduser().absolute())):
                yield msg(
                    "The shared folder {name} ({source}) would open {place}, where the scheduler keeps "
                    "what is not for everybody. Choose another folder.",
                    name=folder.name,
                    source=folder.source,
                    place=place,
                )
