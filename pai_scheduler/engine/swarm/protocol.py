"""Protocol between the scheduler and a node's agent: the engine protocol's own types, as MessagePack.

A call is a POST to `/v1/<name>` whose body is what the call takes, and whose answer is what it gives. But for
`open`, each names in the header `SESSION` the session that it belongs to: a scheduler that was overtaken by
another one, or that speaks to an agent that was started anew, is refused with status 409.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pai_scheduler.cluster.definition import PUBLIC, LogKeeping
from pai_scheduler.cluster.node import DiskSpace, Node
from pai_scheduler.engine.logs.replication import Extent
from pai_scheduler.engine.protocol import (
    Ended,
    EngineEvent,
    HeldAfterFailure,
    NodesChanged,
    Noticed,
    Progress,
    Started,
)
from pai_scheduler.i18n import Message
from pai_scheduler.job.message_documents import message_document, read_message
from pai_scheduler.job.task import TaskRef

#: the header that names a call's session
SESSION = "Pai-Session"
#: the most seconds that an agent takes to answer where there is no news
POLL_SECONDS = 5.0
#: bytes of a log in one answer
LOG_BYTES = 2**22
#: bytes of a call: a launch has the job's own small files
MOST_BYTES = 2**26

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Open:
    """A scheduler begins a session; an older one of this agent ends with it.

    `instance`: the scheduler's mark on its containers. `registries`: the patterns of those that images may
    come from. `generation` grows with each scheduler that takes the lead: one that was overtaken without
    knowing it gets no session any more. `front_door_ports`: those of the scheduler's machine that containers
    reach by their node's bridge: the Hub and the storage, the SSH gateway; none: they reach them in another
    way. `homes`: as in `DockerSettings`. `least_free_mb`: what is to stay free on the node's disks; below it
    nothing new comes there.
    """

    instance: str
    logs: LogKeeping
    registries: tuple[str, ...] = (PUBLIC,)
    generation: int = 0
    front_door_ports: tuple[int, ...] = ()
    homes: Path | None = None
    least_free_mb: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """The new session, and the machine as it is. `time`: by its clock, when this was said.

    `disk`: the room on the disk of tasks; None: an older agent, which does not tell it. `takes_networks`: a
    launch may say which network its gang has; an older agent only knows those that have the gang's own name.
    """

    session: str
    nodes: tuple[Node, ...]
    time: int
    disk: DiskSpace | None = None
    takes_networks: bool = False


@dataclass(frozen=True, slots=True)
class Kill:
    """End a task."""

    task: TaskRef
    grace_seconds: float


@dataclass(frozen=True, slots=True)
class GangAddress:
    """A task's address within its gang."""

    task: TaskRef
    address: str


@dataclass(frozen=True, slots=True)
class Listen:
    """Wait for what happens after the event `after`; the agent keeps no earlier one any more.

    `answer`: the number of the last answer that came; of a later one all is told again.
    """

    after: int
    answer: int = 0


@dataclass(frozen=True, slots=True)
class Caller:
    """A connection of a container to one of the ports of the front door, which waits to be taken."""

    name: str
    port: int


@dataclass(frozen=True, slots=True)
class Heard:
    """Answer to a poll: `events` are documents (`read_event`), the last of which has the number `last`.

    `output`: tasks whose logs have grown since they were last asked for. `callers`: connections of containers
    that wait to be taken to the scheduler's machine. `answer`: the number of this answer. `time`: when it was
    given, by the clock of which the events' times are, too. `disk`: the room on the disk of tasks, where it
    differs noticeably (`DiskSpace.differs_noticeably`) from what was told last. No answer is given for it
    alone: it comes with the next one, `POLL_SECONDS` later at the latest.
    """

    last: int
    events: tuple[Any, ...]
    output: tuple[TaskRef, ...]
    callers: tuple[Caller, ...]
    answer: int
    time: int
    disk: DiskSpace | None = None


@dataclass(frozen=True, slots=True)
class LogWanted:
    """Ask for what a copy of a task's log lacks; it has `copied`."""

    task: TaskRef
    copied: tuple[Extent, ...]


@dataclass(frozen=True, slots=True)
class WayIn:
    """Address of a task's SSH server on its node."""

    port: int
    isolated: bool
    signals: str | None
    published: tuple[str, int] | None


_EVENTS: Mapping[str, type[EngineEvent]] = {
    kind.__name__: kind for kind in (Started, HeldAfterFailure, Ended, Progress, Noticed, NodesChanged)
}


def encode(value: object) -> bytes:
    """Return a value of the engine protocol as bytes."""
    return msgspec.msgpack.encode(value, enc_hook=_plain)


def decode(data: bytes, kind: Any) -> Any:
    """Return the value that bytes stand for; msgspec.MsgspecError where they are none of its kind."""
    return msgspec.msgpack.decode(data, type=kind, dec_hook=_special)


def event_document(event: EngineEvent) -> tuple[str, dict[str, Any]]:
    """Return an event with its sentences as documents, which outlive the way."""
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    for name, value in fields.items():
        if isinstance(value, Message):
            fields[name] = message_document(value)
    return type(event).__name__, fields


def read_event(document: tuple[str, dict[str, Any]]) -> EngineEvent:
    """Return the event of a document that `event_document` made."""
    kind, fields = document
    messages: dict[str, Any] = {
        name: read_message(fields[name]) for name in ("reason", "message") if fields.get(name) is not None
    }
    placeholders = {name: {"template": ""} for name in messages}
    event = msgspec.convert({**fields, **placeholders}, _EVENTS[kind])
    return dataclasses.replace(event, **messages)


def _plain(value: object) -> object:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no part of the engine protocol")


def _special(kind: type[Any], value: object) -> object:
    if kind is Path:
        return Path(str(value))
    raise TypeError(f"a {kind.__name__} is no part of the engine protocol")
