"""Which folder of the scheduler imports which, as a picture: from the imports, not from the rules."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from grimp import build_graph

_PACKAGE = "pai_scheduler"
_RULES = Path(__file__).parents[2] / "pyproject.toml"

#: These and what they stand on are one place in the picture.
_WITH_THEIR_PARTS = {"api.webhdfs": "api", "engine.process": "engine", "server.doctor": "server"}

Edges = dict[str, set[str]]


def facts(_locale: str) -> Mapping[str, Any]:
    """Return the layers of folders, the lowest last, and the imports that no other path says already."""
    edges = folder_imports()
    return {
        "layers": layers(edges),
        "edges": sorted((one, other) for one, others in reduced(edges).items() for other in others),
    }


def folder_imports() -> Edges:
    """Return which other folders each folder imports."""
    graph = build_graph(_PACKAGE)
    folders = _folders()
    edges: Edges = {folder: set() for folder in folders - _WITH_THEIR_PARTS.keys()}
    for module in graph.modules:
        importer = _folder(module, folders)
        for imported in graph.find_modules_directly_imported_by(module):
            other = _folder(imported, folders)
            if importer is not None and other is not None and other != importer:
                edges[importer].add(other)
    return edges


def layers(edges: Edges) -> list[list[str]]:
    """Return the folders, each above all that it imports; ValueError where there is a circle."""
    left, found = dict(edges), list[list[str]]()
    while left:
        lowest = sorted(folder for folder, others in left.items() if not others & left.keys())
        if not lowest:
            raise ValueError(f"these import each other: {', '.join(sorted(left))}")
        found.append(lowest)
        for folder in lowest:
            del left[folder]
    return found[::-1]


def reduced(edges: Edges) -> Edges:
    """Return the edges without those that a longer path stands for."""
    reached = {folder: set(_below(folder, edges)) for folder in edges}
    return {
        folder: {other for other in others if not any(other in reached[via] for via in others - {other})}
        for folder, others in edges.items()
    }


def _below(folder: str, edges: Edges) -> Iterator[str]:
    for other in edges[folder]:
        yield other
        yield from _below(other, edges)


def _folders() -> frozenset[str]:
    """Return the folders that have a rule."""
    with _RULES.open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return frozenset(line.partition(":")[0] for rule in contracts for line in rule.get("folders", ()))


def _folder(module: str, folders: frozenset[str]) -> str | None:
    name = module.removeprefix(f"{_PACKAGE}.")
    while name and name not in folders:
        name = name.rpartition(".")[0]
    return _WITH_THEIR_PARTS.get(name, name) or None
