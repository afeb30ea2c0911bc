"""Which jobs are taken, over a real database."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest

from pai_scheduler.core.events import SharesChanged
from pai_scheduler.core.model import State
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service.admission import Accepted, JobIds, TakenNames
from tests.scheduler.making import make_config, make_role
from tests.scheduler.open_service import ALICE, BOB, FOREVER, ROOT, MakeService, OpenService, refused


async def test_of_many_submissions_of_one_name_exactly_one_is_accepted(service: OpenService) -> None:
    config = make_config(name="same")
    results = await asyncio.gather(
        *(service.admission.submit(ALICE, "alice", config) for _ in range(20)), return_exceptions=True
    )
    accepted = [result for result in results if isinstance(result, Accepted)]
    conflicts = [result for result in results if isinstance(result, RequestError) and result.status == 409]
    assert (len(accepted), len(conflicts)) == (1, 19)
    assert len(await service.jobs.page(ALICE)) == 1


async def test_two_users_may_use_one_name(service: OpenService) -> None:
    config = make_config(name="same")
    await asyncio.gather(
        service.admission.submit(ALICE, "alice", config), service.admission.submit(BOB, "bob", config)
    )
    assert len(await service.jobs.page(ROOT)) == 2


async def test_an_ended_jobs_name_is_taken_until_it_is_deleted(service: OpenService) -> None:
    await service.run("again")
    with refused(409, "ConflictJobError"):
        await service.admission.submit(ALICE, "alice", make_config(name="again"))
    await service.jobs.delete(ALICE, "alice", "again")
    assert (await service.run("again", "exit 2")).state is State.FAILED


async def test_a_caller_who_goes_away_has_submitted_all_the_same(service: OpenService) -> None:
    while not service.admission.taken.complete:  # noqa: ASYNC110 - nobody is told of that
        await asyncio.sleep(0.001)
    submission = asyncio.create_task(service.admission.submit(ALICE, "alice", make_config(name="gone")))
    await asyncio.sleep(0)
    submission.cancel()
    await asyncio.wait([submission])
    with refused(409, "ConflictJobError"):
        await service.admission.submit(ALICE, "alice", make_config(name="gone"))


async def test_only_admins_submit_for_others(service: OpenService) -> None:
    with refused(403, "ForbiddenUserError"):
        await service.admission.submit(BOB, "alice", make_config())
    await service.admission.submit(ROOT, "alice", make_config())
    assert [job.user for job in await service.jobs.page(ALICE)] == ["alice"]


@pytest.mark.parametrize("name", ["nul\0", "x" * 256])
async def test_a_job_for_somebody_whose_name_no_database_can_hold_is_refused(
    service: OpenService, name: str
) -> None:
    with refused(400, "InvalidParametersError"):
        await service.admission.submit(ROOT, name, make_config(name="j"))


async def test_a_virtual_cluster_is_open_to_its_groups_and_to_admins(service: OpenService) -> None:
    with refused(404, "NoVirtualClusterError"):
        await service.admission.submit(ALICE, "alice", make_config(virtualCluster="nowhere"))
    with refused(403, "ForbiddenUserError"):
        await service.admission.submit(BOB, "bob", make_config(virtualCluster="vision"))
    await service.admission.submit(ALICE, "alice", make_config(virtualCluster="vision"))
    await service.admission.submit(ROOT, "bob", make_config(virtualCluster="vision"))
    counts = {use.name: use.total_jobs for use in await service.virtual_clusters.uses()}
    assert counts == {"default": 0, "vision": 2}


async def test_a_wrong_job_is_refused_with_every_error(service: OpenService) -> None:
    config = make_config(make_role(tasks=0, command=""))
    with pytest.raises(RequestError) as caught:
        await service.admission.submit(ALICE, "alice", config)
    assert (caught.value.status, caught.value.code) == (400, "InvalidParametersError")
    paths = {error.path for error in caught.value.errors}
    assert paths == {"$.taskRoles[0].taskNumber", "$.taskRoles[0].command"}
    checked = await service.admission.validate(ALICE, config)
    assert (checked.fits, {error.path for error in checked.errors}) == ("never", paths)
    assert await service.jobs.page(ALICE) == []


async def test_a_job_is_told_beforehand_whether_it_fits_now_later_or_never(service: OpenService) -> None:
    half, whole, more = (make_config(make_role(cpus=cpus, command=FOREVER)) for cpus in (4, 8, 9))
    assert [(await service.admission.validate(ALICE, config)).fits for config in (half, whole, more)] == [
        "now",
        "now",
        "never",
    ]
    await service.admission.submit(ALICE, "alice", half)
    answers = [await service.admission.validate(ALICE, config) for config in (half, whole, more)]
    assert [answer.fits for answer in answers] == ["now", "later", "never"]
    # virtual cluster default is guaranteed 60 per cent of 8 CPUs
    assert [answer.borrows for answer in answers] == [True, True, False]
    assert "may be stopped for others" in str(answers[0].reason)


async def test_a_job_that_never_fits_is_accepted_and_says_so(service: OpenService) -> None:
    await service.admission.submit(ALICE, "alice", make_config(make_role(cpus=9)))
    reason = service.queues.waiting_reason(ALICE, await service.jobs.get(ALICE, "alice", "job"))
    assert "Never fits at present: a task asks for 9 CPUs, the largest node has 8." in str(reason)


async def test_a_user_may_have_only_so_many_jobs_that_have_not_ended(service: OpenService) -> None:
    service._cluster.definition = replace(service._cluster.definition, jobs_per_user=2)
    await service.begin("first")
    await service.admission.submit(ALICE, "alice", make_config(make_role(cpus=9), name="waits"))
    with refused(429, "TooManyJobsError"):
        await service.admission.submit(ALICE, "alice", make_config(name="third"))
    await service.admission.submit(BOB, "bob", make_config(name="anothers"))
    await service.jobs.stop(ALICE, "alice", "waits")
    await service.admission.submit(ALICE, "alice", make_config(name="third"))


async def test_more_time_than_a_virtual_cluster_allows_is_refused_beforehand(service: OpenService) -> None:
    clusters = {"default": replace(service._cluster.virtual_clusters["default"], max_run_seconds=60)}
    await service._writer.request(SharesChanged(0, tuple(clusters.values()), {}))
    config = make_config(extras={"maxRunSeconds": 61})
    (error,) = (await service.admission.validate(ALICE, config)).errors
    assert error.path == "$.extras.maxRunSeconds"
    with refused(400, "InvalidParametersError"):
        await service.admission.submit(ALICE, "alice", config)


async def test_a_name_that_the_database_has_from_an_earlier_run_is_taken(make_service: MakeService) -> None:
    service = await make_service()
    await service.admission.submit(ALICE, "alice", make_config(name="old"))
    await service.close()
    service = await make_service()
    await service.admission.submit(ALICE, "alice", make_config(name="new"))
    for name in ("old", "new"):
        with refused(409, "ConflictJobError"):
            await service.admission.submit(ALICE, "alice", make_config(name=name))


async def test_a_name_is_free_again_when_its_job_is_deleted(service: OpenService) -> None:
    for _ in range(2):
        await service.run("again")
        await service.jobs.delete(ALICE, "alice", "again")


# No id is made twice, and each is higher than those before.


NOON = 1_800_000_000_000


def test_ids_rise_within_one_ms_too() -> None:
    ids = JobIds()
    made = [ids.new(NOON + number // 100) for number in range(10_000)]
    assert made == sorted(set(made))


def test_an_id_is_higher_though_the_clock_was_set_back() -> None:
    ids = JobIds()
    assert ids.new(NOON) < ids.new(NOON - 3_600_000)


def test_an_id_stands_in_every_kind_of_name() -> None:
    assert re.fullmatch("[0-9a-v]{16}", JobIds().new(NOON))


def test_two_schedulers_make_different_ids_at_the_same_time() -> None:
    first, second = JobIds(), JobIds()
    assert not {first.new(NOON) for _ in range(100)} & {second.new(NOON) for _ in range(100)}


# A name that is taken is never thought free; hardly a free one is asked for.


NAMES = [(f"user-{number % 7}", f"job-{number}") for number in range(20_000)]


def test_every_name_that_was_added_may_be_taken() -> None:
    names = TakenNames()
    names.add("alice", "early")
    names.add_all(NAMES)
    assert all(names.may_be_taken(user, name) for user, name in [*NAMES, ("alice", "early")])


def test_hardly_any_other_name_may_be() -> None:
    names = TakenNames()
    names.add_all(NAMES)
    others = [(user, f"other-{name}") for user, name in NAMES]
    assert sum(names.may_be_taken(user, name) for user, name in others) < 20


def test_until_all_are_known_each_may_be_taken() -> None:
    names = TakenNames()
    assert names.may_be_taken("alice", "new")
    names.add_all(())
    assert not names.may_be_taken("alice", "new")
