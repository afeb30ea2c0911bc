"""The fields of a job, read out of its JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pai_scheduler.i18n import translate
from pai_scheduler.job import validation
from pai_scheduler.job.schema import job_schema, resolve
from pai_scheduler.job.spec import DEFAULT_PRIORITY, STANDARD_PORTS
from pai_scheduler.job.validation import WITHOUT_EFFECT

EXAMPLES = Path(__file__).parent.parent / "examples"
#: What fits no 32-bit integer is no limit that anybody meets.
_NO_LIMIT = 2**31 - 1

#: How limits are said.
_WORDS = {
    "en": {
        "required": "required",
        "minLength": "not empty",
        "maxLength": "at most {} characters",
        "minItems": "at least {}",
        "maxItems": "at most {}",
        "maxProperties": "at most {}",
        "not": "not {}",
        "or": " or ",
        "array": "list of objects",
        "strings": "list of strings",
        "strings or objects": "list of strings or objects",
        "comma": ", ",
        "anything": "anything",
    },
    "zh_CN": {
        "required": "必填",
        "minLength": "不能为空",
        "maxLength": "最多 {} 个字符",
        "minItems": "至少 {} 项",
        "maxItems": "最多 {} 项",
        "maxProperties": "最多 {} 项",
        "not": "不能是 {}",
        "or": "或",
        "array": "对象的列表",
        "strings": "字符串的列表",
        "strings or objects": "字符串或对象的列表",
        "comma": "，",
        "anything": "任意",
    },
}


@dataclass(frozen=True)
class Field:
    """One field as the page shows it; every text is in the page's language."""

    name: str
    type: str
    default: str
    limits: str
    description: str


def facts(locale: str) -> Mapping[str, Any]:
    """Return what the page about the job JSON says in facts."""
    schema = job_schema()
    return {
        "job": list(_fields(schema, locale)),
        "task_role": list(_fields(schema["$defs"]["taskRole"], locale)),
        "port": list(_fields(schema["$defs"]["port"], locale)),
        "after": list(_fields(schema["$defs"]["after"], locale)),
        "mount": list(_fields(schema["$defs"]["mount"], locale)),
        "notify": list(_fields(schema["$defs"]["notify"], locale)),
        "extras": list(_fields(schema["properties"]["extras"], locale)),
        "minimal": (EXAMPLES / "minimal.json").read_text(encoding="utf-8").strip(),
        "full": (EXAMPLES / "full.json").read_text(encoding="utf-8").strip(),
        "without_effect": [f"`{part}.{name}`" for part, name in WITHOUT_EFFECT],
        "max_tasks": validation.MAX_TASKS,
        "max_argument_kib": (validation.MAX_ARGUMENT_BYTES + 1) // 1024,
        "max_environment_kib": validation.MAX_ENVIRONMENT_BYTES // 1024,
        "standard_ports": STANDARD_PORTS,
        "default_priority": DEFAULT_PRIORITY,
    }


def _fields(schema: Mapping[str, Any], locale: str) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, part in schema["properties"].items():
        field = resolve(part)
        yield Field(
            name,
            _type(field, locale),
            _default(name, required, field, locale),
            _WORDS[locale]["comma"].join(_limits(field, locale)),
            translate(field["description"], locale),
        )


def _type(field: Mapping[str, Any], locale: str) -> str:
    words, kind = _WORDS[locale], field.get("type", "anything")
    if kind == "array":
        kinds = {"string": "strings", str(["string", "object"]): "strings or objects"}
        return words[kinds.get(str(resolve(field["items"]).get("type")), "array")]
    if isinstance(kind, list):
        return words["or"].join(kind)
    return words["anything"] if kind == "anything" else str(kind)


def _default(name: str, required: Sequence[str], field: Mapping[str, Any], locale: str) -> str:
    if name in required:
        return f"**{_WORDS[locale]['required']}**"
    if "default" not in field:
        return ""
    return f"`{json.dumps(field['default'])}`"


def _limits(field: Mapping[str, Any], locale: str) -> Iterator[str]:
    words = _WORDS[locale]
    low, high = field.get("minimum"), field.get("maximum")
    if low is not None and high is not None and high < _NO_LIMIT:
        yield f"{low:,}–{high:,}"
    elif low is not None:
        yield f"≥ {low}"
    if "pattern" in field and field["pattern"] not in (r"^\S*$", r"\S"):
        yield f"`{field['pattern']}`"
    if "not" in field:
        yield words["not"].format(words["or"].join(f"`{value}`" for value in field["not"]["enum"]))
    if "enum" in field:
        yield words["or"].join(f"`{value}`" for value in field["enum"])
    if "minLength" in field:
        yield words["minLength"]
    for keyword in ("maxLength", "minItems", "maxItems", "maxProperties"):
        if keyword in field:
            yield words[keyword].format(f"{field[keyword]:,}")
