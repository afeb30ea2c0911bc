"""Runs the agent of a node: `python -m pai_scheduler.engine.agent`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from socket import socket
from ssl import SSLContext

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from pai_scheduler.cluster.definition import Registries
from pai_scheduler.engine.docker.engine import SPARE_NETWORKS, DockerEngine
from pai_scheduler.engine.docker.runtime import image_of_this_version
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.engine.swarm.connection import AGENT_PORT
from pai_scheduler.engine.swarm.protocol import MOST_BYTES, Open
from pai_scheduler.engine.swarm.tunnel import agent_tls
from pai_scheduler.job.task import TaskRef

from .app import make_app
from .folders import Folders
from .host import EngineHost

DEFAULT_FOLDER = Path("/var/lib/pai-agent")
DEFAULT_CREDENTIALS = Path("/run/secrets/pai-agent")

_log = logging.getLogger(__name__)


def main() -> int:
    """Serve until ended; tasks run on. Return 2 where it cannot begin."""
    parser = argparse.ArgumentParser(prog="python -m pai_scheduler.engine.agent", description=__doc__)
    parser.add_argument("--listen", default="0.0.0.0", help="the address to listen at")  # noqa: S104
    parser.add_argument("--port", type=int, default=AGENT_PORT, help="the port to listen at (%(default)s)")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="keeps what tasks need to run on")
    parser.add_argument("--credentials", type=Path, default=DEFAULT_CREDENTIALS, help="a PEM file")
    parser.add_argument("--docker", default=None, help="the Docker Engine (as in DOCKER_HOST)")
    parser.add_argument("--runtime-image", default=None, help="what tasks' SSH servers come from")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # the log of each running container is a connection and three files
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        tls = agent_tls(options.credentials)
    except OSError as error:
        _log.error("The credentials cannot be used (--credentials %s): %s", options.credentials, error)
        return 2
    try:
        sockets = bind_sockets(options.port, options.listen)
    except (OSError, OverflowError) as error:
        _log.error("Nobody can listen at %s, port %s: %s", options.listen, options.port, error)
        return 2
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        _log.error("The folder %s cannot be used (--folder): %s", options.folder, error)
        return 2
    asyncio.run(_serve(options, tls, sockets))
    return 0


async def _serve(options: argparse.Namespace, tls: SSLContext, sockets: list[socket]) -> None:
    def make(asked: Open, on_output: Callable[[TaskRef], None]) -> DockerEngine:
        settings = DockerSettings(
            host=options.docker,
            instance=asked.instance,
            logs=asked.logs,
            registries=Registries(asked.registries),
            runtime_image=options.runtime_image or image_of_this_version(),
            homes=asked.homes,
            spare_networks=SPARE_NETWORKS,
            reached_at_bridge=bool(asked.front_door_ports),
            counts_containers=True,
        )
        return DockerEngine(options.folder / asked.instance, settings, on_output)

    # (in the agent's container / is on the disk of Docker's own files)
    host = EngineHost(make, options.folder, disks=(options.folder, Path("/")))
    server = HTTPServer(
        make_app(host, Folders(options.folder / "folders")),
        ssl_options=tls,
        max_body_size=MOST_BYTES,
    )
    server.add_sockets(sockets)
    _log.info("listening at port %d", options.port)
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await stopping.wait()
    server.stop()
    await server.close_all_connections()
    await host.close()


if __name__ == "__main__":
    sys.exit(main())
