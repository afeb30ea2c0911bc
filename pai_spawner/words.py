"""What was chosen, and what is free of it, in words."""

from __future__ import annotations

from pai_scheduler.i18n import Message
from pai_scheduler.rest.cluster import AvailableAmounts

from .choices import Options
from .messages import counted, msg

_MB_PER_GB = 1024
_HOUR, _DAY = 60, 24 * 60


def title_of(options: Options) -> Message:
    """Say what one gets: `1 × P100, 4 CPUs, 16 GB`."""
    cpus, memory = cpus_words(options.cpus), memory_words(options.memory_mb)
    if not options.gpus:
        return msg("{cpus}, {memory}", cpus=cpus, memory=memory)
    gpus = gpus_words(options.gpus, options.gpu_type)
    return msg("{gpus}, {cpus}, {memory}", gpus=gpus, cpus=cpus, memory=memory)


def gpus_words(count: int, gpu_type: str) -> Message:
    """Say how many GPUs of which type; an empty one is any type."""
    return msg("{gpus} × {type}", gpus=count, type=gpu_type or msg("GPU"))


def cpus_words(count: int) -> Message:
    """Say how many CPUs."""
    return counted("{count} CPU", "{count} CPUs", count=count)


def memory_words(megabytes: int) -> Message:
    """Say an amount of memory as people do: `16 GB`, `512 MB`."""
    if megabytes < _MB_PER_GB:
        return msg("{memory} MB", memory=megabytes)
    return msg("{memory:g} GB", memory=round(megabytes / _MB_PER_GB, 1))


def duration_words(minutes: int) -> Message:
    """Say a time limit in the largest unit in which it is a whole number."""
    if minutes % _DAY == 0:
        return counted("{count} day", "{count} days", count=minutes // _DAY)
    if minutes % _HOUR == 0:
        return counted("{count} hour", "{count} hours", count=minutes // _HOUR)
    return counted("{count} minute", "{count} minutes", count=minutes)


def gpu_type_words(gpu_type: str, available: AvailableAmounts) -> Message:
    """Say how much of a type of GPU is free for somebody in a virtual cluster."""
    most = available["most"]["gpus"].get(gpu_type, 0)
    if not most:
        return msg("{type}: none in this virtual cluster", type=gpu_type)
    free = available["free"]["gpus"].get(gpu_type, 0)
    return msg("{type}: {free} of {total} free", type=gpu_type, free=free, total=most)


def virtual_cluster_words(name: str, available: AvailableAmounts) -> Message:
    """Say which GPUs somebody has in a virtual cluster, and how many of them are free."""
    free = available["free"]["gpus"]
    gpus = [
        f"{free.get(gpu_type, 0)}/{count} × {gpu_type}"
        for gpu_type, count in sorted(available["most"]["gpus"].items())
        if count
    ]
    if not gpus:
        return msg("{name}: no GPUs", name=name)
    return msg("{name}: {gpus} free", name=name, gpus=", ".join(gpus))


def gpus_note(gpu_type: str, available: AvailableAmounts) -> Message:
    """Say how many GPUs one server may have: all of them are on one machine."""
    most = most_gpus(gpu_type, available)
    return msg("All GPUs of a server are on one machine: at most {most} here.", most=most)


def cpus_note(available: AvailableAmounts) -> Message:
    """Say how many CPUs are free for somebody in a virtual cluster."""
    free, most = available["free"]["cpus"], available["most"]["cpus"]
    return msg("{free} of {total} free", free=free, total=most)


def memory_note(available: AvailableAmounts) -> Message:
    """Say how much memory is free for somebody in a virtual cluster."""
    free, most = available["free"]["memoryMB"], available["most"]["memoryMB"]
    return msg("{free} of {total} free", free=memory_words(free), total=memory_words(most))


def most_gpus(gpu_type: str, available: AvailableAmounts) -> int:
    """Return how many GPUs one server can ever have; `gpu_type` empty: of whichever type has most."""
    counts = available["mostOnOne"]["gpus"]
    return counts.get(gpu_type, 0) if gpu_type else max(counts.values(), default=0)
