"""`pai ssh-info`, `pai ssh-key` and `pai keys`, and logging in with what they give."""

from __future__ import annotations

import json
import shlex
import stat
import subprocess
from pathlib import Path

import pytest

from tests.scheduler.client.cli.pai import environ_for
from tests.testbed.machine import apt_install
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.warm import run_pai_text

QUIET = ("-F", "none", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
         "-o", "LogLevel=ERROR", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes")  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    apt_install({"ssh": "openssh-client", "puttygen": "putty-tools"})


class Pai:
    """`pai` in a folder."""

    def __init__(self, scheduler: RunningScheduler, folder: Path) -> None:
        self._scheduler, self.folder = scheduler, folder

    def __call__(self, *words: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        return run_pai_text(words, environ_for(self._scheduler, **environ), stdin, self.folder)

    def shell(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=self.folder, capture_output=True, text=True, timeout=60)


@pytest.fixture
def pai(entered: RunningScheduler, tmp_path: Path) -> Pai:
    return Pai(entered, tmp_path)


def test_the_line_that_is_shown_logs_in_with_the_key_that_is_given(pai: Pai) -> None:
    shown = pai("ssh-info", "one").stdout
    line = next(text for text in shown.splitlines() if text.startswith("main-0"))
    program, *rest = shlex.split(line.removeprefix("main-0"))
    given = next(text for text in shown.splitlines() if text.startswith("Key"))
    assert pai(*shlex.split(given)[2:]).returncode == 0
    assert stat.S_IMODE((pai.folder / "one.key").stat().st_mode) == 0o600
    ran = pai.shell(program, *QUIET, *rest, "echo $PAI_JOB_NAME")
    assert (ran.stdout, ran.stderr) == ("one\n", "")
    assert "/Container/alice/alice~one/ssh/keyFiles/alice~one" in shown


def test_the_gateway_is_shown_by_the_fingerprint_that_ssh_shows(pai: Pai) -> None:
    raw = json.loads(pai("ssh-info", "one", "--json").stdout)["gateway"]["hostKey"]
    (pai.folder / "gateway.pub").write_text(raw)
    fingerprint = pai.shell("ssh-keygen", "-l", "-f", "gateway.pub").stdout.split()[1]
    assert fingerprint.startswith("SHA256:")
    assert pai("ssh-info", "one").stdout.splitlines()[-1].split() == ["Gateway's", "key", fingerprint]


def test_the_key_of_one_job_opens_no_other(pai: Pai) -> None:
    pai("ssh-key", "one", "-o", "key")
    port = json.loads(pai("--json", "ssh-info", "two").stdout)["gateway"]["port"]
    login = ["ssh", *QUIET, "-i", "key", "-p", str(port)]
    assert pai.shell(*login, "alice+two+main-0@127.0.0.1", "true").returncode == 255
    assert pai.shell(*login, "alice+one+main-0@127.0.0.1", "true").returncode == 0


def test_a_key_comes_for_putty_and_as_its_public_half_too(pai: Pai) -> None:
    public = pai("ssh-key", "one", "--format", "public").stdout
    assert public.startswith("ssh-ed25519 ")
    assert pai("ssh-key", "one", "--format", "ppk", "-o", "key.ppk").returncode == 0
    as_putty_reads = pai.shell("puttygen", "key.ppk", "-L").stdout
    assert as_putty_reads.split()[:2] == public.split()[:2]


def test_a_key_file_that_cannot_be_written_is_said(pai: Pai) -> None:
    refused = pai("ssh-key", "one", "-o", "no/where")
    assert (refused.returncode, refused.stderr) == (
        2,
        "no/where cannot be written: No such file or directory.\n",
    )


def test_a_registered_key_opens_until_it_is_forgotten(pai: Pai) -> None:
    pai.shell("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "at home", "-f", "mine")
    fingerprint = pai.shell("ssh-keygen", "-l", "-f", "mine.pub").stdout.split()[1]
    added = pai("keys", "add", "mine.pub")
    assert added.stdout == f"{fingerprint} opens every task of alice from now on.\n"
    listed = pai("keys", "list").stdout
    assert fingerprint in listed
    assert "at home" in listed
    port = json.loads(pai("--json", "ssh-info", "two").stdout)["gateway"]["port"]
    login = ["ssh", *QUIET, "-i", "mine", "-p", str(port), "alice+two+main-1@127.0.0.1", "true"]
    assert pai.shell(*login).returncode == 0
    assert pai("keys", "remove", fingerprint).stdout == f"{fingerprint} opens nothing any more.\n"
    assert pai("keys", "list").stdout == "No public key is registered.\n"
    assert pai.shell(*login).returncode == 255


def test_a_key_is_registered_from_the_standard_input_and_what_is_none_is_refused(pai: Pai) -> None:
    pai.shell("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "mine")
    line = (pai.folder / "mine.pub").read_text()
    key = json.loads(pai("--json", "keys", "add", "-", stdin=line).stdout)
    assert key["type"] == "ssh-ed25519"
    assert pai("--json", "keys", "remove", key["fingerprint"]).returncode == 0
    assert pai("keys", "add", "mine").returncode == 1
    missing = pai("keys", "add", "nothing")
    assert (missing.returncode, missing.stderr) == (2, "nothing cannot be read: No such file or directory.\n")
    (pai.folder / "binary").write_bytes(b"\xff\xfe")
    assert pai("keys", "add", "binary").stderr == "binary holds no public key.\n"


def test_without_a_gateway_each_task_says_why(scheduler: RunningScheduler, tmp_path: Path) -> None:
    pai = Pai(scheduler, tmp_path)
    job = {"jobName": "off", "image": "any/x", "taskRoles": [{"name": "main", "command": "sleep 100000"}]}
    pai("submit", "-", stdin=json.dumps(job))
    for _ in range(300):
        shown = pai("ssh-info", "off")
        if shown.returncode == 0:
            break
    assert "main-0  SSH is off: This scheduler has no SSH gateway." in shown.stdout
    pai("stop", "off")
