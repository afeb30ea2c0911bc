"""Watching over sessions, with time, use of GPUs and faults played."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_spawner.sessions.culler import Records, SessionKeeper
from pai_spawner.sessions.hub_client import HubClient, HubError, HubServer, ServerActivity
from pai_spawner.sessions.policy import Action, Cause
from pai_spawner.sessions.policy_file import PolicySource

START = datetime(2026, 11, 24, 8, tzinfo=UTC)
ALICE = ("alice", "")
POLICY = """
rules:
  - {idleAfter: 1h, warnBefore: 10m}
  - {when: {users: [bob]}, lifetime: 2h, idleAfter: never, extendBy: 1h, extendTimes: 1}
"""


@dataclass
class World:
    """The Hub, the scheduler and the servers, as a test wants them; times in minutes after the start."""

    minute: float = 0.0
    users: list[str] = field(default_factory=lambda: ["alice"])
    gpus: int = 0b11
    activity: ServerActivity | None = field(default_factory=ServerActivity)
    is_service: bool = False
    gpu_percent: list[tuple[float, float]] = field(default_factory=list)
    state: str = "RUNNING"
    away: bool = False
    limit_seconds: int | None = None
    done: list[Any] = field(default_factory=list)

    def now(self) -> datetime:
        return START + timedelta(minutes=self.minute)

    # ── the Hub
    async def servers(self) -> list[HubServer]:
        return [
            HubServer(
                *(user, "", frozenset(), f"job-of-{user}", f"/user/{user}/", START, START),
                ready=True,
                locale="zh_CN",
                options={},
            )
            for user in self.users
        ]

    async def hub_stop(self, user: str, server: str) -> None:
        self.done.append(("hub", user, server))

    # ── the scheduler
    def _answer(self) -> None:
        if self.away:
            raise UnreachableError("no answer")

    async def job(self, _user: str, name: str) -> Any:
        self._answer()
        if self.state == "GONE":
            raise ApiError(404, "NoJobError", "there is none")
        task = {"containerGpus": self.gpus, "containerIp": "127.0.0.1", "containerPorts": {"http": "9"}}
        return {
            "name": name,
            "jobStatus": {"subState": self.state, "appLaunchedTime": ms(START)},
            "taskRoles": {"notebook": {"taskStatuses": [task]}},
        }

    async def config(self, *_of: object) -> Any:
        extras = {"maxRunSeconds": self.limit_seconds} if self.limit_seconds else {}
        opens = "/pai-service/" if self.is_service else "/lab"
        envs = {"JUPYTERHUB_API_TOKEN": "the-servers-own", "JUPYTERHUB_DEFAULT_URL": opens}
        return {"extras": extras, "jobEnvs": envs}

    async def task_port(self, *_of: object) -> Any:
        return {"host": None, "port": 9}

    async def task_metrics(self, *_of: object, after: int = 0) -> Any:
        points = [(ms(START + timedelta(minutes=minute)), value) for minute, value in self.gpu_percent]
        return {
            "interval": 10.0,
            "gpuMemoryTotalMB": None,
            "series": {"gpuPercent": [point for point in points if point[0] > after]},
        }

    async def stop(self, user: str, name: str, *, reason: str) -> None:
        self._answer()
        self.done.append(("scheduler", user, name, reason))

    async def ask(self, address: str, token: str, is_service: bool) -> ServerActivity | None:
        assert (token, is_service) == ("the-servers-own", self.is_service)
        assert address == "http://127.0.0.1:9/user/alice/" or "bob" in address
        return self.activity


class _Hub:
    def __init__(self, world: World) -> None:
        self.servers, self.stop = world.servers, world.hub_stop


def ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def keeper(world: World, tmp_path: Path) -> SessionKeeper:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    return SessionKeeper(
        cast(HubClient, _Hub(world)),
        cast(Client, world),
        PolicySource(file),
        Records(tmp_path / "sessions.json"),
        world.ask,
        world.now,
    )


async def action(keeper: SessionKeeper, world: World, minute: float) -> Action | None:
    """Look so many minutes after the start; gives what was decided about the only session."""
    world.minute = minute
    await keeper.look()
    return keeper.sessions[ALICE].decision.action if ALICE in keeper.sessions else None


async def test_an_idle_session_is_warned_once_and_ended_with_a_reason_in_its_users_language(
    keeper: SessionKeeper, world: World
) -> None:
    assert [await action(keeper, world, minute) for minute in (49, 50, 55)] == [
        Action.KEEP,
        Action.WARN,
        Action.WARN,
    ]
    assert keeper.records.of(ALICE, "job-of-alice").record.warned == START + timedelta(minutes=50)
    await action(keeper, world, 60)
    (stopped, told) = world.done
    assert stopped[:3] == ("scheduler", "alice", "job-of-alice")
    assert stopped[3].startswith("会话已空闲 1 小时 0 分钟")
    assert told == ("hub", "alice", "")


async def test_gpus_at_work_keep_a_session_whose_kernels_are_idle(
    keeper: SessionKeeper, world: World
) -> None:
    world.gpu_percent = [(30, 90.0), (55, 40.0), (60, 1.0)]
    assert await action(keeper, world, 60) is Action.KEEP
    assert keeper.sessions[ALICE].decision.idle_since == START + timedelta(minutes=55)
    assert keeper.sessions[ALICE].session.gpus == 2
    assert await action(keeper, world, 106) is Action.WARN


async def test_a_service_that_is_used_keeps_a_session_without_kernels(
    keeper: SessionKeeper, world: World
) -> None:
    world.is_service = True
    world.activity = ServerActivity(service_used=START + timedelta(minutes=55))
    assert await action(keeper, world, 60) is Action.KEEP
    assert keeper.sessions[ALICE].decision.idle_since == START + timedelta(minutes=55)


async def test_gpus_of_others_do_not_count_for_a_session_without(keeper: SessionKeeper, world: World) -> None:
    world.gpus, world.gpu_percent = 0, [(55, 90.0)]
    assert await action(keeper, world, 60) is Action.WARN


async def test_a_session_that_cannot_be_asked_is_not_ended(keeper: SessionKeeper, world: World) -> None:
    await action(keeper, world, 50)
    world.activity = None
    assert await action(keeper, world, 600) is Action.KEEP
    assert world.done == []


async def test_while_the_scheduler_is_away_nothing_is_done_and_afterwards_it_is(
    keeper: SessionKeeper, world: World
) -> None:
    await action(keeper, world, 50)
    world.away = True
    assert await action(keeper, world, 70) is Action.WARN
    assert world.done == []
    world.away = False
    await action(keeper, world, 71)
    assert [what[0] for what in world.done] == ["scheduler", "hub"]


async def test_keep_counts_as_use(keeper: SessionKeeper, world: World) -> None:
    await action(keeper, world, 55)
    kept = await keeper.keep(ALICE)
    assert kept is not None
    assert (kept.decision.action, kept.decision.end) == (Action.KEEP, START + timedelta(minutes=115))
    assert await action(keeper, world, 104) is Action.KEEP
    assert await action(keeper, world, 105) is Action.WARN
    assert await keeper.keep(("nobody", "")) is None


async def test_a_life_is_prolonged_as_often_as_it_may(keeper: SessionKeeper, world: World) -> None:
    world.users, bob = ["bob"], ("bob", "")
    await action(keeper, world, 115)
    assert keeper.sessions[bob].decision.cause is Cause.LIFETIME
    kept = await keeper.keep(bob)
    assert kept is not None
    assert (kept.decision.end, kept.decision.may_keep) == (START + timedelta(hours=3), False)
    again = await keeper.keep(bob)
    assert again is not None
    assert again.decision.end == START + timedelta(hours=3)


async def test_a_jobs_own_time_limit_is_warned_of(keeper: SessionKeeper, world: World) -> None:
    world.activity, world.limit_seconds = ServerActivity(kernels_busy=True), 3000
    assert [await action(keeper, world, minute) for minute in (39, 40)] == [Action.KEEP, Action.WARN]
    assert keeper.sessions[ALICE].decision.cause is Cause.TIME_LIMIT
    await action(keeper, world, 51)
    assert world.done == []


async def test_sessions_that_are_over_are_forgotten(keeper: SessionKeeper, world: World) -> None:
    await action(keeper, world, 1)
    assert keeper.tell(ALICE, "root", "hello")
    for state in ("ENDING", "GONE"):
        world.state = "RUNNING"
        assert await action(keeper, world, 2) is Action.KEEP
        world.state = state
        assert await action(keeper, world, 3) is None
    world.users = []
    await action(keeper, world, 4)
    assert keeper.records.of(ALICE, "job-of-alice").messages == ()
    assert not keeper.tell(ALICE, "root", "hello")


async def test_one_session_that_cannot_be_looked_at_does_not_keep_others_from_it(
    keeper: SessionKeeper, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.users = ["bob", "alice"]
    sound = world.job

    async def job(user: str, name: str) -> Any:
        if user == "bob":
            raise ApiError(500, "UnknownError", "something")
        return await sound(user, name)

    monkeypatch.setattr(world, "job", job)
    assert await action(keeper, world, 55) is Action.WARN
    assert "the session of bob cannot be looked at" in caplog.text


async def test_a_hub_that_is_away_is_said(keeper: SessionKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    async def servers() -> list[HubServer]:
        raise HubError("the Hub does not answer")

    monkeypatch.setattr(keeper._hub, "servers", servers)
    with pytest.raises(HubError):
        await keeper.look()
