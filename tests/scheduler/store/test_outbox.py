"""What is still to be told is kept with the end that it tells of."""

from __future__ import annotations

from dataclasses import replace

from pai_scheduler.core.instructions import Announcement, Outcome
from pai_scheduler.core.model import JobEvent
from pai_scheduler.i18n import msg
from pai_scheduler.store.store import Store

from .stored_jobs import add

ONE = Announcement("j1", "webhook", "ada", "https://hooks.lab/", 1000, {"name": "train", "n": [1, "ü"]})


def test_an_announcement_is_kept_until_it_is_told(store: Store) -> None:
    mail = replace(ONE, channel="mail", target="", time=2000)
    store.commit(Outcome(announcements=[ONE, mail]), {})
    assert [waiting.announcement for waiting in store.due_announcements(2000, 9)] == [ONE, mail]
    assert [waiting.announcement for waiting in store.due_announcements(1999, 9)] == [ONE]
    assert store.next_announcement() == 1000
    store.settle(ONE)
    assert [waiting.announcement for waiting in store.due_announcements(2000, 9)] == [mail]
    store.settle(mail)
    assert store.next_announcement() is None


def test_one_that_was_put_off_comes_after_what_was_never_tried_and_all_at_once_after_a_start(
    store: Store,
) -> None:
    new = replace(ONE, job_id="j2", time=5000)
    store.commit(Outcome(announcements=[ONE, new]), {})
    store.put_off(ONE, 2, 4000)
    assert [waiting.tries for waiting in store.due_announcements(6000, 9)] == [0, 2]
    store.put_off(new, 1, 90_000)
    assert [waiting.due for waiting in store.due_announcements(6000, 9)] == [4000]
    store.announce_all(6000)
    assert [waiting.due for waiting in store.due_announcements(6000, 9)] == [6000, 4000]


def test_giving_up_is_told_where_the_job_is_still_there(store: Store) -> None:
    add(store, "train")
    theirs, gone = replace(ONE, job_id="train"), replace(ONE, job_id="gone")
    store.commit(Outcome(announcements=[theirs, gone]), {})
    for one in (theirs, gone):
        store.settle(one, JobEvent(one.job_id, 3000, "not-told", msg("It could not be told.")))
    told = [event.entry for event in store.job_events() if event.entry.type == "not-told"]
    assert [(entry.job_id, str(entry.message)) for entry in told] == [("train", "It could not be told.")]
    assert store.next_announcement() is None
