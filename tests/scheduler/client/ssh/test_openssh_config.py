"""The configuration, read by OpenSSH itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pai_scheduler.client.ssh.openssh_config import (
    Host,
    UnwritableNameError,
    config,
    hosts,
    known_hosts,
    quoted,
)
from pai_scheduler.ssh.login import LoginName

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILcX5VewpiiMcuRJEdRkuZlk/GYBqUZVwhzLQR65nbWR"


def as_ssh_reads(text: str, name: str, tmp_path: Path) -> dict[str, str]:
    """Return the settings with which ssh would go to `name`."""
    file = tmp_path / "config"
    file.write_text(text, encoding="utf-8")
    read = subprocess.run(["ssh", "-G", "-F", file, name], capture_output=True, text=True, check=True)
    return dict(line.split(" ", 1) for line in read.stdout.splitlines() if " " in line)


def test_ssh_reads_what_each_task_needs(tmp_path: Path) -> None:
    tasks = [LoginName("王 小/明", "train", f"worker-{index}") for index in range(2)]
    tasks.append(LoginName("王 小/明", "alone", "main-0"))
    keys = {"train": "/home/a b/keys/train", "alone": "/home/a b/keys/alone"}
    text = config("hub.example.org", 2222, "/home/a b/known_hosts", hosts(tasks, keys))
    read = as_ssh_reads(text, "pai-train-worker-1", tmp_path)
    assert read["hostname"] == "hub.example.org"
    assert read["port"] == "2222"
    assert read["user"] == "王 小/明+train+worker-1"
    assert read["identityfile"] == "/home/a b/keys/train"
    assert read["identitiesonly"] == "yes"
    assert read["userknownhostsfile"] == "/home/a b/known_hosts"
    assert read["hostkeyalias"] == "pai-gateway"
    assert read["stricthostkeychecking"] == "true"
    assert read["serveraliveinterval"] == "30"
    # the only task of its job has a short name too
    short = as_ssh_reads(text, "pai-alone", tmp_path)
    assert short["user"] == "王 小/明+alone+main-0"
    assert as_ssh_reads(text, "pai-train", tmp_path)["hostname"] == "pai-train"


@pytest.mark.parametrize(
    "name",
    [
        'a"\n  ProxyCommand touch /tmp/evil\nHost x',
        "a\nProxyCommand x",
        'a" b',
        "a\\",
        "%h",
        "${HOME}",
        "a\x00b",
        "a\u2028b\x85",
        "`id`",
    ],
)
def test_a_name_that_would_be_more_than_a_value_is_not_written(name: str) -> None:
    with pytest.raises(UnwritableNameError):
        config("h", 1, "/k", [Host(("pai-x",), LoginName(name, "x", "main-0"), f"/keys/{name}")])
    with pytest.raises(UnwritableNameError):
        quoted(name)


@pytest.mark.parametrize(
    "name", ["a b", "o'neill", "a;b|c&d", "#x", "a=b", "~x", "-oProxyCommand=x", "*", "!a"]
)
def test_any_other_name_stays_what_it_is(name: str, tmp_path: Path) -> None:
    text = config("h", 1, "/k", [Host(("pai-x",), LoginName(name, "x", "main-0"), "/keys/x")])
    assert as_ssh_reads(text, "pai-x", tmp_path)["user"] == f"{name}+x+main-0"


def test_names_that_are_no_alias_get_one_of_their_own(tmp_path: Path) -> None:
    tasks = [LoginName("alice", job, "main-0") for job in ("a~b", "a-b", "a.b_")]
    made = hosts(tasks, {task.job: f"/keys/{task.job}" for task in tasks})
    aliases = [alias for host in made for alias in host.aliases]
    assert len(set(aliases)) == 6
    assert all("~" not in alias for alias in aliases)
    assert made[1].aliases == ("pai-a-b-main-0", "pai-a-b")
    text = config("h", 1, "/k", made)
    assert as_ssh_reads(text, made[0].aliases[0], tmp_path)["user"] == "alice+a~b+main-0"


def test_the_gateway_is_known_by_its_key_alone() -> None:
    assert known_hosts(f"{KEY} a comment\n") == f"pai-gateway {KEY}\n"
