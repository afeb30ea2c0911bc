"""The rules of a job that a schema cannot say: what must be unique, and what must fit what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pai_scheduler.i18n import Message, msg

from .mounts import mount_errors
from .notify import notify_errors
from .paths import Path, quoted
from .schema import job_schema

#: Beyond it, neither the variables that name every task nor the tasks themselves fit.
MAX_TASKS = 10_000
#: Linux hands a program no argument or variable longer than this (MAX_ARG_STRLEN, less the ending NUL).
MAX_ARGUMENT_BYTES = 128 * 1024 - 1
#: All of jobEnvs together; leaves half of what Linux allows to the variables of the platform.
MAX_ENVIRONMENT_BYTES = 1024 * 1024

_Errors = Iterator[tuple[Path, Message]]


def job_errors(config: object) -> _Errors:
    """Find what contradicts itself; fields that the schema refuses are left out of account."""
    if not isinstance(config, dict):
        return
    roles = _objects(config.get("taskRoles"), job_schema()["properties"]["taskRoles"]["maxItems"])
    yield from _duplicates(roles, "name", ("taskRoles",))
    yield from _total(roles)
    for index, role in roles:
        yield from _role(role, ("taskRoles", index))
    yield from _environment(config.get("jobEnvs"))
    yield from mount_errors(config.get("extras"))
    yield from notify_errors(config.get("extras"))


def _role(role: Mapping[str, Any], path: Path) -> _Errors:
    limits = job_schema()["$defs"]["taskRole"]["properties"]
    tasks = _number(role, "taskNumber", limits)
    for name in ("minFailedTaskCount", "minSucceededTaskCount"):
        count = _whole(role.get(name))
        if count is not None and tasks is not None and count > tasks:
            yield (
                (*path, name),
                msg(
                    "{field} is {count}, but taskNumber is only {tasks}: lower the one or raise the other.",
                    field=name,
                    count=count,
                    tasks=tasks,
                ),
            )
    memory, shared = _number(role, "memoryMB", limits), _number(role, "shmMB", limits)
    if memory is not None and shared is not None and shared > memory:
        yield (
            (*path, "shmMB"),
            msg(
                "The shared memory (shmMB) is {shared} MB, but the memory only {memory} MB: lower the one or "
                "raise the other.",
                shared=shared,
                memory=memory,
            ),
        )
    command = role.get("command")
    if isinstance(command, str) and _size(command) > MAX_ARGUMENT_BYTES:
        yield (*path, "command"), _too_long("command", _size(command), MAX_ARGUMENT_BYTES)
    yield from _ports(role.get("portList"), (*path, "portList"))


def _ports(value: object, path: Path) -> _Errors:
    limits = job_schema()["$defs"]["port"]["properties"]
    ports = _objects(value, job_schema()["$defs"]["taskRole"]["properties"]["portList"]["maxItems"])
    yield from _duplicates(ports, "label", path)
    taken: list[tuple[int, int, object]] = []
    for index, port in ports:
        begin, count = _number(port, "beginAt", limits), _number(port, "portNumber", limits)
        if not begin or count is None:
            continue
        last = begin + count - 1
        if last > 65535:
            yield (
                (*path, index, "portNumber"),
                msg("The ports {begin}–{last} go beyond 65535, the last there is.", begin=begin, last=last),
            )
        for other_begin, other_last, label in taken:
            if begin <= other_last and other_begin <= last:
                yield (
                    (*path, index, "beginAt"),
                    msg(
                        "The ports {begin}–{last} overlap those of {label} ({other_begin}–{other_last}).",
                        begin=begin,
                        last=last,
                        label=quoted(label) if isinstance(label, str) else "portList",
                        other_begin=other_begin,
                        other_last=other_last,
                    ),
                )
                break
        taken.append((begin, last, port.get("label")))


def _total(roles: list[tuple[int, Mapping[str, Any]]]) -> _Errors:
    limits = job_schema()["$defs"]["taskRole"]["properties"]
    total = sum(_number(role, "taskNumber", limits) or 0 for _, role in roles)
    if total > MAX_TASKS:
        yield (
            ("taskRoles",),
            msg(
                "The job has {total} tasks in all; at most {limit} are allowed.", total=total, limit=MAX_TASKS
            ),
        )


def _duplicates(items: list[tuple[int, Mapping[str, Any]]], key: str, path: Path) -> _Errors:
    first: dict[str, int] = {}
    for index, item in items:
        name = item.get(key)
        if isinstance(name, str) and first.setdefault(name, index) != index:
            yield (
                (*path, index, key),
                msg("The {key} {name} is taken already: choose another.", key=key, name=quoted(name)),
            )


def _environment(envs: object) -> _Errors:
    if not isinstance(envs, dict):
        return
    total = 0
    for name, value in envs.items():
        if isinstance(name, str) and isinstance(value, str):
            size = _size(name) + 1 + _size(value)
            total += size
            if size > MAX_ARGUMENT_BYTES:
                yield ("jobEnvs", name), _too_long(quoted(name), size, MAX_ARGUMENT_BYTES)
    if total > MAX_ENVIRONMENT_BYTES:
        yield ("jobEnvs",), _too_long("jobEnvs", total, MAX_ENVIRONMENT_BYTES)


def _too_long(field: str, size: int, limit: int) -> Message:
    return msg(
        "{field} is too long: {size} bytes, where {limit} are allowed. Put it into a file.",
        field=field,
        size=size,
        limit=limit,
    )


def _objects(value: object, most: int) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the entries that are objects, with their places."""
    if not isinstance(value, list):
        return []
    return [(index, item) for index, item in enumerate(value[:most]) if isinstance(item, dict)]


def _number(item: Mapping[str, Any], name: str, limits: Mapping[str, Any]) -> int | None:
    """Return a number or its default; None where the schema refuses it."""
    value = _whole(item.get(name, limits[name]["default"]))
    return (
        value if value is not None and limits[name]["minimum"] <= value <= limits[name]["maximum"] else None
    )


def _whole(value: object) -> int | None:
    """Return a JSON integer (1.0 is one); None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
