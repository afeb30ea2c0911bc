"""The nodes: administrators close one for new tasks, and open it again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from pai_scheduler.cluster.node import Closing, in_words
from pai_scheduler.core.events import NodesChanged
from pai_scheduler.i18n import msg
from pai_scheduler.job.validation import SpecError
from pai_scheduler.monitoring.meters import Meters
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import forbidden, invalid_parameters, no_node

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
