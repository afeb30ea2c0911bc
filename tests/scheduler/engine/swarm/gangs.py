"""Gangs with a task on each machine of a Swarm."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.engine.protocol import Launch
from pai_scheduler.engine.swarm.engine import SwarmEngine
from pai_scheduler.engine.swarm.protocol import Open
from pai_scheduler.testing.lab import Lab, make_task

INSTANCE = "0123456789abcdef"
ASKED = Open(INSTANCE, LogKeeping())
OpenSwarm = Callable[..., Awaitable[SwarmEngine]]


async def launch_across(lab: Lab, *commands: str) -> list[Launch]:
    """Launch a gang with one task on each node."""
    first = make_task()
    nodes = [node.name for node in await lab.engine.nodes()]
    launches = await lab.prepare(
        *(
            lab.make(command, task=first._replace(index=number), node=nodes[number])
            for number, command in enumerate(commands)
        )
    )
    for launch in launches:
        await lab.engine.launch(launch)
    return launches
