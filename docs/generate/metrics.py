"""The scheduler's metrics as its registry has them: name, type, labels, meaning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client.metrics_core import Metric

from pai_scheduler import logging_config
from pai_scheduler.monitoring import recorder, series
from pai_scheduler.monitoring.meters import Present, ServiceFacts, Tally
from pai_scheduler.monitoring.monitor import Monitor


def facts(_locale: str) -> Mapping[str, Any]:
    """Return what the page about monitoring says in facts."""
    monitor = Monitor("process", [])
    monitor.watch(Present(lambda: ServiceFacts((), (), Tally(), {}, {}, 0, {})))
    labels: dict[str, tuple[str, ...]] = {}
    families: list[Metric] = []
    for collector in monitor.registry._collector_to_names:
        for family in collector.collect():
            families.append(family)
            # of a counter itself, or of a family that is made at each scrape
            labels[family.name] = tuple(getattr(family, "_labelnames", ())) or tuple(
                getattr(collector, "_labelnames", ())
            )
    return {
        "metrics": [
            {
                "name": f"{family.name}_total" if family.type == "counter" else family.name,
                "type": family.type,
                "labels": labels[family.name],
                "text": family.documentation,
            }
            for family in sorted(families, key=lambda family: family.name)
            if family.name.startswith("pai_")
        ],
        "interval": recorder.INTERVAL_SECONDS,
        "newest": series.NEWEST,
        "older": series.OLDER,
        "fields": logging_config.FIELDS,
    }
