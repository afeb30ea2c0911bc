"""`pai-scheduler node pull`: brings an image to the nodes of a Swarm before a job asks for it."""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Mapping, Sequence

import docker.auth
import msgspec
from docker import DockerClient

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.engine.agent import pull
from pai_scheduler.engine.agent.pull import PullProgress
from pai_scheduler.engine.docker.client import DEFAULT_HOST
from pai_scheduler.engine.docker.registries import qualified
from pai_scheduler.engine.docker.sync_client import ERRORS, docker_client
from pai_scheduler.engine.swarm.agent_deployment import (
    SECRET,
    NodeProgram,
    ProgramOutcome,
    agents_plan,
    run_everywhere,
)
from pai_scheduler.engine.swarm.engine import check_manager
from pai_scheduler.i18n import Message, msg

_MB = 10**6
#: What stands for the image's id where a node has it and only its exit code tells.
_UNKNOWN = "unknown"


def run(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Pull on every node, or on one; 1 where one does not get the image. StartError, EngineError."""
    host = environ.get("DOCKER_HOST") or DEFAULT_HOST
    try:
        with docker_client(host) as client:
            check_manager(host, client.info())
            return _pull(client, options)
    except ERRORS as error:
        reason = getattr(error, "explanation", None) or error
        raise StartError(msg("Docker refuses: {error}", error=reason)) from error


def _pull(client: DockerClient, options: argparse.Namespace) -> int:
    agent_image, docker_socket = agents_plan(client, options.agent_image or "")
    if not agent_image:
        raise StartError(
            msg("No agent is in the Swarm yet. Name its image: pai-scheduler --agent-image IMAGE node pull …")
        )
    names = _active(client, options.node)
    image = qualified(options.image)
    login = docker.auth.load_config().resolve_authconfig(image.partition("/")[0])
    environ = {pull.IMAGE: image} | ({pull.LOGIN_FILE: str(SECRET)} if login else {})
    secret = msgspec.json.encode(dict(login)) if login else b""
    only = next(iter(names)) if options.node else ""
    shown: dict[str, str] = {}

    def is_over(outcome: ProgramOutcome) -> bool:
        ends = _last(outcome)
        for node, name in names.items():
            if node in ends and shown.get(node) != (text := str(_sentence(name, ends[node]))):
                shown[node] = text
                print(text, flush=True)
        return all(node in outcome.failures or _is_end(ends.get(node)) for node in names)

    program = NodeProgram(agent_image, pull.__name__, environ, docker_socket, node=only, secret=secret)
    outcome = run_everywhere(client, program, is_over, seconds=options.wait)
    ends = _last(outcome)
    lacking = [node for node in names if node not in ends or not ends[node].image]
    for node in lacking:
        if _is_end(ends.get(node)):
            continue  # said already
        failure = outcome.failures.get(node)
        print(
            _sentence(names[node], PullProgress(error=failure))
            if failure
            else _too_slow(names[node], options)
        )
    if lacking and outcome.unread:
        print(msg("Docker does not give all that was printed: {error}", error=outcome.unread))
    if len({end.image for end in ends.values() if end.image} - {_UNKNOWN}) > 1:
        print(msg("The nodes have different images of this name: the tag has moved meanwhile. Pull again."))
        return 1
    return int(bool(lacking))


def _too_slow(node: str, options: argparse.Namespace) -> Message:
    """Say that a node had not got the image when the time was over, which is no failure of the image."""
    return msg(
        "{node} has not got it yet: it took longer than {seconds} s. The layers that have come stay there; "
        "go on with: {command}",
        node=node,
        seconds=f"{options.wait:g}",
        command=shlex.join(
            [
                *("pai-scheduler", "node", "pull", options.image),
                *("--node", node, "--wait", f"{options.wait * 2:g}"),
            ]
        ),
    )


def _active(client: DockerClient, only: str | None) -> dict[str, str]:
    """Return the names of the nodes that may get something new, by id; StartError where `only` is none."""
    names = {
        str(node.id): str(node.attrs["Description"]["Hostname"])
        for node in client.nodes.list()
        if node.attrs["Spec"]["Availability"] == "active" and node.attrs["Status"]["State"] == "ready"
    }
    chosen = {node: name for node, name in names.items() if only in (None, name)}
    if not chosen:
        raise StartError(msg("No node of the Swarm that is ready has the name {name}.", name=only))
    return chosen


def _last(outcome: ProgramOutcome) -> dict[str, PullProgress]:
    """Return the last that each node has said, or what its exit code says."""
    found = {node: PullProgress(image=_UNKNOWN) for node in outcome.completed}
    for node, lines in outcome.lines.items():
        if (progress := _read(lines)) is not None and (node not in found or progress.image):
            found[node] = progress
    return found


def _read(lines: Sequence[str]) -> PullProgress | None:
    for line in reversed(lines):
        with contextlib.suppress(msgspec.MsgspecError):
            return msgspec.json.decode(line, type=PullProgress)
    return None


def _is_end(progress: PullProgress | None) -> bool:
    return progress is not None and bool(progress.image or progress.error)


def _sentence(node: str, progress: PullProgress) -> Message:
    if progress.error:
        return msg("{node} does not get it: {error}", node=node, error=progress.error)
    if progress.image:
        return msg("{node} has it.", node=node)
    return msg(
        "{node}: {done} of {total} MB", node=node, done=progress.done // _MB, total=progress.total // _MB
    )
