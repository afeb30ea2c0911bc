"""Job events, read and followed while real processes run."""

from __future__ import annotations

import asyncio

from tests.scheduler.making import make_config, make_role
from tests.scheduler.open_service import ALICE, BOB, ROOT, OpenService, refused


async def test_a_follower_of_a_job_gets_each_event_once_until_its_end(service: OpenService) -> None:
    await service.admission.submit(
        ALICE, "alice", make_config(make_role(command="sleep 0.1"), name="followed")
    )

    async def follow() -> list[tuple[int, str]]:
        return [
            (told.id, told.entry.type) async for told in service.job_events.follow(ALICE, "alice", "followed")
        ]

    heard = await asyncio.gather(*(follow() for _ in range(5)))
    events = await service.job_events.read(ALICE, "alice", "followed")
    assert all(one == [(told.id, told.entry.type) for told in events] for one in heard)
    assert events[-1].entry.type == "ended"
    assert not service.job_events.followed


async def test_following_can_be_taken_up_where_it_was_left(service: OpenService) -> None:
    await service.run("followed")
    events = await service.job_events.read(ALICE, "alice", "followed")
    rest = [told async for told in service.job_events.follow(ALICE, "alice", "followed", events[2].id)]
    assert rest == events[3:]


async def test_following_a_deleted_job_ends(service: OpenService) -> None:
    await service.begin("doomed")
    following = asyncio.create_task(service.until("doomed", lambda _: False))
    await asyncio.sleep(0)
    await service.jobs.delete(ALICE, "alice", "doomed")
    with refused(404, "NoJobError"):
        await following


async def test_all_jobs_can_be_followed_at_once(service: OpenService) -> None:
    everything = service.job_events.follow(ALICE, None, None)
    for name in ("one", "two"):
        hearing = asyncio.ensure_future(anext(everything))
        await asyncio.sleep(0)  # it has heard all there is, and waits
        await service.run(name)
        told = await asyncio.wait_for(hearing, 30)
        while told.entry.type != "ended":
            assert told.job == name
            told = await anext(everything)
    await everything.aclose()
    assert not service.job_events.followed


async def test_a_users_jobs_are_followed_whatever_others_do(service: OpenService) -> None:
    """Whoever follows their own jobs is not woken by others', nor reads their events again and again."""
    own = service.job_events.follow(BOB, None, None)
    named = service.job_events.follow(ROOT, "bob", None)
    others = service.job_events.follow(ALICE, "bob", None)
    hearing = [asyncio.ensure_future(anext(events)) for events in (own, named, others)]
    await service.run("of-alice")
    news = asyncio.Event()
    with service.job_events._waking(("user", "bob"), news):
        await service.run("another")
        assert not news.is_set()
        await service.admission.submit(BOB, "bob", make_config(make_role(command="true"), name="of-bob"))
        assert news.is_set()
    for told in await asyncio.gather(*hearing[:2]):
        assert (told.user, told.job, told.entry.type) == ("bob", "of-bob", "submitted")
    assert not hearing[2].done()
    hearing[2].cancel()
    assert {told.user for told in await service.job_events.read(ROOT, "alice", None)} == {"alice"}
    assert await service.job_events.read(ALICE, "bob", None) == []
