from __future__ import annotations

from typing import Any

import pytest

from pai_labextension.kernels.offers import KernelOffer, WrongChoiceError, choices


def node(name: str, *, simulated: bool = False, **gpus: int) -> Any:
    listed = [{"type": kind, "simulated": simulated} for kind, count in gpus.items() for _ in range(count)]
    return {"name": name, "state": "READY", "total": {"gpus": gpus}, "used": {"gpus": {}}, "gpus": listed}


def cluster(capacity: float, most: float = 100, status: str = "RUNNING") -> Any:
    return {"capacity": capacity, "maxCapacity": most, "status": status}


NODES = [node("a", TITANX=2, P100=2), node("b", TITANX=4)]


def offered(configured: list[dict[str, Any]] | None = None, **more: Any) -> list[KernelOffer]:
    given: dict[str, Any] = {
        "nodes": NODES,
        "clusters": {"default": cluster(60), "vision": cluster(40)},
        "usable": ["default", "vision"],
        "own_cluster": "default",
        "preemptible": False,
        **more,
    }
    return choices(configured or [], given.pop("nodes"), given.pop("clusters"), **given)


def shown(found: list[KernelOffer]) -> list[tuple[str, str]]:
    return [(choice.name, str(choice.what)) for choice in found]


def test_unless_told_otherwise_one_gpu_of_each_type_is_offered():
    assert shown(offered()) == [("1-p100", "1 × P100"), ("1-titanx", "1 × TITANX")]


def test_a_type_is_offered_where_a_virtual_cluster_guarantees_one_the_servers_own_first():
    assert [choice.settings["virtual_cluster"] for choice in offered()] == ["default", "default"]
    by = offered(own_cluster="vision")
    # 40 per cent of two are none
    assert [(choice.name, choice.settings["virtual_cluster"]) for choice in by] == [
        ("1-p100", "default"),
        ("1-titanx", "vision"),
    ]
    assert shown(offered(usable=["vision"])) == [("1-titanx", "1 × TITANX")]


def test_what_may_be_stopped_for_others_may_borrow():
    found = offered(usable=["vision"], own_cluster="vision", preemptible=True)
    assert [choice.name for choice in found] == ["1-p100", "1-titanx"]


def test_a_stopped_virtual_cluster_offers_nothing():
    assert offered(clusters={"default": cluster(100, status="STOPPED")}, usable=["default"]) == []


def test_gpus_that_are_not_there_are_said_to_be_simulated():
    assert shown(offered(nodes=[node("a", simulated=True, P100=2)])) == [("1-p100", "1 × P100 (simulated)")]


def test_a_cluster_without_gpus_offers_none():
    assert offered(nodes=[node("a")]) == []


def test_an_administrator_offers_what_they_like():
    found = offered(
        [
            {"gpus": 2, "gpu_type": "TITANX", "memory_mb": 32768},
            {"gpus": 1},
            {"memory_mb": 8192, "cpus": 4},
            {"title": "the small one", "image": "lab/small"},
            {"title": "The small one!"},
        ]
    )
    assert shown(found) == [
        ("2-titanx", "2 × TITANX"),
        ("1-gpu", "1 GPU"),
        ("cpu-8-gb", "CPU, 8 GB"),
        ("the-small-one", "the small one"),
        ("the-small-one-2", "The small one!"),
    ]
    assert found[0].settings == {
        "gpus": 2,
        "gpu_type": "TITANX",
        "memory_mb": 32768,
        "virtual_cluster": "default",
    }


def test_what_no_machine_has_is_left_out():
    assert offered([{"gpus": 8, "gpu_type": "TITANX"}, {"gpus": 1, "gpu_type": "H100"}]) == []


def test_a_choice_with_a_word_that_means_nothing_is_named():
    with pytest.raises(WrongChoiceError, match=r"has no .memory.; it may have .*memory_mb"):
        offered([{"memory": 5}])
