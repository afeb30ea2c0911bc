"""One meaning a word: docstrings begin with what a thing is, and no public class has the name of another."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from tests import sources
from tests.sources import PACKAGES

_QUESTION = re.compile(r"(What|Who|How|Why|Where|Which|Whether|When)\b")

#: Names that two classes have, and why.
TWICE = {
    "Client": "a notebook run's client of its kernel is inside a program that runs alone",
    "FileStatus": "Hadoop's name for it, and what a storage says of a file",
    "JobEvent": "an event of a job, and its JSON",
    "Submitted": "the core's event, and the answer to a submit",
    "Task": "`pai_scheduler.distributed.launch` runs alone",
}


def modules() -> dict[str, ast.Module]:
    """Read all modules, by their paths."""
    return {path: tree for package in PACKAGES for path, tree in sources.modules(package).items()}


#: What these say of their fields is published: in the OpenAPI document, and as types of the front end.
_PUBLISHED = ("pai_scheduler/rest/", "pai_labextension/models.py")


def test_no_docstring_begins_with_a_question_word() -> None:
    assert len(modules()) > 300
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
    found = [
        f"{path}: {text.splitlines()[0]}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, kinds) and (text := ast.get_docstring(node)) and _QUESTION.match(text)
        if isinstance(node, ast.Module) or not path.startswith(_PUBLISHED)
    ]
    assert found == []


def test_no_public_class_has_the_name_of_another_but_for_a_reason() -> None:
    places = defaultdict(list)
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert {name: paths for name, paths in twice.items() if name not in TWICE} == {}
    assert set(TWICE) == set(twice)
