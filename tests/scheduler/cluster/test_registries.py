"""Which registries an administrator's patterns let images come from."""

from __future__ import annotations

import pytest

from pai_scheduler.cluster.definition import Registries


@pytest.mark.parametrize(
    ("pattern", "registry", "listed"),
    [
        ("registry.example.org", "registry.example.org", True),
        ("registry.example.org", "registry.example.org:5000", True),
        ("registry.example.org:5000", "registry.example.org:5000", True),
        ("registry.example.org:5000", "registry.example.org", False),
        ("*.Example.org", "lab.example.org", True),
        ("*.example.org", "example.org.evil.net", False),
        ("127.0.0.*:5000", "127.0.0.1:5000", True),
        ("*", "registry.example.org", False),
        ("*", "127.0.0.1", False),
    ],
)
def test_a_pattern_counts_for_a_port_or_for_all_and_the_asterisk_alone_for_public_ones_only(
    pattern: str, registry: str, listed: bool
) -> None:
    assert Registries((pattern,)).lists(registry) is listed
    assert Registries((pattern,)).public is (pattern == "*")


def test_without_a_list_every_public_registry_is_allowed_and_with_an_empty_one_none() -> None:
    assert Registries().public
    assert not Registries(()).public
