"""The job's JSON Schema with its titles and descriptions in the reader's language."""

from __future__ import annotations

from typing import Any

from pai_scheduler.i18n import translate
from pai_scheduler.job.schema import job_schema

_WORDS = ("title", "description")


def schema_in(locale: str) -> dict[str, Any]:
    """Return the schema in a language."""
    schema: dict[str, Any] = _translated(job_schema(), locale)
    return schema


def _translated(part: Any, locale: str) -> Any:
    if isinstance(part, list):
        return [_translated(item, locale) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: translate(value, locale)
        if key in _WORDS and isinstance(value, str)
        else _translated(value, locale)
        for key, value in part.items()
    }
