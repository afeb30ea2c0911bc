"""The first line of a module says what it is, as a noun phrase or an imperative, not as a question."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
_QUESTION = re.compile(r"(What|Who|How|Why|Where|Which|Whether|When)\b")


def test_no_module_begins_with_a_question_word() -> None:
    files = [
        file
        for package in ("pai_scheduler", "pai_spawner", "pai_labextension")
        for file in (ROOT / package).rglob("*.py")
        if "node_modules" not in file.parts
    ]
    assert len(files) > 300
    found = [
        str(file.relative_to(ROOT))
        for file in files
        if _QUESTION.match(ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "")
    ]
    assert found == []
