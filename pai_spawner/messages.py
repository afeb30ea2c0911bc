"""This package's sentences for people; their Chinese stands in `locale/zh_CN.po`."""

from __future__ import annotations

from typing import Any

from pai_scheduler.job.messages import Message

PACKAGE = "pai_spawner"


def msg(template: str, /, **values: Any) -> Message:
    """Make a message of this package; the call marks `template` for translation."""
    return Message(template, values, PACKAGE)


def counted(one: str, many: str, /, **values: Any) -> Message:
    """Make a message of this package whose form depends on the value `count`."""
    return Message(one, values, PACKAGE, plural=many)
