"""Who may do what where."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.job.spec import folder_name
from pai_scheduler.principal import Principal
from pai_scheduler.storage.files import Right, check, home, may, tree_of
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.testing.home import refuses

ALICE = Principal("alice", groups=("vision", "a/b"))
ROOT = Principal("root", admin=True)
#: Users whose names mean something in a path, or in ours.
HARD = [
    "Public",
    "Output",
    "Shared",
    "Container",
    ".uploads",
    ".",
    "..",
    "%2e",
    "%2E%2E",
    "a/b",
    "/alice",
    "alice/",
    "%",
]


def rights(principal: Principal, path: str) -> str:
    """Return what somebody may do at a path: "", "r" or "rw"."""
    found = [right for right in (Right.READ, Right.WRITE) if may(principal, StoragePath.parse(path), right)]
    return {(): "", (Right.READ,): "r", (Right.READ, Right.WRITE): "rw"}[tuple(found)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/alice", "rw"), ("/alice/code/x", "rw"), ("/Output/alice", "rw"), ("/Output/alice/job", "rw"),
        ("/Shared/vision", "rw"), ("/Shared/vision/x", "rw"), ("/Shared/a%2Fb/x", "rw"),
        ("/Public", "r"), ("/Public/mnist", "r"), ("/Container/alice", "r"), ("/Container/alice/x", "r"),
        ("/", "r"), ("/Output", "r"), ("/Shared", "r"), ("/Container", "r"),
        ("/bob", ""), ("/bob/x", ""), ("/Output/bob", ""), ("/Container/bob", ""), ("/Shared/audio/x", ""),
        ("/Shared/alice", ""), ("/Shared/a", ""), ("/Shared/a/b", ""), ("/alicex", ""), ("/alic", ""),
        ("/ALICE", ""), ("/public", ""), ("/Output/ALICE", ""), ("/vision", ""), ("/.uploads", ""),
        ("/.uploads/x", ""), ("/.x", ""),
    ],
)  # fmt: skip
def test_a_user_may_do_what_the_trees_say(path: str, expected: str) -> None:
    assert rights(ALICE, path) == expected


@pytest.mark.parametrize("path", ["/Container/alice", "/Container/alice/alice~one/ssh/keyFiles/alice~one"])
def test_a_job_of_a_users_is_not_given_the_users_keys(path: str) -> None:
    assert rights(replace(ALICE, is_job=True), path) == ""
    assert rights(replace(ALICE, is_job=True), "/alice/x") == "rw"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/bob/x", "rw"), ("/Output/bob", "rw"), ("/Shared/vision/x", "rw"), ("/Public/x", "rw"),
        ("/Container/x", "rw"),
        # not even an administrator puts anything where no tree is
        ("/", "r"), ("/Output", "r"), ("/Shared", "r"),
        # the service's own
        ("/.uploads", ""), ("/.uploads/x", ""),
    ],
)  # fmt: skip
def test_an_administrator_may_do_everything_in_trees(path: str, expected: str) -> None:
    assert rights(ROOT, path) == expected


def test_leaving_a_group_ends_access() -> None:
    assert rights(Principal("alice"), "/Shared/vision/x") == ""


@pytest.mark.parametrize("name", HARD)
def test_a_hard_name_gets_a_tree_of_its_own_and_no_other(name: str) -> None:
    principal = Principal(name, groups=(name,))
    root = home(name)
    assert len(root.parts) == 1
    assert rights(principal, str(root / "x")) == "rw"
    assert rights(principal, f"/Output/{folder_name(name)}/x") == "rw"
    assert rights(principal, f"/Shared/{folder_name(name)}/x") == "rw"
    for path in (
        "/alice/x",
        "/bob/x",
        "/Output/alice/x",
        "/Shared/alice/x",
        "/.uploads/x",
        "/Container/alice/x",
    ):
        assert rights(principal, path) == ""
    assert rights(principal, "/Public/x") == "r"
    assert rights(ALICE, str(root / "x")) == ""


@given(st.sets(st.sampled_from(HARD) | st.text(alphabet="%25PpEe./ab", min_size=1, max_size=8), min_size=2))
def test_two_names_never_share_a_folder(names: set[str]) -> None:
    assert len({folder_name(name) for name in names}) == len(names)


@given(st.text(min_size=1, max_size=20), st.text(max_size=40))
def test_nobody_writes_outside_the_own_trees(name: str, text: str) -> None:
    try:
        path = StoragePath.parse(text)
        own = [home(name), StoragePath(("Output", folder_name(name)))]
    except StorageError:
        return
    assert may(Principal(name), path, Right.WRITE) == any(path.is_within(tree) for tree in own)


@pytest.mark.parametrize(
    ("name", "other"),
    [("Public", "%50ublic"), ("a/b", "a%2Fb"), (".x", "%2Ex"), ("%", "%25"), ("alice", "alice%")],
)
def test_a_name_cannot_be_had_by_writing_another_as_ours_are_written(name: str, other: str) -> None:
    assert folder_name(name) != folder_name(other)
    assert rights(Principal(other), str(home(name) / "x")) == ""


def test_a_name_that_no_folder_can_have_is_refused() -> None:
    for name in ("", "\0", "x" * 256):
        with refuses(Problem.INVALID):
            home(name)


def test_a_refusal_says_where_ones_own_files_are() -> None:
    with pytest.raises(StorageError) as caught:
        check(ALICE, StoragePath.parse("/bob/x"), Right.READ)
    assert str(caught.value) == "User alice may not read /bob/x. Your own files are in /alice."
    with pytest.raises(StorageError) as caught:
        check(ALICE, StoragePath.parse("/Public/x"), Right.WRITE)
    assert str(caught.value) == "User alice may not write to /Public/x. Your own files are in /alice."
    check(ALICE, StoragePath.parse("/Public/x"), Right.READ)


@pytest.mark.parametrize(
    ("path", "root", "permission"),
    [
        ("/alice/x/y", "/alice", 0o700),
        ("/Output/alice/x", "/Output/alice", 0o700),
        ("/Container/alice", "/Container/alice", 0o700),
        ("/Shared/vision/x", "/Shared/vision", 0o770),
        ("/Public/x/y", "/Public", 0o755),
    ],
)
def test_a_tree_is_closed_to_others_where_the_storage_keeps_rights_too(
    path: str, root: str, permission: int
) -> None:
    tree = tree_of(StoragePath.parse(path))
    assert tree is not None
    assert (str(tree.root), tree.permission) == (root, permission)
