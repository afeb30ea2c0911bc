"""What the form finds out about images."""

from __future__ import annotations

from pai_labextension.images import ImageHelp, image_help
from pai_scheduler.testing.scheduler import FakeScheduler


async def test_images_used_before_are_known_each_once_and_the_newest_first(peer: FakeScheduler) -> None:
    for name, image in (("newest", "b"), ("older", "a"), ("oldest", "b")):
        peer.add(name).config["image"] = image
    async with peer.client() as client:
        assert await image_help(client) == ImageHelp(("b", "a"), needed=True)


async def test_only_the_last_jobs_are_looked_at(peer: FakeScheduler) -> None:
    for number in range(100):
        peer.add(f"job-{number}").config["image"] = f"image-{number}"
    async with peer.client() as client:
        assert len((await image_help(client)).used) == 10


async def test_where_tasks_are_processes_no_image_is_needed(peer: FakeScheduler) -> None:
    peer.engine = "process"
    async with peer.client() as client:
        assert not (await image_help(client)).needed


async def test_without_an_answer_nothing_is_known_and_nothing_is_said(peer: FakeScheduler) -> None:
    await peer.stop()
    async with peer.client() as client:
        assert await image_help(client) == ImageHelp((), needed=True)
