"""In which order jobs wait: the rank of one, and its position among all of its virtual cluster."""

from __future__ import annotations

#: Priority (negated) and order of submission: lower comes first.
Rank = tuple[int, int]
#: Where a job stands in the queue of its virtual cluster: its rank and its id.
QueuePosition = tuple[Rank, str]
