"""`JobSpec` of a job JSON, and the job JSON as it is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from .json_path import path_text
from .schema import job_schema, resolve
from .spec import JobSpec, PortRequest, TaskRole
from .validation import SpecError, validate


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
