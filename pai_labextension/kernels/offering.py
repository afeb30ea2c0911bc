"""Asks the scheduler which kernels this person may have as jobs, and calls them by a name for people."""

from __future__ import annotations

import asyncio

from ..locales import default_locale
from ..messages import msg
from .choices import Choice, choices
from .service import KernelService


async def offered(service: KernelService) -> list[Choice]:
    """List what is offered; `ApiError`, `UnreachableError`, WrongChoiceError."""
    settings = service.settings
    async with service.connections.client() as client:
        user, nodes, clusters, own = await asyncio.gather(
            client.whoami(), client.nodes(), client.virtual_clusters(), service.own_server(client)
        )
    return choices(
        settings.choices,
        nodes,
        clusters,
        usable=user["virtualCluster"],
        own_cluster=settings.virtual_cluster or own.virtual_cluster,
        preemptible=settings.preemptible,
    )


def title(kernel: str, choice: Choice) -> str:
    """Write what a kernel is called in the launcher, in the person's language: “Python 3 on 1 × P100”."""
    return msg("{kernel} on {what}", kernel=kernel, what=choice.what).in_locale(default_locale())
