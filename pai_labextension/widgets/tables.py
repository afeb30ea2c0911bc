"""Widgets of lists: `JobTable` of jobs, `ClusterView` of machines, `FileExplorer` of the storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

from pai_labextension.messages import msg
from pai_scheduler.client.blocking import run_blocking
from pai_scheduler.client.cli.session import moment, table
from pai_scheduler.client.cli.show import jobs_rows, nodes_rows
from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FileInfo, FilesClient
from pai_scheduler.rest.cluster import NodeInfo, VirtualClusterInfo
from pai_scheduler.rest.models import JobSummary

from .base import ConsoleWidget, html_table, name_of

#: Jobs that are shown unless somebody asks for more, and files that a static view names.
SHOWN = 20
NAMED = 100


class JobTable(ConsoleWidget):
    """Shows the newest jobs, and each change of them.

    `states`: only those in these, for example `["RUNNING", "WAITING"]`.
    `user`: whose jobs (None: one's own; "": everybody's, for administrators).
    `limit`: so many, the newest first.
    `client`, `locale`: as of JobMonitor.
    """

    def __init__(
        self,
        states: Sequence[str] = (),
        user: str | None = None,
        client: Client | None = None,
        locale: str | None = None,
        *,
        limit: int = SHOWN,
    ) -> None:
        self._states = [state.upper() for state in ([states] if isinstance(states, str) else states)]
        self._user, self._limit = user, limit
        options = {"states": self._states, "user": user, "limit": limit}
        super().__init__("jobs", client, locale, options)

    @property
    def jobs(self) -> list[JobSummary]:
        """Return the jobs that are shown, as the REST API has them now; ApiError, UnreachableError."""
        return self._look()[: self._limit]

    def __repr__(self) -> str:
        return f"JobTable({self._states!r}, limit={self._limit})"

    def as_text(self) -> str:
        """Return the table as `pai jobs` prints it."""
        return self._laid_out(lambda jobs: table(*jobs_rows(jobs, self.locale)))

    def as_html(self) -> str:
        """Return the table."""
        return self._laid_out(lambda jobs: html_table(*jobs_rows(jobs, self.locale)))

    def _laid_out(self, lay_out: Callable[[list[JobSummary]], str]) -> str:
        jobs = self._look()
        if not jobs:
            return self._say(msg("There are no jobs."))
        shown = lay_out(jobs[: self._limit])
        if len(jobs) <= self._limit:
            return shown
        more = msg(
            "These are the newest {count}, and there are more: JobTable(limit={more}) shows twice as many.",
            count=self._limit,
            more=2 * self._limit,
        )
        return f"{shown}\n{self._say(more)}"

    def _look(self) -> list[JobSummary]:
        """Return one more than is shown, so that it is known whether there are more."""

        async def ask(client: Client) -> list[JobSummary]:
            user = "" if self._user == "" else await name_of(client, self._user)
            return await client.jobs(user, states=self._states, limit=self._limit + 1)

        return self._ask_now(ask)


class ClusterView(ConsoleWidget):
    """Shows GPUs, CPUs and memory of the cluster, its machines and its virtual clusters, as they change.

    `client`, `locale`: as of JobMonitor.
    """

    def __init__(self, client: Client | None = None, locale: str | None = None) -> None:
        super().__init__("cluster", client, locale, {})

    @property
    def nodes(self) -> list[NodeInfo]:
        """Return the machines, as the REST API has them now; ApiError, UnreachableError."""
        return self._ask_now(lambda client: client.nodes())

    @property
    def virtual_clusters(self) -> dict[str, VirtualClusterInfo]:
        """Return the virtual clusters by name, as the REST API has them now; ApiError, UnreachableError."""
        return self._ask_now(lambda client: client.virtual_clusters())

    @property
    def free(self) -> dict[str, int]:
        """Return what nobody has: "cpus", "memoryMB", and each type of GPU by its name."""
        nodes = self.nodes
        ready = [node for node in nodes if node["state"] == "READY"]
        gpus: Counter[str] = Counter({gpu["type"]: 0 for node in nodes for gpu in node["gpus"]})
        gpus.update(gpu["type"] for node in ready for gpu in node["gpus"] if gpu["job"] is None)
        return {"cpus": _free(ready, "cpus"), "memoryMB": _free(ready, "memoryMB"), **gpus}

    def __repr__(self) -> str:
        return "ClusterView()"

    def as_text(self) -> str:
        """Return the machines as `pai nodes` prints them."""
        return table(*nodes_rows(self.nodes, self.locale))

    def as_html(self) -> str:
        """Return the machines as a table."""
        return html_table(*nodes_rows(self.nodes, self.locale))


def _free(nodes: Sequence[NodeInfo], resource: Literal["cpus", "memoryMB"]) -> int:
    return sum(node["total"][resource] - node["used"][resource] for node in nodes)


class FileExplorer(ConsoleWidget):
    """Shows a folder of the storage.

    `path`: the folder to begin with (None: one's own).
    `client`, `locale`: as of JobMonitor.
    """

    def __init__(
        self, path: str | None = None, client: Client | None = None, locale: str | None = None
    ) -> None:
        self.path = path
        super().__init__("storage", client, locale, {"path": path})

    @property
    def files(self) -> list[FileInfo]:
        """Return the first files and folders of the folder; FilesError, UnreachableError."""

        async def look(files: FilesClient) -> list[FileInfo]:
            page = await files.list_page(self.path or await files.home(), limit=NAMED)
            return list(page.entries)

        return run_blocking(self._ask_storage(look))

    def __repr__(self) -> str:
        return f"FileExplorer({self.path!r})"

    def as_text(self) -> str:
        """Return what is in the folder."""
        return table(*self._rows())

    def as_html(self) -> str:
        """Return what is in the folder, as a table."""
        return html_table(*self._rows())

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        header = [self._say(word) for word in (msg("Name"), msg("Bytes"), msg("Changed"))]
        rows = [
            [one.name + "/" * one.is_folder, "" if one.is_folder else str(one.length), moment(one.modified)]
            for one in self.files
        ]
        return header, rows
