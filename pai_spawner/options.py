"""Options of a start (`user_options`): checked, from the form or the Hub's API, and their schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from pai_scheduler.i18n import Message

from .messages import msg
from .models import FIELDS, FieldChoice, Offer, OptionProblem, Options, Profile, ProfileField

# What may be chosen as JSON Schema, for programs that start servers over the Hub's REST API.


def options_schema(offer: Offer) -> dict[str, Any]:
    """Return the schema of the options that `parse_options` accepts of somebody; empty: there are none."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The options of a notebook server",
        "anyOf": [_profile(profile, is_default=profile is offer.default) for profile in offer.profiles],
    }


def _profile(profile: Profile, *, is_default: bool) -> dict[str, Any]:
    properties: dict[str, Any] = {"profile": {"const": profile.slug}}
    properties |= {field.name: _field(field, profile) for field in FIELDS}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        **({} if is_default else {"required": ["profile"]}),
    }
    if str(profile.name):
        schema |= {"title": str(profile.name), "description": str(profile.description)}
    if not profile.choices["image"].allows(profile.defaults.image) or not profile.defaults.image:
        schema["required"] = [*schema.get("required", ()), "image"]
    if profile.choices["gpu_type"].allows(""):
        schema |= _a_type_needs_a_number(profile)
    return schema


def _field(field: ProfileField, profile: Profile) -> dict[str, Any]:
    choice = profile.choices[field.name]
    schema = _number(choice) if field.is_number else _text(field, choice)
    return {**schema, "description": str(field.label), "default": getattr(profile.defaults, field.name)}


def _number(choice: FieldChoice) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer", "minimum": choice.least}
    if choice.most:
        schema["maximum"] = choice.most
    if choice.values is not None:
        schema["enum"] = list(choice.values)
    return schema


def _text(field: ProfileField, choice: FieldChoice) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string", "maxLength": 255}
    if choice.values is not None:
        # an empty virtual cluster is the default one
        listed = [*choice.values, *([""] if field.name == "virtual_cluster" else [])]
        schema["anyOf"] = [{"enum": listed}, *({"pattern": f"^(?:{one})$"} for one in choice.patterns)]
    if field.name == "image":
        schema["minLength"] = 1
    return schema


def _a_type_needs_a_number(profile: Profile) -> Mapping[str, Any]:
    some: dict[str, Any] = {"properties": {"gpus": {"minimum": 1}}}
    if not profile.defaults.gpus:
        some["required"] = ["gpus"]
    return {"if": {"properties": {"gpu_type": {"minLength": 1}}, "required": ["gpu_type"]}, "then": some}


# What a person chooses for a server: read from the form or from the Hub's REST API, and checked alike.
#
# Options stored in the Hub's database are used again for the next start, and options posted over REST never
# passed a form. So nothing is trusted here: `parse_options` names everything that is wrong, all at once.

_NAMES = tuple(Options.__dataclass_fields__)
#: how much alike an unknown name and the one that is suggested for it must be
_ALIKE = 0.5


class InvalidOptions(ValueError):
    """At least one option is wrong; `problems` has a sentence for each."""

    def __init__(self, problems: Sequence[OptionProblem]) -> None:
        super().__init__(" ".join(str(problem.message) for problem in problems))
        self.problems = tuple(problems)

    def in_locale(self, locale: str) -> str:
        """Return all sentences in a language."""
        return " ".join(problem.message.in_locale(locale) for problem in self.problems)


def options_from_form(form: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Turn a posted form (lists of strings) into options; nothing is checked yet.

    An empty field is left out, so that its default applies. A form with several profiles has the fields of
    each, as `<profile>.<field>`: those of the chosen one count. What is typed into `other_image` wins over
    the choice in `image`.
    """
    values = {name: given[-1] for name, given in form.items() if given}
    values = {name: value.strip() if isinstance(value, str) else value for name, value in values.items()}
    own = f"{values.get('profile', '')}."
    options: dict[str, Any] = {}
    for name, value in values.items():
        profile, dot, field = name.rpartition(".")
        if name != "_xsrf" and value != "" and (not dot or name.startswith(own)):
            options[field if dot else name] = value
        elif dot and not profile:
            options[name] = value
    if other := options.pop("other_image", None):
        options["image"] = other
    return options


def parse_options(raw: Mapping[str, Any], offer: Offer) -> Options:
    """Check options from anywhere against what is offered; raises `InvalidOptions` with every problem."""
    problems = [OptionProblem(name, _unknown(name)) for name in raw if name not in _NAMES]
    profile = offer.find(raw.get("profile", offer.default.slug)) if offer.profiles else None
    if profile is None:
        problems.append(OptionProblem("profile", _no_profile(raw.get("profile"), offer)))
        raise InvalidOptions(problems)
    read = {field.name: _read(field, raw, profile, problems) for field in FIELDS}
    options = Options(profile=profile.slug, **read)
    if not options.virtual_cluster:
        options = replace(options, virtual_cluster=profile.defaults.virtual_cluster)
    if options.gpu_type and not options.gpus:
        # where a type must be chosen, it says nothing
        if "gpu_type" in raw and profile.choices["gpu_type"].allows(""):
            text = msg("0 × {type}: choose how many GPUs, or no type of GPU.", type=options.gpu_type)
            problems.append(OptionProblem("gpus", text))
        options = replace(options, gpu_type="")
    if problems:
        raise InvalidOptions(problems)
    return options


def _read(
    field: ProfileField, raw: Mapping[str, Any], profile: Profile, problems: list[OptionProblem]
) -> Any:
    """Read one option; what is wrong with it is added to `problems`, and the default is returned."""
    default, choice = getattr(profile.defaults, field.name), profile.choices[field.name]
    if field.name not in raw:
        if field.name == "image" and not default:
            problems.append(OptionProblem("image", msg("Choose an image.")))
        return default
    value = raw[field.name]
    if field.is_number and isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if field.name == "virtual_cluster" and value == "":
        return default
    problem = (
        _number_problem(field, value, choice) if field.is_number else _text_problem(field, value, choice)
    )
    if problem is None:
        return value
    problems.append(OptionProblem(field.name, problem))
    return default


def _number_problem(field: ProfileField, value: object, choice: FieldChoice) -> Message | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return msg("{label} must be a whole number, not “{value}”.", label=field.label, value=value)
    if choice.values is not None and value not in choice.values:
        return _not_among(field, value, choice)
    if value < choice.least:
        return msg(
            "{label} must be at least {least}, not {value}.",
            label=field.label,
            least=choice.least,
            value=value,
        )
    if choice.most and value > choice.most:
        return msg(
            "{label} may be at most {most} here, not {value}.",
            label=field.label,
            most=choice.most,
            value=value,
        )
    return None


def _text_problem(field: ProfileField, value: object, choice: FieldChoice) -> Message | None:
    if not isinstance(value, str) or len(value) > 255 or not value.isprintable():
        return msg("{label} must be a short text.", label=field.label)
    if choice.allows(value):
        return msg("Choose an image.") if field.name == "image" and not value else None
    if field.name != "image":
        return _not_among(field, value, choice)
    known = ", ".join(map(str, choice.values or ())) or "–"
    if not choice.patterns:
        return msg(
            "The image “{image}” is not one of those that are offered: {known}.", image=value, known=known
        )
    return msg(
        "The image “{image}” is not one of those that are offered ({known}), and its name has none of the "
        "allowed forms: {patterns}.",
        image=value,
        known=known,
        patterns=", ".join(choice.patterns),
    )


def _not_among(field: ProfileField, value: object, choice: FieldChoice) -> Message:
    known = ", ".join(str(one) if one != "" else "“”" for one in choice.values or ())
    return msg("{label} may be {known}, not “{value}”.", label=field.label, known=known, value=value)


def _unknown(name: str) -> Message:
    known = ", ".join(_NAMES)
    nearest = get_close_matches(str(name).lower(), _NAMES, n=1, cutoff=_ALIKE)
    if not nearest:
        return msg("There is no option “{name}”; the options are {known}.", name=name, known=known)
    return msg(
        "There is no option “{name}”; did you mean “{nearest}”? The options are {known}.",
        name=name,
        nearest=nearest[0],
        known=known,
    )


def _no_profile(slug: object, offer: Offer) -> Message:
    if not offer.profiles:
        return msg("No profile of this Hub is open to you. Ask an administrator to add you to a group.")
    known = ", ".join(profile.slug for profile in offer.profiles)
    if known:
        return msg("The profile “{slug}” is not one of those open to you: {known}.", slug=slug, known=known)
    return msg("This Hub has no profiles, so there is no “{slug}”.", slug=slug)
