"""Brings the agent to every node of a Swarm: a global service, with its credentials as a secret of the Swarm.

The service's own container only starts the agent's beside itself (`engine/agent/launch.py`), for two reasons:
Swarm gives its services no GPUs, and ends them on a node that is drained, where tasks may still be running.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from typing import Any

from docker import DockerClient
from docker.models.secrets import Secret
from docker.models.services import Service
from docker.types import Mount, RestartPolicy, SecretReference, ServiceMode, UpdateConfig

from pai_scheduler.engine.docker.client import ERRORS, docker_client
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.i18n import msg

from .certificates import Authority
from .defaults import AGENT_PORT

SERVICE = "pai-agent"
_PLAN, _AUTHORITY, _MADE = "pai.plan", "pai.authority", "pai.made"
#: Certificates are made anew long before they expire.
_RENEW_SECONDS = 180 * 24 * 3600
_SECRET_FILE, _SECRET_MODE = "pai-agent", 0o400


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """What runs on each node. `folder` and `docker_socket` are paths of the nodes; Swarm's templates
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
