"""What is due is submitted once, in its owner's name; the clock is set by the tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.i18n import msg
from pai_scheduler.job.schedule import Overlap, RunOutcome, Schedule
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import storage_unavailable
from pai_scheduler.service.schedules import WantedSchedule
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.paths import StorageError, StorageNames, StoragePath
from tests.scheduler.machine import HOUR, NOON, Machine
from tests.scheduler.making import make_config, make_role
from tests.scheduler.open_service import ALICE, BOB, CLUSTER, FOREVER, ROOT, OpenService, refused

#: NOON is 2023-11-14 22:13:20 UTC
HOURLY = WantedSchedule("0 * * * *", "UTC", make_config(name="any"))
#: until the next full hour
TO_FULL_HOUR = (46 * 60 + 40) * 1000

Restart = Callable[[], Awaitable[OpenService]]


class _Unwatched(OpenService):
    """A service that looks at the schedules when the test says so."""

    async def start(self) -> None:
        self.schedules.start = lambda: None  # type: ignore[method-assign]
        await super().start()


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
async def restart(machine: Machine, tmp_path: Path) -> AsyncIterator[Restart]:
    """Return services over one folder, one after the other."""
    services: list[OpenService] = []

    async def make() -> OpenService:
        if services:
            await services[-1].close()
        services.append(_Unwatched(tmp_path, CLUSTER, machine.clock()))
        await services[-1].start()
        return services[-1]

    yield make
    for job in await services[-1].jobs.page(ROOT):
        await services[-1].jobs.stop(ROOT, job.user, job.name)
        await services[-1].until(job.name, user=job.user)
    await services[-1].close()


@pytest.fixture
async def service(restart: Restart) -> OpenService:
    return await restart()


async def _names(service: OpenService, user: Principal = ALICE) -> list[str]:
    return sorted(job.name for job in await service.jobs.page(user))


async def _last(service: OpenService, name: str = "s") -> Schedule:
    return (await service.schedules.get(ALICE, "alice", name))[0]


async def test_a_run_is_submitted_when_it_is_due_and_not_before(
    service: OpenService, machine: Machine
) -> None:
    made = await service.schedules.put(ALICE, "alice", "s", HOURLY)
    assert made.next == NOON + TO_FULL_HOUR
    machine.passes(TO_FULL_HOUR - 1)
    assert await service.schedules.look()
    assert await _names(service) == []
    machine.passes(1)
    await service.schedules.look()
    await service.schedules.look()
    assert await _names(service) == ["s-20231114-2300"]
    schedule = await _last(service)
    assert schedule.last is not None
    assert (schedule.last.job, schedule.last.outcome) == ("s-20231114-2300", RunOutcome.SUBMITTED)
    assert schedule.next == made.next + HOUR
    assert (await service.until("s-20231114-2300")).user == "alice"


async def test_what_was_missed_is_run_once(restart: Restart, machine: Machine) -> None:
    await (await restart()).schedules.put(ALICE, "alice", "s", HOURLY)
    machine.passes(5 * HOUR)
    service = await restart()
    await service.schedules.look()
    assert await _names(service) == ["s-20231114-2300"]
    assert (await _last(service)).next == NOON + TO_FULL_HOUR + 5 * HOUR


async def test_a_run_that_was_submitted_but_not_noted_is_not_submitted_again(
    restart: Restart, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await restart()
    wanted = replace(HOURLY, config=make_config(make_role(command=FOREVER)))
    await service.schedules.put(ALICE, "alice", "s", wanted)
    machine.passes(HOUR)

    async def killed(_: Schedule) -> None:
        raise storage_unavailable(msg("Not now."))

    monkeypatch.setattr(service.schedules, "_note", killed)
    assert not await service.schedules.look()
    again = await restart()
    assert (await _last(again)).last is None
    assert await again.schedules.look()
    assert await _names(again) == ["s-20231114-2300"]
    last = (await _last(again)).last
    assert last is not None
    assert (last.job, last.outcome) == ("s-20231114-2300", RunOutcome.SUBMITTED)


async def test_a_run_is_left_out_while_another_has_not_ended_unless_that_is_allowed(
    service: OpenService, machine: Machine
) -> None:
    config = make_config(make_role(command=FOREVER))
    await service.schedules.put(ALICE, "alice", "s", replace(HOURLY, config=config))
    await service.schedules.put(ALICE, "alice", "t", replace(HOURLY, config=config, overlap=Overlap.ALLOW))
    for _ in range(2):
        machine.passes(HOUR)
        await service.schedules.look()
    assert await _names(service) == ["s-20231114-2300", "t-20231114-2300", "t-20231115-0000"]
    last = (await _last(service)).last
    assert last is not None
    assert (last.outcome, last.job) == (RunOutcome.SKIPPED, "s-20231115-0000")
    assert "s-20231114-2300 of this schedule has not ended" in str(last.message)


async def test_a_refusal_is_told_at_the_schedule_and_the_next_run_is_tried(
    service: OpenService, machine: Machine
) -> None:
    config = make_config(virtualCluster="vision")
    await service.schedules.put(ALICE, "alice", "s", replace(HOURLY, config=config))
    service.users["alice"] = Principal("alice")  # no longer in the group
    machine.passes(HOUR)
    assert await service.schedules.look()
    schedule = await _last(service)
    assert schedule.last is not None
    assert schedule.last.outcome is RunOutcome.REFUSED
    assert "vision is not open to you" in str(schedule.last.message)
    del service.users["alice"]
    machine.passes(HOUR)
    assert await service.schedules.look()
    last = (await _last(service)).last
    assert "User alice is not known." in str(last and last.message)
    service.users["alice"] = ALICE
    machine.passes(HOUR)
    await service.schedules.look()
    assert await _names(service) == ["s-20231115-0100"]


async def test_when_nobody_can_say_who_the_owner_is_it_is_tried_again(
    service: OpenService, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.schedules.put(ALICE, "alice", "s", HOURLY)
    machine.passes(HOUR)
    with monkeypatch.context() as patch:

        async def unreachable(_: str) -> Principal | None:
            raise storage_unavailable(msg("Not now."))

        patch.setattr(service.schedules, "_find_user", unreachable)
        assert not await service.schedules.look()
    assert (await _last(service)).last is None
    assert await service.schedules.look()
    assert await _names(service) == ["s-20231114-2300"]


async def test_a_fault_in_one_schedule_keeps_no_other_from_running(
    service: OpenService, machine: Machine
) -> None:
    for name in ("a", "b"):
        await service.schedules.put(ALICE, "alice", name, HOURLY)
    broken = replace((await service.schedules.get(ALICE, "alice", "a"))[0], zone="Gone/Zone")
    service.database.change_schedule(broken)
    machine.passes(HOUR)
    assert not await service.schedules.look()
    assert await _names(service) == ["b-20231114-2300"]


async def test_a_paused_schedule_rests_and_makes_up_for_nothing(
    service: OpenService, machine: Machine
) -> None:
    await service.schedules.put(ALICE, "alice", "s", HOURLY)
    paused = await service.schedules.set_paused(ALICE, "alice", "s", paused=True)
    assert (paused.paused, paused.next) == (True, None)
    machine.passes(3 * HOUR)
    await service.schedules.look()
    again = await service.schedules.set_paused(ALICE, "alice", "s", paused=False)
    assert again.next == NOON + TO_FULL_HOUR + 3 * HOUR
    await service.schedules.look()
    assert await _names(service) == []


async def test_one_may_start_a_run_at_any_time(service: OpenService, machine: Machine) -> None:
    await service.schedules.put(ALICE, "alice", "s", replace(HOURLY, paused=True))
    assert await service.schedules.run(ALICE, "alice", "s") == "s-20231114-221320"
    machine.passes(1000)
    # an administrator starts it in the owner's name
    await service.schedules.run(ROOT, "alice", "s")
    assert await _names(service) == ["s-20231114-221320", "s-20231114-221321"]
    last = (await _last(service)).last
    assert last is not None
    assert last.job == "s-20231114-221321"


async def test_changing_a_schedule_keeps_what_is_known_of_it(service: OpenService, machine: Machine) -> None:
    made = await service.schedules.put(ALICE, "alice", "s", HOURLY)
    await service.schedules.run(ALICE, "alice", "s")
    machine.passes(1000)
    changed = await service.schedules.put(ALICE, "alice", "s", replace(HOURLY, cron="30 * * * *"))
    assert changed.created == made.created
    assert changed.last is not None
    await service.schedules.delete(ALICE, "alice", "s")
    with refused(404, "NoScheduleError"):
        await service.schedules.get(ALICE, "alice", "s")
    assert len(await _names(service)) == 1


async def test_what_was_uploaded_for_a_schedule_goes_with_it(service: OpenService, tmp_path: Path) -> None:
    files = Files(FolderStorage(tmp_path / "files"), StorageNames(["file:///files"]))
    await files.start()
    service.schedules._files = files
    folder = StoragePath(("alice", "schedules", "s_0123abcd"))
    await files.mkdirs(ALICE, folder)
    job = make_config(name="any", codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/schedules/s_0123abcd")
    uploaded = {**job, "extras": {"run": {"file": "a.ipynb", "kind": "notebook"}}}

    async def keep(name: str, config: dict[str, Any]) -> None:
        schedule, _ = await service.schedules.get(ALICE, "alice", name)
        await service.schedules._writer.keep(service.schedules._store.put_schedule, schedule, config, 100)

    async def deleted(name: str) -> bool:
        await service.schedules.delete(ALICE, "alice", name)
        try:
            await files.status(ALICE, folder)
        except StorageError:
            return True
        return False

    for name, config in (("own", job), ("first", uploaded), ("second", uploaded)):
        await service.schedules.put(ALICE, "alice", name, HOURLY)
        await keep(name, config)
    # what somebody has put there themselves stays; so does what another schedule needs
    assert not await deleted("own")
    assert not await deleted("first")
    assert await deleted("second")
    await files.close()


async def test_what_is_wrong_is_refused_when_it_is_made(service: OpenService) -> None:
    wrong = replace(HOURLY, config=make_config(make_role(tasks=0)))
    for name, wanted, place in (
        ("s", replace(HOURLY, cron="nonsense"), "$.cron"),
        ("s", replace(HOURLY, zone="Mars"), "$.timeZone"),
        ("a b", HOURLY, "schedule"),
        ("s", wrong, "$.job.taskRoles[0].taskNumber"),
    ):
        with refused(400, "InvalidParametersError") as caught:
            await service.schedules.put(ALICE, "alice", name, wanted)
        assert [error.path for error in caught.value.errors] == [place]
    with refused(403, "ForbiddenUserError"):
        await service.schedules.put(
            BOB, "bob", "s", replace(HOURLY, config=make_config(virtualCluster="vision"))
        )
    assert await service.schedules.list(ALICE, "alice") == []


async def test_a_user_may_have_so_many(service: OpenService) -> None:
    service.schedules._most = 2
    for name in ("a", "b", "a"):
        await service.schedules.put(ALICE, "alice", name, HOURLY)
    with refused(429, "TooManySchedulesError"):
        await service.schedules.put(ALICE, "alice", "c", HOURLY)
    await service.schedules.put(BOB, "bob", "c", HOURLY)


async def test_schedules_are_their_owners_and_administrators_alone(service: OpenService) -> None:
    await service.schedules.put(ALICE, "alice", "s", HOURLY)
    with refused(403, "ForbiddenUserError"):
        await service.schedules.list(BOB, "alice")
    with refused(403, "ForbiddenUserError"):
        await service.schedules.put(BOB, "alice", "x", HOURLY)
    for call in (
        service.schedules.get(BOB, "alice", "s"),
        service.schedules.delete(BOB, "alice", "s"),
        service.schedules.run(BOB, "alice", "s"),
        service.schedules.set_paused(BOB, "alice", "s", paused=True),
    ):
        with refused(404, "NoScheduleError"):
            await call
    # what an administrator makes for somebody has that user's rights
    with refused(403, "ForbiddenUserError"):
        await service.schedules.put(
            ROOT, "bob", "x", replace(HOURLY, config=make_config(virtualCluster="vision"))
        )
    with refused(400, "NoUserError"):
        await service.schedules.put(ROOT, "nobody", "x", HOURLY)
    await service.schedules.put(ROOT, "bob", "x", HOURLY)
    assert [schedule.name for schedule in await service.schedules.list(ROOT, "bob")] == ["x"]
