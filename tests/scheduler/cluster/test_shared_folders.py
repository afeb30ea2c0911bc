"""Shared folders: what an administrator may write, and what of it is given to whom."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

import pytest

from pai_scheduler.cluster.config_fields import DefinitionError
from pai_scheduler.cluster.definition import parse_definition
from pai_scheduler.cluster.shared_folders import (
    SharedFolder,
    SharedMount,
    find_refused_folders,
    shared_mounts,
)
from pai_scheduler.job.validation import InvalidJobError, parse_job
from tests.scheduler.making import make_config

SETS = {"name": "sets", "source": "/data/sets", "target": "/data/sets"}
GROUPS = {"name": "groups", "source": "/data/groups/{group}", "target": "/data/groups/{group}", "write": True}
SCRATCH = {"name": "scratch", "source": "/scratch/{username}", "target": "/scratch", "write": True}
ODD_NAMES = (
    *("..", ".", "../x", "a/b", "/", "a%2Fb", "%", "a:b", "a\nb", "视觉组", "é", "e\u0301"),
    *("x" * 300, "x" * 301, "组" * 200, "Public", "{group}", "{username}", "\ud800", "\ud801"),
    *("a b", " ", "~", "$HOME", "a;b"),
)


def read(*entries: Any) -> tuple[SharedFolder, ...]:
    return parse_definition({"sharedFolders": list(entries)}).shared_folders


def given(
    folders: tuple[SharedFolder, ...], user: str, *groups: str, asked: Any = ("*",), **extras: Any
) -> list[SharedMount]:
    spec = parse_job(make_config(extras={"sharedFolders": list(asked), **extras}))
    return list(shared_mounts(spec, folders, user, groups))


def refused(
    folders: tuple[SharedFolder, ...], user: str, *groups: str, asked: Any = ("*",), **extras: Any
) -> dict[str, str]:
    spec = parse_job(make_config(extras={"sharedFolders": list(asked), **extras}))
    return {error.path: str(error.message) for error in find_refused_folders(spec, folders, user, groups)}


def test_everybody_reads_each_group_has_its_own_and_each_user_too() -> None:
    found = given(read(SETS, GROUPS, SCRATCH), "alice", "vision", "speech")
    assert [(one.source, one.target, one.read_only) for one in found] == [
        ("/data/sets", "/data/sets", True),
        ("/data/groups/speech", "/data/groups/speech", False),
        ("/data/groups/vision", "/data/groups/vision", False),
        ("/scratch/alice", "/scratch", False),
    ]
    assert [one.optional for one in found] == [False, True, True, False]


def test_a_folder_of_some_groups_is_for_their_members_only() -> None:
    folders = read({**SETS, "groups": ["vision"]}, {**GROUPS, "groups": ["vision", "speech"]})
    assert [one.source for one in given(folders, "alice", "vision", "all")] == [
        "/data/sets",
        "/data/groups/vision",
    ]
    assert given(folders, "bob", "all") == []
    assert given(folders, "carol") == []


def test_some_groups_write_where_the_others_read() -> None:
    folders = read({**SETS, "write": ["curators"]}, {**GROUPS, "write": ["vision"]})
    assert [one.read_only for one in given(folders, "alice", "curators", "vision")] == [False, True, False]
    assert [one.read_only for one in given(folders, "bob", "speech")] == [True, True]


def test_nobody_without_a_name_has_anything() -> None:
    assert given(read(SETS, SCRATCH), "") == []
    assert [one.name for one in given(read(SETS, GROUPS), "alice", "")] == ["sets"]


def test_a_job_is_given_what_it_asks_for() -> None:
    folders = read(SETS, SCRATCH)
    assert [one.name for one in given(folders, "alice", asked=["scratch"])] == ["scratch"]
    assert given(folders, "alice", asked=[]) == []


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_is_one_part_of_a_path_whatever_it_is(name: str) -> None:
    for mount in given(read(GROUPS, SCRATCH), name, name):
        for path, depth in ((mount.source, 3 if mount.name == "scratch" else 4), (mount.target, None)):
            parts = PurePosixPath(path).parts
            assert ".." not in path.split("/")
            assert "." not in path.split("/")
            assert not set(path) & {"\0", "\n", ":"}
            assert depth is None or len(parts) == depth
            assert all(0 < len(part.encode()) <= 255 for part in parts)


def test_no_two_names_have_the_same_folder_or_volume() -> None:
    volume = {"name": "v", "volume": "lab-{username}", "target": "/v"}
    folders = read(SCRATCH, volume)
    for kind in (0, 1):
        sources = [given(folders, name)[kind].source for name in ODD_NAMES]
        assert len(set(sources)) == len(ODD_NAMES)


def test_the_name_of_a_volume_has_no_sign_that_docker_refuses() -> None:
    volume = {"name": "v", "volume": "lab-{username}", "target": "/v", "write": True}
    for name in ODD_NAMES:
        (mount,) = given(read(volume), name)
        assert mount.is_volume
        assert set(mount.source) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
        assert len(mount.source) < 200


def test_what_is_another_groups_is_refused_like_what_there_is_not() -> None:
    folders = read(SETS, {"name": "vision", "source": "/data/v", "target": "/v", "groups": ["vision"]})
    asked = ["sets", "vision", "nothing", "../etc"]
    answer = refused(folders, "bob", "speech", asked=asked)
    assert answer == {
        f"$.extras.sharedFolders[{number}]": (
            f"No shared folder named {name} is open to you. Open to you are: sets."
        )
        for number, name in ((1, "vision"), (2, "nothing"), (3, "../etc"))
    }
    assert given(folders, "bob", "speech", asked=asked) == given(folders, "bob", asked=["sets"])


def test_what_a_job_puts_over_a_shared_folder_is_refused_with_its_place() -> None:
    mounts = [{"source": "/Public", "target": target} for target in ("/scratch/x", "/other", "data")]
    answer = refused(read(SETS, SCRATCH), "alice", home="/data", mounts=mounts)
    assert set(answer) == {"$.extras.home", "$.extras.mounts[0].target"}
    assert answer["$.extras.home"].startswith("/data is where the shared folder sets is (/data/sets).")


def test_a_job_cannot_say_more_than_names() -> None:
    entry = {"name": "sets", "source": "/etc", "target": "/x"}
    for wrong in ([entry], "/etc", [["sets"]], [1], [""]):
        with pytest.raises(InvalidJobError):
            parse_job(make_config(extras={"sharedFolders": wrong}))


@pytest.mark.parametrize(
    ("entries", "place", "part"),
    [
        ([{**SETS, "name": "A b"}], "[0].name", "needs a name"),
        ([{**SETS, "sourc": "/x"}], "[0].sourc", "not known here"),
        ([{"name": "a", "target": "/a"}], "[0]", "Say where it is"),
        ([{**SETS, "volume": "v"}], "[0]", "Say where it is"),
        ([{**SETS, "source": "data/sets"}], "[0].source", "a path from / on"),
        ([{**SETS, "source": "/data/../etc"}], "[0].source", "without . and .."),
        ([{**SETS, "source": "/"}], "[0].source", "a path from / on"),
        ([{**SETS, "source": "/etc/ssl"}], "[0].source", "own system"),
        ([{**SETS, "source": "/var"}], "[0].source", "own system"),
        ([{**SETS, "source": "/{username}"}], "[0].source", "own system"),
        ([{**SETS, "source": "/var/lib/{username}"}], "[0].source", "own system"),
        ([{**SETS, "source": "/data/{user}"}], "[0].source", "there may be {username} or {group}"),
        ([{**SETS, "source": "/data/{username}-{username}"}], "[0].source", "once"),
        ([{**SETS, "source": "/data/{username"}], "[0].source", "braces"),
        ([{**SETS, "source": "/data/{group}"}], "[0].target", "in both or in neither"),
        ([{**SETS, "target": "/data/{group}"}], "[0].target", "in both or in neither"),
        ([{**SETS, "target": "data"}], "[0].target", "from / on"),
        ([{**SETS, "target": "/usr/share"}], "[0].target", "hide a part of the system"),
        ([{**SETS, "target": "/{username}/x"}], "[0].target", "hide a part of the system"),
        ([{**SETS, "target": "/opt/pai"}], "[0].target", "hide a part of the system"),
        ([{**SETS, "groups": "vision"}], "[0].groups", "a list"),
        ([{**SETS, "write": "yes"}], "[0].write", "true, false or a list"),
        ([{**SETS, "create": "yes"}], "[0].create", "true or false"),
        ([{"name": "v", "volume": "pai-home-x", "target": "/v"}], "[0].volume", "begin with pai-"),
        ([{"name": "v", "volume": "../v", "target": "/v"}], "[0].volume", "letters, digits"),
        ([{"name": "v", "volume": "v", "target": "/v", "create": True}], "[0].create", "by itself"),
        ([SETS, SETS], "[1].name", "another shared folder named sets"),
        ([SETS, {**SETS, "name": "b"}], "[1].target", "the same place"),
        ([SETS, {**SETS, "name": "b", "target": "/data"}], "[1].target", "within the other"),
        ([GROUPS, {**SETS, "target": "/data/groups/x"}], "[1].target", "the same place"),
        (
            [{**SETS, "source": "/data", "write": True}, {**SETS, "name": "b", "target": "/b"}],
            "[1].source",
            "put a link",
        ),
        (
            [{**SETS, "source": "/data/groups/x/deep", "target": "/b"}, GROUPS],
            "[0].source",
            "put a link",
        ),
        (
            [SCRATCH, {**SETS, "source": "/scratch/all"}],
            "[1].source",
            "the same folder for somebody who is called so",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(entries: list[Any], place: str, part: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        read(*entries)
    assert caught.value.path == f"sharedFolders{place}"
    assert part in str(caught.value.message)


def test_folders_beside_each_other_and_within_what_is_only_read_are_fine() -> None:
    all_data = {"name": "data", "source": "/data", "target": "/all"}
    assert len(read(all_data, SETS, GROUPS, SCRATCH, {**SETS, "name": "again", "target": "/again"})) == 5
