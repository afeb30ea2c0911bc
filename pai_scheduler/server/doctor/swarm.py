"""Looks at the nodes of a Swarm: what each has, how they reach each other, whether their agents hear us."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from docker import DockerClient

from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.engine.swarm.agent_deployment import SERVICE, agents_plan
from pai_scheduler.engine.swarm.connection import AgentConnection, AgentRefusedError, AgentUnreachableError
from pai_scheduler.engine.swarm.engine import Member, members, why_agents_end
from pai_scheduler.engine.swarm.tunnel import scheduler_tls
from pai_scheduler.i18n import msg

from . import judge
from .finding import Finding, good, note, wrong
from .swarm_probe import Probed, probe_nodes

_PROBE_SECONDS, _CONNECT_SECONDS = 90.0, 3.0


@dataclass(frozen=True, slots=True)
class Agents:
    """How the scheduler's agents are reached: `credentials` is the scheduler's PEM file, None where there is
    none; `image`: empty: that of the agents that are there."""

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
    member: Member, known: Mapping[str, Member], probed: Probed, image: str, agents: Agents, ended: str
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
        yield from judge.of_machine(report.machine)
        yield judge.of_registry(report.machine, image)
        names = {node: each.name for node, each in known.items()}
        yield from judge.of_ways(report, probed.addresses, names)
        ahead = [peer.ahead for peer in report.peers if peer.reached]
        # (most clocks are right)
        clock = judge.of_clock(-sorted(ahead)[len(ahead) // 2]) if ahead else None
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


async def _agent_answers(member: Member, agents: Agents, ended: str) -> Finding:
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
