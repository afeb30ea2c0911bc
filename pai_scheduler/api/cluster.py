"""The cluster over REST: machines and virtual clusters, and what is taken of them."""

from __future__ import annotations

from ..errors import no_virtual_cluster
from .desk import ApiHandler, Route


class NodesHandler(ApiHandler):
    """`/nodes`."""

    async def get(self) -> None:
        """List."""
        self.answer([self.presenter.node(use, self.caller) for use in self.service.nodes()])


class VirtualClustersHandler(ApiHandler):
    """`/virtual-clusters`."""

    async def get(self) -> None:
        """List, by name."""
        self.answer(
            {use.name: self.presenter.virtual_cluster(use) for use in await self.service.virtual_clusters()}
        )


class VirtualClusterHandler(ApiHandler):
    """`/virtual-clusters/:vc`."""

    async def get(self, name: str) -> None:
        """Show."""
        uses = {use.name: use for use in await self.service.virtual_clusters()}
        if name not in uses:
            raise no_virtual_cluster(name, sorted(uses))
        self.answer(self.presenter.virtual_cluster(uses[name]))


ROUTES: list[Route] = [
    (r"/nodes", NodesHandler),
    (r"/virtual-clusters", VirtualClustersHandler),
    (r"/virtual-clusters/([^/]+)", VirtualClusterHandler),
]
