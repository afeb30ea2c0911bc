"""Whom somebody may act for, and which virtual clusters are open to them."""

from __future__ import annotations

import pytest

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.principal import AnonymousReader, Principal

ALICE, ROOT = Principal("alice", groups=("vision", "speech")), Principal("root", admin=True)


def test_users_act_for_themselves_and_admins_for_everybody() -> None:
    assert ALICE.may_act_for("alice")
    assert not ALICE.may_act_for("bob")
    assert not ALICE.may_act_for("root")
    assert ROOT.may_act_for("alice")


@pytest.mark.parametrize(
    ("users", "groups", "open_to_alice"),
    [
        ((), (), True),
        (("alice", "bob"), (), True),
        (("bob",), (), False),
        ((), ("speech",), True),
        ((), ("robots",), False),
        (("bob",), ("vision",), True),
        (("alice",), ("robots",), True),
        # a group is no user, a user no group
        (("vision",), ("alice",), False),
    ],
)
def test_a_virtual_cluster_is_open_to_those_it_names_and_to_all_where_it_names_nobody(
    users: tuple[str, ...], groups: tuple[str, ...], open_to_alice: bool
) -> None:
    cluster = VirtualCluster("vc", 10, users=users, groups=groups)
    assert ALICE.may_use(cluster) == open_to_alice
    assert ROOT.may_use(cluster)


def test_nobody_without_a_name_is_an_administrator() -> None:
    with pytest.raises(ValueError, match="without a name"):
        Principal("", admin=True)
    with pytest.raises(ValueError, match="without a name"):
        AnonymousReader(admin=True)


def test_who_reads_without_a_token_reads_all_jobs_and_acts_for_nobody() -> None:
    anybody = AnonymousReader()
    assert not anybody.admin
    assert anybody.reads_all
    assert anybody.may_read("alice")
    assert not anybody.may_act_for("alice")
    assert not anybody.may_act_for("")


def test_users_read_their_own_jobs_and_administrators_all() -> None:
    assert Principal("alice").may_read("alice")
    assert not Principal("alice").may_read("bob")
    assert not Principal("alice").reads_all
    assert Principal("root", admin=True).may_read("alice")
