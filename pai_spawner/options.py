"""Options of a start (`user_options`): checked, from the form or the Hub's API, and their schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from pai_scheduler.i18n import Message

from .messages import Translated, msg

# Profiles and what may be chosen of them, as types; the web programs that profiles have.


# Services beyond Jupyter: a web program that a profile names, served at the server's address by its login.
#
# The server's extension (`pai_labextension/webapp`) starts the program with the server, watches over it and
# passes on what the server's own authentication lets through. Here is only what it is told for that.

#: Where the service is, below the address of its server.
PATH = "pai-service"
#: What JupyterHub opens first in such a server (`default_url`).
URL = f"/{PATH}/"
#: the environment variable in which JupyterHub tells a server what it opens first
OPENS_FIRST = "JUPYTERHUB_DEFAULT_URL"

_ADDRESSES = ("{port}", "{unix_socket}")
#: Seconds until a program that does not answer is given up.
_START_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ProfileService:
    """A web program of a profile.

    `command`: its words, with `{port}`, `{unix_socket}`, `{base_url}` and `{prefix}` in them;
    `strip_prefix`: whether it gets paths without the address at which it is served; `start_seconds`: how long
    it may take until it answers for the first time.
    """

    title: Translated
    command: tuple[str, ...]
    strip_prefix: bool = True
    start_seconds: int = _START_SECONDS

    @classmethod
    def read(cls, raw: Mapping[str, Any], title: Translated) -> ProfileService:
        """Read one that has the form of `profiles.schema.json`; `title`: what it is called by default."""
        return cls(
            Translated.read(raw["title"]) if "title" in raw else title,
            tuple(raw["command"]),
            raw.get("strip_prefix", True),
            raw.get("start_seconds", _START_SECONDS),
        )

    @property
    def has_address(self) -> bool:
        """Return whether the command says where the program listens."""
        return any(address in word for word in self.command for address in _ADDRESSES)

    def arguments(self, locale: str) -> list[str]:
        """Return the options of `pai-singleuser` with which it has the service, titled in a language."""
        told = {
            "title": self.title.in_locale(locale),
            "command": list(self.command),
            "strip_prefix": self.strip_prefix,
            "start_seconds": self.start_seconds,
        }
        # a Python literal: traitlets reads a dictionary on a command line so
        return [f"--PAIExtension.service={told!r}"]


# What there is to choose for a server: its fields, and what each of them may be in a profile.

#: What a single-user server and a kernel need to start at all.
LEAST_MEMORY_MB = 256


@dataclass(frozen=True, slots=True)
class ProfileField:
    """One thing to choose; `label` names it in a sentence. `least`: below that it makes no sense."""

    name: str
    label: Message
    is_number: bool = False
    least: int = 0


FIELDS = (
    ProfileField("image", msg("The image")),
    ProfileField("gpu_type", msg("The GPU type")),
    ProfileField("gpus", msg("The number of GPUs"), True),
    ProfileField("cpus", msg("The number of CPUs"), True, 1),
    ProfileField("memory_mb", msg("The memory (MB)"), True, LEAST_MEMORY_MB),
    ProfileField("shm_mb", msg("The shared memory (MB)"), True, 1),
    ProfileField("virtual_cluster", msg("The virtual cluster")),
    ProfileField("run_minutes", msg("The time limit (minutes)"), True),
)


@dataclass(frozen=True, slots=True)
class Options:
    """A person's choice. Memory in MB; `gpu_type` empty: any type; `run_minutes` 0: no limit of its own.

    `profile`: the slug of the profile in which it was chosen; empty where the Hub has none.
    """

    profile: str
    image: str
    gpu_type: str
    gpus: int
    cpus: int
    memory_mb: int
    shm_mb: int
    virtual_cluster: str
    run_minutes: int

    def to_json(self) -> dict[str, Any]:
        """Return them as they are stored as the server's `user_options`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FieldChoice:
    """The allowed values of one field. `values`: these; None: anything from `least` to `most` (0: no limit).

    A text that is not among `values` is allowed where it has the form of one of `patterns` as a whole.
    """

    values: tuple[str | int, ...] | None = None
    least: int = 0
    most: int = 0
    patterns: tuple[str, ...] = ()

    @property
    def is_fixed(self) -> bool:
        """Return whether there is nothing to choose."""
        return self.values is not None and len(self.values) == 1 and not self.patterns

    def allows(self, text: str) -> bool:
        """Return whether a text may be chosen."""
        if self.values is None or text in self.values:
            return True
        return any(re.fullmatch(pattern, text) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Profile:
    """A choice that an administrator has prepared. `groups`: whom it is open to; empty: everybody.

    `choices` has each field; what is not to be chosen has one value, that of `defaults`. `service`: what
    opens in such a server instead of JupyterLab. `shared_folders`: which of the scheduler's such a server
    has; None: as the Hub's settings say.
    """

    slug: str
    name: Translated
    description: Translated
    defaults: Options
    choices: Mapping[str, FieldChoice]
    groups: frozenset[str] = frozenset()
    is_default: bool = False
    service: ProfileService | None = None
    shared_folders: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Offer:
    """The profiles open to one user. `image_names`: display names of images in the form."""

    profiles: tuple[Profile, ...]
    image_names: Mapping[str, str] = field(default_factory=dict)

    @property
    def default(self) -> Profile:
        """Return the profile of somebody who chose none; there must be one."""
        return next((profile for profile in self.profiles if profile.is_default), self.profiles[0])

    def find(self, slug: object) -> Profile | None:
        """Find a profile; None where it is not open."""
        return next((profile for profile in self.profiles if profile.slug == slug), None)


@dataclass(frozen=True, slots=True)
class OptionProblem:
    """A validation error of one option, in a sentence."""

    option: str
    message: Message

    def __str__(self) -> str:
        return str(self.message)


@dataclass(frozen=True, slots=True)
class HubLimits:
    """The limits of the whole Hub. `images`: name shown → image, the first is the default.

    `allowed_images`: regular expressions for images that may be typed; a limit of 0: none.
    """

    images: Mapping[str, str]
    allowed_images: tuple[str, ...] = ()
    default_cpus: int = 1
    default_memory_mb: int = 2048
    most_cpus: int = 0
    most_memory_mb: int = 0
    most_gpus: int = 0
    shm_mb: int = 512

    @property
    def defaults(self) -> Options:
        """Return the choice of somebody who chose nothing."""
        return Options(
            profile="",
            image=next(iter(self.images.values()), ""),
            gpu_type="",
            gpus=0,
            cpus=self.default_cpus,
            memory_mb=self.default_memory_mb,
            shm_mb=self.shm_mb,
            virtual_cluster="default",
            run_minutes=0,
        )

    @property
    def choices(self) -> dict[str, FieldChoice]:
        """Return what each field may be where no profile says otherwise."""
        most = {"cpus": self.most_cpus, "memory_mb": self.most_memory_mb, "gpus": self.most_gpus}
        found = {one.name: FieldChoice(least=one.least, most=most.get(one.name, 0)) for one in FIELDS}
        found["image"] = FieldChoice(tuple(self.images.values()), patterns=self.allowed_images)
        return found

    @property
    def image_names(self) -> dict[str, str]:
        """Return how each image is called."""
        return {image: name for name, image in self.images.items()}

    @property
    def profile(self) -> Profile:
        """Return the one profile of a Hub that has none: everything may be chosen."""
        return Profile("", Translated(""), Translated(""), self.defaults, self.choices, is_default=True)


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
