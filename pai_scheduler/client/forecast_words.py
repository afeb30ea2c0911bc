"""What the scheduler foresees of a job, in words: when it would start, and where it would at once."""

from __future__ import annotations

from collections.abc import Iterator

from pai_scheduler.i18n import Message, counted, msg
from pai_scheduler.rest.models import Validation

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def about_so_long(seconds: int) -> Message:
    """Return a time to wait as people say it, rounded up: `about 20 minutes`."""
    if seconds <= 2 * _HOUR:
        return counted("about {count} minute", "about {count} minutes", count=max(1, -(-seconds // _MINUTE)))
    if seconds <= 2 * _DAY:
        return counted("about {count} hour", "about {count} hours", count=-(-seconds // _HOUR))
    return counted("about {count} day", "about {count} days", count=-(-seconds // _DAY))


def starts_in(seconds: int) -> Message:
    """Say when something that waits starts, as it is estimated."""
    return msg("It starts in {time}.", time=about_so_long(seconds))


def start_in_words(validation: Validation) -> Iterator[Message]:
    """Return when a job that waits would start, where that is known, and where else it would at once."""
    seconds = validation["startsWithin"]
    if validation["fits"] == "later" and seconds is not None:
        yield starts_in(seconds)
    if validation["startsNowIn"]:
        yield msg(
            "It would start now in virtual cluster {names}.", names=", ".join(validation["startsNowIn"])
        )
