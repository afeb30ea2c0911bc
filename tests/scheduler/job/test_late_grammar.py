"""The grammar that jsonschema would wait for is loaded when a format needs it, and then does its work."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(code: str) -> list[str]:
    """Run a program of its own, in which nothing is loaded yet; return what it prints, a line each."""
    begin = "import sys\nfrom pai_scheduler.job.lazy_grammar import put_off_grammar\n"
    said = subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()


def test_jsonschema_is_there_without_the_grammar_and_an_iri_is_checked_with_it() -> None:
    said = run("""
put_off_grammar()
from jsonschema import Draft202012Validator as Validator, FormatChecker
print("lark" in sys.modules)
validator = Validator({"format": "iri"}, format_checker=Validator.FORMAT_CHECKER)
print([validator.is_valid(value) for value in ("http://例え.jp/路", "no iri", 7)])
print("lark" in sys.modules)
""")
    assert said == ["False", "[True, False, True]", "True"]


@pytest.mark.parametrize(
    "use",
    [
        "import rfc3987_syntax; print(rfc3987_syntax.parse('iri', 'a:b').data)",
        "from rfc3987_syntax import parse; print(parse('iri', 'a:b').data)",
        "from rfc3987_syntax.syntax_helpers import parse; print(parse('iri', 'a:b').data)",
    ],
)
def test_who_uses_the_library_otherwise_gets_it_whole(use: str) -> None:
    assert run(f"put_off_grammar()\n{use}") == ["iri"]


def test_it_can_be_looked_at_without_being_loaded() -> None:
    said = run("""
put_off_grammar()
put_off_grammar()
import inspect, rfc3987_syntax
print(repr(rfc3987_syntax)[:24], inspect.getmodule(rfc3987_syntax) is rfc3987_syntax, "lark" in sys.modules)
""")
    assert said == ["<module 'rfc3987_syntax' True False"]


def test_a_library_that_is_loaded_stays_as_it_is() -> None:
    assert run("""
import rfc3987_syntax
put_off_grammar()
print(sys.modules["rfc3987_syntax"] is rfc3987_syntax, type(rfc3987_syntax).__name__)
""") == ["True module"]


def test_where_it_is_not_installed_it_is_missing_as_before() -> None:
    assert run("""
import importlib.util
from pai_scheduler.job import lazy_grammar
lazy_grammar.find_spec = lambda name: None
put_off_grammar()
print("rfc3987_syntax" in sys.modules)
""") == ["False"]
