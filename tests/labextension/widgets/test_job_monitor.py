"""The monitor, against a peer that misbehaves on demand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pai_labextension.widgets import JobMonitor, attempts_view, times
from pai_labextension.widgets.background import NoEventLoopError
from pai_labextension.widgets.job_monitor import MonitorClosedError, last_lines
from pai_labextension.widgets.watch import Pace
from pai_scheduler.client.rest import ApiError
from pai_scheduler.testing.scheduler import FakeScheduler
from tests.labextension.widgets.waiting import until

PACE = Pace(gap=0, first_retry=0.01, longest_retry=0.05, poll=3600)


@pytest.fixture
async def watch(peer: FakeScheduler) -> Any:
    made: list[JobMonitor] = []

    def make(name: str, locale: str = "en", user: str | None = None) -> JobMonitor:
        made.append(JobMonitor(name, user, client=peer.client(), locale=locale, pace=PACE))
        return made[-1]

    yield make
    for monitor in made:
        monitor.close()
        await monitor.client.close()


Watch = Callable[..., JobMonitor]


def visible(widget: Any) -> bool:
    return widget.layout.display != "none"


async def test_a_job_is_followed_from_waiting_to_its_end(peer: FakeScheduler, watch: Watch) -> None:
    job = peer.add("demo")
    monitor = watch("demo")
    await until(lambda: "2 × P100 wanted" in monitor.head.value)
    assert not visible(monitor.logs)
    job.happen("pulling 40 %")
    await until(lambda: "pulling 40 %" in monitor.activity.value)
    job.happen("it runs", state="RUNNING")
    await until(lambda: monitor.state == "RUNNING")
    assert visible(monitor.logs)
    assert "node-a" in monitor.tasks.value
    job.write("worker", 0, b"hello\n")
    await until(lambda: monitor.logs.view.text == "hello\n")
    job.happen("done", state="SUCCEEDED", exit_code=0)
    assert await asyncio.wait_for(monitor.wait(), 10) == "SUCCEEDED"
    assert not visible(monitor.activity)


async def test_ports_are_links_for_the_owner_of_the_job_only(
    peer: FakeScheduler, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/alice/")
    peer.add("demo").state = "RUNNING"
    mine = watch("demo")
    await until(lambda: '"/user/alice/pai/ports/alice/demo/worker-0/http/"' in mine.tasks.value)
    theirs = watch("demo", user="bob")
    await until(lambda: "http: 8080" in theirs.tasks.value)
    assert "<a " not in theirs.tasks.value


async def test_another_task_or_stream_is_another_log(peer: FakeScheduler, watch: Watch) -> None:
    job = peer.add("demo")
    job.state = "RUNNING"
    job.write("worker", 0, b"zero")
    job.write("worker", 1, b"one")
    job.write("worker", 1, b"wrong", "stderr")
    monitor = watch("demo")
    await until(lambda: monitor.logs.view.text == "zero")
    monitor.logs.task.value = ("worker", 1)
    await until(lambda: monitor.logs.view.text == "one")
    monitor.logs.stream.value = "stderr"
    await until(lambda: monitor.logs.view.text == "wrong")


async def test_a_new_attempt_is_followed_by_itself_and_old_ones_stay_readable(
    peer: FakeScheduler, watch: Watch
) -> None:
    job = peer.add("demo")
    job.state = "RUNNING"
    job.write("worker", 0, b"first")
    monitor = watch("demo")
    await until(lambda: monitor.logs.view.text == "first")
    assert not visible(monitor.logs.attempt)
    job.logs.clear()
    job.happen("again", attempt=1)
    job.write("worker", 0, b"second")
    await until(lambda: monitor.logs.attempt.value == 1)
    await until(lambda: monitor.logs.view.text == "second")
    assert visible(monitor.logs.attempt)
    monitor.logs.attempt.value = 0
    job.happen("and again", attempt=2)
    await until(lambda: len(monitor.logs.attempt.options) == 3)
    assert monitor.logs.attempt.value == 0


async def test_a_failure_is_explained_with_the_last_lines_of_the_task_that_decided(
    peer: FakeScheduler, watch: Watch
) -> None:
    job = peer.add("demo")
    job.write("worker", 1, b"Traceback\nValueError: <bad>\n")
    job.happen("failed", state="FAILED", exit_code=1, trigger=("worker", 1), diagnostics="It exited with 1.")
    monitor = watch("demo")
    assert await asyncio.wait_for(monitor.wait(), 10) == "FAILED"
    assert "ValueError: &lt;bad&gt;" in monitor.ending.value
    assert "It exited with 1." in monitor.ending.value
    assert monitor.logs.task.value == ("worker", 1)


async def test_stop_asks_first(peer: FakeScheduler, watch: Watch) -> None:
    peer.add("demo").state = "RUNNING"
    monitor = watch("demo")
    await until(lambda: monitor.state == "RUNNING")
    monitor.stop_button.click()
    assert not visible(monitor.stop_button)
    assert peer.jobs["demo"].state == "RUNNING"
    monitor.stop_yes.click()
    assert await asyncio.wait_for(monitor.wait(), 10) == "STOPPED"


async def test_tasks_that_take_their_time_to_end_are_killed_now(peer: FakeScheduler, watch: Watch) -> None:
    job = peer.add("train")
    job.state, job.lingers = "RUNNING", True
    monitor = watch("train")
    await until(lambda: monitor.state == "RUNNING")
    assert not visible(monitor.kill_button)
    await monitor.stop()
    await until(lambda: visible(monitor.kill_button))
    assert not visible(monitor._stop_row)
    assert "to end by themselves" in monitor.head.value
    monitor.kill_button.click()
    assert await asyncio.wait_for(monitor.wait(), 10) == "STOPPED"
    assert not visible(monitor.kill_button)


async def test_a_stop_that_does_not_arrive_is_said(peer: FakeScheduler, watch: Watch) -> None:
    peer.add("demo").state = "RUNNING"
    monitor = watch("demo")
    await until(lambda: monitor.state == "RUNNING")
    await peer.stop()
    await monitor.stop()
    assert "Not stopped" in monitor.outcome.value


async def test_a_restart_of_the_scheduler_is_said_and_survived(peer: FakeScheduler, watch: Watch) -> None:
    job = peer.add("demo")
    job.state = "RUNNING"
    job.write("worker", 0, b"one\n")
    monitor = watch("demo")
    await until(lambda: monitor.logs.view.text == "one\n")
    await peer.stop()
    await until(lambda: "does not answer" in monitor.trouble.value)
    job.write("worker", 0, b"two\n")
    job.happen("done", state="SUCCEEDED")
    await peer.start()
    assert await asyncio.wait_for(monitor.wait(), 10) == "SUCCEEDED"
    await until(lambda: monitor.logs.view.text == "one\ntwo\n")
    assert not visible(monitor.trouble)


async def test_a_job_that_is_not_there_is_said(watch: Watch) -> None:
    monitor = watch("nowhere")
    with pytest.raises(ApiError):
        await asyncio.wait_for(monitor.wait(), 10)
    assert "nowhere cannot be shown" in monitor.head.value


async def test_closing_ends_its_tasks_and_wakes_who_waits(peer: FakeScheduler, watch: Watch) -> None:
    peer.add("demo")
    before = asyncio.all_tasks()
    monitor = watch("demo")
    waiting = asyncio.create_task(monitor.wait())
    await until(lambda: monitor.state == "WAITING")
    monitor.close()
    with pytest.raises(MonitorClosedError):
        await asyncio.wait_for(waiting, 10)
    await until(
        lambda: not {task for task in asyncio.all_tasks() - before if task.get_name().startswith("pai-")}
    )


async def test_a_fault_of_ours_is_shown_and_wakes_who_waits(
    peer: FakeScheduler, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer.add("demo")
    monkeypatch.setattr(attempts_view, "history", lambda *_: dict[str, str]()["fault"])
    monitor = watch("demo")
    with pytest.raises(KeyError):
        await asyncio.wait_for(monitor.wait(), 10)
    await until(lambda: "KeyError" in monitor.outcome.value)


async def test_an_answer_that_does_not_fit_is_shown_and_asked_again(
    peer: FakeScheduler, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(type(peer.add("demo")), "attempts", lambda _self: [{}])
        monitor = watch("demo")
        await until(lambda: "missing required field" in monitor.trouble.value)
    await until(lambda: monitor.state == "WAITING" and not monitor.trouble.value)


async def test_it_speaks_chinese(peer: FakeScheduler, watch: Watch) -> None:
    peer.add("demo")
    monitor = watch("demo", "zh_CN")
    await until(lambda: "等待中" in monitor.head.value)
    assert monitor.stop_button.description == "停止作业"


def test_without_a_loop_it_says_what_to_do() -> None:
    with pytest.raises(NoEventLoopError):
        JobMonitor("demo")


def test_the_last_lines_are_those_a_terminal_would_show() -> None:
    output = "".join(f"line {n}\n" for n in range(50)) + "\r10%\r100%\n"
    assert last_lines(output.encode()).split("\n")[-2:] == ["line 49", "100%"]
    assert len(last_lines(output.encode()).split("\n")) == 8


async def test_the_place_in_the_queue_moves_without_an_event(peer: FakeScheduler) -> None:
    job = peer.add("demo")
    job.priority, job.queue_position = 70, 3
    pace = Pace(gap=0, first_retry=0.01, longest_retry=0.05, poll=3600, waiting=0.01)
    monitor = JobMonitor("demo", client=peer.client(), locale="en", pace=pace)
    try:
        await until(lambda: "Priority: 70 · Place 3 in the queue" in monitor.head.value)
        job.queue_position, job.waiting_reason = 1, "First in the queue."
        await until(lambda: "Place 1 in the queue" in monitor.head.value)
        assert "First in the queue." in monitor.head.value
    finally:
        monitor.close()
        await monitor.client.close()


async def test_a_container_that_is_kept_says_until_when(peer: FakeScheduler, watch: Watch) -> None:
    job = peer.add("demo")
    job.event_facts[1] = {"type": "held", "attempt": 0, "data": {"until": 1_700_000_000_000}}
    job.event_facts[2] = {"type": "held", "attempt": 0, "data": {"until": 1_700_009_000_000}}
    job.happen("kept", state="RUNNING", sub_state="DEBUG_HELD")
    job.happen("kept, too")
    monitor = watch("demo")
    await until(lambda: "container kept for debugging until <time " in monitor.head.value)
    await until(lambda: "kept, too" in monitor.activity.value)
    assert times.when(1_700_000_000_000) in monitor.head.value, "the first one goes first"


async def test_entering_a_task_does_not_replace_the_jobs_status_line(
    peer: FakeScheduler, watch: Watch
) -> None:
    job = peer.add("demo")
    job.event_facts[2] = {"type": "access", "attempt": 0, "data": {}}
    job.happen("fetching the image", state="RUNNING")
    job.happen("alice left worker-0")
    monitor = watch("demo")
    await until(lambda: monitor.state == "RUNNING" and monitor.activity.value)
    job.event_facts[3] = {"type": "held", "attempt": 0, "data": {"until": 1_700_000_000_000}}
    job.happen("", sub_state="DEBUG_HELD")
    await until(lambda: "container kept" in monitor.head.value)
    assert "fetching the image" in monitor.activity.value


async def test_earlier_attempts_are_told(peer: FakeScheduler, watch: Watch) -> None:
    job = peer.add("demo")
    job.attempt_facts[0] = {"state": "STOPPED", "exitCode": -7120, "reason": "Preempted."}
    monitor = watch("demo")
    await until(lambda: monitor.detail)
    assert not visible(monitor.history)
    job.happen("again", attempt=1)
    await until(lambda: "Preempted." in monitor.history.value)
    assert visible(monitor.history)


async def test_what_the_chosen_task_uses_is_drawn_of_any_attempt(peer: FakeScheduler, watch: Watch) -> None:
    job = peer.add("demo")
    job.attempt, job.state = 1, "RUNNING"
    job.usage[1, "worker", 0] = {"memoryMB": [(1000, 11.0)]}
    job.usage[1, "worker", 1] = {"memoryMB": [(1000, 12.0)]}
    job.usage[0, "worker", 1] = {"memoryMB": [(1000, 13.0)]}
    monitor = watch("demo")
    await until(lambda: "What worker 0 uses" in monitor.usage.charts.value)
    assert "11 MB now" in monitor.usage.charts.value
    monitor.logs.task.value = ("worker", 1)
    await until(lambda: "12 MB now" in monitor.usage.charts.value)
    monitor.logs.attempt.value = 0
    await until(lambda: "13 MB now" in monitor.usage.charts.value)


async def test_its_end_and_a_tasks_log_are_values(peer: FakeScheduler, watch: Watch) -> None:
    job = peer.add("demo")
    job.write("worker", 1, "grüß\n".encode())
    monitor = watch("demo")
    job.happen("done", state="FAILED", exit_code=3, diagnostics="It failed.")
    end = await asyncio.wait_for(monitor.wait(), 10)
    assert (end, end.exit_code, end.reason) == ("FAILED", 3, "It failed.")
    # the peer is on the loop of this test, which a call in a notebook would hold up
    assert await asyncio.to_thread(monitor.log, "worker", 1) == "grüß\n"
    assert await asyncio.to_thread(lambda: monitor.log("worker", 1, last=1)) == "\n"


async def test_a_plain_terminal_shows_the_job_and_no_style_sheet(peer: FakeScheduler, watch: Watch) -> None:
    monitor = watch("demo")
    assert repr(monitor) == "JobMonitor('demo', state=None)"
    peer.add("demo")
    again = watch("demo")
    await until(lambda: again.state)
    text = again._repr_mimebundle_()["text/plain"]
    assert "worker-0" in text
    assert "style" not in text
    assert repr(again) == "JobMonitor('demo', state='WAITING')"
