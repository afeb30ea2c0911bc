"""Sentences for people, kept apart from their language until somebody reads them.

A `Message` is a gettext template with its values. It is English when printed, and any other
language when asked: `message.in_locale("zh_CN")`. Each package keeps its translations in
`locale/<locale>.po`, read (with Babel) at first use, so that there is nothing to compile. A sentence
with a number that decides its form (`1 task`, `2 tasks`) is made by `counted`; gettext's plural rules
of each language choose the form.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib import resources
from io import BytesIO
from typing import Any

from babel import Locale, negotiate_locale
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LOCALES = ("en", "zh_CN")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Message:
    """One sentence: a `str.format` template (the gettext msgid) and its values.

    Values may be messages themselves; they are put into the same language. `plural` is the template for
    more than one, of what the value `count` counts; None: the sentence has one form only.
    """

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    package: str = "pai_scheduler"
    plural: str | None = None

    def in_locale(self, locale: str) -> str:
        """Return the sentence in `locale` ("zh_CN"), in English where no translation exists."""
        values = {
            key: value.in_locale(locale) if isinstance(value, Message) else value
            for key, value in self.values.items()
        }
        if self.plural is None:
            template = translate(self.template, locale, self.package)
        else:
            count = self.values["count"]
            template = translate_counted(self.template, self.plural, count, locale, self.package)
        return template.format(**values)

    def __str__(self) -> str:
        return self.in_locale("en")


def msg(template: str, /, **values: Any) -> Message:
    """Make a message of this package; the call marks `template` for translation."""
    return Message(template, values)


def counted(one: str, many: str, /, **values: Any) -> Message:
    """Make a message whose form depends on the value `count`: `one` is English for 1, `many` for the rest."""
    return Message(one, values, plural=many)


def translate(template: str, locale: str, package: str = "pai_scheduler") -> str:
    """Return the template in another language, or as it is."""
    # (gettext's translation of nothing is the head of the file)
    return _translations(package, locale).gettext(template) if template else template


def translate_counted(one: str, many: str, count: float, locale: str, package: str = "pai_scheduler") -> str:
    """Return the one of two templates that fits a number, in another language or as it is."""
    # what is not whole has the form of many in English; other languages of ours have one form
    whole = int(count) if count == int(count) else 2
    return _translations(package, locale).ngettext(one, many, whole)


def choose_locale(accept_language: str) -> str:
    """Choose one of `LOCALES` for an HTTP `Accept-Language` header or a POSIX `LANG`."""
    wanted: list[tuple[float, str]] = []
    for part in accept_language.split(","):
        tag, _, parameters = part.strip().partition(";")
        quality = parameters.strip().removeprefix("q=") or "1"
        try:
            wanted.append((-float(quality), tag.partition(".")[0].replace("-", "_")))
        except ValueError:
            continue
    ordered = [tag for _, tag in sorted(wanted, key=lambda pair: pair[0]) if tag]
    # every Chinese reader is better served by Simplified Chinese than by English
    ordered = ["zh_CN" if tag.lower().startswith("zh") else tag for tag in ordered]
    return negotiate_locale(ordered, LOCALES, aliases={"en": "en"}) or "en"


@cache
def _translations(package: str, locale: str) -> NullTranslations:
    """Read a package's translations; in English every sentence stands for itself."""
    if locale == "en":
        return NullTranslations()
    source = resources.files(package) / "locale" / f"{locale}.po"
    if not source.is_file():
        _log.warning("no translation of %s into %s", package, locale)
        return NullTranslations()
    with source.open("rb") as stream:
        catalog = read_po(stream, Locale.parse(locale))
    compiled = BytesIO()
    write_mo(compiled, catalog)
    compiled.seek(0)
    return GNUTranslations(compiled)
