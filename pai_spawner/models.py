"""Profiles and what may be chosen of them, as types; the web programs that profiles have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pai_scheduler.i18n import Message

from .messages import Translated, msg

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
