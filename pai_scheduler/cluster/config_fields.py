"""Typed readers of the cluster file's fields: a value, or a refusal with its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pai_scheduler.i18n import Message, msg


class DefinitionError(Exception):
    """The cluster file is wrong: at which place (`nodes[0].cpus`), and a sentence about it."""

    def __init__(self, path: str, message: Message) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path
        self.message = message


def read_mapping(value: object, path: str, known: Sequence[str] | None = None) -> Mapping[str, Any]:
    """Read a mapping whose keys are all `known` (None: any)."""
    if not isinstance(value, Mapping):
        raise DefinitionError(path or "the file", msg("This must be a mapping (name: value)."))
    for key in value:
        if known is not None and key not in known:
            text = msg("{key} is not known here. Known are: {known}.", key=key, known=", ".join(known))
            raise DefinitionError(f"{path}.{key}".lstrip("."), text)
    return value


def read_list(value: object, path: str) -> Sequence[Any]:
    """Read a list."""
    if not isinstance(value, list):
        raise DefinitionError(path, msg("This must be a list."))
    return value


def read_number(fields: Mapping[str, Any], key: str, prefix: str, *, least: int = 0) -> int | None:
    """Read a whole number, `least` or more; None where there is none."""
    value = fields.get(key)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise DefinitionError(
            f"{prefix}{key}", msg("This must be a whole number, {least} or more.", least=least)
        )
    return value
