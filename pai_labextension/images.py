"""Images that the form offers: those used before, and whether this cluster uses any."""

from __future__ import annotations

from dataclasses import dataclass

from pai_scheduler.client.rest import ApiError, Client, UnreachableError

#: An image that newcomers can begin with.
EXAMPLE = "python:3.12"
#: What a job says that runs without a container, as the Hub's own servers do there.
LOCAL = "local/python"
#: How many of a person's last jobs are looked at.
_MOST_JOBS = 10
#: The engine whose tasks are processes of the machine itself.
_PROCESS_ENGINE = "process"


@dataclass(frozen=True, slots=True)
class ImageHelp:
    """`used`: images of a person's last jobs, newest first; `needed`: False where tasks have no container."""

    used: tuple[str, ...] = ()
    needed: bool = True


async def image_help(client: Client) -> ImageHelp:
    """Ask the scheduler. It is help only: where there is no answer, nothing is known, and nothing is said."""
    try:
        about = await client.about()
        return ImageHelp(await _used(client), about.get("engine") != _PROCESS_ENGINE)
    except (ApiError, UnreachableError):
        return ImageHelp()


async def _used(client: Client) -> tuple[str, ...]:
    user = (await client.whoami())["username"]
    names = [job["name"] for job in await client.jobs(user, limit=_MOST_JOBS)]
    images: dict[str, None] = {}
    for name in names:
        image = (await client.config(user, name)).get("image")
        if isinstance(image, str) and image:
            images[image] = None
    return tuple(images)
