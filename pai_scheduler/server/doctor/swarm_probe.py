"""Has every node of a Swarm looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from docker import DockerClient

from pai_scheduler.engine.swarm.agent_deployment import Outcome, Program, run_everywhere

from . import node_probe
from .machine_report import NodeReport


@dataclass(frozen=True, slots=True)
class Probed:
    """What came of it, by the ids of nodes: reports, why there is none, and each probe's address.

    `said`: the last words of probes that failed.
    `unread`: Docker's words if it has not given all that the probes said.
    """

    reports: Mapping[str, NodeReport] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    unread: str = ""
    said: Mapping[str, str] = field(default_factory=dict)


def probe_nodes(
    client: DockerClient, image: str, count: int, docker_socket: str, *, seconds: float
) -> Probed:
    """Start a probe on each node that may get something new; return what they say within `seconds`.

    `image`: the agents'. `count`: of nodes that should answer. `docker_socket`: its path on the nodes.
    Docker's errors pass.
    """
    environ = {
        node_probe.NODE: "{{.Node.ID}}",
        node_probe.SERVICE: "{service}",
        node_probe.IMAGE: image,
        node_probe.COUNT: str(count),
    }
    program = Program(image, node_probe.__name__, environ, docker_socket, connected=True)

    def is_over(outcome: Outcome) -> bool:
        return len(_reports(outcome).keys() | outcome.failures.keys()) >= count

    outcome = run_everywhere(client, program, is_over, seconds=seconds)
    failures = {**outcome.unfinished, **outcome.failures}
    return Probed(_reports(outcome), failures, outcome.addresses, outcome.unread, outcome.said)


def _reports(outcome: Outcome) -> dict[str, NodeReport]:
    found = {}
    for lines in outcome.lines.values():
        for line in lines:
            with contextlib.suppress(msgspec.MsgspecError):
                report = msgspec.json.decode(line, type=NodeReport)
                found[report.node] = report
    return found
