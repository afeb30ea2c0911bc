"""How many examples a test of a property goes through."""

from __future__ import annotations

from hypothesis import settings


def examples(thorough: int, least: int = 20) -> int:
    """Return so many examples in `make test-all`; else a quarter, but `least` where there are as many.

    A test that asks for no number has 100, or 25 (see the root conftest).
    """
    return min(thorough, max(least, thorough * settings().max_examples // 100))
