"""The numbers of sharing, and what waiting jobs are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_scheduler.cluster.definition import DEFAULT_OVERTAKE_LIMIT
from pai_scheduler.cluster.dispatcher import MOST_RESERVATIONS
from pai_scheduler.cluster.fair_share import AHEAD_MS, CORES_PER_GPU, EVERY_MS
from pai_scheduler.cluster.locality import MOST_SPREAD
from pai_scheduler.cluster.start_estimate import MOST_AHEAD
from pai_scheduler.core.queue_policies import ASSUMED_RUN_SECONDS
from pai_scheduler.core.state_machine import CoreSettings
from pai_scheduler.job.exit_codes import PREEMPTED
from pai_scheduler.job.schema import job_schema
from pai_scheduler.job.spec import DEFAULT_PRIORITY

from .waiting import reasons


def facts(_locale: str) -> Mapping[str, Any]:
    """Return what the page about virtual clusters says in facts."""
    priority = job_schema()["properties"]["extras"]["properties"]["priority"]
    return {
        "lowest_priority": priority["minimum"],
        "highest_priority": priority["maximum"],
        "default_priority": DEFAULT_PRIORITY,
        "overtake_limit": DEFAULT_OVERTAKE_LIMIT,
        "assumed_days": ASSUMED_RUN_SECONDS // 86_400,
        "cores_per_gpu": CORES_PER_GPU,
        "most_spread": f"{MOST_SPREAD:,}",
        "share_ahead_minutes": AHEAD_MS // 60_000,
        "share_every_seconds": EVERY_MS // 1000,
        "most_reservations": MOST_RESERVATIONS,
        "most_ahead": MOST_AHEAD,
        "grace_seconds": CoreSettings().grace_seconds,
        "preempted": PREEMPTED,
        "reasons": list(reasons()),
    }
