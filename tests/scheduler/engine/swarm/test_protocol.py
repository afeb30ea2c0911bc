"""What a scheduler and an agent say to each other, also where one of them is of an older version."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.cluster.node import DiskSpace, Gpu, Node
from pai_scheduler.core.events import EndCause, Ended, Notice, Noticed, Progress, Started
from pai_scheduler.engine.protocol import EngineEvent, HeldAfterFailure, NodesChanged
from pai_scheduler.engine.swarm.protocol import (
    Heard,
    Open,
    Opened,
    decode,
    encode,
    event_document,
    read_event,
)
from pai_scheduler.i18n import counted, msg
from pai_scheduler.job.task import TaskRef

TASK = TaskRef("0123456789ab", 1, "worker", 2)
NODE = Node("node-a", 8, 16_000, 100, (Gpu(0, "P100", "GPU-0123"),))


@pytest.mark.parametrize(
    "event",
    [
        Started(TASK, 7, "10.201.0.2", "c0ffee"),
        HeldAfterFailure(TASK, 7, EndCause.OOM, 137),
        Ended(TASK, 7, EndCause.EXITED, 3),
        Ended(TASK, 7, EndCause.LAUNCH_FAILED, None, msg("No {image}.", image="debian")),
        Progress(TASK, 7, counted("{count} part", "{count} parts", count=2), 40),
        Noticed(TASK, 7, Notice.LOG_LOST, msg("Part of the log is lost."), {"bytes": 5}),
        NodesChanged(7, (NODE,)),
    ],
    ids=lambda event: type(event).__name__,
)
def test_an_event_arrives_as_it_was_sent(event: EngineEvent) -> None:
    heard = decode(encode(Heard(1, (event_document(event),), (), (), 1, 7)), Heard)
    assert read_event(heard.events[0]) == event


def test_a_sentence_is_put_into_words_where_it_is_read() -> None:
    ended = Ended(TASK, 7, EndCause.REFUSED, None, msg("The task does not run."))
    heard = decode(encode(Heard(1, (event_document(ended),), (), (), 1, 7)), Heard)
    read = read_event(heard.events[0])
    assert isinstance(read, Ended)
    assert read.reason is not None
    assert read.reason.in_locale("zh_CN") != read.reason.in_locale("en")


def test_what_a_session_begins_with_arrives_as_it_was_sent() -> None:
    asked = Open("0123456789abcdef", LogKeeping(), ("docker.io/**",), 3, (8000,), Path("/homes"), 1024)
    assert decode(encode(asked), Open) == asked
    opened = Opened("s", (NODE,), 7, DiskSpace(30, 40))
    assert decode(encode(opened), Opened) == opened


def test_an_agent_of_an_older_version_does_not_tell_the_room_on_its_disk() -> None:
    opened, heard = Opened("s", (NODE,), 7), Heard(1, (), (TASK,), (), 1, 7)
    for told in (opened, heard):
        fields = {field.name: getattr(told, field.name) for field in dataclasses.fields(told)}
        del fields["disk"]
        assert decode(encode(fields), type(told)) == told


def test_a_scheduler_of_an_older_version_leaves_out_what_it_does_not_know() -> None:
    @dataclass(frozen=True, slots=True)
    class Older:
        last: int
        answer: int

    assert decode(encode(Heard(1, (), (), (), 2, 7, DiskSpace(30, 40))), Older) == Older(1, 2)


def test_what_is_none_of_the_protocol_is_refused() -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode(b"\xc1", Heard)
    with pytest.raises(msgspec.MsgspecError):
        decode(encode({"last": 1}), Heard)
    with pytest.raises(TypeError, match="no part of the engine protocol"):
        encode(object())
