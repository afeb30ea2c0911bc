"""The product's Python files, read once for all tests of a process that look at every one of them."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("pai_scheduler", "pai_spawner", "pai_labextension")


@cache
def files(package: str, suffix: str = ".py") -> tuple[Path, ...]:
    """Return the files below a folder of the repository, without what npm has fetched."""
    return tuple(sorted(path for path in _walk(ROOT / package) if path.suffix == suffix))


def _walk(top: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name not in ("node_modules", "__pycache__")]
        yield from (Path(folder, name) for name in names)


@cache
def text(file: Path) -> str:
    """Return what a file says."""
    return file.read_text(encoding="utf-8")


@cache
def tree(file: Path) -> ast.Module:
    """Parse a file."""
    return ast.parse(text(file))


@cache
def modules(package: str) -> dict[str, ast.Module]:
    """Parse the modules of a package; they are named by their paths."""
    return {str(file.relative_to(ROOT)): tree(file) for file in files(package)}
