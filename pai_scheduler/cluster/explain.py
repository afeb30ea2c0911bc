"""Why a gang does not fit: what is missing, of which kind, and whether it could ever fit; in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ..job.messages import Message, msg
from .placement import Cluster, Demand, fixed_ports


def never_fits(cluster: Cluster, gang: Sequence[Demand]) -> Message | None:
    """Say why a gang does not fit even on the empty cluster; None where it does."""
    if cluster.emptied().place(gang) is not None:
        return None
    if not cluster.nodes:
        return msg("Never fits at present: the cluster has no nodes.")
    for demand in dict.fromkeys(gang):
        reason = _too_big_for_any_node(cluster, demand)
        if reason is not None:
            return msg("Never fits at present: {reason}", reason=reason)
    reason = _short_in_total(cluster.emptied(), gang)
    if reason is not None:
        return msg("Never fits at present: {reason}", reason=reason)
    return msg("Never fits at present: even the empty nodes cannot hold all of its tasks together.")


def missing(cluster: Cluster, gang: Sequence[Demand]) -> Message:
    """Say what a gang that fits the empty cluster waits for."""
    reason = _short_in_total(cluster, gang)
    if reason is not None:
        return reason
    ports = sorted({port for demand in gang for port in fixed_ports(demand.ports)})
    if ports and cluster.fits([replace(demand, ports=()) for demand in gang]):
        return msg(
            "its fixed ports ({ports}) are taken on the nodes that have room.",
            ports=", ".join(map(str, ports)),
        )
    largest = max(gang, key=lambda demand: (demand.gpus, demand.cpus, demand.memory_mb))
    if largest.gpus:
        return msg(
            "enough is free in all, but no node has {gpus} × {type}, {cpus} CPUs and {memory} MB at once.",
            gpus=largest.gpus,
            type=largest.gpu_type or "GPU",
            cpus=largest.cpus,
            memory=largest.memory_mb,
        )
    return msg(
        "enough is free in all, but no node has {cpus} CPUs and {memory} MB at once.",
        cpus=largest.cpus,
        memory=largest.memory_mb,
    )


def _too_big_for_any_node(cluster: Cluster, demand: Demand) -> Message | None:
    nodes = [node for node in cluster.nodes if node.healthy]
    if not nodes:
        return msg("no node is healthy.")
    if demand.gpus:
        of_type = demand.gpu_type
        types = [of_type] if of_type else cluster.gpu_types
        best = max((node.gpu_counts.get(gpu_type, 0) for node in nodes for gpu_type in types), default=0)
        if of_type and of_type not in cluster.gpu_types:
            known = ", ".join(cluster.gpu_types) or msg("none")
            return msg("there is no GPU of type {type}; there are: {known}.", type=of_type, known=known)
        if best < demand.gpus:
            return msg(
                "a task asks for {gpus} × {type}, the largest node has {best}.",
                gpus=demand.gpus,
                type=of_type or "GPU",
                best=best,
            )
        nodes = [
            node
            for node in nodes
            if max(node.gpu_counts.get(gpu_type, 0) for gpu_type in types) >= demand.gpus
        ]
    cpus, memory = max(node.cpus for node in nodes), max(node.memory_mb for node in nodes)
    storage = max(node.storage_gb for node in nodes)
    if demand.cpus > cpus:
        return msg("a task asks for {asked} CPUs, the largest node has {best}.", asked=demand.cpus, best=cpus)
    if demand.memory_mb > memory:
        return msg(
            "a task asks for {asked} MB of memory, the largest node has {best}.",
            asked=demand.memory_mb,
            best=memory,
        )
    if demand.storage_gb > storage:
        return msg(
            "a task asks for {asked} GB of storage, the largest node has {best}.",
            asked=demand.storage_gb,
            best=storage,
        )
    return None


def _short_in_total(cluster: Cluster, gang: Sequence[Demand]) -> Message | None:
    uses = [use for use in cluster.uses.values() if use.node.healthy]
    asked: Counter[str | None] = Counter()
    for demand in gang:
        if demand.gpus:
            asked[demand.gpu_type] += demand.gpus
    for gpu_type, count in asked.items():
        free = {
            use.node.name: use.free_gpus if gpu_type is None else len(use.gpus.get(gpu_type, ()))
            for use in uses
        }
        if sum(free.values()) < count:
            where = ", ".join(f"{name}: {number}" for name, number in free.items() if number)
            name = gpu_type or "GPU"
            if where:
                return msg(
                    "{count} × {type} are asked for, {free} free ({where}).",
                    count=count,
                    type=name,
                    free=sum(free.values()),
                    where=where,
                )
            return msg("{count} × {type} are asked for, none is free.", count=count, type=name)
    asked_cpus, free_cpus = sum(demand.cpus for demand in gang), sum(use.cpus for use in uses)
    if asked_cpus > free_cpus:
        return msg("{asked} CPUs are asked for, {free} are free.", asked=asked_cpus, free=free_cpus)
    asked_mb, free_mb = sum(demand.memory_mb for demand in gang), sum(use.memory_mb for use in uses)
    if asked_mb > free_mb:
        return msg("{asked} MB of memory are asked for, {free} are free.", asked=asked_mb, free=free_mb)
    asked_gb, free_gb = sum(demand.storage_gb for demand in gang), sum(use.storage_gb for use in uses)
    if asked_gb > free_gb:
        return msg("{asked} GB of storage are asked for, {free} are free.", asked=asked_gb, free=free_gb)
    return None
