"""Sentences that the server side of the extension says."""

from __future__ import annotations

from typing import Any

from pai_scheduler.i18n import Message

PACKAGE = "pai_labextension"


def msg(template: str, /, **values: Any) -> Message:
    """Make a message of this package; the call marks `template` for translation."""
    return Message(template, values, PACKAGE)


def counted(one: str, many: str, /, **values: Any) -> Message:
    """Make a message of this package whose form depends on the value `count`."""
    return Message(one, values, PACKAGE, plural=many)
