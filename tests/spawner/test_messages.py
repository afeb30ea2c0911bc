"""Every sentence of the spawner exists in Chinese, with the same values in it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from string import Formatter

import pytest

import pai_spawner
from pai_scheduler.job.messages import translate

PACKAGE = Path(pai_spawner.__file__).parent


def sentences() -> list[str]:
    found = set()
    for file in PACKAGE.glob("*.py"):
        tree = ast.parse(file.read_text())
        templates = {
            node.targets[0].id: node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        # a variable that is assigned more than once is looked up by all its values
        found |= {
            node.value.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "template"
            and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "msg":
                argument = node.args[0]
                found.add(argument.value if isinstance(argument, ast.Constant) else templates[argument.id])
    for file in PACKAGE.glob("templates/*.html"):
        found |= set(re.findall(r'\bt\("([^"]+)"\)', file.read_text()))
    return sorted(found)


@pytest.mark.parametrize("sentence", sentences())
def test_every_sentence_is_translated(sentence: str) -> None:
    chinese = translate(sentence, "zh_CN", "pai_spawner")
    assert chinese != sentence
    fields = [
        sorted(name for _, name, _, _ in Formatter().parse(text) if name) for text in (sentence, chinese)
    ]
    assert fields[0] == fields[1]
