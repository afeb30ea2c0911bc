"""The form on the Hub's spawn page: what can be chosen, what is free of it, and what a start would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, select_autoescape

from pai_scheduler.i18n import translate

from .messages import PACKAGE, msg
from .options import FIELDS, FieldChoice, Offer, Profile, ProfileField
from .start_preview import (
    StartPreview,
    Supply,
    duration_words,
    free_words,
    memory_words,
    title_of,
    virtual_cluster_words,
)

#: Rows of the table of machines; a page with thousands is of no use.
_MOST_MACHINES = 100
#: Time limits that are offered where any may be chosen, in minutes.
_TIME_LIMITS = (60, 120, 240, 480, 720, 1440, 2880, 10_080)
_STATES = {
    "READY": msg("ready"),
    "PAUSED": msg("paused: nothing new starts there"),
    "DRAINED": msg("drained: nothing new starts there"),
    "CLOSED": msg("closed by an administrator: nothing new starts there"),
    "FULL": msg("its disk is almost full: nothing new starts there"),
    "LOST": msg("lost: it does not answer"),
}
_FIELDS = {field.name: field for field in FIELDS}


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of the form. `name`: under which it is sent; `value`: what it begins with."""

    key: str
    name: str
    id: str
    value: Any
    choice: FieldChoice
    #: (value, text), where one chooses from a list
    values: tuple[tuple[str | int, str], ...]

    @property
    def is_typed(self) -> bool:
        """Return whether the value is none of the list, so that it was typed."""
        return all(str(self.value) != str(value) for value, _ in self.values)


@dataclass(frozen=True, slots=True)
class FormProfile:
    """One profile of the form, with the fields in which there is something to choose."""

    profile: Profile
    name: str
    description: str
    title: str
    chosen: bool
    fields: Mapping[str, FormField]


def render_form(
    offer: Offer,
    supply: Supply | None,
    chosen: Mapping[str, Any],
    locale: str,
    *,
    answer: StartPreview | None = None,
    address: str = "",
    server: str = "",
) -> str:
    """Write the form's fields as HTML.

    `supply` None: the scheduler is away, no numbers are shown. `chosen`: what is chosen at first, as far as
    that is possible; `answer`: what a start with that would do; `address`: whose server,
    and which, as the Hub's address has it; `server`: the name that people gave it.
    """
    profiles = [_form_profile(one, offer, supply, chosen, locale) for one in offer.profiles]
    own = next((one for one in profiles if one.chosen), None)
    virtual_cluster = str(
        chosen.get("virtual_cluster") or (own.profile.defaults.virtual_cluster if own else "")
    )
    available = supply.available_in(virtual_cluster) if supply else None
    first = own.profile.defaults if own else None
    return (
        _environment()
        .get_template("options_form.html")
        .render(
            t=partial(translate, locale=locale, package=PACKAGE),
            words=lambda message: message.in_locale(locale),
            cluster_words=virtual_cluster_words,
            lang=locale.replace("_", "-"),
            offer=offer,
            profiles=profiles,
            supply=supply,
            available=available,
            free=free_words(first, available) if first and available else None,
            answer=answer.to_json(locale) if answer else None,
            address=quote(address),
            server=server,
            script=_script(),
            style=_style(),
            most_machines=_MOST_MACHINES,
            machine_states={state: text.in_locale(locale) for state, text in _STATES.items()},
        )
    )


def _form_profile(
    profile: Profile, offer: Offer, supply: Supply | None, chosen: Mapping[str, Any], locale: str
) -> FormProfile:
    is_chosen = profile.slug == (chosen.get("profile") or offer.default.slug)
    several = len(offer.profiles) > 1
    fields = {}
    for field in FIELDS:
        choice = profile.choices[field.name]
        if choice.is_fixed:
            continue
        value = chosen.get(field.name) if is_chosen else None
        fields[field.name] = FormField(
            field.name,
            f"{profile.slug}.{field.name}" if several else field.name,
            f"pai-{profile.slug or 'server'}-{field.name.replace('_', '-')}",
            getattr(profile.defaults, field.name) if value is None else value,
            choice,
            tuple(_values(field, choice, profile, offer, supply, locale)),
        )
    return FormProfile(
        profile,
        profile.name.in_locale(locale),
        profile.description.in_locale(locale),
        title_of(profile.defaults).in_locale(locale),
        is_chosen,
        fields,
    )


def _values(
    field: ProfileField,
    choice: FieldChoice,
    profile: Profile,
    offer: Offer,
    supply: Supply | None,
    locale: str,
) -> list[tuple[str | int, str]]:
    """List what to choose from, with its texts; empty: it is typed."""
    say = partial(translate, locale=locale, package=PACKAGE)
    values: list[str | int] = list(choice.values or ())
    match field.name:
        case "image":
            return [(value, offer.image_names.get(str(value), str(value))) for value in values]
        case "gpu_type":
            values = values or ["", *(supply.gpu_types if supply else ())]
            return [(value, str(value) or say("any type")) for value in values]
        case "virtual_cluster":
            known = list(supply.virtual_clusters) if supply else [profile.defaults.virtual_cluster]
            return [(name, name) for name in known if choice.allows(name)] or [
                (one, str(one)) for one in values
            ]
        case "run_minutes":
            if choice.values is None:
                most = choice.most or _TIME_LIMITS[-1]
                none = [0] if not (choice.least or choice.most) else []
                values = [*none, *(one for one in _TIME_LIMITS if choice.least <= one <= most)]
                values = values or [max(choice.least, 1)]
            return [
                (value, duration_words(int(value)).in_locale(locale) if value else say("no limit of its own"))
                for value in values
            ]
        case "memory_mb" | "shm_mb":
            return [(value, memory_words(int(value)).in_locale(locale)) for value in values]
    return [(value, str(value)) for value in values]


@cache
def _script() -> str:
    return (resources.files(PACKAGE) / "templates" / "options_form.js").read_text(encoding="utf-8")


@cache
def _style() -> str:
    return (resources.files(PACKAGE) / "templates" / "options_form.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("pai_spawner"),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        lstrip_blocks=True,
    )
