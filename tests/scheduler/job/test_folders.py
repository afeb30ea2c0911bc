"""Names of users and groups as names of folders and volumes."""

from __future__ import annotations

import pytest

from pai_scheduler.job.spec import folder_name, host_folder_name, volume_part


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("alice", "alice"),
        ("alice@lab.org", "alice@lab.org"),
        ("张三", "张三"),
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("..", "%2E."),
        (".ssh", "%2Essh"),
        ("Public", "%50ublic"),
    ],
)
def test_a_folder_is_called_as_its_owner_where_that_leads_nowhere_else(name: str, folder: str) -> None:
    assert folder_name(name) == host_folder_name(name) == folder


def test_a_folder_on_a_machine_has_a_name_that_a_file_may_have() -> None:
    assert host_folder_name("a:b\nc") == "a%3Ab%0Ac"
    long, other = host_folder_name("组" * 200), host_folder_name("组" * 200 + "x")
    assert long != other
    assert long.startswith("组组组")
    assert max(len(long.encode()), len(other.encode())) <= 200


def test_the_part_of_a_volumes_name_tells_all_names_apart() -> None:
    assert volume_part("a b").startswith("a-b-")
    assert len({volume_part(name) for name in ("a b", "a-b", "a_b", "A b", "a b ")}) == 5
