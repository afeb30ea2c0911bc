"""The view of the cluster: what is used, what is free, and why nothing comes to a machine."""

from __future__ import annotations

from typing import Any

from pai_labextension.widgets import ClusterView
from pai_labextension.widgets.cluster_view import node_state, totals
from pai_labextension.widgets.language import Language
from pai_scheduler.testing.scheduler import NODE, FakeScheduler
from tests.labextension.widgets.waiting import until

EN = Language("en")


async def test_it_shows_what_is_free_and_follows_each_change(peer: FakeScheduler) -> None:
    view = ClusterView(peer.client(), "en", gap=0)
    assert repr(view) == "ClusterView()"
    await until(lambda: "1 of 2 free" in view.totals.value)
    assert view.free == {"cpus": 30, "memoryMB": 92_000, "P100": 1, "TITANX": 1}
    assert "node-a" in view.machines.value
    assert "33.3 %" in view.shares.value
    assert "What starts fills machines." in view.shares.value
    assert view.maintenance.value == ""
    assert view.as_text().splitlines()[1].startswith("node-a")
    lost: Any = {**NODE, "state": "LOST"}
    peer.nodes = [lost]
    peer.change()
    await until(lambda: "0 of 2 free" in view.totals.value)
    assert "Does not answer" in view.machines.value
    assert view.free["P100"] == 0
    view.close()
    await view.client.close()


def test_a_bar_is_as_long_as_what_is_used() -> None:
    shown = totals(EN, [NODE])
    assert 'max="2" value="1" aria-label="TITANX (simulated)"' in shown
    assert 'max="32" value="2" aria-label="CPUs"' in shown
    assert "90 of 98 GB free" in shown


def test_a_closed_machine_says_why() -> None:
    closed: Any = {**NODE, "closed": {"by": "root", "reason": "new disk", "since": 0}}
    assert node_state(EN, closed) == "Closed: new disk"
