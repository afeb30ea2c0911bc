"""Deployment of agents on every node of a Swarm, and programs run once on each."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.errors import APIError
from docker.models.secrets import Secret
from docker.models.services import Service
from docker.types import Mount, RestartPolicy, SecretReference, ServiceMode, UpdateConfig

from pai_scheduler.engine.docker.sync_client import ERRORS, docker_client
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.i18n import msg

from .certificates import Authority
from .connection import AGENT_PORT

# Brings the agent to every node of a Swarm: a global service, with its credentials as a secret of the
# Swarm.
#
# The service's own container only starts the agent's beside itself (`engine/agent/launch.py`), for two
# reasons: Swarm gives its services no GPUs, and ends them on a node that is drained, where tasks may still
# be running.

SERVICE = "pai-agent"
_PLAN, _AUTHORITY, _MADE = "pai.plan", "pai.authority", "pai.made"
#: Certificates are made anew long before they expire.
_RENEW_SECONDS = 180 * 24 * 3600
_SECRET_FILE, _SECRET_MODE = "pai-agent", 0o400


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """Agent that runs on each node. `folder` and `docker_socket` are paths of the nodes; Swarm's templates
    (`{{.Node.Hostname}}`) may stand in them."""

    image: str
    runtime_image: str
    port: int = AGENT_PORT
    folder: str = "/var/lib/pai-agent"
    docker_socket: str = "/var/run/docker.sock"
    #: a folder that all nodes share, with users' homes in it; empty: none
    homes: str = ""


def deploy(plan: AgentPlan, authority: Authority, host: str | None = None) -> None:
    """Make the service as planned, or change it, node by node; EngineError. Blocks; returns before it runs.

    `host`: a manager of the Swarm, as in DOCKER_HOST.
    """
    with docker_client(host) as client:
        try:
            _deploy(client, plan, authority)
        except ERRORS as error:
            reason = getattr(error, "explanation", None) or str(error)
            raise EngineError(
                msg("The agents of the nodes cannot be brought to the Swarm: {error}", error=reason)
            ) from error


def _deploy(client: DockerClient, plan: AgentPlan, authority: Authority) -> None:
    secret = _current_secret(client, authority)
    fingerprint = hashlib.sha256(json.dumps([asdict(plan), secret.id], sort_keys=True).encode()).hexdigest()
    service = _find(client)
    if service is None:
        client.services.create(**_spec(plan, secret, fingerprint))  # type: ignore[no-untyped-call]
    elif service.attrs["Spec"].get("Labels", {}).get(_PLAN) != fingerprint:
        service.update(**_spec(plan, secret, fingerprint))  # type: ignore[no-untyped-call]


def _find(client: DockerClient) -> Service | None:
    # (the filter finds every name that begins so)
    found = client.services.list(filters={"name": SERVICE})
    return next((service for service in found if service.name == SERVICE), None)


def _current_secret(client: DockerClient, authority: Authority) -> Secret:
    """Return the newest credentials of agents that this authority has signed; new ones where it is old."""
    own = client.secrets.list(filters={"label": f"{_AUTHORITY}={authority.fingerprint}"})
    newest = max(own, key=_time_made, default=None)
    if newest is not None and _time_made(newest) + _RENEW_SECONDS > time.time():
        return newest
    made = int(time.time())
    client.secrets.create(
        name=f"{SERVICE}-{authority.fingerprint[:8]}-{made}",
        data=authority.agent().bundle,
        labels={_AUTHORITY: authority.fingerprint, _MADE: str(made)},
    )
    return _current_secret(client, authority)


def _time_made(secret: Secret) -> int:
    return int(secret.attrs["Spec"]["Labels"][_MADE])


def _spec(plan: AgentPlan, secret: Secret, fingerprint: str) -> dict[str, Any]:
    return {
        "image": plan.image,
        "name": SERVICE,
        "command": ["python3", "-m", "pai_scheduler.engine.agent.launch"],
        "env": [
            f"PAI_AGENT_PORT={plan.port}",
            f"PAI_AGENT_FOLDER={plan.folder}",
            f"PAI_RUNTIME_IMAGE={plan.runtime_image}",
            f"PAI_AGENT_HOMES={plan.homes}",
        ],
        "labels": {_PLAN: fingerprint},
        "mode": ServiceMode("global"),
        "mounts": [Mount("/var/run/docker.sock", plan.docker_socket, type="bind")],
        "secrets": [SecretReference(str(secret.id), secret.name, filename=_SECRET_FILE, mode=_SECRET_MODE)],
        "restart_policy": RestartPolicy(condition="any", delay=5 * 10**9),
        "update_config": UpdateConfig(parallelism=1, failure_action="pause"),
        "stop_grace_period": 5 * 10**9,
        "init": True,
    }


# Runs a program of the agents' image once on every node of a Swarm, by a service that ends with it.

#: Tells what is ours, so that a caller whose life was cut short leaves nothing behind for long.
_LABEL, _NAME = "pai.everywhere", "pai-everywhere"
#: Where a program finds its secret.
SECRET = Path("/run/secrets/program")
#: Docker's socket, on a node and within the program's container.
DOCKER_SOCKET = _INNER_SOCKET = "/var/run/docker.sock"
_LOOK_SECONDS = 0.5
_REMOVE_SECONDS = 30.0
#: Lines of each task in which its last words are looked for.
_LAST_LINES = "3"
#: The states in which a task of a Swarm has ended.
_ENDED = frozenset({"failed", "rejected", "complete", "shutdown", "orphaned"})
_NODE_DETAIL = "com.docker.swarm.node.id="


@dataclass(frozen=True, slots=True)
class NodeProgram:
    """Program to run: a module of this package, in `image`. `docker_socket`: its path on the nodes.

    In `environ` Swarm's templates (`{{.Node.ID}}`) may stand, and `{service}` is the service's name.
    `connected`: all are in one overlay network. `node`: the id of the only one it runs on.
    `secret`: what it finds in the file `SECRET`.
    """

    image: str
    module: str
    environ: Mapping[str, str] = field(default_factory=dict)
    docker_socket: str = DOCKER_SOCKET
    connected: bool = False
    node: str = ""
    secret: bytes = b""


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """By the ids of nodes: the lines that were printed, why the program has ended, its address.

    `completed`: the nodes of `failures` on which it ended with 0; `said`: its last words on the others, where
    it had some. `unfinished`: what it did when its time was over. `unread`: Docker's words if it does not
    give all lines, as for a node that was away from a Swarm for a while (moby issue 35011): then its state is
    all that is known.
    """

    lines: Mapping[str, Sequence[str]] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    completed: frozenset[str] = frozenset()
    said: Mapping[str, str] = field(default_factory=dict)
    unfinished: Mapping[str, str] = field(default_factory=dict)
    unread: str = ""


def run_everywhere(
    client: DockerClient, program: NodeProgram, is_over: Callable[[ProgramOutcome], bool], *, seconds: float
) -> ProgramOutcome:
    """Run a program on each node that may get something new, until `is_over`, or for `seconds`.

    Docker's errors pass.
    """
    remove_leftovers(client)
    name = f"{_NAME}-{secrets.token_hex(4)}"
    labels = {_LABEL: name}
    networks, given = [], []
    try:
        if program.connected:
            networks = [client.networks.create(name, driver="overlay", labels=labels).id]
        if program.secret:
            secret = client.secrets.create(name=name, data=program.secret, labels=labels)
            given = [SecretReference(str(secret.id), name, filename=SECRET.name, mode=0o400)]
        service = client.services.create(
            program.image,
            name=name,
            command=["python3", "-m", program.module],
            env=[f"{key}={value.replace('{service}', name)}" for key, value in program.environ.items()],
            labels=labels,
            mode=ServiceMode("global"),
            networks=networks,
            secrets=given,
            constraints=[f"node.id=={program.node}"] if program.node else [],
            mounts=[Mount(_INNER_SOCKET, program.docker_socket, type="bind")],
            restart_policy=RestartPolicy(condition="none"),
            stop_grace_period=0,
            init=True,
        )  # type: ignore[no-untyped-call]
        return _follow(client, service, is_over, time.monotonic() + seconds)
    finally:
        remove_leftovers(client)


def agents_plan(client: DockerClient, image: str = "") -> tuple[str, str]:
    """Return the agents' image (or `image`; empty: unknown), and where nodes have Docker's socket."""
    for service in client.services.list(filters={"name": SERVICE}):
        if service.name == SERVICE:
            container = service.attrs["Spec"]["TaskTemplate"]["ContainerSpec"]
            mounts = {mount["Target"]: mount["Source"] for mount in container.get("Mounts") or ()}
            found = str(container["Image"]).partition("@")[0]
            return image or found, mounts.get(_INNER_SOCKET, DOCKER_SOCKET)
    return image, DOCKER_SOCKET


def remove_leftovers(client: DockerClient) -> None:
    """Remove what this and earlier calls have made."""
    ours = {"label": _LABEL}
    for service in client.services.list(filters=ours):
        with contextlib.suppress(*ERRORS):
            service.remove()  # type: ignore[no-untyped-call]
    for secret in client.secrets.list(filters=ours):
        with contextlib.suppress(*ERRORS):
            secret.remove()
    give_up = time.monotonic() + _REMOVE_SECONDS
    for network in client.networks.list(filters=ours):
        # (it is in use until the last program has gone)
        while time.monotonic() < give_up:
            try:
                network.remove()
                break
            except APIError as error:
                if error.status_code == 404:
                    break
                time.sleep(_LOOK_SECONDS)


def _follow(
    client: DockerClient, service: Service, is_over: Callable[[ProgramOutcome], bool], give_up: float
) -> ProgramOutcome:
    while True:
        tasks = client.api.tasks(filters={"service": service.id})  # type: ignore[no-untyped-call]
        ended = {_node(task): _state(task) for task in tasks if task["Status"]["State"] in _ENDED}
        lines = _lines(service)  # (after the tasks: of one that has ended nothing is still to come)
        unread = " ".join(lines.pop("", ()))
        addresses = {_node(task): address for task in tasks if (address := _address(task))}
        completed = frozenset(_node(task) for task in tasks if task["Status"]["State"] == "complete")
        outcome = ProgramOutcome(lines, ended, addresses, completed, unread=unread)
        if is_over(outcome):
            return _with_last_words(service, outcome)
        if time.monotonic() > give_up:
            unfinished = {node: _state(task) for task in tasks if (node := _node(task)) and node not in ended}
            return _with_last_words(service, replace(outcome, unfinished=unfinished))
        time.sleep(_LOOK_SECONDS)


def last_words(service: Service) -> dict[str, str]:
    """Return the line that a service wrote to its standard error last, by node, of those that wrote some."""
    written: dict[str, tuple[str, str]] = {}
    log = service.logs(details=True, stderr=True, timestamps=True, tail=_LAST_LINES)
    for line in b"".join(log).decode(errors="replace").splitlines():
        time_written, _, rest = line.partition(" ")
        details, _, text = rest.partition(" ")
        node = next((part for part in details.split(",") if part.startswith(_NODE_DETAIL)), "")
        # (lines of several tasks on a node are not in the order of time)
        if node and text.strip():
            written[node] = max(written.get(node, ("", "")), (time_written, text.strip()))
    return {node.removeprefix(_NODE_DETAIL): text for node, (_, text) in written.items()}


def _with_last_words(service: Service, outcome: ProgramOutcome) -> ProgramOutcome:
    failed = outcome.failures.keys() - outcome.completed
    if not failed:
        return outcome
    return replace(outcome, said={node: text for node, text in last_words(service).items() if node in failed})


def _lines(service: Service) -> dict[str, list[str]]:
    """Return what was printed, by node: Docker puts before each line where it comes from.

    What has no node are Docker's own words: why it cannot give all.
    """
    found: dict[str, list[str]] = {}
    for line in b"".join(service.logs(details=True, stdout=True)).decode(errors="replace").splitlines():
        details, _, text = line.partition(" ")
        node = next((part for part in details.split(",") if part.startswith(_NODE_DETAIL)), "")
        found.setdefault(node.removeprefix(_NODE_DETAIL), []).append(text if node else line)
    return found


def _node(task: Mapping[str, Any]) -> str:
    return str(task.get("NodeID", ""))


def _state(task: Mapping[str, Any]) -> str:
    status = task["Status"]
    return str(status.get("Err") or status.get("Message") or status["State"])


def _address(task: Mapping[str, Any]) -> str:
    for attached in task.get("NetworksAttachments") or ():
        if _LABEL in (attached["Network"]["Spec"].get("Labels") or {}):
            return str(attached["Addresses"][0]).partition("/")[0]
    return ""
