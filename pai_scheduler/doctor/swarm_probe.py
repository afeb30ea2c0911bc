"""Has every node of a Swarm looked at, by a service that lives as long as that takes."""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from docker import DockerClient
from docker.errors import APIError
from docker.models.services import Service
from docker.types import Mount, RestartPolicy, ServiceMode

from pai_scheduler.engine.docker.client import ERRORS

from . import node_probe
from .machine_report import NodeReport

#: Tells what is ours, so that a doctor whose life was cut short leaves nothing behind for long.
_LABEL, _NAME = "pai.doctor", "pai-doctor"
_LOOK_SECONDS = 0.5
_REMOVE_SECONDS = 30.0
#: The states in which a task of a Swarm ends without having worked.
_FAILED = frozenset({"failed", "rejected", "complete", "shutdown", "orphaned"})


@dataclass(frozen=True, slots=True)
class Probed:
    """What came of it, by the ids of nodes: reports, why there is none, and each probe's address."""

    reports: Mapping[str, NodeReport] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)


def probe_nodes(
    client: DockerClient,
    image: str,
    count: int,
    docker_socket: str = "/var/run/docker.sock",
    *,
    seconds: float,
) -> Probed:
    """Start a probe on each node that may get something new; return what they say within `seconds`.

    `image`: the agents'. `count`: of nodes that should answer. `docker_socket`: its path on the nodes.
    Docker's errors pass.
    """
    remove_leftovers(client)
    name = f"{_NAME}-{secrets.token_hex(4)}"
    network = client.networks.create(name, driver="overlay", labels={_LABEL: name})
    try:
        environ = {
            node_probe.NODE: "{{.Node.ID}}",
            node_probe.SERVICE: name,
            node_probe.IMAGE: image,
            node_probe.COUNT: str(count),
        }
        service = client.services.create(
            image,
            name=name,
            command=["python3", "-m", node_probe.__name__],
            env=[f"{key}={value}" for key, value in environ.items()],
            labels={_LABEL: name},
            mode=ServiceMode("global"),
            networks=[network.id],
            mounts=[Mount("/var/run/docker.sock", docker_socket, type="bind")],
            restart_policy=RestartPolicy(condition="none"),
            stop_grace_period=0,
            init=True,
        )  # type: ignore[no-untyped-call]
        return _follow(client, service, count, time.monotonic() + seconds)
    finally:
        remove_leftovers(client)


def remove_leftovers(client: DockerClient) -> None:
    """Remove the services and networks of this and of earlier looks."""
    for service in client.services.list(filters={"label": _LABEL}):
        with contextlib.suppress(*ERRORS):
            service.remove()  # type: ignore[no-untyped-call]
    give_up = time.monotonic() + _REMOVE_SECONDS
    for network in client.networks.list(filters={"label": _LABEL}):
        # (it is in use until the last probe has gone)
        while time.monotonic() < give_up:
            try:
                network.remove()
                break
            except APIError as error:
                if error.status_code == 404:
                    break
                time.sleep(_LOOK_SECONDS)


def _follow(client: DockerClient, service: Service, count: int, give_up: float) -> Probed:
    while True:
        tasks = client.api.tasks(filters={"service": service.id})  # type: ignore[no-untyped-call]
        failures = {str(task["NodeID"]): _failure(task) for task in tasks if _failure(task)}
        addresses = {str(task["NodeID"]): address for task in tasks if (address := _address(task))}
        reports = _reports(service)
        if len(reports.keys() | failures.keys()) >= count:
            return Probed(reports, failures, addresses)
        if time.monotonic() > give_up:
            silent = {str(task["NodeID"]): _state(task) for task in tasks if task.get("NodeID")}
            return Probed(reports, silent | failures, addresses)
        time.sleep(_LOOK_SECONDS)


def _reports(service: Service) -> dict[str, NodeReport]:
    said = b"".join(service.logs(stdout=True))
    found = {}
    for line in said.splitlines():
        with contextlib.suppress(msgspec.MsgspecError):
            report = msgspec.json.decode(line, type=NodeReport)
            found[report.node] = report
    return found


def _failure(task: Mapping[str, Any]) -> str:
    return _state(task) if task["Status"]["State"] in _FAILED else ""


def _state(task: Mapping[str, Any]) -> str:
    status = task["Status"]
    return str(status.get("Err") or status.get("Message") or status["State"])


def _address(task: Mapping[str, Any]) -> str:
    for attached in task.get("NetworksAttachments") or ():
        if _LABEL in (attached["Network"]["Spec"].get("Labels") or {}):
            return str(attached["Addresses"][0]).partition("/")[0]
    return ""
