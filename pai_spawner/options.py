"""What a person chooses for a server: read from the form or from the Hub's REST API, and checked alike.

Options stored in the Hub's database are used again for the next start, and options posted over REST never
passed a form. So nothing is trusted here: `parse_options` names everything that is wrong, all at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pai_scheduler.job.messages import Message

from .messages import msg

#: What jupyterhub-singleuser and a kernel need to start at all.
LEAST_MEMORY_MB = 256


@dataclass(frozen=True, slots=True)
class Options:
    """A person's choice. Memory in MB; `gpu_type` empty: any type."""

    image: str
    cpus: int
    memory_mb: int
    gpus: int
    gpu_type: str
    virtual_cluster: str

    def to_json(self) -> dict[str, Any]:
        """Return them as they are stored as the server's `user_options`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be chosen. `images`: name shown → image, the first is the default; a limit of 0: none."""

    images: Mapping[str, str]
    any_image: bool
    default_cpus: int
    default_memory_mb: int
    most_cpus: int = 0
    most_memory_mb: int = 0
    most_gpus: int = 0

    @property
    def defaults(self) -> Options:
        """Return the choice of somebody who chose nothing."""
        return Options(
            next(iter(self.images.values()), ""), self.default_cpus, self.default_memory_mb, 0, "", "default"
        )


class InvalidOptions(ValueError):
    """At least one option is wrong; `problems` has a sentence for each."""

    def __init__(self, problems: Sequence[Message]) -> None:
        super().__init__(" ".join(map(str, problems)))
        self.problems = tuple(problems)

    def in_locale(self, locale: str) -> str:
        """Return all sentences in a language."""
        return " ".join(problem.in_locale(locale) for problem in self.problems)


def options_from_form(form: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Turn a posted form (lists of strings) into options; nothing is checked yet.

    An empty field is left out, so that its default applies. What is typed into `other_image` wins over
    the choice in `image`.
    """
    options: dict[str, Any] = {}
    for name, values in form.items():
        value = values[-1] if values else ""
        if isinstance(value, str):
            value = value.strip()
        if name not in ("_xsrf", "other_image") and value != "":
            options[name] = value
    other = [
        value.strip() for value in form.get("other_image", ()) if isinstance(value, str) and value.strip()
    ]
    if other:
        options["image"] = other[-1]
    return options


def parse_options(raw: Mapping[str, Any], policy: Policy) -> Options:
    """Check options from anywhere; raises `InvalidOptions` with every problem."""
    defaults = policy.defaults
    known = ", ".join(defaults.to_json())
    problems = [
        msg("There is no option “{name}”; the options are {known}.", name=name, known=known)
        for name in raw
        if name not in defaults.to_json()
    ]

    def number(name: str, label: Message, default: int, least: int, most: int) -> int:
        value = raw.get(name, default)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            problems.append(msg("{label} must be a whole number, not “{value}”.", label=label, value=value))
            return default
        if value < least:
            problems.append(
                msg("{label} must be at least {least}, not {value}.", label=label, least=least, value=value)
            )
        if most and value > most:
            problems.append(
                msg(
                    "{label} may be at most {most} on this Hub, not {value}.",
                    label=label,
                    most=most,
                    value=value,
                )
            )
        return value

    def text(name: str, label: Message, default: str) -> str:
        value = raw.get(name, default)
        if not isinstance(value, str) or len(value) > 255 or not value.isprintable():
            problems.append(msg("{label} must be a short text.", label=label))
            return default
        return value

    image = text("image", msg("The image"), defaults.image)
    if not image:
        problems.append(msg("Choose an image."))
    elif not policy.any_image and image not in policy.images.values():
        problems.append(
            msg(
                "The image “{image}” is not one of those this Hub offers: {known}.",
                image=image,
                known=", ".join(policy.images.values()),
            )
        )
    options = Options(
        image=image,
        cpus=number("cpus", msg("The number of CPUs"), defaults.cpus, 1, policy.most_cpus),
        memory_mb=number(
            "memory_mb", msg("The memory (MB)"), defaults.memory_mb, LEAST_MEMORY_MB, policy.most_memory_mb
        ),
        gpus=number("gpus", msg("The number of GPUs"), defaults.gpus, 0, policy.most_gpus),
        gpu_type=text("gpu_type", msg("The GPU type"), defaults.gpu_type),
        virtual_cluster=text("virtual_cluster", msg("The virtual cluster"), defaults.virtual_cluster)
        or "default",
    )
    if problems:
        raise InvalidOptions(problems)
    return options
