from __future__ import annotations

from pai_scheduler.core.timers import Timer, Timers


def test_due_timers_come_once_and_the_earliest_first() -> None:
    timers = Timers()
    timers.set("late", Timer.RETRY, 30)
    timers.set("early", Timer.HOLD, 10)
    timers.set("middle", Timer.RETRY, 20)
    assert list(timers.due(29)) == [("early", Timer.HOLD), ("middle", Timer.RETRY)]
    assert list(timers.due(29)) == []
    assert list(timers.due(30)) == [("late", Timer.RETRY)]
    assert timers.next() is None


def test_nothing_is_due_a_millisecond_too_early() -> None:
    timers = Timers()
    timers.set("j", Timer.RETRY, 10)
    assert list(timers.due(9)) == []
    assert timers.get("j", Timer.RETRY) == 10
    assert list(timers.due(10)) == [("j", Timer.RETRY)]
    assert timers.get("j", Timer.RETRY) is None


def test_another_time_replaces_the_one_before_be_it_later_or_earlier() -> None:
    timers = Timers()
    timers.set("j", Timer.RETRY, 10)
    timers.set("j", Timer.RETRY, 20)
    assert (timers.next(), list(timers.due(19))) == (20, [])
    timers.set("j", Timer.RETRY, 5)
    assert timers.next() == 5
    assert list(timers.due(100)) == [("j", Timer.RETRY)]


def test_a_timer_that_was_replaced_fires_once() -> None:
    timers = Timers()
    for time in (10, 20, 10, 10):
        timers.set("j", Timer.RETRY, time)
    assert list(timers.due(100)) == [("j", Timer.RETRY)]


def test_purposes_of_one_job_are_apart() -> None:
    timers = Timers()
    timers.set("j", Timer.TIME_LIMIT, 10)
    timers.set("j", Timer.HOLD, 20)
    timers.cancel("j", Timer.TIME_LIMIT)
    assert (timers.get("j", Timer.TIME_LIMIT), timers.get("j", Timer.HOLD)) == (None, 20)
    assert list(timers.due(100)) == [("j", Timer.HOLD)]


def test_all_timers_of_a_job_are_cancelled_and_no_one_elses() -> None:
    timers = Timers()
    for timer in Timer:
        timers.set("gone", timer, 10)
        timers.set("other", timer, 20)
    timers.cancel("gone")
    timers.cancel("never known")
    assert timers.next() == 20
    assert sorted(timers.due(100)) == sorted(("other", timer) for timer in Timer)


def test_what_was_cancelled_may_be_set_again() -> None:
    timers = Timers()
    timers.set("j", Timer.RETRY, 10)
    timers.cancel("j")
    assert timers.next() is None
    timers.set("j", Timer.RETRY, 10)
    assert list(timers.due(10)) == [("j", Timer.RETRY)]


def test_what_is_set_meanwhile_and_due_too_comes_as_well() -> None:
    timers = Timers()
    timers.set("first", Timer.RETRY, 10)
    rung = []
    for job_id, _ in timers.due(20):
        rung.append(job_id)
        if job_id == "first":
            timers.set("second", Timer.HOLD, 20)
            timers.set("third", Timer.HOLD, 21)
    assert rung == ["first", "second"]
    assert timers.next() == 21


def test_what_is_cancelled_meanwhile_does_not_come() -> None:
    timers = Timers()
    timers.set("first", Timer.RETRY, 10)
    timers.set("second", Timer.RETRY, 10)
    rung = []
    for job_id, _ in timers.due(20):
        rung.append(job_id)
        timers.cancel("second")
    assert rung == ["first"]


def test_a_clock_set_back_fires_no_timer_early_or_twice() -> None:
    timers = Timers()
    timers.set("j", Timer.RETRY, 10)
    timers.set("k", Timer.RETRY, 60)
    assert list(timers.due(50)) == [("j", Timer.RETRY)]
    assert list(timers.due(20)) == []
    assert timers.all(Timer.RETRY) == {"k": 60}
    timers.set("k", Timer.RETRY, 20)
    assert list(timers.due(20)) == [("k", Timer.RETRY)]


def test_times_of_one_purpose_are_told_by_job() -> None:
    timers = Timers()
    timers.set("a", Timer.RETRY, 10)
    timers.set("b", Timer.RETRY, 20)
    timers.set("b", Timer.HOLD, 30)
    timers.cancel("a")
    assert timers.all(Timer.RETRY) == {"b": 20}
    assert timers.all(Timer.TIME_LIMIT) == {}
