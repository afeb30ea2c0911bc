"""What a server has, in words."""

from __future__ import annotations

from pai_scheduler.i18n import Message

from .messages import counted, msg


def describe(*, cpus: int, memory_mb: int, gpus: int, gpu_type: str) -> Message:
    """Say what a server has; `gpu_type` empty: any."""
    some_cpus = counted("{count} CPU", "{count} CPUs", count=cpus)
    if not gpus:
        return msg("{cpus} and {memory} MB of memory", cpus=some_cpus, memory=memory_mb)
    return msg(
        "{cpus}, {memory} MB of memory and {gpus} × {type}",
        cpus=some_cpus,
        memory=memory_mb,
        gpus=gpus,
        type=gpu_type or msg("any GPU"),
    )
