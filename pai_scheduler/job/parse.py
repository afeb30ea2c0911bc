"""`JobSpec` of a job JSON or of a url-encoded form, and the job JSON as it is kept."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from pai_scheduler.i18n import Message, msg

from .json_path import path_text, quoted
from .json_text import JsonTextError as JsonTextError
from .json_text import loads_jsonc as loads_jsonc
from .schema import job_schema, resolve
from .spec import JobSpec, PortRequest, TaskRole
from .validation import SpecError, validate

# Makes a `JobSpec` of a job JSON, and the job JSON as it is kept.


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
        task_roles=tuple(_role(role) for role in job["taskRoles"]),
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


def _role(role: Mapping[str, Any]) -> TaskRole:
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


# Reads a job from a url-encoded body with nested keys: `taskRoles[0][cpuNumber]=1`, as jQuery writes it.
#
# Everything is text there: numbers are typed by the job schema, null is the empty text where the schema
# allows null, and empty objects and lists are not there at all.

#: Fields of a body at most.
MAX_FIELDS = 100_000
_MAX_DEPTH = 32
_KEY = re.compile(r"(?P<first>[^\[\]]+)(?P<rest>(?:\[[^\[\]]*\])*)")
_PART = re.compile(r"\[([^\[\]]*)\]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")

_Tree = dict[str, Any]


def loads_urlencoded(body: str) -> dict[str, Any]:
    """Read a job JSON from a url-encoded body; InvalidJobError where its keys make no sense.

    What comes back is to be validated like any other job JSON.
    """
    try:
        pairs = parse_qsl(
            body, keep_blank_values=True, strict_parsing=False, errors="strict", max_num_fields=MAX_FIELDS
        )
    except UnicodeDecodeError:
        raise _invalid("$", msg("The body is not valid UTF-8.")) from None
    except ValueError:
        raise _invalid("$", msg("The body has more than {limit} fields.", limit=MAX_FIELDS)) from None
    tree: _Tree = {}
    for key, value in pairs:
        _put(tree, key, value)
    job: dict[str, Any] = _typed_form_value(tree, job_schema())
    return job


def _put(tree: _Tree, key: str, value: str) -> None:
    match = _KEY.fullmatch(key)
    parts = [match["first"], *_PART.findall(match["rest"])] if match else []
    if not 0 < len(parts) <= _MAX_DEPTH:
        raise _invalid("$", msg("{key} is no field such as taskRoles[0][name].", key=quoted(key)))
    for position, part in enumerate(parts):
        # "list[]=a&list[]=b": each one is the next entry
        part = part or str(len(tree))
        if position == len(parts) - 1:
            if part in tree:
                raise _invalid(path_text(parts), msg("{key} is there twice.", key=quoted(key)))
            tree[part] = value
            return
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise _invalid(path_text(parts), msg("{key} is both a value and an object.", key=quoted(key)))


def _typed_form_value(value: Any, schema: Mapping[str, Any]) -> Any:
    schema = resolve(schema)
    wanted = schema.get("type")
    if isinstance(value, str):
        return _typed_text(value, (wanted,) if isinstance(wanted, str) else wanted or ())
    if _is_list(value) if wanted is None else wanted == "array":
        return _list(value, schema.get("items", {}))
    fields, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
    return {name: _typed_form_value(item, fields.get(name, others)) for name, item in value.items()}


def _typed_text(text: str, types: tuple[str, ...]) -> Any:
    if "integer" in types:
        if text == "" and "null" in types:
            return None
        if _INTEGER.fullmatch(text):
            return int(text)
    return text


def _is_list(tree: _Tree) -> bool:
    """Return whether keys are the numbers of a list; only asked where the schema does not say."""
    return all(key == str(number) for number, key in enumerate(tree))


def _list(tree: _Tree, items: Mapping[str, Any]) -> Any:
    """Make a list in the order of the indices; without any, validation will say that it is no list."""
    if not all(key.isdecimal() and key.isascii() and len(key) < 10 for key in tree):
        return tree
    return [_typed_form_value(tree[key], items) for key in sorted(tree, key=int)]


def _invalid(path: str, message: Message) -> InvalidJobError:
    return InvalidJobError([SpecError(path, message)])
