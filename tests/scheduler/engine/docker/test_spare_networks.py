"""Which networks are there in advance, and who has which. With Docker itself: `test_network.py`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pai_scheduler.engine.docker import network_pool
from pai_scheduler.engine.docker.network_pool import SpareNetworks
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.i18n import msg

GANG = "pai-0123-0"
NONE_MADE = "no network is made in advance: There is no room for it."


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nobody."""
    monkeypatch.setattr(network_pool, "_QUIET_SECONDS", 0.01)
    monkeypatch.setattr(network_pool, "_RETRY_SECONDS", 0.01)


class Docker:
    """Makes networks; the first calls fail if told so."""

    def __init__(self, failures: int = 0) -> None:
        self.made: list[str] = []
        self._news = asyncio.Event()
        self._failures = failures

    async def make(self, name: str) -> None:
        if self._failures:
            self._failures -= 1
            raise EngineError(msg("There is no room for it."))
        self.made.append(name)
        self._news.set()

    def fail(self, calls: int) -> None:
        self._failures = calls

    async def has_made(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.made) < count:
                self._news.clear()
                await self._news.wait()
        await asyncio.sleep(0)  # what is made is noted after the call


async def test_as_many_as_are_wanted_are_made_and_another_for_each_that_was_drawn(tmp_path: Path) -> None:
    docker, spares = Docker(), SpareNetworks(tmp_path, 2)
    spares.fill(docker.make)
    await docker.has_made(2)
    assert spares.draw() == docker.made[0]
    await docker.has_made(3)
    await asyncio.sleep(0.05)
    assert len(docker.made) == 3
    assert await spares.close() == sorted(docker.made)


async def test_one_that_docker_is_asked_for_is_known_in_the_end(tmp_path: Path) -> None:
    asked, ready, made = asyncio.Event(), asyncio.Event(), list[str]()

    async def make(name: str) -> None:
        asked.set()
        await ready.wait()
        made.append(name)

    spares = SpareNetworks(tmp_path, 2)
    spares.fill(make)
    async with asyncio.timeout(30):
        await asked.wait()
    closing = asyncio.create_task(spares.close())
    await asyncio.sleep(0.05)
    assert not closing.done()
    ready.set()
    assert await closing == made
    assert len(made) == 1


async def test_all_that_nobody_has_are_drawn_at_once_and_made_again_when_the_next_one_is_asked_for(
    tmp_path: Path,
) -> None:
    docker, spares = Docker(), SpareNetworks(tmp_path, 2)
    spares.fill(docker.make)
    await docker.has_made(2)
    drawn = spares.draw_all()
    assert drawn == docker.made
    for name in drawn:
        spares.drop(name)
    assert spares.draw_all() == []
    await asyncio.sleep(0.05)
    assert len(docker.made) == 2
    assert spares.draw() is None
    await docker.has_made(4)
    assert await spares.close() == sorted(set(docker.made) - set(drawn))


async def test_where_none_is_wanted_none_is_made(tmp_path: Path) -> None:
    docker, spares = Docker(), SpareNetworks(tmp_path, 0)
    spares.fill(docker.make)
    await asyncio.sleep(0.05)
    assert spares.draw() is None
    assert docker.made == []
    assert await spares.close() == []


async def test_who_has_a_network_is_known_in_the_next_life_too(tmp_path: Path) -> None:
    docker, spares = Docker(), SpareNetworks(tmp_path / "networks", 1)
    spares.fill(docker.make)
    await docker.has_made(1)
    assert spares.gang_name(docker.made[0]) is None  # nobody's, and kept
    drawn = spares.draw()
    assert drawn is not None
    await spares.give(GANG, drawn, 2, 5)
    await spares.close()
    for each in (spares, SpareNetworks(tmp_path / "networks", 0)):
        assert each.docker_name(GANG) == drawn
        assert each.gang_name(drawn) == GANG
        assert each.docker_name("pai-4567-1") == each.gang_name("pai-4567-1") == "pai-4567-1"


async def test_what_was_removed_or_belongs_to_no_gang_any_more_is_forgotten_for_good(tmp_path: Path) -> None:
    spares = SpareNetworks(tmp_path, 0)
    for number in range(3):
        await spares.give(f"pai-{number}-0", f"pai-spare-{number}", 1, 5)
    await spares.forget("pai-0-0")
    await spares.forget_all_but({"pai-1-0"})
    for each in (spares, SpareNetworks(tmp_path, 0)):
        assert each.docker_name("pai-0-0") == "pai-0-0"
        assert each.docker_name("pai-1-0") == "pai-spare-1"
        assert each.gang_name("pai-spare-2") == "pai-spare-2"


async def test_what_cannot_be_made_now_is_made_later(tmp_path: Path) -> None:
    docker, spares = Docker(failures=2), SpareNetworks(tmp_path, 1)
    spares.fill(docker.make)
    await docker.has_made(1)
    assert await spares.close() == docker.made


async def test_a_file_that_a_power_cut_left_half_written_names_no_network(tmp_path: Path) -> None:
    (tmp_path / f"{GANG}.0123.new").write_text("pai-spare-1")
    (tmp_path / GANG).write_text("")
    assert SpareNetworks(tmp_path, 0).docker_name(GANG) == GANG


async def test_a_reason_for_which_none_can_be_made_is_told_once_until_one_was_made(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    docker, spares = Docker(failures=5), SpareNetworks(tmp_path, 1)
    spares.fill(docker.make)
    await docker.has_made(1)
    assert [record.getMessage() for record in caplog.records] == [NONE_MADE]
    docker.fail(3)
    drawn = spares.draw()
    await docker.has_made(2)
    assert [record.getMessage() for record in caplog.records] == [NONE_MADE] * 2
    assert await spares.close() == sorted([str(drawn), docker.made[1]])


async def test_what_an_ended_gang_had_another_gets_also_in_the_next_life(tmp_path: Path) -> None:
    spares = SpareNetworks(tmp_path, 0, most=2)
    assert spares.keeps
    name = spares.new()
    assert spares.gang_name(name) is None
    await spares.give(GANG, name, 1, 5)
    assert spares.gang_name(name) == GANG
    assert spares.may_keep(name)
    await spares.keep(GANG, name)
    assert spares.gang_name(name) is None
    for each in (spares, SpareNetworks(tmp_path, 0)):
        assert each.docker_name(GANG) == GANG
    assert spares.draw() == name


async def test_only_so_many_are_kept_none_of_another_name_and_none_at_the_end(tmp_path: Path) -> None:
    spares = SpareNetworks(tmp_path, 0, most=2)
    for number in range(2):
        assert spares.may_keep(f"pai-spare-{number}")
        await spares.keep(f"pai-{number}-0", f"pai-spare-{number}")
    assert not spares.may_keep("pai-spare-2")
    assert spares.draw() == "pai-spare-0"  # the one that is unused for longest
    assert spares.may_keep("pai-spare-2")
    assert not spares.may_keep("pai-0123-0")
    assert await spares.close() == ["pai-spare-0", "pai-spare-1"]
    assert not spares.may_keep("pai-spare-2")


async def test_one_that_is_found_twice_is_kept_once(tmp_path: Path) -> None:
    spares = SpareNetworks(tmp_path, 0, most=2)
    for _ in range(2):
        await spares.keep("pai-spare-0", "pai-spare-0")
    assert spares.draw_all() == ["pai-spare-0"]


async def test_without_any_in_advance_none_is_kept(tmp_path: Path) -> None:
    spares = SpareNetworks(tmp_path, 0)
    assert not spares.keeps
    assert not spares.may_keep("pai-spare-0")


async def test_each_gang_gets_other_addresses_than_those_before_it_until_all_were_had(tmp_path: Path) -> None:
    spares = SpareNetworks(tmp_path, 0, most=1)
    name, offsets = spares.new(), []
    for number, tasks in enumerate((2, 2, 2, 3, 5, 1)):
        await spares.give(f"pai-{number}-0", name, tasks, 6)
        offsets.append(spares.offset(f"pai-{number}-0"))
        assert SpareNetworks(tmp_path, 0).offset(f"pai-{number}-0") == offsets[-1]
        await spares.keep(f"pai-{number}-0", name)
    assert offsets == [0, 2, 4, 0, 0, 5]


async def test_in_a_network_of_an_earlier_service_the_addresses_begin_anywhere(tmp_path: Path) -> None:
    offsets = set()
    for number in range(50):
        spares = SpareNetworks(tmp_path, 0, most=1)
        await spares.keep("pai-spare-0", "pai-spare-0")
        await spares.give(f"pai-{number}-0", "pai-spare-0", 2, 61)
        offsets.add(spares.offset(f"pai-{number}-0"))
    assert offsets <= set(range(60))
    assert len(offsets) > 10
    assert spares.offset("pai-of-its-own-name-0") == 0
