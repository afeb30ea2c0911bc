"""Images: what is there is not pulled; what is pulled says how far it is, and is pulled once for all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import aiodocker

from ..core.events import EndCause
from ..job.messages import Message, msg
from .docker_api import DockerApi, UnreachableError, answered
from .docker_container import is_image_name

_PULLS_AT_ONCE = 3
#: A pull that moves nothing for so long is given up.
_STALLED_SECONDS = 600.0
#: Somebody may tidy up images just now.
_TRIES = 3
_UNKNOWN = ("not found", "manifest unknown", "does not exist", "no matching manifest", "invalid reference")

OnProgress = Callable[[Message, int | None], None]


class ImageError(Exception):
    """An image cannot be had. `cause`: REFUSED where only the user can change that, else LAUNCH_FAILED."""

    def __init__(self, cause: EndCause, reason: Message) -> None:
        super().__init__(str(reason))
        self.cause, self.reason = cause, reason


class Images:
    """Brings images to one daemon."""

    def __init__(self, api: DockerApi) -> None:
        self._api = api
        self._slots = asyncio.Semaphore(_PULLS_AT_ONCE)
        self._pulls: dict[str, _Pull] = {}

    async def ensure(self, image: str, on_progress: OnProgress) -> dict[str, Any]:
        """Give the description of an image, which is pulled where it is missing; ImageError."""
        if not is_image_name(image):
            raise ImageError(EndCause.REFUSED, msg("{image} is not a name an image can have.", image=image))
        for _ in range(_TRIES):
            if found := await self._inspect(image):
                return found
            await self._pull(image, on_progress)
        raise ImageError(
            EndCause.LAUNCH_FAILED, msg("The image {image} is removed as soon as it is pulled.", image=image)
        )

    async def close(self) -> None:
        """Give up the pulls that are under way."""
        for pull in list(self._pulls.values()):
            pull.task.cancel()
            with contextlib.suppress(asyncio.CancelledError, ImageError):
                await pull.task

    async def _inspect(self, image: str) -> dict[str, Any] | None:
        try:
            return await self._api.persist(lambda: self._api.docker.images.inspect(image))
        except aiodocker.DockerError as error:
            if error.status == 404:
                return None
            cause = EndCause.REFUSED if error.status == 400 else EndCause.LAUNCH_FAILED
            raise ImageError(cause, _unusable(image, error.message)) from error

    async def _pull(self, image: str, on_progress: OnProgress) -> None:
        pull = self._pulls.get(image)
        if pull is None:
            pull = self._pulls[image] = _Pull(image)
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
            pull.tell(msg("waiting to pull {image}", image=pull.image), None)
            async with self._slots:
                pull.tell(msg("pulling {image}", image=pull.image), 0)
                stream = self._api.docker.images.pull(pull.image, stream=True).__aiter__()
                with contextlib.suppress(StopAsyncIteration):
                    while True:
                        pull.take(await answered(stream.__anext__, _STALLED_SECONDS))
        except UnreachableError as error:
            raise ImageError(EndCause.LAUNCH_FAILED, _unusable(pull.image, str(error))) from error
        except aiodocker.DockerError as error:
            unknown = error.status == 404 or any(word in error.message for word in _UNKNOWN)
            if unknown:
                reason = msg(
                    "The image {image} does not exist, or may not be pulled without logging in to its "
                    "registry. Docker says: {error}",
                    image=pull.image,
                    error=error.message,
                )
                raise ImageError(EndCause.REFUSED, reason) from error
            raise ImageError(EndCause.LAUNCH_FAILED, _unusable(pull.image, error.message)) from error
        finally:
            self._forget(pull)

    def _forget(self, pull: _Pull) -> None:
        if self._pulls.get(pull.image) is pull:
            del self._pulls[pull.image]


class _Pull:
    """One pull, and everybody who waits for it."""

    task: asyncio.Task[None]

    def __init__(self, image: str) -> None:
        self.image = image
        self.listeners: list[OnProgress] = []
        self._layers: dict[str, tuple[int, int]] = {}
        self._percent = 0

    def take(self, line: dict[str, Any]) -> None:
        """Add a line of Docker's progress: half of a layer's way is its download, half its unpacking."""
        layer, status = line.get("id", ""), line.get("status", "")
        total = line.get("progressDetail", {}).get("total") or self._layers.get(layer, (0, 0))[1]
        current = line.get("progressDetail", {}).get("current", 0)
        match status:
            case "Downloading":
                self._layers[layer] = (current, total)
            case "Download complete":
                self._layers[layer] = (total, total)
            case "Extracting":
                self._layers[layer] = (total + current, total)
            case "Pull complete":
                self._layers[layer] = (2 * total, total)
            case _:
                return
        whole = sum(2 * total for _, total in self._layers.values())
        percent = min(100, 100 * sum(done for done, _ in self._layers.values()) // whole) if whole else 0
        # a layer whose size was not known yet must not turn the bar back
        if percent > self._percent:
            self._percent = percent
            self.tell(msg("pulling {image}", image=self.image), percent)

    def tell(self, message: Message, percent: int | None) -> None:
        """Tell everybody who waits."""
        for listener in self.listeners:
            listener(message, percent)


def _unusable(image: str, error: str) -> Message:
    return msg("The image {image} could not be pulled. Docker says: {error}", image=image, error=error)
