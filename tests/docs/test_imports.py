"""The picture of who imports whom is right, and the folders import each other in no circle."""

from __future__ import annotations

import pytest

from docs.generate.imports import folder_imports, layers, reduced


def test_no_folders_of_the_scheduler_import_each_other_in_a_circle() -> None:
    order = [folder for layer in layers(folder_imports()) for folder in layer]
    assert order[0] == "server"
    for folder, imported in folder_imports().items():
        assert all(order.index(folder) < order.index(other) for other in imported)


def test_an_import_cycle_is_named() -> None:
    with pytest.raises(ValueError, match="these import each other: a, b"):
        layers({"a": {"b"}, "b": {"a"}, "c": set()})


def test_an_import_that_a_longer_path_stands_for_is_not_drawn() -> None:
    edges = {"top": {"middle", "low"}, "middle": {"low"}, "low": set[str]()}
    assert reduced(edges) == {"top": {"middle"}, "middle": {"low"}, "low": set()}
