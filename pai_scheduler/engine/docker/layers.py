"""How far the pull of an image is, read from the lines in which Docker tells what its layers do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(slots=True)
class _Layer:
    """One layer, in bytes as they are downloaded; `size` None: Docker has not told it yet."""

    size: int | None = None
    downloaded: int = 0
    unpacked: int = 0


class Layers:
    """The layers of an image that are pulled: those that were here before do not count."""

    def __init__(self) -> None:
        self._layers: dict[str, _Layer] = {}

    def take(self, line: Mapping[str, Any]) -> None:
        """Add a line of Docker's progress; one that tells nothing of a layer changes nothing."""
        name, detail = str(line.get("id", "")), line.get("progressDetail") or {}
        match line.get("status"):
            case "Pulling fs layer":
                self._layers.setdefault(name, _Layer())
            case "Downloading":
                layer = self._layers.setdefault(name, _Layer())
                layer.downloaded = int(detail.get("current") or 0)
                if total := int(detail.get("total") or 0):
                    layer.size = total
            case "Download complete":
                layer = self._layers.setdefault(name, _Layer())
                layer.downloaded = layer.size = layer.size or layer.downloaded
            case "Extracting":
                layer = self._layers.setdefault(name, _Layer())
                layer.downloaded = layer.size = layer.size or int(detail.get("total") or 0)
                # (some of Docker's storages tell seconds here, which are few)
                layer.unpacked = min(int(detail.get("current") or 0), layer.size)
            case "Pull complete":
                layer = self._layers.setdefault(name, _Layer())
                layer.downloaded = layer.unpacked = layer.size = layer.size or layer.downloaded
            case "Already exists":
                self._layers.pop(name, None)

    @property
    def downloaded(self) -> int:
        """Return the bytes that have come."""
        return sum(layer.downloaded for layer in self._layers.values())

    @property
    def size(self) -> int:
        """Return the bytes to download of all layers whose size is known."""
        return sum(layer.size or 0 for layer in self._layers.values())

    @property
    def is_size_known(self) -> bool:
        """Return whether `size` is that of all layers. Docker tells a layer's when its download begins."""
        return all(layer.size is not None for layer in self._layers.values())

    @property
    def percent(self) -> int:
        """Return how far all is: half of a layer's way is its download, half its unpacking.

        A layer whose size is not known counts as large as the others are on the average.
        """
        known = sum(layer.size is not None for layer in self._layers.values())
        if not self.size:
            return 0
        done = sum(layer.downloaded + layer.unpacked for layer in self._layers.values())
        return min(100, 100 * done * known // (2 * self.size * len(self._layers)))


def size_text(size: int) -> str:
    """Write a number of bytes as people read it, in steps of 1000: "2.1 GB"."""
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 9.95 else f"{value:.0f} {_UNITS[unit]}"
