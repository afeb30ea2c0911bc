"""Reads and writes the maintenance that administrators have planned."""

from __future__ import annotations

import json

import sqlalchemy as sa

from pai_scheduler.cluster.node import Maintenance

from .changes import upsert
from .tables import maintenance
from .transactions import Database


class StoredMaintenance(Database):
    """The part of the store that has the maintenance."""

    def put_maintenance(self, window: Maintenance) -> None:
        """Keep what is planned, instead of what there is by this name."""
        row = {
            "name": window.name,
            "nodes": json.dumps(window.nodes, ensure_ascii=False),
            "begin_time": window.begin,
            "end_time": window.end,
            "reason": window.reason,
            "user_name": window.by,
        }
        with self._writing() as connection:
            upsert(connection, maintenance, [row])

    def remove_maintenance(self, name: str) -> None:
        """Forget what is planned by a name, if anything is."""
        with self._writing() as connection:
            connection.execute(maintenance.delete().where(maintenance.c.name == name))

    def maintenance(self) -> list[Maintenance]:
        """List what is planned, also what is over, the first to begin first."""
        query = sa.select(maintenance).order_by(maintenance.c.begin_time, maintenance.c.name)
        with self._reading() as connection:
            return [
                Maintenance(
                    row.name,
                    tuple(json.loads(row.nodes)),
                    row.begin_time,
                    row.end_time,
                    row.reason,
                    row.user_name,
                )
                for row in connection.execute(query)
            ]
