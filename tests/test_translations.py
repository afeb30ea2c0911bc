"""Every sentence that a person may read is there in every language, with the same values in it."""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from jinja2.ext import babel_extract

from pai_scheduler.i18n import LOCALES
from pai_scheduler.job.schema import job_schema
from tests.sources import PACKAGES, ROOT, files, modules

#: A template, or the two of a sentence whose form depends on a number.
Forms = tuple[str, ...]

TRANSLATIONS = [(package, locale) for package in PACKAGES for locale in LOCALES if locale != "en"]

#: Calls that mark templates, and which arguments of theirs these are. Of two the second is for more than one.
MARKERS = {
    "msg": (0,), "Message": (0,), "say": (0,), "_say": (0,), "t": (0,), "_done": (1,), "counted": (0, 1),
}  # fmt: skip


@cache
def templates(package: str) -> dict[Forms, str]:
    """Return the templates that the code of a package marks, each with a place where it stands.

    (Babel's own extractor overlooks calls within f-strings.)
    """
    found: dict[Forms, str] = {}
    for file, tree in modules(package).items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called(node) in MARKERS:
                for forms in marked(node):
                    found.setdefault(forms, f"{file}:{node.lineno}")
    for page in (page for page in files(package, ".html") if page.parent.name == "templates"):
        with page.open("rb") as stream:
            for line, function, message, _ in babel_extract(stream, list(MARKERS), [], {"encoding": "utf-8"}):
                texts = [message] if isinstance(message, str) else message or ()
                forms = tuple(str(texts[position]) for position in MARKERS[str(function)])
                found.setdefault(forms, f"{page.relative_to(ROOT)}:{line}")
    if package == "pai_scheduler":
        found.update({(text,): f"{package}/job/schema.json" for text in schema_texts(job_schema())})
    # a message of nothing stands for one that is not there
    found.pop(("",), None)
    return found


def called(call: ast.Call) -> str:
    """Return the name of what is called: `say` of `self.say("…")` too."""
    match call.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
    return ""


def marked(call: ast.Call) -> Iterator[Forms]:
    """Return the texts that may stand where a call has its template; of a counted one the two together."""
    arguments = [list(texts(call.args[place : place + 1])) for place in MARKERS[called(call)]]
    return zip(*arguments, strict=True)


def texts(wanted: list[ast.expr]) -> Iterator[str]:
    """Return the texts that an expression may be."""
    while wanted:
        match wanted.pop():
            case ast.Constant(str() as text):
                yield text
            case ast.IfExp(body=body, orelse=orelse):
                wanted += [body, orelse]


@cache
def texts_in_code(package: str) -> set[str]:
    """Return every text that stands anywhere in the code of a package."""
    nodes = (node for tree in modules(package).values() for node in ast.walk(tree))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def schema_texts(schema: Any) -> Iterator[str]:
    """Return the titles and descriptions that forms show."""
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


def entries(package: str, locale: str) -> dict[Forms, Forms]:
    """Return what is translated, and into what: a sentence with a number has the forms of the language."""
    return {forms(entry.id): forms(entry.string or "") for entry in catalog(package, locale) if entry.id}


def forms(text: str | list[str] | tuple[str, ...]) -> Forms:
    return (text,) if isinstance(text, str) else tuple(text)


def placeholders(template: str) -> list[tuple[str, str]]:
    """Return the values that a template asks for, and how they are written."""
    parts = string.Formatter().parse(template)
    return sorted(
        (name, f"{conversion or ''}:{spec or ''}") for _, name, spec, conversion in parts if name is not None
    )


def test_every_package_that_says_something_is_looked_at() -> None:
    assert ("{field} must not be empty.",) in templates("pai_scheduler")
    assert ("{count} CPU", "{count} CPUs") in templates("pai_spawner")
    assert ("Number of GPUs",) in templates("pai_spawner"), "what stands in templates of pages"
    assert all(templates(package) for package in PACKAGES)


@pytest.mark.parametrize(("package", "locale"), TRANSLATIONS)
def test_every_sentence_is_translated(package: str, locale: str) -> None:
    translated = entries(package, locale)
    missing = {
        text: place for text, place in templates(package).items() if not all(translated.get(text, [""]))
    }
    assert not missing, f"not in {package}/locale/{locale}.po"


@pytest.mark.parametrize(("package", "locale"), TRANSLATIONS)
def test_a_translation_has_the_same_values(package: str, locale: str) -> None:
    for templates, translations in entries(package, locale).items():
        for translation in translations:
            assert placeholders(translation) == placeholders(templates[-1]), templates


@pytest.mark.parametrize(("package", "locale"), TRANSLATIONS)
def test_a_sentence_with_a_number_has_as_many_forms_as_the_language(package: str, locale: str) -> None:
    for templates, translations in entries(package, locale).items():
        assert len(translations) == (catalog(package, locale).num_plurals if len(templates) > 1 else 1)


@pytest.mark.parametrize(("package", "locale"), TRANSLATIONS)
def test_nothing_is_translated_that_nobody_says(package: str, locale: str) -> None:
    # an entry too many is a sentence that was changed; some are chosen first and said later,
    # and the fields of a job may have names of their own wherever they are shown
    said = texts_in_code(package) | set(schema_texts(job_schema()))
    unsaid = entries(package, locale).keys() - templates(package).keys()
    assert not {texts for texts in unsaid if len(texts) > 1 or texts[0] not in said}


@pytest.mark.parametrize(("package", "locale"), TRANSLATIONS)
def test_nothing_is_translated_twice(package: str, locale: str) -> None:
    file = ROOT / package / "locale" / f"{locale}.po"
    ids = [entry.id for entry in catalog(package, locale) if entry.id]
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    assert sum(line.startswith("msgid ") for line in lines) == len(ids) + (1 if lines else 0)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_sentence_is_given_the_values_it_asks_for(package: str) -> None:
    wrong = []
    for file, tree in modules(package).items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or called(node) not in {"msg", "say", "_say", "counted"}:
                continue
            given = {keyword.arg for keyword in node.keywords}
            for texts in marked(node):
                asked = {name for text in texts for name, _ in placeholders(text)}
                asked |= {"count"} if len(texts) > 1 else set()
                if None not in given and given != asked:
                    wrong.append(f"{file}:{node.lineno}: {texts}")
    assert not wrong
