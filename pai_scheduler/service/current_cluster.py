"""The cluster as it is now: its file, over it what administrators changed, and the engine's nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from pai_scheduler.cluster.definition import Definition, VirtualCluster, merge_nodes
from pai_scheduler.cluster.node import Closing, Maintenance, Node, NodeState
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.quota import overlay
from pai_scheduler.core.events import SharesChanged
from pai_scheduler.core.runtime_prediction import Durations
from pai_scheduler.core.state_machine import Core, CoreSettings
from pai_scheduler.engine.protocol import Engine

from .writer import Committed


class CurrentCluster:
    """Cluster state for scheduling and admission; `EngineEvents` and the commits keep it up to date.

    `first_port` is where the choice of ports begins on nodes that several schedulers share; `clock` gives ms
    since the epoch.
    """

    def __init__(
        self,
        definition: Definition,
        engine: Engine,
        first_port: int,
        clock: Callable[[], int],
    ) -> None:
        self.definition = definition
        self.nodes: tuple[Node, ...] = ()
        #: the virtual cluster that is about to be gone: it takes no more jobs
        self.leaving: str | None = None
        #: outlives the core, which is made again where the database refuses
        self._durations = Durations()
        self._engine = engine
        self._found: Sequence[Node] = ()
        self._closings: Mapping[str, Closing] = {}
        self._maintenance: Sequence[Maintenance] = ()
        self._first_port, self._now = first_port, clock
        self._settings = CoreSettings(
            grace_seconds=definition.grace_seconds,
            max_grace_seconds=definition.max_grace_seconds,
            default_storage_gb=definition.default_storage_gb,
            storage_request_gb=definition.storage_request_gb,
            overtake_limit=definition.overtake_limit,
            debug_hold_seconds=definition.debug_hold_seconds,
            maintenance_notice_seconds=definition.maintenance_notice_seconds,
        )

    @property
    def virtual_clusters(self) -> Mapping[str, VirtualCluster]:
        """Return the virtual clusters by name."""
        return self.definition.virtual_clusters

    def committed(self, committed: Committed) -> None:
        """Take in what administrators changed of virtual clusters."""
        for event in committed.events:
            if isinstance(event, SharesChanged):
                self.set_virtual_clusters(event.virtual_clusters)

    def set_virtual_clusters(self, clusters: Iterable[VirtualCluster]) -> None:
        """Take the virtual clusters as they are now."""
        by_name = {cluster.name: cluster for cluster in clusters}
        self.definition = replace(self.definition, virtual_clusters=by_name)

    def restore(self, changes: Mapping[str, VirtualCluster | None]) -> None:
        """Take what administrators changed; DefinitionError where it is impossible together with the file."""
        self.set_virtual_clusters(overlay(self.definition.virtual_clusters, changes).values())

    def set_nodes(self, nodes: Sequence[Node]) -> None:
        """Take the nodes that the engine has now."""
        self._found = nodes
        merged = merge_nodes(self.definition, nodes, one_machine=self._engine.one_machine)
        now = self._now()
        self.nodes = tuple(self._as_planned(node, now) for node in merged)

    def unknown_gpu_links(self) -> Iterator[tuple[str, list[int]]]:
        """Return what the cluster file links of GPUs that a machine does not have, by its name."""
        for node in self.nodes:
            here = {gpu.index for gpu in node.gpus}
            missing = [index for group in node.gpu_links for index in group if index not in here]
            if missing and node.state is not NodeState.LOST:
                yield node.name, missing

    def _as_planned(self, node: Node, now: int) -> Node:
        """Return a node with what administrators say of it."""
        closing = self._closings.get(node.name)
        planned = tuple(one for one in self._maintenance if one.end > now and one.covers(node.name))
        if closing is None and planned and planned[0].begin <= now:
            closing = Closing(planned[0].by, planned[0].reason, planned[0].begin, planned[0].end)
        return replace(node, closing=closing, maintenance=planned)

    def look_at_clock(self) -> bool:
        """Take the nodes as they are by now, as maintenance begins and ends; tell whether any has changed."""
        before = self.nodes
        self.set_nodes(self._found)
        return self.nodes != before

    @property
    def maintenance(self) -> Sequence[Maintenance]:
        """Return what is planned, the first to begin first; some may be over."""
        return self._maintenance

    def set_maintenance(self, planned: Iterable[Maintenance]) -> None:
        """Take what maintenance is planned."""
        self._maintenance = sorted(planned, key=lambda one: (one.begin, one.name))
        self.set_nodes(self._found)

    @property
    def closings(self) -> Mapping[str, Closing]:
        """Return why nodes are closed, by name; some may be none of the cluster's now."""
        return self._closings

    def set_closings(self, closings: Mapping[str, Closing]) -> None:
        """Take which nodes are closed for new tasks."""
        self._closings = dict(closings)
        self.set_nodes(self._found)

    def make_core(self) -> Core:
        """Make a core that has no jobs yet."""
        shares = self._engine.shares_host_ports
        cluster = Cluster(self.nodes, shares_host_ports=shares, first_port=self._first_port)
        return Core(cluster, self._settings, self.definition.virtual_clusters.values(), self._durations)
