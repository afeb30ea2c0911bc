"""The core under random clusters, jobs, events and restarts: what must hold whatever happens."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining, VirtualCluster
from pai_scheduler.cluster.node import Maintenance, Node, NodeState
from pai_scheduler.core.instructions import Instruction, KillTask, LaunchAttempt, ReleaseAttempt, WakeAt
from pai_scheduler.core.model import Job, SubState, Task
from pai_scheduler.core.state_machine import Core, CoreSettings
from pai_scheduler.core.timers import Timer
from pai_scheduler.job.dependencies import On
from pai_scheduler.job.exit_codes import PREEMPTED
from pai_scheduler.job.task import TaskRef
from tests.scheduler.core.world import EndCause, World, make_node, make_role
from tests.testbed.properties import examples

GPUS = st.dictionaries(st.sampled_from(["P100", "K80"]), st.integers(1, 3), max_size=2)
STATES = st.sampled_from([*[NodeState.READY] * 5, *NodeState])
NODES = st.lists(st.tuples(st.integers(1, 4), GPUS, STATES), min_size=1, max_size=3)
#: maintenance of a node by its number: in how many ms it begins, and how many it takes
PLANNED = st.tuples(
    st.integers(0, 4), st.sampled_from([0, 10_000, 300_000, 10**8]), st.sampled_from([1_000, 200_000])
)

PORTS = st.sampled_from([[], [], [{"label": "web", "beginAt": 8080, "portNumber": 1}]])


@st.composite
def roles(draw: st.DrawFn) -> list[dict[str, Any]]:
    drawn = []
    for name in draw(st.sampled_from([["main"], ["ps", "worker"]])):
        tasks = draw(st.integers(1, 3))
        limits: dict[str, Any] = {
            key: draw(st.none() | st.integers(1, tasks))
            for key in ("min_failed", "min_succeeded")
            if draw(st.booleans())
        }
        drawn.append(
            make_role(
                name,
                tasks,
                cpus=draw(st.integers(1, 2)),
                gpus=draw(st.sampled_from([0, 0, 1, 2])),
                ports=draw(PORTS),
                **limits,
            )
        )
    return drawn


JOB = st.fixed_dictionaries(
    {
        "retryCount": st.sampled_from([-2, -1, 0, 0, 1]),
        "gpuType": st.sampled_from(["", "", "P100"]),
        "virtualCluster": st.sampled_from(["default", "default", "vision"]),
        "jobEnvs": st.sampled_from([{}, {}, {"isDebug": True}]),
        "extras": st.fixed_dictionaries(
            {},
            optional={
                "priority": st.integers(0, 100),
                "preemptible": st.booleans(),
                "maxRunSeconds": st.sampled_from([1, 100, 1000]),
            },
        ),
    }
)
#: a job of one GPU leaves the lowest level after 18 s
LEVELS = LeastAttained((0.005, 0.05), run_seconds=5, promote_hours=1)
REMAINING = ShortestRemaining(run_seconds=5, promote_hours=1)
SHARES = st.sampled_from(
    [
        (100, 100, 0, 100, (3, 0), None),
        (50, 100, 50, 100, (3, 0), None),
        (50, 100, 50, 100, (0, 1), None),
        (60, 80, 40, 50, (0, 1), None),
        (50, 100, 50, 100, (0, 0), LEVELS),
        (60, 80, 40, 50, (0, 0), LEVELS),
        (50, 100, 50, 100, (0, 0), REMAINING),
        (60, 80, 40, 50, (0, 0), REMAINING),
    ]
).map(
    lambda shares: (
        VirtualCluster("default", shares[0], shares[1], gpus_per_user=3, max_run_seconds=500),
        VirtualCluster(
            "vision",
            shares[2],
            shares[3],
            shorter_first=shares[4][0],
            fair_share_hours=shares[4][1],
            least_attained=shares[5] if isinstance(shares[5], LeastAttained) else None,
            shortest_remaining=shares[5] if isinstance(shares[5], ShortestRemaining) else None,
        ),
    )
)
ENDS = st.sampled_from(
    [
        (EndCause.EXITED, 0),
        (EndCause.EXITED, 0),
        (EndCause.EXITED, 1),
        (EndCause.EXITED, 139),
        (EndCause.EXITED, 143),
        (EndCause.OOM, 137),
        (EndCause.LAUNCH_FAILED, None),
        (EndCause.PORT_CONFLICT, None),
        (EndCause.REFUSED, None),
        (EndCause.LOST, None),
        (EndCause.NODE_LOST, None),
        (EndCause.KILLED, None),
    ]
)


def sleeping(core: Core) -> dict[str, int]:
    return core.timers.all(Timer.RETRY)


class RandomLife(RuleBasedStateMachine):
    """An engine that says anything at any time, users who come and go, a service that is killed."""

    launched = Bundle("launched")
    past = Bundle("past")

    @initialize(nodes=NODES, shares_host_ports=st.booleans(), shares=SHARES)
    def begin(
        self,
        nodes: list[tuple[int, dict[str, int], NodeState]],
        shares_host_ports: bool,
        shares: tuple[VirtualCluster, ...],
    ) -> None:
        made = [
            make_node(f"n{number}", cpus, gpus=gpus, state=state)
            for number, (cpus, gpus, state) in enumerate(nodes)
        ]
        limits = CoreSettings(overtake_limit=2, debug_hold_seconds=600)
        self.world = World(
            *made, shares_host_ports=shares_host_ports, virtual_clusters=shares, settings=limits
        )
        self.alarm: int | None = None
        self.over: dict[str, Job] = {}
        self.released: set[tuple[str, int]] = set()
        self.running: set[TaskRef] = set()
        self.said: Counter[tuple[str, int]] = Counter()
        self.numbers = 0
        self.scheduled = True

    # -- users ----------------------------------------------------------------------------------------------

    @rule(
        roles=roles(),
        fields=JOB,
        user=st.sampled_from(["alice", "bob"]),
        before=st.lists(st.tuples(st.integers(1, 5), st.sampled_from(On)), max_size=2),
    )
    def submit(
        self, roles: list[dict[str, Any]], fields: dict[str, Any], user: str, before: list[tuple[int, On]]
    ) -> None:
        self.numbers += 1
        waits_for = [
            {"job": f"j{self.numbers - back}", "on": str(on)} for back, on in before if back < self.numbers
        ]
        extras = fields["extras"] | ({"after": waits_for} if waits_for else {})
        fields = fields | {"extras": extras}
        self.after(self.world.submit(*roles, id=f"j{self.numbers}", user=user, **fields))

    @precondition(lambda self: self.numbers)
    @rule(data=st.data(), delete=st.booleans())
    def stop(self, data: st.DataObject, delete: bool) -> None:
        job_id = f"j{data.draw(st.integers(1, self.numbers))}"
        self.after(self.world.stop(job_id, delete=delete))
        job = self.world.core.jobs.get(job_id)
        assert job is None or job.is_decided
        assert delete or job_id not in self.world.outcome.deleted

    @precondition(lambda self: self.numbers)
    @rule(
        data=st.data(),
        priority=st.none() | st.integers(0, 100),
        place=st.none() | st.integers(0, 5),
        owner_only=st.booleans(),
    )
    def reorder(self, data: st.DataObject, priority: int | None, place: int | None, owner_only: bool) -> None:
        job_id = f"j{data.draw(st.integers(1, self.numbers))}"
        self.after(self.world.reorder(job_id, priority, place, owner_only=owner_only))
        job = self.world.core.jobs.get(job_id)
        assert job is None or job.is_decided or priority is None or job.present_priority == priority

    @rule(shares=SHARES)
    def change_shares(self, shares: tuple[VirtualCluster, ...]) -> None:
        self.after(self.world.change_shares(*shares))

    # -- the engine -----------------------------------------------------------------------------------------

    def tasks(self) -> list[Task]:
        return [
            task
            for job in self.world.core.jobs.values()
            for task in (job.attempt.tasks.values() if job.attempt else ())
        ]

    @precondition(lambda self: any(not task.state.ended for task in self.tasks()))
    @rule(data=st.data(), target=launched)
    def start(self, data: st.DataObject) -> TaskRef:
        live = [task.ref for task in self.tasks() if not task.state.ended]
        ref = data.draw(st.sampled_from(live))
        self.after(self.world.started(ref))
        return ref

    @precondition(lambda self: any(task.started and not task.state.ended for task in self.tasks()))
    @rule(data=st.data(), code=st.sampled_from([1, 139]))
    def hold(self, data: st.DataObject, code: int) -> None:
        live = [task.ref for task in self.tasks() if task.started and not task.state.ended]
        self.after(self.world.held(data.draw(st.sampled_from(live)), code))

    @rule(ref=consumes(launched), end=ENDS, target=past)
    def end(self, ref: TaskRef, end: tuple[EndCause, int | None]) -> TaskRef:
        self.after(self.world.ended(ref, *end))
        return ref

    @rule(ref=past, end=ENDS)
    def say_again(self, ref: TaskRef, end: tuple[EndCause, int | None]) -> None:
        task = self.world.disk.tasks.get(ref)
        known = copy.deepcopy(task)
        for instructions in (
            self.world.started(ref),
            self.world.progress(ref, 5),
            self.world.ended(ref, *end),
        ):
            assert instructions == []
        assert self.world.disk.tasks.get(ref) == known

    @precondition(lambda self: any(task.killing and not task.state.ended for task in self.tasks()))
    @rule(data=st.data(), target=past)
    def kill(self, data: st.DataObject) -> TaskRef:
        dying = [task.ref for task in self.tasks() if task.killing and not task.state.ended]
        ref = data.draw(st.sampled_from(dying))
        self.after(self.world.killed(ref))
        return ref

    @rule(
        states=st.lists(STATES, min_size=3, max_size=3),
        more=st.booleans(),
        planned=st.lists(PLANNED, max_size=2),
    )
    def change_nodes(self, states: list[NodeState], more: bool, planned: list[tuple[int, int, int]]) -> None:
        nodes = [
            make_node(node.name, node.cpus, gpus=dict(node.gpu_counts), state=state)
            for node, state in zip(self.world.nodes, [*states, *[NodeState.READY] * 9], strict=False)
        ]
        if more and len(nodes) < 5:
            nodes.append(make_node(f"n{len(nodes)}", 2, gpus={"K80": 1}))
        for number, later, length in planned:
            if number < len(nodes):
                begin = self.world.now + later
                window = Maintenance("disks", ("*",), begin, begin + length, "", "root")
                node = nodes[number]
                windows = sorted((*node.maintenance, window), key=lambda one: one.begin)
                nodes[number] = replace(node, maintenance=tuple(windows))
        self.after(self.world.change_nodes(*nodes))

    # -- time, and death ------------------------------------------------------------------------------------

    @rule(later=st.sampled_from([0, 1, 500, 60_000, 400_000]))
    def time_passes(self, later: int) -> None:
        self.after(self.world.tick(later))

    @precondition(lambda self: self.alarm is not None)
    @rule()
    def alarm_rings(self) -> None:
        assert self.alarm is not None
        self.world.now, self.alarm = max(self.world.now, self.alarm), None
        self.after(self.world.tick())
        timers = self.world.core.timers
        assert all(due > self.world.now for timer in Timer for due in timers.all(timer).values())

    @rule()
    def service_dies_and_comes_back(self) -> None:
        self.after(self.world.tick())
        before = {job.id: (job.state, job.sub_state) for job in self.world.core.jobs.values()}
        orders = self.orders()
        self.alarm = None
        self.said.clear()
        self.after(self.world.restart())
        assert {job.id: (job.state, job.sub_state) for job in self.world.core.jobs.values()} == before
        starting = {
            job.id
            for job in self.world.core.jobs.values()
            if job.sub_state is SubState.STARTING
            and job.attempt
            and any(not task.started and not task.state.ended for task in job.attempt.tasks.values())
        }
        assert {job_id for job_id, _ in self.said} == starting
        self.after(self.world.tick())
        both = {job_id for order in orders for job_id in order if job_id in self.world.core.queue}
        for old, new in zip(orders, self.orders(), strict=True):
            assert [job_id for job_id in old if job_id in both] == [
                job_id for job_id in new if job_id in both
            ]

    def orders(self) -> list[list[str]]:
        return [list(self.world.core.queue.in_order(name)) for name in ("default", "vision")]

    # -- what follows from an event -------------------------------------------------------------------------

    def after(self, instructions: list[Instruction]) -> None:
        by_ref = {task.ref: task for task in self.tasks()}
        for instruction in instructions:
            match instruction:
                case LaunchAttempt(job_id=job_id, attempt=number):
                    self.said[job_id, number] += 1
                    assert self.said[job_id, number] == 1, "launched twice in one life of the service"
                    assert (job_id, number) not in self.released
                case KillTask(task=ref):
                    assert not by_ref[ref].state.ended
                    assert by_ref[ref].killing
                case ReleaseAttempt(job_id=job_id, attempt=number):
                    assert (job_id, number) not in self.released
                    self.released.add((job_id, number))
                    assert not [
                        ref for ref in by_ref if ref[:2] == (job_id, number) and not by_ref[ref].ended
                    ]
                case WakeAt(time=time):
                    self.alarm = time if self.alarm is None else min(self.alarm, time)
        if any(window.end <= self.world.now for node in self.world.nodes for window in node.maintenance):
            # the service takes away what is over
            self.after(self.world.change_nodes(*map(self.without_past, self.world.nodes)))

    def without_past(self, node: Node) -> Node:
        left = tuple(window for window in node.maintenance if window.end > self.world.now)
        return replace(node, maintenance=left)

    # -- what always holds ----------------------------------------------------------------------------------

    @invariant()
    def who_may_not_be_stopped_for_others_is_not(self) -> None:
        for job in self.world.core.jobs.values():
            if job.attempt is not None and job.attempt.verdict is not None and not job.spec.preemptible:
                assert job.attempt.verdict.exit_row != PREEMPTED

    @invariant()
    def who_sleeps_is_woken(self) -> None:
        timers = self.world.core.timers
        if (due := timers.next()) is not None:
            assert self.alarm is not None
            assert self.alarm <= due

    @invariant()
    def what_is_durable_is_what_the_core_thinks(self) -> None:
        for job_id in self.world.core.jobs:
            self.world.job(job_id)

    @invariant()
    def what_has_ended_stays_as_it_ended(self) -> None:
        disk = self.world.disk
        for job_id, job in self.over.items():
            assert job_id not in self.world.core.jobs
            assert job_id not in disk.jobs or disk.job(job_id) == job
        for job_id, row in disk.jobs.items():
            if row["sub_state"] == "ENDED":
                self.over.setdefault(job_id, disk.job(job_id))
                assert self.world.told(job_id)[-1] == "ended"

    def teardown(self) -> None:
        """Stop everything: nothing may be left."""
        if not hasattr(self, "world"):
            return
        for number in range(1, self.numbers + 1):
            self.after(self.world.stop(f"j{number}"))
        for task in self.tasks():
            if not task.state.ended:
                assert task.killing
                self.after(self.world.killed(task.ref))
        assert self.world.core.jobs == {}
        assert len(self.world.core.queue) == 0
        assert self.world.is_free()


TestRandomLife = RandomLife.TestCase
TestRandomLife.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None, report_multiple_bugs=False
)
