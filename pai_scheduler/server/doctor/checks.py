"""Checks of the doctor: judgement of machines' reports, and of the nodes of a Swarm."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

import msgspec
from docker import DockerClient

from pai_scheduler.engine.docker.registries import registry_of
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.engine.swarm.agent_deployment import (
    SERVICE,
    NodeProgram,
    ProgramOutcome,
    agents_plan,
    run_everywhere,
)
from pai_scheduler.engine.swarm.connection import AgentConnection, AgentRefusedError, AgentUnreachableError
from pai_scheduler.engine.swarm.engine import SwarmMember, members, why_agents_end
from pai_scheduler.engine.swarm.tunnel import scheduler_tls
from pai_scheduler.i18n import msg

from . import node_probe
from .finding import Finding, good, note, wrong
from .node_probe import MOST_PEERS, MachineReport, NodeReport, PeerReport

# What follows from the reports of machines: what is as it should be, what is wrong, and what to do.

#: Less than this is too little: for one more image, for the logs of a day.
_LITTLE_GB, _LITTLE_SHARE = 20.0, 0.05
#: Clocks that are apart so far make logs hard to compare; certificates bear a day.
_APART_SECONDS, _TOO_FAR_SECONDS = 2.0, 12 * 3600.0


def of_machine(report: MachineReport) -> Iterator[Finding]:
    """Judge a machine."""
    yield good(msg("Docker {version} answers.", version=report.docker))
    yield of_disk(report.disk_free_gb, report.disk_gb, "Docker")
    yield from _gpus(report)


def of_disk(free_gb: float, total_gb: float, what: str) -> Finding:
    """Judge the room on a disk (GB). `what`: who needs it."""
    text = msg(
        "{free} GB of {total} GB are free on the disk of {what}.",
        free=f"{free_gb:.0f}",
        total=f"{total_gb:.0f}",
        what=what,
    )
    if free_gb < _LITTLE_GB or free_gb < total_gb * _LITTLE_SHARE:
        return wrong(
            text,
            msg("Make room: see what images and volumes take with {command}.", command="docker system df"),
        )
    return good(text)


def of_registry(report: MachineReport, image: str) -> Finding:
    """Judge whether a node gets our image from its registry."""
    if not report.registry_error:
        return good(msg("The registry has the image {image}.", image=image))
    return note(
        msg(
            "The node has the image {image}, but not from its registry: {error}",
            image=image,
            error=report.registry_error,
        ),
        msg(
            "Push it there (make push), and see that this machine reaches {registry}; one without TLS must "
            "stand in insecure-registries in /etc/docker/daemon.json.",
            registry=registry_of(image),
        ),
    )


def of_ways(report: NodeReport, addresses: Mapping[str, str], names: Mapping[str, str]) -> Iterator[Finding]:
    """Judge the way from a node to the others. `addresses`, `names`: of every node with a probe, by id."""
    others = {address: names[node] for node, address in addresses.items() if node != report.node}
    asked = {peer.address: peer for peer in report.peers}
    if len(asked) >= MOST_PEERS:  # the others were not asked
        others = {address: name for address, name in others.items() if address in asked}
    by_name = sorted(((name, asked.get(address)) for address, name in others.items()), key=itemgetter(0))
    found = [finding for name, peer in by_name if (finding := _way(name, peer)) is not None]
    yield from found
    if by_name and not found:
        nodes = ", ".join(name for name, _ in by_name)
        yield good(msg("The networks of jobs reach {nodes}, with large packets too.", nodes=nodes))


def of_clock(ahead: float) -> Finding | None:
    """Judge by how many seconds a node's clock is ahead; None: it is as it should be."""
    apart = abs(ahead)
    if apart < _APART_SECONDS:
        return None
    text = (
        msg("Its clock is {seconds} s ahead.", seconds=f"{apart:.0f}")
        if ahead > 0
        else msg("Its clock is {seconds} s behind.", seconds=f"{apart:.0f}")
    )
    advice = msg("Have it set by the network's time: {command}", command="timedatectl set-ntp true")
    return wrong(text, advice) if apart > _TOO_FAR_SECONDS else note(text, advice)


def _way(name: str, peer: PeerReport | None) -> Finding | None:
    if peer is None:
        return wrong(
            msg("It has not heard of {node}.", node=name),
            msg("Open {ports} between the two, in both directions.", ports="7946/tcp, 7946/udp"),
        )
    if not peer.reached:
        return wrong(
            msg("The networks of jobs do not reach {node}.", node=name),
            msg("Open {ports} between the two, in both directions.", ports="4789/udp"),
        )
    if not peer.bulk:
        return wrong(
            msg("Small packets reach {node}, large ones do not.", node=name),
            msg(
                "Somewhere between the two the MTU is smaller than the machines believe: set it on both "
                "network cards to what the way carries, and start Docker again."
            ),
        )
    return None


def _gpus(report: MachineReport) -> Iterator[Finding]:
    if report.gpus:
        kinds = ", ".join(f"{report.gpus.count(kind)} × {kind}" for kind in sorted(set(report.gpus)))
        yield good(msg("Containers see {gpus}.", gpus=kinds))
        if len(report.gpus) < report.gpus_on_bus:
            yield wrong(
                msg(
                    "{count} GPUs are plugged in, and {seen} are seen.",
                    count=report.gpus_on_bus,
                    seen=len(report.gpus),
                ),
                msg(
                    "The others have failed, or the driver does not know them: see {command}.",
                    command="dmesg | grep -i nvrm",
                ),
            )
    elif not report.gpus_on_bus and not report.gpu_driver:
        yield note(msg("There is no GPU of NVIDIA's in it."))
    elif not report.gpu_driver:
        yield wrong(
            msg("{count} GPUs are plugged in, but no driver is loaded.", count=report.gpus_on_bus),
            msg("Install NVIDIA's driver, and start the machine again."),
        )
    elif not report.gpu_runtime:
        yield wrong(
            msg(
                "There is a driver ({driver}), but Docker gives no GPUs to containers.",
                driver=report.gpu_driver,
            ),
            msg(
                "Install NVIDIA's container toolkit, then: {command}",
                command="nvidia-ctk runtime configure --runtime=docker && systemctl restart docker",
            ),
        )
    else:
        yield wrong(
            msg("Containers see no GPU: {error}", error=report.gpu_error or "NVML"),
            msg("See whether the driver works ({command}), and start Docker again.", command="nvidia-smi"),
        )


# Has every node of a Swarm looked at.


@dataclass(frozen=True, slots=True)
class Probed:
    """Results of the probes, by node ID: reports, reasons for missing reports, and each probe's address.

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
    program = NodeProgram(image, node_probe.__name__, environ, docker_socket, connected=True)

    def is_over(outcome: ProgramOutcome) -> bool:
        return len(_reports(outcome).keys() | outcome.failures.keys()) >= count

    outcome = run_everywhere(client, program, is_over, seconds=seconds)
    failures = {**outcome.unfinished, **outcome.failures}
    return Probed(_reports(outcome), failures, outcome.addresses, outcome.unread, outcome.said)


def _reports(outcome: ProgramOutcome) -> dict[str, NodeReport]:
    found = {}
    for lines in outcome.lines.values():
        for line in lines:
            with contextlib.suppress(msgspec.MsgspecError):
                report = msgspec.json.decode(line, type=NodeReport)
                found[report.node] = report
    return found


# Looks at the nodes of a Swarm: what each has, how they reach each other, whether their agents hear us.

_PROBE_SECONDS, _CONNECT_SECONDS = 90.0, 3.0


@dataclass(frozen=True, slots=True)
class Agents:
    """Connection settings of the scheduler's agents.

    `credentials` is the scheduler's PEM file, None where there is none; `image`: empty: that of the agents
    that are there.
    """

    image: str
    port: int
    data_dir: Path
    credentials: Path | None


def look_at_nodes(
    client: DockerClient, agents: Agents, only: str | None = None
) -> Iterator[tuple[str, Iterator[Finding]]]:
    """Return each node of the Swarm that `client` manages, or the one called `only`, with what was found.

    EngineError where none has that name; Docker's errors pass.
    """
    known = members(client)
    wanted = [each for each in known.values() if only in (None, each.name)]
    if not wanted:
        raise EngineError(msg("No node of the Swarm has the name {name}.", name=only))
    image, docker_socket = agents_plan(client, agents.image)
    active = sum(node.attrs["Spec"]["Availability"] == "active" for node in client.nodes.list())
    probed = Probed()
    if image:
        probed = probe_nodes(client, image, active, docker_socket, seconds=_PROBE_SECONDS)
    ended = why_agents_end(client)
    for member in sorted(wanted, key=lambda member: member.name):
        why = ended.get(member.id, "")
        yield f"{member.name} ({member.address})", _node(member, known, probed, image, agents, why)


def _node(
    member: SwarmMember,
    known: Mapping[str, SwarmMember],
    probed: Probed,
    image: str,
    agents: Agents,
    ended: str,
) -> Iterator[Finding]:
    if not member.ready:
        yield wrong(
            msg("The Swarm does not hear from it."),
            msg(
                "Start it, and Docker on it; open {ports} to the managers. If it is gone for good: {command}",
                ports="2377/tcp",
                command=f"docker node rm --force {member.name}",
            ),
        )
        return
    report = probed.reports.get(member.id)
    if report is not None:
        yield from of_machine(report.machine)
        yield of_registry(report.machine, image)
        names = {node: each.name for node, each in known.items()}
        yield from of_ways(report, probed.addresses, names)
        ahead = [peer.ahead for peer in report.peers if peer.reached]
        # (most clocks are right)
        clock = of_clock(-sorted(ahead)[len(ahead) // 2]) if ahead else None
        if clock is not None:
            yield clock
    elif not image:
        yield note(
            msg("Nothing was started on it to look closer."),
            msg("Name the agents' image: pai-scheduler --engine swarm --agent-image IMAGE doctor"),
        )
    elif member.id in probed.failures and member.id in probed.unread:
        yield wrong(
            msg("Docker does not give what was found on it: {error}", error=probed.unread),
            msg("Restart its Docker Engine: the Swarm no longer gets logs from a machine that was cut off."),
        )
    elif member.id in probed.said:
        yield wrong(
            msg("What was started on it to look closer has failed: {error}", error=probed.said[member.id]),
            msg("Put that right, and ask again."),
        )
    elif member.id in probed.failures:
        yield wrong(
            msg(
                "The image {image} does not start on it: {error}",
                image=image,
                error=probed.failures[member.id],
            ),
            msg("See that the machine reaches the registry, and has room on its disk."),
        )
    else:
        yield note(msg("It is paused or drained: nothing was started on it to look closer."))
    yield asyncio.run(_agent_answers(member, agents, ended))


async def _agent_answers(member: SwarmMember, agents: Agents, ended: str) -> Finding:
    """Judge whether the agent hears this scheduler. `ended`: why it does not run, in its own words."""
    port = agents.port
    if agents.credentials is None:
        return note(
            msg("No scheduler has had agents from the data folder {folder} yet.", folder=agents.data_dir),
            msg("Give the scheduler's own --data-dir before the word doctor."),
        )
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(member.address, port), _CONNECT_SECONDS)
        writer.close()
    except (OSError, TimeoutError) as error:
        if ended:
            return wrong(
                msg("Its agent does not run: {error}", error=ended),
                msg(
                    "Put that right: the Swarm starts it again by itself. All that it says: {command}",
                    command=f"docker service logs {SERVICE}",
                ),
            )
        why = member.why or str(error) or msg("no answer")
        return wrong(
            msg("No agent answers at port {port}: {error}", port=port, error=why),
            msg(
                "Open {ports} from this machine to it; see what the service says: {command}",
                ports=f"{port}/tcp",
                command=f"docker service ps --no-trunc {SERVICE}",
            ),
        )
    connection = AgentConnection(member.address, port, scheduler_tls(agents.credentials))
    await connection.open()
    try:
        await connection.call("nothing", None, object)
    except AgentUnreachableError as error:
        return wrong(
            msg("The agent does not know this scheduler: {error}", error=str(error)),
            msg(
                "It belongs to another data folder. Start the scheduler once with --agent-image, which "
                "replaces it."
            ),
        )
    except AgentRefusedError:
        pass  # as expected: there is no such call, but we were heard
    finally:
        await connection.close()
    return good(msg("Its agent hears this scheduler."))
