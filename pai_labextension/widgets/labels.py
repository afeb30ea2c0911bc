"""Labels, help and defaults of the form's inputs, as the job's JSON Schema has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pai_scheduler.job.json_path import path_text
from pai_scheduler.job.schema import job_schema, resolve

from .json_edit import Path
from .language import Language

#: The schema's "as large as a machine can count": no limit that a person has to know.
_NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Label:
    """Title, default value and help text of an input."""

    title: str
    help: str
    default: str


def job_label(say: Language, name: str) -> Label:
    """Describe a field of the job itself."""
    return _label(say, job_schema()["properties"][name])


def role_label(say: Language, name: str) -> Label:
    """Describe a field of a task role."""
    return _label(say, job_schema()["$defs"]["taskRole"]["properties"][name])


def extras_label(say: Language, name: str) -> Label:
    """Describe one of the `extras` that the scheduler reads."""
    return _label(say, job_schema()["properties"]["extras"]["properties"][name])


def port_label(say: Language, name: str) -> Label:
    """Describe a field of a port range."""
    return _label(say, job_schema()["$defs"]["port"]["properties"][name])


def place(say: Language, path: Path) -> str:
    """Name an input within a sentence: "image", "command of task role 1"."""
    match path:
        case (str(name),):
            return _within(job_label(say, name).title)
        case ("taskRoles", int(role), str(name)):
            field = _within(role_label(say, name).title)
            return say("{field} of task role {number}", field=field, number=role + 1)
        case ("taskRoles", int(role), "portList", int(port), str(name)):
            return say(
                "{field} of port range {port} of task role {number}",
                field=_within(port_label(say, name).title),
                port=port + 1,
                number=role + 1,
            )
    raise ValueError(f"no input of the form: {path_text(path)}")


def _within(title: str) -> str:
    return title[:1].lower() + title[1:]


def _label(say: Language, schema: Mapping[str, Any]) -> Label:
    schema = resolve(schema)
    least, most = schema.get("minimum"), schema.get("maximum")
    limits = []
    if least is not None:
        limits.append(say("At least {least}.", least=least))
    if most is not None and most < _NO_LIMIT:
        limits.append(say("At most {most}.", most=most))
    default = schema.get("default")
    return Label(
        title=say.term(schema["title"]),
        help=" ".join([say.term(schema["description"]), *limits]),
        default=str(default) if isinstance(default, int | str) else "",
    )
