"""Keeps the agent's container running beside this one (`python -m pai_scheduler.engine.agent.launch`).

It has this container's image, the host's network, the node's Docker socket, and what GPUs there are to tell
of. It outlives this process: a node that is drained ends its services, and its tasks may run on.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import signal
import sys
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any

import docker
from docker.errors import NotFound
from docker.models.containers import Container
from docker.types import DeviceRequest, LogConfig, Mount

from pai_scheduler.engine.docker.sync_client import ERRORS, docker_client, own_container
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.engine.swarm.connection import ENDS

NAME = "pai-agent"
_LABEL = "pai.agent-plan"
_SOCKET = "/var/run/docker.sock"
_SECRET = Path("/run/secrets/pai-agent")
_CREDENTIALS_FOLDER, _CREDENTIALS = "/etc/pai-agent", "credentials.pem"
_LOOK_SECONDS, _STOP_SECONDS = 10.0, 10

_log = logging.getLogger(__name__)


def main() -> int:
    """See to it that the agent runs as it should; look after it until ended."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGTERM, _stop)
    try:
        with docker_client(f"unix://{_SOCKET}") as client:
            ensure(client, own_container(client), os.environ, _SECRET.read_bytes())
            why = look_after(client)
    except (EngineError, *ERRORS, OSError) as error:
        why = str(getattr(error, "explanation", None) or error)
    _tell(why)
    return 1


def look_after(client: docker.DockerClient) -> str:
    """Stay as long as the agent runs, or is started again by Docker; return why it does not any more."""
    told = ""
    while True:
        try:
            agent = client.containers.get(NAME)
        except NotFound:
            return f"the container {NAME} was removed."
        why = ""
        if agent.status != "running":
            # (its own last line says why it has ended)
            said = agent.logs(tail=1).decode(errors="replace").strip()
            why = f"exit code {agent.attrs['State']['ExitCode']}. {said}"
        if agent.status not in ("running", "restarting"):
            return why
        if why != told:
            told = why
            _tell(why)
        time.sleep(_LOOK_SECONDS)


def _tell(why: str) -> None:
    print(f"{ENDS}{why}" if why else "The agent runs again.", file=sys.stderr, flush=True)


def ensure(
    client: docker.DockerClient,
    own: Container,
    settings: Mapping[str, str],
    credentials: bytes,
) -> None:
    """Start the agent's container, in the place of one that is different. `own`: this process's container."""
    options = _options(own, settings, has_gpus="nvidia" in client.info().get("Runtimes", {}))
    plan = hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode() + credentials).hexdigest()
    try:
        found = client.containers.get(NAME)
        if found.labels.get(_LABEL) == plan and found.status == "running":
            _log.info("the agent runs already")
            return
        _log.info("the agent is replaced")
        found.stop(timeout=_STOP_SECONDS)
        found.remove(force=True)
    except NotFound:
        _log.info("the agent is started")
    made = client.containers.create(name=NAME, labels={_LABEL: plan}, **options)
    made.put_archive("/", _archive(credentials))
    made.start()


def _options(own: Container, settings: Mapping[str, str], *, has_gpus: bool) -> dict[str, Any]:
    # as the node names it, whatever its place in this container is
    docker_socket = next(mount["Source"] for mount in own.attrs["Mounts"] if mount["Destination"] == _SOCKET)
    folder = settings["PAI_AGENT_FOLDER"]
    command = [
        *("python3", "-m", "pai_scheduler.engine.agent"),
        *("--port", settings["PAI_AGENT_PORT"]),
        *("--folder", folder),
        *("--credentials", f"{_CREDENTIALS_FOLDER}/{_CREDENTIALS}"),
        *("--runtime-image", settings["PAI_RUNTIME_IMAGE"]),
    ]
    options: dict[str, Any] = {
        "image": own.attrs["Image"],
        "command": command,
        "network_mode": "host",
        "init": True,
        "restart_policy": {"Name": "unless-stopped"},
        "log_config": LogConfig(type="local", config={"max-size": "16m", "max-file": "4"}),
        # the folder has one path on both sides: containers of tasks get parts of it by the node's path
        "volumes": [f"{path}:{path}" for path in (folder, settings.get("PAI_AGENT_HOMES")) if path],
        "mounts": [Mount(_SOCKET, docker_socket, type="bind")],
    }
    if has_gpus:
        options["device_requests"] = [DeviceRequest(count=-1, capabilities=[["utility"]])]
    return options


def _archive(credentials: bytes) -> bytes:
    """Return a tar archive with the folder of the credentials, for root alone."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        folder = tarfile.TarInfo(_CREDENTIALS_FOLDER.strip("/"))
        folder.type, folder.mode = tarfile.DIRTYPE, 0o700
        archive.addfile(folder)
        file = tarfile.TarInfo(f"{folder.name}/{_CREDENTIALS}")
        file.size, file.mode = len(credentials), 0o400
        archive.addfile(file, io.BytesIO(credentials))
    return packed.getvalue()


def _stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main())
