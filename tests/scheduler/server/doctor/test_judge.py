"""What follows from what machines say of themselves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pai_scheduler.i18n import msg
from pai_scheduler.server.doctor import checks
from pai_scheduler.server.doctor.finding import Finding, Severity, good, lines, wrong
from pai_scheduler.server.doctor.node_probe import MOST_PEERS, MachineReport, NodeReport, PeerReport

MACHINE = MachineReport("24.0.7", 500.0, 1000.0, gpus_on_bus=0, gpu_driver="", gpu_runtime=False)
NAMES = {"1": "node-a", "2": "node-b", "3": "node-c"}
ADDRESSES = {"1": "10.0.1.3", "2": "10.0.1.4", "3": "10.0.1.5"}


def gpus(**changes: Any) -> tuple[Severity, str, str]:
    """Return what is found of the GPUs of a machine, and the advice."""
    *_, found = checks.of_machine(msgspec.structs.replace(MACHINE, **changes))
    return found.verdict, str(found.text), str(found.advice or "")


def ways(*peers: PeerReport) -> list[Finding]:
    """Return what is found of the ways from node-a."""
    return list(checks.of_ways(NodeReport("1", MACHINE, peers), ADDRESSES, NAMES))


def reached(node: str, **changes: Any) -> PeerReport:
    """Return a way that is as it should be."""
    return msgspec.structs.replace(PeerReport(ADDRESSES[node], reached=True, bulk=True), **changes)


def test_a_machine_without_gpus_is_no_error() -> None:
    assert gpus() == (Severity.NOTE, "There is no GPU of NVIDIA's in it.", "")


@pytest.mark.parametrize(
    ("found", "text", "advice"),
    [
        ({"gpus_on_bus": 4}, "4 GPUs are plugged in, but no driver", "driver"),
        (
            {"gpus_on_bus": 4, "gpu_driver": "NVRM version 550"},
            "Docker gives no GPUs",
            "nvidia-ctk runtime configure",
        ),
        (
            {"gpus_on_bus": 4, "gpu_driver": "550", "gpu_runtime": True, "gpu_error": "no libnvidia-ml.so"},
            "no libnvidia-ml.so",
            "nvidia-smi",
        ),
        (
            {"gpus_on_bus": 4, "gpu_driver": "550", "gpu_runtime": True, "gpus": ("A100", "A100", "A100")},
            "4 GPUs are plugged in, and 3 are seen",
            "dmesg",
        ),
    ],
    ids=["no driver", "no runtime", "runtime fails", "one has failed"],
)
def test_gpus_that_containers_do_not_get_are_said_with_what_to_do(
    found: dict[str, Any], text: str, advice: str
) -> None:
    verdict, said, what_to_do = gpus(**found)
    assert verdict is Severity.WRONG
    assert text in said
    assert advice in what_to_do


def test_gpus_are_counted_by_type() -> None:
    seen = gpus(gpus_on_bus=3, gpu_driver="550", gpu_runtime=True, gpus=("A100", "T4", "A100"))
    assert seen == (Severity.GOOD, "Containers see 2 × A100, 1 × T4.", "")


@pytest.mark.parametrize(
    ("free", "total", "verdict"),
    [(500, 1000, "ok"), (19, 100, "WRONG"), (400, 10_000, "WRONG"), (600, 10_000, "ok")],
)
def test_a_disk_needs_room_for_an_image_and_a_twentieth_of_it(free: int, total: int, verdict: str) -> None:
    assert checks.of_disk(free, total, "Docker").verdict == verdict


def test_all_ways_that_are_good_are_one_sentence() -> None:
    (found,) = ways(reached("2"), reached("3"))
    assert (found.verdict, str(found.text)) == (
        Severity.GOOD,
        "The networks of jobs reach node-b, node-c, with large packets too.",
    )


def test_each_kind_of_broken_way_names_the_ports_to_open() -> None:
    unknown, deaf = ways(reached("3", reached=False, bulk=False))
    assert (str(unknown.text), "7946/udp" in str(unknown.advice)) == ("It has not heard of node-b.", True)
    assert (str(deaf.text), "4789/udp" in str(deaf.advice)) == (
        "The networks of jobs do not reach node-c.",
        True,
    )
    (small,) = ways(reached("2", bulk=False), reached("3"))
    assert (str(small.text), "MTU" in str(small.advice)) == (
        "Small packets reach node-b, large ones do not.",
        True,
    )
    assert {unknown.verdict, deaf.verdict, small.verdict} == {Severity.WRONG}


def test_a_node_that_was_not_among_those_asked_is_not_called_unknown() -> None:
    ids = [str(number) for number in range(MOST_PEERS + 10)]
    addresses = {node: f"10.0.2.{node}" for node in ids}
    asked = tuple(PeerReport(addresses[node], reached=True, bulk=True) for node in ids[1 : MOST_PEERS + 1])
    (found,) = checks.of_ways(NodeReport("0", MACHINE, asked), addresses, {node: f"n{node}" for node in ids})
    assert found.verdict is Severity.GOOD
    assert "n32," in str(found.text)
    assert "n33" not in str(found.text)


@pytest.mark.parametrize(
    ("ahead", "verdict", "text"),
    [
        (1.0, None, ""),
        (60.0, Severity.NOTE, "Its clock is 60 s ahead."),
        (-60.0, Severity.NOTE, "Its clock is 60 s behind."),
        (86_400.0, Severity.WRONG, "Its clock is 86400 s ahead."),
    ],
)
def test_a_clock_may_be_a_little_wrong(ahead: float, verdict: Severity | None, text: str) -> None:
    found = checks.of_clock(ahead)
    assert (found and found.verdict, str(found.text) if found else "") == (verdict, text)


def test_an_image_that_its_registry_lacks_is_noted() -> None:
    assert checks.of_registry(MACHINE, "lab:5000/pai/agent:1").verdict is Severity.GOOD
    lacking = msgspec.structs.replace(MACHINE, registry_error="connection refused")
    found = checks.of_registry(lacking, "lab:5000/pai/agent:1")
    assert (found.verdict, "lab:5000" in str(found.advice)) == (Severity.NOTE, True)


def test_findings_stand_below_their_place_and_advice_below_its_finding() -> None:
    found = [good(msg("All well.")), wrong(msg("It burns."), msg("Put it out."))]
    assert lines("node-a", found) == [
        "node-a",
        "  ok    All well.",
        "  WRONG It burns.",
        "        → Put it out.",
    ]
