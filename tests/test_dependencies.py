"""What `pip install pai-for-jupyter` brings is enough for `pai` and JupyterLab; extras bring the rest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from hub_config.images.build import Recipe

ROOT = Path(__file__).parents[1]
PACKAGES = ("pai_scheduler", "pai_spawner", "pai_labextension")
#: What a person or a notebook server uses; it works without any extra.
INSTALLED_BY_ALL = ("pai_scheduler.client", "pai_labextension")
#: What only JupyterHub and a service of it load.
OF_THE_HUB = (
    "pai_spawner",
    "pai_scheduler.api.hub_auth",
    "pai_labextension.singleuser",
    "pai_labextension.console",
)
#: The service that a Hub starts beside it.
CONSOLE = ("pai_labextension.console.program", "pai_labextension.console.__main__")
#: What a Hub starts in an image that has JupyterHub; it says so and ends where that is missing.
SINGLEUSER = "pai_labextension.singleuser"
#: What serves a web program inside a notebook server: loaded when a server is told of one, which says so and
#: ends where the extra `services` is missing.
SERVING = "pai_labextension.webapp.serving"
#: Distributions of the service that nobody needs who has only the client.
HEAVY = {
    "aiodocker",
    "alembic",
    "docker",
    "jupyterhub",
    "nvidia-ml-py",
    "sortedcontainers",
    "sqlalchemy",
}

#: Loads every module below the packages named, and prints which libraries could not be loaded.
LOAD_ALL = """
import importlib, json, pkgutil, sys
missing = []
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, f"{name}."):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            missing.append(f"{module.name} needs {error.name}")
print(json.dumps(missing))
"""


@cache
def project() -> dict[str, Any]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        return dict(tomllib.load(file)["project"])


def asked_for(*extras: str) -> Iterator[Requirement]:
    """What is installed with these extras, extras of extras included."""
    own = project()["name"]
    lines = [line for extra in extras for line in project()["optional-dependencies"][extra]]
    for requirement in map(Requirement, [*project()["dependencies"], *lines]):
        if requirement.name == own:
            yield from asked_for(*requirement.extras)
        else:
            yield requirement


def named(*extras: str) -> set[NormalizedName]:
    return {canonicalize_name(requirement.name) for requirement in asked_for(*extras)}


@cache
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*PACKAGES, include_external_packages=True)


def reachable(roots: Iterable[str]) -> set[str]:
    """The modules of ours that are loaded with these, sooner or later; a module loads what it is in."""
    seen: set[str] = set()
    coming = [module for module in graph().modules if within(module, roots)]
    while coming:
        module = coming.pop()
        if module in seen or not within(module, PACKAGES):
            continue
        seen.add(module)
        coming += graph().find_modules_directly_imported_by(module)
        coming += filter(None, [module.rpartition(".")[0]])
    return seen


def within(module: str, roots: Iterable[str]) -> bool:
    return any(module == root or module.startswith(f"{root}.") for root in roots)


def not_covered(modules: Iterable[str], *extras: str) -> list[str]:
    """The imports of these modules that nothing which is asked for brings."""
    return not_among(modules, named(*extras))


def not_among(modules: Iterable[str], allowed: set[NormalizedName]) -> list[str]:
    """The imports of these modules that none of these distributions brings."""
    providers = metadata.packages_distributions()
    return sorted(
        f"{module} imports {library}"
        for module in modules
        for library in graph().find_modules_directly_imported_by(module)
        if not within(library, PACKAGES) and library not in sys.stdlib_module_names
        if not {canonicalize_name(name) for name in providers.get(library, [library])} & allowed
    )


def test_what_a_person_installs_needs_no_extra() -> None:
    assert not_covered(reachable(INSTALLED_BY_ALL) - {SERVING, SINGLEUSER, *CONSOLE}) == []
    assert not_covered([SINGLEUSER, *CONSOLE], "hub") == []
    assert not_covered([SERVING], "services") == []


def test_the_scheduler_needs_its_extra_and_no_jupyterhub() -> None:
    modules = {module for module in graph().modules if within(module, PACKAGES)}
    modules.remove(SERVING)
    testing = {module for module in modules if within(module, ["pai_scheduler.testing"])}
    assert not_covered(testing, "testing") == []
    modules -= testing
    service = [module for module in modules if not within(module, OF_THE_HUB)]
    # loaded when it is asked for, and its absence is told
    optional = [
        "pai_scheduler.simulator.report imports matplotlib",
        "pai_scheduler.storage.hdfs.client imports requests_kerberos",
    ]
    assert not_covered(service, "scheduler") == not_covered(modules, "hub") == optional
    assert not_covered(service, "kerberos", "tutorials") == []


def test_the_image_of_the_agents_has_what_the_agent_imports() -> None:
    requirements = map(Requirement, Recipe(image="agent").requirements)
    brought = {canonicalize_name(one.name) for one in closure(requirements)}
    # (loaded when a job is read or found wrong, which no agent does)
    unused = re.compile(r"pai_scheduler\.job\.(schema(_errors)?|validation) imports (fast)?jsonschema")
    missing = not_among(reachable(["pai_scheduler.engine.agent"]), brought)
    assert [one for one in missing if not unused.fullmatch(one)] == []


def test_each_library_is_asked_for_where_it_is_used() -> None:
    assert named() & HEAVY == set()
    assert named("scheduler") & HEAVY == HEAVY - {"jupyterhub"}
    assert named("hub") & HEAVY == named("test") & HEAVY == HEAVY


def closure(requirements: Iterable[Requirement]) -> Iterator[metadata.Distribution]:
    """What pip installs for these, from what is installed here."""
    seen: set[tuple[NormalizedName, str]] = set()
    coming = [(one.name, extra) for one in requirements for extra in ("", *one.extras)]
    while coming:
        name, extra = coming.pop()
        if (canonicalize_name(name), extra) in seen:
            continue
        seen.add((canonicalize_name(name), extra))
        distribution = metadata.distribution(name)
        if extra == "":
            yield distribution
        for requirement in map(Requirement, distribution.requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                coming += [(requirement.name, wanted) for wanted in ("", *requirement.extras)]


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and what it asks for without extras, nothing else.

    The libraries are links to those that are installed here, so that nothing is fetched.
    """
    folder = tmp_path_factory.mktemp("light")
    wheels, home = folder / "wheels", folder / "venv"
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels))
    venv.create(home)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = home / "lib" / version / "site-packages"
    for distribution in closure(asked_for()):
        for name in {file.parts[0] for file in distribution.files or [] if file.parts[0] != ".."}:
            if not (packages / name).exists():
                (packages / name).symlink_to(Path(str(distribution.locate_file(name))))
    (wheel,) = wheels.iterdir()
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin" / "python")]
    _run(*pip, "install", "--quiet", "--disable-pip-version-check", "--no-index", str(wheel))
    return home / "bin"


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _in(light: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "JUPYTER"))
    }
    return subprocess.run(
        [light / program, *arguments], cwd=light, env=environment, capture_output=True, text=True
    )


def test_the_wheel_alone_loads_every_module_of_the_client_and_of_the_extension(light: Path) -> None:
    done = _in(light, "python", "-c", LOAD_ALL, *INSTALLED_BY_ALL)
    assert (done.returncode, done.stderr) == (0, "")
    of_a_hub = [f"{module} needs jupyterhub" for module in sorted(CONSOLE)]
    assert json.loads(done.stdout) == [*of_a_hub, f"{SERVING} needs jupyter_server_proxy"]


def test_a_server_that_is_to_serve_a_program_says_which_extra_it_lacks(light: Path, tmp_path: Path) -> None:
    service = {"title": "Board", "command": ["board", "{port}"], "strip_prefix": True, "start_seconds": 60}
    options = ["--allow-root", "--no-browser", f"--ServerApp.root_dir={tmp_path}"]
    code = "from jupyter_server.serverapp import main; main()"
    done = _in(light, "python", "-c", code, *options, f"--PAIExtension.service={service!r}")
    assert done.returncode == 1
    assert "This image cannot serve Board (No module named 'jupyter_server_proxy'): install" in done.stderr


def test_the_wheel_alone_brings_no_library_of_the_service(light: Path) -> None:
    code = "import importlib.metadata as m; print(*(one.name for one in m.distributions()))"
    installed = {canonicalize_name(name) for name in _in(light, "python", "-c", code).stdout.split()}
    assert "pai-for-jupyter" in installed
    assert installed & HEAVY == set()


def test_pai_runs_without_an_extra(light: Path) -> None:
    done = _in(light, "pai", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "port-forward" in done.stdout
    # it gets as far as to ask somebody who is not there
    refused = _in(light, "pai", "jobs", "--url", "http://127.0.0.1:1")
    assert (refused.returncode, refused.stderr.count("\n")) == (3, 1)


def test_jupyter_server_takes_the_extension_without_an_extra(light: Path) -> None:
    code = "from jupyter_server.extension.serverextension import main; main()"
    done = _in(light, "python", "-c", code, "list")
    assert re.search(r"pai_labextension .*OK", done.stdout + done.stderr)


def test_the_scheduler_without_its_extra_says_what_to_install(light: Path) -> None:
    done = _in(light, "pai-scheduler", "--help")
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("pai-scheduler: It needs the library ")
    assert sentence.endswith("pip install 'pai-for-jupyter[scheduler]'")


def test_the_spawner_without_its_extra_says_what_to_install(light: Path) -> None:
    done = _in(light, "python", "-c", "import pai_spawner")
    assert done.stderr.splitlines()[-1] == (
        "ImportError: pai_spawner runs in JupyterHub and needs the library jupyterhub: "
        "pip install 'pai-for-jupyter[hub]'"
    )
