"""Schedules are kept on both databases."""

from __future__ import annotations

from dataclasses import replace

from pai_scheduler.i18n import msg
from pai_scheduler.job.schedule import LastRun, Overlap, RunOutcome, Schedule
from pai_scheduler.store.store import Store
from tests.scheduler.store.conftest import OpenStore

NIGHTLY = Schedule("alice", "nightly", "0 2 * * *", "Asia/Shanghai", Overlap.SKIP, False, 1, 10)
HOURLY = Schedule("alice", "hourly", "0 * * * *", "UTC", Overlap.ALLOW, True, 2, None)
CONFIG = {"jobName": "报告", "jobEnvs": {"A": "1"}}


def test_a_schedule_is_read_as_it_was_written(open_store: OpenStore) -> None:
    store = open_store()
    assert store.put_schedule(NIGHTLY, CONFIG, 2)
    assert store.put_schedule(HOURLY, {}, 2)
    again = open_store()
    assert again.schedules("alice") == [HOURLY, NIGHTLY]
    assert again.schedule("alice", "nightly") == (NIGHTLY, CONFIG)
    for user, name in (("bob", "nightly"), ("alice", "other"), ("alice", "nul\0")):
        assert again.schedule(user, name) is None
    assert again.schedules("bob") == again.schedules("nul\0") == []


def test_what_came_of_it_last_is_kept_beside_the_job(open_store: OpenStore) -> None:
    store = open_store()
    store.put_schedule(NIGHTLY, CONFIG, 2)
    last = LastRun("nightly-20261125-0200", 11, RunOutcome.REFUSED, msg("There is no {name}.", name="vision"))
    changed = replace(NIGHTLY, next=20, last=last)
    store.change_schedule(changed)
    assert open_store().schedule("alice", "nightly") == (changed, CONFIG)


def test_one_that_is_gone_does_not_come_back_by_a_change(store: Store) -> None:
    store.change_schedule(NIGHTLY)
    assert store.schedule("alice", "nightly") is None
    store.put_schedule(NIGHTLY, CONFIG, 2)
    assert store.remove_schedule("alice", "nightly")
    assert not store.remove_schedule("alice", "nightly")
    assert store.schedules("alice") == []


def test_a_user_has_so_many_and_may_replace_them(store: Store) -> None:
    assert store.put_schedule(NIGHTLY, CONFIG, 1)
    assert not store.put_schedule(HOURLY, {}, 1)
    assert store.put_schedule(replace(HOURLY, user="bob"), {}, 1)
    replaced = replace(NIGHTLY, cron="0 3 * * *")
    assert store.put_schedule(replaced, {}, 1)
    assert store.schedule("alice", "nightly") == (replaced, {})


def test_the_longest_due_comes_first_and_what_is_paused_never(store: Store) -> None:
    assert store.next_due() is None
    for schedule in (
        NIGHTLY,
        HOURLY,
        replace(NIGHTLY, user="bob", next=5),
        replace(NIGHTLY, name="x", next=99),
    ):
        store.put_schedule(schedule, {}, 9)
    assert store.next_due() == 5
    assert store.due_schedules(4) == []
    assert store.due_schedules(10) == [("bob", "nightly"), ("alice", "nightly")]
