"""The cluster over REST: machines, virtual clusters, maintenance."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.validation import SpecError
from pai_scheduler.monitoring.cluster_usage import INTERVAL_SECONDS
from pai_scheduler.rest.cluster import (
    ClusterUsage,
    MaintenanceInfo,
    NodeInfo,
    NodeSwitch,
    VirtualClusterInfo,
    VirtualClusterShare,
    VirtualClusterSwitch,
    WantedMaintenance,
)
from pai_scheduler.rest.errors import RequestError, invalid_parameters, no_virtual_cluster
from pai_scheduler.rest.models import Count, Done
from pai_scheduler.service.virtual_clusters import WantedShare

from .base import ApiHandler, Route, routes
from .body import read_object, read_reason
from .operations import (
    FULL,
    NO_API,
    NO_MAINTENANCE,
    NO_NODE,
    NO_VIRTUAL_CLUSTER,
    Answer,
    Body,
    DocumentedRefusal,
    operation,
    query,
)
from .presenter import maintenance

# The cluster over REST: machines and virtual clusters, what is taken of them, and who gets how much.

_PER_CENT = re.compile(r"100(?:\.0{1,9})?|[0-9]{1,2}(?:\.[0-9]{1,9})?")
#: what setting one answers
_SET = {201: Answer("It is durable.", Done)}
_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,255}")


class NodesHandler(ApiHandler):
    """`/nodes`."""

    @operation(
        "GET /nodes",
        "nodes",
        "cluster",
        "List the machines, and what is taken of them",
        {200: Answer("The machines.", list[NodeInfo])},
    )
    async def get(self) -> None:
        """List."""
        shows_holder = partial(self.service.virtual_clusters.shows_holder, self.principal)
        nodes = [(use, self.service.disk(use.node.name)) for use in self.service.node_uses()]
        self.answer([self.presenter.node(use, disk, self.principal, shows_holder) for use, disk in nodes])


class NodeHandler(ApiHandler):
    """`/nodes/:node`."""

    @operation(
        "PUT /nodes/{node}",
        "setNode",
        "cluster",
        "Close a machine for new tasks, or open it",
        _SET,
        description="For administrators. What runs on a closed machine goes on, and nothing else starts "
        "there until it is opened. `GET /nodes` and the reasons of jobs that wait for it say who and why.",
        body=Body(NodeSwitch),
        refusals=[NO_NODE, FULL],
    )
    async def put(self, name: str) -> None:
        """Close or open it."""
        body = read_object(self.request)
        schedulable = body.get("schedulable")
        if not isinstance(schedulable, bool):
            raise _wrong("$.schedulable", msg("schedulable must be true or false."))
        reason = read_reason(body.get("reason", ""))
        if schedulable:
            await self.service.nodes.open(self.principal, name)
        elif reason:
            await self.service.nodes.close(self.principal, name, reason)
        else:
            raise _wrong("$.reason", msg("Say why the node is closed: those whose jobs wait read it."))
        self.answer({"message": f"{'open' if schedulable else 'close'} node {name} successfully"}, 201)


class ClusterUsageHandler(ApiHandler):
    """`/cluster/usage`."""

    @operation(
        "GET /cluster/usage",
        "clusterUsage",
        "cluster",
        "How many GPUs were taken over the last day",
        {200: Answer("A sample a minute.", ClusterUsage)},
        parameters=[query("after", Count, "Only samples later than this (ms since the epoch)", 0)],
    )
    async def get(self) -> None:
        """Show; `after` leaves out what was asked for before."""
        after = self.query_int("after", 0, least=0)
        self.answer({"interval": INTERVAL_SECONDS, "gpus": self.service.cluster_usage.last_day(after or 0)})


class VirtualClustersHandler(ApiHandler):
    """`/virtual-clusters`."""

    public_in_openpai = True

    @operation(
        "GET /virtual-clusters",
        "virtualClusters",
        "cluster",
        "List the virtual clusters by name",
        {200: Answer("The virtual clusters.", dict[str, VirtualClusterInfo])},
    )
    async def get(self) -> None:
        """List, by name."""
        uses = await self.service.virtual_clusters.uses()
        lately = self.service.virtual_clusters.used_lately(self.principal)
        self.answer({use.name: self.presenter.virtual_cluster(use, lately.get(use.name)) for use in uses})


class VirtualClusterHandler(ApiHandler):
    """`/virtual-clusters/:vc`."""

    public_in_openpai = True

    @operation(
        "GET /virtual-clusters/{virtualCluster}",
        "virtualCluster",
        "cluster",
        "A virtual cluster",
        {200: Answer("The virtual cluster.", VirtualClusterInfo)},
        refusals=[NO_VIRTUAL_CLUSTER],
    )
    async def get(self, name: str) -> None:
        """Show."""
        uses = {use.name: use for use in await self.service.virtual_clusters.uses()}
        if name not in uses:
            raise no_virtual_cluster(name, sorted(uses))
        lately = self.service.virtual_clusters.used_lately(self.principal)
        self.answer(self.presenter.virtual_cluster(uses[name], lately.get(name)))

    @operation(
        "PUT /virtual-clusters/{virtualCluster}",
        "setVirtualCluster",
        "cluster",
        "Make or change a virtual cluster",
        _SET,
        description="For administrators. What a cluster needs more comes out of what no cluster has, then of "
        "`default`; what it needs less goes to `default`, which itself cannot be set. What is not said stays "
        "as it is; a new cluster may use all of the machines and is open to everybody.",
        body=Body(VirtualClusterShare),
        refusals=[
            DocumentedRefusal(
                403,
                ["ForbiddenUserError", "NoEnoughQuotaError"],
                "The caller is no administrator, it is `default`, or there is not enough quota.",
            ),
            NO_API,
            DocumentedRefusal(
                409, ["ConflictVcError"], "A cluster has this name in other letters (`Vision`, `vision`)."
            ),
        ],
    )
    async def put(self, name: str) -> None:
        """Make or change it."""
        body = read_object(self.request)
        if not _NAME.fullmatch(name):
            message = msg(
                "A virtual cluster may be called by letters, digits and . _ ~ - (255 at most), not {name}.",
                name=name,
            )
            raise _wrong("virtualCluster", message)
        wanted = WantedShare(
            _per_cent(body, "vcCapacity"),
            _per_cent(body, "vcMaxCapacity") if body.get("vcMaxCapacity") not in (None, "") else None,
            _names(body, "users"),
            _names(body, "groups"),
        )
        if wanted.max_capacity is not None and wanted.max_capacity < wanted.capacity:
            raise _wrong("$.vcMaxCapacity", msg("vcMaxCapacity must not be below vcCapacity."))
        new = await self.service.virtual_clusters.set(self.principal, name, wanted)
        done = "create" if new else "update"
        self.answer({"message": f"{done} vc: {name} to capacity: {wanted.capacity:g} successfully"}, 201)

    @operation(
        "DELETE /virtual-clusters/{virtualCluster}",
        "deleteVirtualCluster",
        "cluster",
        "Delete a virtual cluster",
        _SET,
        description="For administrators. Its share goes to `default`.",
        refusals=[
            DocumentedRefusal(
                403,
                ["ForbiddenUserError", "RemoveRunningVcError"],
                "The caller is no administrator, it is `default`, or some of its jobs have not ended.",
            ),
            NO_VIRTUAL_CLUSTER,
            FULL,
        ],
    )
    async def delete(self, name: str) -> None:
        """Delete it."""
        await self.service.virtual_clusters.delete(self.principal, name)
        self.answer({"message": f"Remove vc: {name} successfully"}, 201)


class VirtualClusterStatusHandler(ApiHandler):
    """`/virtual-clusters/:vc/status`."""

    @operation(
        "PUT /virtual-clusters/{virtualCluster}/status",
        "setVirtualClusterStatus",
        "cluster",
        "Stop or start a virtual cluster",
        _SET,
        description="For administrators. In a stopped one what runs goes on, what waits waits, and "
        "submissions are refused. `default` cannot be stopped.",
        body=Body(VirtualClusterSwitch),
        refusals=[NO_VIRTUAL_CLUSTER],
    )
    async def put(self, name: str) -> None:
        """Stop or start it."""
        status = read_object(self.request).get("vcStatus")
        if status not in ("running", "stopped"):
            raise _wrong("$.vcStatus", msg("vcStatus must be running or stopped."))
        await self.service.virtual_clusters.set_stopped(self.principal, name, status == "stopped")
        done = "stop" if status == "stopped" else "active"
        self.answer({"message": f"{done} vc {name} successfully"}, 201)


def _per_cent(body: Mapping[str, Any], key: str) -> float:
    """Read a number, or what is one as text: forms have nothing else."""
    value = body.get(key)
    if isinstance(value, str) and _PER_CENT.fullmatch(value):
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100:
        return abs(float(value))  # -0.0 is 0
    raise _wrong(f"$.{key}", msg("{key} must be a per cent, from 0 to 100.", key=key))


def _names(body: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    value = body.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise _wrong(f"$.{key}", msg("{key} must be a list of names.", key=key))
    return tuple(value)


def _wrong(path: str, message: Message) -> RequestError:
    return invalid_parameters(message, [SpecError(path, message)])


# Maintenance over REST: when machines are down, as administrators have planned.

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


ROUTES: list[Route] = routes(
    NodesHandler,
    NodeHandler,
    ClusterUsageHandler,
    VirtualClustersHandler,
    VirtualClusterHandler,
    VirtualClusterStatusHandler,
    MaintenanceHandler,
    OneMaintenanceHandler,
)
