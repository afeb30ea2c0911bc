"""Jobs at random: valid ones, nearly valid ones, and any JSON at all."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from pai_scheduler.job.schema import job_schema, resolve

any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)

_SPECIAL = {
    "jobName": st.from_regex(r"\A[A-Za-z0-9_~-]{1,20}\Z"),
    "name": st.from_regex(r"\A[A-Za-z0-9_~]{1,10}\Z"),
    "label": st.from_regex(r"\A[A-Za-z0-9._~]{1,10}\Z"),
    "image": st.from_regex(r"\A[a-z0-9/:.]{1,20}\Z"),
    "command": st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1).filter(str.strip),
    "jobEnvs": st.dictionaries(
        st.text(st.characters(codec="utf-8", exclude_characters="\0="), min_size=1, max_size=8),
        st.none() | st.booleans() | st.integers(-(2**64), 2**64) | st.text("ab $é\n"),
        max_size=4,
    ),
    "extras": st.dictionaries(st.text("abc"), st.booleans() | st.text("xyz"), max_size=3),
    "taskNumber": st.integers(10, 20),
    "minFailedTaskCount": st.none() | st.integers(1, 10),
    "minSucceededTaskCount": st.none() | st.integers(1, 10),
    "memoryMB": st.integers(1000, 2000) | st.integers(1000, 2000).map(float),
    "shmMB": st.integers(0, 100),
    "beginAt": st.just(0),
}


def _of(schema: Any, name: str, wild: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return values for a field: right ones, and now and then whatever `wild` gives."""
    schema = resolve(schema)
    if name in _SPECIAL:
        good = _SPECIAL[name]
    elif "properties" in schema:
        good = _object(schema, wild)
    elif schema.get("type") == "array":
        key = "label" if name == "portList" else "name"
        good = st.lists(
            _of(schema["items"], "", wild),
            min_size=schema.get("minItems", 0),
            max_size=3,
            unique_by=lambda item: str(item.get(key)) if isinstance(item, dict) else str(item),
        )
    elif schema.get("type") == "integer":
        good = st.integers(schema["minimum"], min(schema["maximum"], 100))
    elif schema.get("type") == "string":
        good = st.text("abc/$_é{}", max_size=10)
    else:
        good = st.booleans()
    return good | wild


def _object(schema: Any, wild: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    values = {name: _of(field, name, wild) for name, field in schema["properties"].items()}
    required = {name: values.pop(name) for name in schema["required"]}
    return st.fixed_dictionaries(required, optional=values)


def _consistent(job: dict[str, Any]) -> dict[str, Any]:
    """Leave out the counts that a role with the default of one task cannot have."""
    for role in job["taskRoles"]:
        if "taskNumber" not in role:
            role.pop("minFailedTaskCount", None)
            role.pop("minSucceededTaskCount", None)
    return job


jobs = _object(job_schema(), st.nothing()).map(_consistent)
nearly_jobs = _object(job_schema(), any_json)
