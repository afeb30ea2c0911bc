"""Kernels on offer: this server's own, and kernels as jobs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pai_scheduler.i18n import Message
from pai_scheduler.rest.cluster import NodeInfo, VirtualClusterInfo

from ..locales import default_locale
from ..messages import counted, msg
from .service import KernelService

# Which kernels are offered that run as jobs: the administrator's, or one GPU of each type one may have.

#: What a choice may say besides its title and name: the provisioner's traits.
TRAITS = (
    "gpus", "gpu_type", "cpus", "memory_mb", "shm_mb", "image", "python", "virtual_cluster", "preemptible",
    "idle_minutes",
)  # fmt: skip
_KNOWN = frozenset({"title", "name", *TRAITS})
_MB_PER_GB = 1024


class WrongChoiceError(ValueError):
    """A choice in the configuration makes no sense."""


@dataclass(frozen=True, slots=True)
class KernelOffer:
    """One offer: `name` is part of a kernelspec's name, `what` is shown; `settings` are the provisioner's."""

    name: str
    what: Message | str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class GpuSupply:
    """GPUs of one type: in the cluster, on the machine with the most; whether they are simulated."""

    total: int
    most: int
    simulated: bool


def gpu_supply(nodes: Iterable[NodeInfo]) -> dict[str, GpuSupply]:
    """Sum up the GPUs of all machines by type."""
    found: dict[str, GpuSupply] = {}
    for node in nodes:
        for gpu_type, count in node["total"]["gpus"].items():
            before = found.get(gpu_type, GpuSupply(0, 0, False))
            simulated = any(gpu["simulated"] for gpu in node["gpus"] if gpu["type"] == gpu_type)
            found[gpu_type] = GpuSupply(
                before.total + count, max(before.most, count), before.simulated or simulated
            )
    return dict(sorted(found.items()))


def choices(
    configured: Sequence[Mapping[str, Any]],
    nodes: Iterable[NodeInfo],
    clusters: Mapping[str, VirtualClusterInfo],
    *,
    usable: Sequence[str],
    own_cluster: str,
    preemptible: bool,
) -> list[KernelOffer]:
    """List what is offered. `usable`: the person's virtual clusters, `own_cluster`: the notebook server's.

    WrongChoiceError where a configured choice has something that none has.
    """
    supply = gpu_supply(nodes)
    wanted = configured or [{"gpus": 1, "gpu_type": gpu_type} for gpu_type in supply]
    return list(_named(_one(each, supply, clusters, usable, own_cluster, preemptible) for each in wanted))


def _one(
    wanted: Mapping[str, Any],
    supply: Mapping[str, GpuSupply],
    clusters: Mapping[str, VirtualClusterInfo],
    usable: Sequence[str],
    own_cluster: str,
    preemptible: bool,
) -> KernelOffer | None:
    if unknown := sorted(set(wanted) - _KNOWN):
        raise WrongChoiceError(
            f"PAIKernels.choices: a choice has no {unknown[0]!r}; it may have {', '.join(sorted(_KNOWN))}"
        )
    settings = {name: wanted[name] for name in TRAITS if name in wanted}
    gpus, gpu_type = int(wanted.get("gpus", 0)), str(wanted.get("gpu_type", ""))
    if gpus and not wanted.get("virtual_cluster"):
        borrows = bool(wanted.get("preemptible", preemptible))
        order = dict.fromkeys([*([own_cluster] if own_cluster in usable else []), *usable])
        fitting = (name for name in order if _may_have(clusters.get(name), supply, gpus, gpu_type, borrows))
        cluster = next(fitting, None)
        if cluster is None:
            return None
        settings["virtual_cluster"] = cluster
    what = wanted.get("title") or _what(wanted, supply)
    name = str(wanted.get("name") or (f"{gpus}-{gpu_type or 'gpu'}" if gpus else what))
    return KernelOffer(_slug(name), what, settings)


def _may_have(
    cluster: VirtualClusterInfo | None,
    supply: Mapping[str, GpuSupply],
    gpus: int,
    gpu_type: str,
    borrows: bool,
) -> bool:
    """Return whether jobs of a virtual cluster can ever have so many GPUs of a type (empty: any) at once."""
    if cluster is None or cluster["status"] != "RUNNING":
        return False
    per_cent = cluster["maxCapacity" if borrows else "capacity"]
    kinds = [supply[gpu_type]] if gpu_type in supply else [] if gpu_type else list(supply.values())
    return any(kind.most >= gpus and int(kind.total * per_cent / 100 + 1e-9) >= gpus for kind in kinds)


def _what(wanted: Mapping[str, Any], supply: Mapping[str, GpuSupply]) -> Message:
    gpus, gpu_type = int(wanted.get("gpus", 0)), str(wanted.get("gpu_type", ""))
    if gpus and gpu_type:
        if gpu_type in supply and supply[gpu_type].simulated:
            return msg("{count} × {type} (simulated)", count=gpus, type=gpu_type)
        return msg("{count} × {type}", count=gpus, type=gpu_type)
    if gpus:
        return counted("{count} GPU", "{count} GPUs", count=gpus)
    memory = int(wanted.get("memory_mb", 0))
    if memory:
        gigabytes = f"{memory / _MB_PER_GB:g}"
        return msg("CPU, {memory} GB", memory=gigabytes)
    return msg("CPU")


def _named(found: Iterable[KernelOffer | None]) -> Iterator[KernelOffer]:
    taken: set[str] = set()
    for choice in found:
        if choice is None:
            continue
        name, number = choice.name, 2
        while name in taken:
            name, number = f"{choice.name}-{number}", number + 1
        taken.add(name)
        yield KernelOffer(name, choice.what, choice.settings)


def _slug(text: str) -> str:
    """Write something as a part of a kernelspec's name: letters, digits, `.`, `_` and `-`."""
    return re.sub(r"[^a-z0-9._]+", "-", str(text).lower()).strip("-") or "kernel"


# Asks the scheduler which kernels this person may have as jobs, and calls them by a name for people.


async def offered(service: KernelService) -> list[KernelOffer]:
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


def title(kernel: str, choice: KernelOffer) -> str:
    """Write what a kernel is called in the launcher, in the person's language: “Python 3 on 1 × P100”."""
    return msg("{kernel} on {what}", kernel=kernel, what=choice.what).in_locale(default_locale())
