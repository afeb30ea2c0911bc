"""Which nodes are closed is kept."""

from __future__ import annotations

from pai_scheduler.cluster.node import Closing
from tests.scheduler.store.conftest import OpenStore


def test_which_nodes_are_closed_and_why_is_kept_until_they_are_opened(open_store: OpenStore) -> None:
    store = open_store()
    store.close_node("n1", Closing("root", "disk is replaced", 1))
    store.close_node("n2", Closing("root", "moved", 2))
    store.close_node("n1", Closing("王", "磁盘已换", 3))
    again = open_store()
    assert again.closed_nodes() == {"n1": Closing("王", "磁盘已换", 3), "n2": Closing("root", "moved", 2)}
    again.open_node("n1")
    again.open_node("unknown")
    assert store.closed_nodes() == {"n2": Closing("root", "moved", 2)}
