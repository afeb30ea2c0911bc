"""Address of a scheduler."""

from __future__ import annotations

#: Where a scheduler of this machine is, unless it was told otherwise.
DEFAULT_URL = "http://127.0.0.1:9186"
