"""Why an image cannot be had, in sentences of our own.

A registry is whatever a job names, and its answer may be anything. Users see no more of it than the HTTP
status; the log has all.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

import aiodocker

from pai_scheduler.core.events import EndCause
from pai_scheduler.engine.protocol import RegistryLogin
from pai_scheduler.i18n import Message, msg

from .image_names import login_for, registry_of

_log = logging.getLogger(__name__)

_FORBIDDEN = ("unauthorized", "authentication required", "no basic auth credentials", "denied", "forbidden")
_UNKNOWN = ("not found", "manifest unknown", "does not exist", "no matching manifest", "invalid reference")
#: How Docker says what a registry answered.
_STATUS = re.compile(
    r"(?:HTTP(?: status)?|status(?: code)?(?: from \w+ request to \S+)?):? (?P<status>[1-5]\d\d)\b",
    re.IGNORECASE,
)


class ImageError(Exception):
    """An image cannot be had. `cause`: REFUSED where only the user can change that, else LAUNCH_FAILED."""

    def __init__(self, cause: EndCause, reason: Message) -> None:
        super().__init__(str(reason))
        self.cause, self.reason = cause, reason


def refusal(image: str, login: RegistryLogin | None, error: aiodocker.DockerError) -> ImageError:
    """Return what the user must change from what may go better the next time."""
    _log.warning("the image %s cannot be had: Docker says: %s", image, error.message)
    said, registry = error.message.lower(), registry_of(image)
    login_here = login_for(image, login)
    if "toomanyrequests" in said:
        busy = msg("Its registry takes no more requests for now (HTTP status {status}).", status=429)
        return not_pulled(image, busy)
    if login_here is not None and (error.status in (401, 403) or _says(said, _FORBIDDEN)):
        reason = msg(
            "The registry {registry} does not give the image {image} to the user of the authFile. Correct "
            "the user name and the password there, or ask for access.",
            registry=registry,
            image=image,
        )
    elif login is not None and login_here is None and _says(said, _FORBIDDEN):
        reason = msg(
            "The image {image} may not be pulled without logging in to its registry {registry}, and the "
            "authFile is for another one. Name an authFile for {registry}.",
            image=image,
            registry=registry,
        )
    elif error.status in (401, 403, 404) or _says(said, (*_UNKNOWN, *_FORBIDDEN)):
        reason = msg(
            "The image {image} does not exist, or may not be pulled without logging in to its registry, for "
            "which a job names an authFile.",
            image=image,
        )
    else:
        return not_pulled(image, _why(error.message))
    return ImageError(EndCause.REFUSED, reason)


def not_pulled(image: str, why: Message) -> ImageError:
    """Return the error that says that a pull failed, for a reason that may be gone the next time."""
    return ImageError(
        EndCause.LAUNCH_FAILED, msg("The image {image} could not be pulled. {why}", image=image, why=why)
    )


def _why(said: str) -> Message:
    """Return in our own words what Docker says of a registry."""
    if found := _STATUS.search(said):
        return msg("Its registry answers with HTTP status {status}.", status=int(found["status"]))
    lower = said.lower()
    if _says(lower, ("no such host", "server misbehaving", "name resolution")):
        return msg("The name of its registry leads nowhere.")
    if _says(lower, ("x509", "tls:", "certificate", "http response to https")):
        return msg("Its registry does not prove with a certificate who it is.")
    if _says(lower, ("refused", "timeout", "deadline", "no route", "unreachable", "reset by", "eof")):
        return msg("Its registry does not answer.")
    if "no space left" in lower:
        return msg("The disk of the machine is full.")
    return msg("The scheduler's log has the reason.")


def _says(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)
