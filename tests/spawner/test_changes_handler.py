"""How often a page is told of changes. (Who is told, and that the form asks then: `test_choosing.py`.)"""

from __future__ import annotations

from pai_spawner.handlers import LONGEST_PAUSE, SHORTEST_PAUSE, next_pause


def test_where_changes_do_not_cease_they_are_told_less_and_less_often() -> None:
    pauses = [SHORTEST_PAUSE]
    for _ in range(5):
        pauses.append(next_pause(pauses[-1], changed=True))
    assert pauses == [2.0, 4.0, 8.0, 8.0, 8.0, 8.0]
    assert pauses[-1] == LONGEST_PAUSE
    assert next_pause(LONGEST_PAUSE, changed=False) == SHORTEST_PAUSE
