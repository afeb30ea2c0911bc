"""This package's sentences for people; their Chinese stands in `locale/zh_CN.po`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_scheduler.i18n import Message

PACKAGE = "pai_spawner"


class Translated(Message):
    """A text by an administrator, in one language or several: `template` in English or in the first.

    `values`: the text by locale; empty: there is one for everybody.
    """

    __slots__ = ()

    @classmethod
    def read(cls, raw: str | Mapping[str, str]) -> Translated:
        """Read a text, or texts by language (`{"en": …, "zh-CN": …}`)."""
        if isinstance(raw, str):
            return cls(raw, {}, PACKAGE)
        texts = {language.replace("-", "_"): text for language, text in raw.items()}
        return cls(texts.get("en") or next(iter(texts.values())), texts, PACKAGE)

    def as_json(self) -> str | dict[str, str]:
        """Return what `read` reads."""
        return dict(self.values) or self.template

    def in_locale(self, locale: str) -> str:
        """Return the text in a language, or the one that is for everybody."""
        return str(self.values.get(locale, self.template))


def msg(template: str, /, **values: Any) -> Message:
    """Make a message of this package; the call marks `template` for translation."""
    return Message(template, values, PACKAGE)


def counted(one: str, many: str, /, **values: Any) -> Message:
    """Make a message of this package whose form depends on the value `count`."""
    return Message(one, values, PACKAGE, plural=many)
