"""Findings of a check, and their look on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from pai_scheduler.i18n import Message


class Severity(StrEnum):
    """Severity of a finding; WRONG keeps jobs from running, or from being kept."""

    GOOD = "ok"
    NOTE = "note"
    WRONG = "WRONG"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence about what is there. `advice`: what to do about it, where there is something to do."""

    verdict: Severity
    text: Message
    advice: Message | None = None


def good(text: Message) -> Finding:
    """Return that something is as it should be."""
    return Finding(Severity.GOOD, text)


def note(text: Message, advice: Message | None = None) -> Finding:
    """Return what an administrator should know."""
    return Finding(Severity.NOTE, text, advice)


def wrong(text: Message, advice: Message) -> Finding:
    """Return what must be mended, and how."""
    return Finding(Severity.WRONG, text, advice)


def lines(place: str, findings: Iterable[Finding]) -> list[str]:
    """Return the findings about a place as lines for a terminal, the place first."""
    shown = [place]
    for finding in findings:
        shown.append(f"  {finding.verdict:<6}{finding.text}")
        if finding.advice is not None:
            shown.append(f"        → {finding.advice}")
    return shown
