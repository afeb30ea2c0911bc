"""ClusterView: what the cluster has, what of it is used, and what is free."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from html import escape
from typing import TypeAlias

import ipywidgets as widgets

from pai_scheduler.client.cli.show import nodes_table
from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.rest.cluster import NodeInfo, VirtualClusterInfo

from .cluster_rules import maintenance, rules
from .cluster_watch import GAP, watch_cluster
from .free import free_amount, gpu_counts
from .language import Language
from .look import notice, show
from .top import TopWidget

#: The virtual clusters and the machines, as the REST API has them.
_Seen: TypeAlias = tuple[dict[str, VirtualClusterInfo], list[NodeInfo]]


class ClusterView(TopWidget):
    """Shows GPUs, CPUs and memory of the cluster, its machines and its virtual clusters, as they change.

    `client`, `locale`: as of JobMonitor.
    Needs a running asyncio loop, as every notebook has (`NoEventLoopError`).
    """

    def __init__(self, client: Client | None = None, locale: str | None = None, *, gap: float = GAP) -> None:
        super().__init__(client, locale)
        self._seen: _Seen | None = None
        self.trouble = widgets.HTML()
        self.totals = widgets.HTML(notice(self.say("Looking at the cluster …")))
        self.maintenance = widgets.HTML()
        self.machines = widgets.HTML()
        self.shares = widgets.HTML()
        show(self.trouble, False)
        self._fill([self.trouble, self.outcome, self.totals, self.maintenance, self.machines, self.shares])
        self._background.spawn(
            watch_cluster(self.client, self._look, self._show_trouble, gap), "pai-cluster-view"
        )

    @property
    def nodes(self) -> list[NodeInfo]:
        """Return the machines that are shown, as the REST API has them.

        Raises ApiError, UnreachableError where they are not known yet and cannot be asked for.
        """
        return self._known()[1]

    @property
    def virtual_clusters(self) -> dict[str, VirtualClusterInfo]:
        """Return the virtual clusters that are shown, by name; form and errors as of `nodes`."""
        return self._known()[0]

    @property
    def free(self) -> dict[str, int]:
        """Return what nobody has: "cpus", "memoryMB", and each type of GPU by its name."""
        return {
            "cpus": free_amount(self.nodes, "cpus")[0],
            "memoryMB": free_amount(self.nodes, "memoryMB")[0],
            **{count.type: count.free for count in gpu_counts(self.nodes)},
        }

    def __repr__(self) -> str:
        return f"ClusterView(free={self.free!r})" if self._seen else "ClusterView()"

    def as_text(self) -> str:
        """Return the machines as `pai nodes` prints them."""
        try:
            return nodes_table(self.nodes, self.say.locale)
        except (ApiError, UnreachableError) as error:
            return str(error)

    def _known(self) -> _Seen:
        if self._seen is None:
            self._take(seen := self._ask_now(_ask))
            return seen
        return self._seen

    async def _look(self) -> None:
        self._take(await _ask(self.client))

    def _take(self, seen: _Seen) -> None:
        self._seen = seen
        clusters, nodes = seen
        self.totals.value = totals(self.say, nodes)
        self.maintenance.value = maintenance(self.say, nodes)
        self.machines.value = machines(self.say, nodes)
        self.shares.value = shares(self.say, clusters)

    def _show_trouble(self, sentence: str | None) -> None:
        self.trouble.value = notice(sentence, "warning") if sentence else ""
        show(self.trouble, bool(sentence))


async def _ask(client: Client) -> _Seen:
    return await asyncio.gather(client.virtual_clusters(), client.nodes())


def totals(say: Language, nodes: Sequence[NodeInfo]) -> str:
    """Show a bar for each thing that jobs ask for: as long as what is used of it."""
    rows = []
    for count in gpu_counts(nodes):
        name = say("{type} (simulated)", type=count.type) if count.simulated else count.type
        rows.append((name, count.total - count.free, count.total, say_free(say, count.free, count.total)))
    for name, resource in ((say("CPUs"), "cpus"), (say("Memory"), "memoryMB")):
        free, total = free_amount(nodes, "cpus" if resource == "cpus" else "memoryMB")
        words = (
            say_free(say, free, total)
            if resource == "cpus"
            else say("{free} of {total} GB free", free=round(free / 1024), total=round(total / 1024))
        )
        rows.append((name, total - free, total, words))
    return '<table class="pai-tasks pai-amounts"><tbody>' + "".join(map(_bar, rows)) + "</tbody></table>"


def say_free(say: Language, free: int, total: int) -> str:
    """Return how many of something are free."""
    return say("{free} of {total} free", free=free, total=total)


def _bar(row: tuple[str, int, int, str]) -> str:
    name, used, total, words = row
    return (
        f'<tr><th scope="row">{escape(name)}</th>'
        f'<td><meter class="pai-meter" min="0" max="{max(1, total)}" value="{used}" '
        f'aria-label="{escape(name, quote=True)}"></meter></td><td>{escape(words)}</td></tr>'
    )


def machines(say: Language, nodes: Sequence[NodeInfo]) -> str:
    """List the machines, each with what is free on it."""
    columns = [say("Machine"), say("State"), say("GPUs"), say("CPUs"), say("Memory")]
    rows = []
    for node in nodes:
        gpus = say(", ").join(
            f"{count.type}: {say_free(say, count.free, count.total)}" for count in gpu_counts([node])
        )
        cpus, memory = free_amount([node], "cpus"), free_amount([node], "memoryMB")
        state = node_state(say, node)
        rows.append(
            [
                node["name"],
                state,
                gpus,
                say_free(say, *cpus),
                say("{free} of {total} GB free", free=round(memory[0] / 1024), total=round(memory[1] / 1024)),
            ]
        )
    return _table(say("Machines"), columns, rows)


def node_state(say: Language, node: NodeInfo) -> str:
    """Return how a machine is, and why nothing new comes there."""
    closed = node["closed"]
    if closed is not None:
        return say("Closed: {reason}", reason=closed["reason"])
    words = {
        "READY": say("Ready"),
        "PAUSED": say("Paused"),
        "DRAINED": say("Drained"),
        "FULL": say("Disk full"),
        "LOST": say("Does not answer"),
    }
    return words[node["state"]]


def shares(say: Language, clusters: dict[str, VirtualClusterInfo]) -> str:
    """List the virtual clusters: what is used of what each is guaranteed, what waits, and by which rules."""
    columns = [
        say("Virtual cluster"),
        say("Used"),
        say("Guaranteed"),
        say("At most"),
        say("Running"),
        say("Waiting"),
        say("Rules"),
    ]
    rows = [
        [
            name,
            f"{cluster['usedCapacity']:.3g} %",
            f"{cluster['capacity']:g} %",
            f"{cluster['maxCapacity']:g} %",
            str(cluster["numActiveJobs"]),
            str(cluster["numPendingJobs"]),
            " ".join(rules(say, cluster)),
        ]
        for name, cluster in clusters.items()
    ]
    return _table(say("Virtual clusters"), columns, rows)


def _table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<table class="pai-tasks"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    )
