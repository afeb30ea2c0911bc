"""In which language the widgets speak, and the sentences they say."""

from __future__ import annotations

from typing import Any

from pai_scheduler.i18n import Message, choose_locale, translate

from ..locales import default_locale as default_locale
from ..messages import counted
from ..messages import msg as msg


class Language:
    """Translates sentences into one locale ("en", "zh_CN"): `say("Submit")`."""

    def __init__(self, locale: str | None = None) -> None:
        self.locale = choose_locale(locale) if locale else default_locale()

    def __call__(self, template: str, /, **values: Any) -> str:
        """Return a sentence of this package, translated; the call marks `template` for translation."""
        return msg(template, **values).in_locale(self.locale)

    def counted(self, one: str, many: str, /, **values: Any) -> str:
        """Return a sentence of this package whose form depends on the value `count`."""
        return counted(one, many, **values).in_locale(self.locale)

    def of(self, message: Message) -> str:
        """Return the text of a message that somebody else made."""
        return message.in_locale(self.locale)

    def term(self, text: str) -> str:
        """Return a title or description of the job's JSON Schema, translated."""
        return translate(text, self.locale)
