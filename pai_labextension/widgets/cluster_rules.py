"""Rules of a virtual cluster, and planned maintenance, as sentences for ClusterView."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pai_scheduler.rest.cluster import MaintenanceInfo, NodeInfo, VirtualClusterInfo

from .language import Language
from .times import when

#: Stand for two times in a sentence until it is markup; no sentence holds them.
_BEGIN, _END = "\0", "\1"


def rules(say: Language, cluster: VirtualClusterInfo) -> list[str]:
    """Return which jobs come first in a virtual cluster, and on which machines what starts is put."""
    said = []
    if cluster["shortestRemaining"]:
        said.append(say("Jobs that need least GPU time to their end come first and stop others."))
    if levels := cluster["levelGpuHours"]:
        said.append(
            say(
                "A job goes to the next level when it has had so many GPU hours: {hours}. "
                "Lower levels come first and stop others.",
                hours=" · ".join(f"{one:g}" for one in levels),
            )
        )
    if hours := cluster["fairShareHours"]:
        said.append(say("Who has used less comes first; half counts after {hours} hours.", hours=hours))
    if used := cluster.get("usedLately"):
        said.append(
            say(
                "You have used {hours} GPU hours lately: {percent} % of all.",
                hours=f"{used['gpuHours']:.1f}",
                percent=round(used["percent"]),
            )
        )
    if cluster["shorterFirst"]:
        said.append(say("Shorter jobs come first."))
    said.append(
        say("What starts gets the emptiest machines.")
        if cluster["placement"] == "spread"
        else say("What starts fills machines.")
    )
    return said


def maintenance(say: Language, nodes: Sequence[NodeInfo]) -> str:
    """List as markup the maintenance that is planned or under way; empty: there is none."""
    planned: dict[str, MaintenanceInfo] = {}
    machines: dict[str, list[str]] = {}
    begun: set[str] = set()
    for node in nodes:
        for window in node.get("maintenance", []):
            name = window["name"]
            planned[name] = window
            machines.setdefault(name, []).append(node["name"])
            # only maintenance closes a machine until a time
            if (closed := node["closed"]) is not None and closed.get("until") == window["end"]:
                begun.add(name)
    lines = []
    for window in sorted(planned.values(), key=lambda one: (one["begin"], one["end"])):
        names = say(", ").join(machines[window["name"]])
        sentence = (
            say("In maintenance until {end}: {machines} ({reason})", **_values(names, window))
            if window["name"] in begun
            else say("Maintenance from {begin} to {end}: {machines} ({reason})", **_values(names, window))
        )
        times = escape(sentence).replace(_BEGIN, when(window["begin"])).replace(_END, when(window["end"]))
        lines.append(f"<li>{times}</li>")
    return f'<ul aria-label="{escape(say("Maintenance"), quote=True)}">{"".join(lines)}</ul>' if lines else ""


def _values(names: str, window: MaintenanceInfo) -> dict[str, str]:
    return {"begin": _BEGIN, "end": _END, "machines": names, "reason": window["reason"]}
