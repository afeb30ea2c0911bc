"""The checker finds each kind of wrong outcome, and nothing where all is well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pai_scheduler.cluster.node import Gpu, Node

from .checker import Held, faults

NODES = [Node("a", 8, 1000, 10, (Gpu(0, "A100"), Gpu(1, "A100"))), Node("b", 8, 1000, 10)]
#: A job of two tasks, and one after it on what it had.
FIRST = Held("first", 0, "a", 4, 500, (0,), begin=1, end=5, ports=(8080,))
SECOND = Held("first", 1, "a", 4, 500, (1,), begin=1, end=6)
NEXT = Held("next", 0, "a", 4, 500, (0,), begin=5, ports=(8080,))
GANGS = {"first": 2, "next": 1}


def test_what_ends_is_free_at_that_moment() -> None:
    assert faults(NODES, [NEXT, SECOND, FIRST], GANGS) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([FIRST, SECOND, replace(NEXT, begin=4)], "a: GPU 0 was first's and next's at 4"),
        ([FIRST, SECOND, replace(NEXT, begin=4, gpus=())], "a: port 8080 was first's and next's at 4"),
        ([FIRST, SECOND, replace(NEXT, cpus=5)], "a gave more than it has at 5: 9 CPUs, 1000 MB"),
        ([FIRST, SECOND, replace(NEXT, memory_mb=501)], "a gave more than it has at 5: 8 CPUs, 1001 MB"),
        ([FIRST, SECOND, replace(NEXT, gpus=(2,))], "a has no GPUs [2], which next was given"),
        ([FIRST, SECOND, replace(NEXT, node="c")], "there is no node c"),
        ([FIRST, NEXT], "first began with 1 of 2 tasks at 1"),
        ([FIRST, replace(SECOND, begin=2), NEXT], "first began with 1 of 2 tasks at 2"),
    ],
)
def test_each_fault_is_said(wrong: list[Held], said: str) -> None:
    assert said in faults(NODES, wrong, GANGS)
