"""Every sentence that a person may read is there in every language, with the same values in it."""

from __future__ import annotations

import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po

from pai_scheduler.job.messages import LOCALES
from pai_scheduler.job.schema import job_schema

ROOT = Path(__file__).parent.parent
PACKAGES = ("pai_scheduler", "pai_spawner", "pai_labextension")
TRANSLATIONS = [(package, locale) for package in PACKAGES for locale in LOCALES if locale != "en"]

#: Calls that mark a template, and which argument of theirs it is.
MARKERS: dict[str, tuple[int, ...] | None] = {
    "msg": None,
    "Message": None,
    "say": None,
    "_say": None,
    "_done": (2,),
    "t": None,  # in HTML
}


@cache
def templates(package: str) -> dict[str, str]:
    """Give the templates that the code of a package marks, each with a place where it stands."""
    found: dict[str, str] = {}
    extracted = extract_from_dir(
        ROOT / package,
        method_map=[("**.py", "python"), ("templates/**.html", "jinja2")],
        keywords=MARKERS,
        directory_filter=lambda folder: Path(folder).name not in {"node_modules", "ui", "__pycache__"},
    )
    for file, line, template, _, _ in extracted:
        assert isinstance(template, str), f"{file}:{line} marks several texts at once"
        found.setdefault(template, f"{package}/{file}:{line}")
    if package == "pai_scheduler":
        found.update(dict.fromkeys(schema_texts(job_schema()), f"{package}/job/schema.json"))
    found.pop("", None)
    return found


def schema_texts(schema: Any) -> Iterator[str]:
    """Give the titles and descriptions that forms show."""
    if "title" in schema:
        yield schema["title"]
    if "description" in schema:
        yield schema["description"]
    for part in ("properties", "$defs"):
        for child in schema.get(part, {}).values():
            yield from schema_texts(child)


@cache
def catalog(package: str, locale: str) -> Catalog:
    file = ROOT / package / "locale" / f"{locale}.po"
    if not file.exists():
        return Catalog(locale)
    with file.open("rb") as stream:
        return read_po(stream, locale, abort_invalid=True)


def entries(package: str, locale: str) -> dict[str, str]:
    return {str(entry.id): str(entry.string) for entry in catalog(package, locale) if entry.id}


def placeholders(template: str) -> list[tuple[str, str]]:
    """Give the values that a template asks for, and how they are written."""
    parts = string.Formatter().parse(template)
    return sorted(
        (name, f"{conversion or ''}:{spec or ''}") for _, name, spec, conversion in parts if name is not None
    )


def test_every_package_that_says_something_is_looked_at() -> None:
    assert "{field} must not be empty." in templates("pai_scheduler")
    assert all(templates(package) for package in PACKAGES)


@pytest.mark.parametrize(("package", "locale"), TRANSLATIONS)
def test_every_sentence_is_translated(package: str, locale: str) -> None:
    translated = entries(package, locale)
    missing = {text: place for text, place in templates(package).items() if not translated.get(text)}
    assert not missing, f"not in {package}/locale/{locale}.po"


@pytest.mark.parametrize(("package", "locale"), TRANSLATIONS)
def test_a_translation_has_the_same_values(package: str, locale: str) -> None:
    for template, translation in entries(package, locale).items():
        assert placeholders(translation) == placeholders(template), template


@pytest.mark.parametrize(("package", "locale"), TRANSLATIONS)
def test_nothing_is_translated_that_nobody_says(package: str, locale: str) -> None:
    # an entry too many is a sentence that was changed, or one that MARKERS does not find;
    # the fields of a job may have names of their own wherever they are shown
    said = templates(package).keys() | set(schema_texts(job_schema()))
    assert entries(package, locale).keys() <= said


@pytest.mark.parametrize(("package", "locale"), TRANSLATIONS)
def test_nothing_is_translated_twice(package: str, locale: str) -> None:
    file = ROOT / package / "locale" / f"{locale}.po"
    ids = [entry.id for entry in catalog(package, locale) if entry.id]
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    assert sum(line.startswith("msgid ") for line in lines) == len(ids) + (1 if lines else 0)
