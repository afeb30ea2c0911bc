"""Labels, help and defaults of the form's inputs, as the job's JSON Schema has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pai_scheduler.job.schema import job_schema, resolve

from .language import Language

#: The schema's "as large as a machine can count": no limit that a person has to know.
_NO_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Label:
    """What stands beside and inside an input, and what it says when asked."""

    title: str
    help: str
    default: str


def job_label(say: Language, name: str) -> Label:
    """Describe a field of the job itself."""
    return _label(say, job_schema()["properties"][name])


def role_label(say: Language, name: str) -> Label:
    """Describe a field of a task role."""
    return _label(say, job_schema()["$defs"]["taskRole"]["properties"][name])


def port_label(say: Language, name: str) -> Label:
    """Describe a field of a port range."""
    return _label(say, job_schema()["$defs"]["port"]["properties"][name])


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
