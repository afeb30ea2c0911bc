"""Asks the scheduler whether a job fits while it is typed: not too often, one question at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.rest.cluster import NodeInfo, VirtualClusterInfo
from pai_scheduler.rest.models import Validation

#: s to wait for the next key, and between two looks at what is free
QUIET, REFRESH = 0.3, 30.0
#: After so many looks without a key nobody is there any more; the next key wakes it again.
MOST_LOOKS = 20


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """Total and free resources, as reported by the scheduler."""

    virtual_clusters: Mapping[str, VirtualClusterInfo] = field(default_factory=dict)
    nodes: tuple[NodeInfo, ...] = ()


class FitChecker:
    """Keeps what is shown about the cluster up to date.

    `question` gives the job to ask about (None: nothing to ask, it has errors) and its version; the answers
    go to `on_cluster`, `on_answer` and, with a sentence, `on_trouble`.
    """

    def __init__(
        self,
        client: Client,
        question: Callable[[], tuple[int, Mapping[str, Any] | None]],
        *,
        on_cluster: Callable[[ClusterSummary], None],
        on_answer: Callable[[Validation], None],
        on_trouble: Callable[[str], None],
        quiet: float = QUIET,
        refresh: float = REFRESH,
    ) -> None:
        self._client, self._question = client, question
        self._quiet, self._refresh = quiet, refresh
        self._on_cluster, self._on_answer, self._on_trouble = on_cluster, on_answer, on_trouble
        self._wanted = asyncio.Event()

    def ask(self) -> None:
        """Note that the job has changed."""
        self._wanted.set()

    async def run(self) -> None:
        """Ask whenever the job has changed, and for a while after that when the last look is old."""
        looks = 0
        while True:
            await self._look()
            looks += 1
            try:
                async with asyncio.timeout(self._refresh if looks < MOST_LOOKS else None):
                    await self._wanted.wait()
            except TimeoutError:
                continue
            looks = 0
            await self._until_quiet()

    async def _until_quiet(self) -> None:
        while self._wanted.is_set():
            self._wanted.clear()
            await asyncio.sleep(self._quiet)

    async def _look(self) -> None:
        version, config = self._question()
        try:
            clusters, nodes = await asyncio.gather(self._client.virtual_clusters(), self._client.nodes())
            self._on_cluster(ClusterSummary(clusters, tuple(nodes)))
            if config is None:
                return
            answer = await self._client.validate(config)
        except (ApiError, UnreachableError) as error:
            self._on_trouble(str(error))
            return
        if self._question()[0] == version:
            self._on_answer(answer)
