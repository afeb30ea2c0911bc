"""What is made of a Swarm's answers about programs on its nodes, and what is removed when something fails.

On real nodes: `tests/scheduler/server/doctor/test_swarm.py`, `tests/scheduler/server/test_node_pull.py`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker import DockerClient
from docker.errors import APIError

from pai_scheduler.engine.swarm import agent_deployment
from pai_scheduler.engine.swarm.agent_deployment import (
    DOCKER_SOCKET,
    SERVICE,
    NodeProgram,
    ProgramOutcome,
    agents_plan,
    run_everywhere,
)

PROGRAM = NodeProgram(
    "registry.lab/agent:1", "pai_scheduler.engine.agent.pull", {"NAME": "{service} on {{.Node.ID}}"}
)


def refusal(status: int) -> APIError:
    """Return what Docker says when it refuses something."""
    return APIError(
        "refused", response=cast("Any", SimpleNamespace(status_code=status, reason="refused", url=""))
    )


class Thing:
    """A service, a secret or a network of Docker's, which goes after some `refusals`."""

    def __init__(self, swarm: PlayedSwarm, kind: str, refusals: tuple[int, ...] = ()) -> None:
        self.id, self.kind, self._swarm, self._refusals = f"{kind}-id", kind, swarm, list(refusals)

    def remove(self) -> None:
        if self._refusals:
            raise refusal(self._refusals.pop(0))
        self._swarm.things.remove(self)

    def logs(self, *, stderr: bool = False, **_: object) -> list[bytes]:
        return self._swarm.complained if stderr else self._swarm.printed


class PlayedSwarm:
    """The answers of a manager; `answers` are what it says of the program's tasks, the last one for ever."""

    def __init__(self, *answers: list[dict[str, Any]], create_fails: bool = False) -> None:
        self._answers, self._create_fails = list(answers), create_fails
        self.things: list[Thing] = []
        self.printed: list[bytes] = []
        self.complained: list[bytes] = []
        self.made: dict[str, Any] = {}
        self.services = SimpleNamespace(list=self._lister("service"), create=self._make_service)
        self.secrets = SimpleNamespace(list=self._lister("secret"), create=self._maker("secret"))
        self.networks = SimpleNamespace(list=self._lister("network"), create=self._maker("network"))
        self.api = SimpleNamespace(tasks=self._tasks)

    @property
    def client(self) -> DockerClient:
        """Return it as what asks it."""
        return cast("DockerClient", self)

    def left(self) -> list[str]:
        """List the kinds of what is there."""
        return [thing.kind for thing in self.things]

    def _lister(self, kind: str) -> Any:
        return lambda filters: [thing for thing in self.things if thing.kind == kind and filters]

    def _maker(self, kind: str) -> Any:
        def make(*_: object, **__: object) -> Thing:
            self.things.append(Thing(self, kind))
            return self.things[-1]

        return make

    def _make_service(self, image: str, **options: Any) -> Thing:
        if self._create_fails:
            raise refusal(500)
        self.made = {"image": image, **options}
        return cast("Thing", self._maker("service")())

    def _tasks(self, filters: dict[str, str]) -> list[dict[str, Any]]:
        assert filters == {"service": "service-id"}
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def task(
    node: str, state: str, error: str = "", message: str = "", networks: tuple[Any, ...] = ()
) -> dict[str, Any]:
    """Return a task of a service as Docker's API describes it."""
    status = {"State": state, "Err": error, "Message": message}
    return {"NodeID": node, "Status": status, "NetworksAttachments": networks}


def attached(address: str, **labels: str) -> dict[str, Any]:
    return {"Network": {"Spec": {"Labels": labels}}, "Addresses": [f"{address}/24"]}


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nobody."""
    monkeypatch.setattr(agent_deployment, "_LOOK_SECONDS", 0.0)


def test_it_is_looked_until_the_caller_has_what_is_wanted_and_nothing_is_left_then() -> None:
    swarm = PlayedSwarm(
        [task("1", "starting")], [task("1", "running")], [task("1", "complete", message="finished")]
    )
    seen: list[ProgramOutcome] = []

    def is_over(outcome: ProgramOutcome) -> bool:
        seen.append(outcome)
        return bool(outcome.failures)

    found = run_everywhere(swarm.client, PROGRAM, is_over, seconds=60)
    assert [outcome.failures for outcome in seen] == [{}, {}, {"1": "finished"}]
    assert [outcome.completed for outcome in seen] == [frozenset(), frozenset(), {"1"}]
    assert found is seen[-1]
    assert swarm.left() == []


def test_a_program_knows_its_services_name_and_swarm_fills_in_the_rest() -> None:
    swarm = PlayedSwarm([])
    run_everywhere(swarm.client, PROGRAM, lambda _: True, seconds=60)
    assert swarm.made["env"] == [f"NAME={swarm.made['name']} on {{{{.Node.ID}}}}"]
    assert (swarm.made["image"], swarm.made["constraints"]) == (PROGRAM.image, [])
    assert swarm.made["command"] == ["python3", "-m", "pai_scheduler.engine.agent.pull"]


def test_of_those_that_do_not_end_in_time_is_said_what_swarm_knows() -> None:
    swarm = PlayedSwarm(
        [
            task("1", "running", message="started"),
            task("2", "failed", error="exit code 1", message="started"),
            task("3", "preparing"),
            task("", "pending", error="no suitable node"),
        ]
    )
    found = run_everywhere(swarm.client, PROGRAM, lambda _: False, seconds=-1)
    assert found.failures == {"2": "exit code 1"}
    assert found.completed == frozenset()
    assert found.unfinished == {"1": "started", "3": "preparing"}
    assert swarm.left() == []


def test_what_was_printed_is_parted_by_node_in_its_order() -> None:
    swarm = PlayedSwarm([])
    node = "com.docker.swarm.node.id"
    swarm.printed = [
        f"com.docker.swarm.service.id=s,{node}=1,com.docker.swarm.task.id=t one two\n".encode(),
        f"{node}=2,com.docker.swarm.task.id=u three\n{node}=1 \xff four\n".encode("latin-1"),
    ]
    found = run_everywhere(swarm.client, PROGRAM, lambda _: True, seconds=60)
    assert found.lines == {"1": ["one two", "\N{REPLACEMENT CHARACTER} four"], "2": ["three"]}


def test_of_those_that_fail_the_last_words_are_known() -> None:
    swarm = PlayedSwarm(
        [task("1", "failed", "task: non-zero exit (1)"), task("2", "complete", message="finished")]
    )
    details = "com.docker.swarm.node.id={},com.docker.swarm.task.id=t"
    # (two tasks on a node: the lines of the later one came first)
    swarm.complained = [
        b"2026-11-28T10:00:02.000000000Z %b The socket is another engine's.\n" % details.format(1).encode(),
        b"2026-11-28T10:00:01.000000000Z %b Something else.\n" % details.format(1).encode(),
        b"2026-11-28T10:00:03.000000000Z %b A warning.\n" % details.format(2).encode(),
        b"error from daemon in stream: incomplete log stream\n",
    ]
    found = run_everywhere(swarm.client, PROGRAM, lambda outcome: bool(outcome.failures), seconds=60)
    assert found.failures["1"] == "task: non-zero exit (1)"
    assert found.said == {"1": "The socket is another engine's."}


def test_dockers_own_words_are_no_programs() -> None:
    swarm = PlayedSwarm([])
    words = "Error grabbing logs: rpc error: node 2 is not available"
    swarm.printed = [b"com.docker.swarm.node.id=1 one\n", words.encode()]
    found = run_everywhere(swarm.client, PROGRAM, lambda _: True, seconds=60)
    assert found.lines == {"1": ["one"]}
    assert found.unread == words


def test_the_address_of_a_program_is_the_one_in_the_network_of_all_programs() -> None:
    ingress, own = attached("10.0.0.7", other="label"), attached("10.9.0.3", **{"pai.everywhere": "name"})
    swarm = PlayedSwarm(
        [task("1", "running", networks=(ingress, own)), task("2", "running", networks=(ingress,))]
    )
    found = run_everywhere(swarm.client, PROGRAM, lambda _: True, seconds=60)
    assert found.addresses == {"1": "10.9.0.3"}


def test_where_the_service_cannot_be_made_its_network_and_its_secret_go() -> None:
    swarm = PlayedSwarm(create_fails=True)
    program = NodeProgram("image", "module", connected=True, secret=b"of the lab")
    with pytest.raises(APIError):
        run_everywhere(swarm.client, program, lambda _: True, seconds=60)
    assert swarm.left() == []


def test_what_a_call_left_whose_life_was_cut_short_is_removed_by_the_next() -> None:
    swarm = PlayedSwarm([])
    # (a network is in use until the last program has gone; somebody else may remove it meanwhile)
    swarm.things = [
        Thing(swarm, "service"),
        Thing(swarm, "service", refusals=(404, 404)),
        Thing(swarm, "secret"),
        Thing(swarm, "network", refusals=(403, 403)),
    ]
    run_everywhere(swarm.client, PROGRAM, lambda _: True, seconds=60)
    assert swarm.left() == ["service"]
    gone = PlayedSwarm([])
    gone.things = [Thing(gone, "network", refusals=(404,) * 2)]
    run_everywhere(gone.client, PROGRAM, lambda _: True, seconds=60)
    assert gone.left() == ["network"]


@pytest.mark.parametrize(
    ("given", "found"),
    [("", ("registry.lab/agent:1", "/node/docker.sock")), ("other:2", ("other:2", "/node/docker.sock"))],
)
def test_what_nodes_run_is_the_agents_image_unless_another_is_named(
    given: str, found: tuple[str, str]
) -> None:
    container = {
        "Image": "registry.lab/agent:1@sha256:0123",
        "Mounts": [{"Target": "/var/run/docker.sock", "Source": "/node/docker.sock"}],
    }
    spec = {"Spec": {"TaskTemplate": {"ContainerSpec": container}}}
    services = [SimpleNamespace(name=f"{SERVICE}-2", attrs={}), SimpleNamespace(name=SERVICE, attrs=spec)]
    client = SimpleNamespace(services=SimpleNamespace(list=lambda filters: services if filters else []))
    assert agents_plan(cast("DockerClient", client), given) == found
    nobody = SimpleNamespace(services=SimpleNamespace(list=lambda filters: [] if filters else services))
    assert agents_plan(cast("DockerClient", nobody), given) == (given, DOCKER_SOCKET)
