"""Required inputs that nobody has touched yet: they are asked for, and not yet called wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pai_scheduler.job.schema import job_schema

from .json_edit import ABSENT, Path


def blank_fields(config: Mapping[str, Any]) -> Iterator[Path]:
    """Return each required text of a job, of its task roles and of their ports that is absent or blank.

    The shapes must be those that the form can show (`JobModel.obstacle`).
    """
    yield from _blank(config, job_schema(), ())
    for role_index, role in enumerate(config.get("taskRoles", [])):
        role_path = ("taskRoles", role_index)
        yield from _blank(role, job_schema()["$defs"]["taskRole"], role_path)
        for port_index, port in enumerate(role.get("portList", [])):
            yield from _blank(port, job_schema()["$defs"]["port"], (*role_path, "portList", port_index))


def after_edit(untouched: Collection[Path], path: Path, value: Any) -> frozenset[Path]:
    """Return what is untouched after an edit; what follows a removed item of a list moves up."""
    left = (other for other in untouched if other[: len(path)] != path)
    index = path[-1]
    if value is not ABSENT or not isinstance(index, int):
        return frozenset(left)
    return frozenset(_moved_up(other, path[:-1], index) for other in left)


def _moved_up(path: Path, items: Path, removed: int) -> Path:
    depth = len(items)
    if path[:depth] != items or len(path) == depth:
        return path
    index = path[depth]
    if not isinstance(index, int) or index < removed:
        return path
    return (*items, index - 1, *path[depth + 1 :])


def _blank(value: Mapping[str, Any], schema: Mapping[str, Any], path: Path) -> Iterator[Path]:
    for name in schema["required"]:
        if schema["properties"][name].get("type") == "string" and value.get(name, "") == "":
            yield (*path, name)
