"""`pai-scheduler node add`: the lines for another machine, and what becomes of it."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.engine.docker.client import DEFAULT_HOST
from pai_scheduler.engine.docker.sync_client import ERRORS, docker_client
from pai_scheduler.engine.swarm.engine import SwarmMember, join_command, members
from pai_scheduler.i18n import Message, msg

_LOOK_SECONDS = 1.0


def run(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Print the lines, wait for a machine that is not known yet; 1 where none came on which an agent runs.

    StartError, EngineError: why there are no such lines.
    """
    host = environ.get("DOCKER_HOST") or DEFAULT_HOST
    try:
        with docker_client(host) as client:
            line = join_command(client, host, manager=options.manager)
            known = members(client)
            _say(msg("On the new machine, as root:"))
            print("\n  docker version || apt-get install -y docker.io   # or Docker's own packages")
            print(f"  {line}\n")
            _say(
                msg(
                    "Open between the machines: {ports}. For GPUs it needs NVIDIA's driver and container "
                    "toolkit.",
                    ports="2377/tcp, 7946/tcp, 7946/udp, 4789/udp, 7947/tcp",
                )
            )
            if not options.wait:
                return 0
            _say(msg("Waiting for it; Ctrl-C ends only the waiting."))
            give_up = time.monotonic() + options.wait
            shown: set[str] = set()
            while time.monotonic() < give_up:
                new = [member for node, member in members(client).items() if node not in known]
                for member in new:
                    _show(_news(member), shown)
                if any(member.works for member in new):
                    return 0
                time.sleep(_LOOK_SECONDS)
    except ERRORS as error:
        raise StartError(
            msg("Docker refuses: {error}", error=getattr(error, "explanation", None) or error)
        ) from error
    except KeyboardInterrupt:
        return 0
    _say(
        msg(
            "No machine has come so far that tasks run on it. What keeps it: {command}",
            command="pai-scheduler doctor",
        )
    )
    return 1


def _news(member: SwarmMember) -> Message:
    if member.works:
        return msg(
            "{node} ({address}) has joined, and its agent runs. The scheduler lists it now: pai nodes.",
            node=member.name,
            address=member.address,
        )
    if member.why:
        return msg("The agent does not run on {node}: {error}", node=member.name, error=member.why)
    if not member.agent:
        return msg(
            "{node} ({address}) has joined. Its agent comes with the scheduler (--agent-image).",
            node=member.name,
            address=member.address,
        )
    return msg("{node} ({address}) has joined; its agent comes.", node=member.name, address=member.address)


def _show(message: Message, shown: set[str]) -> None:
    if str(message) not in shown:
        shown.add(str(message))
        _say(message)


def _say(message: Message) -> None:
    print(message, flush=True)
