"""What is used of asyncssh is its public interface: a newer version can be taken at once."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import asyncssh
import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path
    for package in ("pai_scheduler", "pai_labextension", "pai_spawner")
    for path in (ROOT / package).rglob("*.py")
    if "node_modules" not in path.parts and "asyncssh" in path.read_text()
)
#: What the library makes itself, and gives to whom it concerns.
MADE_BY_ASYNCSSH = {"SSHServerConnection", "SSHClientConnection"}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def module(path: Path) -> ModuleType:
    return importlib.import_module(name(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__"))


def private(word: str) -> bool:
    return word.startswith("_") and not word.startswith("__")


def private_names(parsed: ast.AST) -> Iterator[str]:
    """Return the private names that a piece of code defines, or sets in its objects."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and private(node.name):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and private(node.attr):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and private(node.id):
            yield node.id


@cache
def names_of_asyncssh() -> frozenset[str]:
    folder = Path(asyncssh.__path__[0])
    return frozenset(word for path in folder.glob("*.py") for word in private_names(tree(path)))


@cache
def names_of_class(found: type) -> frozenset[str]:
    return frozenset(private_names(ast.parse(inspect.cleandoc("\n" + inspect.getsource(found)))))


def classes(path: Path) -> Iterator[tuple[type, list[type]]]:
    """Return a module's own classes that stand on asyncssh's, with those."""
    for found in vars(module(path)).values():
        if isinstance(found, type) and found.__module__ == module(path).__name__:
            bases = [base for base in found.__mro__ if base.__module__.partition(".")[0] == "asyncssh"]
            if bases:
                yield found, bases


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_nothing_is_imported_but_what_is_public(path: Path) -> None:
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import(names=names):
                assert not [each.name for each in names if each.name.startswith("asyncssh.")]
            case ast.ImportFrom(module=str(source), names=names):
                assert not source.startswith("asyncssh."), source
                used = [each.name for each in names] if source == "asyncssh" else []
            case ast.Attribute(value=ast.Name(id="asyncssh"), attr=attribute):
                used = [attribute]
            case _:
                used = []
        for word in used if not isinstance(node, ast.Import) else ():
            # the constants of the protocol, which its documentation lists, stand not in __all__
            assert word in asyncssh.__all__ or word.isupper(), word
            assert not private(word)


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_private_name_of_its_objects_is_used(path: Path) -> None:
    parsed = tree(path)
    own = set(private_names(parsed))
    used = {
        node.attr for node in ast.walk(parsed) if isinstance(node, ast.Attribute) and private(node.attr)
    } - own
    # what a class of ours has from another class of ours
    for found, bases in classes(path):
        ours = [base for base in found.__mro__ if base.__module__.startswith("pai_")]
        used -= {word for base in ours for word in names_of_class(base)}
        assert bases
    assert not used & names_of_asyncssh()


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_class_overrides_a_private_name_or_hides_an_attribute(path: Path) -> None:
    for found, bases in classes(path):
        theirs = {word for base in bases for word in names_of_class(base)}
        assert not names_of_class(found) & theirs, found


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_connections_are_made_by_the_library_and_have_no_classes_of_ours(path: Path) -> None:
    for found, bases in classes(path):
        assert not {base.__name__ for base in bases} & MADE_BY_ASYNCSSH, found
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            assert node.func.attr not in MADE_BY_ASYNCSSH
