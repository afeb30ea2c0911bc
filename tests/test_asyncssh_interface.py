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

from tests.sources import PACKAGES, ROOT, files, text, tree


@cache
def using_asyncssh() -> list[Path]:
    return [path for package in PACKAGES for path in files(package) if "asyncssh" in text(path)]


#: What the library makes itself, and gives to whom it concerns.
MADE_BY_ASYNCSSH = {"SSHServerConnection", "SSHClientConnection"}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


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
    return frozenset(
        word for path in folder.glob("*.py") for word in private_names(ast.parse(path.read_text()))
    )


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


def test_nothing_is_imported_but_what_is_public() -> None:
    assert len(using_asyncssh()) > 10
    assert [f"{name(path)}: {word}" for path in using_asyncssh() for word in not_public(tree(path))] == []


def not_public(parsed: ast.Module) -> Iterator[str]:
    """Return what a module takes from asyncssh that is not its public interface."""
    for node in ast.walk(parsed):
        match node:
            case ast.Import(names=names):
                yield from (each.name for each in names if each.name.startswith("asyncssh."))
                used = []
            case ast.ImportFrom(module=str(source), names=names):
                if source.startswith("asyncssh."):
                    yield source
                used = [each.name for each in names] if source == "asyncssh" else []
            case ast.Attribute(value=ast.Name(id="asyncssh"), attr=attribute):
                used = [attribute]
            case _:
                used = []
        for word in used:
            # the constants of the protocol, which its documentation lists, stand not in __all__
            if private(word) or (word not in asyncssh.__all__ and not word.isupper()):
                yield word


def test_no_private_name_of_its_objects_is_used() -> None:
    wrong = [f"{name(path)}: {word}" for path in using_asyncssh() for word in private_names_used(path)]
    assert wrong == []


def private_names_used(path: Path) -> set[str]:
    """Return the private names of asyncssh that a module uses and that are not our own."""
    parsed = tree(path)
    own = set(private_names(parsed))
    used = {
        node.attr for node in ast.walk(parsed) if isinstance(node, ast.Attribute) and private(node.attr)
    } - own
    # what a class of ours has from another class of ours
    for found, _ in classes(path):
        ours = [base for base in found.__mro__ if base.__module__.startswith("pai_")]
        used -= {word for base in ours for word in names_of_class(base)}
    return used & names_of_asyncssh()


def test_no_class_overrides_a_private_name_or_hides_an_attribute() -> None:
    found = [(each, bases) for path in using_asyncssh() for each, bases in classes(path)]
    assert len(found) > 5
    for each, bases in found:
        theirs = {word for base in bases for word in names_of_class(base)}
        assert not names_of_class(each) & theirs, each


def test_connections_are_made_by_the_library_and_have_no_classes_of_ours() -> None:
    found = [(each, bases) for path in using_asyncssh() for each, bases in classes(path)]
    assert [each for each, bases in found if {base.__name__ for base in bases} & MADE_BY_ASYNCSSH] == []
    calls = [
        f"{name(path)}:{node.lineno}"
        for path in using_asyncssh()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in MADE_BY_ASYNCSSH
    ]
    assert calls == []
