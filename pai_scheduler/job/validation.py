"""A job JSON, validated (everything that is wrong at once, each with its path), and the `JobSpec` of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from typing import Any

from pai_scheduler.i18n import Message, msg

from .json_path import Path, field_name, number_text, path_text, quoted
from .lazy_grammar import put_off_grammar
from .schema import job_schema, resolve
from .spec import JobSpec, PortRequest, TaskRole, notify_errors

# What no job may hold, in whatever field: numbers that are none, broken text, bottomless nesting.

#: Levels of lists and objects; a job needs five.
MAX_DEPTH = 64
#: Beyond it, other JSON readers make infinity of a number.
_MAX_BITS = 1023
#: Values in one job, `tmp` apart: far more than any has, few enough to look at each.
MAX_VALUES = 100_000
#: What `_is_plain` looks at: less in each way than what is allowed.
_PLAIN_VALUES, _PLAIN_DEPTH, _PLAIN_NUMBER = 1000, 8, 1 << 63


def _malformed(config: object) -> Iterator[tuple[Path, Message]]:
    """Find what cannot be kept or handed on as JSON; `tmp` is dropped and may hold anything."""
    if _is_plain(config, [_PLAIN_VALUES]):
        return
    stack: list[tuple[Path, object]] = [((), config)]
    looked_at = 0
    while stack:
        path, value = stack.pop()
        looked_at += 1
        inside = len(value) if isinstance(value, dict | list) else 0
        if looked_at + len(stack) + inside > MAX_VALUES:
            yield (), msg("The job holds more than {limit} values: put data into a file.", limit=MAX_VALUES)
            return
        problem = _problem(path, value)
        if problem is not None:
            yield path, problem
            continue
        if isinstance(value, dict):
            stack.extend(
                (_child(path, key), _item(key, item))
                for key, item in value.items()
                if (*path, key) != ("tmp",)
            )
        elif isinstance(value, list):
            stack.extend(((*path, index), item) for index, item in enumerate(value))


def _is_plain(value: object, left: list[int], depth: int = 0) -> bool:
    """Return whether a small value is known to hold nothing wrong, as nearly all that are submitted.

    `left`: how many values may still be looked at.
    """
    left[0] -= 1
    if left[0] < 0:
        return False
    kind = type(value)
    if kind is str:
        return value.isascii() and "\0" not in value  # type: ignore[attr-defined,operator]
    if kind is int:
        return -_PLAIN_NUMBER < value < _PLAIN_NUMBER  # type: ignore[operator]
    if depth > _PLAIN_DEPTH:
        return False
    if kind is dict:
        items: Mapping[object, object] = value  # type: ignore[assignment]
        for key, item in items.items():
            if type(key) is not str or not key.isascii() or not _is_plain(item, left, depth + 1):
                return False
        return True
    if kind is list:
        return all(_is_plain(item, left, depth + 1) for item in value)  # type: ignore[attr-defined]
    return value is None or kind is bool


class _BadKey:
    """Stands for a value whose name is wrong, so that the error is found at its path."""


def _child(path: Path, key: object) -> Path:
    if isinstance(key, str):
        return (*path, key)
    # no JSON object has such a name, but YAML has
    return (*path, number_text(key) if isinstance(key, int | float) else type(key).__name__)


def _item(key: object, value: object) -> object:
    return value if isinstance(key, str) and _encodable(key) else _BadKey()


def _problem(path: Path, value: object) -> Message | None:
    match value:
        case _BadKey():
            return msg("The name of the field {field} is not valid text.", field=field_name(path))
        case None | bool():
            return None
        case str():
            if not _encodable(value):
                return msg(
                    "{field} holds half a character (a lone surrogate): write it anew.",
                    field=field_name(path),
                )
            if "\0" in value and path[:1] != ("extras",):
                return msg(
                    "{field} holds a NUL character, which no command or variable can.", field=field_name(path)
                )
        case int():
            if value.bit_length() > _MAX_BITS:
                return msg("{field} is too large a number.", field=field_name(path))
        case float():
            if not math.isfinite(value):
                return msg("{field} is not a finite number (NaN or Infinity).", field=field_name(path))
        case dict() | list():
            if len(path) > MAX_DEPTH:
                return msg(
                    "{field} is nested more than {depth} levels deep.",
                    field=field_name(path),
                    depth=MAX_DEPTH,
                )
        case _:
            return msg("{field} is no JSON value.", field=field_name(path))
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


# Where `extras.mounts` and `extras.home` may be: nowhere over the system, nor over each other.

#: Folders of the system, and ours, in a container: nothing is mounted over them, nor within them.
_SYSTEM = frozenset(
    (
        *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin"),
        *("sys", "usr", "pai", "pai-code", "pai-job"),
    )
)
#: What every container has for logging in.
_RUNTIME = ("opt", "pai")
#: Within these something may be mounted, but not over them.
_SHARED = frozenset(("home", "media", "mnt", "opt", "srv", "tmp", "var"))


def _mount_errors(extras: object) -> Iterator[tuple[Path, Message]]:
    """Find the places that cannot be; what the schema refuses is left out of account."""
    if not isinstance(extras, dict):
        return
    taken: list[tuple[tuple[str, ...], str]] = []
    home, mounts = extras.get("home"), extras.get("mounts")
    if isinstance(home, str) and home:
        parts = tuple(part for part in home.split("/") if part)
        if (wrong := _wrong_home(home, parts)) is not None:
            yield ("extras", "home"), wrong
        taken.append((("/", *parts), home))
    for index, mount in enumerate(mounts) if isinstance(mounts, list) else ():
        target = mount.get("target") if isinstance(mount, dict) else None
        if not isinstance(target, str) or not target:
            continue
        parts = tuple(part for part in target.split("/") if part)
        wrong = wrong_target(target, parts)
        place = ("/", *parts) if target.startswith("/") else parts
        if wrong is None:
            wrong = next((_within(target, name) for other, name in taken if overlap(place, other)), None)
        if wrong is not None:
            yield ("extras", "mounts", index, "target"), wrong
        taken.append((place, target))


def _wrong_home(home: str, parts: tuple[str, ...]) -> Message | None:
    if not home.startswith("/"):
        return msg(
            "{target} is no place for a home: name a path from / on, as /home/jovyan.", target=quoted(home)
        )
    return wrong_target(home, parts)


def wrong_target(target: str, parts: tuple[str, ...]) -> Message | None:
    """Return why nothing can be mounted at a place; None where something can."""
    if not parts or "." in parts or ".." in parts or "\0" in target:
        return msg(
            "{target} is no place for a mount: name a path without . and .. in it.", target=quoted(target)
        )
    hides = parts[0] in _SYSTEM or parts[:2] == _RUNTIME or (len(parts) == 1 and parts[0] in _SHARED)
    if target.startswith("/") and hides:
        return msg(
            "{target} would hide a part of the system: choose another place, as data or /data.",
            target=quoted(target),
        )
    return None


def overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether two places are the same, or one is within the other."""
    return one[: len(other)] == other or other[: len(one)] == one


def _within(target: str, other: str) -> Message:
    return msg(
        "{target} and {other} are the same place, or one is within the other.",
        target=quoted(target),
        other=quoted(other),
    )


# The rules of a job that a schema cannot say: what must be unique, and what must fit what.

#: Beyond it, neither the variables that name every task nor the tasks themselves fit.
MAX_TASKS = 10_000
#: Linux hands a program no argument or variable longer than this (MAX_ARG_STRLEN, less the ending NUL).
MAX_ARGUMENT_BYTES = 128 * 1024 - 1
#: All of jobEnvs together; leaves half of what Linux allows to the variables of the platform.
MAX_ENVIRONMENT_BYTES = 1024 * 1024

_Errors = Iterator[tuple[Path, Message]]


def _job_errors(config: object) -> _Errors:
    """Find what contradicts itself; fields that the schema refuses are left out of account."""
    if not isinstance(config, dict):
        return
    roles = _objects(config.get("taskRoles"), job_schema()["properties"]["taskRoles"]["maxItems"])
    yield from _duplicates(roles, "name", ("taskRoles",))
    yield from _total(roles)
    for index, role in roles:
        yield from _role(role, ("taskRoles", index))
    yield from _environment(config.get("jobEnvs"))
    yield from _mount_errors(config.get("extras"))
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


# Checks a job JSON and finds everything that is wrong with it at once, each thing with its path.

#: One body may hold millions of errors; nobody reads more than this.
MAX_ERRORS = 1000


@dataclass(frozen=True, slots=True)
class SpecError:
    """One thing wrong in a job: where (`$.taskRoles[0].name`) and a sentence about it.

    The path of a missing field is the field's own, that of a duplicate the second one's.
    """

    path: str
    message: Message

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def validate(config: object) -> list[SpecError]:
    """Find everything wrong with a job JSON (job-contract.md, section 1); empty: it is valid.

    Takes any JSON value and never raises.
    """
    differences = () if matches_schema(config) else _differences(config)
    found = _unique(chain(_malformed(config), differences, _job_errors(config)))
    errors = list(islice(found, MAX_ERRORS))
    errors.sort(key=lambda error: _position(error[0]))
    return [SpecError(path_text(path), message) for path, message in errors]


def matches_schema(config: object) -> bool:
    """Return whether a job JSON is known to be as the schema wants it; False: `schema_errors` knows.

    It takes at most a third of the time of `schema_errors` (7 and 23 µs for a small job). What JSON cannot
    have, as keys that are no text, is not looked for: `validation` finds it.
    """
    from fastjsonschema import JsonSchemaValueException  # (not for who only reads the schema)

    try:
        _match()(config)
    except (JsonSchemaValueException, RecursionError):
        return False
    return True


@cache
def _match() -> Callable[[object], object]:
    from fastjsonschema import compile as compiled

    # (it writes into what it reads)
    match: Callable[[object], object] = compiled(
        deepcopy(dict(job_schema())), use_formats=False, use_default=False, detailed_exceptions=False
    )
    return match


def _differences(config: object) -> Iterator[tuple[Path, Message]]:
    put_off_grammar()
    # loads a library that most programs which import this module never use
    from .schema_errors import schema_errors

    return schema_errors(config)


#: Fields that OpenPAI gave a meaning, or that look as if they had one, and that nothing here reads.
WITHOUT_EFFECT: tuple[tuple[str, str], ...] = (
    ("jobEnvs", "paiAzRDMA"),
    ("extras", "gangAllocation"),
    ("extras", "node"),
    ("extras", "nodes"),
    ("extras", "nodeSelector"),
    ("extras", "hivedScheduler"),
    ("extras", "jobStatusChangeNotification"),
    ("extras", "com.microsoft.pai.runtimeplugin"),
)


def warnings(config: object) -> list[SpecError]:
    """Return the fields of a job that are accepted and have no effect; takes any JSON value."""
    if not isinstance(config, dict):
        return []
    found = []
    for part, name in WITHOUT_EFFECT:
        if isinstance(fields := config.get(part), dict) and name in fields:
            told = msg("{field} is kept, and has no effect here.", field=f"{part}.{name}")
            found.append(SpecError(path_text((part, name)), told))
    if "killAllOnCompletedTaskNumber" in config:
        told = msg(
            "killAllOnCompletedTaskNumber is ignored; "
            "use minSucceededTaskCount of a task role to end a job when some of its tasks have succeeded."
        )
        found.append(SpecError(path_text(("killAllOnCompletedTaskNumber",)), told))
    return found


def _unique(errors: Iterator[tuple[Path, Message]]) -> Iterator[tuple[Path, Message]]:
    """Keep the first error of a path: a value that is no number is not also too small."""
    seen: set[Path] = set()
    for path, message in errors:
        if path not in seen:
            seen.add(path)
            yield path, message


def _position(path: Path) -> tuple[tuple[int, str], ...]:
    """Sort errors as a form shows the fields."""
    return tuple(
        (part, "") if isinstance(part, int) else (_field_order().get(part, 10_000), part) for part in path
    )


@cache
def _field_order() -> dict[str, int]:
    schema = job_schema()
    parts = (schema, *schema["$defs"].values())
    names = chain.from_iterable(part.get("properties", {}) for part in parts)
    return {name: number for number, name in enumerate(names)}


# The `JobSpec` of a job JSON, and the job JSON as it is kept.


class InvalidJobError(ValueError):
    """A job JSON is wrong; `errors` holds everything that is wrong with it."""

    def __init__(self, errors: Sequence[SpecError]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = tuple(errors)


def parse_job(config: object) -> JobSpec:
    """Make a job of its JSON, defaults filled in; InvalidJobError with everything that is wrong."""
    return build_spec(checked_config(config))


def checked_config(config: object) -> dict[str, Any]:
    """Return a job JSON as it is kept (`config_of`); InvalidJobError with everything that is wrong."""
    errors = validate(config)
    if errors:
        raise InvalidJobError(errors)
    assert isinstance(config, dict)  # noqa: S101 - narrows the type: nothing else is valid
    return config_of(config)


def sound_part(config: object, errors: Sequence[SpecError]) -> JobSpec | None:
    """Make a job of what is right in a wrong job JSON: what it asks for is known before the whole is right.

    `errors`: all that is wrong with it. None: no task role can be read.
    """
    wrong = {error.path for error in errors}
    # (with what each of them is in)
    wrong |= {path[:end] for path in wrong for end, sign in enumerate(path) if sign in ".["}
    if not isinstance(config, Mapping) or not isinstance(config.get("taskRoles"), list):
        return None

    def right(value: Mapping[str, Any], *path: str | int) -> dict[str, Any]:
        return {name: item for name, item in value.items() if path_text((*path, name)) not in wrong}

    roles = [
        {"name": f"{index}~", "command": "true", **right(role, "taskRoles", index)}
        for index, role in enumerate(config["taskRoles"])
        if isinstance(role, Mapping)
    ]
    job = {"jobName": "job", "image": "image", **right(config), "taskRoles": roles}
    return None if validate(job) else build_spec(config_of(job))


def build_spec(config: Mapping[str, Any]) -> JobSpec:
    """Make a job of its JSON as it is kept (`config_of`)."""
    job = _with_defaults(config, "job")
    return JobSpec(
        name=job["jobName"],
        image=job["image"],
        task_roles=tuple(_task_role(role) for role in job["taskRoles"]),
        auth_file=job["authFile"],
        data_dir=job["dataDir"],
        output_dir=job["outputDir"],
        code_dir=job["codeDir"],
        virtual_cluster=job["virtualCluster"] or "default",
        gpu_type=job["gpuType"] or None,
        retry_count=job["retryCount"],
        envs=job["jobEnvs"],
        extras=job["extras"],
    )


def config_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a valid job JSON as it is kept: as submitted, typed, without `tmp` and without defaults."""
    kept = {name: value for name, value in config.items() if name != "tmp"}
    if not _holds_float(kept):
        # nearly always; then nothing need be looked up in the schema
        return {name: _copied(value) for name, value in kept.items()}
    typed: dict[str, Any] = _typed(kept, job_schema())
    return typed


def _task_role(role: Mapping[str, Any]) -> TaskRole:
    role = _with_defaults(role, "taskRole")
    ports = (_with_defaults(port, "port") for port in role["portList"])
    return TaskRole(
        name=role["name"],
        command=role["command"],
        task_number=role["taskNumber"],
        cpu_number=role["cpuNumber"],
        memory_mb=role["memoryMB"],
        shm_mb=role["shmMB"],
        gpu_number=role["gpuNumber"],
        storage_gb=role.get("storageGB"),
        ports=tuple(PortRequest(port["label"], port["beginAt"], port["portNumber"]) for port in ports),
        min_failed_task_count=role["minFailedTaskCount"],
        min_succeeded_task_count=role["minSucceededTaskCount"],
    )


def _with_defaults(value: Mapping[str, Any], part: str) -> dict[str, Any]:
    return {**_defaults(part), **value}


@cache
def _defaults(part: str) -> Mapping[str, Any]:
    """Return the defaults of a part of the schema by field; nobody changes what is in them."""
    schema = job_schema() if part == "job" else job_schema()["$defs"][part]
    fields = {name: resolve(field) for name, field in schema["properties"].items()}
    return {name: field["default"] for name, field in fields.items() if "default" in field}


def _holds_float(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_float, value.values()))
    if isinstance(value, list):
        return any(map(_holds_float, value))
    return isinstance(value, float)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _typed(value: Any, schema: Mapping[str, Any]) -> Any:
    """Copy a value; a whole number that was written 1.0 becomes 1 where the schema wants an integer."""
    schema = resolve(schema)
    if isinstance(value, dict):
        fields = schema.get("properties", {})
        return {name: _typed(item, fields.get(name, {})) for name, item in value.items()}
    if isinstance(value, list):
        return [_typed(item, schema.get("items", {})) for item in value]
    if isinstance(value, float) and "integer" in schema.get("type", ()):
        return int(value)
    return value
