"""Maintenance over REST: when machines are down, as administrators have planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.validation import SpecError
from pai_scheduler.rest.cluster import MaintenanceInfo, WantedMaintenance
from pai_scheduler.rest.errors import RequestError, invalid_parameters
from pai_scheduler.rest.models import Done

from .base_handlers import ApiHandler, Route, routes
from .body import read_object, read_reason
from .operations import FULL, NO_MAINTENANCE, NO_NODE, Answer, Body, operation
from .present import maintenance

_DONE = {201: Answer("It is durable.", Done)}
#: Names and patterns of machines in one plan at most.
_MOST_NODES = 1000
#: Later than every time that somebody means (ms since the epoch): the year 9999.
_LATEST = 253_370_764_800_000


class MaintenanceHandler(ApiHandler):
    """`/maintenance`."""

    @operation(
        "GET /maintenance",
        "maintenance",
        "cluster",
        "List when machines are down, as administrators have planned",
        {200: Answer("What is planned or under way, the first to begin first.", list[MaintenanceInfo])},
    )
    async def get(self) -> None:
        """List."""
        self.answer(list(map(maintenance, self.service.maintenance.list())))


class OneMaintenanceHandler(ApiHandler):
    """`/maintenance/:maintenance`."""

    @operation(
        "PUT /maintenance/{maintenance}",
        "setMaintenance",
        "cluster",
        "Plan when machines are down, or change it",
        _DONE,
        description="For administrators. Before it begins only such jobs start on these machines as end "
        "before by their time limit. From its beginning to its end the machines are closed: nothing starts "
        "there, and what still runs goes on. Then they are open again.",
        body=Body(WantedMaintenance),
        refusals=[NO_NODE, FULL],
    )
    async def put(self, name: str) -> None:
        """Plan it."""
        body = read_object(self.request)
        nodes = body.get("nodes")
        if (
            not isinstance(nodes, list)
            or not 1 <= len(nodes) <= _MOST_NODES
            or not all(isinstance(node, str) and node for node in nodes)
        ):
            raise _wrong("$.nodes", msg("nodes must be a list of names of machines."))
        reason = read_reason(body.get("reason", ""))
        if not reason:
            raise _wrong("$.reason", msg("Say why: those whose jobs wait read it."))
        begin, end = _time(body, "begin"), _time(body, "end")
        await self.service.maintenance.put(self.principal, name, nodes, begin, end, reason)
        self.answer({"message": f"plan maintenance {name} successfully"}, 201)

    @operation(
        "DELETE /maintenance/{maintenance}",
        "deleteMaintenance",
        "cluster",
        "Forget maintenance; where it is under way its machines are open again",
        _DONE,
        description="For administrators.",
        refusals=[NO_MAINTENANCE, FULL],
    )
    async def delete(self, name: str) -> None:
        """Delete it."""
        await self.service.maintenance.delete(self.principal, name)
        self.answer({"message": f"delete maintenance {name} successfully"}, 201)


def _time(body: Mapping[str, Any], key: str) -> int:
    value = body.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LATEST:
        return value
    raise _wrong(f"$.{key}", msg("{key} must be a time, in ms since the epoch.", key=key))


def _wrong(path: str, message: Message) -> RequestError:
    return invalid_parameters(message, [SpecError(path, message)])


ROUTES: list[Route] = routes(MaintenanceHandler, OneMaintenanceHandler)
