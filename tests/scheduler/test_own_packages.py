"""A person's own packages come before those of their base, which stays as it is."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pai_scheduler.own_packages import OwnPackages
from tests.testbed.wheels import make_wheel

# pip and uv install here, into environments that are made
pytestmark = pytest.mark.daemon

REPOSITORY = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


@pytest.fixture
def own(tmp_path: Path) -> OwnPackages:
    made = OwnPackages.in_home(tmp_path / "a person's home")
    made.make()
    return made


def run(own: OwnPackages, *words: str | Path) -> str:
    """Run a command as a terminal of its person would; return what it prints."""
    env = {**os.environ, **own.variables(os.environ)}
    return subprocess.run(words, env=env, text=True, stdout=subprocess.PIPE, check=True).stdout.strip()


def install(own: OwnPackages, *words: str | Path) -> None:
    """Install without an index."""
    run(own, *words, "--no-index", "--no-deps", "--quiet")


@pytest.mark.parametrize("command", [("pip",), ("python", "-m", "pip"), (UV, "pip")], ids=str)
def test_pip_and_uv_install_into_it_by_their_names(
    own: OwnPackages, tmp_path: Path, command: tuple[str | Path, ...]
) -> None:
    wheel = make_wheel(tmp_path, "thing", "1.0", "value = 42")
    assert own.is_empty
    install(own, *command, "install", wheel)
    assert run(own, "python", "-c", "import thing; print(thing.value)") == "42"
    assert not own.is_empty
    # again, as at each start: what is there stays
    own.make()
    assert run(own, "python3", "-c", "import thing; print(thing.value)") == "42"


def test_a_package_that_would_break_the_base_is_seen_here_alone_and_can_be_removed(
    own: OwnPackages, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path, "tornado", "0.1", "version = 'an old one'")
    ask = ("-c", "import tornado; print(tornado.version)")
    there = subprocess.check_output([sys.executable, *ask], text=True).strip()
    assert run(own, "python", *ask) == there
    install(own, "pip", "install", wheel)
    assert run(own, "python", *ask) == "an old one"
    assert subprocess.check_output([sys.executable, *ask], text=True).strip() == there
    run(own, "pip", "uninstall", "--yes", "tornado")
    assert run(own, "python", *ask) == there
    # that of the base is not here
    assert "outside environment" in run(own, "pip", "uninstall", "--yes", "tornado")
    assert subprocess.check_output([sys.executable, *ask], text=True).strip() == there


def test_programs_of_the_base_see_it_but_for_those_that_serve(own: OwnPackages, tmp_path: Path) -> None:
    install(own, "pip", "install", make_wheel(tmp_path, "thing", "1.0", "value = 42"))
    assert run(own, "ipython", "--no-banner", "-c", "import thing; print(thing.value)").endswith("42")
    names = {file.name for file in (own.folder / "bin").iterdir()}
    assert names >= {"pip", "pip3", "ipython", "python", "python3", "activate"}
    assert not names & {"jupyter", "jupyter-lab", "jupyterhub-singleuser", "pai", "pai-singleuser"}


def test_a_program_of_the_base_may_start_processes_that_load_it_again(own: OwnPackages) -> None:
    # as `spawn` of multiprocessing does, and with it `dask worker`
    runpy.run_path(str(own.folder / "bin" / "ipython"), run_name="__mp_main__")


def test_what_was_removed_or_is_of_another_time_is_made_again(own: OwnPackages, tmp_path: Path) -> None:
    install(own, "pip", "install", make_wheel(tmp_path, "thing", "1.0", "value = 42"))
    (own.folder / "bin" / "python").unlink()
    (own.folder / "bin" / "python").symlink_to("/usr/of/an/image/that/was/replaced/python3")
    own.make()
    assert run(own, "python", "-c", "import thing; print(thing.value)") == "42"
    config = own.folder / "pyvenv.cfg"
    config.write_text(config.read_text().replace("pai-base-changed = ", "pai-base-changed = 1"))
    (own.folder / "bin" / "ipython").unlink()
    (own.folder / "bin" / "pip3").write_text("the person's own")
    own.make()
    assert (own.folder / "bin" / "ipython").is_file()
    assert (own.folder / "bin" / "pip3").read_text() == "the person's own"
    shutil.rmtree(own.folder)
    own.make()
    assert run(own, "python", "-c", "import importlib.util as u; print(u.find_spec('thing'))") == "None"


def test_several_servers_of_one_home_may_make_it_at_once(tmp_path: Path) -> None:
    own = OwnPackages.in_home(tmp_path)
    make = [sys.executable, "-m", "pai_scheduler.own_packages"]
    env = {**os.environ, "HOME": str(tmp_path)}
    with ThreadPoolExecutor() as pool:
        said = list(
            pool.map(lambda _: subprocess.check_output(make, env=env, cwd=REPOSITORY, text=True), range(4))
        )
    assert set(said) == {f"{own.folder}\n"}
    assert run(own, "pip", "--version").startswith("pip ")
    assert not list(own.folder.rglob(".*"))


def test_it_is_found_again_by_its_folder(own: OwnPackages, tmp_path: Path) -> None:
    assert OwnPackages.read(own.folder) == own
    assert OwnPackages.read(sys.prefix) is None
    assert OwnPackages.read(tmp_path) is None


def test_a_base_that_is_no_environment_has_the_users_site_as_before(tmp_path: Path) -> None:
    base = str(getattr(sys, "_base_executable", sys.executable))
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(REPOSITORY)}
    site = subprocess.check_output([base, "-m", "site", "--user-site"], env=env, text=True).strip()
    Path(site).mkdir(parents=True)
    Path(site, "thing.py").write_text("value = 42")
    made = subprocess.check_output([base, "-m", "pai_scheduler.own_packages"], env=env, text=True).strip()
    ask = [f"{made}/bin/python", "-c", "import thing; print(thing.value)"]
    assert subprocess.check_output(ask, env=env, text=True).strip() == "42"


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_task_enters_it_where_its_home_is_there_and_runs_in_the_base_elsewhere(
    own: OwnPackages, shell: str
) -> None:
    lines = (
        own.entering()
        + '"$pai_python" -c "import sys; print(sys.prefix)"; echo "$VIRTUAL_ENV"; command -v pip'
    )
    inside = subprocess.check_output([shell, "-c", lines], text=True).splitlines()
    assert inside == [str(own.folder), str(own.folder), f"{own.folder}/bin/pip"]
    shutil.rmtree(own.folder)
    env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    outside = subprocess.check_output([shell, "-c", lines], text=True, env=env).splitlines()
    assert outside[:2] == [sys.prefix, ""]
