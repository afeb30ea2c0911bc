"""The numbers of sharing: priorities, how often a job may be overtaken, which exit a preempted job has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_scheduler.job.exits import PREEMPTED
from pai_scheduler.job.schema import job_schema
from pai_scheduler.job.spec import DEFAULT_PRIORITY


def facts(_locale: str) -> Mapping[str, Any]:
    """Give what the page about virtual clusters says in facts."""
    priority = job_schema()["properties"]["extras"]["properties"]["priority"]
    return {
        "lowest_priority": priority["minimum"],
        "highest_priority": priority["maximum"],
        "default_priority": DEFAULT_PRIORITY,
        "overtake_limit": 20,
        "preempted": PREEMPTED,
    }
