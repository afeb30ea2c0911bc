"""Shared folders that servers are started with, and those that the scheduler has."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_scheduler.server.doctor.finding import Severity
from pai_spawner.doctor.offers import of_shared_folders
from tests.spawner.conftest import Configure

_PROFILE = """
c.PAISpawner.images = {'PAI': 'pai/notebook'}
c.PAISpawner.profiles = [{'display_name': 'Train', 'shared_folders': ['sets', 'setz']}]
"""
_CLUSTER = """
sharedFolders:
  - {name: sets, source: /data/sets, target: /data/sets}
  - {name: models, volume: lab-models, target: /models, groups: [vision]}
"""
Said = list[tuple[Severity, str, str]]


def findings(configure: Configure, *lines: str, **environ: str) -> Said:
    found = of_shared_folders(configure(*lines, **environ))
    return [(finding.verdict, str(finding.text), str(finding.advice or "")) for finding in found]


@pytest.fixture
def docker(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a Hub whose scheduler has two shared folders on Docker."""
    (tmp_path / "cluster.yaml").write_text(_CLUSTER)
    return {"PAI_ENGINE": "docker", "PAI_CLUSTER": str(tmp_path / "cluster.yaml")}


def test_whoever_names_none_hears_nothing(configure: Configure, docker: dict[str, str]) -> None:
    assert findings(configure, **docker) == []
    assert findings(configure, "c.PAISpawner.shared_folders = ['*']") == []


def test_a_name_that_is_not_in_the_cluster_file_is_wrong_at_each_place(
    configure: Configure, docker: dict[str, str]
) -> None:
    found = findings(configure, _PROFILE, "c.PAISpawner.shared_folders = ['*', 'scratch']", **docker)
    assert [(verdict, text) for verdict, text, _ in found] == [
        (
            Severity.WRONG,
            "c.PAISpawner.shared_folders names shared folders that are not in the cluster file: scratch.",
        ),
        (
            Severity.WRONG,
            "The profile Train names shared folders that are not in the cluster file: setz.",
        ),
    ]
    assert docker["PAI_CLUSTER"] in found[0][2]
    assert "known are: sets, models" in found[0][2]


def test_names_that_are_all_there_are_well(configure: Configure, docker: dict[str, str]) -> None:
    assert findings(configure, "c.PAISpawner.shared_folders = ['sets']", **docker) == [
        (Severity.GOOD, "The cluster file has all shared folders that are named: sets.", "")
    ]


def test_the_process_engine_has_none(configure: Configure) -> None:
    [(verdict, text, advice)] = findings(configure, _PROFILE)
    assert (verdict, "Train" in text, "--engine docker" in advice) == (Severity.WRONG, True, True)


def test_a_scheduler_without_a_cluster_file_has_none_and_of_one_elsewhere_nothing_is_known(
    configure: Configure,
) -> None:
    line = "c.PAISpawner.shared_folders = ['sets']"
    service = "c.JupyterHub.services = [{'name': 'pai', 'command': ['pai-scheduler', '--engine', 'docker']}]"
    assert [verdict for verdict, _, _ in findings(configure, line, service)] == [Severity.WRONG]
    assert findings(configure, line, PAI_ENGINE="docker") == []


def test_the_cluster_file_is_that_of_the_command(configure: Configure, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(_CLUSTER)
    command = ["pai-scheduler", "--engine", "docker", "--cluster", "cluster.yaml"]
    lines = (
        "c.PAISpawner.shared_folders = ['sets']",
        f"c.JupyterHub.services = [{{'name': 'pai', 'command': {command}}}]",
    )
    assert [verdict for verdict, _, _ in findings(configure, *lines)] == [Severity.GOOD]


def test_a_profile_for_people_who_may_not_have_its_folder_is_noted(
    configure: Configure, docker: dict[str, str]
) -> None:
    def of(groups: str) -> list[tuple[Severity, str]]:
        profile = f"{{'display_name': 'See', 'shared_folders': ['models'], {groups}}}"
        lines = ("c.PAISpawner.images = {'PAI': 'pai/notebook'}", f"c.PAISpawner.profiles = [{profile}]")
        return [(verdict, text) for verdict, text, _ in findings(configure, *lines, **docker)][1:]

    assert of("'groups': ['vision']") == []
    for groups in ("", "'groups': ['vision', 'speech']"):
        [(verdict, text)] = of(groups)
        assert (verdict, "for vision only" in text) == (Severity.NOTE, True)


def test_profiles_that_are_wrong_are_judged_elsewhere(configure: Configure, docker: dict[str, str]) -> None:
    assert findings(configure, "c.PAISpawner.profiles = [{'display_nam': 'Train'}]", **docker) == []
