"""Images: pulled once for all, with progress, and with sentences of our own where they cannot be had."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import aiodocker

from pai_scheduler.core.events import EndCause
from pai_scheduler.engine.protocol import RegistryLogin
from pai_scheduler.i18n import Message, msg

from .client import DaemonUnreachableError, DockerApi, answered
from .containers import is_image_name
from .registries import (
    PrivateImages,
    RegistryCheck,
    login_for,
    qualified,
    registry_of,
    repositories,
    repository_of,
)

# Why an image cannot be had, in sentences of our own.
#
# A registry is whatever a job names, and its answer may be anything. Users see no more of it than the HTTP
# status; the log has all.

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


# How far the pull of an image is, read from the lines in which Docker tells what its layers do.

_UNITS = ("B", "kB", "MB", "GB", "TB")


@dataclass(slots=True)
class _Layer:
    """One layer, in bytes as they are downloaded; `size` None: Docker has not told it yet."""

    size: int | None = None
    downloaded: int = 0
    unpacked: int = 0


class Layers:
    """The layers of an image that are pulled: those that were here before do not count."""

    def __init__(self) -> None:
        self._layers: dict[str, _Layer] = {}

    def take(self, line: Mapping[str, Any]) -> None:
        """Add a line of Docker's progress; one that tells nothing of a layer changes nothing."""
        name, detail = str(line.get("id", "")), line.get("progressDetail") or {}
        match line.get("status"):
            case "Pulling fs layer":
                self._layers.setdefault(name, _Layer())
            case "Downloading":
                layer = self._layers.setdefault(name, _Layer())
                layer.downloaded = int(detail.get("current") or 0)
                if total := int(detail.get("total") or 0):
                    layer.size = total
            case "Download complete":
                layer = self._layers.setdefault(name, _Layer())
                layer.downloaded = layer.size = layer.size or layer.downloaded
            case "Extracting":
                layer = self._layers.setdefault(name, _Layer())
                layer.downloaded = layer.size = layer.size or int(detail.get("total") or 0)
                # (some of Docker's storages tell seconds here, which are few)
                layer.unpacked = min(int(detail.get("current") or 0), layer.size)
            case "Pull complete":
                layer = self._layers.setdefault(name, _Layer())
                layer.downloaded = layer.unpacked = layer.size = layer.size or layer.downloaded
            case "Already exists":
                self._layers.pop(name, None)

    @property
    def downloaded(self) -> int:
        """Return the bytes that have come."""
        return sum(layer.downloaded for layer in self._layers.values())

    @property
    def size(self) -> int:
        """Return the bytes to download of all layers whose size is known."""
        return sum(layer.size or 0 for layer in self._layers.values())

    @property
    def is_size_known(self) -> bool:
        """Return whether `size` is that of all layers. Docker tells a layer's when its download begins."""
        return all(layer.size is not None for layer in self._layers.values())

    @property
    def percent(self) -> int:
        """Return how far all is: half of a layer's way is its download, half its unpacking.

        A layer whose size is not known counts as large as the others are on the average.
        """
        known = sum(layer.size is not None for layer in self._layers.values())
        if not self.size:
            return 0
        done = sum(layer.downloaded + layer.unpacked for layer in self._layers.values())
        return min(100, 100 * done * known // (2 * self.size * len(self._layers)))


def size_text(size: int) -> str:
    """Write a number of bytes as people read it, in steps of 1000: "2.1 GB"."""
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit and value < 9.95 else f"{value:.0f} {_UNITS[unit]}"


# Images: what is there is not pulled; what is pulled says how far it is, and is pulled once for all.
#
# What one user may pull with a login is not for everybody because it is on this machine now: the registry
# is asked again, with the credentials of the job at hand.

_PULLS_AT_ONCE = 3
#: A pull that moves nothing for so long is given up.
_STALLED_SECONDS = 600.0
#: Somebody may tidy up images just now.
_TRIES = 3
#: How long an answer of a registry, that somebody may use an image, holds: for a gang of many tasks.
_ALLOWED_SECONDS = 60.0
_CHECKS_AT_ONCE, _CHECK_SECONDS = 4, 60.0
#: How long a name of a registry is looked up: before a pull, and while somebody waits for an answer.
_LOOKUP_SECONDS, _SHORT_LOOKUP_SECONDS = 20.0, 2.0

OnProgress = Callable[[Message, int | None], None]


@dataclass(frozen=True, slots=True)
class _Wish:
    """An image, and as whom it is wanted."""

    image: str
    login: RegistryLogin | None = None

    @property
    def login_here(self) -> RegistryLogin | None:
        """Return the login where it is for this image's registry."""
        return login_for(self.image, self.login)


class Images:
    """Brings images to one daemon. `private`: a file about those that came with a login."""

    def __init__(self, api: DockerApi, private: Path, guard: RegistryCheck) -> None:
        self._api, self._guard = api, guard
        self._private = PrivateImages(private)
        self._checks = asyncio.Semaphore(_CHECKS_AT_ONCE)
        #: until when (loop time) a user may use an image without asking again
        self._allowed: dict[_Wish, float] = {}
        self._locks: WeakValueDictionary[_Wish, asyncio.Lock] = WeakValueDictionary()
        self._slots = asyncio.Semaphore(_PULLS_AT_ONCE)
        self._pulls: dict[_Wish, _Pull] = {}

    async def ensure(
        self, image: str, on_progress: OnProgress, login: RegistryLogin | None = None
    ) -> dict[str, Any]:
        """Return the description of an image, which is pulled where it is missing; ImageError."""
        wish = _Wish(image, login)
        if not is_image_name(image):
            raise ImageError(EndCause.REFUSED, msg("{image} is not a name an image can have.", image=image))
        for _ in range(_TRIES):
            found = await self._inspect(image)
            if reason := await self._refusal(image, found is not None, _LOOKUP_SECONDS):
                raise ImageError(EndCause.REFUSED, reason)
            if found:
                await self._check(wish, found)
                return found
            await self._pull(wish, on_progress)
        raise ImageError(
            EndCause.LAUNCH_FAILED, msg("The image {image} is removed as soon as it is pulled.", image=image)
        )

    async def refuses(self, image: str) -> Message | None:
        """Return why no job may have an image, as far as that is known at once; None where one may."""
        if not is_image_name(image):
            return None
        is_here = True
        if self._guard.needs_image_here(image):
            with contextlib.suppress(
                ImageError, TimeoutError
            ):  # (Docker is away) before the pull we look again
                async with asyncio.timeout(_SHORT_LOOKUP_SECONDS):
                    is_here = await self._inspect(image) is not None
        return await self._refusal(image, is_here, _SHORT_LOOKUP_SECONDS)

    async def _refusal(self, image: str, is_here: bool, seconds: float) -> Message | None:
        if is_here and self._guard.needs_image_here(image):
            return None
        return await self._guard.refusal(image, seconds)

    async def close(self) -> None:
        """Cancel the pulls that are under way."""
        for pull in list(self._pulls.values()):
            pull.task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ImageError):
                await pull.task
        self._guard.close()

    async def _inspect(self, image: str) -> dict[str, Any] | None:
        try:
            return await self._api.persist(lambda: self._api.docker.images.inspect(image))
        except aiodocker.DockerError as error:
            if error.status == 404:
                return None
            failure = not_pulled(image, _docker_says(error.message))
            if error.status == 400:
                failure.cause = EndCause.REFUSED
            raise failure from error

    async def _check(self, wish: _Wish, found: dict[str, Any]) -> None:
        """Make sure that who wants an image that is here may have it; ImageError."""
        if repository_of(wish.image) not in repositories(found):  # by its id: no registry can be asked
            if found["Id"] in self._private or any(name in self._private for name in repositories(found)):
                reason = msg("The image {image} must be given by its name in its registry.", image=wish.image)
                raise ImageError(EndCause.REFUSED, reason)
            return
        if wish.login_here is None and repository_of(wish.image) not in self._private:
            return
        async with self._locks.setdefault(wish, asyncio.Lock()):
            if self._allowed.get(wish, 0.0) < asyncio.get_running_loop().time():
                await self._ask_registry(wish)
                self._allow(wish)

    async def _ask_registry(self, wish: _Wish) -> None:
        try:
            async with self._checks:
                await answered(
                    lambda: self._api.resolve(qualified(wish.image), wish.login_here), _CHECK_SECONDS
                )
        except DaemonUnreachableError as error:
            raise not_pulled(wish.image, _docker_says(error)) from error
        except aiodocker.DockerError as error:
            raise refusal(wish.image, wish.login, error) from error

    def _allow(self, wish: _Wish) -> None:
        now = asyncio.get_running_loop().time()
        self._allowed = {known: until for known, until in self._allowed.items() if until > now}
        self._allowed[wish] = now + _ALLOWED_SECONDS

    async def _pull(self, wish: _Wish, on_progress: OnProgress) -> None:
        pull = self._pulls.get(wish)
        if pull is None:
            pull = self._pulls[wish] = _Pull(wish)
            pull.task = asyncio.create_task(self._run(pull))
        pull.listeners.append(on_progress)
        try:
            await asyncio.shield(pull.task)
        finally:
            pull.listeners.remove(on_progress)
            if not pull.listeners:
                pull.task.cancel()
                self._forget(pull)

    async def _run(self, pull: _Pull) -> None:
        try:
            pull.tell(msg("waiting to pull {image}", image=pull.wish.image), None)
            async with self._slots:
                pull.tell(msg("pulling {image}", image=pull.wish.image), 0)
                await self._fetch(pull)
        except DaemonUnreachableError as error:
            raise not_pulled(pull.wish.image, _docker_says(error)) from error
        except aiodocker.DockerError as error:
            raise refusal(pull.wish.image, pull.wish.login, error) from error
        finally:
            self._forget(pull)

    async def _fetch(self, pull: _Pull) -> None:
        image, login = pull.wish.image, pull.wish.login_here
        auth: dict[str, Any] | None = None
        if login is not None:
            # before it is here: who asks for it then is asked who they are
            self._private.add(repository_of(image))
            image, auth = qualified(image), {"username": login.user, "password": login.password}
        stream = self._api.docker.images.pull(image, auth=auth, stream=True).__aiter__()
        with contextlib.suppress(StopAsyncIteration):
            while True:
                pull.take(await answered(stream.__anext__, _STALLED_SECONDS))
        if login is not None:
            self._allow(pull.wish)
            if found := await self._inspect(pull.wish.image):
                self._private.add(found["Id"])

    def _forget(self, pull: _Pull) -> None:
        if self._pulls.get(pull.wish) is pull:
            del self._pulls[pull.wish]


class _Pull:
    """One pull, and everybody who waits for it."""

    task: asyncio.Task[None]

    def __init__(self, wish: _Wish) -> None:
        self.wish = wish
        self.listeners: list[OnProgress] = []
        self._layers = Layers()
        self._percent = 0

    def take(self, line: dict[str, Any]) -> None:
        """Add a line of Docker's progress, and tell each further per cent."""
        self._layers.take(line)
        percent = self._layers.percent
        # a layer whose size was not known yet must not turn the bar back
        if percent > self._percent:
            self._percent = percent
            facts = {"image": self.wish.image, "percent": percent, "size": size_text(self._layers.size)}
            if self._layers.is_size_known:
                self.tell(msg("pulling {image}: {percent} % of {size}", **facts), percent)
            else:
                self.tell(msg("pulling {image}: {percent} % of at least {size}", **facts), percent)

    def tell(self, message: Message, percent: int | None) -> None:
        """Wake everybody who waits."""
        for listener in self.listeners:
            listener(message, percent)


def _docker_says(error: object) -> Message:
    return msg("Docker says: {error}", error=str(error))
