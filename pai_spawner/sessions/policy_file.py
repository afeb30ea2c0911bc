"""The file of the sessions' policy (YAML, checked by `schema.json`), read again when it has changed."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

import yaml

from pai_scheduler.i18n import Message
from pai_scheduler.job.lazy_grammar import put_off_grammar

from ..messages import msg
from .policy import Condition, GroupLimit, Hours, Rule, SessionPolicy, parse_hours

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


DEFAULT_EVERY = timedelta(minutes=1)
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATIONS = {
    "idleAfter": "idle_after",
    "warnBefore": "warn_before",
    "lifetime": "lifetime",
    "extendBy": "extend_by",
}
_WITHOUT = {"gpuBelow": "gpu_below", "cpuBelow": "cpu_below", "sessions": "sessions", "gpus": "gpus"}
_AS_IT_IS = {
    "busyCounts": "busy_counts",
    "connectionsCount": "connections_count",
    "terminalsCount": "terminals_count",
    "extendTimes": "extend_times",
}


class PolicyError(Exception):
    """The file cannot be read, or says what makes no sense; `message` says what, where, and what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """The content of the policy file: the policy, and the interval between checks of the sessions."""

    policy: SessionPolicy
    every: timedelta = DEFAULT_EVERY


@cache
def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of the file."""
    text = resources.files(__package__).joinpath("schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def read_policy(path: Path) -> PolicyFile:
    """Read the file; PolicyError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PolicyError(
            msg("The sessions file {file} cannot be read: {reason}.", file=path, reason=reason)
        ) from None
    try:
        return parse_policy(yaml.safe_load(text))
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise PolicyError(
            msg("The sessions file {file} is not YAML: {reason}", file=path, reason=reason)
        ) from None
    except PolicyError as error:
        raise PolicyError(
            msg("The sessions file {file} is wrong: {reason}", file=path, reason=error.message)
        ) from None


def parse_policy(document: object) -> PolicyFile:
    """Check what was read, and make a policy of it; PolicyError with a place and a sentence."""
    document = {} if document is None else document
    put_off_grammar()
    # it takes a moment to load
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    wrong = best_match(Draft202012Validator(policy_schema()).iter_errors(document))
    if wrong is not None:
        raise PolicyError(_sentence(wrong))
    assert isinstance(document, Mapping)  # noqa: S101 - the schema says so
    return PolicyFile(
        SessionPolicy(
            tuple(_rule(rule) for rule in document.get("rules", ())),
            {
                name: GroupLimit(_number(limit.get("sessions")), _number(limit.get("gpus")))
                for name, limit in document.get("groups", {}).items()
            },
            _zone(document.get("timeZone")),
        ),
        _duration(document["every"]) if "every" in document else DEFAULT_EVERY,
    )


def _zone(name: str | None) -> ZoneInfo | None:
    if name is None:
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise PolicyError(
            msg("timeZone: there is no time zone {name}; an example is Asia/Shanghai.", name=name)
        ) from None


def _rule(rule: Mapping[str, Any]) -> Rule:
    when = rule.get("when", {})
    sets: dict[str, Any] = {}
    for name, value in rule.items():
        if name in _DURATIONS:
            sets[_DURATIONS[name]] = None if value == "never" else _duration(value)
        elif name in _WITHOUT:
            sets[_WITHOUT[name]] = None if isinstance(value, str) else value
        elif name in _AS_IT_IS:
            sets[_AS_IT_IS[name]] = value
        elif name == "hours":
            sets["hours"] = () if value == "always" else _hours(value)
    return Rule(
        Condition(
            users=_names(when, "users"),
            groups=_names(when, "groups"),
            profiles=_names(when, "profiles"),
            gpus=when.get("gpus"),
            hours=_hours(when["hours"]) if "hours" in when else None,
            days=_names(when, "days"),
        ),
        sets,
    )


def _names(when: Mapping[str, Any], name: str) -> frozenset[str] | None:
    return frozenset(when[name]) if name in when else None


def _hours(value: str | list[str]) -> tuple[Hours, ...]:
    return tuple(parse_hours(part) for part in ([value] if isinstance(value, str) else value))


def _number(value: int | str | None) -> int | None:
    return value if isinstance(value, int) else None


def _duration(text: str) -> timedelta:
    parts = re.findall(r"(\d+)([smhd])", text)
    return sum((timedelta(**{_UNITS[unit]: int(number)}) for number, unit in parts), timedelta())


def _properties(schema: Any) -> Mapping[str, Any]:
    """Return what may stand in an object."""
    properties: Mapping[str, Any] = schema["properties"]
    return properties


def _sentence(error: ValidationError) -> Message:
    """Say what is wrong, where, and what may stand there."""
    place = error.json_path.removeprefix("$").removeprefix(".") or "."
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping):
        known = list(_properties(error.schema))
        unknown = next(name for name in error.instance if name not in known)
        nearest = get_close_matches(str(unknown), known, 1)
        if nearest:
            return msg(
                "{place}: {name} is not known here. Did you mean {nearest}?",
                place=place,
                name=unknown,
                nearest=nearest[0],
            )
        return msg(
            "{place}: {name} is not known here. Known are: {known}.",
            place=place,
            name=unknown,
            known=", ".join(known),
        )
    value = json.dumps(error.instance, ensure_ascii=False, default=str)
    found: ValidationError | None = error
    while found is not None:
        if isinstance(found.schema, Mapping) and "description" in found.schema:
            return msg(
                "{place}: {value} does not fit. What may stand here: {what}.",
                place=place,
                value=value,
                what=found.schema["description"],
            )
        found = cast("ValidationError | None", found.parent)
    return msg("{place}: {reason}", place=place, reason=error.message)


_log = logging.getLogger(__name__)


class PolicySource:
    """The current policy file; one that becomes invalid changes nothing. PolicyError if invalid at first."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = self._seen()
        self.now = read_policy(path)

    def refresh(self) -> PolicyFile:
        """Return what holds now."""
        if (stamp := self._seen()) != self._stamp:
            self._stamp = stamp
            try:
                self.now = read_policy(self._path)
                _log.info("%s was read again", self._path)
            except PolicyError as error:
                _log.error("what held before goes on to hold: %s", error)
        return self.now

    def _seen(self) -> tuple[int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size
