"""Who waits, at which place, and how one is moved there."""

from __future__ import annotations

from tests.scheduler.making import make_config, make_role
from tests.scheduler.open_service import ALICE, BOB, ROOT, OpenService, refused


async def test_waiting_jobs_are_listed_in_order_and_may_be_moved(service: OpenService) -> None:
    for name in ("a", "b"):
        await service.admission.submit(ALICE, "alice", make_config(make_role(cpus=9), name=name))
    await service.admission.submit(BOB, "bob", make_config(make_role(cpus=9), name="c"))
    names = [entry.job.name for entry in service.queues.waiting("default")]
    assert names == ["a", "b", "c"]
    await service.jobs.reorder(ALICE, "alice", "b", place=1)
    with refused(404, "NoJobError"):
        await service.jobs.reorder(ALICE, "bob", "c", place=1)
    await service.jobs.reorder(BOB, "bob", "c", place=1)  # among their own: nobody else's moves back
    assert [entry.job.name for entry in service.queues.waiting("default")] == ["b", "a", "c"]
    await service.jobs.reorder(ROOT, "bob", "c", place=1)
    assert [entry.job.name for entry in service.queues.waiting("default")] == ["c", "b", "a"]
    await service.jobs.reorder(ALICE, "alice", "a", priority=99)
    assert service.queues.queue_position(await service.jobs.get(ALICE, "alice", "a")) == 1
    with refused(404, "NoVirtualClusterError"):
        service.queues.names("nowhere")


async def test_a_queue_is_read_page_by_page_and_ones_own_jobs_are_found_behind_it(
    service: OpenService,
) -> None:
    for number in range(3):
        for who in (BOB, ALICE):
            config = make_config(make_role(cpus=9), name=f"{who.name}-{number}")
            await service.admission.submit(who, who.name, config)
    first, second = service.queues.waiting("default", limit=2)
    assert [first.job.name, second.job.name] == ["bob-0", "alice-0"]
    rest = service.queues.waiting("default", after=second.keyed, limit=3)
    assert [entry.job.name for entry in rest] == ["bob-1", "alice-1", "bob-2"]
    own = await service.queues.own(ALICE, "default", second.keyed, 5)
    found = [service.queues.at(keyed) for keyed in own]
    assert [entry and entry.job.name for entry in found] == ["alice-1", "alice-2"]
    assert await service.queues.own(ALICE, "vision", second.keyed, 5) == []
    await service.jobs.delete(ALICE, "alice", "alice-1")
    assert service.queues.at(own[0]) is None


async def test_a_job_that_is_not_in_line_has_no_place_and_waits_for_nothing(service: OpenService) -> None:
    job = await service.run("over")
    assert (service.queues.queue_position(job), service.queues.waiting_reason(ALICE, job)) == (None, None)
    assert service.queues.names() == ["default", "vision"]
