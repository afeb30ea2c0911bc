"""The nodes: administrators close one for new tasks, open it again, and plan maintenance."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from pai_scheduler.cluster.node import Closing, Maintenance, in_words
from pai_scheduler.core.events import NodesChanged
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.validation import SpecError
from pai_scheduler.monitoring.meters import Meters
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError, forbidden, invalid_parameters, no_maintenance, no_node

from .context import ServiceContext

_log = logging.getLogger(__name__)


class Nodes:
    """Closes and opens nodes, durably before the answer; what runs on one goes on."""

    def __init__(self, context: ServiceContext, meters: Meters) -> None:
        self._store, self._writer, self._cluster = context.store, context.writer, context.cluster
        self._now, self._meters = context.clock, meters
        self._one_at_a_time = asyncio.Lock()

    async def close(self, principal: Principal, name: str, reason: str) -> None:
        """Let nothing new start on a node; one that is closed stays so, for this reason."""
        _check_admin(principal)
        async with self._one_at_a_time:
            known = [node.name for node in self._cluster.nodes]
            if name not in known:
                raise no_node(name, sorted(known))
            closing = Closing(principal.name, reason, self._now())
            await self._writer.keep(self._store.close_node, name, closing)
            _log.info("a node was closed", extra={"node": name, "by": principal.name, "reason": reason})
            await self._take({**self._cluster.closings, name: closing})

    async def open(self, principal: Principal, name: str) -> None:
        """Let tasks start on a node again; no change where it is open."""
        _check_admin(principal)
        async with self._one_at_a_time:
            known = {node.name for node in self._cluster.nodes}.union(self._cluster.closings)
            if name not in known:
                raise no_node(name, sorted(known))
            if name not in self._cluster.closings:
                self._check_no_maintenance(name)
                return
            await self._writer.keep(self._store.open_node, name)
            _log.info("a node was opened", extra={"node": name, "by": principal.name})
            others = {node: why for node, why in self._cluster.closings.items() if node != name}
            await self._take(others)

    def _check_no_maintenance(self, name: str) -> None:
        node = next((node for node in self._cluster.nodes if node.name == name), None)
        if node is not None and node.closing is not None:
            text = msg(
                "Node {name} is in maintenance {window} until {end}: delete that to open it.",
                name=name,
                window=node.maintenance[0].name,
                end=in_words(node.maintenance[0].end),
            )
            raise invalid_parameters(text, [SpecError("$.schedulable", text)])

    async def _take(self, closings: Mapping[str, Closing]) -> None:
        self._cluster.set_closings(closings)
        self._meters.note_nodes(self._cluster.nodes)
        # waited for, so that nothing is placed by the old state once the caller has the answer
        await self._writer.request(NodesChanged(self._now(), self._cluster.nodes))


def _check_admin(principal: Principal) -> None:
    if not principal.admin:
        raise forbidden(msg("Only an administrator may close and open nodes."))


# Maintenance: administrators plan when machines are down; they are closed and opened in time.


#: Seconds between two looks at most: the clock may be set.
_LOOK_EVERY = 20.0
_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,255}")


class MaintenancePlan:
    """Keeps what is planned, durably before the answer, and carries it out from `start` to `close`."""

    def __init__(self, context: ServiceContext, meters: Meters) -> None:
        self._store, self._writer, self._cluster = context.store, context.writer, context.cluster
        self._now, self._meters = context.clock, meters
        self._one_at_a_time = asyncio.Lock()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Close and open nodes in time from now on."""
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Stop that."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def list(self) -> Sequence[Maintenance]:
        """List what is planned or under way, the first to begin first."""
        now = self._now()
        return [one for one in self._cluster.maintenance if one.end > now]

    async def put(
        self, principal: Principal, name: str, nodes: Sequence[str], begin: int, end: int, reason: str
    ) -> None:
        """Plan maintenance, or change what is planned by this name."""
        _check_planner(principal)
        if not _NAME.fullmatch(name):
            text = msg(
                "Maintenance may be called by letters, digits and . _ ~ - (255 at most), not {name}.",
                name=name,
            )
            raise _wrong("maintenance", text)
        if end <= begin:
            raise _wrong("$.end", msg("Maintenance must end after it begins."))
        if end <= self._now():
            raise _wrong("$.end", msg("Maintenance must end in the future."))
        window = Maintenance(name, tuple(nodes), begin, end, reason, principal.name)
        known = sorted(node.name for node in self._cluster.nodes)
        for pattern in nodes:
            if not any(Maintenance("", (pattern,), 0, 0, "", "").covers(node) for node in known):
                raise no_node(pattern, known)
        async with self._one_at_a_time:
            await self._writer.keep(self._store.put_maintenance, window)
            _log.info(
                "maintenance was planned",
                extra={
                    "maintenance": name,
                    "by": principal.name,
                    "reason": reason,
                    "begin": begin,
                    "end": end,
                },
            )
            await self._take([*self._others(name), window])

    async def delete(self, principal: Principal, name: str) -> None:
        """Forget maintenance; where it is under way its nodes are open again."""
        _check_planner(principal)
        async with self._one_at_a_time:
            if not any(one.name == name for one in self.list()):
                raise no_maintenance(name, [one.name for one in self.list()])
            await self._writer.keep(self._store.remove_maintenance, name)
            _log.info("maintenance was deleted", extra={"maintenance": name, "by": principal.name})
            await self._take(self._others(name))

    def _others(self, name: str) -> Sequence[Maintenance]:
        return [one for one in self._cluster.maintenance if one.name != name]

    async def _take(self, planned: Sequence[Maintenance]) -> None:
        self._cluster.set_maintenance(planned)
        self._meters.note_nodes(self._cluster.nodes)
        self._changed.set()
        # waited for, so that nothing is placed by the old state once the caller has the answer
        await self._writer.request(NodesChanged(self._now(), self._cluster.nodes))

    async def _keep(self) -> None:
        while True:
            self._changed.clear()
            if self._cluster.look_at_clock():
                self._meters.note_nodes(self._cluster.nodes)
                self._writer.report(NodesChanged(self._now(), self._cluster.nodes))
            try:
                await self._forget_what_is_over()
            except RequestError as error:
                _log.warning("maintenance that is over cannot be forgotten: %s", error.message)
            now = self._now()
            times = [time for one in self._cluster.maintenance for time in (one.begin, one.end) if time > now]
            seconds = min(((time - now) / 1000 for time in times), default=_LOOK_EVERY)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), min(seconds, _LOOK_EVERY))

    async def _forget_what_is_over(self) -> None:
        async with self._one_at_a_time:
            now = self._now()
            for one in self._cluster.maintenance:
                if one.end <= now:
                    await self._writer.keep(self._store.remove_maintenance, one.name)
                    self._cluster.set_maintenance(self._others(one.name))


def _check_planner(principal: Principal) -> None:
    if not principal.admin:
        raise forbidden(msg("Only an administrator may plan maintenance."))


def _wrong(place: str, message: Message) -> RequestError:
    return invalid_parameters(message, [SpecError(place, message)])
