"""Which Python kernels have: the person's, where a task of the scheduler serves them, else the server's."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.serverapp import ServerApp

from pai_labextension import own_python
from pai_labextension.kernels.runner import with_what_is_here
from pai_labextension.own_python import OwnPythonSpecs, use_own_packages
from pai_labextension.runs.runner import manager_of
from pai_scheduler.own_packages import OwnPackages

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("PATH", "VIRTUAL_ENV"):
        # put back whatever a test makes of it
        monkeypatch.setenv(name, os.environ.get(name, ""))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PAI_JOB_NAME", "notebook_1")
    return tmp_path


def kernel(server: ServerApp, name: str = "python3") -> list[str]:
    specs: KernelSpecManager = server.kernel_spec_manager_class(parent=server)
    return list(specs.get_kernel_spec(name).argv)


def add_kernel(home: Path, name: str, program: str) -> None:
    folder = home / ".local" / "share" / "jupyter" / "kernels" / name
    folder.mkdir(parents=True)
    argv = f'["{program}", "-f", "{{connection_file}}"]'
    (folder / "kernel.json").write_text(f'{{"argv": {argv}, "display_name": "", "language": ""}}')


def test_in_a_task_kernels_and_terminals_have_the_persons_packages_and_other_kernels_their_own(
    home: Path,
) -> None:
    server, own = ServerApp(), OwnPackages.in_home(home)
    use_own_packages(server)
    assert kernel(server)[0] == str(own.python)
    assert own.python.exists()
    assert os.environ["PATH"].startswith(f"{own.folder}/bin:")
    add_kernel(home, "other", "/opt/R/bin/R")
    assert kernel(server, "other")[0] == "/opt/R/bin/R"
    for name in ("python", "python3", sys.executable):
        add_kernel(home, f"k{len(name)}", name)
        assert kernel(server, f"k{len(name)}")[0] == str(own.python)


def test_kernel_managers_that_somebody_chose_go_on_listing_what_they_know() -> None:
    class Others(KernelSpecManager):
        def find_kernel_specs(self) -> dict[str, str]:
            return {**super().find_kernel_specs(), "of-conda": "/nowhere"}

    server = ServerApp(kernel_spec_manager_class=Others)
    use_own_packages(server)
    specs = server.kernel_spec_manager_class(parent=server)
    assert isinstance(specs, OwnPythonSpecs)
    assert "of-conda" in specs.find_kernel_specs()


def test_an_environment_of_ones_own_is_left_as_it_is(
    home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PAI_JOB_NAME")
    server = ServerApp()
    use_own_packages(server)
    assert not server.trait_has_value("kernel_spec_manager_class")
    assert not OwnPackages.in_home(home).folder.exists()
    # one that is read-only is not one's own, whoever starts the server
    monkeypatch.setattr(own_python, "_is_read_only", lambda: True)
    use_own_packages(server)
    assert kernel(server)[0] == str(OwnPackages.in_home(tmp_path).python)


def test_a_home_without_room_leaves_kernels_the_servers_packages(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (home / ".local").write_text("in the way, as a disk that is full")
    server = ServerApp()
    server.log = logging.getLogger("server")
    use_own_packages(server)
    assert not server.trait_has_value("kernel_spec_manager_class")
    assert os.environ["VIRTUAL_ENV"] != str(OwnPackages.in_home(home).folder)
    assert "the packages of the server only" in caplog.text


def test_a_kernel_job_without_the_home_runs_in_the_tasks_python(home: Path) -> None:
    own = OwnPackages.in_home(home)
    argv, env = [str(own.python), "-m", "ipykernel_launcher"], {**own.variables({"PATH": "/bin"}), "A": "b"}
    assert with_what_is_here(argv, env) == ([sys.executable, *argv[1:]], {"PATH": "/bin", "A": "b"})
    assert with_what_is_here(["R", "-f"], env)[0] == ["R", "-f"]
    own.make()
    assert with_what_is_here(argv, env) == (argv, env)


async def test_a_run_starts_kernels_in_python_by_the_python_that_it_is_given() -> None:
    manager = manager_of("/own/python")(kernel_name="python3")
    assert (await asyncio.to_thread(manager.format_kernel_cmd))[:2] == ["/own/python", "-m"]


@pytest.mark.daemon
def test_what_pip_installed_for_the_user_does_not_reach_the_server(tmp_path: Path) -> None:
    # a base that is no virtual environment; its libraries come from ours
    base = str(getattr(sys, "_base_executable", sys.executable))
    libraries = next(path for path in sys.path if path.startswith(sys.prefix) and "site-packages" in path)
    env: dict[str, Any] = {**os.environ, "HOME": str(tmp_path)}
    env["PYTHONPATH"] = f"{libraries}:{REPOSITORY}"
    site = subprocess.check_output([base, "-m", "site", "--user-site"], env=env, text=True).strip()
    Path(site).mkdir(parents=True)
    Path(site, "thing.py").touch()
    program = tmp_path / "pai-singleuser"
    program.write_text(
        "import importlib.util, sys, jupyterhub.singleuser\n"
        "jupyterhub.singleuser.main = lambda: print(importlib.util.find_spec('thing'), sys.argv[1:])\n"
        "from pai_labextension import singleuser\n"
        "sys.exit(singleuser.main())\n"
    )
    said = subprocess.check_output([base, program, "--port=1"], env=env, text=True)
    assert said == "None ['--port=1']\n"
