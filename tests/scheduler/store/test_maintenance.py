"""What maintenance is planned is kept."""

from __future__ import annotations

from dataclasses import replace

from pai_scheduler.cluster.node import Maintenance
from tests.scheduler.store.conftest import OpenStore


def test_what_is_planned_is_kept_until_it_is_deleted(open_store: OpenStore) -> None:
    store = open_store()
    disks = Maintenance("disks", ("a", "b-*"), 20, 30, "磁盘已换", "王")
    store.put_maintenance(Maintenance("disks", ("a",), 1, 2, "disks", "root"))
    store.put_maintenance(disks)
    store.put_maintenance(replace(disks, name="net", begin=10))
    again = open_store()
    assert again.maintenance() == [replace(disks, name="net", begin=10), disks]
    again.remove_maintenance("net")
    again.remove_maintenance("unknown")
    assert store.maintenance() == [disks]
