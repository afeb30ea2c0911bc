"""The parameters of a notebook: what its cell tagged `parameters` says, and what a person wants instead."""

from __future__ import annotations

import ast
import json
import keyword
from collections.abc import Mapping
from typing import Any

from ..messages import msg
from .errors import RunError

#: The tag that papermill has made known.
TAG = "parameters"


def defaults(notebook: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a notebook with their values as they stand there, in its order.

    Only what can be set to something else: a name, and a number, a text, a list or the like.
    """
    cells = notebook.get("cells")
    for cell in cells if isinstance(cells, list) else ():
        if isinstance(cell, dict) and cell.get("cell_type") == "code" and TAG in _tags(cell):
            return _assigned(_source(cell))
    return {}


def values(typed: Mapping[str, str]) -> dict[str, Any]:
    """Read what a person typed: JSON, or what Python writes alike, anything else is a text. RunError."""
    found = {}
    for name, text in typed.items():
        if not name.isidentifier() or keyword.iskeyword(name):
            raise RunError(
                msg(
                    "A parameter cannot be called “{name}”: letters, digits and _, no digit first.", name=name
                )
            )
        found[name] = _value(text.strip())
    return found


def _value(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
            # what JSON cannot hold (a set, bytes, NaN) stays the text that was typed
            return json.loads(json.dumps(value, allow_nan=False))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    return text


def _tags(cell: Mapping[str, Any]) -> list[Any]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return tags if isinstance(tags, list) else []


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(source) if isinstance(source, list) else str(source)


def _assigned(source: str) -> dict[str, str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    found = {}
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(name)], value=value)
                | ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
            ):
                try:
                    ast.literal_eval(value)
                except ValueError:
                    continue
                found[name] = ast.unparse(value)
    return found
