"""Context of the service's resources: what they read and change, and the means to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pai_scheduler.store.store import Store

from .current_cluster import CurrentCluster
from .reader import Reader
from .writer import Writer


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """Context shared by the service's resources. `clock` gives ms since the epoch."""

    store: Store
    reader: Reader
    writer: Writer
    cluster: CurrentCluster
    clock: Callable[[], int]
