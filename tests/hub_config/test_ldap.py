"""hub_config/variants/ldap.py: a real Hub into which people of a real LDAP directory log in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import trustme

from tests.hub import PASSWORD, REPOSITORY, Hub
from tests.testbed.fixtures import provide
from tests.testbed.ldap import GROUP_DN, HOST, USER_DN, Ldap

_PROFILES = """\
- display_name: Everybody
- display_name: With vision
  groups: [vision]
"""
_CLUSTER = """\
virtualClusters:
  default: {capacity: 50}
  vision: {capacity: 50, groups: [vision]}
"""


@pytest.fixture
def directory() -> Iterator[Ldap]:
    """Run a directory in which alice and bob are of the lab, and alice sees."""
    with ExitStack() as stack:
        directory = provide(lambda: stack.enter_context(Ldap()))
        for name in ("alice", "bob", "mallory"):
            directory.add_person(name, PASSWORD)
        directory.add_group("lab", ["alice", "bob"])
        directory.add_group("vision", ["alice"])
        yield directory


@pytest.fixture
def authority(directory: Ldap, tmp_path: Path) -> Path:
    """Return the file of the certificates that the Hub believes: those of the directory."""
    file = tmp_path / "authority.pem"
    file.write_bytes(directory.authority.read_bytes())
    return file


@pytest.fixture
def hub(directory: Ldap, authority: Path, tmp_path: Path) -> Iterator[Hub]:
    """Run a Hub into which that directory's groups `lab` and `vision` may log in."""
    cluster, profiles = tmp_path / "cluster.yaml", tmp_path / "profiles.yaml"
    cluster.write_text(_CLUSTER)
    profiles.write_text(_PROFILES)
    environment = {
        "PAI_LDAP_SERVER": HOST,
        "PAI_LDAP_PORT": str(directory.port),
        "PAI_LDAP_CA_FILE": str(authority),
        "PAI_LDAP_USER_DN": USER_DN,
        "PAI_LDAP_GROUP_DN": GROUP_DN,
        "PAI_LDAP_GROUPS": "lab vision",
        "PAI_PROFILES": str(profiles),
    }
    variant = str(REPOSITORY / "hub_config" / "variants" / "ldap.py")
    arguments = ("--config", variant, "--cluster", str(cluster))
    hub = Hub(tmp_path / "run", *arguments, environment=environment)
    try:
        hub.start()
        yield hub
    finally:
        hub.stop()


def test_people_of_the_directory_log_in_and_their_groups_open_what_is_theirs(
    hub: Hub, directory: Ldap, authority: Path
) -> None:
    for name, vision in (("alice", True), ("bob", False)):
        theirs = hub.scheduler(name, "GET", f"user/{name}/available")
        assert theirs.status_code == 200, theirs.text
        assert ("vision" in theirs.text) is vision
        choosing = hub.api(name, "GET", f"pai/choosing/{name}").json()
        shown = [profile["display_name"] for profile in choosing["profiles"]]
        assert shown == (["Everybody", "With vision"] if vision else ["Everybody"])

    assert hub.log_in("alice", "a wrong password").status_code == 403
    assert hub.log_in("alice", "").status_code == 403
    assert hub.log_in("*", PASSWORD).status_code == 403
    assert hub.log_in("mallory", PASSWORD).status_code == 403

    directory.leave("bob", "lab")
    assert hub.log_in("bob", PASSWORD).status_code == 403

    # no password is sent to a server whose certificate is of somebody else
    trustme.CA().cert_pem.write_to_path(authority)
    assert hub.log_in("alice", PASSWORD).status_code != 302
    assert "certificate verify failed" in hub.log()
