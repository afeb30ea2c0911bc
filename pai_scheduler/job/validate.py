"""Checks a job JSON and finds everything that is wrong with it at once, each thing with its path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice

from pai_scheduler.i18n import Message, msg

from .late_grammar import put_off_grammar
from .paths import Path, path_text
from .rules import job_errors
from .schema import job_schema
from .schema_match import matches_schema
from .wellformed import malformed

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
    found = _unique(chain(malformed(config), differences, job_errors(config)))
    errors = list(islice(found, MAX_ERRORS))
    errors.sort(key=lambda error: _position(error[0]))
    return [SpecError(path_text(path), message) for path, message in errors]


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
