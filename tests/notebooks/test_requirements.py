"""After the README's steps the tutorials run: what they import is installed by `make run`."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
OURS = {"pai_labextension", "pai_scheduler"}
#: Cells that write what does not run in the notebook's own environment.
_RUN_ELSEWHERE = ("%%writefile code/run.sh", "%%writefile distributed/")


def _imported(code: str) -> set[str]:
    """List the modules that a cell or the file that it writes imports."""
    lines = [line for line in code.splitlines() if not line.startswith(("%", "!"))]
    names = {
        alias.name if isinstance(node, ast.Import) else str(node.module)
        for node in ast.walk(ast.parse("\n".join(lines)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    return {name.partition(".")[0] for name in names}


def _installed() -> set[str]:
    """List the distributions that come with the project and its tutorials."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    waiting = [*project["dependencies"], *project["optional-dependencies"]["tutorials"]]
    found: set[str] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        if name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += metadata.requires(name) or []
    return found


@pytest.mark.parametrize(
    "notebook", sorted((REPOSITORY / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_everything_that_a_tutorial_imports_comes_with_the_project(notebook: Path) -> None:
    cells = nbformat.read(notebook, as_version=4).cells
    codes = [
        cell.source
        for cell in cells
        # (a shell script, and what needs the PyTorch of a job's image)
        if cell.cell_type == "code" and not cell.source.startswith(_RUN_ELSEWHERE)
    ]
    modules = set[str]().union(*map(_imported, codes)) - OURS - sys.stdlib_module_names
    providers = metadata.packages_distributions()
    installed = _installed()
    assert {
        module
        for module in modules
        if not {canonicalize_name(name) for name in providers[module]} & installed
    } == set()


def test_make_run_installs_what_the_tutorials_import() -> None:
    command = ["make", "--dry-run", "--always-make", "build/installed"]
    lines = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    assert re.search(r"pip install .*--editable '\.\[hub,services,tutorials\]'", lines)
