"""The lock of Python packages covers all that pyproject.toml asks for, on every Python that it claims."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "constraints.txt"


@cache
def project() -> dict[str, Any]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        return dict(tomllib.load(file)["project"])


def claimed() -> list[str]:
    """The Pythons that the classifiers name: "3.11", …"""
    found = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line) for line in project()["classifiers"]
    )
    return [match[1] for match in found if match]


def asked_for() -> Iterator[Requirement]:
    """What pyproject.toml asks for, with all extras."""
    extras = project()["optional-dependencies"].values()
    for line in (*project()["dependencies"], *(line for lines in extras for line in lines)):
        requirement = Requirement(line)
        if requirement.name != project()["name"]:
            yield requirement


def locked(python: str) -> dict[NormalizedName, str]:
    """The version of each package in the lock that counts on a Python."""
    environment: dict[str, Any] = {
        **default_environment(),
        "python_version": python,
        "python_full_version": f"{python}.9",
    }
    lines = (line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    versions = {}
    for requirement in map(Requirement, lines):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            (specifier,) = requirement.specifier
            versions[canonicalize_name(requirement.name)] = specifier.version
    return versions


def test_a_line_of_the_lock_is_a_version_and_names_no_address() -> None:
    # neither extras nor hashes: pip takes no extras in constraints, and with hashes no editable install
    line = re.compile(r"#.*|[a-z0-9-]+==[0-9][0-9a-z.]*( ; [a-zA-Z_ ().<>=!'0-9]+)?")
    assert [text for text in LOCK.read_text(encoding="utf-8").splitlines() if not line.fullmatch(text)] == []


@pytest.mark.parametrize("python", claimed())
def test_the_lock_has_a_fitting_version_of_all_that_is_asked_for(python: str) -> None:
    versions = locked(python)
    missing = [str(requirement) for requirement in asked_for() if not _fits(requirement, versions)]
    assert missing == [], "run `make lock`"


def _fits(requirement: Requirement, versions: dict[NormalizedName, str]) -> bool:
    version = versions.get(canonicalize_name(requirement.name))
    return version is not None and requirement.specifier.contains(version)


def test_the_lock_has_all_that_is_installed_for_it() -> None:
    versions = locked(".".join(default_environment()["python_version"].split(".")[:2]))
    seen: set[tuple[str, str]] = set()
    coming = [(requirement.name, extra) for requirement in asked_for() for extra in ("", *requirement.extras)]
    while coming:
        name, extra = coming.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # of an extra that is not installed here
        for requirement in map(Requirement, lines):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                coming += [(requirement.name, wanted) for wanted in ("", *requirement.extras)]
    assert {name for name, _ in seen if canonicalize_name(name) not in versions} == set()


def test_the_pythons_that_are_claimed_are_those_that_ci_tries() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    assert workflow["jobs"]["check"]["strategy"]["matrix"]["python"] == claimed()
    assert SpecifierSet(project()["requires-python"]) == SpecifierSet(f">={claimed()[0]}")
