"""Profiles: choices that an administrator prepares (`c.PAISpawner.profiles`), read and checked at once.

Their form is `profiles.schema.json`. Whatever is wrong is said with its place, before anybody logs in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from pai_scheduler.job.lazy_grammar import put_off_grammar

from .messages import Translated
from .options import (
    FIELDS,
    FieldChoice,
    HubLimits,
    InvalidOptions,
    Offer,
    Options,
    Profile,
    ProfileField,
    ProfileService,
    parse_options,
)

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

SETTING = "c.PAISpawner.profiles"
_LONGEST_SLUG = 40


class InvalidProfiles(ValueError):
    """The profiles cannot be used; there is a line for each thing that is wrong."""


def read_profiles(profiles: Sequence[Mapping[str, Any]], policy: HubLimits) -> tuple[Profile, ...]:
    """Return the profiles that a setting describes, within the Hub's limits; raises `InvalidProfiles`."""
    if lines := sorted(set(_form_errors(profiles))):
        raise InvalidProfiles("\n".join(lines))
    found: list[Profile] = []
    wrong: list[str] = []
    for number, raw in enumerate(profiles):
        place = f"{SETTING}[{number}]"
        profile = _profile(raw, policy)
        if any(other.slug == profile.slug for other in found):
            wrong.append(f"{place}: there are two with the slug “{profile.slug}”; give one of them another.")
        wrong += (f"{place}.{line}" for line in _pattern_errors(raw))
        if profile.service is not None and not profile.service.has_address:
            wrong.append(
                f"{place}.service.command: it must say where the program listens, "
                "with {port} or {unix_socket}."
            )
        found.append(profile)
        try:
            parse_options(profile.defaults.to_json(), Offer((profile,)))
        except InvalidOptions as error:
            wrong.append(f"{place}.defaults: what it begins with may not be chosen in it. {error}")
        except re.error:
            pass  # said already
    if wrong:
        raise InvalidProfiles("\n".join(wrong))
    return tuple(found)


def offer_to(profiles: Collection[Profile], groups: Collection[str], policy: HubLimits) -> Offer:
    """Return what somebody in some groups may choose; without any profiles, whatever the Hub allows."""
    if not profiles:
        return Offer((policy.profile,), policy.image_names)
    own = set(groups)
    open_ones = (profile for profile in profiles if not profile.groups or profile.groups & own)
    return Offer(tuple(open_ones), policy.image_names)


def _profile(raw: Mapping[str, Any], policy: HubLimits) -> Profile:
    name, allowed = Translated.read(raw["display_name"]), raw.get("choices", {})
    slug = raw.get("slug") or _slug(str(name))
    given = dict(raw.get("defaults", {}))
    if "image" in given:
        given["image"] = policy.images.get(given["image"], given["image"])
    defaults: Options = replace(policy.defaults, **{**_first_values(allowed, policy), **given}, profile=slug)
    choices = {
        field.name: _choice(field, allowed.get(field.name), getattr(defaults, field.name), policy)
        for field in FIELDS
    }
    if patterns := raw.get("allowed_images"):
        choices["image"] = replace(choices["image"], patterns=tuple(patterns))
    return Profile(
        slug,
        name,
        Translated.read(raw.get("description", "")),
        defaults,
        choices,
        frozenset(raw.get("groups", ())),
        raw.get("default", False),
        ProfileService.read(raw["service"], name) if "service" in raw else None,
        tuple(raw["shared_folders"]) if "shared_folders" in raw else None,
    )


def _first_values(allowed: Mapping[str, Any], policy: HubLimits) -> dict[str, Any]:
    """Return what fields begin with that may be chosen, where nothing else is said.

    Of a list its first, else what the Hub begins with, or what is nearest to that.
    """
    found: dict[str, Any] = {}
    for name, choice in allowed.items():
        if isinstance(choice, list):
            found[name] = policy.images.get(choice[0], choice[0]) if name == "image" else choice[0]
        elif isinstance(choice, dict):
            least, most = choice.get("min", 0), choice.get("max", 0)
            count = max(least, getattr(policy.defaults, name))
            found[name] = min(count, most) if most else count
            if name == "run_minutes":
                # no limit is beyond every limit
                found[name] = count or most
    return found


def _choice(field: ProfileField, allowed: Any, default: str | int, policy: HubLimits) -> FieldChoice:
    whole = policy.choices[field.name]
    if allowed is None:
        return FieldChoice((default,), whole.least, whole.most)
    if allowed is True:
        return whole
    if isinstance(allowed, list):
        values = [policy.images.get(value, value) if field.name == "image" else value for value in allowed]
        return FieldChoice(tuple(values), whole.least, whole.most)
    most = min((limit for limit in (whole.most, allowed.get("max", 0)) if limit), default=0)
    least = max(whole.least, allowed.get("min", 0))
    # a time limit of 0 is none, which is beyond every limit
    return FieldChoice(None, max(1, least) if field.name == "run_minutes" and most else least, most)


def _slug(name: str) -> str:
    """Make a slug of a name; one in Chinese letters has none of its own, so a number of it stands there."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:_LONGEST_SLUG].strip("-")
    if slug and name.isascii():
        return slug
    digits = "".join(f"{ord(letter):x}" for letter in name if not letter.isascii())[:16]
    return f"{slug[:20]}-{digits}".strip("-")


def _pattern_errors(raw: Mapping[str, Any]) -> Iterator[str]:
    for number, pattern in enumerate(raw.get("allowed_images", ())):
        try:
            re.compile(pattern)
        except re.error as error:
            yield f"allowed_images[{number}]: “{pattern}” is no regular expression: {error}."


def _form_errors(profiles: object) -> Iterator[str]:
    for error in _validator().iter_errors(profiles):
        yield from _in_words(error)


def _in_words(error: ValidationError) -> Iterator[str]:
    schema: Any = error.schema
    given: Any = error.instance
    asked: Any = error.validator_value
    place = SETTING + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path
    )
    if error.validator == "additionalProperties":
        known = list(schema["properties"])
        for name in given.keys() - known:
            nearest = get_close_matches(str(name).lower(), known, n=1)
            hint = f"; did you mean “{nearest[0]}”?" if nearest else "."
            yield f"{place}: there is no “{name}” here{hint} Known are {', '.join(known)}."
    elif error.validator == "required":
        missing = [name for name in asked if name not in given]
        yield f"{place}: “{missing[0]}” is missing."
    else:
        yield f"{place}: {given!r} is wrong; it must be {_expected(error)}."


def _expected(error: ValidationError) -> str:
    """Return what should stand there: the innermost description on the way to what the schema says of it."""
    root: Any = _validator().schema
    schema = root
    described = str(schema["description"])
    for part in error.absolute_schema_path:
        if isinstance(schema, Mapping) and part not in schema:
            # a reference to a definition leaves no trace in the path
            schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
            described = str(schema.get("description", described))
        schema = schema[part]
        if isinstance(schema, Mapping):
            described = str(schema.get("description", described))
    return described


@cache
def _validator() -> Draft202012Validator:
    text = (resources.files("pai_spawner") / "profiles.schema.json").read_text(encoding="utf-8")
    schema = json.loads(text)
    put_off_grammar()
    # it takes a moment to load
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
