"""What pages show of servers, from what the scheduler and the Hub's database say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pai_spawner.pages.servers import ending_view, view_of, views_of
from pai_spawner.termination import End, ServerEnd
from tests.spawner.conftest import Make
from tests.testbed.scheduler import RunningScheduler


def as_the_hub_has_it(spawner: Any) -> Any:
    """Return the Hub's user of a spawner, with this one server."""
    return SimpleNamespace(
        orm_user=spawner.user.orm_user,
        spawners={spawner.name: spawner},
        allow_named_servers=False,
        server_url=lambda name: f"/user/{spawner.user.name}/{name}",
    )


async def started(make: Make, **options: Any) -> Any:
    spawner = make()
    spawner.user_options = options
    await spawner.start()
    # the last thing that the Hub does at a start
    spawner.add_poll_callback(lambda: None)
    return spawner


async def test_a_running_server_is_shown_with_what_it_has(make: Make) -> None:
    spawner = await started(make, cpus=2, gpus=1, gpu_type="P100")
    (view,) = await views_of(as_the_hub_has_it(spawner), "en")
    assert (view.state, view.label, view.note, view.ends) == ("running", "running", "", None)
    assert view.has == "2 CPUs, 2048 MB of memory and 1 × P100"
    assert view.since is not None
    assert view.active


async def test_a_server_is_shown_while_the_scheduler_is_away(make: Make, scheduler: RunningScheduler) -> None:
    spawner = await started(make)
    scheduler.kill()
    view = await view_of(as_the_hub_has_it(spawner), "", "en")
    assert view is not None
    assert (view.state, view.has) == ("running", "")
    assert "the server is not touched by that" in view.note
    scheduler.start()


async def test_an_ended_server_is_shown_in_the_readers_language_also_where_it_is_only_in_the_database(
    make: Make,
) -> None:
    spawner = make()
    ending = ServerEnd(End.EXITED, 5, exit_code=3, why={"en": "Because.", "zh_CN": "因为。"}, log="<last>")
    spawner.orm_spawner.state = {"ending": ending.as_json()}
    user = as_the_hub_has_it(spawner)
    user.spawners = {}
    view = await view_of(user, "", "zh_CN")
    assert view is not None
    assert (view.state, view.active) == ("ended", False)
    assert view.ending == ending_view(ending, "zh_CN")
    assert view.ending is not None
    assert (view.ending.reason, view.ending.log) == ("因为。", "<last>")


async def test_a_server_that_was_never_started_is_off_and_one_that_is_not_there_is_none(
    make: Make,
) -> None:
    user = as_the_hub_has_it(make("dave"))
    view = await view_of(user, "", "en")
    assert view is not None
    assert (view.state, view.ending) == ("off", None)
    assert await view_of(user, "other", "en") is None


@pytest.mark.parametrize("kind", [End.STOPPED, End.CANCELLED])
def test_what_somebody_wanted_is_no_fault(kind: End) -> None:
    assert ending_view(ServerEnd(kind, 5), "en").expected
    assert not ending_view(ServerEnd(End.OUT_OF_MEMORY, 5), "en").expected
