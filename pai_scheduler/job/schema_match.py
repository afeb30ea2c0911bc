"""Tells fast whether a job JSON is as the schema wants it, as nearly all that are submitted are.

`schema_errors` finds what is wrong, and takes much longer.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .schema import job_schema


def matches_schema(config: object) -> bool:
    """Return whether a job JSON is known to be as the schema wants it; False: `schema_errors` knows.

    What JSON cannot have, as keys that are no text, is not looked for: `wellformed` finds it.
    """
    return _job().holds(config)


class _Schema:
    def __init__(self, schema: dict[str, Any]) -> None:
        # (most programs that import this module check no job)
        import fastjsonschema

        # its references are to its own parts, which the library finds where the schema has no address
        del schema["$id"]
        self._check = fastjsonschema.compile(schema, use_default=False)
        self._refusal = fastjsonschema.JsonSchemaException

    def holds(self, config: object) -> bool:
        try:
            self._check(config)
        except self._refusal:
            return False
        return True


@cache
def _job() -> _Schema:
    return _Schema({**job_schema()})
