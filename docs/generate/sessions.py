"""What an administrator may write into the sessions file: the properties of its schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pai_spawner.sessions.policy_file import policy_schema

_FILE = Path(__file__).parent.parent.parent / "hub_config" / "sessions.yaml"


def facts(_locale: str) -> Mapping[str, Any]:
    """Return what the page about sessions says in facts."""
    schema = policy_schema()
    parts = {"file": schema, **{name: schema["$defs"][name] for name in ("when", "rule", "group")}}
    return {
        "fields": {name: list(_fields(part)) for name, part in parts.items()},
        "example": _FILE.read_text(encoding="utf-8").strip(),
    }


def _fields(part: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, field in part["properties"].items():
        yield name, field["description"]
