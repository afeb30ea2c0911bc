"""The table of one's jobs, and how it stays up to date."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pai_labextension.widgets import JobTable
from pai_labextension.widgets.job_table import markup
from pai_labextension.widgets.language import Language
from pai_scheduler.testing.scheduler import FakeScheduler, job_of
from tests.labextension.widgets.waiting import until

CREATED = 1_700_000_000_000


@pytest.fixture
async def table(peer: FakeScheduler) -> AsyncIterator[JobTable]:
    shown = JobTable(client=peer.client(), locale="en", gap=0)
    yield shown
    shown.close()
    await shown.client.close()


async def test_a_change_in_the_cluster_is_a_change_of_the_table(peer: FakeScheduler, table: JobTable) -> None:
    await until(lambda: "There are no jobs." in table.table.value)
    job = peer.add("<demo>")
    peer.change()
    await until(lambda: "&lt;demo&gt;" in table.table.value)
    assert "Waiting" in table.table.value
    job.state = "RUNNING"
    peer.change()
    await until(lambda: "Running" in table.table.value)
    assert [job["state"] for job in table.jobs] == ["RUNNING"]


async def test_a_scheduler_that_is_away_is_told_until_it_is_back(
    peer: FakeScheduler, table: JobTable
) -> None:
    await until(lambda: "There are no jobs." in table.table.value)
    await peer.stop()
    await until(lambda: table.trouble.layout.display is None)
    await peer.start()
    await until(lambda: table.trouble.layout.display == "none")


async def test_a_plain_terminal_shows_the_table_of_the_command(peer: FakeScheduler, table: JobTable) -> None:
    peer.add("demo")
    peer.change()
    await until(lambda: "demo" in table.table.value)
    lines = table._repr_mimebundle_()["text/plain"].splitlines()
    assert lines[0].split()[:2] == ["NAME", "STATE"]
    assert lines[1].split()[:2] == ["demo", "WAITING"]
    assert repr(table) == "JobTable('demo')"


def test_time_goes_on_for_a_job_that_has_not_ended_and_stands_still_afterwards() -> None:
    say = Language("en")
    running, ended = job_of("a").summary("alice"), job_of("b").summary("alice")
    ended["completedTime"] = CREATED + 5000
    shown = markup(say, [running, ended], CREATED + 65_000)
    assert "<td>1 min 5 s</td>" in shown
    assert "<td>5 s</td>" in shown


def test_whose_the_jobs_are_stands_there_when_they_are_of_several_people() -> None:
    say = Language("zh_CN")
    jobs = [job_of("a").summary("alice"), job_of("b").summary("bob")]
    assert "<td>bob</td>" in markup(say, jobs, CREATED)
    assert "用户" in markup(say, jobs, CREATED)
    assert "用户" not in markup(say, jobs[:1], CREATED)
