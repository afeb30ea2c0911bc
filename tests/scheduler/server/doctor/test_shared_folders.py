"""What the doctor says of shared folders before a task fails for the lack of one."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from pai_scheduler.cluster.shared_folders import SharedFolder
from pai_scheduler.server.doctor.command import of_shared_folders
from pai_scheduler.server.doctor.finding import Severity

Said = list[tuple[Severity, str, str]]


def findings(*folders: SharedFolder, engine: str = "docker", own: tuple[Path, ...] = ()) -> Said:
    found = of_shared_folders(folders, engine, own, tasks_here=engine == "docker")
    return [(finding.verdict, str(finding.text), str(finding.advice or "")) for finding in found]


def folder(name: str, source: object, *, create: bool = False) -> SharedFolder:
    return SharedFolder(name, str(source), "", f"/data/{name}", create=create)


def test_folders_that_are_there_are_well_and_a_volume_is_dockers(tmp_path: Path) -> None:
    volume = SharedFolder("models", "", "lab-models", "/models")
    assert findings(folder("sets", tmp_path), volume) == [
        (Severity.GOOD, "The shared folders are on this machine: sets.", "")
    ]
    assert findings(volume) == findings() == []


def test_a_folder_that_is_missing_is_wrong_and_how_to_make_it_is_said(tmp_path: Path) -> None:
    [(verdict, text, advice)] = findings(folder("sets", tmp_path / "my sets"), folder("there", tmp_path))
    assert verdict is Severity.WRONG
    assert text == f"The shared folder sets has no {tmp_path}/my sets on this machine."
    assert f"sudo mkdir -p '{tmp_path}/my sets'" in advice


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "sets").write_text("")
    [(verdict, text, _)] = findings(folder("sets", tmp_path / "sets"))
    assert (verdict, "is no folder" in text) == (Severity.WRONG, True)


def test_of_a_path_with_names_in_it_only_what_is_before_them_is_looked_for(tmp_path: Path) -> None:
    by_group = SharedFolder("groups", f"{tmp_path}/lab/{{group}}", "", "/groups/{group}")
    assert [verdict for verdict, _, _ in findings(by_group)] == [Severity.WRONG]
    (tmp_path / "lab").mkdir()
    assert [verdict for verdict, _, _ in findings(by_group)] == [Severity.GOOD]


def test_what_is_made_needs_only_the_folder_around_it(tmp_path: Path) -> None:
    assert findings(folder("scratch", tmp_path / "scratch", create=True))[0][0] is Severity.GOOD
    assert findings(folder("scratch", tmp_path / "no" / "scratch", create=True))[0][0] is Severity.WRONG


def test_what_this_account_cannot_see_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "stat", refuse)
    [(verdict, text, advice)] = findings(folder("sets", tmp_path))
    assert (verdict, "cannot see" in text, "sudo ls" in advice) == (Severity.NOTE, True, True)


def test_what_an_engine_cannot_give_is_said_of_each_folder(tmp_path: Path) -> None:
    sets, scratch = folder("sets", tmp_path), folder("scratch", tmp_path / "s", create=True)
    [(verdict, text, _)] = findings(sets, engine="process")
    assert (verdict, "process engine has no shared folders" in text) == (Severity.WRONG, True)
    found = findings(sets, scratch, engine="swarm", own=(tmp_path / "data",))
    assert [verdict for verdict, _, _ in found] == [Severity.WRONG] * 2
    assert "would open" in found[0][1]
    assert "leave create out" in found[1][1]


def test_on_the_machines_of_a_swarm_one_is_told_what_to_look_for(tmp_path: Path) -> None:
    [(verdict, text, advice)] = findings(folder("sets", tmp_path / "sets"), engine="swarm")
    assert (verdict, "(sets)" in text) == (Severity.NOTE, True)
    assert advice.endswith(f"ls -d {tmp_path}/sets")
