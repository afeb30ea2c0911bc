"""The scheduler's clock goes on evenly whatever the machine's is set to, over restarts too."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from pai_scheduler.clock import Clock
from pai_scheduler.store.store import Store
from tests.scheduler.core.world import World
from tests.scheduler.machine import HOUR, MS, NOON, Machine
from tests.scheduler.making import make_config


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_it_tells_what_the_machines_clock_tells(machine: Machine) -> None:
    clock = machine.clock()
    assert clock() == NOON
    machine.passes(1234)
    assert clock() == NOON + 1234


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_six_seconds_are_six_seconds_when_the_clock_is_set(machine: Machine, step: int) -> None:
    clock = machine.clock()
    begin = clock()
    machine.is_set(step)
    times = [clock()]
    for _ in range(600):
        machine.passes(10)
        times.append(clock())
    assert all(earlier <= later for earlier, later in itertools.pairwise(times))
    assert times[-1] - begin == pytest.approx(6000, rel=0.011)


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_it_comes_back_to_the_machines_clock_in_a_few_days(machine: Machine, step: int) -> None:
    clock = machine.clock()
    machine.is_set(step)
    for _ in range(5 * 24 * 60):
        machine.passes(60_000)
        clock()
    assert clock() == machine.wall // MS


@pytest.mark.parametrize("step", [0, HOUR, -HOUR])
def test_over_a_restart_it_goes_on_where_it_was(machine: Machine, step: int) -> None:
    clock = machine.clock()
    mark, told = clock.mark(), clock()
    machine.is_set(step)
    machine.passes(90_000)  # nobody looks on meanwhile
    later = machine.clock()
    later.take_up(mark, told)
    assert later() == told + 90_000


def test_after_a_boot_it_is_what_the_machines_clock_says_but_not_before_what_was_told(
    machine: Machine,
) -> None:
    clock = machine.clock()
    mark, told = clock.mark(), clock()
    machine.is_booted()
    machine.is_set(HOUR)
    ahead = machine.clock()
    ahead.take_up(mark, told)
    assert ahead() == told + HOUR
    machine.is_set(-2 * HOUR)
    behind = machine.clock()
    behind.take_up(mark, told)
    assert behind() == told
    machine.passes(1000)
    assert behind() == pytest.approx(told + 1000, abs=11)


def test_where_no_job_goes_on_the_machines_clock_is_believed(machine: Machine) -> None:
    mark = machine.clock().mark()
    machine.is_set(-HOUR)
    clock = machine.clock()
    clock.take_up(mark, None)
    assert clock() == NOON - HOUR
    machine.is_set(HOUR)
    clock.catch_up()
    assert clock() == NOON


def test_the_real_clock_is_of_this_machine() -> None:
    clock = Clock()
    assert clock() == pytest.approx(time.time() * 1000, abs=60_000)
    mark = clock.mark()
    assert mark.boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert mark.uptime > 0


def test_the_latest_time_is_that_of_jobs_that_have_not_ended(tmp_path: Path) -> None:
    store, world = Store.in_folder(tmp_path), World()
    config = make_config(name="j")
    world.submit_config(config, "j")
    store.commit(world.outcome, {"j": config})
    world.now += 1000
    world.started(*world.refs())
    store.commit(world.outcome, {})
    assert store.clock_mark() == (None, world.now)
    world.exited(world.refs()[0])
    store.commit(world.outcome, {})
    assert store.clock_mark() == (None, None)
    store.close()
