"""Whether the rules of imports between folders find what they are to find."""

from __future__ import annotations

from typing import Any

from grimp import ImportGraph

from tests.import_rules import AllowedImports


def found(folders: list[str], imports: dict[str, str]) -> list[str]:
    graph = ImportGraph()
    for module in {*imports, *imports.values()}:
        graph.add_module(module)
    for importer, imported in imports.items():
        graph.add_import(importer=importer, imported=imported)
    options: dict[str, Any] = {"package": "house", "folders": folders}
    contract = AllowedImports(name="rules", session_options={}, contract_options=options)
    check = contract.check(graph, verbose=False)
    assert check.kept is not bool(check.metadata["found"])
    return list(check.metadata["found"])


def test_an_import_that_a_line_allows_is_kept() -> None:
    assert found(["job:", "core: job"], {"house.core.machine": "house.job.spec"}) == []


def test_an_import_that_no_line_allows_is_found() -> None:
    wrong = found(["job:", "core: job"], {"house.job.spec": "house.core.machine"})
    assert wrong == ["house.job.spec imports house.core.machine"]


def test_a_folder_imports_itself() -> None:
    assert found(["job:"], {"house.job.spec": "house.job.task"}) == []


def test_a_folder_with_a_line_of_its_own_is_not_part_of_the_one_around_it() -> None:
    lines = ["api: engine", "engine:", "engine.docker: engine"]
    assert found(lines, {"house.engine.docker.task": "house.engine.protocol"}) == []
    assert found(lines, {"house.api.jobs": "house.engine.docker.task"}) != []
    assert found(lines, {"house.engine.protocol": "house.engine.docker.task"}) != []


def test_one_module_of_a_folder_can_be_allowed() -> None:
    lines = ["gateway: monitoring.log", "monitoring:"]
    assert found(lines, {"house.gateway.server": "house.monitoring.log"}) == []
    assert found(lines, {"house.gateway.server": "house.monitoring.meters"}) != []


def test_a_module_that_is_in_no_folder_is_found() -> None:
    assert found(["job:"], {"house.service": "house.job.spec"}) == [
        "house.service is in no folder that has a line"
    ]
