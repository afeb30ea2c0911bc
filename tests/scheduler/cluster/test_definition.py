from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from pai_scheduler.cluster.config_fields import DefinitionError
from pai_scheduler.cluster.definition import (
    Definition,
    LeastAttained,
    LogKeeping,
    Registries,
    ShortestRemaining,
    merge_nodes,
    parse_definition,
)
from pai_scheduler.cluster.node import Gpu, Node
from tests.scheduler.making import make_node

CONTRACT = """
nodes:
  - {name: node-a, cpus: 32, memoryMB: 100000, storageGB: 100, gpus: {TITANX: 2, P100: 2}}
defaults: {storageGB: 20}
virtualClusters:
  default: {capacity: 60}          # per cent of the cluster, guaranteed
  vision:  {capacity: 40, maxCapacity: 100, groups: [vision]}
"""


def parse(text: str) -> Definition:
    return parse_definition(yaml.safe_load(text))


def test_the_file_of_the_contract_is_understood() -> None:
    definition = parse(CONTRACT)
    (node,) = definition.nodes
    assert (node.name, node.cpus, node.memory_mb, node.storage_gb) == ("node-a", 32, 100000, 100)
    assert node.gpus == {"TITANX": 2, "P100": 2}
    assert definition.default_storage_gb == 20
    default, vision = definition.virtual_clusters["default"], definition.virtual_clusters["vision"]
    assert (default.capacity, default.max_capacity, default.groups) == (60, 100, ())
    assert (vision.capacity, vision.max_capacity, vision.groups) == (40, 100, ("vision",))


@pytest.mark.parametrize("text", ["", "{}", "nodes: []"])
def test_an_empty_file_means_this_machine_and_one_virtual_cluster(text: str) -> None:
    definition = parse(text)
    assert definition.nodes == ()
    assert definition.virtual_clusters["default"].capacity == 100
    assert definition.default_storage_gb == 20
    assert definition.logs == LogKeeping(max_mb_per_task=1024, keep_days=90)
    assert definition.streams_per_user == 200


def test_what_logs_and_streams_may_cost_can_be_said() -> None:
    definition = parse("defaults: {logs: {keepDays: 7}, streamsPerUser: 10}")
    assert definition.logs == LogKeeping(max_mb_per_task=1024, keep_days=7)
    assert definition.streams_per_user == 10
    assert parse("defaults: {logs: {maxMBPerTask: 50}}").logs == LogKeeping(50, 90)


@pytest.mark.parametrize(
    ("defaults", "limit", "request_gb"),
    [
        ("{}", 20, 1),
        ("{storageGB: 0}", 0, 0),
        ("{storageGB: 5}", 5, 1),
        ("{storageRequestGB: 20}", 20, 20),
        ("{storageGB: 5, storageRequestGB: 0}", 5, 0),
    ],
)
def test_a_task_that_names_no_disk_reserves_one_gb_or_what_the_file_says(
    defaults: str, limit: int, request_gb: int
) -> None:
    definition = parse(f"defaults: {defaults}")
    assert (definition.default_storage_gb, definition.storage_request_gb) == (limit, request_gb)


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("[]", "the file", "mapping"),
        ("Nodes: []", "Nodes", "nodes, defaults, limits, virtualClusters"),
        ("nodes: {}", "nodes", "list"),
        ("nodes: [a]", "nodes[0]", "mapping"),
        ("nodes: [{cpus: 1}]", "nodes[0].name", "name"),
        ("nodes: [{name: 3}]", "nodes[0].name", "name"),
        ("nodes: [{name: a}, {name: a}]", "nodes[1].name", "another node named a"),
        ("nodes: [{name: a, cpus: 0}]", "nodes[0].cpus", "1 or more"),
        ("nodes: [{name: a, cpus: 1.5}]", "nodes[0].cpus", "whole number"),
        ("nodes: [{name: a, cpus: true}]", "nodes[0].cpus", "whole number"),
        ("nodes: [{name: a, memoryMB: -1}]", "nodes[0].memoryMB", "1 or more"),
        ("nodes: [{name: a, storageGB: x}]", "nodes[0].storageGB", "whole number"),
        ("nodes: [{name: a, rack: 1}]", "nodes[0].rack", "A rack is a name"),
        ("nodes: [{name: a, rack: ''}]", "nodes[0].rack", "A rack is a name"),
        ("nodes: [{name: a, rack: [r1]}]", "nodes[0].rack", "A rack is a name"),
        ("nodes: [{name: a, rack: a b}]", "nodes[0].rack", "64 letters"),
        ("nodes: [{name: a, gpuLinks: 1}]", "nodes[0].gpuLinks", "must be a list"),
        ("nodes: [{name: a, gpuLinks: [0, 1]}]", "nodes[0].gpuLinks[0]", "must be a list"),
        ("nodes: [{name: a, gpuLinks: [[0], [-1]]}]", "nodes[0].gpuLinks[1]", "A GPU is its number"),
        ("nodes: [{name: a, gpuLinks: [[true]]}]", "nodes[0].gpuLinks[0]", "A GPU is its number"),
        ("nodes: [{name: a, gpuLinks: [[P100]]}]", "nodes[0].gpuLinks[0]", "A GPU is its number"),
        ("nodes: [{name: a, gpuLinks: [[0, 1], [1]]}]", "nodes[0].gpuLinks[1]", "GPU 1 is named twice"),
        ("nodes: [{name: a, gpuLinks: [[2, 2]]}]", "nodes[0].gpuLinks[0]", "GPU 2 is named twice"),
        ("defaults: {logs: 5}", "defaults.logs", "mapping"),
        ("defaults: {logs: {maxMB: 5}}", "defaults.logs.maxMB", "maxMBPerTask, keepDays"),
        ("defaults: {logs: {maxMBPerTask: 0}}", "defaults.logs.maxMBPerTask", "1 or more"),
        ("defaults: {logs: {keepDays: forever}}", "defaults.logs.keepDays", "whole number"),
        ("defaults: {streamsPerUser: 0}", "defaults.streamsPerUser", "1 or more"),
        ("defaults: {schedulesPerUser: -1}", "defaults.schedulesPerUser", "0 or more"),
        ("defaults: {jobsPerUser: 0}", "defaults.jobsPerUser", "1 or more"),
        ("defaults: {overtakeLimit: -1}", "defaults.overtakeLimit", "0 or more"),
        ("defaults: {debugHoldSeconds: 7d}", "defaults.debugHoldSeconds", "whole number"),
        (
            "virtualClusters: {default: {capacity: 60, gpusPerUser: many}}",
            "virtualClusters.default.gpusPerUser",
            "whole number",
        ),
        (
            "virtualClusters: {default: {capacity: 60, defaultRunSeconds: 9, maxRunSeconds: 8}}",
            "virtualClusters.default.defaultRunSeconds",
            "not be above maxRunSeconds",
        ),
        ("nodes: [{name: a, gpus: 2}]", "nodes[0].gpus", "mapping"),
        ("nodes: [{name: a, gpus: {P100: -1}}]", "nodes[0].gpus.P100", "0 or more"),
        ("nodes: [{name: a, memory: 1}]", "nodes[0].memory", "memoryMB"),
        ("defaults: {storage: 1}", "defaults.storage", "storageGB"),
        ("defaults: {storageGB: a lot}", "defaults.storageGB", "whole number"),
        ("defaults: {storageRequestGB: -1}", "defaults.storageRequestGB", "0 or more"),
        ("defaults: {storageRequestGB: 21}", "defaults.storageRequestGB", "(21) is above storageGB (20)"),
        ("defaults: {storageGB: 2, storageRequestGB: 3}", "defaults.storageRequestGB", "raise storageGB"),
        ("virtualClusters: [default]", "virtualClusters", "mapping"),
        ("virtualClusters: {default: 60}", "virtualClusters.default", "mapping"),
        ("virtualClusters: {default: {}}", "virtualClusters.default.capacity", "0 to 100"),
        ("virtualClusters: {default: {capacity: 101}}", "virtualClusters.default.capacity", "0 to 100"),
        (
            "virtualClusters: {default: {capacity: 50, maxCapacity: 40}}",
            "virtualClusters.default.maxCapacity",
            "below",
        ),
        (
            "virtualClusters: {default: {capacity: 50, max: 40}}",
            "virtualClusters.default.max",
            "maxCapacity",
        ),
        (
            "virtualClusters: {default: {capacity: 50, groups: vision}}",
            "virtualClusters.default.groups",
            "list",
        ),
        ("virtualClusters: {vision: {capacity: 50}}", "virtualClusters", "default"),
        (
            "virtualClusters: {default: {capacity: 60}, vision: {capacity: 50}}",
            "virtualClusters",
            "110 per cent",
        ),
        (
            "defaults: {terminationGraceSeconds: 601}",
            "defaults.terminationGraceSeconds",
            "which is 600",
        ),
        ("limits: {terminationGraceSeconds: 3601}", "limits.terminationGraceSeconds", "At most 3600"),
        ("limits: {storageGB: 1}", "limits.storageGB", "terminationGraceSeconds"),
    ],
)
def test_an_error_names_its_place_and_what_is_wanted(text: str, path: str, words: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        parse(text)
    assert caught.value.path == path
    assert words in str(caught.value.message)
    assert str(caught.value) == f"{path}: {caught.value.message}"


def test_limits_are_read_for_all_and_for_each_virtual_cluster() -> None:
    definition = parse(
        "{defaults: {jobsPerUser: 5, overtakeLimit: 0, debugHoldSeconds: 60}, virtualClusters: {default: "
        "{capacity: 60, gpusPerUser: 0, defaultRunSeconds: 10, maxRunSeconds: 20}}}"
    )
    limits = definition.jobs_per_user, definition.overtake_limit, definition.debug_hold_seconds
    assert limits == (5, 0, 60)
    default = definition.virtual_clusters["default"]
    assert (default.gpus_per_user, default.default_run_seconds, default.max_run_seconds) == (0, 10, 20)
    assert default.shorter_first == 0
    shorter = parse("virtualClusters: {default: {capacity: 60, shorterFirst: 10}}")
    assert shorter.virtual_clusters["default"].shorter_first == 10
    with pytest.raises(DefinitionError, match="shorterFirst: This must be a whole"):
        parse("virtualClusters: {default: {capacity: 60, shorterFirst: often}}")
    fair = parse("virtualClusters: {default: {capacity: 60, fairShare: {halfLifeHours: 168}}}")
    assert (default.fair_share_hours, fair.virtual_clusters["default"].fair_share_hours) == (0, 168)
    for wrong, why in (
        ("fairShare: {}", "halfLifeHours: Say after how many hours"),
        ("fairShare: {halfLifeHours: 0}", "halfLifeHours: This must be a whole"),
        ("fairShare: {halfLifeHours: 1000000}", "halfLifeHours: Say after how many hours"),
        ("fairShare: {weeks: 1}", "weeks is not known here"),
        ("fairShare: {halfLifeHours: 1}, shorterFirst: 1", "are orders: choose one"),
    ):
        with pytest.raises(DefinitionError, match=why):
            parse("virtualClusters: {default: {capacity: 60, " + wrong + "}}")
    for visible in ("members", "everybody", "nobody"):
        found = parse("virtualClusters: {default: {capacity: 60, holdersVisible: " + visible + "}}")
        assert found.virtual_clusters["default"].holders_visible == visible
    assert default.holders_visible == "members"
    with pytest.raises(DefinitionError, match=r"default.holdersVisible: Say members"):
        parse("virtualClusters: {default: {capacity: 60, holdersVisible: friends}}")
    for placement, spreads in (("pack", False), ("spread", True)):
        found = parse("virtualClusters: {default: {capacity: 60, placement: " + placement + "}}")
        assert found.virtual_clusters["default"].spreads is spreads
    assert default.spreads is False
    for wrong in ("wide", "[spread]", "true"):
        with pytest.raises(DefinitionError, match=r"default.placement: Say pack"):
            parse("virtualClusters: {default: {capacity: 60, placement: " + wrong + "}}")
    assert parse("defaults: {schedulesPerUser: 3}").schedules_per_user == 3
    assert Definition().schedules_per_user == 100
    assert (Definition().overtake_limit, Definition().debug_hold_seconds) == (20, 7 * 24 * 3600)


def test_levels_are_read_and_what_makes_no_levels_is_refused() -> None:
    def levels(text: str) -> LeastAttained | None:
        return (
            parse("virtualClusters: {default: {capacity: 60, " + text + "}}")
            .virtual_clusters["default"]
            .least_attained
        )

    assert levels("maxCapacity: 60") is None
    assert levels("leastAttained: {gpuHours: [0.5, 10]}") == LeastAttained((0.5, 10.0), 600, 720)
    usual = levels("leastAttained: {}")
    assert usual is not None
    assert (usual.gpu_hours, usual.run_seconds, usual.promote_hours) == (
        (1.0, 3.0, 9.0, 27.0, 81.0, 243.0, 729.0, 2187.0, 6561.0, 19683.0),
        600,
        720,
    )
    assert levels("leastAttained: {promoteAfterHours: 24}") == replace(usual, promote_hours=24)
    read = levels("leastAttained: {gpuHours: [1], leastRunSeconds: 0, promoteAfterHours: 24}")
    assert read == LeastAttained((1.0,), 0, 24)
    for wrong, why in (
        ("{gpuHours: []}", "gpuHours: Say after how many"),
        ("{gpuHours: 1}", "gpuHours: This must be a list"),
        ("{gpuHours: [0, 1]}", "gpuHours: Say after how many"),
        ("{gpuHours: [10, 1]}", "rising numbers"),
        ("{gpuHours: [1, 1]}", "rising numbers"),
        ("{gpuHours: [1, ten]}", "gpuHours: Say after how many"),
        ("{gpuHours: [true]}", "gpuHours: Say after how many"),
        ("{gpuHours: [.nan]}", "gpuHours: Say after how many"),
        ("{gpuHours: [1000000]}", "gpuHours: Say after how many"),
        ("{gpuHours: [1], leastRunSeconds: -1}", "leastRunSeconds: This must be a whole"),
        ("{gpuHours: [1], promoteAfterHours: 0}", "promoteAfterHours: This must be a whole"),
        ("{gpuHours: [1], promoteAfterHours: 1000000}", "promoteAfterHours: At most 876000 hours"),
        ("{levels: 3}", "levels is not known here"),
        ("{gpuHours: [1]}, shorterFirst: 1", "orders: choose one"),
        ("{gpuHours: [1]}, fairShare: {halfLifeHours: 1}", "orders: choose one"),
    ):
        with pytest.raises(DefinitionError, match=why):
            levels("leastAttained: " + wrong)


def test_shortest_remaining_is_read_and_is_one_order_of_several() -> None:
    def read(text: str) -> ShortestRemaining | None:
        document = "virtualClusters: {default: {capacity: 60, " + text + "}}"
        return parse(document).virtual_clusters["default"].shortest_remaining

    assert read("maxCapacity: 60") is None
    assert read("shortestRemaining: {}") == ShortestRemaining(600, 168)
    assert read("shortestRemaining: {leastRunSeconds: 0, promoteAfterHours: 24}") == ShortestRemaining(0, 24)
    for wrong, why in (
        ("{leastRunSeconds: -1}", "shortestRemaining.leastRunSeconds: This must be a whole"),
        ("{promoteAfterHours: 1000000}", "promoteAfterHours: At most 876000 hours"),
        ("{gpuHours: [1]}", "gpuHours is not known here"),
        ("{}, shorterFirst: 1", "shortestRemaining: .* are orders: choose one"),
        ("{}, leastAttained: {gpuHours: [1]}", "are orders: choose one"),
    ):
        with pytest.raises(DefinitionError, match=why):
            read("shortestRemaining: " + wrong)


def declared(**fields: Any) -> Definition:
    return parse_definition({"nodes": [{"name": "a", **fields}]})


def test_without_declared_nodes_those_are_taken_that_the_engine_found() -> None:
    found = [make_node("x"), make_node("y")]
    assert merge_nodes(Definition(), found, one_machine=False) == tuple(found)
    assert merge_nodes(Definition(), found[:1], one_machine=True) == (found[0],)


def test_what_is_not_declared_is_taken_from_the_machine() -> None:
    found = Node("a", 8, 1000, 50, (Gpu(0, "P100", "GPU-1"),))
    assert merge_nodes(declared(), [found], one_machine=True) == (found,)
    assert merge_nodes(declared(cpus=4), [found], one_machine=True) == (Node("a", 4, 1000, 50, found.gpus),)


def test_declared_gpus_that_are_not_there_are_simulated_and_said_to_be() -> None:
    (node,) = merge_nodes(declared(gpus={"P100": 1, "TITANX": 2}), [make_node("a")], one_machine=True)
    assert [(gpu.index, gpu.type, gpu.simulated) for gpu in node.gpus] == [
        (0, "P100", True),
        (1, "TITANX", True),
        (2, "TITANX", True),
    ]
    assert len({gpu.uuid for gpu in node.gpus}) == 3


def test_declared_gpus_that_are_there_are_the_real_ones() -> None:
    real = Node("a", 8, 1000, 50, (Gpu(0, "P100", "GPU-0"), Gpu(1, "K80", "GPU-1"), Gpu(2, "K80", "GPU-2")))
    (node,) = merge_nodes(declared(gpus={"K80": 1, "TITANX": 1}), [real], one_machine=True)
    first, second = node.gpus
    assert first == Gpu(1, "K80", "GPU-1")
    assert (second.type, second.simulated) == ("TITANX", True)
    assert second.index != first.index


def test_all_declared_nodes_stand_for_the_one_machine_that_there_is() -> None:
    definition = parse("nodes: [{name: a, cpus: 1}, {name: b, cpus: 2}]")
    nodes = merge_nodes(definition, [make_node("this-machine", memory_mb=777)], one_machine=True)
    assert [(node.name, node.cpus, node.memory_mb, node.ready) for node in nodes] == [
        ("a", 1, 777, True),
        ("b", 2, 777, True),
    ]


def test_of_several_machines_a_declared_one_that_is_not_there_is_lost() -> None:
    definition = parse("nodes: [{name: gone, cpus: 2}, {name: a, cpus: 1}]")
    for found in ([make_node("a", cpus=8), make_node("b", cpus=8)], [make_node("b", cpus=8)]):
        nodes = merge_nodes(definition, found, one_machine=False)
        there = {node.name for node in found}
        assert [(node.name, node.cpus, node.ready) for node in nodes] == [
            ("gone", 2, False),
            ("a", 1, "a" in there),
            ("b", 8, True),
        ]


def test_registries_are_public_ones_unless_the_file_lists_others() -> None:
    assert parse("nodes: []").registries == Registries(("*",))
    listed = parse('registries: ["*.example.org", "127.0.0.1:5000"]').registries
    assert listed == Registries(("*.example.org", "127.0.0.1:5000"))


@pytest.mark.parametrize("pattern", ["https://registry.example.org", "registry/x", "", "5", "a b"])
def test_a_registry_is_a_host_name(pattern: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        parse(f"registries: [docker.io, {json.dumps(pattern) if pattern != '5' else 5}]")
    assert caught.value.path == "registries[1]"


def test_the_rack_of_a_machine_is_what_the_file_says_whatever_else_was_found() -> None:
    definition = parse("nodes: [{name: a, rack: room-2/r1}, {name: b}]")
    found = [make_node("a"), make_node("b"), make_node("c")]
    for one_machine in (False, True):
        nodes = merge_nodes(definition, found, one_machine=one_machine)
        assert [(node.name, node.rack) for node in nodes][:2] == [("a", "room-2/r1"), ("b", "")]


def test_the_links_of_gpus_are_what_the_file_says_whatever_else_was_found() -> None:
    definition = parse("nodes: [{name: a, gpuLinks: [[0, 2], [1, 3]]}, {name: b, gpuLinks: null}]")
    found = [make_node("a", gpus={"P100": 4}), make_node("b", gpus={"P100": 4})]
    nodes = merge_nodes(definition, found, one_machine=False)
    assert [node.gpu_links for node in nodes] == [((0, 2), (1, 3)), ()]


def test_the_time_to_end_has_a_default_and_a_limit() -> None:
    usual = parse("")
    assert (usual.grace_seconds, usual.max_grace_seconds) == (10, 600)
    ours = parse("defaults: {terminationGraceSeconds: 60}\nlimits: {terminationGraceSeconds: 3600}")
    assert (ours.grace_seconds, ours.max_grace_seconds) == (60, 3600)
    low = parse("limits: {terminationGraceSeconds: 5}")
    assert (low.grace_seconds, low.max_grace_seconds) == (5, 5)
