"""The JSON of the Hub's service `pai-sessions` as types: it writes them, JupyterLab reads them."""

from __future__ import annotations

from typing import Annotated, Literal, TypedDict

from .models import Count, Time, TimeOrNone, about


class SessionMessage(TypedDict):
    """What an administrator told the user of a session."""

    id: Annotated[int, about("Increasing", ge=1)]
    time: Time
    sender: str
    text: str


class SessionInfo(TypedDict):
    """A running notebook server, and what becomes of it."""

    user: str
    server: Annotated[str, about("Name of the server; empty: the default one")]
    job: Annotated[str, about("Its job; empty where that is not known")]
    gpus: Count
    now: Annotated[int, about("What time it is for the service, in ms since the epoch")]
    startedTime: Time
    warned: Annotated[bool, about("Whether it is to end soon")]
    cause: Annotated[
        Literal["idle", "lifetime", "hours", "limit"] | None, about("What would end it first; null: nothing")
    ]
    endTime: Annotated[TimeOrNone, about("When it ends if nothing changes; null: not by itself")]
    idleSince: Annotated[TimeOrNone, about("When it was used last; null: not known")]
    why: Annotated[str, about("Why it is to end, in a sentence; empty where it is not warned")]
    mayKeep: Annotated[bool, about("Whether its user can put the end off")]
    extensionsLeft: Annotated[Count, about("How often its life may still be prolonged")]
    messages: list[SessionMessage]


class SessionUse(TypedDict):
    """What a session used last; null: not known."""

    cpuPercent: Annotated[float | None, about("Per cent of one core")]
    memoryMB: float | None
    gpuPercent: Annotated[float | None, about("Per cent of its GPUs")]
    gpuMemoryMB: float | None


class SessionRow(SessionInfo):
    """A session as administrators see it."""

    use: SessionUse
