"""Which registries an administrator lets images come from (`registries` in the cluster file)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

#: stands for every public registry, and for nothing else
PUBLIC = "*"


@dataclass(frozen=True, slots=True)
class Registries:
    """Patterns of host names (`registry.example.org`, `*.example.org`), with a port or for all ports."""

    patterns: Sequence[str] = (PUBLIC,)

    @property
    def public(self) -> bool:
        """Return whether images may come from every public registry."""
        return PUBLIC in self.patterns

    def lists(self, registry: str) -> bool:
        """Return whether a registry (`host` or `host:port`) is listed by more than `*`, wherever it is."""
        host = registry.partition(":")[0]
        return any(
            fnmatchcase(registry if ":" in pattern else host, pattern.lower())
            for pattern in self.patterns
            if pattern != PUBLIC
        )
