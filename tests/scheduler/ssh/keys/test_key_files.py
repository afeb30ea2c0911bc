"""What the files of keys are called: plain names in the user's own folder, whatever anybody is called."""

from __future__ import annotations

import pytest

from pai_scheduler.ssh.keys import key_folder, key_name


def test_the_names_are_those_of_openpai() -> None:
    assert "/".join(key_folder("alice", "mnist")) == "Container/alice/alice~mnist/ssh/keyFiles"
    assert key_name("alice", "mnist") == "alice~mnist"


@pytest.mark.parametrize("user", ["..", "../bob", "/etc", ".", ".hidden", "a/b", "Public", "王 小/明"])
def test_no_name_leads_out_of_the_folder(user: str) -> None:
    parts = key_folder(user, "mnist")
    assert len(parts) == 5
    assert parts[0] == "Container"
    for part in parts:
        assert "/" not in part
        assert part not in ("", ".", "..")
