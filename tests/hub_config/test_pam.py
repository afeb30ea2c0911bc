"""hub_config/variants/pam.py: a real Hub into which accounts of this machine log in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.hub import PASSWORD, REPOSITORY, Hub
from tests.testbed.accounts import Accounts

pytestmark = pytest.mark.daemon

_PROFILES = """\
- display_name: Everybody
- display_name: With vision
  groups: [{vision}]
"""
_CLUSTER = """\
virtualClusters:
  default: {{capacity: 50}}
  vision: {{capacity: 50, groups: [{vision}]}}
"""


@dataclass
class Place:
    """A Hub, and the names of its people on this machine."""

    hub: Hub
    accounts: Accounts
    alice: str
    bob: str
    carol: str
    dave: str
    mallory: str
    staff: str


@pytest.fixture(scope="module")
def pam_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Run a Hub into which the group `lab` of this machine may log in, and which `staff` administers."""
    if os.geteuid() != 0:
        pytest.skip("accounts are made and their passwords are read by root only")
    folder = tmp_path_factory.mktemp("pam")
    with Accounts(f"pt{os.getpid()}-") as accounts:
        lab, vision, staff = (accounts.add_group(name) for name in ("lab", "vision", "staff"))
        alice = accounts.add("alice", PASSWORD, [lab, vision])
        bob = accounts.add("bob", PASSWORD, [lab])
        carol = accounts.add("carol", PASSWORD, [lab, staff])
        dave = accounts.add("dave", PASSWORD, [lab])
        mallory = accounts.add("mallory", PASSWORD)
        cluster, profiles = folder / "cluster.yaml", folder / "profiles.yaml"
        cluster.write_text(_CLUSTER.format(vision=vision))
        profiles.write_text(_PROFILES.format(vision=vision))
        hub = Hub(
            folder / "run",
            *("--config", str(REPOSITORY / "hub_config" / "variants" / "pam.py")),
            *("--cluster", str(cluster)),
            environment={
                "PAI_PAM_GROUPS": lab,
                "PAI_PAM_ADMIN_GROUPS": staff,
                "PAI_PROFILES": str(profiles),
            },
        )
        try:
            hub.start()
            yield Place(hub, accounts, alice, bob, carol, dave, mallory, staff)
        finally:
            hub.stop()


def may_log_in(hub: Hub, name: str, password: str = PASSWORD) -> bool:
    return hub.log_in(name, password).status_code == 302


def test_accounts_of_the_machine_log_in_and_their_groups_open_what_is_theirs(pam_hub: Place) -> None:
    hub = pam_hub.hub
    for name, vision in ((pam_hub.alice, True), (pam_hub.bob, False)):
        theirs = hub.scheduler(name, "GET", f"user/{name}/available")
        assert theirs.status_code == 200, theirs.text
        assert ("vision" in theirs.text) is vision
        choosing = hub.api(name, "GET", f"pai/choosing/{name}").json()
        shown = [profile["display_name"] for profile in choosing["profiles"]]
        assert shown == (["Everybody", "With vision"] if vision else ["Everybody"])


def test_who_is_in_no_allowed_group_or_expired_or_guesses_is_not_let_in(pam_hub: Place) -> None:
    hub = pam_hub.hub
    assert may_log_in(hub, pam_hub.alice)
    assert not may_log_in(hub, pam_hub.alice, "a wrong password")
    assert not may_log_in(hub, pam_hub.mallory)
    assert not may_log_in(hub, "nobody-of-this-name")
    assert may_log_in(hub, pam_hub.dave)
    pam_hub.accounts.lock(pam_hub.dave)
    assert not may_log_in(hub, pam_hub.dave)


def test_the_admin_group_administers_as_long_as_one_is_in_it(pam_hub: Place) -> None:
    hub, carol = pam_hub.hub, pam_hub.carol
    assert hub.api(carol, "GET", f"users/{carol}").json()["admin"] is True
    assert hub.api(pam_hub.alice, "GET", "users").status_code == 403
    pam_hub.accounts.leave(carol, pam_hub.staff)
    assert may_log_in(hub, carol)
    assert hub.api(carol, "GET", f"users/{carol}").json()["admin"] is False
    assert hub.api(carol, "GET", "users").status_code == 403
